package compat

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
)

// responses serves POST /v1/responses.
func (s *server) responses(w http.ResponseWriter, r *http.Request) {
	a, in, sent, ok := received(s, w, r, APIResponses, parseResponses)
	if !ok {
		return
	}
	out := &responseAnswer{
		server: s, w: w, r: r, model: a.model, created: time.Now().Unix(), metadata: withSession(a, sent),
		previous:     in.PreviousResponseID,
		instructions: in.Instructions, result: outcome{session: sent.SessionID, round: sent.RoundID},
		held:         approval.Policy{OneCall: a.oneCall, ReasoningEffort: a.effort, ClientTools: a.tools},
		withoutTools: string(in.ToolChoice) == `"none"`,
	}
	if a.stream {
		out.streamed(sent)
		return
	}
	result, err := out.follow(listener{text: func(string) {}}, sent)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	s.write(w, out.object(result, result.status()))
}

// follow waits for what becomes of the message. The id of the answer is known before anything of it
// is told.
func (a *responseAnswer) follow(to listener, sent submitted) (outcome, error) {
	to.begun = a.answers
	return a.server.follow(a.r.Context(), sent, to)
}

// answers takes which round it is that answers, and which of its session: of a message that waits
// for its turn that is known once it has it.
func (a *responseAnswer) answers(round regie.ID) (err error) {
	a.result.round = round
	a.rounds, err = a.ordinal(a.r.Context(), a.result.session, round)
	return err
}

// status is a response's, of what its round came to.
func (o *outcome) status() string {
	if o.finish == finishLength {
		return "incomplete"
	}
	return "completed"
}

// responseAnswer writes an answer of Responses.
type responseAnswer struct {
	*server
	w            http.ResponseWriter
	r            *http.Request
	model        string
	created      int64
	metadata     map[string]string
	previous     string
	instructions string
	rounds       int
	held         approval.Policy // what of the request holds for the round
	withoutTools bool            // the client has forbidden its own

	out    *stream
	number int // of the next event
	open   bool
	said   strings.Builder
	result outcome
}

// object is the response as it stands.
func (a *responseAnswer) object(o outcome, status string) map[string]any {
	output := []any{}
	if o.text != "" || status == "completed" && len(o.calls) == 0 {
		output = append(output, messageItem(o.round, o.text, "completed"))
	}
	for i := range o.calls {
		output = append(output, a.callItem(o, &o.calls[i], "completed", argumentsOf(&o.calls[i])))
	}
	var usage, incomplete, previous, instructions any
	if status == "completed" || status == "incomplete" {
		usage = map[string]any{
			"input_tokens": o.usage.Input, "input_tokens_details": map[string]any{"cached_tokens": o.usage.CacheRead},
			"output_tokens":         o.usage.Output,
			"output_tokens_details": map[string]any{"reasoning_tokens": o.usage.Reasoning},
			"total_tokens":          o.usage.Input + o.usage.Output,
		}
	}
	if status == "incomplete" {
		incomplete = map[string]any{"reason": "max_output_tokens"}
	}
	if a.previous != "" {
		previous = a.previous
	}
	if a.instructions != "" {
		instructions = a.instructions
	}
	var effort any
	if a.held.ReasoningEffort != "" {
		effort = a.held.ReasoningEffort
	}
	choice, tools := "auto", []any{}
	if a.withoutTools {
		choice = "none"
	}
	for i := range a.held.ClientTools {
		t := &a.held.ClientTools[i]
		tools = append(tools, map[string]any{
			"type": "function", "name": t.Name, "description": t.Description,
			"parameters": t.Parameters, "strict": false,
		})
	}
	return map[string]any{
		"id": responseID(o.session, o.round, a.rounds), "object": "response", "created_at": a.created,
		"status": status, "error": nil,
		"incomplete_details": incomplete, "instructions": instructions, "max_output_tokens": nil,
		"model": a.model, "output": output,
		"parallel_tool_calls": !a.held.OneCall, "previous_response_id": previous,
		"reasoning": map[string]any{"effort": effort, "summary": nil}, "store": true,
		"temperature": nil, "text": map[string]any{"format": map[string]any{"type": "text"}}, "tool_choice": choice,
		"tools": tools, "top_p": nil,
		"truncation": "disabled", "usage": usage, "user": nil, "metadata": a.metadata,
	}
}

