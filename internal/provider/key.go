package provider

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"hash"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/text/cases"

	"github.com/regie-run/regie"
)

// Asker identifies who sends a request. The cache never shares answers between askers (spec 6.4).
type Asker struct {
	Workspace, User, Session regie.ID
}

// Question is a request as the response cache sees it.
type Question struct {
	Asker
	// Key is the SHA-256 of all that the answer may depend on, Key.Sum.
	Key regie.Hash
	// Provider and Model identify the model that gets the request.
	Provider, Model string
}

// Key identifies a request by its content, not its bytes (spec 6.4). It is the SHA-256 of the
// canonical JSON of asker, provider, settings, model, parameters, levels, tools and trimmed
// messages. It leaves out call ids, which carry no meaning. Each turn is hashed once as the thread
// grows (decision 31). One goroutine uses it.
type Key struct {
	digest hash.Hash
	head   regie.Hash
	fold   bool
	turns  int
	calls  []string // ids of the calls of the last assistant turn
}

// KeyTerms holds what an answer depends on besides Head and turns.
type KeyTerms struct {
	Asker
	Provider string
	Settings regie.Hash // the fingerprint of the provider's: another server gives other answers
	Dialect  regie.Dialect
	// Fold ignores the case of letters in messages. Foo.go and foo.go are two files, so it is off
	// by default.
	Fold bool
}

// NewKey returns the key of a request without turns.
func NewKey(head Head, terms KeyTerms) *Key {
	tools := head.Encoded.Get("key", func() []byte {
		out := slices.Clone(head.Tools)
		for i := range out {
			out[i].Parameters = canonical(string(out[i].Parameters))
		}
		return encode(out)
	})
	head.Tools, head.Dialect = nil, terms.Dialect
	k := &Key{digest: sha256.New(), fold: terms.Fold, head: regie.HashOf(encode([]any{
		head, json.RawMessage(tools), terms.Provider, terms.Settings, terms.User, terms.Workspace,
	}))}
	k.write(`{"messages":[`)
	return k
}

// canonical returns the canonical form of a JSON text, and other text as a JSON string.
func canonical(text string) json.RawMessage {
	value := jsontext.Value(text)
	if value.Canonicalize() != nil {
		return encode(text)
	}
	return json.RawMessage(value)
}

// Append adds turns. A key holds no call ids: a result names its call by position in the turn
// before, from 1, or 0 if that turn does not have the call.
func (k *Key) Append(turns ...Turn) {
	for i := range turns {
		turn := Turn{Role: turns[i].Role, Parts: slices.Clone(turns[i].Parts), Results: slices.Clone(turns[i].Results)}
		if turn.Role == RoleAssistant {
			k.calls = nil
		}
		for j := range turn.Parts {
			p := &turn.Parts[j]
			p.Text, p.Opening = k.said(WithoutDurations(p.Text)), false
			if len(p.Opaque) > 0 {
				p.Opaque = canonical(string(p.Opaque))
			}
			if p.Call != nil {
				k.calls = append(k.calls, p.Call.ID)
				p.Call = &Call{Name: p.Call.Name, Arguments: string(canonical(p.Call.Arguments))}
			}
		}
		for j := range turn.Results {
			r := &turn.Results[j]
			r.CallID, r.Content = strconv.Itoa(slices.Index(k.calls, r.CallID)+1), WithoutDurations(r.Content)
		}
		if k.turns++; k.turns > 1 {
			k.write(",")
		}
		k.digest.Write(encode(turn))
	}
}

// duration matches the beginning of a call's outcome (see package prompt) up to its duration.
var duration = regexp.MustCompile(`(?m)^(\{(?:"command":\d+,)?"name":"[^"\\]*","success":(?:true|false),"duration_ms":)\d+`)

// WithoutDurations returns what a model reads with the durations of calls zero: they differ between
// two runs of the same calls.
func WithoutDurations(text string) string {
	if !strings.Contains(text, `"duration_ms":`) {
		return text
	}
	return duration.ReplaceAllString(text, "${1}0")
}

// said returns a text without surrounding white space, folded if Fold is set.
func (k *Key) said(text string) string {
	text = strings.TrimSpace(text)
	if k.fold {
		text = cases.Fold().String(text)
	}
	return text
}

// Sum is the key of the request that ends with tail.
func (k *Key) Sum(tail Tail) regie.Hash {
	cloner, _ := k.digest.(hash.Cloner) // sha256 has it
	clone, err := cloner.Clone()
	if err != nil {
		return regie.Hash{}
	}
	_, _ = clone.Write([]byte(`],"of":"` + k.head.String() + `","tail":`))
	tail.Guidance = k.said(tail.Guidance)
	_, _ = clone.Write(encode(tail))
	_, _ = clone.Write([]byte("}"))
	return regie.Hash(clone.Sum(nil))
}

func (k *Key) write(text string) { _, _ = k.digest.Write([]byte(text)) }

// encode returns JSON without HTML escapes. Its arguments always encode.
func encode(v any) []byte {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(v)
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}

const (
	// minKey is the length of the shortest key that is masked, in bytes: a shorter one is no secret
	// and occurs in ordinary text.
	minKey  = 8
	keyMask = "[the API key]"
)

// MaskKeys returns a replacer that masks keys, as they are and as JSON strings hold them.
func MaskKeys(keys ...string) *strings.Replacer {
	keys = slices.Clone(keys)
	// the longer one of a common prefix wins
	slices.SortFunc(keys, func(a, b string) int { return len(b) - len(a) })
	var pairs []string
	for _, key := range keys {
		if len(key) >= minKey {
			inJSON := strconv.Quote(key)
			pairs = append(pairs, key, keyMask, inJSON[1:len(inJSON)-1], keyMask)
		}
	}
	return strings.NewReplacer(pairs...)
}
