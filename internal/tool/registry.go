package tool

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"sort"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/sanitize"
)

// Registry is an unchanging set of tools (spec 4.2). Its methods may be called from many
// goroutines.
type Registry struct {
	byName  map[string]*entry
	byWire  map[string]*entry
	byAlias map[string]*entry
	sorted  []*entry // by name
	// outside are the tools outside of an agent's scopes, by canonical name: a model is not offered
	// them, and its calls of them are not run. Lookup finds them, for what runs already.
	outside map[string]*entry
	// away are the toolkits that are down, each with the reason: an MCP server that does not answer
	// (spec 4.2).
	away map[string]error
}

// entry is a tool with everything that is worked out once.
type entry struct {
	tool       Tool
	definition regie.ToolDefinition
	hash       regie.Hash
	wire       string
	schema     *jsonschema.Resolved
	source     *jsonschema.Schema // what schema was resolved from, for the sentences about what does not fit
	properties []string
	closed     bool // no other properties are allowed
	declared   json.RawMessage
}

// NewRegistry returns a registry of the tools (spec 4.2). It returns CodeBadRequest for an invalid
// or duplicate name, for a kind and class that contradict each other, and for an unusable schema.
func NewRegistry(tools ...Tool) (*Registry, error) {
	r := newRegistry()
	if err := r.addTools(tools, ""); err != nil {
		return nil, err
	}
	return r, nil
}

// addTools adds tools, those of one toolkit alone where it is given, and sorts all.
func (r *Registry) addTools(tools []Tool, toolkit string) error {
	for _, t := range tools {
		e, err := newEntry(t)
		switch {
		case err != nil:
			return err
		case toolkit != "" && toolkitOf(e.definition.Name) != toolkit:
			return regie.Errorf(regie.CodeBadRequest, "the tool %s is none of the toolkit %s", e.definition.Name,
				toolkit)
		case r.byName[e.definition.Name] != nil || r.byWire[e.wire] != nil:
			return regie.Errorf(regie.CodeBadRequest, "there are two tools named %s", e.definition.Name)
		}
		r.addEntry(e)
	}
	return r.finishRegistry()
}

func newRegistry() *Registry {
	return &Registry{byName: map[string]*entry{}, byWire: map[string]*entry{}, byAlias: map[string]*entry{}}
}

// finishRegistry sorts the tools, once all are there, and returns CodeBadRequest where one has a
// name of another. An alias gives way to a client's tool of that name.
func (r *Registry) finishRegistry() error {
	slices.SortFunc(r.sorted, func(a, b *entry) int { return strings.Compare(a.definition.Name, b.definition.Name) })
	for _, e := range r.sorted {
		for _, alias := range e.definition.Aliases {
			if own := r.byWire[alias]; own != nil && own.definition.Role == regie.RoleClient {
				continue
			}
			if r.byName[alias] != nil || r.byWire[alias] != nil || r.byAlias[alias] != e {
				return regie.Errorf(regie.CodeBadRequest, "the name %q of tool %s is another one's too", alias,
					e.definition.Name)
			}
		}
	}
	return nil
}

func newEntry(t Tool) (*entry, error) {
	e := &entry{tool: t, definition: t.Definition()}
	d := &e.definition
	if len(d.Name) > maxCanonicalName || !canonicalName.MatchString(d.Name) {
		return nil, regie.Errorf(regie.CodeBadRequest,
			"%q is not a tool name: write toolkit.operation with letters, digits, _ and -",
			sanitize.Clip(d.Name, maxCanonicalName))
	}
	for _, alias := range d.Aliases {
		if len(alias) > maxWireName || !aliasName.MatchString(alias) {
			return nil, regie.Errorf(regie.CodeBadRequest, "%q cannot name tool %s: write letters, digits, _ and -",
				sanitize.Clip(alias, maxWireName), d.Name)
		}
	}
	e.wire = WireName(d.Name)
	if own := clientName(d.Name); own != "" && d.Role == regie.RoleClient {
		e.wire = own
	}
	if err := checkConsistent(t, d); err != nil {
		return nil, err
	}
	if err := e.resolveSchema(); err != nil {
		return nil, err
	}
	data, err := json.Marshal(d)
	if err != nil {
		return nil, regie.Errorf(regie.CodeBadRequest, "the definition of tool %s cannot be written as JSON: %v",
			d.Name, err)
	}
	canonical := jsontext.Value(data)
	if err := canonical.Canonicalize(); err != nil {
		return nil, regie.Errorf(regie.CodeBadRequest, "the definition of tool %s is not strict JSON: %v", d.Name, err)
	}
	e.hash, e.declared = regie.HashOf(canonical), e.wireSchema()
	return e, nil
}