func messageItem(round regie.ID, text, status string) map[string]any {
	content := []any{}
	if status == "completed" {
		content = append(content, textPart(text))
	}
	return map[string]any{
		"id": messageID(round), "type": "message", "status": status,
		"role": "assistant", "content": content,
	}
}

func textPart(text string) map[string]any {
	return map[string]any{"type": "output_text", "text": text, "annotations": []any{}, "logprobs": []any{}}
}

// callItem is a call with its tool's name as the client wrote it: a tool of a namespace has a
// short name.
func (a *responseAnswer) callItem(o outcome, call *regie.Call, status, arguments string) map[string]any {
	item := map[string]any{
		"id": itemID(call), "type": "function_call", "status": status, "call_id": callID(o.session, call.ID),
		"name": toolName(call), "arguments": arguments,
	}
	for i := range a.held.ClientTools {
		if t := &a.held.ClientTools[i]; t.Namespace != "" && t.Name == toolName(call) {
			item["namespace"], item["name"] = t.Namespace, strings.TrimPrefix(t.Name, t.Namespace+"__")
		}
	}
	return item
}

// event sends one event with its number.
func (a *responseAnswer) event(kind string, v map[string]any) {
	v["type"], v["sequence_number"] = kind, a.number
	a.number++
	a.out.event(kind, v)
}

func (a *responseAnswer) streamed(sent submitted) {
	a.out = newStream(a.w, a.KeepAlive, comment)
	defer a.out.close()
	begun := false
	begin := func() {
		if begun {
			return
		}
		begun = true
		a.event("response.created", map[string]any{"response": a.object(a.result, "in_progress")})
		a.event("response.in_progress", map[string]any{"response": a.object(a.result, "in_progress")})
	}
	result, err := a.follow(listener{text: func(piece string) {
		begin()
		a.piece(piece)
	}}, sent)
	if err != nil {
		a.failed(err, begun)
		return
	}
	begin()
	a.closeMessage(result)
	a.calls(result)
	status := result.status()
	a.event("response."+status, map[string]any{"response": a.object(result, status)})
}

// piece sends text; the first one opens the message.
func (a *responseAnswer) piece(piece string) {
	id := messageID(a.result.round)
	if !a.open {
		a.open = true
		a.event("response.output_item.added", map[string]any{
			"output_index": 0,
			"item":         messageItem(a.result.round, "", "in_progress"),
		})
		a.event("response.content_part.added", map[string]any{
			"item_id": id, "output_index": 0,
			"content_index": 0, "part": textPart(""),
		})
	}
	a.said.WriteString(piece)
	a.event("response.output_text.delta", map[string]any{
		"item_id": id, "output_index": 0, "content_index": 0,
		"delta": piece, "logprobs": []any{},
	})
}

func (a *responseAnswer) closeMessage(result outcome) {
	if !a.open && (result.text != "" || len(result.calls) == 0) {
		a.piece(result.text)
	}
	if !a.open {
		return
	}
	text, id := a.said.String(), messageID(a.result.round)
	a.event("response.output_text.done", map[string]any{
		"item_id": id, "output_index": 0, "content_index": 0,
		"text": text, "logprobs": []any{},
	})
	a.event("response.content_part.done", map[string]any{
		"item_id": id, "output_index": 0,
		"content_index": 0, "part": textPart(text),
	})
	a.event("response.output_item.done", map[string]any{
		"output_index": 0,
		"item":         messageItem(a.result.round, text, "completed"),
	})
}

// calls sends the calls that the client is to run.
func (a *responseAnswer) calls(result outcome) {
	index := 0
	if a.open {
		index = 1
	}
	for i := range result.calls {
		call := &result.calls[i]
		arguments := argumentsOf(call)
		added, done := a.callItem(result, call, "in_progress", ""), a.callItem(result, call, "completed", arguments)
		id, name := done["id"], done["name"]
		a.event("response.output_item.added", map[string]any{"output_index": index, "item": added})
		a.event("response.function_call_arguments.delta", map[string]any{
			"item_id":      id,
			"output_index": index, "delta": arguments,
		})
		a.event("response.function_call_arguments.done", map[string]any{
			"item_id": id, "output_index": index, "name": name, "arguments": arguments,
		})
		a.event("response.output_item.done", map[string]any{"output_index": index, "item": done})
		index++
	}
}

