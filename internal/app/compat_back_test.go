package app_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/compat"
	"github.com/regie-run/regie/internal/control"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/engine"
)

// burns is a model that is not there as long as down is set, and answers "Here." else.
func burns(down *atomic.Bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if down.Load() {
			http.Error(w, `{"error":{"message":"on fire"}}`, http.StatusServiceUnavailable)
			return
		}
		says("Here.")(w, r)
	}
}

// burning is a door whose model burns, behind what it says first.
func burning(t *testing.T, first ...http.HandlerFunc) (d *door, m *model, down *atomic.Bool) {
	t.Helper()
	down = new(atomic.Bool)
	m = newModel(t, append(first, slices.Repeat([]http.HandlerFunc{burns(down)}, 4)...)...)
	b := newBed(t, m)
	return b.doorOf(b.impatient()), m, down
}

// places are the formats in which a request says which answer it goes on from.
var places = map[string]struct{ path, begin, goOn string }{
	"responses": {"/v1/responses", `{"model":"main","input":"begin"}`, `{"model":"main","input":"the message","previous_response_id":"ID"}`},
	"messages": {
		passMessages, `{"model":"main","max_tokens":9,"messages":[{"role":"user","content":"begin"}]}`,
		`{"model":"main","max_tokens":9,"messages":[{"role":"user","content":"the message"}],"thread":{"type":"continue","previous_message_id":"ID"}}`,
	},
}

// TestCompatMovedOn: a request whose provider refused it goes on from its answer and from no other
// place.
func TestCompatMovedOn(t *testing.T) {
	t.Parallel()
	for name, c := range places {
		t.Run(name, func(t *testing.T) {
			d, m, down := burning(t)
			first := d.do(http.MethodPost, c.path, c.begin, nil)
			body := strings.ReplaceAll(c.goOn, "ID", first.ID)
			down.Store(true)
			if busy := d.do(http.MethodPost, c.path, body, nil); busy.status != http.StatusServiceUnavailable && busy.status != 529 {
				t.Fatalf("%d %s", busy.status, busy.body)
			}
			down.Store(false)
			d.chat(map[string]any{"messages": []any{message("user", "somebody else's")}}, header{compat.HeaderSession: first.header.Get(compat.HeaderSession)})
			before := m.count()
			again := d.do(http.MethodPost, c.path, body, nil)
			if again.status != http.StatusConflict || again.header.Get("X-Should-Retry") != "false" || m.count() != before {
				t.Errorf("%d %v %s, asked %d times", again.status, again.header, again.body, m.count()-before)
			}
		})
	}
}

// TestCompatTriedOnce: however often a request that says which answer it goes on from is sent while
// the provider refuses it, its message stands in the conversation once.
func TestCompatTriedOnce(t *testing.T) {
	t.Parallel()
	for name, c := range places {
		t.Run(name, func(t *testing.T) {
			d, m, down := burning(t)
			first := d.do(http.MethodPost, c.path, c.begin, nil)
			d.triedOnce(m, down, c.path, strings.ReplaceAll(c.goOn, "ID", first.ID))
		})
	}
}

// triedOnce sends a request while its model is not there, and when it is.
func (d *door) triedOnce(m *model, down *atomic.Bool, path, body string) {
	d.t.Helper()
	for range 3 {
		down.Store(true)
		out := d.do(http.MethodPost, path, body, nil)
		if out.status != http.StatusServiceUnavailable && out.status != 529 {
			d.t.Fatalf("%d %s", out.status, out.body)
		}
		down.Store(false)
		// else the provider is not asked for a while
		d.chat(map[string]any{"messages": []any{message("user", "another session")}}, nil)
	}
	before := m.count()
	if out := d.do(http.MethodPost, path, body, nil); out.status != http.StatusOK || !strings.Contains(out.body, "Here.") {
		d.t.Errorf("%d %v %s", out.status, out.header, out.body)
	}
	if said := strings.Count(m.last(), "the message"); said != 1 || m.count() != before+1 {
		d.t.Errorf("asked %d times, and its message stands %d times", m.count()-before, said)
	}
}

