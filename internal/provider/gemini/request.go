package gemini

import (
	"encoding/json"
	"strconv"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/provider/wire"
)

// Options holds the request's settings besides its head.
type Options struct {
	// Thinking are the members of thinkingConfig; empty leaves all to the model.
	Thinking string
}

// Request is a request body that only grows: each turn is encoded once, and the tail is added for
// sending (decision 31). The model is part of the address, not of the body. One goroutine uses it.
//
// Opaque of a text or call part is its signature: {"thoughtSignature": …}. Thinking is not sent
// back: the API wants the signature only, on the part that had it.
type Request struct {
	wire.GrowingBody
	open  content           // what the last content is; it is not closed
	fresh bool              // the last content has no part yet
	names map[string]string // of the calls of the last model content, by id: a result must name its function
	signs bool              // the model checks signatures
	tools bool

	config      []byte // the generation config, still open
	temperature *float64

	server   *wire.Server
	path     string            // where the model's replies are asked for
	declared map[string]string // the names of the declared tools, by the names that the API takes
}

// content is a kind of content.
type content string

const (
	none      content = ""
	userText  content = "text"
	responses content = "responses" // results without text: the API misreads results next to text
	model     content = "model"
)

// maxName is how long a function's name may be.
const maxName = 64

// skipSignature is the API's value for a call of another model, without a signature to check.
const skipSignature = "skip_thought_signature_validator"

// filler fills a turn of the person that the API requires and the thread lacks.
const filler = "(go on)"

// NewRequest begins a request. It returns CodeNoModel and CodeBadRequest for a head that the API
// cannot take.
func NewRequest(head provider.Head, options Options) (*Request, error) {
	if err := wire.CheckHead(&head, "Gemini"); err != nil {
		return nil, err
	}
	r := &Request{names: map[string]string{}, signs: checksSignatures(head.Model), tools: len(head.Tools) > 0}
	r.Close = r.tail
	r.Add(func(b []byte) []byte { return appendHead(b, head) })
	r.temperature = head.Temperature
	r.config = strconv.AppendInt([]byte(`,"generationConfig":{"maxOutputTokens":`), int64(head.MaxOutput), 10)
	r.config = wire.AppendNumber(r.config, "topP", head.TopP)
	if options.Thinking != "" {
		r.config = append(append(append(r.config, `,"thinkingConfig":{`...), options.Thinking...), '}')
	}
	return r, nil
}

// appendHead writes the request up to the contents.
func appendHead(b []byte, head provider.Head) []byte {
	b = append(b, '{')
	if levels := wire.Levels(&head); len(levels) > 0 {
		b = wire.AppendList(append(b, `"systemInstruction":{"parts":`...), levels, func(b []byte, level string) []byte {
			return append(wire.AppendString(append(b, `{"text":`...), level), '}')
		})
		b = append(b, `},`...)
	}
	if len(head.Tools) > 0 {
		b = append(b, head.Encoded.Get(Name, func() []byte { return appendTools(nil, head.Tools) })...)
	}
	return append(b, `"contents":[`...)
}

func appendTools(b []byte, tools []provider.Tool) []byte {
	b = append(b, `"tools":[{"functionDeclarations":`...)
	b = wire.AppendList(b, tools, func(b []byte, t provider.Tool) []byte {
		b = wire.AppendString(append(b, `{"name":`...), WireName(t.Name))
		description := t.Description
		if wire.Blank(description) { // the API wants one
			description = t.Name
		}
		b = wire.AppendString(append(b, `,"description":`...), description)
		return append(append(append(b, `,"parametersJsonSchema":`...), plainSchema(t.Parameters)...), '}')
	})
	return append(b, `}],`...)
}

// WireName is a function's name as the API takes it, which begins with a letter or an underscore.
// The reader of replies maps a name back by the tools that it declared.
func WireName(name string) string {
	if name != "" && (name[0] == '_' || name[0]|0x20 >= 'a' && name[0]|0x20 <= 'z') {
		return name
	}
	name = "_" + name
	return name[:min(len(name), maxName)]
}

// Append implements provider.Conversation.
func (r *Request) Append(turns ...provider.Turn) {
	for i := range turns {
		turn := &turns[i]
		r.Add(func(b []byte) []byte {
			switch turn.Role {
			case provider.RoleAssistant:
				return r.assistant(b, turn)
			case provider.RoleTool:
				b = r.speak(b, responses)
				for j := range turn.Results {
					b = r.result(b, &turn.Results[j])
				}
				return b
			default:
				b = r.text(r.speak(b, userText), provider.JoinText(turn.Parts), "")
				for _, image := range provider.Images(turn.Parts) {
					b = wire.AppendString(r.part(b, `{"inlineData":{"mimeType":`), image.Type)
					b = append(r.AppendImage(b, `,"data":"`, image), `"}}`...)
				}
				return b
			}
		})
	}
}

