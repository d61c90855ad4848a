package app_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
)

// held is a summary that is asked for and not answered until the test says so.
type held struct {
	asked, free chan struct{}
	then        http.HandlerFunc
}

func hold(then http.HandlerFunc) *held {
	return &held{asked: make(chan struct{}, 10), free: make(chan struct{}), then: then}
}

func (h *held) serve(int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		h.asked <- struct{}{}
		select {
		case <-h.free:
			h.then(w, r)
		case <-r.Context().Done():
		}
	}
}

// crowded is a job with a prompt over its budget after some files, and its harness.
func crowded(t *testing.T, summarise func(int) http.HandlerFunc) (*reader, *harness) {
	t.Helper()
	m := newReader(t, reads(8), summarise)
	b := library(t, m, config.Budget{ContextTokens: 6000})
	notes(t, b.root, 8, 4000)
	return m, b
}

func (b *harness) begin(conn *app.Conn) dispatch.Run {
	b.t.Helper()
	request := b.request(everything)
	request.Text = theJob
	run := b.send(conn, request)
	return run
}

// TestSteeredSummary sends a message while a summary is being made: it stands behind the summary in
// the very next prompt.
func TestSteeredSummary(t *testing.T) {
	t.Parallel()
	h := hold(replyWith("Summary of the notes." + gist))
	m, b := crowded(t, h.serve)
	conn := b.observed()
	run := b.begin(conn)
	<-h.asked
	request := b.request(everything)
	request.SessionID, request.Text, request.WhenBusy = run.SessionID, "And look for ROSES.", store.Steer
	if accepted, err := conn.Submit(t.Context(), request); err != nil || !accepted.Pending {
		t.Fatalf("%+v %v", accepted, err)
	}
	close(h.free)
	view := b.await(conn, run)
	at := slices.IndexFunc(m.all, func(a asked) bool { return a.summary }) + 1
	if next := m.all[at].messages; view.Round.End != regie.EndAnswered || next[len(next)-1].Content != "And look for ROSES." {
		t.Errorf("%s; the prompt behind the summary ends with %q", view.Round.End, next[len(next)-1].Content)
	}
	last := m.all[len(m.all)-1]
	if !strings.Contains(string(last.body), "ROSES") || !strings.Contains(string(last.body), "HORTENSIA") {
		t.Error("what the person asked is gone from the last prompt")
	}
	rebuilt(t, conn, m, view)
}

// TestGuardSeesHidden: what a summary hides is still known to the guard against circles, in the
// process that made it and in the next.
func TestGuardSeesHidden(t *testing.T) {
	t.Parallel()
	step := func(n int) http.HandlerFunc {
		switch {
		case n == 1, n == 9, n == 11:
			// a call that fails for good, again when it is hidden, and again in another process
			return replyWith("", call{fmt.Sprint("f", n), "files__read_file", `{"path":"../../etc/passwd"}`})
		case n < 9:
			return replyWith("", call{fmt.Sprint("c", n), "files__read_file", fmt.Sprintf(`{"path":"note%d.md"}`, n)})
		default:
			return replyWith("", call{fmt.Sprint("w", n), "files__write_file", `{"path":"x","content":"x"}`})
		}
	}
	m, b := crowded(t, func(int) http.HandlerFunc { return replyWith("Summary of the notes." + gist) })
	m.answer = step
	conn := b.observed()
	view := b.job(conn, regie.ID{}, theJob)
	var got []string
	for i := range view.Exchanges {
		for _, c := range view.Exchanges[i].Calls {
			if c.NotRun != "" {
				got = append(got, string(c.NotRun))
			}
		}
	}
	if view.Round.End != regie.EndEarlyStop || !slices.Equal(got, []string{"REPEATED_FAILURE", "REPEATED_FAILURE"}) {
		t.Errorf("%s: %v", view.Round.End, got)
	}
}

// TestSummaryCounts: the tokens of a summary are tokens of its run, and end it where they pass its
// limit.
func TestSummaryCounts(t *testing.T) {
	t.Parallel()
	after, most := 0, int64(0)
	for _, limited := range []bool{false, true} {
		m, b := crowded(t, func(int) http.HandlerFunc { return replyWith("Summary of the notes." + gist) })
		conn := b.tuned(regie.Limits{Tokens: most}, nil)
		view := b.job(conn, regie.ID{}, theJob)
		fatal(t, conn.Close())
		if limited {
			if view.Round.End != regie.EndLimit || len(m.all) != after {
				t.Errorf("%s after %d replies, the limit is reached with the summary, which is number %d", view.Round.End, len(m.all), after)
			}
			continue
		}
		after = slices.IndexFunc(m.all, func(a asked) bool { return a.summary }) + 1
		if view.Round.End != regie.EndAnswered || after == 0 {
			t.Fatalf("%s, summarised after %d", view.Round.End, after)
		}
		for _, e := range view.Exchanges[:after] {
			most += e.Usage.Input + e.Usage.Output
		}
		most -= 10 // the summary passes it, whatever the times in the results are
	}
}
