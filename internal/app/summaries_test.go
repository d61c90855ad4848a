package app_test

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

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

// crowded is a job whose prompt passes its budget after some files, and the bed that it runs in.
func crowded(t *testing.T, summarise func(int) http.HandlerFunc) (*reader, *bed) {
	t.Helper()
	m := newReader(t, reads(8), summarise)
	b := library(t, m, config.Budget{ContextTokens: 6000})
	notes(t, b.root, 8, 4000)
	return m, b
}

func (b *bed) begin(conn *app.Conn) dispatch.Run {
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
	h := hold(says("Summary of the notes." + gist))
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

// TestStoppedSummary says each stopping word while a summary is being made (decision 6).
func TestStoppedSummary(t *testing.T) {
	t.Parallel()
	t.Run("interrupt", func(t *testing.T) {
		h := hold(says("Summary." + gist))
		_, b := crowded(t, h.serve)
		conn := b.observed()
		run := b.begin(conn)
		<-h.asked
		fatal(t, conn.Interrupt(t.Context(), run.RoundID))
		view := b.await(conn, run)
		if last := view.Exchanges[len(view.Exchanges)-1]; view.Round.End != regie.EndInterrupted || last.Purpose != regie.PurposeSummary || last.State != regie.ExchangeFailed {
			t.Errorf("%s in exchange %+v", view.Round.End, last.Exchange)
		}
		close(h.free) // the session is usable, and summarises now
		if view = b.job(conn, run.SessionID, "Go on."); view.Round.End != regie.EndAnswered {
			t.Errorf("then %s %s", view.Round.End, view.Round.EndNote)
		}
	})
	t.Run("pause", func(t *testing.T) {
		h := hold(says("Summary." + gist))
		m, b := crowded(t, h.serve)
		conn := b.observed()
		run := b.begin(conn)
		<-h.asked
		fatal(t, conn.Pause(t.Context(), run.RoundID))
		fatal(t, conn.Close())
		close(h.free)
		conn = b.observed() // another process goes on with the summary
		resumeTogether(t, conn, run)
		view := b.await(conn, run)
		steps, summaries, _ := purposes(view)
		if view.Round.End != regie.EndAnswered || steps != 9 || summaries == 0 {
			t.Errorf("%s: %d steps, %d summaries", view.Round.End, steps, summaries)
		}
		rebuilt(t, conn, m, view)
	})
}

// TestSummaryWaitsForNetwork loses the model's server in the middle of a summary: a run that waits
// for the network makes it later (decision 42), one that does not ends as in any model call, and
// nothing is left out for that.
func TestSummaryWaitsForNetwork(t *testing.T) {
	t.Parallel()
	broken := func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	for _, waits := range []bool{true, false} {
		t.Run(fmt.Sprint("waits ", waits), func(t *testing.T) {
			tries := 0
			m, b := crowded(t, func(int) http.HandlerFunc {
				if tries++; tries <= 3 {
					return broken
				}
				return says("Summary." + gist)
			})
			if !waits {
				m.summarise = func(int) http.HandlerFunc { return refuses(http.StatusUnauthorized, `{}`) }
			}
			b.settings.File.Automation.NetworkRetry = 20 * time.Millisecond
			conn := b.observed()
			request := b.request(everything)
			request.Text, request.Policy.WaitNetwork = theJob, waits
			run := b.send(conn, request)
			view := b.await(conn, run)
			_, summaries, _ := purposes(view)
			if waits && (view.Round.End != regie.EndAnswered || summaries == 0) || !waits && view.Round.End != regie.EndProviderError {
				t.Errorf("%s %s: %d summaries", view.Round.End, view.Round.EndNote, summaries)
			}
			for _, a := range m.all {
				if strings.Contains(string(a.body), "left out to make room; read it again") {
					t.Error("results were dropped because the network was away")
				}
			}
			rebuilt(t, conn, m, view)
		})
	}
}

// TestGuardSeesHidden: what a summary hides is still known to the guard against circles, in the
// process that made it and in the next.
func TestGuardSeesHidden(t *testing.T) {
	t.Parallel()
	step := func(n int) http.HandlerFunc {
		switch {
		case n == 1, n == 9, n == 11:
			// a call that fails for good, again when it is hidden, and again in another process
			return says("", call{fmt.Sprint("f", n), "files__read_file", `{"path":"../../etc/passwd"}`})
		case n < 9:
			return says("", call{fmt.Sprint("c", n), "files__read_file", fmt.Sprintf(`{"path":"note%d.md"}`, n)})
		default:
			return says("", call{fmt.Sprint("w", n), "files__write_file", `{"path":"x","content":"x"}`})
		}
	}
	m, b := crowded(t, func(int) http.HandlerFunc { return says("Summary of the notes." + gist) })
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

// TestPromptMismatch: where what is there is not what was sent, that is said.
func TestPromptMismatch(t *testing.T) {
	t.Parallel()
	_, b := crowded(t, func(int) http.HandlerFunc { return says("Summary of the notes." + gist) })
	conn := b.observed()
	view := b.job(conn, regie.ID{}, theJob)
	fatal(t, conn.Close())
	fatal(t, b.raw("UPDATE exchanges SET request = randomblob(32) WHERE number = 2"))
	conn = b.observed()
	if p, err := conn.Prompt(t.Context(), dispatch.PromptRequest{RoundID: view.Round.ID, Exchange: 3}); err != nil || !p.Exact() {
		t.Errorf("exact %v: %v", p.Exact(), err)
	}
	p, err := conn.Prompt(t.Context(), dispatch.PromptRequest{RoundID: view.Round.ID, Exchange: 2})
	if err != nil || p.Exact() || p.Request != view.Exchanges[1].Request {
		t.Errorf("exact %v: %v", p.Exact(), err)
	}
}

// TestSummariesInJSON passes the budget with a model that only writes objects, and with one that
// cannot summarise in them.
func TestSummariesInJSON(t *testing.T) {
	t.Parallel()
	for name, summarise := range map[string]func(int) http.HandlerFunc{
		"an object": func(n int) http.HandlerFunc {
			return says(fmt.Sprintf(`{"pre_text":"Summary %d of the notes.%s"}`, n, gist))
		},
		"a text": func(n int) http.HandlerFunc { return says(fmt.Sprintf("Summary %d of the notes."+gist, n)) },
		"a text and commands": func(int) http.HandlerFunc {
			return says(`{"pre_text":"Summary of the notes.` + gist + `","data_commands":[{"type":"files.list_files","params":{}}]}`)
		},
		"commands": func(int) http.HandlerFunc {
			return says(`{"pre_text":" ","data_commands":[{"type":"files.list_files","params":{}}]}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			m, b := crowded(t, summarise)
			b.spoken = regie.DialectJSON
			m.answer = func(step int) http.HandlerFunc {
				if step > 8 {
					return says(`{"pre_text":"All of it is read."}`)
				}
				return says(fmt.Sprintf(`{"pre_text":"I read on.","data_commands":[{"type":"files.read_file","params":{"path":"note%d.md"}}]}`, step))
			}
			conn := b.observed()
			view := b.job(conn, regie.ID{}, theJob)
			steps, summaries, failed := purposes(view)
			if view.Round.End != regie.EndAnswered || steps != 9 || summaries+failed == 0 || (failed > 0) != strings.HasSuffix(name, "commands") {
				t.Errorf("%s %s: %d steps, %d summaries, %d failed", view.Round.End, view.Round.EndNote, steps, summaries, failed)
			}
			for i, a := range m.all {
				if i > 0 && m.all[i-1].summary && failed == 0 && (!strings.Contains(a.messages[1].Content, "Summary ") || strings.Contains(a.messages[1].Content, "pre_text")) {
					t.Errorf("prompt %d begins with %q", i, a.messages[1].Content)
				}
			}
			m.prefixes(summaries + failed)
			rebuilt(t, conn, m, view)
		})
	}
}

// batches is a model that reads so many files in each reply, and then answers.
func batches(replies, files int) func(int) http.HandlerFunc {
	return func(step int) http.HandlerFunc {
		if step > replies {
			return says("All of it is read.")
		}
		var calls []call
		for i := range files {
			calls = append(calls, call{fmt.Sprintf("c%d_%d", step, i), "files__read_file", fmt.Sprintf(`{"path":"note%d.md"}`, (step-1)*files+i+1)})
		}
		return says("", calls...)
	}
}

// TestCrowded brings with each reply most of what there is room for: the results before are left
// out and no model is asked for a summary that the next batch would make useless. The newest ones
// are all there each time.
func TestCrowded(t *testing.T) {
	t.Parallel()
	const replies, files = 8, 4
	m := newReader(t, batches(replies, files), func(n int) http.HandlerFunc { return says(fmt.Sprintf("Summary %d.", n)) })
	b := library(t, m, config.Budget{ContextTokens: 20_000})
	notes(t, b.root, replies*files, 13_000)
	conn := b.observed()
	view := b.job(conn, regie.ID{}, theJob)
	steps, summaries, failed := purposes(view)
	if view.Round.End != regie.EndAnswered || steps != replies+1 || summaries != 0 || failed != replies-1 {
		t.Errorf("%s %s: %d steps, %d summaries, %d times without a model", view.Round.End, view.Round.EndNote, steps, summaries, failed)
	}
	for i, a := range m.all {
		if len(a.body)/4 > 20_000 {
			t.Errorf("prompt %d has about %d tokens", i, len(a.body)/4)
		}
		for n := range files {
			if mine := fmt.Sprintf("note %d says", (i-1)*files+n+1); i > 0 && !bytes.Contains(a.body, []byte(mine)) {
				t.Errorf("%q is not in prompt %d, where it is new", mine, i)
			}
		}
	}
	m.prefixes(failed)
	rebuilt(t, conn, m, view)
}

// TestSummaryCounts: the tokens of a summary are tokens of its run, and end it where they pass its
// limit.
func TestSummaryCounts(t *testing.T) {
	t.Parallel()
	after, most := 0, int64(0)
	for _, limited := range []bool{false, true} {
		m, b := crowded(t, func(int) http.HandlerFunc { return says("Summary of the notes." + gist) })
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

// TestFarAbove comes with a long thread to a model with a small window: each request for a summary
// fits it, and after some of them the rest goes without a model.
func TestFarAbove(t *testing.T) {
	t.Parallel()
	m := newReader(t, func(int) http.HandlerFunc { return says(strings.Repeat("The garden wants water. ", 150)) },
		func(n int) http.HandlerFunc { return says(fmt.Sprintf("Summary %d.", n) + gist) })
	b := library(t, m, config.Budget{})
	conn := b.observed()
	view := b.job(conn, regie.ID{}, theJob)
	for range 40 {
		view = b.job(conn, view.Session.ID, "And then?")
	}
	fatal(t, conn.Close())
	b.settings.File.Budget.ModelWindow = 6600
	m.window, m.all, m.sums = 6600*4, nil, 0
	conn = b.observed()
	view = b.job(conn, view.Session.ID, "And in the end?")
	_, summaries, failed := purposes(view)
	if view.Round.End != regie.EndAnswered || summaries != 4 || m.sums != 4 || failed != 1 {
		t.Errorf("%s %s: %d summaries of %d, %d times without a model", view.Round.End, view.Round.EndNote, summaries, m.sums, failed)
	}
	rebuilt(t, conn, m, view)
}
