package app_test

import (
	"database/sql"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/httpapi"
	"github.com/regie-run/regie/internal/store/sqlite"
)

// asked waits until a session has waited so many times for an answer.
func (h *house) asked(session string, times int) {
	h.t.Helper()
	id, err := regie.ParseID(session)
	fatal(h.t, err)
	h.until(h.engine.Control(), id, func(e *regie.Event) bool {
		if e.Type == regie.EventSessionState && strings.Contains(string(e.Body), `"state":"`+string(regie.SessionWaitingResponse)+`"`) {
			times--
		}
		return times == 0
	})
}

// TestAnswerOfAnotherQuestion: an answer to the question of a session that is said again answers no
// later one.
func TestAnswerOfAnotherQuestion(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ key, body string }{
		"by its key": {"k", `{"choices":["a"]}`},
	} {
		t.Run(name, func(t *testing.T) {
			first := call{"q", "session__ask_user", `{"question":"Which?","options":["a","b"]}`}
			second := call{"r", "session__ask_user", `{"question":"Delete all?","options":["a","b"]}`}
			h := newHarness(t, newModel(t, replyWith("", first), replyWith("", second), replyWith("Done."))).serve("127.0.0.1:0")
			session := h.session()
			at, key := "/api/v1/sessions/"+session, func(*http.Request) {}
			if c.key != "" {
				key = carrying("Idempotency-Key", c.key)
			}
			open := func() (out httpapi.InboxPage) {
				h.json("GET", "/api/v1/inbox?session="+session, "", 200, &out)
				return out
			}
			h.json("POST", at+"/messages", `{"content":"go"}`, 202, nil)
			h.asked(session, 1)
			was := open().Questions[0].ID
			h.json("POST", at+"/responses", c.body, 200, nil, key)
			h.asked(session, 2)
			h.json("POST", at+"/responses", c.body, 200, nil, key)
			now := open().Questions
			if len(now) != 1 || now[0].ID == was {
				t.Fatalf("the second question was answered unseen: %v", now)
			}
			h.json("POST", at+"/responses", `{"choices":["b"]}`, 200, nil, carrying("Idempotency-Key", "another"))
			h.json("POST", at+"/responses", c.body, 200, nil, key)
		})
	}
}

// TestFailedKeys: what failed does not use up its key.
func TestFailedKeys(t *testing.T) {
	t.Parallel()
	h := newHarness(t, newModel(t)).serve("127.0.0.1:0")
	key, body := carrying("Idempotency-Key", "k"), `{"workspace_id":"`+h.placeAt(h.root).ID.String()+`"`
	h.json("POST", "/api/v1/sessions", body+`,"agent":"nobody"}`, 404, nil, key)
	h.json("POST", "/api/v1/sessions", body+`}`, 201, nil, key)
}

// TestKeyOfADeadServer: what a server was at work on when it died says at once that nobody knows,
// and not for a minute that somebody is at work; what can be done again is.
func TestKeyOfADeadServer(t *testing.T) {
	for name, open := range map[string]func(t *testing.T) (*harness, *sql.DB){
		"alone": func(t *testing.T) (*harness, *sql.DB) {
			t.Helper()
			b := newHarness(t, newModel(t))
			b.alters()
			db, err := sql.Open("sqlite", "file:"+filepath.Join(b.settings.DataDir, sqlite.FileName)+"?_pragma=busy_timeout(2000)")
			fatal(t, err)
			t.Cleanup(func() { _ = db.Close() })
			return b, db
		},
		"on a shared database": func(t *testing.T) (*harness, *sql.DB) {
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
