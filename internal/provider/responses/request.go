package responses

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/provider/wire"
)

// Name is the provider's name on parts with data of this API, which are replayed only here.
const Name = "responses"

// Options holds the request's settings besides its head.
type Options struct {
	// Reasons says that the model reasons before it answers: the request asks for its encrypted
	// reasoning and sends it back. Such a model refuses a temperature; others refuse to return
	// reasoning.
	Reasons bool
}

// Request is a request body that grows item by item, each encoded once; only its end is rewritten
// (decision 31). One goroutine uses it.
//
// Opaque of a thinking part is its reasoning item and model; of a text part, the phase of its
// message if it has one.
type Request struct {
	wire.GrowingBody
	server   *wire.Server
	model    string
	options  Options
	items    int
	turns    int
	tools    bool
	seen     map[string]bool // ids of reasoning items: the API takes each once
	cacheKey string

	temperature *float64
}

// minOutput is the least that the API takes for max_output_tokens.
const minOutput = 16

// NewRequest begins a request. It returns CodeNoModel and CodeBadRequest for a head that the API
// cannot take.
func NewRequest(head provider.Head, options Options) (*Request, error) {
	if err := wire.CheckHead(&head, "OpenAI"); err != nil {
		return nil, err
	}
	r := &Request{model: head.Model, options: options, tools: len(head.Tools) > 0, seen: map[string]bool{}}
	r.temperature = head.Temperature
	r.Close = r.tail
	r.Add(func(b []byte) []byte { return r.appendHead(b, head) })
	if !wire.Blank(head.Level2) { // behind the instructions, which it leaves cached when it changes
		r.add(func(b []byte) []byte { return appendMessage(b, "developer", head.Level2, "") })
	}
	r.cacheKey = cacheKey(head.Model, head.Level1)
	return r, nil
}

// appendHead writes the request up to the input.
func (r *Request) appendHead(b []byte, head provider.Head) []byte {
	b = wire.AppendString(append(b, `{"model":`...), head.Model)
	b = append(b, `,"stream":true,"store":false,"max_output_tokens":`...)
	b = strconv.AppendInt(b, int64(max(head.MaxOutput, minOutput)), 10)
	if r.options.Reasons {
		if effort := regie.EffortWithin(head.ReasoningEffort, "none", "xhigh"); effort != "" {
			b = append(wire.AppendString(append(b, `,"reasoning":{"effort":`...), effort), '}')
		}
		b = append(b, `,"include":["reasoning.encrypted_content"]`...)
	} else {
		b = wire.AppendNumber(b, "top_p", head.TopP)
	}
	if head.ServiceTier != "" {
		b = wire.AppendString(append(b, `,"service_tier":`...), head.ServiceTier)
	}
	if r.tools {
		b = append(b, head.Encoded.Get(Name, func() []byte { return encodeTools(head.Tools) })...)
		b = append(b, `,"parallel_tool_calls":`...)
		b = strconv.AppendBool(b, head.ParallelCalls)
	}
	if !wire.Blank(head.Level1) {
		b = wire.AppendString(append(b, `,"instructions":`...), head.Level1)
	}
	return append(b, `,"input":[`...)
}

// encodeTools writes the declarations of tools. A strict schema is another language than that of
// tools; they check their arguments themselves.
func encodeTools(tools []provider.Tool) []byte {
	return wire.AppendTools([]byte(`,"tools":`), tools, `{"type":"function","name":`, `,"parameters":`,
		`,"strict":false}`, refusedAtTop...)
}

// refusedAtTop are keywords that the API refuses at the top of a schema.
var refusedAtTop = []string{"oneOf", "anyOf", "allOf", "enum", "not"}

// cacheKey returns the key of requests with a common prefix: the vendor routes equal keys to the
// machine with that cache. It is the same for a session and differs for most others, because one
// machine takes only so many requests a minute.
func cacheKey(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:16])
}

// add adds an item of the input.
func (r *Request) add(item func(b []byte) []byte) {
	first := r.items == 0
	r.items++
	r.Add(func(b []byte) []byte {
		if !first {
			b = append(b, ',')
		}
		return item(b)
	})
}

// Append implements provider.Conversation.
func (r *Request) Append(turns ...provider.Turn) {
	for i := range turns {
		turn := &turns[i]
		if r.turns++; r.turns == 1 {
			r.cacheKey = cacheKey(r.cacheKey, provider.JoinText(turn.Parts))
		}
		switch turn.Role {
		case provider.RoleAssistant:
			r.assistant(turn)
		case provider.RoleTool:
			for j := range turn.Results {
				r.add(func(b []byte) []byte { return appendResult(b, &turn.Results[j]) })
			}
		default:
			r.add(func(b []byte) []byte { return r.appendUser(b, turn) })
		}
	}
}

