package app_test

import (
	"strings"
	"testing"

	"github.com/regie-run/regie"
)

// TestForkAndUndoNeedRead: what a token may not read it may not copy, and is not told of by an
// undo, nor by the stream of its own message.
func TestForkAndUndoNeedRead(t *testing.T) {
	t.Parallel()
	h := newHarness(t, newModel(t, replyWith("A secret answer."))).serve("127.0.0.1:0")
	session := "/api/v1/sessions/" + h.session()
	h.read("POST", session+"/messages", `{"content":"a secret question"}`, nil, carrying("Accept", "text/event-stream"))
	_, chatter := h.with("chatter", regie.ScopeChat)
	_, mcp := h.with("both", regie.ScopeChat, regie.ScopeMCP)
	_, admin := h.with("admin", regie.ScopeChat, regie.ScopeAdmin)
	_, reader := h.with("reader", regie.ScopeChat, regie.ScopeRead)
	h.json("POST", session+"/fork", `{}`, 403, nil, chatter)
	h.json("POST", session+"/fork", `{}`, 403, nil, mcp)
	h.json("POST", "/api/v1/automations", `{"from_session":"`+strings.TrimPrefix(session, "/api/v1/sessions/")+`"}`, 403, nil, chatter)
	h.json("POST", session+"/undo", `{}`, 403, nil, chatter)
	h.json("POST", session+"/undo", `{"force":true}`, 403, nil, admin)
	h.json("POST", session+"/messages", `{"content":"x"}`, 403, nil, chatter, carrying("Accept", "text/event-stream"))
	h.json("POST", session+"/messages?format=openai", `{"content":"x"}`, 403, nil, chatter)
	h.json("POST", session+"/fork", `{}`, 201, nil, reader)
}
