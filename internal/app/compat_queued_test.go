package app_test

import (
	"errors"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/compat"
	"github.com/regie-run/regie/internal/dispatch"
)

// TestCompatQueued sends a second message while the first one is answered: each answer is that of
// its own round, by an id that the session goes on from.
func TestCompatQueued(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ path, ask, goOn, id string }{
		"chat":      {passChat, `{"model":"main","messages":[{"role":"user","content":"hi"}]`, ``, `chatcmpl-[0-9a-f-]{36}`},
		"responses": {"/v1/responses", `{"model":"main","input":"hi"`, `{"model":"main","input":"go on","previous_response_id":"ID"}`, `resp_[0-9A-Za-z_-]+`},
		"messages":  {passMessages, `{"model":"main","max_tokens":9,"messages":[{"role":"user","content":"hi"}]`, ``, `msg_[0-9a-f-]{36}`},
	} {
		for kind, end := range map[string]string{"": `}`, ", streamed": `,"stream":true}`} {
			t.Run(name+kind, func(t *testing.T) {
				asked, free := make(chan struct{}), make(chan struct{})
				m := newModel(t, replyWith("First."), func(w http.ResponseWriter, r *http.Request) {
					close(asked)
					<-free
					replyWith("Second.")(w, r)
				}, replyWith("Third."), replyWith("Fourth."))
				d := newHarness(t, m).door()
				begun := d.do(http.MethodPost, c.path, c.ask+`}`, nil)
				session := header{compat.HeaderSession: begun.header.Get(compat.HeaderSession)}
				answers := make(chan answered, 2)
				go func() { answers <- d.do(http.MethodPost, c.path, c.ask+end, session) }()
				<-asked
				go func() { answers <- d.do(http.MethodPost, c.path, c.ask+end, session) }()
				d.pending(begun)
				close(free)
				ids := map[string]string{}
				for range 2 {
					out := <-answers
					said := regexp.MustCompile(`Second|Third`).FindString(out.body)
					of := slices.Compact(regexp.MustCompile(c.id).FindAllString(out.body, -1))
					if out.status != http.StatusOK || said == "" || len(of) != 1 {
						t.Fatalf("%d %v %s", out.status, of, out.body)
					}
					ids[said] = of[0]
				}
				if ids["Second"] == ids["Third"] || len(ids) != 2 {
					t.Errorf("two rounds answered, and their answers are %v", ids)
				}
				if c.goOn == "" {
					return
				}
				next := d.do(http.MethodPost, c.path, strings.ReplaceAll(c.goOn, "ID", ids["Third"]), nil)
				if next.status != http.StatusOK || !strings.Contains(next.body, "Fourth.") {
					t.Errorf("the last answer cannot be continued: %d %s", next.status, next.body)
				}
				stale := d.do(http.MethodPost, c.path, strings.ReplaceAll(c.goOn, "ID", ids["Second"]), nil)
				if stale.status != http.StatusConflict {
					t.Errorf("one before the last was continued: %d %s", stale.status, stale.body)
				}
				if c.path == "/v1/responses" && !strings.Contains(stale.Error.Message, "/api/v1/sessions/"+session[compat.HeaderSession]+"/fork") {
					t.Errorf("it is not said how to branch: %s", stale.body)
				}
			})
		}
	}
}

// pending waits until a message of an answer's session waits for its turn.
func (d *door) pending(of answered) {
	d.t.Helper()
	id, err := regie.ParseID(of.header.Get(compat.HeaderSession))
	fatal(d.t, err)
	there := errors.New("there")
	err = d.conn.Events(d.t.Context(), id, 0, func(item dispatch.Item) error {
		if item.Event != nil && item.Event.Type == regie.EventMessagePending {
			return there
		}
		return nil
	})
	if !errors.Is(err, there) {
		d.t.Fatal(err)
	}
}

// TestCompatKeyGoesOn repeats a request that goes on from an answer, with its key, when the session
// has moved on by it: it is told again, under the same id.
func TestCompatKeyGoesOn(t *testing.T) {
	t.Parallel()
	for _, c := range places {
		m := newModel(t, replyWith("First."), replyWith("Second."), replyWith("Third."))
		d := newHarness(t, m).door()
		first := d.do(http.MethodPost, c.path, c.begin, nil)
		body := strings.ReplaceAll(c.goOn, "ID", first.ID)
		second := d.do(http.MethodPost, c.path, body, header{"Idempotency-Key": "k"})
		for range 2 {
			again := d.do(http.MethodPost, c.path, body, header{"Idempotency-Key": "k"})
			if again.status != http.StatusOK || again.ID != second.ID || again.header.Get("Idempotent-Replayed") != "true" || !strings.Contains(again.body, "Second.") {
				t.Errorf("%s: %d %v %s, not %s", c.path, again.status, again.header, again.body, second.body)
			}
			d.do(http.MethodPost, c.path, strings.ReplaceAll(c.goOn, "ID", second.ID), nil)
		}
		if m.count() != 3 {
			t.Errorf("%s: the model was asked %d times", c.path, m.count())
		}
	}
}