// appendUser writes a person's turn: text, or a list of text and images.
func (r *Request) appendUser(b []byte, turn *provider.Turn) []byte {
	text, images := provider.JoinText(turn.Parts), provider.Images(turn.Parts)
	if len(images) == 0 {
		return appendMessage(b, "user", text, "")
	}
	b = append(b, `{"type":"message","role":"user","content":[{"type":"input_text","text":`...)
	b = append(wire.AppendString(b, text), '}')
	for _, image := range images {
		b = append(r.AppendDataURL(append(b, `,{"type":"input_image","image_url":`...), image), '}')
	}
	return append(b, `]}`...)
}

func appendMessage(b []byte, role, text, phase string) []byte {
	b = append(append(append(b, `{"type":"message","role":"`...), role...), `","content":`...)
	b = wire.AppendString(b, text)
	if phase != "" {
		b = wire.AppendString(append(b, `,"phase":`...), phase)
	}
	return append(b, '}')
}

func appendResult(b []byte, result *provider.Result) []byte {
	b = wire.AppendString(append(b, `{"type":"function_call_output","call_id":`...), wire.ShortID(result.CallID, maxID))
	b = wire.AppendString(append(b, `,"output":`...), result.Content)
	return append(b, '}')
}

// assistant writes a model's own turn in order: each reasoning in front of the output that it led
// to (spec 12.6, trap 5). Reasoning that led to no output is left out.
func (r *Request) assistant(turn *provider.Turn) {
	var before []*reasoning
	lead := func() {
		for _, item := range before {
			if !r.seen[item.ID] {
				r.seen[item.ID] = true
				r.add(item.append)
			}
		}
		before = nil
	}
	for i := range turn.Parts {
		switch part := &turn.Parts[i]; {
		case part.Type == regie.PartThinking:
			if item := r.own(part); item != nil {
				before = append(before, item)
			}
		case part.Type == regie.PartText && !wire.Blank(part.Text):
			lead()
			r.add(func(b []byte) []byte { return appendMessage(b, "assistant", part.Text, phaseOf(part)) })
		case part.Type == regie.PartCall:
			lead()
			r.add(func(b []byte) []byte { return appendCall(b, part.Call) })
		}
	}
}

// appendCall writes a call without the id of its item: with that the API would look for the
// reasoning that the item had, which may be another model's and not be there.
func appendCall(b []byte, call *provider.Call) []byte {
	b = wire.AppendString(append(b, `{"type":"function_call","call_id":`...), wire.ShortID(call.ID, maxID))
	b = wire.AppendString(append(b, `,"name":`...), call.Name)
	b = wire.AppendString(append(b, `,"arguments":`...), string(provider.Object(call.Arguments)))
	return append(b, '}')
}

// reasoning is the vendor's data of a thinking part.
type reasoning struct {
	ID        string   `json:"id"`
	Encrypted string   `json:"encrypted_content"`
	Summary   []string `json:"summary,omitempty"`
	Model     string   `json:"model"`
}

// own returns the reasoning item of a part, if this model made it. Another one may refuse the whole
// request for it.
func (r *Request) own(part *provider.Part) *reasoning {
	item := &reasoning{}
	if !r.options.Reasons || part.Provider != Name || json.Unmarshal(part.Opaque, item) != nil {
		return nil
	}
	if item.ID == "" || item.Encrypted == "" || item.Model != r.model {
		return nil
	}
	return item
}

func (item *reasoning) append(b []byte) []byte {
	b = wire.AppendString(append(b, `{"type":"reasoning","id":`...), item.ID)
	b = wire.AppendList(append(b, `,"summary":`...), item.Summary, func(b []byte, text string) []byte {
		return append(wire.AppendString(append(b, `{"type":"summary_text","text":`...), text), '}')
	})
	b = wire.AppendString(append(b, `,"encrypted_content":`...), item.Encrypted)
	return append(b, '}')
}

// phased is the vendor's data of a text part.
type phased struct {
	Phase string `json:"phase"`
}

// phaseOf returns the phase of a message, remark or answer, if the model gave one: newer models
// want it back.
func phaseOf(part *provider.Part) string {
	var with phased
	if part.Provider != Name || json.Unmarshal(part.Opaque, &with) != nil || !slices.Contains(phases, with.Phase) {
		return ""
	}
	return with.Phase
}

// phases are those of messages.
var phases = []string{"commentary", "final_answer"}

// maxID is how long an id of a call may be.
const maxID = 64

// tail closes the input and the request.
func (r *Request) tail() []byte {
	b := make([]byte, 0, len(r.Tail.Guidance)+128)
	if !wire.Blank(r.Tail.Guidance) {
		if r.items > 0 {
			b = append(b, ',')
		}
		b = appendMessage(b, "user", r.Tail.Guidance, "")
	}
	b = append(b, ']')
	if r.Tail.Withheld && r.tools {
		b = append(b, `,"tool_choice":"none"`...)
	}
	if !r.options.Reasons {
		b = wire.AppendTemperature(b, r.temperature, r.Tail, 2)
	}
	b = wire.AppendString(append(b, `,"prompt_cache_key":`...), r.cacheKey)
	return append(b, '}')
}
