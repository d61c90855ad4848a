package prompt

import (
	"encoding/json"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dialect"
	"github.com/regie-run/regie/internal/provider"
)

// segment is a piece of a batch that one JSON reply can propose: a native reply may mix what this
// dialect keeps apart (decision 7), and is shown as if the model had taken one step after the
// other.
type segment struct {
	from  int // its first call
	reply dialect.Reply
	// told is a call that the dialect cannot express; the text describes it.
	told *regie.Call
}

// splitBatch cuts a batch, in its order. A batch has at least one segment.
func (v View) splitBatch(calls []regie.Call) []segment {
	out := []segment{{}}
	for i := range calls {
		stored := &calls[i]
		call, sayable := v.toDialect(stored)
		last := &out[len(out)-1]
		if i > last.from && (!sayable || !canJoin(last, &call)) {
			out = append(out, segment{from: i})
			last = &out[len(out)-1]
		}
		if !sayable {
			last.told = stored
			continue
		}
		last.reply.Calls = append(last.reply.Calls, call)
		if call.Role == "" && call.Kind == regie.KindAction && stored.Ask {
			last.reply.ValidationRequest = true
		}
	}
	return out
}

// canJoin reports whether a call can stand in a reply behind those that it has: a plan is the first
// of its reply, commands follow commands of their kind or a plan, a question and the end follow
// nothing but a plan.
func canJoin(s *segment, call *dialect.Call) bool {
	if s.told != nil || call.Role == regie.RolePlan {
		return false
	}
	last := &s.reply.Calls[len(s.reply.Calls)-1]
	return last.Role == regie.RolePlan || last.Role == "" && call.Role == "" && last.Kind == call.Kind
}

// toDialect returns a stored call in this dialect.
func (v View) toDialect(stored *regie.Call) (dialect.Call, bool) {
	call := dialect.Call{Tool: jsonSafe(stored.Tool), Kind: stored.Kind}
	if d, ok := v.JSON.Find(stored.Tool); ok { // a tool may have changed its kind since; its list is that of now
		call.Tool, call.Kind, call.Role = d.Name, d.Kind, d.Role
	}
	call.Arguments = dialect.Params(stored.Arguments, stored.Ask && stored.Kind == regie.KindAction)
	sayable := v.JSON.Sayable(&call)
	return call, sayable
}

// jsonReply returns a reply as the model would have written it here.
func (v View) jsonReply(reply *regie.AIReply, calls []regie.Call) []provider.Turn {
	turn := provider.Turn{Role: provider.RoleAssistant}
	for i := range reply.Parts {
		if part := &reply.Parts[i]; part.Type == regie.PartThinking {
			turn.Parts = append(turn.Parts, provider.Part{
				Type: part.Type, Text: part.Text,
				Provider: part.Provider, Opaque: part.Opaque,
			})
		}
	}
	said := jsonSafe(reply.Text())
	if raw, ok := dialect.Unreadable(said); ok && len(calls) == 0 {
		turn.Parts = append(turn.Parts, textPart(nonEmptyText(shorten(raw, maxUnreadable))))
		return []provider.Turn{turn}
	}
	var turns []provider.Turn
	batch := v.splitBatch(calls)
	for i := range batch {
		s := &batch[i]
		if i > 0 {
			turns = append(turns, turn, userTurn(jsonResults("[RESULTS]", calls[batch[i-1].from:s.from])))
			turn, said = provider.Turn{Role: provider.RoleAssistant}, "(I go on.)"
		}
		s.reply.PreText = nonEmptyText(withSummary(said, s))
		if i == len(batch)-1 && hasActions(s) {
			s.reply.PostText, s.reply.KeepControl = jsonSafe(reply.PostText), reply.KeepControl
			if strings.TrimSpace(s.reply.PostText) == "" {
				s.reply.PostText = ""
			}
		}
		turn.Parts = append(turn.Parts, textPart(v.JSON.Encode(&s.reply)))
	}
	return append(turns, turn)
}

func hasActions(s *segment) bool {
	for i := range s.reply.Calls {
		if c := &s.reply.Calls[i]; c.Role == "" && c.Kind == regie.KindAction {
			return true
		}
	}
	return false
}

// withSummary adds to the text what only a call says: what completes the run, or a call that the
// dialect has no words for.
func withSummary(said string, s *segment) string {
	extra := ""
	if s.told != nil {
		extra = "I called " + nonEmptyText(jsonSafe(s.told.Tool)) + " with " +
			nonEmptyText(shorten(jsonSafe(s.told.Arguments), maxUnreadable))
	}
	for i := range s.reply.Calls {
		if c := &s.reply.Calls[i]; c.Role == regie.RoleComplete {
			var arguments struct {
				Summary string `json:"summary"`
			}
			if json.Unmarshal([]byte(c.Arguments), &arguments) == nil &&
				!strings.Contains(said, strings.TrimSuffix(arguments.Summary, "…")) {
				extra = arguments.Summary
			}
		}
	}
	switch {
	case extra == "":
		return said
	case strings.TrimSpace(said) == "":
		return extra
	default:
		return said + "\n\n" + extra
	}
}

// jsonResults writes results below a title, one JSON object a line, so that no result can be taken
// for another or for the title of one.
func jsonResults(title string, calls []regie.Call) string {
	b := []byte(strings.TrimSpace(title))
	for i := range calls {
		c := &calls[i]
		line := newOutcome(jsonSafe(c.Tool), c)
		line.Command, line.Status = i+1, string(c.Status())
		if c.Error == nil {
			line.Result = jsonValue(jsonSafe(c.Result))
		}
		b = line.append(append(b, '\n'))
	}
	return string(b)
}

// jsonValue shows a result that is an object or a list as that, and everything else as text.
func jsonValue(result string) jsontext.Value {
	if result == "" {
		result = "(no output)"
	}
	if isJSON(result) {
		value := jsontext.Value(result)
		_ = value.Compact() // it is valid
		return value
	}
	quoted, err := jsontext.AppendQuote(nil, result)
	if err != nil { // valid text always encodes
		return jsontext.Value(`""`)
	}
	return quoted
}

// isJSON reports whether a result is an object or a list.
func isJSON(result string) bool {
	return result != "" && (result[0] == '{' || result[0] == '[') && jsontext.Value(result).IsValid()
}

// jsonSafe returns text that every JSON holds.
func jsonSafe(s string) string {
	return strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", "\uFFFD"), "\uFFFD")
}
