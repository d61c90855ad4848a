package provider

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"hash"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/text/cases"

	"github.com/regie-run/regie"
)

// Asker is who asks a question: the answers of one are nobody else's (spec 6.4).
type Asker struct {
	Workspace, User, Session regie.ID
}

// Question is what a request asks, for the response cache.
type Question struct {
	Asker
	// Key is the SHA-256 of all that the answer may depend on, Key.Sum.
	Key regie.Hash
	// Provider and Model are who is asked.
	Provider, Model string
}

// Key is what a request asks, whatever its bytes (spec 6.4): the SHA-256 of the canonical JSON of
// who is asked by whom and under which settings, of model, parameters, levels and tools, and of the
// messages, trimmed. The ids of calls, which mean nothing, are left out. It grows with the thread,
// each turn being hashed once (decision 31). It is used by one goroutine.
type Key struct {
	digest hash.Hash
	head   regie.Hash
	fold   bool
	turns  int
	calls  []string // ids of the calls of the last assistant turn
}

// KeyTerms are what an answer depends on beside Head and turns.
type KeyTerms struct {
	Asker
	Provider string
	Settings regie.Hash // the fingerprint of the provider's: another server gives other answers
	Dialect  regie.Dialect
	// Fold takes letters that differ only in case for the same, in what is said. Foo.go and foo.go
	// are two files, so it is off by default.
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

// canonical is a JSON text in its canonical form; what is none is a string.
func canonical(text string) json.RawMessage {
	value := jsontext.Value(text)
	if value.Canonicalize() != nil {
		return encode(text)
	}
	return json.RawMessage(value)
}

// Append adds turns. A call has no id in a key, and a result names the place of its call in the
// turn before, from 1; 0 is none of them.
func (k *Key) Append(turns ...Turn) {
	for i := range turns {
		turn := Turn{Role: turns[i].Role, Parts: slices.Clone(turns[i].Parts), Results: slices.Clone(turns[i].Results)}
		if turn.Role == RoleAssistant {
			k.calls = nil
		}
		for j := range turn.Parts {
			p := &turn.Parts[j]
			p.Text, p.Opening = k.said(p.Text), false
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
			r.CallID = strconv.Itoa(slices.Index(k.calls, r.CallID) + 1)
		}
		if k.turns++; k.turns > 1 {
			k.write(",")
		}
		k.digest.Write(encode(turn))
	}
}

// said is a text as it counts: without the white space around it.
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

// encode is JSON without the escapes that HTML needs. What it is given can always be encoded.
func encode(v any) []byte {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(v)
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}