// failed ends a stream with an error; one that has not begun is an answer with a status.
func (a *responseAnswer) failed(err error, begun bool) {
	if !a.out.started() {
		a.fail(a.w, a.r, err)
		return
	}
	why := a.tell(a.r, err)
	problem, _ := why.openAI()
	if !begun || ended(a.r) { // the response itself goes on without who may no longer hear it
		a.event("error", map[string]any{"code": problem.Code, "message": problem.Message, "param": problem.Param})
		return
	}
	a.result.text = a.said.String()
	object := a.object(a.result, "failed")
	object["error"] = map[string]any{"code": "server_error", "message": problem.Message}
	a.event("response.failed", map[string]any{"response": object})
}

// response serves GET /v1/responses/{id}: the answer again, from what is stored.
func (s *server) response(w http.ResponseWriter, r *http.Request) {
	session, round, err := s.stored(r, regie.ScopeRead)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	view, err := s.Control.Get(r.Context(), round)
	if err == nil && (view.Session.ID != session) {
		err = &problem{
			status: http.StatusNotFound, kind: kindInvalid,
			err: regie.Errorf(regie.CodeNotFound, "there is no response %s here", clip(r.PathValue("id"))),
		}
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	result, status := retold(view)
	out := &responseAnswer{
		server: s, model: view.Session.Agent, created: view.Round.StartedAt.Unix(),
		metadata: map[string]string{"session_id": session.String()},
		rounds:   view.Round.Number,
	}
	_ = json.Unmarshal(view.Round.Policy, &out.held) // ours
	object := out.object(result, status)
	if status == "failed" {
		object["error"] = map[string]any{"code": "server_error", "message": view.Round.EndNote.String()}
	}
	s.write(w, object)
}

// retold is what a stored round came to.
func retold(view store.RoundView) (outcome, string) {
	out := outcome{session: view.Session.ID, round: view.Round.ID, finish: finishStop}
	var text []string
	for i := range view.Exchanges {
		e := &view.Exchanges[i]
		if e.Reply == nil || e.Reply.AI == nil {
			continue
		}
		if t := strings.TrimPrefix(e.Reply.AI.Text(), regie.InvalidFormat); t != "" {
			text = append(text, t)
		}
		out.usage.Input += e.Usage.Input
		out.usage.Output += e.Usage.Output
		out.usage.CacheRead += e.Usage.CacheRead
		out.usage.Reasoning += e.Usage.Reasoning
	}
	out.text = strings.Join(text, "\n\n")
	switch end := view.Round.End; {
	case view.Round.State != regie.RoundEnded:
		return out, "in_progress"
	case end == regie.EndClientTools:
		out.finish, out.calls = finishTools, handedOut(view)
	case end == regie.EndProviderError:
		return out, "failed"
	case end == regie.EndInterrupted || end == regie.EndStopped:
		return out, "cancelled"
	case end != regie.EndAnswered && end != regie.EndCompleted && end != regie.EndDenied, end == regie.EndAnswered &&
		!view.Round.EndNote.IsZero():
		out.finish = finishLength
		out.text = cmp.Or(out.text, view.Round.EndNote.String())
	}
	status := out.status()
	return out, status
}

// forget serves DELETE /v1/responses/{id}: the session of a client goes with it.
func (s *server) forget(w http.ResponseWriter, r *http.Request) {
	session, _, err := s.stored(r, regie.ScopeAdmin)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	list, err := s.Control.Sessions(r.Context(), store.SessionFilter{ID: session, Limit: 1})
	if err == nil && (len(list) != 1 || list[0].Origin != regie.OriginAPISession) {
		err = &problem{
			status: http.StatusConflict, kind: kindInvalid,
			err: regie.Errorf(regie.CodeConflict, "the session %s was not begun here: remove it where it was", session),
		}
	}
	if err == nil {
		_, err = s.Control.Remove(r.Context(), dispatch.RemoveRequest{SessionID: session, By: "api"})
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	s.write(w, map[string]any{"id": r.PathValue("id"), "object": "response", "deleted": true})
}
