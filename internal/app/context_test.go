package app_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/engine"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/provider/providertest/strict"
	"github.com/regie-run/regie/internal/store"
)

// asked is a request that a reader was sent.
type asked struct {
	body     []byte
	summary  bool
	messages []struct {
		Role, Content string
		ToolCalls     []any `json:"tool_calls"`
	}
}

// reader is a scripted model server over real HTTP: it reads one file after another, as its job
// says, and then answers. It goes by what it has sent, because its prompts forget. How it
// summarises is the test's to say.
type reader struct {
	t         *testing.T
	server    *httptest.Server
	window    int // bytes; a larger prompt is refused; 0 takes any
	answer    func(step int) http.HandlerFunc
	summarise func(n int) http.HandlerFunc

	mu    sync.Mutex
	all   []asked
	steps int // replies that are no summaries
	sums  int
}

func newReader(t *testing.T, answer, summarise func(n int) http.HandlerFunc) *reader {
	t.Helper()
	m := &reader{t: t, answer: answer, summarise: summarise}
	m.server = httptest.NewServer(m)
	t.Cleanup(m.server.Close)
	return m
}

func (m *reader) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	if err := strict.Chat(body); err != nil {
		m.t.Errorf("a prompt that no strict server takes: %v\n%.2000s", err, body)
	}
	a := asked{body: body}
	if err := json.Unmarshal(body, &struct{ Messages any }{&a.messages}); err != nil {
		m.t.Error(err)
		return
	}
	last := a.messages[len(a.messages)-1].Content
	a.summary = strings.Contains(last, provider.SummaryMark) || strings.Contains(last, provider.SummaryMarkFrench)
	m.mu.Lock()
	m.all = append(m.all, a)
	refused := m.window > 0 && len(body) > m.window
	var handler http.HandlerFunc
	switch {
	case refused:
		handler = refuses(http.StatusBadRequest, `{"error":{"message":"This model's maximum context length is 1 token","code":"context_length_exceeded"}}`)
	case a.summary:
		m.sums++
		handler = m.summarise(m.sums)
	default:
		m.steps++
		handler = m.answer(m.steps)
	}
	m.mu.Unlock()
	handler(w, r)
}

// notes is a workspace with files of some bytes each.
func notes(t *testing.T, root string, files, size int) {
	t.Helper()
	for i := range files {
		line := fmt.Sprintf("note %d says ", i+1)
		text := strings.Repeat(line+"something about the garden and the boiler.\n", size/(len(line)+45)+1)
		fatal(t, os.WriteFile(filepath.Join(root, fmt.Sprintf("note%d.md", i+1)), []byte(text), 0o600))
	}
}

// reads is a model that reads one file after another and then answers.
func reads(files int) func(int) http.HandlerFunc {
	return func(step int) http.HandlerFunc {
		if step > files {
			return replyWith("All of it is read.")
		}
		return replyWith(fmt.Sprintf("I read note %d.", step), call{fmt.Sprintf("c%d", step), "files__read_file", fmt.Sprintf(`{"path":"note%d.md"}`, step)})
	}
}

// gist is what makes a summary of the notes long enough to stand for them.
var gist = func() string {
	var b strings.Builder
	for bed := range 14 {
		fmt.Fprintf(&b, " Bed %d of the garden needs water and boiler %d a new valve.", bed, bed)
	}
	return b.String()
}()

const theJob = "Read every note, one by one, and say what the garden needs. Keep the word HORTENSIA in mind."

// library is a harness whose prompts are watched by every vendor's validator.
func library(t *testing.T, m *reader, budget config.Budget) *harness {
	t.Helper()
	b := &harness{t: t, root: t.TempDir()}
	env := map[string]string{"REGIE_DATA_DIR": filepath.Join(t.TempDir(), "data"), "REGIE_BASE_URL": m.server.URL + "/v1", "REGIE_MODEL": "scripted"}
	var err error
	if b.settings, err = config.Load(func(name string) string { return env[name] }, config.Flags{}); err != nil {
		t.Fatal(err)
	}
	b.settings.File.Budget = budget
	return b
}

// observed attaches with limits that a long job needs.
func (b *harness) observed() *app.Conn { return b.tuned(regie.Limits{}, nil) }

