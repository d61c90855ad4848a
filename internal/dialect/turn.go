package dialect

import (
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
)

// maxRaw bounds what is kept of a reply that could not be read, in bytes.
const maxRaw = 256 << 10

// Turn is a provider's reply as it is stored and acted on: the canonical turn of decision 7.
type Turn struct {
	// Parts are the thinking as it came, the text, and a call for each command and each field that
	// is one; without ids, which the engine gives (decision 8). Of a reply that cannot be read they
	// are the thinking and a text that begins with InvalidFormat.
	Parts []provider.Part
	// Reply is the rest of the object's content; nil where it cannot be read.
	Reply *Reply
	// Verbatim is what the model wrote where the parts do not say it all.
	Verbatim string
	// Errors is what is wrong; nil where nothing is.
	Errors *FormatErrors
}

// Read turns a provider's reply into the canonical turn. Calls by the API's own way have no place
// here, because no tool was declared: they are a format error and never run.
func (j *JSON) Read(parts []provider.Part) Turn {
	var out Turn
	var raw strings.Builder
	called := ""
	for i := range parts {
		switch part := &parts[i]; part.Type {
		case regie.PartText:
			raw.WriteString(part.Text)
		case regie.PartThinking:
			out.Parts = append(out.Parts, *part)
		case regie.PartCall:
			called = part.Call.Name
		}
	}
	reply, around, errs := j.parse(raw.String())
	if called != "" {
		if errs == nil {
			errs = &FormatErrors{}
		}
		errs.add("", "commands inside the JSON object", "a tool call of "+quoted(called), "")
	}
	if errs != nil {
		out.Errors = errs
		out.Parts = append(out.Parts, provider.Part{Type: regie.PartText, Text: Fallback(raw.String())})
		return out
	}
	out.Reply = reply
	if around {
		out.Verbatim = raw.String()
	}
	out.Parts = append(out.Parts, provider.Part{Type: regie.PartText, Text: reply.PreText})
	for i := range reply.Calls {
		c := &reply.Calls[i]
		out.Parts = append(out.Parts, provider.Part{
			Type: regie.PartCall,
			Call: &provider.Call{Name: c.Tool, Arguments: c.Arguments},
		})
	}
	return out
}

// Fallback returns the text of an unreadable reply (spec 2.2): InvalidFormat and the model's
// output, shortened to a readable length.
func Fallback(raw string) string {
	return InvalidFormat + "\n" + clip(strings.TrimSpace(raw), maxRaw)
}

// Unreadable returns what the model wrote if text is a Fallback.
func Unreadable(text string) (raw string, ok bool) {
	return strings.CutPrefix(text, InvalidFormat+"\n")
}
