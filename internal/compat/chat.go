package compat

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/httpread"
)

// chatRequest is a request of Chat Completions. What stands in Rest has no effect on an agent, or
// is not known and refused.
type chatRequest struct {
	Model             string            `json:"model"`
	Messages          []chatMessage     `json:"messages"`
	Stream            bool              `json:"stream"`
	StreamOptions     *streamOptions    `json:"stream_options"`
	Tools             []chatTool        `json:"tools"`
	ToolChoice        jsontext.Value    `json:"tool_choice"`
	ParallelToolCalls *bool             `json:"parallel_tool_calls"`
	Metadata          map[string]string `json:"metadata"`
	ReasoningEffort   string            `json:"reasoning_effort"`

	N              *int           `json:"n"`
	Logprobs       bool           `json:"logprobs"`
	TopLogprobs    int            `json:"top_logprobs"`
	LogitBias      jsontext.Value `json:"logit_bias"`
	Modalities     []string       `json:"modalities"`
	Audio          jsontext.Value `json:"audio"`
	ResponseFormat *struct {
		Type string `json:"type"`
	} `json:"response_format"`
	Stop             jsontext.Value `json:"stop"`
	Functions        jsontext.Value `json:"functions"`
	FunctionCall     jsontext.Value `json:"function_call"`
	WebSearchOptions jsontext.Value `json:"web_search_options"`

	Rest map[string]jsontext.Value `json:",embed"`
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`

	Rest map[string]jsontext.Value `json:",embed"`
}

type chatTool struct {
	Type     string `json:"type"`
	Function *struct {
		Name        string         `json:"name"`
		Description string         `json:"description"`
		Parameters  jsontext.Value `json:"parameters"`

		Rest map[string]jsontext.Value `json:",embed"`
	} `json:"function"`

	Rest map[string]jsontext.Value `json:",embed"`
}

type chatMessage struct {
	Role       string         `json:"role"`
	Content    jsontext.Value `json:"content"`
	Refusal    string         `json:"refusal"`
	ToolCallID string         `json:"tool_call_id"`
	ToolCalls  []struct {
		ID       string `json:"id"`
		Type     string `json:"type"`
		Function *struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`

			Rest map[string]jsontext.Value `json:",embed"`
		} `json:"function"`

		Rest map[string]jsontext.Value `json:",embed"`
	} `json:"tool_calls"`

	Rest map[string]jsontext.Value `json:",embed"`
}

// parseChat reads a request of Chat Completions to an agent.
func parseChat(data []byte) (*asking, *chatRequest, error) {
	var in chatRequest
	if err := decode(data, &in); err != nil {
		return nil, nil, err
	}
	if err := in.refuse(); err != nil {
		return nil, nil, err
	}
	out := &asking{model: in.Model, stream: in.Stream, metadata: in.Metadata, effort: in.ReasoningEffort, raw: data}
	var err error
	if out.ignored, err = ignored(in.Rest, ignoredByAgents); err != nil {
		return nil, nil, err
	}
	out.oneCall = in.ParallelToolCalls != nil && !*in.ParallelToolCalls
	if in.StreamOptions != nil {
		if err := strays(in.StreamOptions.Rest, "stream_options", besideOptions); err != nil {
			return nil, nil, err
		}
	}
	if len(in.Messages) > maxMessages {
		return nil, nil, refused("messages", "there are %d messages, at most %d are allowed",
			len(in.Messages), maxMessages)
	}
	for i := range in.Messages {
		m, err := in.Messages[i].read("messages[" + strconv.Itoa(i) + "]")
		if err != nil {
			return nil, nil, err
		}
		out.messages = append(out.messages, m)
	}
	var tools []regie.ClientTool
	for i, t := range in.Tools {
		param := "tools[" + strconv.Itoa(i) + "]"
		if t.Type != "function" || t.Function == nil {
			return nil, nil, refused(param+".type", "a tool of the type %q cannot be brought to an agent: use function",
				clip(t.Type))
		}
		if err := cmp.Or(strays(t.Rest, param, besideTool), strays(t.Function.Rest,
			param+".function", besideTool)); err != nil {
			return nil, nil, err
		}
		tools = append(tools, regie.ClientTool{
			Name: t.Function.Name, Description: t.Function.Description,
			Parameters: json.RawMessage(t.Function.Parameters),
		})
	}
	if err = checkNames(tools, ".function.name"); err != nil {
		return nil, nil, err
	}
	out.tools, err = chosen(tools, in.ToolChoice)
	return out, &in, err
}

