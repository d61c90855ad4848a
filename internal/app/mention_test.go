package app_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
)

// naming is a request that says what a person typed.
func (b *harness) naming(session regie.ID, typed string, policy approval.Policy) dispatch.RunRequest {
	in := b.request(policy)
	in.SessionID, in.Text, in.Segments, in.Dialect = session, typed, chat.Mentions(typed, app.Look(b.root)), b.spoken
	if in.Segments != nil {
		in.Text = ""
	}
	return in
}

// outcomes are what became of what a round's messages name.
func outcomes(view store.RoundView) (out []string) {
	for _, e := range view.Enrichments {
		for i := range e.Calls {
			c := &e.Calls[i]
			line := e.Message.System.Queries[i].Text + " " + string(c.State)
			if c.Error != nil {
				line += " " + string(c.Error.Code)
			}
			out = append(out, line)
		}
	}
	return out
}

// answers are the steps of a model that says each of the texts once.
func answers(spoken regie.Dialect, texts ...string) *[]string {
	out := make([]string, len(texts))
	for i, text := range texts {
		if out[i] = text; spoken == regie.DialectJSON {
			out[i] = `{"pre_text":"` + text + `"}`
		}
	}
	return &out
}

// TestMentions has a message name files and directories: each is read before the model is asked,
// stands behind the message as the person's own words, and has a row that says what became of it
// (decision 46).
func TestMentions(t *testing.T) {
	t.Parallel()
	for _, spoken := range []regie.Dialect{regie.DialectNative, regie.DialectJSON} {
		t.Run(string(spoken), func(t *testing.T) {
			replies := *answers(spoken, "I have read it.", "Still there.")
			m := newModel(t, replyWith(replies[0]), replyWith(replies[1]))
			b := newUndoing(t, m, map[string]string{"docs/plan.md": "HORTENSIA\n", "a b.txt": "ROSES\n", ".env": "KEY=CANARY\n", "bin": "\x00\x01\x02", "big.txt": strings.Repeat("line of text\n", 40_000)})
			b.spoken = spoken
			conn, session := b.conn, regie.NewID()
			run := b.send(conn, b.naming(session, `compare @docs/plan.md, @"a b.txt" and @.env in @docs; @bin @big.txt, not me@example.org or @someone`, approval.Policy{}))
			view := b.await(conn, run)
			expect(t, view, regie.EndAnswered)
			want := "@docs/plan.md SUCCEEDED\n@\"a b.txt\" SUCCEEDED\n@.env FAILED PATH_PROTECTED\n@docs/ SUCCEEDED\n@bin SUCCEEDED\n@big.txt SUCCEEDED"
			if got := strings.Join(outcomes(view), "\n"); got != want {
				t.Errorf("what became of them:\n%s", got)
			}
			sent := m.last()
			for text, is := range map[string]bool{
				`compare @docs/plan.md, @\"a b.txt\" and @.env in @docs/; @bin @big.txt, not me@example.org or @someone`: true,
				"HORTENSIA": true, "ROSES": true, "CANARY": false, `"role":"tool"`: false, "[DATA_ADDED] What the person named": true, "PATH_PROTECTED": true,
			} {
				if strings.Contains(sent, text) != is {
					t.Errorf("the prompt holds %q: %v\n%s", text, !is, sent)
				}
			}
			if data := view.Enrichments[0]; b.positionOf(b.conn, run.SessionID, data.Message.ID) <= b.positionOf(b.conn, run.SessionID, view.Trigger.ID) || data.Message.System.Enriches != view.Trigger.ID || data.Message.Author.Kind != regie.AuthorComponent {
				t.Errorf("its data is %+v", data.Message)
			}
			for _, c := range view.Enrichments[0].Calls {
				if c.Origin != regie.OriginUser || c.ProviderCallID != "" || c.Kind != regie.KindQuery {
					t.Errorf("a query of the person's is %+v", c)
				}
			}
			if n := view.Round.Counters; n.Total != 1 || n.Queries != 0 {
				t.Errorf("it counts for limits: %+v", n)
			}
			again := b.send(conn, b.naming(session, "and now?", approval.Policy{}))
			if view := b.await(conn, again); len(view.Enrichments) != 0 || !strings.Contains(m.last(), "HORTENSIA") {
				t.Errorf("the next run has read %+v", view.Enrichments)
			}
			b.exact(run.RoundID)
			b.exact(again.RoundID)
			b.verified()
		})
	}
}

