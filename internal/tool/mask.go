package tool

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/regie-run/regie"
)

// minSecret is how long a value must be, in bytes, for texts to be searched for it: what is shorter
// may be any word.
const minSecret = 8

// Secret is a value that no tool's text may carry on: a key of a model server, a token.
type Secret struct {
	Name  string // what stands in its place
	Value string
}

// Mask puts the names of secrets in the place of their values, in everything that a tool says (spec
// 11.3). A nil Mask changes nothing. Its methods may be called from any goroutine.
type Mask struct {
	secrets []Secret // the longest first, so that one that begins as another does is found whole
	first   [256]bool
}

// NewMask returns the Mask of some secrets; nil where none of them is long enough to be looked for.
func NewMask(secrets []Secret) *Mask { return (*Mask)(nil).With(secrets) }

// With returns a mask that looks for more secrets.
func (m *Mask) With(secrets []Secret) *Mask {
	out, seen := &Mask{}, map[string]bool{}
	if m != nil {
		*out = *m
		out.secrets = slices.Clone(m.secrets)
	}
	for _, s := range out.secrets {
		seen[s.Value] = true
	}
	for _, s := range secrets {
		if len(s.Value) < minSecret {
			continue
		}
		quoted, _ := json.Marshal(s.Value) // a text always has a form
		for _, value := range []string{s.Value, string(quoted[1 : len(quoted)-1])} {
			if !seen[value] {
				seen[value] = true
				out.secrets = append(out.secrets, Secret{Name: "[secret: " + s.Name + "]", Value: value})
				out.first[value[0]] = true
			}
		}
	}
	if len(out.secrets) == 0 {
		return nil
	}
	slices.SortStableFunc(out.secrets, func(a, b Secret) int { return cmp.Compare(len(b.Value), len(a.Value)) })
	return out
}

// Text returns a text without the secrets.
func (m *Mask) Text(text string) string {
	if m == nil || !slices.ContainsFunc(m.secrets, func(s Secret) bool { return strings.Contains(text, s.Value) }) {
		return text
	}
	out, _ := m.maskText(text, true)
	return out
}

// Placed returns a placeholder of the mask that is in a new text and was not in the former one: its
// author has read it there, and means the secret. It is empty without one.
func (m *Mask) Placed(before []byte, text string) string {
	if m == nil {
		return ""
	}
	for _, s := range m.secrets {
		if strings.Contains(text, s.Name) && !bytes.Contains(before, []byte(s.Name)) {
			return s.Name
		}
	}
	return ""
}

// maskText masks a text. Where more may follow, what could be the beginning of a secret at its end
// is held back.
func (m *Mask) maskText(text string, last bool) (out, held string) {
	var b strings.Builder
	from := 0
next:
	for i := 0; i < len(text); i++ {
		if !m.first[text[i]] {
			continue
		}
		for _, s := range m.secrets {
			switch rest := text[i:]; {
			case strings.HasPrefix(rest, s.Value):
				b.WriteString(text[from:i] + s.Name)
				i += len(s.Value) - 1
				from = i + 1
				continue next
			case !last && len(rest) < len(s.Value) && strings.HasPrefix(s.Value, rest):
				b.WriteString(text[from:i])
				return b.String(), rest
			}
		}
	}
	b.WriteString(text[from:])
	return b.String(), ""
}

// maskSentence masks what a sentence names.
func (m *Mask) maskSentence(s regie.Sentence) regie.Sentence {
	if m == nil {
		return s
	}
	s.Args = slices.Clone(s.Args)
	for i := range s.Args {
		s.Args[i] = m.Text(s.Args[i])
	}
	s.About = slices.Clone(s.About)
	for i := range s.About {
		s.About[i] = m.maskSentence(s.About[i])
	}
	return s
}

// maskPreview masks what a person is shown before a call: it is stored.
func (m *Mask) maskPreview(p regie.Preview) regie.Preview {
	if m == nil {
		return p
	}
	p.Sentence, p.Diff = m.maskSentence(p.Sentence), m.Text(p.Diff)
	p.Warnings = slices.Clone(p.Warnings)
	for i := range p.Warnings {
		p.Warnings[i] = m.maskSentence(p.Warnings[i])
	}
	return p
}

// maskError masks what an error says; what kind of error it is stays.
func (m *Mask) maskError(err error) error {
	if m == nil || err == nil {
		return err
	}
	if text := m.Text(err.Error()); text != err.Error() {
		return maskedError{err, text}
	}
	return err
}

// maskedError is an error in other words.
type maskedError struct {
	error
	text string
}

// Error implements error.
func (e maskedError) Error() string { return e.text }

// Unwrap returns the error behind the masked text.
func (e maskedError) Unwrap() error { return e.error }

// maskCallError masks what callError takes from elsewhere than an error's text.
func (m *Mask) maskCallError(p *regie.CallError) *regie.CallError {
	if m != nil && p != nil {
		p.Message, p.Param, p.Hint = m.Text(p.Message), m.Text(p.Param), m.Text(p.Hint)
	}
	return p
}

// maskInvocation returns an invocation with masked output and sentences, and a function to call at
// the end of the output.
func (m *Mask) maskInvocation(inv *Invocation) (masked *Invocation, flush func()) {
	if m == nil || inv.Output == nil && inv.Say == nil {
		return inv, func() {}
	}
	out := *inv
	if inv.Say != nil {
		out.Say = func(said regie.Sentence) { inv.Say(m.maskSentence(said)) }
	}
	if inv.Output == nil {
		return &out, func() {}
	}
	var mu sync.Mutex
	held := ""
	put := func(text string, last bool) {
		mu.Lock()
		defer mu.Unlock()
		if text, held = m.maskText(held+text, last); text != "" {
			inv.Output(text)
		}
	}
	out.Output = func(text string) { put(text, false) }
	return &out, func() { put("", true) }
}
