package anthropic

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/provider/wire"
)

// Name is the provider's name in thinking parts: they are replayed only here.
const Name = "anthropic"

// Options holds the request's settings besides its head.
type Options struct {
	// Thinks says that the model thinks by default: the request does not ask for it, but sends its
	// thinking back.
	Thinks bool
	// Thinking is the mode in the request's thinking member: adaptive, disabled, or empty to leave
	// it out.
	Thinking string
	// Effort bounds the work on the whole reply: low, medium, high, xhigh or max; empty leaves it
	// to the vendor.
	Effort string
	// Untempered leaves the temperature out: the model refuses it.
	Untempered bool
}

// Request is a request body that grows turn by turn. It encodes each block once, and merges
// messages of one side by leaving the last one open (spec 6.3). Cache marks are inserted into the
// finished body and never stored (decision 31). One goroutine uses it.
//
// Opaque of a thinking part is {"signature": …}, or {"data": …} for a redacted block.
type Request struct {
	server   *wire.Server
	head     []byte // up to the first message
	messages []byte
	open     string // the role of the last message, with its content still open
	mark     int    // where a cache mark goes in messages: behind the last block's last member; 0 without one
	// the same for the last user message before the newest reply, the end of the previous request
	previous int
	blocks   int // how many blocks came since
	turns    int // how many turns there are
	// The turns that mark and previous are in.
	markTurn, previousTurn int
	levels                 [2]bool // which levels there are
	options                Options
	tools                  bool
	parallel               bool
	temperature, topP      *float64
	ends                   provider.Tail
	thought                bool // the last block is thinking
	digest                 wire.Digest
}

const cacheMark = `,"cache_control":{"type":"ephemeral"}`

// filler fills a turn that the API requires and the thread lacks.
const filler = "(go on)"

// NewRequest begins a request. It returns CodeNoModel and CodeBadRequest for a head that the API
// cannot take.
func NewRequest(head provider.Head, options Options) (*Request, error) {
	if err := wire.CheckHead(&head, "Anthropic"); err != nil {
		return nil, err
	}
	r := &Request{
		options: options, tools: len(head.Tools) > 0, parallel: head.ParallelCalls,
		temperature: head.Temperature, topP: head.TopP,
	}
	b := wire.AppendString([]byte(`{"model":`), head.Model)
	b = append(b, `,"stream":true,"max_tokens":`...)
	b = strconv.AppendInt(b, int64(head.MaxOutput), 10)
	if options.Thinking != "" {
		b = append(append(append(b, `,"thinking":{"type":"`...), options.Thinking...), `"}`...)
	}
	if options.Effort != "" {
		b = append(wire.AppendString(append(b, `,"output_config":{"effort":`...), options.Effort), '}')
	}
	if head.ServiceTier != "" {
		b = wire.AppendString(append(b, `,"service_tier":`...), head.ServiceTier)
	}
	if r.tools {
		b = append(b, head.Encoded.Get(Name, func() []byte { return encodeTools(head.Tools) })...)
	}
	b = r.appendSystem(b, head)
	b = append(b, `,"messages":[`...)
	r.head = b
	return r, nil
}

// encodeTools writes the declarations of tools: the same for all servers of this kind.
func encodeTools(tools []provider.Tool) []byte {
	return wire.AppendTools([]byte(`,"tools":`), tools, `{"name":`, `,"input_schema":`, "}", "oneOf", "anyOf", "allOf")
}

// appendSystem writes the levels as blocks, each with its mark (spec 6.3).
func (r *Request) appendSystem(b []byte, head provider.Head) []byte {
	var levels []string
	for i, level := range []string{head.Level1, head.Level2} {
		if r.levels[i] = !wire.Blank(level); r.levels[i] {
			levels = append(levels, level)
		}
	}
	if len(levels) == 0 {
		return b
	}
	return wire.AppendList(append(b, `,"system":`...), levels, func(b []byte, level string) []byte {
		b = wire.AppendString(append(b, `{"type":"text","text":`...), level)
		return append(append(b, cacheMark...), '}')
	})
}