// TestNamedWhileBusy names files in messages that steer a run and that wait for its end: each is
// read when its message is admitted, as the file is then, and one that is gone by then is told and
// stops nothing.
func TestNamedWhileBusy(t *testing.T) {
	t.Parallel()
	h := hold(replyWith("I look.", call{"l", "files__list_files", `{}`}))
	m := newModel(t, h.serve(0), replyWith("So be it."), replyWith("And that."))
	b := newUndoing(t, m, map[string]string{"steer.txt": "before\n", "gone.txt": "here\n", "stays.txt": "STAYS\n"})
	session := regie.NewID()
	run, err := b.conn.Submit(t.Context(), b.naming(session, "go", everything))
	fatal(t, err)
	<-h.asked
	for _, row := range []struct {
		typed string
		when  store.WhenBusy
	}{{"mind @steer.txt", store.Steer}, {"then @gone.txt and @stays.txt", store.Queue}} {
		in := b.naming(session, row.typed, everything)
		in.WhenBusy = row.when
		if accepted, err := b.conn.Submit(t.Context(), in); err != nil || !accepted.Pending {
			t.Fatalf("%+v, %v", accepted, err)
		}
	}
	b.put("steer.txt", "AFTER\n")
	fatal(t, os.Remove(filepath.Join(b.root, "gone.txt")))
	close(h.free)
	first := b.await(b.conn, run)
	if got := outcomes(first); len(got) != 1 || got[0] != "@steer.txt SUCCEEDED" || !strings.Contains(first.Enrichments[0].Calls[0].Result, "AFTER") {
		t.Errorf("the message that steered: %v", got)
	}
	if n := first.Round.Counters; n.Total != 2 || n.Queries != 1 {
		t.Errorf("counters %+v", n)
	}
	rounds, err := b.conn.List(t.Context(), store.RoundFilter{Limit: 1})
	if err != nil || rounds[0].Text != "then @gone.txt and @stays.txt" {
		t.Fatalf("%+v, %v", rounds, err)
	}
	next := b.await(b.conn, dispatch.Run{SessionID: session, RoundID: rounds[0].Round.ID})
	if got := strings.Join(outcomes(next), ", "); next.Round.End != regie.EndAnswered || got != "@gone.txt FAILED FILE_NOT_FOUND, @stays.txt SUCCEEDED" {
		t.Errorf("%s; the message that waited: %s", next.Round.End, got)
	}
	if attempts := next.Exchanges[0].Attempts; len(attempts) != 0 {
		t.Errorf("a call is booked that was never made: %+v", attempts)
	}
	if sent := m.last(); !strings.Contains(sent, "STAYS") || !strings.Contains(sent, "FILE_NOT_FOUND") {
		t.Errorf("the model is told %s", sent)
	}
	b.exact(run.RoundID)
	b.exact(next.Round.ID)
	b.verified()
}

// TestNamedSeen: what a person named the model has seen, so an edit of it is judged by what it held
// then.
func TestNamedSeen(t *testing.T) {
	t.Parallel()
	m := newModel(t, replyWith("Read."), replyWith("I write.", over("w", "a.txt", "mine\n")), replyWith("It was changed."))
	b := newUndoing(t, m, map[string]string{"a.txt": "one\n"})
	session := regie.NewID()
	first, err := b.conn.Submit(t.Context(), b.naming(session, "see @a.txt", everything))
	fatal(t, err)
	b.await(b.conn, first)
	b.put("a.txt", "somebody else's\n")
	second, err := b.conn.Submit(t.Context(), b.naming(session, "overwrite it", everything))
	fatal(t, err)
	if view := b.await(b.conn, second); view.Exchanges[0].Calls[0].Error == nil || view.Exchanges[0].Calls[0].Error.Code != regie.CodeFileChanged {
		t.Errorf("%+v", view.Exchanges[0].Calls[0])
	}
}
