package replay

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
)

const (
	firstLine = "regie-recording 2"
	// maxRecording bounds a recording, in bytes: it is read as a whole.
	maxRecording = 64 << 20
)

// speaker is who is asked, and how it replies.
type speaker struct {
	provider, model string
	dialect         regie.Dialect
}

// call is one model call of a recording.
type call struct {
	speaker
	number   int
	base     int  // the call whose thread this one goes on with; 0 = none
	again    bool // without that call's answer
	settings []string
	texts    [4]string // the names of what textKinds lists; empty ones are left out
	asked    []provider.Turn
	withheld bool

	reply    *provider.Reply
	failed   *provider.Error
	streamed *[]provider.Delta // where it is not what the reply's parts say
}

// textKinds are the shared texts of a call, in their order.
var textKinds = [4]string{"level1", "level2", "tools", "guidance"}

// varying is what a text holds that is another one in each run.
var varying = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:?\d\d)?`)

// steady is a text without what changes from run to run.
func steady(text string) string {
	return varying.ReplaceAllStringFunc(text, func(found string) string {
		if strings.Count(found, "-") == 4 && len(found) == 36 {
			return "{id}"
		}
		return "{time}"
	})
}

// nameOf names a shared text.
func nameOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:6])
}

// toolsText is the declarations as they are read: one after the other, the parameters indented.
func toolsText(tools []provider.Tool) string {
	var b strings.Builder
	for i := range tools {
		b.WriteString(strings.TrimSuffix(tools[i].Name+": "+tools[i].Description, ": ") + "\n")
		var parameters any
		if json.Unmarshal(tools[i].Parameters, &parameters) == nil {
			indented, _ := json.MarshalIndent(parameters, "  ", "  ") // what was read can be written
			fmt.Fprintf(&b, "  %s\n", indented)
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// settingsOf is how a model is asked, word by word.
func settingsOf(head *provider.Head) []string {
	out := []string{fmt.Sprintf("max_output=%d", head.MaxOutput)}
	if head.Temperature != nil {
		out = append(out, fmt.Sprintf("temperature=%g", *head.Temperature))
	}
	for _, word := range [][2]string{{"reasoning_effort", head.ReasoningEffort}, {"service_tier", head.ServiceTier}} {
		if word[1] != "" {
			out = append(out, word[0]+"="+word[1])
		}
	}
	if !head.ParallelCalls {
		out = append(out, "one_call")
	}
	return out
}

// quoted is a word as it stands in a line: as it is, or quoted if it would not be one word.
func quoted(word string) string {
	plain := word != ""
	for _, r := range word {
		plain = plain && r > ' ' && r != '"' && r != utf8.RuneError && unicode.IsPrint(r)
	}
	if plain {
		return word
	}
	return strconv.Quote(word)
}

// writer writes a recording. Its zero value is empty.
type writer struct{ out strings.Builder }

// String is what was written.
func (w *writer) String() string { return w.out.String() }

func (w *writer) line(words ...string) {
	w.out.WriteString(strings.Join(words, " "))
	w.out.WriteByte('\n')
}

// text writes the lines of a text below the line that says what it is.
func (w *writer) text(text string) {
	for line := range strings.SplitSeq(text, "\n") {
		switch {
		case line == "":
			w.line("  |")
		case printable(line):
			w.line("  |", line)
		default:
			w.line("  " + strconv.Quote(line))
		}
	}
}

// printable reports whether a person sees in a line all that it holds; a tab is seen.
func printable(line string) bool {
	for _, r := range line {
		if r == utf8.RuneError || r != '\t' && !unicode.IsPrint(r) {
			return false
		}
	}
	return !strings.HasSuffix(line, " ") && !strings.HasSuffix(line, "\t") // which an editor takes away
}

// parts writes the parts of a turn.
func (w *writer) parts(parts []provider.Part, opaque bool) {
	for i := range parts {
		part := &parts[i]
		if part.Type == regie.PartCall && part.Call != nil {
			w.line("call", quoted(part.Call.Name))
			w.text(part.Call.Arguments)
		} else {
			w.line(quoted(string(part.Type)))
			w.text(part.Text)
		}
		if opaque && (part.Provider != "" || len(part.Opaque) > 0) {
			w.line("opaque", quoted(part.Provider))
			w.text(string(part.Opaque))
		}
	}
}

// turn writes a turn that was asked, which is steady already.
func (w *writer) turn(turn *provider.Turn) {
	w.line("asked", quoted(string(turn.Role)))
	w.parts(turn.Parts, false)
	for i := range turn.Results {
		result := &turn.Results[i]
		words := []string{"result", quoted(result.CallID)}
		if result.IsError {
			words = append(words, "failed")
		}
		w.line(words...)
		w.text(result.Content)
	}
}

func (w *writer) deltas(deltas []provider.Delta) {
	if len(deltas) == 0 {
		w.line("streamed", "nothing")
	}
	for _, d := range deltas {
		kind, text := regie.PartText, d.Text
		if d.Thinking != "" {
			kind, text = regie.PartThinking, d.Thinking
		}
		w.line("streamed", string(kind))
		w.text(text)
	}
}

func (w *writer) usage(u regie.Usage) {
	words := []string{"usage"}
	for _, count := range []struct {
		name   string
		tokens int64
	}{
		{"input", u.Input},
		{"output", u.Output},
		{"cache_creation", u.CacheCreation},
		{"cache_read", u.CacheRead},
		{"reasoning", u.Reasoning},
	} {
		if count.tokens != 0 {
			words = append(words, count.name+"="+strconv.FormatInt(count.tokens, 10))
		}
	}
	if u.Estimated {
		words = append(words, "estimated")
	}
	w.line(words...)
}

// call writes a model call; first is who the recording's first line names.
func (w *writer) call(c *call, first speaker) {
	words := []string{"call", strconv.Itoa(c.number)}
	switch {
	case c.base > 0 && c.again:
		words = append(words, "again", strconv.Itoa(c.base))
	case c.base > 0:
		words = append(words, "after", strconv.Itoa(c.base))
	}
	w.line(words...)
	if c.speaker != first {
		w.line("by", quoted(c.provider), quoted(c.model), quoted(string(c.dialect)))
	}
	words = []string{"settings"}
	for _, word := range c.settings {
		words = append(words, quoted(word))
	}
	w.line(words...)
	for i, name := range c.texts {
		if name != "" {
			w.line(textKinds[i], name)
		}
	}
	for i := range c.asked {
		w.turn(&c.asked[i])
	}
	if c.withheld {
		w.line("withheld")
	}
	if c.failed != nil {
		w.failure(c.failed)
	} else {
		w.reply(c.reply)
	}
	if c.streamed != nil {
		w.deltas(*c.streamed)
	}
	w.line("end")
	w.line()
}

func (w *writer) failure(e *provider.Error) {
	words := []string{"failed", quoted(string(e.Code))}
	if e.Retryable {
		words = append(words, "retryable")
	}
	if e.Offline {
		words = append(words, "offline")
	}
	if e.Status != 0 {
		words = append(words, "status="+strconv.Itoa(e.Status))
	}
	w.line(words...)
	w.line("message")
	w.text(e.Message)
	if e.Partial != "" {
		w.line("partial")
		w.text(e.Partial)
	}
	w.usage(e.Usage)
}

func (w *writer) reply(r *provider.Reply) {
	words := []string{"answered", quoted(r.StopReason)}
	if r.Cut {
		words = append(words, "cut")
	}
	if r.HeldBack {
		words = append(words, "held_back")
	}
	w.line(words...)
	w.parts(r.Parts, true)
	for _, source := range r.Sources {
		w.line("source", quoted(source.URL))
		w.text(source.Title)
	}
	w.usage(r.Usage)
}

// merged appends a delta to a stream in merged form.
func merged(stream []provider.Delta, d provider.Delta) []provider.Delta {
	for _, piece := range []provider.Delta{{Thinking: d.Thinking}, {Text: d.Text}} {
		if piece == (provider.Delta{}) {
			continue
		}
		last := len(stream) - 1
		if last >= 0 && (stream[last].Text != "") == (piece.Text != "") {
			stream[last].Text += piece.Text
			stream[last].Thinking += piece.Thinking
			continue
		}
		stream = append(stream, piece)
	}
	return stream
}

// told is the stream that a reply's parts say, in merged form.
func told(reply *provider.Reply) (stream []provider.Delta) {
	if reply == nil {
		return nil
	}
	for i := range reply.Parts {
		switch part := &reply.Parts[i]; part.Type {
		case regie.PartText:
			stream = merged(stream, provider.Delta{Text: part.Text})
		case regie.PartThinking:
			stream = merged(stream, provider.Delta{Thinking: part.Text})
		}
	}
	return stream
}