// Append implements provider.Conversation.
func (r *Request) Append(turns ...provider.Turn) {
	for i := range turns {
		turn := &turns[i]
		switch turn.Role {
		case provider.RoleAssistant:
			r.assistant(turn)
		case provider.RoleTool:
			r.speak("user")
			for j := range turn.Results {
				r.result(&turn.Results[j])
			}
		default:
			r.speak("user")
			r.text(provider.JoinText(turn.Parts))
			for _, image := range provider.Images(turn.Parts) {
				r.image(image)
			}
		}
		r.turns++
	}
}

// speak opens a message of a role, or continues the open one.
func (r *Request) speak(role string) {
	if r.open == role {
		return
	}
	if r.open != "" {
		r.write(`]},`)
	}
	r.open = role
	r.write(`{"role":"` + role + `","content":[`)
}

// block begins a block; end closes it, and a mark can go there.
func (r *Request) block(head string) {
	if r.messages[len(r.messages)-1] != '[' {
		r.write(`,`)
	}
	r.write(head)
}

// write adds JSON as it is.
func (r *Request) write(text string) { r.messages = append(r.messages, text...) }

// quoted adds a JSON string.
func (r *Request) quoted(s string) {
	r.messages = wire.AppendString(r.messages, s)
}

func (r *Request) end() {
	r.mark, r.markTurn = len(r.messages), r.turns
	r.write(`}`)
	r.blocks++
	r.thought = false
}

func (r *Request) text(text string) {
	if wire.Blank(text) { // the API refuses a text without a character that can be seen
		text = "(nothing)"
	}
	r.block(`{"type":"text","text":`)
	r.quoted(text)
	r.end()
}

func (r *Request) image(image *provider.Media) {
	r.block(`{"type":"image","source":{"type":"base64","media_type":`)
	r.quoted(image.Type)
	r.messages = r.digest.AppendImage(r.messages, `,"data":"`, image)
	r.write(`"}`)
	r.end()
}

func (r *Request) result(result *provider.Result) {
	r.block(`{"type":"tool_result","tool_use_id":`)
	r.quoted(WireID(result.CallID))
	if !wire.Blank(result.Content) {
		r.write(`,"content":`)
		r.quoted(result.Content)
	}
	if result.IsError {
		r.write(`,"is_error":true`)
	}
	r.end()
}

// assistant writes a model's own turn, with its thinking in place. It is never first and never
// follows another one.
func (r *Request) assistant(turn *provider.Turn) {
	if r.open != "user" {
		r.speak("user")
		r.text(filler)
	}
	r.previous, r.previousTurn, r.blocks = r.mark, r.markTurn, 0
	r.speak("assistant")
	began, thinks := len(r.messages), false
	for i := range turn.Parts {
		switch part := &turn.Parts[i]; part.Type {
		case regie.PartThinking:
			// A turn with thinking begins with it; behind something else, and without any before,
			// it is not the API's.
			if thinks || len(r.messages) == began {
				thinks = r.think(part) || thinks
			}
		case regie.PartText:
			if !wire.Blank(part.Text) {
				r.text(part.Text)
			}
		case regie.PartCall:
			r.call(part.Call)
		default:
		}
	}
	if len(r.messages) == began || r.thought { // nor does one end in it
		r.text("(nothing)")
	}
}

// opaque is the vendor's data of a thinking part.
type opaque struct {
	Signature string `json:"signature,omitempty"`
	Data      string `json:"data,omitempty"`
}

// think replays an unchanged thinking block if thinking is on. It replays only blocks of this API,
// because no other API's signature is valid here.
func (r *Request) think(part *provider.Part) bool {
	var with opaque
	if !r.options.Thinks || part.Provider != Name ||
		json.Unmarshal(part.Opaque, &with) != nil {
		return false
	}
	switch {
	case with.Data != "":
		r.block(`{"type":"redacted_thinking","data":`)
		r.quoted(with.Data)
	case with.Signature != "":
		r.block(`{"type":"thinking","thinking":`)
		r.quoted(part.Text)
		r.write(`,"signature":`)
		r.quoted(with.Signature)
	default:
		return false
	}
	r.write(`}`) // a thinking block takes no mark
	r.blocks++
	r.thought = true
	return true
}

