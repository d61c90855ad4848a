package app_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
)

// payArgs are those of the bank's tool.
type payArgs struct {
	Amount int `json:"amount"`
}

// long is a time that no test lets pass.
const long = 10 * time.Minute

// useBank configures the server.
func (b *harness) useBank(k *bank, class string, wait time.Duration) {
	b.settings.File.MCPServers = map[string]config.MCPServer{"bank": k.settings(class, wait)}
	b.settings.File.Automation.NetworkRetry = 20 * time.Millisecond
}

// do submits a job in a session of its own and waits for its end.
func (b *harness) do(conn *app.Conn, policy approval.Policy) store.RoundView {
	b.t.Helper()
	run := b.startRun(conn, policy)
	return b.await(conn, run)
}

// offered are the tools of the bank in a request, with their descriptions.
func offered(t *testing.T, request string) map[string]string {
	t.Helper()
	var body struct {
		Tools []struct {
			Function struct{ Name, Description string }
		}
	}
	fatal(t, json.Unmarshal([]byte(request), &body))
	out := map[string]string{}
	for _, tl := range body.Tools {
		if name, ok := strings.CutPrefix(tl.Function.Name, "bank__"); ok {
			out[name] = tl.Function.Description
		}
	}
	return out
}

// comesToOffer does jobs until the model is offered a tool described so, however long the server
// takes to have it.
func (b *harness) comesToOffer(conn *app.Conn, m *model, tool, want string) {
	b.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); offered(b.t, m.last())[tool] != want; {
		if time.Now().After(deadline) {
			b.t.Fatalf("the model is offered %v", offered(b.t, m.last()))
		}
		b.do(conn, approval.Policy{OnApproval: approval.DenyAndGoOn})
	}
}

// missing is what a run told of tools that were away.
func missing(view store.RoundView) (out []regie.Missing) {
	for i := range view.Notices {
		if notice, ok := view.Notices[i].ToolNotice(); ok && notice.CallID.IsZero() {
			out = append(out, notice.Missing...)
		}
	}
	return out
}

// TestEngineWaitsForNoServer starts with a server that does not answer: at once, without its tools,
// and says so. They come when it does, for the runs that begin then.
func TestEngineWaitsForNoServer(t *testing.T) {
	t.Parallel()
	k := newBank(t)
	m := newModel(t, replyWith("", call{"a", "bank__pay", `{"amount":1}`}), replyWith("I cannot."))
	b := newHarness(t, m)
	b.useBank(k, "once", time.Millisecond)
	conn := b.connect()
	view := b.do(conn, everything)
	expect(t, view, regie.EndAnswered, "NOT_RUN OUT_OF_SCOPE")
	problem := view.Exchanges[0].Calls[0].Error
	if problem.Code != regie.CodeServerDown || !problem.Retryable || len(offered(t, m.last())) != 0 {
		t.Errorf("a call of what is away: %+v", problem)
	}
	if got := missing(view); len(got) != 1 || got[0].Toolkit != "bank" || !strings.Contains(got[0].Why, "has not answered yet") {
		t.Errorf("nobody is told: %+v", view.Notices)
	}
	if strings.Contains(m.last(), "has not answered yet\\n") {
		t.Errorf("the notice is part of the prompt")
	}
	k.open()
	b.comesToOffer(conn, m, "pay", "pays")
}

// crashed is a harness on the data directory as it would be found if this process had been killed
// now. Nothing may be written meanwhile.
func (b *harness) crashed() *harness {
	b.t.Helper()
	b.alters()
	out := *b
	out.settings.DataDir = filepath.Join(b.t.TempDir(), "found")
	fatal(b.t, os.Mkdir(out.settings.DataDir, 0o700))
	entries, err := os.ReadDir(b.settings.DataDir)
	fatal(b.t, err)
	for _, entry := range entries {
		if !entry.Type().IsRegular() {
			continue // the socket
		}
		data, err := os.ReadFile(filepath.Join(b.settings.DataDir, entry.Name()))
		if err == nil {
			err = os.WriteFile(filepath.Join(out.settings.DataDir, entry.Name()), data, 0o600)
		}
		fatal(b.t, err)
	}
	return &out
}

// cut has a run's call be cut by a crash, and returns what is found then.
func (b *harness) cut(k *bank) (*harness, dispatch.Run, string) {
	b.t.Helper()
	conn := b.connect()
	defer conn.Close()
	run := b.startRun(conn, everything)
	o := k.open()
	key := o.paying()
	found := b.crashed()
	o.kill() // and with it the call of the process that lives on
	for range o.lines {
	}
	fatal(b.t, conn.Interrupt(b.t.Context(), run.RoundID))
	return found, run, key
}

