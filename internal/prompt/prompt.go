// Package prompt turns stored messages into the turns that a model reads (spec 2.3, 6.1), in either
// dialect. It is pure: the same messages give the same turns, and the turns are legal by
// construction: every call has exactly one result, directly after it.
package prompt

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dialect"
	"github.com/regie-run/regie/internal/provider"
)

// Names turns a canonical tool name into the one that goes over the wire (decision 27).
type Names func(canonical string) string

// View is how a thread is shown to a model: the same stored turns in either dialect (decision 7).
// The turns of a thread are rendered by one View; another one gives other turns of the same
// meaning.
type View struct {
	// Names gives the names of the native dialect.
	Names Names
	// JSON, where it is set, has the thread rendered in that dialect.
	JSON *dialect.JSON
	// French says in French what Regie itself says to the model between messages and results.
	French bool
	// Media returns the bytes of an image, nil where they were erased. It is nil for a model that
	// takes no images.
	Media func(*regie.Attachment) []byte
}

// Turns renders a message. calls are the message's own, settled, or, for a system message, those
// with the results that it brings. A message that no model reads gives no turns. A batch that
// exceeds one turn of the dialect becomes several turns with their results in between: the results
// of the last come with the message that brings them, so the two messages are adjacent.
func (v View) Turns(m *regie.Message, calls []regie.Call) []provider.Turn {
	if m.ExcludeFromPrompt {
		return nil
	}
	switch {
	case m.System != nil:
		return v.systemTurns(m.System, shownCalls(calls))
	case m.AI != nil && v.JSON != nil:
		return v.jsonReply(m.AI, shownCalls(calls))
	case m.AI != nil:
		return v.nativeReply(m.AI, calls)
	case len(m.Rich) > 0:
		return []provider.Turn{openedBy(m.Opening, v.richTurn(m.Rich))}
	case m.Sender != regie.SenderAI:
		return []provider.Turn{openedBy(m.Opening, userTurn(m.Text))}
	case v.JSON != nil:
		return []provider.Turn{{Role: provider.RoleAssistant, Parts: []provider.Part{
			textPart(v.JSON.Encode(&dialect.Reply{PreText: nonEmptyText(m.Text)})),
		}}}
	default:
		return []provider.Turn{{Role: provider.RoleAssistant, Parts: []provider.Part{textPart(m.Text)}}}
	}
}

func textPart(s string) provider.Part { return provider.Part{Type: regie.PartText, Text: s} }

func userTurn(text string) provider.Turn {
	return provider.Turn{Role: provider.RoleUser, Parts: []provider.Part{{Type: regie.PartText, Text: text}}}
}

// richTurn renders a person's enriched message: its text, then the images that the model sees. The
// text names those that it does not see, too (decision 18).
func (v View) richTurn(rich []regie.Segment) provider.Turn {
	segments := slices.Clone(rich)
	var media []provider.Part
	for i := range segments {
		a := segments[i].Attachment
		if a == nil {
			continue
		}
		var data []byte
		if v.Media != nil && provider.IsImage(a.MediaType) {
			data = v.Media(a)
		}
		switch {
		case len(data) > 0:
			media = append(media, provider.Part{
				Type: regie.PartMedia, Media: &provider.Media{Type: a.MediaType, Blob: a.Blob, Data: data},
			})
		case v.French:
			segments[i] = regie.Segment{Text: a.Label() + " (dont tu ne peux pas voir le contenu)"}
		default:
			segments[i] = regie.Segment{Text: a.Label() + " (you cannot see its content)"}
		}
	}
	turn := userTurn(regie.LinearText(segments))
	turn.Parts = append(turn.Parts, media...)
	return turn
}

// maxBatch is how many calls one turn holds: OpenAI takes no more. Models that are allowed ten and
// make more than that are few, but their thread must stay legal.
const maxBatch = 128

// nativeReply returns a reply with its calls.
func (v View) nativeReply(reply *regie.AIReply, all []regie.Call) []provider.Turn {
	calls := shownCalls(all)
	turn := provider.Turn{Role: provider.RoleAssistant, Parts: make([]provider.Part, 0, len(reply.Parts))}
	var turns []provider.Turn
	next, held := 0, 0
	stays := isShown(all, calls)
	for _, part := range reply.Parts {
		if part.Type == regie.PartCall && !stays(part.CallID) {
			continue
		}
		out := provider.Part{Type: part.Type, Text: readableText(&part), Provider: part.Provider, Opaque: part.Opaque}
		if part.Type == regie.PartCall {
			for next < len(calls)-1 && calls[next].ID != part.CallID {
				next++
			}
			if held == maxBatch {
				turns = append(turns, turn, v.resultTurn(calls[next-held:next]))
				turn, held = provider.Turn{Role: provider.RoleAssistant}, 0
			}
			held++
			call := &calls[next]
			out.Call = &provider.Call{
				ID: call.ProviderCallID, Name: v.Names(call.Tool),
				Arguments: wireArguments(call.Arguments),
			}
		}
		turn.Parts = append(turn.Parts, out)
	}
	turns = append(turns, turn)
	if reply.PostText != "" { // what the person read or was to read has no other place here (decision 40)
		sayAfter(&turns[0], reply.PostText)
	}
	return turns
}

