package compat

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
)

// The statuses of a response.
const (
	statusInProgress = "in_progress"
	statusCompleted  = "completed"
	statusIncomplete = "incomplete"
	statusFailed     = "failed"
	statusCancelled  = "cancelled"
)

// responsesAnswer writes an answer of Responses.
type responsesAnswer struct {
	*answer
	events int // that were sent
}

func newResponsesAnswer(a *answer) format { return &responsesAnswer{answer: a} }

// orNull returns a text, null where it is empty.
func orNull(text string) any {
	if text == "" {
		return nil
	}
	return text
}

// encodeObject returns the response in the form of the Responses API.
func (a *responsesAnswer) encodeObject(o *outcome) map[string]any {
	output := []any{}
	if o.text != "" || o.status == statusCompleted && len(o.calls) == 0 {
		output = append(output, messageItem(a.round, statusCompleted, textPart(o.text)))
	}
	for i := range o.calls {
		output = append(output, a.callItem(&o.calls[i], statusCompleted, argumentsOf(&o.calls[i])))
	}
	var usage, incomplete any
	if o.status == statusCompleted || o.status == statusIncomplete {
		usage = map[string]any{
			"input_tokens": o.usage.Input, "input_tokens_details": map[string]any{"cached_tokens": o.usage.CacheRead},
			"output_tokens":         o.usage.Output,
			"output_tokens_details": map[string]any{"reasoning_tokens": o.usage.Reasoning},
			"total_tokens":          o.usage.Input + o.usage.Output,
		}
	}
	if o.status == statusIncomplete {
		incomplete = map[string]any{"reason": "max_output_tokens"}
	}
	return map[string]any{
		"id": packID(responsePrefix, a.sent.SessionID, a.round), "object": "response", "created_at": a.created,
		"status": o.status, "error": nil, "incomplete_details": incomplete,
		"instructions": nil, "max_output_tokens": nil, "model": a.model, "output": output,
		"parallel_tool_calls": true, "previous_response_id": orNull(a.previous),
		"reasoning": map[string]any{"effort": nil, "summary": nil}, "store": true,
		"temperature": nil, "text": map[string]any{"format": map[string]any{"type": "text"}}, "tool_choice": "auto",
		"tools": []any{}, "top_p": nil, "truncation": "disabled", "usage": usage, "user": nil,
		"metadata": a.withSession(),
	}
}

// encodeFailed returns the response of a failed round.
func (a *responsesAnswer) encodeFailed(o *outcome, why string) map[string]any {
	object := a.encodeObject(o)
	object["error"] = map[string]any{"code": "server_error", "message": why}
	return object
}

func messageItem(round regie.ID, status string, content ...any) map[string]any {
	if content == nil {
		content = []any{}
	}
	return map[string]any{
		"id": messageID(round), "type": "message", "status": status, "role": "assistant", "content": content,
	}
}

func textPart(text string) map[string]any {
	return map[string]any{"type": "output_text", "text": text, "annotations": []any{}, "logprobs": []any{}}
}

// callItem returns a call with its tool's name as the client wrote it: a tool of a namespace has a
// short name.
func (a *responsesAnswer) callItem(call *regie.Call, status, arguments string) map[string]any {
	item := map[string]any{
		"id": packID(callItemPrefix, call.RoundID, call.ID), "type": "function_call", "status": status, "call_id": callID(a.sent.SessionID, call.ID),
		"name": toolName(call), "arguments": arguments,
	}
	for i := range a.tools {
		if t := &a.tools[i]; t.Namespace != "" && t.Name == toolName(call) {
			item["namespace"], item["name"] = t.Namespace, strings.TrimPrefix(t.Name, t.Namespace+"__")
		}
	}
	return item
}

// sendEvent sends one event with its number. Events about an item name its place in the output;
// those about a text have the item's only part.
func (a *responsesAnswer) sendEvent(kind string, v map[string]any) {
	v["type"], v["sequence_number"] = kind, a.events
	a.events++
	a.out.sendEvent(kind, v)
}

func (a *responsesAnswer) textEvent(kind string, v map[string]any) {
	v["item_id"], v["output_index"], v["content_index"] = messageID(a.round), 0, 0
	a.sendEvent(kind, v)
}

func (a *responsesAnswer) encodeWhole(o *outcome) any { return a.encodeObject(o) }