// checkNames refuses names that no tool may have, and those that stand twice; at is where the name
// stands in a tool.
func checkNames(tools []regie.ClientTool, at string) error {
	seen := map[string]bool{}
	for i, t := range tools {
		if err := checkName(t.Name, "tools["+strconv.Itoa(i)+"]"+at, seen); err != nil {
			return err
		}
	}
	return nil
}

// forced is the error of a choice of tools that is none here.
func forced(param string) error {
	return refused(param, "an agent chooses its tools by itself: use auto, or none to keep yours from it")
}

// chosen are the tools that the model is told of. To force one is not possible: an agent decides by
// itself.
func chosen(tools []regie.ClientTool, choice jsontext.Value) ([]regie.ClientTool, error) {
	if len(choice) == 0 || choice.Kind() == 'n' {
		return tools, nil
	}
	var word string
	if choice.Kind() == '"' && json.Unmarshal(choice, &word) == nil {
		switch word {
		case "auto":
			return tools, nil
		case "none":
			return nil, nil
		}
	}
	return nil, forced("tool_choice")
}

// given reports whether a parameter says anything.
func given(v jsontext.Value) bool {
	return len(v) > 0 && v.Kind() != 'n' && string(v) != "{}" && string(v) != "[]"
}

// refuse names what would have another effect than its client means.
func (in *chatRequest) refuse() error {
	switch {
	case in.Model == "":
		return refused("model", "the request names no model")
	case len(in.Messages) == 0:
		return refused("messages", "there is no message")
	case in.N != nil && *in.N != 1:
		return refused("n", "an agent gives one answer: leave n out")
	case in.Logprobs || in.TopLogprobs > 0:
		return refused("logprobs", "an agent gives no log probabilities")
	case given(in.LogitBias):
		return refused("logit_bias", "an agent takes no logit_bias")
	case given(in.Audio) || len(in.Modalities) > 1 || len(in.Modalities) == 1 && in.Modalities[0] != "text":
		return refused("modalities", "an agent answers in text alone")
	case in.ResponseFormat != nil && in.ResponseFormat.Type != "text" && in.ResponseFormat.Type != "":
		return refused("response_format", "an agent answers in text: a format cannot be promised here")
	case given(in.Stop):
		return refused("stop", "an agent takes no stop sequences")
	case given(in.Functions) || given(in.FunctionCall):
		return refused("functions", "functions are given as tools here")
	case len(in.WebSearchOptions) > 0 && in.WebSearchOptions.Kind() != 'n': // {} switches the search on
		return refused("web_search_options", "an agent has its own tools")
	}
	return nil
}

// read makes a message of one of Chat Completions.
func (m *chatMessage) read(param string) (said, error) {
	text, err := contentOf(m.Content, param+".content", "text")
	if err == nil {
		err = strays(m.Rest, param, besideMessage)
	}
	if err != nil {
		return said{}, err
	}
	return m.of(text, param)
}

// of makes a message of one with this text.
func (m *chatMessage) of(text, param string) (said, error) {
	out := said{param: param}
	out.Text = text
	switch m.Role {
	case "system", "developer":
		out.Role = regie.ImportedContext
	case "user":
		out.Role = regie.ImportedUser
		if strings.TrimSpace(text) == "" {
			return out, refused(param+".content", "the message says nothing")
		}
	case "assistant":
		out.Role = regie.ImportedAssistant
		if out.Text == "" {
			out.Text = m.Refusal
		}
		for i, c := range m.ToolCalls {
			if c.Function == nil || c.Type != "" && c.Type != "function" {
				return out, refused(param+".tool_calls["+strconv.Itoa(i)+"]",
					"a call of the type %q is none that an agent knows", clip(c.Type))
			}
			at := param + ".tool_calls[" + strconv.Itoa(i) + "]"
			if err := cmp.Or(strays(c.Rest, at, besideCall), strays(c.Function.Rest,
				at+".function", besideCall)); err != nil {
				return out, err
			}
			out.Calls = append(out.Calls, regie.ImportedCall{
				ID: c.ID, Name: c.Function.Name,
				Arguments: c.Function.Arguments,
			})
		}
	case "tool":
		out.Role = roleTool
		out.results = []clientResult{{m.ToolCallID, text, param + ".tool_call_id"}}
	default:
		return out, refused(param+".role", "%q is no role: use system, developer, user, assistant or tool",
			clip(m.Role))
	}
	return out, checkCalls(out.Calls, param)
}

