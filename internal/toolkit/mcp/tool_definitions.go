package mcp

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/sanitize"
	"github.com/regie-run/regie/internal/tool"
)

const (
	maxDescription = 4 << 10 // bytes of a tool's description
	maxRemoteName  = 256     // bytes of a server's name for a tool
	maxOperation   = 120     // bytes of an operation's name
	maxTools       = 500     // tools of one server
)

var (
	operationUnsafe = regexp.MustCompile(`[^a-zA-Z0-9_.-]`)
	operationSafe   = regexp.MustCompile(`^[a-zA-Z0-9_.-]+$`)
	operationHashed = regexp.MustCompile(`_[0-9a-f]{16}$`)
)

// operationName returns the name under which a server's tool is known here. A name that the
// registry allows stays; any other, and one made to look like what follows, ends in a hash of
// itself. So two names never become one, and a name's operation does not depend on what else the
// server offers: an approval of one tool can never come to mean its neighbour.
func operationName(remote string) string {
	if len(remote) <= maxOperation && operationSafe.MatchString(remote) && !operationHashed.MatchString(remote) {
		return remote
	}
	hash := regie.HashOf([]byte(remote))
	name := sanitize.Clip(operationUnsafe.ReplaceAllString(remote, "_"), maxOperation)
	return name + "_" + hex.EncodeToString(hash[:8])
}

// offer is a tool as a server describes it at one time, made safe.
type offer struct {
	remote     string // the server's name for it
	definition regie.ToolDefinition
	pin        regie.Hash // of all that the model and the person see of it
}

// makeOffers makes offers of what a server lists. A tool that cannot be offered is left out and
// named with the reason; the others stay.
func makeOffers(c Config, listed []*sdk.Tool) (offered []offer, left []string) {
	count := map[string]int{}
	for _, t := range listed {
		count[t.Name]++
	}
	for _, t := range listed {
		name := cleanText(t.Name, 60)
		if count[t.Name] > 1 {
			// Which of them a call would run is the server's secret.
			left = append(left, fmt.Sprintf("%s: it is listed %d times", name, count[t.Name]))
			continue
		}
		if !c.offersTool(t.Name, operationName(t.Name)) {
			continue
		}
		o, err := offerOf(c, t)
		if err != nil {
			left = append(left, fmt.Sprintf("%s: %v", name, err))
			continue
		}
		offered = append(offered, o)
	}
	slices.SortFunc(offered, func(a, b offer) int { return strings.Compare(a.definition.Name, b.definition.Name) })
	for _, o := range offered[min(len(offered), maxTools):] {
		left = append(left, fmt.Sprintf("%s: only %d tools of a server are taken; choose with allow",
			cleanText(o.remote, 60), maxTools))
	}
	slices.Sort(left)
	return offered[:min(len(offered), maxTools)], slices.Compact(left)
}

// offerOf makes an offer of one tool.
func offerOf(c Config, t *sdk.Tool) (made offer, err error) {
	defer func() {
		if r := recover(); r != nil { // of the schema's library: a stranger's schema must not end the engine
			err = fmt.Errorf("its schema cannot be used: %s", sanitize.Clip(fmt.Sprint(r), 200))
		}
	}()
	switch {
	case t.Name == "":
		return offer{}, fmt.Errorf("it has no name")
	case len(t.Name) > maxRemoteName:
		return offer{}, fmt.Errorf("its name has %d bytes, at most %d are taken", len(t.Name), maxRemoteName)
	}
	schema, err := cleanSchema(t.InputSchema)
	if err != nil {
		return offer{}, err
	}
	description := cleanText(t.Description, maxDescription)
	if description == "" {
		description = cleanText(t.Title, 200)
	}
	d := regie.ToolDefinition{
		Name: c.Name + "." + operationName(t.Name), Description: description,
		Parameters: schema, Timeout: c.callTimeout(),
	}
	d.Kind, d.Class, d.Risk = c.judgeTool(t)
	d.ParallelSafe = d.Kind == regie.KindQuery
	data, err := json.Marshal(d)
	if err != nil {
		return offer{}, err
	}
	o := offer{remote: t.Name, definition: d, pin: regie.HashOf(append(data, t.Name...))}
	registry, err := tool.NewRegistry(&remote{offer: o}) // what it would not take must not keep the others out
	if err != nil {
		return offer{}, err
	}
	registry.Check(d.Name, "{}")
	return o, nil
}

// judgeTool decides what a tool is (spec 13): by the operator's word, else by the server's hints
// where they are trusted, else the worst.
func (c Config) judgeTool(t *sdk.Tool) (regie.CallKind, regie.EffectClass, regie.Risk) {
	class, risk := regie.ClassOnce, regie.RiskExternal
	if hints := t.Annotations; c.TrustHints && hints != nil {
		switch {
		case hints.ReadOnlyHint:
			class = regie.ClassRead
		case hints.IdempotentHint:
			class = regie.ClassKeyed
		}
		// Both are true where they are not said. What only adds, and only to the server's own small
		// world, is like a write of ours.
		destroys := hints.DestructiveHint == nil || *hints.DestructiveHint
		reachesOut := hints.OpenWorldHint == nil || *hints.OpenWorldHint
		if class == regie.ClassRead || !destroys && !reachesOut {
			risk = regie.RiskInternal
		}
	}
	switch setting := c.Tools[t.Name]; {
	case setting.Class != "":
		class = setting.Class
	case setting.Kind == regie.KindQuery:
		class = regie.ClassRead
	case setting.Kind == regie.KindAction && class == regie.ClassRead:
		class, risk = regie.ClassOnce, regie.RiskExternal
	}
	if class == regie.ClassRead {
		return regie.KindQuery, class, regie.RiskInternal
	}
	return regie.KindAction, class, risk
}
