package app_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/httpapi"
)

// twice says a write with a key and later the same again: the second answer is the first one's, to the byte.
func (h *house) twice(method, path, body, key string, between func()) {
	h.t.Helper()
	var said [2]string
	for i := range said {
		response := h.ask(method, path, body, carrying("Idempotency-Key", key)) //nolint:bodyclose // at the end of the test
		data, err := io.ReadAll(response.Body)
		if err != nil || response.StatusCode >= 300 {
			h.t.Fatalf("%s %s: %d %s (%v)", method, path, response.StatusCode, data, err)
		}
		if again := response.Header.Get("Idempotent-Replayed") == "true"; again != (i > 0) {
			h.t.Errorf("%s %s, time %d: replayed is %v", method, path, i+1, again)
		}
		said[i] = fmt.Sprint(response.StatusCode, string(data))
		if i == 0 && between != nil {
			between()
		}
	}
	if said[0] != said[1] {
		h.t.Errorf("%s %s: %s, then %s", method, path, said[0], said[1])
	}
}

// TestWritesOnce says writes of all kinds twice, with something between that the second must not undo.
func TestWritesOnce(t *testing.T) {
	t.Parallel()
	h := newBed(t, newModel(t, says("One."), says("Two."))).serve("127.0.0.1:0")
	session := h.session()
	at := "/api/v1/sessions/" + session
	h.twice("PATCH", at, `{"name":"A"}`, "name", func() { h.json("PATCH", at, `{"name":"B"}`, 200, nil) })
	if name := h.view(session).Name; name != "B" {
		t.Errorf("an old name came back: %s", name)
	}
	h.twice("PATCH", "/api/v1/settings/limits", `{"chat":{"max_action_retries":7}}`, "limits", func() {
		h.json("PATCH", "/api/v1/settings/limits", `{"chat":{"max_action_retries":8}}`, 200, nil)
	})
	var limits dispatch.LimitSettings
	if h.json("GET", "/api/v1/settings/limits", "", 200, &limits); limits.Chat.Retries.Value != 8 {
		t.Errorf("an old limit came back: %+v", limits.Chat.Retries)
	}
	h.twice("POST", at+"/messages", `{"content":"go"}`, "message", nil)
	h.twice("POST", at+"/fork", `{}`, "fork", nil)
	h.works(session)
	for _, word := range []string{"interrupt", "pause", "resume", "close"} {
		h.twice("POST", at+"/"+word, "", word, nil)
	}
	h.twice("POST", at+"/stop", "", "stop", nil)
	h.twice("DELETE", at, "", "remove", nil)
}

// asked waits until a session has waited so many times for an answer.
func (h *house) asked(session string, times int) {
	h.t.Helper()
	id, err := regie.ParseID(session)
	if err != nil {
		h.t.Fatal(err)
	}
	h.until(h.engine, id, func(e *regie.Event) bool {
		if e.Type == regie.EventSessionState && strings.Contains(string(e.Body), `"state":"`+string(regie.SessionWaitingResponse)+`"`) {
			times--
		}
		return times == 0
	})
}

// TestOldInterrupt: an interrupt that is said again under its key ends no later round.
func TestOldInterrupt(t *testing.T) {
	t.Parallel()
	ask := call{"q", "session__ask_user", `{"question":"Which?","options":["a","b"]}`}
	h := newBed(t, newModel(t, says("", ask), says("", ask), says("Done."))).serve("127.0.0.1:0") //nolint:gocritic // it asks the same again
	session := h.session()
	at, key := "/api/v1/sessions/"+session, carrying("Idempotency-Key", "k")
	h.json("POST", at+"/messages", `{"content":"go"}`, 202, nil)
	h.asked(session, 1)
	h.json("POST", at+"/interrupt", "", 200, nil, key)
	h.json("POST", at+"/messages", `{"content":"go"}`, 202, nil)
	h.asked(session, 2)
	h.json("POST", at+"/interrupt", "", 200, nil, key)
	if state := h.view(session).State; state != regie.SessionWaitingResponse {
		t.Errorf("the next round was ended by an old interrupt: %s", state)
	}
}

// TestAnswerOfAnotherQuestion: an answer to the question of a session that is said again answers no later one.
func TestAnswerOfAnotherQuestion(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ key, body string }{
		"by its key":    {"k", `{"choices":["a"]}`},
		"by its own id": {"", `{"choices":["a"],"request_id":"mine"}`},
	} {
		t.Run(name, func(t *testing.T) {
			first := call{"q", "session__ask_user", `{"question":"Which?","options":["a","b"]}`}
			second := call{"r", "session__ask_user", `{"question":"Delete all?","options":["a","b"]}`}
			h := newBed(t, newModel(t, says("", first), says("", second), says("Done."))).serve("127.0.0.1:0")
			session := h.session()
			at, key := "/api/v1/sessions/"+session, func(*http.Request) {}
			if c.key != "" {
				key = carrying("Idempotency-Key", c.key)
			}
			open := func() (out httpapi.Page[regie.Question]) {
				h.json("GET", "/api/v1/questions?session="+session, "", 200, &out)
				return out
			}
			h.json("POST", at+"/messages", `{"content":"go"}`, 202, nil)
			h.asked(session, 1)
			was := open().Items[0].ID
			h.json("POST", at+"/responses", c.body, 200, nil, key)
			h.asked(session, 2)
			h.json("POST", at+"/responses", c.body, 200, nil, key)
			now := open().Items
			if len(now) != 1 || now[0].ID == was {
				t.Fatalf("the second question was answered unseen: %v", now)
			}
			h.json("POST", at+"/responses", `{"choices":["b"],"request_id":"another"}`, 200, nil)
			h.json("POST", at+"/responses", c.body, 200, nil, key)
		})
	}
}

// TestFailedKeys: what failed does not use up its key; what is shown once is not shown again.
func TestFailedKeys(t *testing.T) {
	t.Parallel()
	h := newBed(t, newModel(t, says("One."))).serve("127.0.0.1:0")
	var place regie.Workspace
	h.json("POST", "/api/v1/workspaces", fmt.Sprintf(`{"path":%q}`, h.root), 200, &place)
	key := carrying("Idempotency-Key", "k")
	body := `{"workspace_id":"` + place.ID.String() + `"`
	h.json("POST", "/api/v1/sessions", body+`,"agent":"nobody"}`, 404, nil, key)
	h.json("POST", "/api/v1/sessions", body+`}`, 201, nil, key)
	for _, path := range []string{"/api/v1/tokens", "/api/v1/setup-links"} {
		content := ""
		if path == "/api/v1/tokens" {
			content = `{"name":"t","scopes":["read"]}`
		}
		response := h.ask("POST", path, content, key) //nolint:bodyclose // at the end of the test
		data, _ := io.ReadAll(response.Body)
		if response.StatusCode != 201 {
			t.Errorf("%s: %d %s", path, response.StatusCode, data)
		}
		h.json("POST", path, content, 409, nil, key)
	}
}