func (a *responsesAnswer) beginStream() {
	for _, kind := range []string{"response.created", "response.in_progress"} {
		a.sendEvent(kind, map[string]any{"response": a.encodeObject(&outcome{status: statusInProgress})})
	}
}

func (a *responsesAnswer) streamText(piece string) {
	if !a.open {
		a.sendEvent("response.output_item.added", map[string]any{
			"output_index": 0, "item": messageItem(a.round, statusInProgress),
		})
		a.textEvent("response.content_part.added", map[string]any{"part": textPart("")})
	}
	a.textEvent("response.output_text.delta", map[string]any{"delta": piece, "logprobs": []any{}})
}

func (a *responsesAnswer) endStream(o *outcome) {
	index := 0
	if a.open {
		a.textEvent("response.output_text.done", map[string]any{"text": o.text, "logprobs": []any{}})
		a.textEvent("response.content_part.done", map[string]any{"part": textPart(o.text)})
		a.sendEvent("response.output_item.done", map[string]any{
			"output_index": 0, "item": messageItem(a.round, statusCompleted, textPart(o.text)),
		})
		index++
	}
	for i := range o.calls {
		call, arguments := &o.calls[i], argumentsOf(&o.calls[i])
		done := a.callItem(call, statusCompleted, arguments)
		id := done["id"]
		a.sendEvent("response.output_item.added", map[string]any{
			"output_index": index, "item": a.callItem(call, statusInProgress, ""),
		})
		a.sendEvent("response.function_call_arguments.delta", map[string]any{
			"item_id": id, "output_index": index, "delta": arguments,
		})
		a.sendEvent("response.function_call_arguments.done", map[string]any{
			"item_id": id, "output_index": index, "name": done["name"], "arguments": arguments,
		})
		a.sendEvent("response.output_item.done", map[string]any{"output_index": index, "item": done})
		index++
	}
	a.sendEvent("response."+o.status, map[string]any{"response": a.encodeObject(o)})
}

func (a *responsesAnswer) streamError(why *wireError) {
	if !a.begun {
		a.sendEvent("error", map[string]any{"code": why.code, "message": why.message, "param": orNull(why.param)})
		return
	}
	a.sendEvent("response.failed", map[string]any{"response": a.encodeFailed(&outcome{status: statusFailed},
		why.message)})
}

// storedRound finds the round of a response.
func (s *server) storedRound(r *http.Request, scope regie.TokenScope) (store.RoundView, error) {
	unknown := regie.Errorf(regie.CodeNotFound, "there is no response %s here", truncate(r.PathValue("id")))
	_, round, ok := unpackID(responsePrefix, r.PathValue("id"))
	if !ok {
		return store.RoundView{}, unknown
	}
	return s.findRound(r.Context(), round, scope, unknown)
}

// removeResponse serves DELETE /v1/responses/{id}: the session of a client goes with it.
func (s *server) removeResponse(w http.ResponseWriter, r *http.Request) {
	view, err := s.storedRound(r, regie.ScopeAdmin)
	if err == nil && view.Session.Origin != regie.OriginAPISession {
		err = regie.Errorf(regie.CodeConflict, "the session %s was not started here: remove it where it was", view.Session.ID)
	}
	if err == nil {
		_, err = s.Service.Sessions.Remove(r.Context(), dispatch.RemoveRequest{SessionID: view.Session.ID, By: "api"})
	}
	if err != nil {
		s.writeError(w, r, err)
		return
	}
	writeJSON(w, map[string]any{"id": r.PathValue("id"), "object": "response", "deleted": true})
}

// serveResponse serves GET /v1/responses/{id}: the stored answer.
func (s *server) serveResponse(w http.ResponseWriter, r *http.Request) {
	view, err := s.storedRound(r, regie.ScopeRead)
	if err != nil {
		s.writeError(w, r, err)
		return
	}
	var held approval.Policy
	_ = json.Unmarshal(view.Round.Policy, &held) // ours
	a := &responsesAnswer{answer: &answer{
		agentRequest: &agentRequest{
			model: view.Session.Agent, tools: held.ClientTools,
		},
		round: view.Round.ID, created: view.Round.StartedAt.Unix(),
	}}
	a.sent.SessionID = view.Session.ID
	result := storedOutcome(&view)
	if result.status == statusFailed {
		writeJSON(w, a.encodeFailed(&result, view.Round.EndNote.String()))
		return
	}
	writeJSON(w, a.encodeObject(&result))
}