// checkCalls compares names of calls in a history with what a tool may be called.
func checkCalls(calls []regie.ImportedCall, param string) error {
	for _, c := range calls {
		if err := checkName(c.Name, param, map[string]bool{}); err != nil {
			return err
		}
		if len(c.ID) > 256 {
			return refused(param, "the id of a call has more than %d characters", 256)
		}
	}
	return nil
}

// contentOf reads a content: a text, or parts of the types that are text.
func contentOf(content jsontext.Value, param string, types ...string) (string, error) {
	if len(content) == 0 || content.Kind() == 'n' {
		return "", nil
	}
	if content.Kind() == '"' {
		var text string
		err := decode(content, &text)
		return text, err
	}
	var parts []struct {
		Type    string `json:"type"`
		Text    string `json:"text"`
		Refusal string `json:"refusal"`

		Rest map[string]jsontext.Value `json:",embed"`
	}
	if content.Kind() != '[' || decode(content, &parts) != nil {
		return "", refused(param, "a content is a text or an array of parts")
	}
	var out strings.Builder
	for i, part := range parts {
		known := part.Type == "refusal"
		for _, t := range types {
			known = known || part.Type == t
		}
		if !known {
			return "", noPart(param+"["+strconv.Itoa(i)+"]", part.Type)
		}
		if err := checkCase(part.Rest, param+"["+strconv.Itoa(i)+"]", "type", "text", "refusal"); err != nil {
			return "", err
		}
		if out.Len() > 0 {
			out.WriteString("\n")
		}
		out.WriteString(part.Text + part.Refusal)
	}
	return out.String(), nil
}

// noPart is the error of a part that is no text.
func noPart(param, kind string) error {
	return refused(param+".type",
		"a part of the type %q cannot be given to an agent here: write what it says as text, or put it into a file and name the file", clip(kind))
}

// received reads a request and submits what it asks of an agent; false says that it was answered:
// passed on, or refused.
func received[In any](s *server, w http.ResponseWriter, r *http.Request, api string,
	parse func([]byte) (*asking, In, error),
) (*asking, In, submitted, bool) {
	var a *asking
	var in In
	var sent submitted
	data, err := httpread.Body(w, r, httpread.MaxBody)
	if err == nil {
		if h, wrong := readHead(data); s.proxies(h.name) {
			s.proxy(w, r, api, &h, wrong, data)
			return a, in, sent, false
		}
		a, in, err = parse(data)
	}
	if err == nil {
		err = a.named(r)
	}
	if err == nil {
		err = s.threaded(r.Context(), a)
	}
	if err == nil {
		err = s.resolveReferences(r.Context(), a)
	}
	if err == nil {
		sent, err = s.submit(r, a)
	}
	if err != nil {
		s.fail(w, r, err)
		return a, in, sent, false
	}
	s.headers(w, a, sent)
	return a, in, sent, true
}

// chat serves POST /v1/chat/completions.
func (s *server) chat(w http.ResponseWriter, r *http.Request) {
	a, in, sent, ok := received(s, w, r, APIChat, parseChat)
	if !ok {
		return
	}
	out := &chatAnswer{
		server: s, w: w, r: r, asked: a, created: time.Now().Unix(), round: sent.RoundID,
		usage: in.StreamOptions != nil && in.StreamOptions.IncludeUsage,
	}
	if a.stream {
		out.streamed(sent)
		return
	}
	out.whole(sent)
}

// headers says where the answer stands, and what of the request has no effect.
func (s *server) headers(w http.ResponseWriter, a *asking, sent submitted) {
	w.Header().Set(HeaderSession, sent.SessionID.String())
	if sent.again {
		w.Header().Set("Idempotent-Replayed", "true")
	}
	if ignored := slices.Concat(a.ignored, sent.ignored); len(ignored) > 0 {
		w.Header().Set(headerIgnored, strings.Join(ignored, ", "))
	}
}

