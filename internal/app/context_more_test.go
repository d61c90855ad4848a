package app_test

import (
	"bytes"
	"database/sql"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/store/sqlite"
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
	run, err := conn.Submit(b.t.Context(), request)
	if err != nil {
		b.t.Fatal(err)
	}
	return run
}

// TestSteeredSummary sends a message while a summary is being made: it stands behind the summary in
// the very next prompt.
func TestSteeredSummary(t *testing.T) {
	t.Parallel()
	h := hold(says("Summary of the notes." + gist))
	m, b := crowded(t, h.serve)
	conn := b.observed()
	defer conn.Close()
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
		defer conn.Close()
		run := b.begin(conn)
		<-h.asked
		if err := conn.Interrupt(t.Context(), run.RoundID); err != nil {
			t.Fatal(err)
		}
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
		if err := conn.Pause(t.Context(), run.RoundID); err != nil {
			t.Fatal(err)
		}
		if err := conn.Close(); err != nil {
			t.Fatal(err)
		}
		close(h.free)
		conn = b.observed() // another process goes on with the summary
		defer conn.Close()
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
			defer conn.Close()
			request := b.request(everything)
			request.Text, request.Policy.WaitNetwork = theJob, waits
			run, err := conn.Submit(t.Context(), request)
			if err != nil {
				t.Fatal(err)
			}
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
	defer conn.Close()
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

// TestPromptNow shows what would be sent now, with its parts.
func TestPromptNow(t *testing.T) {
	t.Parallel()
	m, b := crowded(t, func(int) http.HandlerFunc { return says("Summary of the notes." + gist) })
	conn := b.observed()
	defer conn.Close()
	view := b.job(conn, regie.ID{}, theJob)
	p, err := conn.Prompt(t.Context(), dispatch.PromptRequest{SessionID: view.Session.ID})
	if err != nil {
		t.Fatal(err)
	}
	sum, kinds := 0, map[string]int{}
	for _, part := range p.Parts {
		sum += part.Bytes
		kinds[part.Kind]++
	}
	if sum != len(p.Body) || kinds["level1"] < 5 || kinds["tools"] != 1 || kinds["message"] < 3 || p.Tokens != (len(p.Body)+2)/4 || p.Budget != 6000 || p.Over {
		t.Errorf("%d of %d bytes, %v, %d tokens, budget %d, over %v", sum, len(p.Body), kinds, p.Tokens, p.Budget, p.Over)
	}
	// The next run's first prompt begins with it.
	b.job(conn, view.Session.ID, "Thank you.")
	if next := m.all[len(m.all)-1].body; !bytes.HasPrefix(next, thread(p.Body)) {
		t.Error("what was sent next begins otherwise")
	}
	// By the call that it proposed, and where nothing is stored.
	call := view.Exchanges[0].Calls[0]
	first, err := conn.Prompt(t.Context(), dispatch.PromptRequest{CallID: call.ID})
	if err != nil || first.Exchange != 1 || string(first.Body) != string(m.all[0].body) {
		t.Errorf("the call's prompt is that of exchange %d (%v)", first.Exchange, err)
	}
	for name, in := range map[string]dispatch.PromptRequest{
		"NOT_FOUND":   {RoundID: view.Round.ID, Exchange: 99},
		"BAD_REQUEST": {RoundID: view.Round.ID},
	} {
		if _, err := conn.Prompt(t.Context(), in); string(regie.CodeOf(err)) != name {
			t.Errorf("%+v: %v", in, err)
		}
	}
}

// TestPromptMismatch: where what is there is not what was sent, that is said.
func TestPromptMismatch(t *testing.T) {
	t.Parallel()
	_, b := crowded(t, func(int) http.HandlerFunc { return says("Summary of the notes." + gist) })
	b.alters()
	conn := b.observed()
	view := b.job(conn, regie.ID{}, theJob)
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", "file:"+filepath.Join(b.settings.DataDir, sqlite.FileName))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), "UPDATE exchanges SET request = randomblob(32) WHERE number = 2"); err != nil {
		t.Fatal(err)
	}
	conn = b.observed()
	defer conn.Close()
	if p, err := conn.Prompt(t.Context(), dispatch.PromptRequest{RoundID: view.Round.ID, Exchange: 3}); err != nil || !p.Exact() {
		t.Errorf("exact %v: %v", p.Exact(), err)
	}
	p, err := conn.Prompt(t.Context(), dispatch.PromptRequest{RoundID: view.Round.ID, Exchange: 2})
	if err != nil || p.Exact() || p.Request != view.Exchanges[1].Request {
		t.Errorf("exact %v: %v", p.Exact(), err)
	}
}

// TestReplayedSummary replays a run that was summarised: it is summarised at the same places, from
// the recording alone.
func TestReplayedSummary(t *testing.T) {
	t.Parallel()
	m, b := crowded(t, func(n int) http.HandlerFunc { return says(fmt.Sprintf("Summary %d of the notes."+gist, n)) })
	tape := filepath.Join(t.TempDir(), "tape.jsonl")
	b.settings.Record = tape
	conn := b.observed()
	first := b.job(conn, regie.ID{}, theJob)
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	m.server.Close()
	b.settings.Record, b.settings.Replay, b.settings.Provider, b.settings.Model = "", tape, config.ProviderReplay, "scripted"
	conn = b.observed()
	defer conn.Close()
	second := b.job(conn, regie.ID{}, theJob)
	for i, view := range []store.RoundView{first, second} {
		steps, summaries, failed := purposes(view)
		if view.Round.End != regie.EndAnswered || steps != 9 || summaries == 0 || failed != 0 {
			t.Errorf("run %d: %s %s: %d steps, %d summaries, %d failed", i, view.Round.End, view.Round.EndNote, steps, summaries, failed)
		}
	}
	for i := range min(len(first.Exchanges), len(second.Exchanges)) {
		if a, b := first.Exchanges[i].Purpose, second.Exchanges[i].Purpose; a != b {
			t.Errorf("exchange %d is a %q, recorded was a %q", i+1, b, a)
		}
	}
}

// TestForkedSummary forks a session that was summarised, and one whose results were dropped: the
// fork's model is shown the same bytes.
func TestForkedSummary(t *testing.T) {
	t.Parallel()
	for name, summarise := range map[string]func(int) http.HandlerFunc{
		"summarised": func(n int) http.HandlerFunc { return says(fmt.Sprintf("Summary %d of the notes."+gist, n)) },
		"dropped":    func(int) http.HandlerFunc { return refuses(http.StatusBadRequest, `{}`) },
	} {
		t.Run(name, func(t *testing.T) {
			m, b := crowded(t, summarise)
			conn := b.observed()
			defer conn.Close()
			view := b.job(conn, regie.ID{}, theJob)
			last := m.all[len(m.all)-1].body
			fork, err := conn.Fork(t.Context(), dispatch.ForkRequest{From: view.Session.ID, SessionID: regie.NewID()})
			if err != nil {
				t.Fatal(err)
			}
			view = b.job(conn, fork.Session.ID, "Thank you.")
			if next := m.all[len(m.all)-1].body; !bytes.HasPrefix(next, thread(last)) {
				t.Errorf("the fork's prompt begins otherwise:\n%.1500s", next)
			}
			rebuilt(t, conn, m, view)
		})
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
			defer conn.Close()
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