// speak opens a content, or continues one of the same kind.
func (r *Request) speak(b []byte, as content) []byte {
	if r.open == as {
		return b
	}
	if r.open != none {
		b = append(b, `]},`...)
	}
	r.open, r.fresh = as, true
	role := "user"
	if as == model {
		role = "model"
	}
	return append(append(append(b, `{"role":"`...), role...), `","parts":[`...)
}

// part begins a part.
func (r *Request) part(b []byte, head string) []byte {
	if !r.fresh {
		b = append(b, ',')
	}
	r.fresh = false
	return append(b, head...)
}

// sign ends a part, with its signature if it has one.
func sign(b []byte, signature string) []byte {
	if signature != "" {
		b = wire.AppendString(append(b, `,"thoughtSignature":`...), signature)
	}
	return append(b, '}')
}

func (r *Request) text(b []byte, text, signature string) []byte {
	if text == "" && signature == "" { // the API takes a part without anything for none
		text = "(nothing)"
	}
	return sign(wire.AppendString(r.part(b, `{"text":`), text), signature)
}

func (r *Request) result(b []byte, result *provider.Result) []byte {
	b = wire.AppendString(r.part(b, `{"functionResponse":{"id":`), result.CallID)
	b = wire.AppendString(append(b, `,"name":`...), r.names[result.CallID])
	if result.IsError {
		b = append(b, `,"response":{"error":`...)
	} else {
		b = append(b, `,"response":{"output":`...)
	}
	return append(wire.AppendString(b, result.Content), `}}}`...)
}

// assistant writes a model's own turn. It is never first and never follows another one.
func (r *Request) assistant(b []byte, turn *provider.Turn) []byte {
	if r.open == none || r.open == model {
		b = r.text(r.speak(b, userText), filler, "")
	}
	b = r.speak(b, model)
	called := false
	clear(r.names)
	for i := range turn.Parts {
		part := &turn.Parts[i]
		signature := signatureOf(part)
		switch {
		case part.Type == regie.PartText && (part.Text != "" || signature != ""):
			b = r.text(b, part.Text, signature)
		case part.Type == regie.PartCall:
			if signature == "" && !called && r.signs { // of parallel calls only the first has one
				signature = skipSignature
			}
			called = true
			b = r.call(b, part.Call, signature)
		}
	}
	if r.fresh {
		b = r.text(b, "", "")
	}
	return b
}

// signed is the vendor's data of a part.
type signed struct {
	ThoughtSignature string `json:"thoughtSignature"`
}

func signatureOf(part *provider.Part) string {
	var with signed
	if part.Provider != Name || json.Unmarshal(part.Opaque, &with) != nil {
		return ""
	}
	return with.ThoughtSignature
}

func (r *Request) call(b []byte, call *provider.Call, signature string) []byte {
	name := WireName(call.Name)
	r.names[call.ID] = name
	b = wire.AppendString(r.part(b, `{"functionCall":{"id":`), call.ID)
	b = wire.AppendString(append(b, `,"name":`...), name)
	b = append(append(b, `,"args":`...), provider.Object(call.Arguments)...)
	return sign(append(b, '}'), signature)
}

// tail closes the last content and the request. It forbids calls behind the contents, so the bytes
// before stay the same.
func (r *Request) tail() []byte {
	var b []byte
	if said := r.Tail.Guidance; said != "" {
		switch r.open {
		case userText:
			b = append(b, ',')
		case none:
			b = append(b, `{"role":"user","parts":[`...)
		default:
			b = append(b, `]},{"role":"user","parts":[`...)
		}
		b = append(wire.AppendString(append(b, `{"text":`...), said), '}')
	}
	if r.open != none || len(b) > 0 {
		b = append(b, `]}`...)
	}
	b = append(b, ']')
	if r.Tail.Withheld && r.tools {
		b = append(b, `,"toolConfig":{"functionCallingConfig":{"mode":"NONE"}}`...)
	}
	tail := r.Tail
	if r.signs { // from generation 3 on the vendor advises against any temperature but its own
		tail.Temperature = nil
	}
	return append(wire.AppendTemperature(append(b, r.config...), r.temperature, tail, 2), `}}`...)
}