func (r *Request) call(call *provider.Call) {
	r.block(`{"type":"tool_use","id":`)
	r.quoted(WireID(call.ID))
	r.write(`,"name":`)
	r.quoted(call.Name)
	r.write(`,"input":`)
	r.messages = append(r.messages, provider.Object(call.Arguments)...)
	r.end()
}

// lookBack is how many blocks before a mark the API finds an older one within: it is about 20
// (decision 50).
const lookBack = 15

// pieces returns the whole request: the head before the messages, the messages up to the first
// mark, and the rest. The levels and the last block get a mark. After more than 15 new blocks the
// last block of the previous request gets one too, so that its cache is still found (decision 50).
func (r *Request) pieces() (head, grown []byte, rest [][]byte) {
	grown = r.messages
	before, last := r.marked()
	if last {
		grown, rest = r.messages[:r.mark], [][]byte{[]byte(cacheMark), r.messages[r.mark:]}
	}
	if before {
		grown, rest = r.messages[:r.previous], slices.Insert(rest, 0, []byte(cacheMark), r.messages[r.previous:r.mark])
	}
	return r.head, grown, append(rest, r.tail())
}

// marked reports which blocks of the messages are marked: the last one of the request before, and
// the last one.
func (r *Request) marked() (before, last bool) {
	last = r.mark > 0
	return last && r.blocks > lookBack && r.previous > 0, last
}

// Marks implements provider.Marker.
func (r *Request) Marks() provider.Marks {
	out := provider.Marks{Level1: r.levels[0], Level2: r.levels[1]}
	before, last := r.marked()
	if before {
		out.Turns = append(out.Turns, r.previousTurn)
	}
	if last {
		out.Turns = append(out.Turns, r.markTurn)
	}
	return out
}

// EndWith implements provider.Conversation. The guidance follows the last mark: it changes, so it
// must not enter the cache.
func (r *Request) EndWith(tail provider.Tail) { r.ends = tail }

// tail closes the messages and the request.
func (r *Request) tail() []byte {
	var b []byte
	open := r.open != ""
	if !wire.Blank(r.ends.Guidance) {
		switch r.open {
		case "user": // behind the results, in their message
			b = append(b, ',')
		case "assistant":
			b = append(b, `]},{"role":"user","content":[`...)
		default:
			b = append(b, `{"role":"user","content":[`...)
		}
		b = append(wire.AppendString(append(b, `{"type":"text","text":`...), r.ends.Guidance), '}')
		open = true
	}
	if open {
		b = append(b, `]}`...)
	}
	b = append(b, ']')
	switch {
	case !r.tools:
	case r.ends.Withheld:
		b = append(b, `,"tool_choice":{"type":"none"}`...)
	case !r.parallel:
		b = append(b, `,"tool_choice":{"type":"auto","disable_parallel_tool_use":true}`...)
	}
	// with thinking the API accepts only temperature 1
	if !r.options.Thinks && !r.options.Untempered {
		b = wire.AppendTemperature(b, r.temperature, r.ends, 1)
		if r.temperature == nil && r.ends.Temperature == nil { // it takes one of the two
			b = wire.AppendNumber(b, "top_p", r.topP)
		}
	}
	return append(b, '}')
}

// Body implements provider.Shower. It changes nothing: the same turns give the same bytes.
func (r *Request) Body() []byte { return slices.Concat(r.whole()...) }

// whole returns the request in pieces, without copies. Later turns are appended behind their bytes.
func (r *Request) whole() [][]byte {
	head, grown, rest := r.pieces()
	return slices.Insert(rest, 0, head, grown)
}

// Request implements provider.Conversation.
func (r *Request) Request() (regie.Hash, int) {
	head, grown, rest := r.pieces()
	return r.digest.Sum(head, grown, rest...)
}

var idPattern = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// WireID is a call's id as the API takes it. Another vendor's may have other characters: such a one
// becomes a hash of itself, the same at the call and at its result.
func WireID(id string) string {
	if idPattern.MatchString(id) {
		return id
	}
	return wire.HashID(id)
}