// TestCutCallWaitsForItsServer resumes a run whose call was cut by a crash, while the call's server
// is away: it is neither failed nor unknown for that, but waits, as rows, and is repeated under its
// key when the server is back.
func TestCutCallWaitsForItsServer(t *testing.T) {
	t.Parallel()
	k := newBank(t)
	m := newModel(t, replyWith("", call{"a", "bank__pay", `{"amount":1}`}), replyWith("Paid."))
	b := newHarness(t, m)
	b.useBank(k, "keyed", long)
	b, run, key := b.cut(k)

	conn := b.connect()
	k.started().say("exit")
	b.state(conn, run.SessionID, regie.SessionWaitingNetwork)
	fatal(t, conn.Close()) // and once more, over a restart
	conn = b.connect()
	defer conn.Close()
	fatal(t, conn.Resume(t.Context(), run.RoundID))
	o := k.open()
	if again := o.paying(); again != key {
		t.Errorf("it was repeated under %s, not %s", again, key)
	}
	o.say("paid")
	view := b.await(conn, run)
	expect(t, view, regie.EndAnswered, "SUCCEEDED")
	if c := view.Exchanges[0].Calls[0]; !c.Recovered || view.Round.Counters.Resumes > 1 || m.count() != 2 {
		t.Errorf("%+v after %d resumes", c, view.Round.Counters.Resumes)
	}
	waited := false
	for i := range view.Notices {
		notice, ok := view.Notices[i].ToolNotice()
		waited = waited || ok && notice.CallID == view.Exchanges[0].Calls[0].ID && strings.Contains(notice.Missing[0].Why, "closed for today")
	}
	if !waited {
		t.Errorf("nobody was told what it waited for: %+v", view.Notices)
	}
}

// TestCutCallOfNobodyKnows: a call that a crash cut is UNKNOWN where it may not be repeated, where
// its server is not configured any more, and where whoever waits for its server gives it up.
func TestCutCallOfNobodyKnows(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		class, why string
		removed    bool
		end        regie.RoundEnd
	}{
		"of once":             {"once", "the process ended while it ran", false, regie.EndAnswered},
		"of a removed server": {"keyed", "", true, regie.EndAnswered},
		"given up":            {"keyed", "", false, regie.EndInterrupted},
	} {
		t.Run(name, func(t *testing.T) {
			k := newBank(t)
			b := newHarness(t, newModel(t, replyWith("", call{"a", "bank__pay", `{"amount":1}`}), replyWith("I look.")))
			b.useBank(k, c.class, long)
			b, run, _ := b.cut(k)
			b.settings.File.Automation.NetworkRetry = long
			if c.removed {
				b.settings.File.MCPServers = nil
			}
			conn := b.connect()
			if !c.removed {
				k.started().say("exit")
			}
			if c.end == regie.EndInterrupted {
				b.state(conn, run.SessionID, regie.SessionWaitingNetwork)
				fatal(t, conn.Interrupt(t.Context(), run.RoundID))
			}
			view := b.await(conn, run)
			expect(t, view, c.end, "UNKNOWN")
			if got := view.Exchanges[0].Calls[0].Error.Message; !strings.Contains(got, c.why) {
				t.Errorf("it says %q", got)
			}
		})
	}
}

// TestApproveWithoutServer stores an answer with an engine that starts no server. What the next
// engine makes of the approved call follows from the server as it finds it: run, failed with why,
// or refused because it describes the tool in other words now.
func TestApproveWithoutServer(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		server string
		state  string
		code   regie.Code
	}{
		{"offer pays", "SUCCEEDED", ""},
		{"offer robs", "FAILED", regie.CodeToolChanged},
		{"exit", "FAILED", regie.CodeServerDown},
	} {
		t.Run(row.server, func(t *testing.T) {
			k := newBank(t)
			m := newModel(t, replyWith("", call{"a", "bank__pay", `{"amount":1}`}), replyWith("I see."))
			b := newHarness(t, m)
			b.useBank(k, "once", long)
			conn := b.connect()
			run := b.startRun(conn, approval.Policy{})
			k.open()
			asked := b.parked(conn, run.SessionID).Approvals[0]
			if review := asked.Reviews[0]; review.Tool != "bank.pay" || !strings.Contains(review.Preview.Diff, "1") {
				t.Errorf("the person sees %+v", review)
			}
			fatal(t, conn.Close())
			storing, err := app.Connect(t.Context(), app.Options{Config: b.settings, StoreOnly: true})
			fatal(t, err)
			edit := regie.Decision{CallID: asked.Reviews[0].CallID, Answer: regie.AnswerAllow, Arguments: json.RawMessage(`{"amount":2}`)}
			if _, err := storing.Decide(t.Context(), decide(asked, "edit", edit)); regie.CodeOf(err) != regie.CodeServerDown {
				t.Errorf("an edit that nobody could check: %v", err)
			}
			if _, err := storing.Decide(t.Context(), decide(asked, "x", regie.Decision{CallID: edit.CallID, Answer: regie.AnswerAllow})); err != nil {
				t.Fatal(err)
			}
			fatal(t, storing.Close())
			select {
			case <-k.starts:
				t.Fatal("a command that only stores an answer has started a server")
			default:
			}
			conn = b.connect()
			defer conn.Close()
			o := k.started()
			if o.say(row.server); row.code == "" {
				o.paying()
				o.say("paid")
			}
			view := b.await(conn, run)
			expect(t, view, regie.EndAnswered, row.state)
			if c := view.Exchanges[0].Calls[0]; row.code != "" && (c.Error.Code != row.code || !c.StartedAt.IsZero() || !strings.Contains(m.last(), string(row.code))) {
				t.Errorf("the call: %+v %+v", c, c.Error)
			}
		})
	}
}