// tuned is observed with a bound on the tokens of a run, where it has one, and with settings of the
// engine that are in no file.
func (b *harness) tuned(limits regie.Limits, tune func(*engine.Config)) *app.Conn {
	b.t.Helper()
	limits.Total, limits.Queries, limits.Retries, limits.FormatErrors, limits.CallsInReply = 100, 100, 3, 3, 20
	b.settings.File.Limits = config.Limits{Chat: limits, Automation: limits}
	return b.attach(app.Options{TuneEngine: tune})
}

func (b *harness) job(conn *app.Conn, session regie.ID, text string) store.RoundView {
	b.t.Helper()
	request := b.request(everything)
	request.Text, request.Dialect = text, b.spoken
	if !session.IsZero() {
		request.SessionID = session
	}
	run := b.send(conn, request)
	view := b.await(conn, run)
	if err := conn.Wait(b.t.Context(), run.RoundID); err != nil { // also for what the engine keeps of it
		b.t.Error(err)
	}
	return view
}

// rebuilt asserts that each stored model call is shown as it was sent (decision 14).
func rebuilt(t *testing.T, conn *app.Conn, m *reader, view store.RoundView) {
	t.Helper()
	for i := range view.Exchanges {
		x := &view.Exchanges[i]
		if x.Request.IsZero() || x.State == regie.ExchangeFailed && x.Purpose == regie.PurposeSummary {
			continue
		}
		p, err := conn.Prompt(t.Context(), dispatch.PromptRequest{RoundID: x.RoundID, Exchange: x.Number})
		if err != nil {
			t.Fatalf("exchange %d: %v", x.Number, err)
		}
		if !p.Exact() {
			t.Errorf("exchange %d (%s): these are not the bytes that were sent:\n%.3000s", x.Number, x.Purpose, p.Body)
		}
		sent := false
		for _, a := range m.all {
			sent = sent || bytes.Equal(a.body, p.Body)
		}
		if !sent {
			t.Errorf("exchange %d: the server never saw these bytes", x.Number)
		}
	}
}

// unnoticed asserts that nobody is told that a summary was asked for again (spec 3.4).
func unnoticed(t *testing.T, conn *app.Conn, view store.RoundView) {
	t.Helper()
	all := errors.New("all of them")
	err := conn.Events(t.Context(), view.Session.ID, 0, func(item dispatch.Item) error {
		if item.Event == nil {
			return nil
		}
		if item.Event.Type == regie.EventStreamReset {
			t.Errorf("somebody is told of a summary: %s", item.Event.Body)
		}
		if item.Event.Seq >= view.Head {
			return all
		}
		return nil
	})
	if !errors.Is(err, all) {
		t.Error(err)
	}
}

var guidance = regexp.MustCompile(`,\{"role":"user","content":"\[Guidance, not from the person\][^{]*$`)

// thread is a request without what is said behind the thread, which is another in each.
func thread(body []byte) []byte {
	if at := guidance.FindIndex(body); at != nil {
		return body[:at[0]]
	}
	return bytes.TrimSuffix(body, []byte("]}"))
}

// prefixes asserts that each prompt begins with the one before it, byte for byte, but behind a
// declared compaction.
func (m *reader) prefixes(compactions int) {
	m.t.Helper()
	breaks := 0
	var before []byte
	for i, a := range m.all {
		if a.summary {
			continue
		}
		body := thread(a.body)
		if before != nil && !bytes.HasPrefix(body, before) {
			breaks++
			if m.all[i-1].summary || bytes.Contains(body, []byte("is left out to make room")) || bytes.Contains(body, []byte("No summary could be made")) {
				before = body
				continue
			}
			m.t.Errorf("prompt %d does not begin with the one before it, and nothing was compacted", i)
		}
		before = body
	}
	if breaks != compactions {
		m.t.Errorf("%d prompts begin otherwise, %d compactions", breaks, compactions)
	}
}

func purposes(view store.RoundView) (steps, summaries, failed int) {
	for i := range view.Exchanges {
		switch x := &view.Exchanges[i]; {
		case x.Purpose != regie.PurposeSummary:
			steps++
		case x.State == regie.ExchangeFailed:
			failed++
		default:
			summaries++
		}
	}
	return steps, summaries, failed
}