// sayAfter adds to a reply's text what it wanted to say once its actions succeeded.
func sayAfter(turn *provider.Turn, post string) {
	at := slices.IndexFunc(turn.Parts, func(p provider.Part) bool { return p.Type == regie.PartCall })
	if at < 0 {
		at = len(turn.Parts)
	}
	turn.Parts = slices.Insert(turn.Parts, at, textPart("\n\n[once all of it succeeds: "+post+"]"))
}

// readableText returns a part's text. Of a reply that could not be read the model sees what it
// wrote, shortened, without the mark for people.
func readableText(part *regie.Part) string {
	if part.Type == regie.PartText {
		if raw, ok := dialect.Unreadable(part.Text); ok {
			return nonEmptyText(shorten(raw, maxUnreadable))
		}
	}
	return part.Text
}

// maxUnreadable bounds what a model sees again of a reply that could not be read, in bytes.
const maxUnreadable = 8000

// nonEmptyText returns a text that no API refuses for being empty.
func nonEmptyText(s string) string {
	if strings.TrimSpace(s) == "" {
		return "(nothing)"
	}
	return s
}

// wireArguments keeps the history legal where a model wrote something that is no JSON object: the
// call was not run and its result says why, but no API takes its arguments back.
func wireArguments(arguments string) string {
	if !strings.HasPrefix(strings.TrimLeft(arguments, " \t\r\n"), "{") || !json.Valid([]byte(arguments)) {
		return "{}"
	}
	return arguments
}

func (v View) systemTurns(content *regie.SystemContent, calls []regie.Call) []provider.Turn {
	if !content.Type.InPrompt() {
		return nil
	}
	if content.Compaction != nil {
		return v.summaryTurn(content)
	}
	var turns []provider.Turn
	title := "[" + string(content.Type) + "]"
	switch {
	case len(content.CallIDs) == 0 || len(calls) == 0:
	case calls[0].Origin == regie.OriginUser || calls[0].Origin == regie.OriginAPI:
		// what a person attached or ran is never a tool's result (decision 46)
		return []provider.Turn{userTurn(jsonResults(title+" "+content.Summary, calls))}
	case v.JSON != nil:
		batch := v.splitBatch(calls)
		return []provider.Turn{userTurn(jsonResults(title+" "+content.Summary, calls[batch[len(batch)-1].from:]))}
	default:
		last := (len(calls) - 1) / maxBatch * maxBatch
		turns = append(turns, v.resultTurn(calls[last:]))
	}
	if content.Summary != "" {
		turns = append(turns, userTurn(title+" "+content.Summary))
	}
	return turns
}

func (v View) resultTurn(calls []regie.Call) provider.Turn {
	turn := provider.Turn{Role: provider.RoleTool, Results: make([]provider.Result, 0, len(calls))}
	for i := range calls {
		text, failed := v.resultText(&calls[i])
		turn.Results = append(turn.Results, provider.Result{
			CallID:  calls[i].ProviderCallID,
			Content: text, IsError: failed,
		})
	}
	return turn
}

// maxExecuted bounds edited arguments in a prompt, in bytes.
const maxExecuted = 4000

// shorten cuts on a rune's boundary.
func shorten(s string, most int) string {
	if len(s) <= most {
		return s
	}
	end := most
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "…"
}

// outcome is how a call came out (spec 4.3), as a model reads it. provider.WithoutDurations knows
// its first members.
type outcome struct {
	Command    int               `json:"command,omitzero"` // its place in a reply of the JSON dialect, from 1
	Name       string            `json:"name"`
	Success    bool              `json:"success"`
	DurationMS int64             `json:"duration_ms"`
	Status     string            `json:"status,omitempty"`
	Result     jsontext.Value    `json:"result,omitzero"`
	Error      *regie.CallError  `json:"error,omitempty"`
	Resolution *regie.Resolution `json:"resolution,omitempty"` // what a person found out (decision 5)
	// Executed are the arguments that ran, where a person changed them (decision 20).
	Executed jsontext.Value `json:"executed_params,omitzero"`
}

func newOutcome(name string, c *regie.Call) outcome {
	out := outcome{
		Name: name, Success: c.Error == nil || c.State == regie.CallSucceeded, DurationMS: c.DurationUS / 1000,
		Error: c.Error, Resolution: c.Resolution,
	}
	if len(c.Executed) > 0 {
		out.Executed = jsonValue(shorten(jsonSafe(string(c.Executed)), maxExecuted))
	}
	return out
}

// append writes the outcome as one line of JSON.
func (o *outcome) append(b []byte) []byte {
	data, err := jsonv2.Marshal(o, jsontext.AllowInvalidUTF8(true))
	if err != nil { // strings and numbers always encode
		data = []byte(`{"success":` + strconv.FormatBool(o.Success) + `}`)
	}
	return append(b, data...)
}

// resultText is what the model reads as a call's one result: its outcome. A result that is no JSON
// follows it as it is, because a model miscopies the lines of a file from an escaped text.
func (v View) resultText(c *regie.Call) (text string, failed bool) {
	out, below := newOutcome(v.Names(c.Tool), c), ""
	switch {
	case c.Origin == regie.OriginClient && c.Error == nil: // whether it succeeded its client knows
		return cmp.Or(c.Result, "(no output)"), false
	case c.Error != nil:
		out.Status = string(c.State)
	case isJSON(c.Result):
		out.Result = jsonValue(c.Result)
	case c.Result == "":
		below = "\n(no output)"
	default:
		below = "\n" + c.Result
	}
	return string(append(out.append(nil), below...)), !out.Success
}