// TestCompatTriedTakenBack: where what was refused is taken out of the conversation already, as by
// a server that died before the message was stored again, the request is tried all the same.
func TestCompatTriedTakenBack(t *testing.T) {
	t.Parallel()
	for name, c := range places {
		t.Run(name, func(t *testing.T) {
			d, m, down := burning(t)
			first := d.do(http.MethodPost, c.path, c.begin, nil)
			body := strings.ReplaceAll(c.goOn, "ID", first.ID)
			down.Store(true)
			d.do(http.MethodPost, c.path, body, nil)
			down.Store(false)
			refused := d.session(first).History[1].ID
			if _, err := d.conn.Undo(t.Context(), dispatch.UndoRequest{Target: refused, Chat: true}); err != nil {
				t.Fatal(err)
			}
			out := d.do(http.MethodPost, c.path, body, nil)
			if out.status != http.StatusOK || strings.Count(m.last(), "the message") != 1 || len(d.session(first).Undos) != 1 {
				t.Errorf("%d %v %s", out.status, out.header, out.body)
			}
		})
	}
}

// TestCompatTriedAfterCalls: a message that left calls of the client's without results settled
// them, which is not taken back. It may be said again.
func TestCompatTriedAfterCalls(t *testing.T) {
	t.Parallel()
	d, _, down := burning(t, says("", call{"w", "client__get_weather", `{"place":"Bern"}`}))
	first := d.do(http.MethodPost, "/v1/responses", `{"model":"main","input":"weather?","tools":[{"type":"function","name":"get_weather","parameters":{"type":"object"}}]}`, nil)
	body := `{"model":"main","input":"the message","previous_response_id":"` + first.ID + `"}`
	down.Store(true)
	if busy := d.do(http.MethodPost, "/v1/responses", body, nil); busy.status != http.StatusServiceUnavailable {
		t.Errorf("%d %v %s", busy.status, busy.header, busy.body)
	}
	down.Store(false)
	if out := d.do(http.MethodPost, "/v1/responses", body, nil); out.status != http.StatusOK || !strings.Contains(out.body, "Here.") {
		t.Errorf("%d %s", out.status, out.body)
	}
}

// TestCompatKeyStoppedServer is the same of a whole server, with all that it ends first.
func TestCompatKeyStoppedServer(t *testing.T) {
	t.Parallel()
	for name, c := range places {
		t.Run(name, func(t *testing.T) {
			asked := make(chan struct{}, 8)
			h := newBed(t, newModel(t, func(_ http.ResponseWriter, r *http.Request) {
				asked <- struct{}{}
				<-r.Context().Done()
			})).serve("127.0.0.1:0")
			ended := make(chan error, 1)
			go func() {
				<-asked
				ended <- h.engine.Close()
			}()
			status, body, of := h.keyed(c.path, "k", c.begin)
			if err := <-ended; err != nil {
				t.Error(err)
			}
			if status != http.StatusServiceUnavailable || of.Get("X-Should-Retry") != "true" || of.Get("Retry-After") == "" {
				t.Errorf("%d %v %s", status, of, body)
			}
		})
	}
}

// TestCompatTriedByToken: a token that opens nothing but this endpoint, of one workspace, has what
// was refused taken back as well.
func TestCompatTriedByToken(t *testing.T) {
	t.Parallel()
	var down atomic.Bool
	m := newModel(t, burns(&down), burns(&down)) //nolint:gocritic // it says the same again
	h := newBed(t, m).serveOn(app.ServeConfig{Addr: "127.0.0.1:0"}, func(o *app.Options) {
		o.TuneEngine = func(c *engine.Config) { c.Backoff = func(int, time.Duration) time.Duration { return 0 } }
	})
	place := h.placeAt(h.root)
	made := h.add(control.TokenRequest{Name: "x", Scopes: []regie.TokenScope{regie.ScopeCompletions}, Workspaces: []regie.ID{place.ID}})
	for name, c := range places {
		_, begun, _ := h.keyed(c.path, name, c.begin, bearer(made.Secret))
		var first struct{ ID string }
		fatal(t, json.Unmarshal([]byte(begun), &first))
		body := strings.ReplaceAll(c.goOn, "ID", first.ID)
		down.Store(true)
		if status, said, _ := h.keyed(c.path, "refused "+name, body, bearer(made.Secret)); status < http.StatusInternalServerError {
			t.Errorf("%d %s", status, said)
		}
		down.Store(false)
		for range 2 {
			if status, said, _ := h.keyed(c.path, "again "+name, body, bearer(made.Secret)); status != http.StatusOK || strings.Count(m.last(), "the message") != 1 {
				t.Errorf("%d %s", status, said)
			}
		}
	}
}