// TestSummaries passes the budget several times over: older messages are summarised, the job stays
// word for word, and all of it can be read back.
func TestSummaries(t *testing.T) {
	t.Parallel()
	m := newReader(t, reads(14), func(n int) http.HandlerFunc {
		return replyWith(fmt.Sprintf("Summary %d: notes up to some number were read; the file note1.md is about the garden."+gist, n))
	})
	b := library(t, m, config.Budget{ContextTokens: 6000})
	notes(t, b.root, 14, 4000)
	conn := b.observed()
	view := b.job(conn, regie.ID{}, theJob)
	if view.Round.End != regie.EndAnswered {
		t.Fatalf("the run ended %s: %s", view.Round.End, view.Round.EndNote)
	}
	steps, summaries, failed := purposes(view)
	if steps != 15 || summaries < 3 || failed != 0 || view.Round.Counters.Total != 15 {
		t.Errorf("%d steps, %d summaries, %d failed; counters %+v", steps, summaries, failed, view.Round.Counters)
	}
	for i, a := range m.all {
		if len(a.body)/4 > 6000+1500 {
			t.Errorf("prompt %d has %d bytes", i, len(a.body))
		}
		if n := bytes.Count(a.body, []byte(theJob)); n != 1 {
			t.Errorf("the job stands %d times in prompt %d", n, i)
		}
		if a.summary || i == 0 || !m.all[i-1].summary {
			continue
		}
		first := a.messages[1].Content
		if !strings.HasPrefix(first, "[CONTEXT_SUMMARY] ") || !strings.Contains(first, "Summary ") || !strings.HasPrefix(a.messages[2].Content, "[ROUND_START] ") || !strings.HasSuffix(a.messages[2].Content, "\n"+theJob) {
			t.Errorf("prompt %d begins with %q, %q", i, first, a.messages[2].Content)
		}
	}
	m.prefixes(summaries)
	rebuilt(t, conn, m, view)
	// The person can still read all of it: every call is there with its result.
	for i := range view.Exchanges {
		for _, c := range view.Exchanges[i].Calls {
			if !strings.Contains(c.Result, "the garden and the boiler") {
				t.Errorf("the result of %s is gone", c.Arguments)
			}
		}
	}
	// A later run of the session begins where this one left off, in another process.
	fatal(t, conn.Close())
	conn = b.observed()
	m.answer = func(int) http.HandlerFunc { return replyWith("You are welcome.") }
	last := m.all[len(m.all)-1].body
	view = b.job(conn, view.Session.ID, "Thank you.")
	m.prefixes(summaries)
	if !bytes.HasPrefix(m.all[len(m.all)-1].body, thread(last)) {
		t.Error("the next run's prompt does not begin with the last one's")
	}
	rebuilt(t, conn, m, view)
}

// TestNoSummary passes the budget with a model that cannot summarise: the oldest results go first,
// and what is left out is stored.
func TestNoSummary(t *testing.T) {
	t.Parallel()
	for name, summarise := range map[string]func(int) http.HandlerFunc{
		"it is refused":     func(int) http.HandlerFunc { return refuses(http.StatusBadRequest, `{"error":{"message":"no"}}`) },
		"it is always busy": func(int) http.HandlerFunc { return refuses(http.StatusServiceUnavailable, `{}`) },
		"it goes on": func(int) http.HandlerFunc {
			return replyWith("I read the notes."+gist, call{"x", "files__list_files", `{}`})
		},
		"it calls only": func(int) http.HandlerFunc { return replyWith("", call{"x", "files__list_files", `{}`}) },
		"it breaks off": func(int) http.HandlerFunc {
			return func(w http.ResponseWriter, _ *http.Request) { chunk(w, map[string]any{"content": "Half"}) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newReader(t, reads(14), summarise)
			b := library(t, m, config.Budget{ContextTokens: 7900})
			notes(t, b.root, 14, 4000)
			conn := b.observed()
			view := b.job(conn, regie.ID{}, theJob)
			steps, summaries, failed := purposes(view)
			if view.Round.End != regie.EndAnswered || steps != 15 || summaries != 0 || failed < 2 {
				t.Fatalf("%s %s: %d steps, %d summaries, %d failed", view.Round.End, view.Round.EndNote, steps, summaries, failed)
			}
			m.prefixes(failed)
			last := m.all[len(m.all)-1]
			if !bytes.Contains(last.body, []byte("session__read_result, call_id")) || !bytes.Contains(last.body, []byte(theJob)) || len(last.body)/4 > 7500 {
				t.Errorf("the last prompt has %d bytes: %.1500s", len(last.body), last.body)
			}
			rebuilt(t, conn, m, view)
			unnoticed(t, conn, view)
			// What was left out is read again by its id.
			id := regexp.MustCompile(`call_id \\"([0-9a-f-]{36})`).FindSubmatch(last.body)
			if id == nil {
				t.Fatal("no id is named")
			}
			m.answer = func(step int) http.HandlerFunc {
				if step == 16 {
					return replyWith("", call{"again", "session__read_result", fmt.Sprintf(`{"call_id":%q}`, id[1])})
				}
				return replyWith("So it is.")
			}
			view = b.job(conn, view.Session.ID, "What did the first one say?")
			for i := range view.Exchanges {
				for _, c := range view.Exchanges[i].Calls {
					if !strings.Contains(c.Result, "note 1 says") {
						t.Errorf("it reads %.200q", c.Result)
					}
				}
			}
			if m.steps != 17 {
				t.Errorf("%d steps", m.steps)
			}
		})
	}
}

