package app_test

import (
	"database/sql"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/httpapi"
	"github.com/regie-run/regie/internal/store/sqlite"
)

// twice says a write with a key and later the same again: the second answer is the first one's, to
// the byte.
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

// TestWritesOnce says writes of all kinds twice, with something between that the second must not
// undo.
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
	streamed := h.ask("POST", at+"/messages", `{"content":"go"}`, carrying("Idempotency-Key", "message"), carrying("Accept", "text/event-stream"))
	if _ = streamed.Body.Close(); streamed.StatusCode != 200 || streamed.Header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("as a stream: %d %v", streamed.StatusCode, streamed.Header)
	}
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
	h.until(h.engine.Control(), id, func(e *regie.Event) bool {
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

// TestAnswerOfAnotherQuestion: an answer to the question of a session that is said again answers no
// later one.
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

// TestKeyOfADeadServer: what a server was at work on when it died says at once that nobody knows,
// and not for a minute that somebody is at work; what can be done again is.
func TestKeyOfADeadServer(t *testing.T) {
	for name, open := range map[string]func(t *testing.T) (*bed, *sql.DB){
		"alone": func(t *testing.T) (*bed, *sql.DB) {
			t.Helper()
			b := newBed(t, newModel(t))
			b.alters()
			db, err := sql.Open("sqlite", "file:"+filepath.Join(b.settings.DataDir, sqlite.FileName)+"?_pragma=busy_timeout(2000)")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = db.Close() })
			return b, db
		},
		"on a shared database": func(t *testing.T) (*bed, *sql.DB) {
			t.Helper()
			return shared(t, newModel(t))
		},
	} {
		t.Run(name, func(t *testing.T) {
			b, db := open(t)
			h := b.serve("127.0.0.1:0")
			session, key := "/api/v1/sessions/"+h.session(), carrying("Idempotency-Key", "k")
			h.json("PATCH", session, `{"name":"A"}`, 200, nil, key)
			h.json("POST", session+"/fork", `{}`, 201, nil, key)
			// So it stands there when the process dies between a write and the note of its answer.
			if _, err := db.ExecContext(t.Context(), "UPDATE request_keys SET status = 0"); err != nil {
				t.Fatal(err)
			}
			var said struct{ Code regie.Code }
			if h.json("PATCH", session, `{"name":"A"}`, 409, &said, key); said.Code != regie.CodeKeyInUse {
				t.Errorf("while the process lives: %s", said.Code)
			}
			next := h.again()
			if next.json("PATCH", session, `{"name":"A"}`, 409, &said, key); said.Code != regie.CodeOutcomeUnknown {
				t.Errorf("once it has ended: %s", said.Code)
			}
			next.json("POST", session+"/fork", `{}`, 201, nil, key)
		})
	}
}

// TestTheSameAtOnce says one write eight times at once under one key: it is done once, and all have
// the answer of that.
func TestTheSameAtOnce(t *testing.T) {
	h := newBed(t, newModel(t, says("Gone."))).serve("127.0.0.1:0")
	for _, c := range []struct{ method, path, body string }{{"DELETE", "", ""}, {"PATCH", "", `{"name":"A"}`}, {"POST", "/fork", `{}`}, {"POST", "/messages", `{"content":"go"}`}} {
		path := "/api/v1/sessions/" + h.session() + c.path
		said := make([]string, 8)
		var group sync.WaitGroup
		for i := range said {
			group.Go(func() {
				response := h.ask(c.method, path, c.body, carrying("Idempotency-Key", "k"))
				data, err := io.ReadAll(response.Body)
				_ = response.Body.Close()
				if said[i] = fmt.Sprint(response.StatusCode, string(data)); err != nil || response.StatusCode >= 300 {
					t.Errorf("%s %s: %s (%v)", c.method, path, said[i], err)
				}
			})
		}
		group.Wait()
		slices.Sort(said)
		if said = slices.Compact(said); len(said) != 1 {
			t.Errorf("%s %s is answered differently: %q", c.method, path, said)
		}
	}
}
