package provider

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"hash"
	"strings"
	"time"

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

// Answer is a reply that was kept.
type Answer struct {
	Reply Reply
	// Session is where it was given, At is when.
	Session regie.ID
	At      time.Time
	// Cost is what the model call took, in tokens: what each further use of it saves.
	Cost int64
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
	calls  map[string]int // of the last assistant turn, by id: which one it is
}

// keyHead is a Head as it is part of a key. Its fields are in the order of canonical JSON.
type keyHead struct {
	Dialect     string          `json:"dialect"`
	Level1      string          `json:"level1"`
	Level2      string          `json:"level2"`
	MaxOutput   int             `json:"max_output"`
	Model       string          `json:"model"`
	Parallel    bool            `json:"parallel_calls"`
	Provider    string          `json:"provider"`
	Effort      string          `json:"reasoning_effort,omitempty"`
	Tier        string          `json:"service_tier,omitempty"`
	Settings    string          `json:"settings"`
	Temperature *float64        `json:"temperature"`
	Tools       json.RawMessage `json:"tools"`
	User        string          `json:"user"`
	Workspace   string          `json:"workspace"`
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
	data := encode(keyHead{
		Dialect: string(terms.Dialect), Level1: head.Level1, Level2: head.Level2, MaxOutput: head.MaxOutput,
		Model: head.Model, Parallel: head.ParallelCalls,
		Provider: terms.Provider, Effort: head.ReasoningEffort, Tier: head.ServiceTier,
		Settings: terms.Settings.String(), Temperature: head.Temperature,
		Tools: head.Encoded.Get("key", func() []byte { return encodeTools(head.Tools) }),
		User:  terms.User.String(), Workspace: terms.Workspace.String(),
	})
	k := &Key{digest: sha256.New(), head: regie.HashOf(data), fold: terms.Fold}
	k.write(`{"messages":[`)
	return k
}

// keyTool is a tool as it is part of a key.
type keyTool struct {
	Description string          `json:"description"`
	Name        string          `json:"name"`
	Parameters  json.RawMessage `json:"parameters"`
}

func encodeTools(tools []Tool) []byte {
	out := make([]keyTool, len(tools))
	for i := range tools {
		out[i] = keyTool{tools[i].Description, tools[i].Name, canonical(string(tools[i].Parameters))}
	}
	return encode(out)
}

// canonical is a JSON text in its canonical form; what is none is a string.
func canonical(text string) json.RawMessage {
	value := jsontext.Value(text)
	if value.Canonicalize() != nil {
		return encode(text)
	}
	return json.RawMessage(value)
}

// keyTurn, keyPart and keyResult are a turn as it is part of a key, their fields in the order of
// canonical JSON.
type keyTurn struct {
	Parts   []keyPart   `json:"parts,omitempty"`
	Results []keyResult `json:"results,omitempty"`
	Role    Role        `json:"role"`
}

type keyPart struct {
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Name      string          `json:"name,omitempty"`
	Opaque    json.RawMessage `json:"opaque,omitempty"`
	Provider  string          `json:"provider,omitempty"`
	Text      string          `json:"text,omitempty"`
	Type      regie.PartType  `json:"type"`
}

type keyResult struct {
	Call    int    `json:"call"` // which one of the turn before, from 0; -1 for none of them
	Content string `json:"content"`
	Failed  bool   `json:"failed,omitempty"`
}

// Append adds turns.
func (k *Key) Append(turns ...Turn) {
	for i := range turns {
		t := &turns[i]
		out := keyTurn{Role: t.Role}
		if t.Role == RoleAssistant {
			k.calls = nil
		}
		for j := range t.Parts {
			out.Parts = append(out.Parts, k.part(&t.Parts[j]))
		}
		for j := range t.Results {
			r := &t.Results[j]
			which, known := k.calls[r.CallID]
			if !known {
				which = -1
			}
			out.Results = append(out.Results, keyResult{which, r.Content, r.IsError})
		}
		if k.turns++; k.turns > 1 {
			k.write(",")
		}
		k.digest.Write(encode(out))
	}
}

func (k *Key) part(p *Part) keyPart {
	out := keyPart{Type: p.Type, Provider: p.Provider, Text: k.said(p.Text)}
	if len(p.Opaque) > 0 {
		out.Opaque = canonical(string(p.Opaque))
	}
	if p.Call != nil {
		out.Name, out.Arguments = p.Call.Name, canonical(p.Call.Arguments)
		if k.calls == nil {
			k.calls = map[string]int{}
		}
		k.calls[p.Call.ID] = len(k.calls)
	}
	return out
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
	_, _ = clone.Write(encode(struct {
		Guidance string `json:"guidance"`
		Withheld bool   `json:"withheld"`
	}{k.said(tail.Guidance), tail.Withheld}))
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