// TestTooLarge meets what no summary can help: a clear error after at most two tries. What a server
// refused is told in its own words.
func TestTooLarge(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("all of the garden ", 3000)
	huge := func(int) http.HandlerFunc {
		return replyWith("", call{"c", "files__list_files", fmt.Sprintf(`{"pattern":%q}`, long)})
	}
	for name, c := range map[string]struct {
		answer func(int) http.HandlerFunc
		budget config.Budget
		window int
		text   string
		asked  int
		want   []string
	}{
		"the message, as configured": {reads(0), config.Budget{ModelWindow: 8000}, 0, long, 0, []string{"shorten it", "of 6000"}},
		"the message, as refused":    {reads(0), config.Budget{}, 20_000, long, 1, []string{"maximum context length is 1 token"}},
		"the tools":                  {reads(0), config.Budget{ModelWindow: 1000}, 0, "Hello.", 0, nil},
		"the tools, as refused":      {reads(0), config.Budget{}, 2000, "Hello.", 1, []string{"maximum context length is 1 token"}},
		"the model's calls":          {huge, config.Budget{ModelWindow: 8000}, 0, "Look.", 1, []string{"smaller steps"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := newReader(t, c.answer, func(int) http.HandlerFunc { return replyWith("no") })
			m.window = c.window
			b := library(t, m, c.budget)
			conn := b.observed()
			view := b.job(conn, regie.ID{}, c.text)
			note := view.Round.EndNote.String()
			if view.Round.End != regie.EndProviderError || len(m.all) != c.asked {
				t.Errorf("%s %s after %d requests", view.Round.End, note, len(m.all))
			}
			for _, want := range c.want {
				if !strings.Contains(note, want) {
					t.Errorf("%q is not in %q", want, note)
				}
			}
			attempts := view.Exchanges[len(view.Exchanges)-1].Attempts
			if len(attempts) == 0 || attempts[len(attempts)-1].Code != regie.CodeContextTooLarge {
				t.Errorf("attempts %+v", attempts)
			}
			// The session is not lost: a message that fits is answered, where anything does.
			if c.text != long {
				return
			}
			m.answer = func(int) http.HandlerFunc { return replyWith("Hello.") }
			if view = b.job(conn, view.Session.ID, "Hello?"); view.Round.End != regie.EndAnswered {
				t.Errorf("then %s %s", view.Round.End, view.Round.EndNote)
			}
		})
	}
}

// TestRefusedPrompt meets a server whose window nobody told: what it refuses is made smaller.
func TestRefusedPrompt(t *testing.T) {
	t.Parallel()
	m := newReader(t, reads(12), func(n int) http.HandlerFunc { return replyWith(fmt.Sprintf("Summary %d of the notes."+gist, n)) })
	m.window = 24_000
	b := library(t, m, config.Budget{})
	notes(t, b.root, 12, 4000)
	conn := b.observed()
	view := b.job(conn, regie.ID{}, theJob)
	steps, summaries, failed := purposes(view)
	if view.Round.End != regie.EndAnswered || steps != 13 || summaries == 0 || failed != 0 {
		t.Errorf("%s %s: %d steps, %d summaries, %d failed", view.Round.End, view.Round.EndNote, steps, summaries, failed)
	}
	rebuilt(t, conn, m, view)
}