// chatAnswer writes an answer of Chat Completions.
type chatAnswer struct {
	*server
	w       http.ResponseWriter
	r       *http.Request
	asked   *asking
	round   regie.ID // that answers
	created int64
	usage   bool // in a stream
	out     *stream
	begun   bool
}

// answers takes which round it is that answers: of a message that waits for its turn that is known
// once it has it.
func (c *chatAnswer) answers(round regie.ID) error {
	c.round = round
	return nil
}

func (c *chatAnswer) id() string { return "chatcmpl-" + c.round.String() }

func (c *chatAnswer) whole(sent submitted) {
	result, err := c.follow(c.r.Context(), sent, listener{begun: c.answers, text: func(string) {}})
	if err != nil {
		c.fail(c.w, c.r, err)
		return
	}
	message := map[string]any{"role": "assistant", "content": nil, "refusal": nil}
	if result.text != "" || len(result.calls) == 0 {
		message["content"] = result.text
	}
	if len(result.calls) > 0 {
		message["tool_calls"] = chatCalls(result, false)
	}
	c.write(c.w, map[string]any{
		"id": c.id(), "object": "chat.completion", "created": c.created, "model": c.asked.model,
		"choices": []any{map[string]any{
			"index": 0, "message": message, "logprobs": nil,
			"finish_reason": result.finish,
		}},
		"usage":    chatUsage(result.usage),
		"metadata": c.metadata(sent),
	})
}

// metadata is the request's, with the session.
func (c *chatAnswer) metadata(sent submitted) map[string]string { return withSession(c.asked, sent) }

func withSession(a *asking, sent submitted) map[string]string {
	out := map[string]string{}
	maps.Copy(out, a.metadata)
	out["session_id"] = sent.SessionID.String()
	return out
}

func (c *chatAnswer) streamed(sent submitted) {
	c.out = newStream(c.w, c.KeepAlive, comment)
	defer c.out.close()
	result, err := c.follow(c.r.Context(), sent, listener{begun: c.answers, text: func(piece string) {
		c.chunk(map[string]any{"content": piece}, nil, sent)
	}})
	if err != nil {
		if !c.out.started() {
			c.fail(c.w, c.r, err)
			return
		}
		why := c.tell(c.r, err)
		problem, _ := why.openAI()
		c.out.event("", map[string]any{"error": problem})
		return
	}
	for _, call := range chatCalls(result, true) {
		c.chunk(map[string]any{"tool_calls": []any{call}}, nil, sent)
	}
	c.chunk(map[string]any{}, result.finish, sent)
	if c.usage {
		c.out.event("", map[string]any{
			"id": c.id(), "object": "chat.completion.chunk", "created": c.created, "model": c.asked.model,
			"choices": []any{}, "usage": chatUsage(result.usage),
		})
	}
	c.out.end()
}

// chunk sends a delta, after the one that names the role.
func (c *chatAnswer) chunk(delta map[string]any, finish any, sent submitted) {
	body := func(delta map[string]any, finish any) map[string]any {
		out := map[string]any{
			"id": c.id(), "object": "chat.completion.chunk", "created": c.created, "model": c.asked.model,
			"choices": []any{map[string]any{"index": 0, "delta": delta, "logprobs": nil, "finish_reason": finish}},
		}
		if c.usage {
			out["usage"] = nil
		}
		return out
	}
	if !c.begun {
		c.begun = true
		first := body(map[string]any{"role": "assistant", "content": ""}, nil)
		first["metadata"] = c.metadata(sent)
		c.out.event("", first)
	}
	c.out.event("", body(delta, finish))
}

// chatCalls are the calls that a client is to run.
func chatCalls(result outcome, indexed bool) []map[string]any {
	out := []map[string]any{}
	for i := range result.calls {
		call := &result.calls[i]
		line := map[string]any{
			"id": callID(result.session, call.ID), "type": "function",
			"function": map[string]any{"name": toolName(call), "arguments": argumentsOf(call)},
		}
		if indexed {
			line["index"] = i
		}
		out = append(out, line)
	}
	return out
}

func chatUsage(u regie.Usage) map[string]any {
	return map[string]any{
		"prompt_tokens": u.Input, "completion_tokens": u.Output, "total_tokens": u.Input + u.Output,
		"prompt_tokens_details":     map[string]any{"cached_tokens": u.CacheRead},
		"completion_tokens_details": map[string]any{"reasoning_tokens": u.Reasoning},
	}
}
