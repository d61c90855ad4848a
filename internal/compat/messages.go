package compat

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/httpread"
)

// stopReasons are the finish reasons in the words of Messages.
var stopReasons = map[string]string{finishStop: "end_turn", finishLength: "max_tokens", finishTools: "tool_use"}

// messages serves POST /v1/messages.
func (s *server) messages(w http.ResponseWriter, r *http.Request) {
	a, _, sent, ok := received(s, w, r, APIMessages, parseMessages)
	if !ok {
		return
	}
	out := &messagesAnswer{server: s, w: w, r: r, asked: a, sent: sent, round: sent.RoundID}
	if a.stream {
		out.streamed()
		return
	}
	result, err := s.follow(r.Context(), sent, listener{begun: out.answers, text: func(string) {}})
	if err != nil {
		s.fail(w, r, err)
		return
	}
	s.write(w, out.object(out.content(&result), stopReasons[result.finish], result.usage))
}

// messagePrefix stands before a round's id in that of its answer.
const messagePrefix = "msg_"

// bytesPerToken is what a token is taken to be where nobody counts.
const bytesPerToken = 3

// countTokens serves POST /v1/messages/count_tokens: of an agent an estimate of what its model
// would be sent first, with the agent's own levels and tools; of a provider's model that provider's
// own count.
func (s *server) countTokens(w http.ResponseWriter, r *http.Request) {
	data, err := httpread.Body(w, r, httpread.MaxBody)
	if err == nil {
		if h, wrong := readHead(data); s.proxies(h.name) {
			s.proxy(w, r, APICount, &h, wrong, data)
			return
		}
	}
	var a *asking
	if err == nil {
		a, _, err = parseMessages(data)
	}
	if err == nil {
		err = a.named(r)
	}
	if err == nil {
		err = s.threaded(r.Context(), a)
	}
	if err == nil {
		err = a.moved
	}
	if err == nil {
		err = s.agent(r.Context(), a.model)
	}
	tokens := 0
	if err == nil {
		tokens, err = s.weighed(r.Context(), a)
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	s.write(w, map[string]any{"input_tokens": tokens})
}

// weighed is an estimate of the tokens that a request to an agent comes to.
func (s *server) weighed(ctx context.Context, a *asking) (int, error) {
	if s.Weigh == nil {
		return a.tokens(), nil
	}
	place, err := s.Workspace(ctx)
	if err != nil {
		return 0, err
	}
	in := s.request(ctx, a)
	in.WorkspaceID, in.Root, in.FoundBy, in.SessionID, in.Origin = place.ID, place.Root, place.FoundBy,
		regie.NewID(), regie.OriginAPISession
	if a.session.IsZero() {
		in.History, in.Text, err = imports(a.messages)
	} else if _, err = s.summary(ctx, a.session, place, regie.ScopeChat); err == nil {
		in.SessionID = a.session
		var results []regie.ClientResult
		in.Text, results, _, err = continues(a)
		for _, result := range results {
			in.Text += "\n" + result.Content
		}
	}
	if err != nil {
		return 0, err
	}
	return s.Weigh(ctx, in)
}

// tokens is an estimate of how many what a request says comes to.
func (a *asking) tokens() int {
	size := 0
	for i := range a.messages {
		m := &a.messages[i]
		size += len(m.Text)
		for _, call := range m.Calls {
			size += len(call.Name) + len(call.Arguments)
		}
		for _, result := range m.results {
			size += len(result.content)
		}
	}
	for _, tool := range a.tools {
		size += len(tool.Name) + len(tool.Description) + len(tool.Parameters)
	}
	return max(1, (size+bytesPerToken-1)/bytesPerToken)
}

// messagesAnswer writes an answer of Messages.
type messagesAnswer struct {
	*server
	w     http.ResponseWriter
	r     *http.Request
	asked *asking
	sent  submitted
	round regie.ID // that answers

	out   *stream
	begun bool
	open  bool // the block of the text is
}

// answers takes which round it is that answers: of a message that waits for its turn that is known
// once it has it.
func (m *messagesAnswer) answers(round regie.ID) error {
	m.round = round
	return nil
}

// object is the message as it stands.
func (m *messagesAnswer) object(content []any, reason any, used regie.Usage) map[string]any {
	return map[string]any{
		"id": messagePrefix + m.round.String(), "type": "message", "role": "assistant",
		"model": m.asked.model, "content": content,
		"stop_reason": reason, "stop_sequence": nil, "stop_details": nil, "container": nil,
		"usage": messagesUsage(used), "metadata": withSession(m.asked, m.sent),
	}
}

// content are the blocks of a whole answer.
func (m *messagesAnswer) content(result *outcome) []any {
	out := []any{}
	if result.text != "" || len(result.calls) == 0 {
		out = append(out, textBlock(result.text))
	}
	for i := range result.calls {
		call := &result.calls[i]
		out = append(out, toolUse(result, call, jsontext.Value(argumentsOf(call))))
	}
	return out
}

func (m *messagesAnswer) streamed() {
	m.out = newStream(m.w, m.KeepAlive, ping)
	defer m.out.close()
	result, err := m.follow(m.r.Context(), m.sent, listener{begun: m.answers, text: m.piece})
	if err != nil {
		if !m.out.started() {
			m.fail(m.w, m.r, err)
			return
		}
		why := m.tell(m.r, err)
		m.out.event("error", why.anthropic())
		return
	}
	if !m.open && (result.text != "" || len(result.calls) == 0) {
		m.piece(result.text)
	}
	m.begin()
	index := 0
	if m.open {
		m.event("content_block_stop", map[string]any{"index": index})
		index++
	}
	for i := range result.calls {
		call := &result.calls[i]
		m.event("content_block_start", map[string]any{
			"index":         index,
			"content_block": toolUse(&result, call, jsontext.Value("{}")),
		})
		m.event("content_block_delta", map[string]any{
			"index": index,
			"delta": map[string]any{"type": "input_json_delta", "partial_json": argumentsOf(call)},
		})
		m.event("content_block_stop", map[string]any{"index": index})
		index++
	}
	m.event("message_delta", map[string]any{
		"delta": map[string]any{
			"stop_reason": stopReasons[result.finish], "stop_sequence": nil, "stop_details": nil,
			"container": nil,
		}, "usage": messagesUsage(result.usage),
	})
	m.event("message_stop", map[string]any{})
}

// begin sends the message without its content, once.
func (m *messagesAnswer) begin() {
	if m.begun {
		return
	}
	m.begun = true
	m.event("message_start", map[string]any{"message": m.object([]any{}, nil, regie.Usage{})})
}

// piece sends text; the first one opens its block.
func (m *messagesAnswer) piece(piece string) {
	m.begin()
	if !m.open {
		m.open = true
		m.event("content_block_start", map[string]any{"index": 0, "content_block": textBlock("")})
	}
	m.event("content_block_delta", map[string]any{"index": 0, "delta": map[string]any{
		"type": "text_delta", "text": piece,
	}})
}

// event sends one event, which says its own name too.
func (m *messagesAnswer) event(kind string, v map[string]any) {
	v["type"] = kind
	m.out.event(kind, v)
}

func textBlock(text string) map[string]any {
	return map[string]any{"type": "text", "text": text}
}

// toolUse is a call that the client is to run.
func toolUse(result *outcome, call *regie.Call, input jsontext.Value) map[string]any {
	return map[string]any{
		"type": "tool_use", "id": callID(result.session, call.ID), "name": toolName(call), "input": input,
		"caller": map[string]any{"type": "direct"},
	}
}

// messagesUsage says what was used as Messages counts it: what came from a cache or went into one
// is no input beside it.
func messagesUsage(u regie.Usage) map[string]any {
	return map[string]any{
		"input_tokens": max(0, u.Input-u.CacheRead-u.CacheCreation), "output_tokens": u.Output,
		"cache_creation_input_tokens": u.CacheCreation, "cache_read_input_tokens": u.CacheRead,
	}
}

// speaksMessages reports whether a request is one of an Anthropic client, which reads errors and
// lists in its own form: by its path, and by its header where the path is one that OpenAI's clients
// ask for too.
func speaksMessages(r *http.Request) bool {
	for _, path := range []string{"/v1/chat/", "/v1/responses"} {
		if strings.HasPrefix(r.URL.Path, path) {
			return false
		}
	}
	return r.Header.Get("Anthropic-Version") != "" || r.URL.Path == "/v1/messages" ||
		strings.HasPrefix(r.URL.Path, "/v1/messages/")
}

// errorTypes are the types of Anthropic's errors, by their status.
var errorTypes = map[int]string{
	http.StatusUnauthorized: "authentication_error", http.StatusPaymentRequired: "billing_error",
	http.StatusForbidden: "permission_error",
	http.StatusNotFound:  "not_found_error", http.StatusConflict: "conflict_error",
	http.StatusRequestEntityTooLarge: "request_too_large",
	http.StatusTooManyRequests:       "rate_limit_error", http.StatusRequestTimeout: "timeout_error",
	http.StatusGatewayTimeout:     "timeout_error",
	http.StatusServiceUnavailable: "overloaded_error",
}

// anthropic is an error as Anthropic's clients read it. Our own code and the parameter stand in its
// details.
func (t *told) anthropic() map[string]any {
	kind := "invalid_request_error"
	if t.status >= http.StatusInternalServerError {
		kind = "api_error"
	}
	details := map[string]any{"error_code": t.code}
	if t.param != "" {
		details["param"] = t.param
	}
	return map[string]any{"type": "error", "error": map[string]any{
		"type":    cmp.Or(errorTypes[t.status], kind),
		"message": t.message, "details": details,
	}}
}

// anthropicModel is a model of the list as Anthropic's clients read it: when it was made, and how
// much it takes, is the agent's own business.
func anthropicModel(m model) map[string]any {
	return map[string]any{
		"type": "model", "id": m.ID, "display_name": m.ID, "created_at": "1970-01-01T00:00:00Z",
		"lifecycle": "active", "deprecated_at": nil,
		"capabilities": nil, "line": nil, "max_input_tokens": nil, "max_tokens": nil,
	}
}

// The pages of Anthropic's list of models, in models.
const (
	modelsPage = 20
	modelsMost = 1000
)

// anthropicModels is a page of the list: that behind the model after_id, in front of before_id, or
// the first one.
func anthropicModels(list []model, query url.Values) (map[string]any, error) {
	limit := modelsPage
	if text := query.Get("limit"); text != "" {
		var err error
		if limit, err = strconv.Atoi(text); err != nil || limit < 1 || limit > modelsMost {
			return nil, refused("limit", "limit is a number from 1 to %d", modelsMost)
		}
	}
	before, after := query.Get("before_id"), query.Get("after_id")
	from, to := 0, len(list)
	place := func(param, id string) (int, error) {
		at := slices.IndexFunc(list, func(m model) bool { return m.ID == id })
		if at < 0 {
			return 0, refused(param, "there is no model %q in the list: begin it anew without %s", clip(id), param)
		}
		return at, nil
	}
	var err error
	switch {
	case before != "" && after != "":
		err = refused("before_id", "a page is before a model or after one: leave before_id or after_id out")
	case before != "":
		to, err = place("before_id", before)
		from = max(0, to-limit)
	case after != "":
		from, err = place("after_id", after)
		from++
	}
	if err != nil {
		return nil, err
	}
	more := from > 0
	if before == "" {
		to = min(len(list), from+limit)
		more = to < len(list)
	}
	data, first, last := []any{}, any(nil), any(nil)
	for i := range list[from:to] {
		data = append(data, anthropicModel(list[from+i]))
	}
	if from < to {
		first, last = list[from].ID, list[to-1].ID
	}
	return map[string]any{"data": data, "has_more": more, "first_id": first, "last_id": last}, nil
}