// checkConsistent checks what recovery relies on: only what reads is repeated freely, only what can
// be probed is probed (spec 12.2).
func checkConsistent(t Tool, d *regie.ToolDefinition) error {
	probes := SidesOf(t).Probe != nil
	switch d.Class {
	case regie.ClassRead, regie.ClassKeyed, regie.ClassVerifiable, regie.ClassOnce, regie.ClassResumable:
	default:
		return regie.Errorf(regie.CodeBadRequest, "tool %s has the unknown effect class %q", d.Name, d.Class)
	}
	switch {
	case d.Kind != regie.KindQuery && d.Kind != regie.KindAction:
		return regie.Errorf(regie.CodeBadRequest, "tool %s is neither a query nor an action", d.Name)
	case (d.Kind == regie.KindQuery) != (d.Class == regie.ClassRead):
		return regie.Errorf(regie.CodeBadRequest, "tool %s must have the class read exactly if it is a query", d.Name)
	case (d.Class == regie.ClassVerifiable) != probes:
		return regie.Errorf(regie.CodeBadRequest, "tool %s must have a probe exactly if its class is verifiable",
			d.Name)
	case d.Risk != regie.RiskInternal && d.Risk != regie.RiskExternal:
		return regie.Errorf(regie.CodeBadRequest, "tool %s must have the risk internal or external", d.Name)
	}
	return nil
}

// resolveSchema reads the schema of the parameters, once.
func (e *entry) resolveSchema() error {
	e.source = &jsonschema.Schema{}
	name := regie.ToolNameOf(e.definition.Name)
	if err := json.Unmarshal(e.definition.Parameters, e.source); err != nil {
		return regie.Errorf(regie.CodeBadRequest, "the schema of tool %s cannot be read: %v", name, err)
	}
	for name := range e.source.Properties {
		e.properties = append(e.properties, name)
	}
	sort.Strings(e.properties)
	if extra := e.source.AdditionalProperties; extra != nil && extra.Not != nil &&
		len(e.source.PatternProperties) == 0 {
		e.closed = true // jsonschema reads false as {"not": {}}
	}
	var err error
	if e.schema, err = e.source.Resolve(nil); err != nil {
		return regie.Errorf(regie.CodeBadRequest, "the schema of tool %s cannot be used: %v", name, err)
	}
	return nil
}

func (r *Registry) addEntry(e *entry) {
	r.byName[e.definition.Name], r.byWire[e.wire] = e, e
	for _, alias := range e.definition.Aliases {
		r.byAlias[alias] = e
	}
	r.sorted = append(r.sorted, e)
}

// With returns a registry with these as all tools of a toolkit; the other tools are shared, without
// being prepared again. away is the reason, with CodeServerDown, why the toolkit is down; nil says
// that it works. It returns the codes of NewRegistry, and CodeBadRequest for a tool of another
// toolkit.
func (r *Registry) With(toolkit string, tools []Tool, away error) (*Registry, error) {
	out := newRegistry()
	out.away, out.outside = maps.Clone(r.away), r.outside
	for _, e := range r.sorted {
		if toolkitOf(e.definition.Name) != toolkit {
			out.addEntry(e)
		}
	}
	if away == nil {
		delete(out.away, toolkit)
	} else {
		if out.away == nil {
			out.away = map[string]error{}
		}
		out.away[toolkit] = away
	}
	if err := out.addTools(tools, toolkit); err != nil {
		return nil, err
	}
	return out, nil
}

// Away returns why a tool is not there, by its canonical or its wire name, where its whole toolkit
// is away for now; nil for any other.
func (r *Registry) Away(name string) error {
	if len(r.away) == 0 {
		return nil
	}
	if toolkit := toolkitOf(name); r.away[toolkit] != nil {
		return r.away[toolkit]
	}
	toolkit, _, _ := strings.Cut(name, "__")
	return r.away[toolkit]
}

// Missing returns the toolkits that are away for now, by name, each with the reason.
func (r *Registry) Missing() []regie.Missing {
	var out []regie.Missing
	for _, toolkit := range slices.Sorted(maps.Keys(r.away)) {
		out = append(out, regie.Missing{Toolkit: toolkit, Why: cleanText(r.away[toolkit].Error(), maxMessage)})
	}
	return out
}

// Within returns a registry that offers the tools in all of these scopes; the tools are shared.
func (r *Registry) Within(scopes []regie.ToolScope) *Registry {
	out := newRegistry()
	out.away, out.outside = r.away, maps.Clone(r.outside)
	for _, e := range r.sorted {
		if regie.InScopes(scopes, e.definition.Name) {
			out.addEntry(e)
			continue
		}
		if out.outside == nil {
			out.outside = map[string]*entry{}
		}
		out.outside[e.definition.Name] = e
	}
	return out
}

func toolkitOf(canonical string) string {
	toolkit, _, _ := strings.Cut(canonical, ".")
	return toolkit
}

// Definitions returns the tools' definitions, by name: always in the same order, so that requests
// begin with the same bytes.
func (r *Registry) Definitions() []regie.ToolDefinition {
	out := make([]regie.ToolDefinition, len(r.sorted))
	for i, e := range r.sorted {
		out[i] = e.definition
	}
	return out
}

// Lookup returns a tool by its canonical name with the hash of its definition, which an approval
// binds to (decision 20).
func (r *Registry) Lookup(name string) (Tool, regie.Hash, bool) {
	if e := cmp.Or(r.byName[name], r.outside[name]); e != nil {
		return e.tool, e.hash, true
	}
	return nil, regie.Hash{}, false
}

// ByWireName returns the canonical name of the tool that a model calls by its wire name (decision
// 27).
func (r *Registry) ByWireName(wire string) (canonical string, ok bool) {
	if e := r.byWire[wire]; e != nil {
		return e.definition.Name, true
	}
	return "", false
}
