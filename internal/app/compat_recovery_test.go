package app_test

import (
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/regie-run/regie/internal/compat"
)

// burns is a model that is not there as long as down is set, and answers "Here." else.
func burns(down *atomic.Bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if down.Load() {
			http.Error(w, `{"error":{"message":"on fire"}}`, http.StatusServiceUnavailable)
			return
		}
		replyWith("Here.")(w, r)
	}
}

// burning is a door whose model burns, behind what it says first.
func burning(t *testing.T, first ...http.HandlerFunc) (d *door, m *model, down *atomic.Bool) {
	t.Helper()
	down = new(atomic.Bool)
	m = newModel(t, append(first, slices.Repeat([]http.HandlerFunc{burns(down)}, 4)...)...)
	b := newHarness(t, m)
	return b.doorOf(b.impatient()), m, down
}

// places are the formats in which a request says which answer it goes on from.
var places = map[string]struct{ path, begin, goOn string }{
	"responses": {"/v1/responses", `{"model":"main","input":"begin"}`, `{"model":"main","input":"the message","previous_response_id":"ID"}`},
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
