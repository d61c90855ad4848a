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

// long is a time that no test lets pass.
const long = 10 * time.Minute

// useBank configures the server.
func (b *bed) useBank(k *bank, class string, wait time.Duration) {
	b.settings.File.MCPServers = map[string]config.MCPServer{"bank": k.settings(class, wait)}
	b.settings.File.Automation.NetworkRetry = 20 * time.Millisecond
}

// do submits a job in a session of its own and waits for its end.
func (b *bed) do(conn *app.Conn, policy approval.Policy) store.RoundView {
	b.t.Helper()
	run, err := conn.Submit(b.t.Context(), b.request(policy))
	if err != nil {
		b.t.Fatal(err)
	}
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
	if err := json.Unmarshal([]byte(request), &body); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, tl := range body.Tools {
		if name, ok := strings.CutPrefix(tl.Function.Name, "bank__"); ok {
			out[name] = tl.Function.Description
		}
	}
	return out
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
	m := newModel(t, says("", call{"a", "bank__pay", `{"amount":1}`}), says("I cannot."))
	b := newBed(t, m)
	b.useBank(k, "once", time.Millisecond)
	conn := b.connect()
	defer conn.Close()
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
	for deadline := time.Now().Add(20 * time.Second); len(missing(view)) > 0; {
		if time.Now().After(deadline) {
			t.Fatal("the server's tools do not come")
		}
		view = b.do(conn, approval.Policy{OnApproval: approval.DenyAndGoOn})
	}
	if got := offered(t, m.last()); got["pay"] != "pays" {
		t.Errorf("the model is offered %v", got)
	}
}

// TestFirstRunWaits gives a server that is being started its time, so that a job of one command has
// its tools.
func TestFirstRunWaits(t *testing.T) {
	t.Parallel()
	k := newBank(t)
	m := newModel(t, says("", call{"a", "bank__pay", `{"amount":1}`}), says("Paid."))
	b := newBed(t, m)
	b.useBank(k, "once", long)
	conn := b.connect()
	defer conn.Close()
	run, err := conn.Submit(t.Context(), b.request(everything))
	if err != nil {
		t.Fatal(err)
	}
	o := k.open()
	o.paying()
	o.say("paid")
	view := b.await(conn, run)
	expect(t, view, regie.EndAnswered, "SUCCEEDED")
	if len(view.Notices) != 0 || m.count() != 2 {
		t.Errorf("%d requests, notices %+v", m.count(), view.Notices)
	}
}

// TestStoppedWhileItWaits interrupts a run that waits for a server at its beginning: it ends at
// once.
func TestStoppedWhileItWaits(t *testing.T) {
	t.Parallel()
	k := newBank(t)
	b := newBed(t, newModel(t))
	b.useBank(k, "once", long)
	conn := b.connect()
	defer conn.Close()
	run, err := conn.Submit(t.Context(), b.request(everything))
	if err != nil {
		t.Fatal(err)
	}
	k.started()
	if err := conn.Interrupt(t.Context(), run.RoundID); err != nil {
		t.Fatal(err)
	}
	expect(t, b.await(conn, run), regie.EndInterrupted)
}

// TestServerThatFails is told with its last words, and is tried again when a run begins, not more
// often than its restarts allow.
func TestServerThatFails(t *testing.T) {
	t.Parallel()
	k := newBank(t)
	m := newModel(t, says("Hello."))
	b := newBed(t, m)
	b.useBank(k, "once", long)
	conn := b.connect()
	defer conn.Close()
	k.started().say("exit")
	view := b.do(conn, everything)
	if got := missing(view); len(got) != 1 || !strings.Contains(got[0].Why, "closed for today") {
		t.Errorf("what it said last is not told: %+v", got)
	}
	k.plan <- "offer pays"
	for deadline := time.Now().Add(20 * time.Second); len(missing(view)) > 0; view = b.do(conn, everything) {
		if time.Now().After(deadline) {
			t.Fatal("it is not tried again")
		}
	}
	if got := offered(t, m.last()); got["pay"] != "pays" {
		t.Errorf("the model is offered %v", got)
	}
}

// TestDiesBetweenRuns has a server end and come back with other words: the next run has them.
func TestDiesBetweenRuns(t *testing.T) {
	t.Parallel()
	k := newBank(t)
	m := newModel(t, says("Hello."))
	b := newBed(t, m)
	b.useBank(k, "once", long)
	k.plan <- "offer pays"
	k.plan <- "offer pays twice"
	conn := b.connect()
	defer conn.Close()
	b.do(conn, everything)
	if got := offered(t, m.last()); got["pay"] != "pays" {
		t.Fatalf("the model is offered %v", got)
	}
	k.started().kill()
	var view store.RoundView
	for deadline := time.Now().Add(20 * time.Second); offered(t, m.last())["pay"] != "pays twice"; view = b.do(conn, everything) {
		if time.Now().After(deadline) {
			t.Fatalf("the model is offered %v, for %v", offered(t, m.last()), missing(view))
		}
	}
}

// TestListChangesDuringARun keeps the tools of a run as it began, and gives the next one those that
// the server then has.
func TestListChangesDuringARun(t *testing.T) {
	t.Parallel()
	k := newBank(t)
	m := newModel(t, says("", call{"a", "bank__pay", `{"amount":1}`}), says("", call{"b", "bank__pay", `{"amount":2}`}), says("Paid."))
	b := newBed(t, m)
	b.useBank(k, "once", long)
	conn := b.connect()
	defer conn.Close()
	run, err := conn.Submit(t.Context(), b.request(everything))
	if err != nil {
		t.Fatal(err)
	}
	o := k.open()
	o.paying()
	o.say("more")
	if line := <-o.lines; line != "more" {
		t.Fatal(line)
	}
	o.say("paid")
	o.paying() // the tool itself is what it was: it runs on
	o.say("paid")
	view := b.await(conn, run)
	expect(t, view, regie.EndAnswered, "SUCCEEDED", "SUCCEEDED")
	if got := offered(t, m.last()); len(got) != 1 {
		t.Errorf("the tools of a run changed during it: %v", got)
	}
	for deadline := time.Now().Add(20 * time.Second); len(offered(t, m.last())) != 2; b.do(conn, approval.Policy{OnApproval: approval.FailRun}) {
		if time.Now().After(deadline) {
			t.Fatalf("the next run is offered %v", offered(t, m.last()))
		}
	}
}

// TestKilledDuringACall ends the server in the middle of a call: one that is repeated under its key
// is, and reaches the next process; of any other nobody knows.
func TestKilledDuringACall(t *testing.T) {
	t.Parallel()
	for class, state := range map[string]string{"keyed": "SUCCEEDED", "once": "UNKNOWN"} {
		t.Run(class, func(t *testing.T) {
			k := newBank(t)
			b := newBed(t, newModel(t, says("", call{"a", "bank__pay", `{"amount":1}`}), says("Done.")))
			b.useBank(k, class, long)
			conn := b.connect()
			defer conn.Close()
			run, err := conn.Submit(t.Context(), b.request(everything))
			if err != nil {
				t.Fatal(err)
			}
			o := k.open()
			key := o.paying()
			o.kill()
			if class == "keyed" {
				o = k.open()
				if again := o.paying(); again != key {
					t.Errorf("it was repeated under %s, not %s", again, key)
				}
				o.say("paid")
			}
			expect(t, b.await(conn, run), regie.EndAnswered, state)
		})
	}
}

// crashed is a bed on the data directory as it would be found if this process had been killed now.
// Nothing may be written meanwhile.
func (b *bed) crashed() *bed {
	b.t.Helper()
	b.alters()
	out := *b
	out.settings.DataDir = filepath.Join(b.t.TempDir(), "found")
	if err := os.Mkdir(out.settings.DataDir, 0o700); err != nil {
		b.t.Fatal(err)
	}
	entries, err := os.ReadDir(b.settings.DataDir)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, entry := range entries {
		if !entry.Type().IsRegular() {
			continue // the socket
		}
		data, err := os.ReadFile(filepath.Join(b.settings.DataDir, entry.Name()))
		if err == nil {
			err = os.WriteFile(filepath.Join(out.settings.DataDir, entry.Name()), data, 0o600)
		}
		if err != nil {
			b.t.Fatal(err)
		}
	}
	return &out
}

// cut has a run's call be cut by a crash, and returns what is found then.
func (b *bed) cut(k *bank) (*bed, dispatch.Run, string) {
	b.t.Helper()
	conn := b.connect()
	defer conn.Close()
	run, err := conn.Submit(b.t.Context(), b.request(everything))
	if err != nil {
		b.t.Fatal(err)
	}
	o := k.open()
	key := o.paying()
	found := b.crashed()
	o.kill() // and with it the call of the process that lives on
	for range o.lines {
	}
	if err := conn.Interrupt(b.t.Context(), run.RoundID); err != nil {
		b.t.Fatal(err)
	}
	return found, run, key
}

// TestCutCallWaitsForItsServer resumes a run whose call was cut by a crash, while the call's server
// is away: it is neither failed nor unknown for that, but waits, as rows, and is repeated under its
// key when the server is back.
func TestCutCallWaitsForItsServer(t *testing.T) {
	t.Parallel()
	k := newBank(t)
	m := newModel(t, says("", call{"a", "bank__pay", `{"amount":1}`}), says("Paid."))
	b := newBed(t, m)
	b.useBank(k, "keyed", long)
	b, run, key := b.cut(k)

	conn := b.connect()
	k.started().say("exit")
	b.state(conn, run.SessionID, regie.SessionWaitingNetwork)
	if err := conn.Close(); err != nil { // and once more, over a restart
		t.Fatal(err)
	}
	conn = b.connect()
	defer conn.Close()
	if err := conn.Resume(t.Context(), run.RoundID); err != nil {
		t.Fatal(err)
	}
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

// TestCutCallIsGivenUp interrupts a run that waits so: of the call nobody knows.
func TestCutCallIsGivenUp(t *testing.T) {
	t.Parallel()
	k := newBank(t)
	b := newBed(t, newModel(t, says("", call{"a", "bank__pay", `{"amount":1}`})))
	b.useBank(k, "keyed", long)
	b, run, _ := b.cut(k)
	b.settings.File.Automation.NetworkRetry = long
	conn := b.connect()
	defer conn.Close()
	k.started().say("exit")
	b.state(conn, run.SessionID, regie.SessionWaitingNetwork)
	if err := conn.Interrupt(t.Context(), run.RoundID); err != nil {
		t.Fatal(err)
	}
	expect(t, b.await(conn, run), regie.EndInterrupted, "UNKNOWN")
}

// TestCutCallOfOnce needs no server to know that nobody knows.
func TestCutCallOfOnce(t *testing.T) {
	t.Parallel()
	k := newBank(t)
	b := newBed(t, newModel(t, says("", call{"a", "bank__pay", `{"amount":1}`}), says("I look.")))
	b.useBank(k, "once", long)
	b, run, _ := b.cut(k)
	conn := b.connect()
	defer conn.Close()
	k.started().say("exit")
	view := b.await(conn, run)
	expect(t, view, regie.EndAnswered, "UNKNOWN")
	if why := view.Exchanges[0].Calls[0].Error.Message; !strings.Contains(why, "the process ended while it ran") {
		t.Errorf("it says %q", why)
	}
}

// TestCutCallOfARemovedServer does not wait for what nobody configures any more.
func TestCutCallOfARemovedServer(t *testing.T) {
	t.Parallel()
	k := newBank(t)
	b := newBed(t, newModel(t, says("", call{"a", "bank__pay", `{"amount":1}`}), says("I look.")))
	b.useBank(k, "keyed", long)
	b, run, _ := b.cut(k)
	b.settings.File.MCPServers = nil
	conn := b.connect()
	defer conn.Close()
	expect(t, b.await(conn, run), regie.EndAnswered, "UNKNOWN")
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
			m := newModel(t, says("", call{"a", "bank__pay", `{"amount":1}`}), says("I see."))
			b := newBed(t, m)
			b.useBank(k, "once", long)
			conn := b.connect()
			run, err := conn.Submit(t.Context(), b.request(approval.Policy{}))
			if err != nil {
				t.Fatal(err)
			}
			k.open()
			asked := b.parked(conn, run.SessionID).Approvals[0]
			if err := conn.Close(); err != nil {
				t.Fatal(err)
			}
			storing, err := app.Connect(t.Context(), app.Options{Config: b.settings, StoreOnly: true})
			if err != nil {
				t.Fatal(err)
			}
			edit := regie.Decision{CallID: asked.Reviews[0].CallID, Answer: regie.AnswerAllow, Arguments: json.RawMessage(`{"amount":2}`)}
			if _, err := storing.Decide(t.Context(), decide(asked, "edit", edit)); regie.CodeOf(err) != regie.CodeServerDown {
				t.Errorf("an edit that nobody could check: %v", err)
			}
			if _, err := storing.Decide(t.Context(), decide(asked, "x", regie.Decision{CallID: edit.CallID, Answer: regie.AnswerAllow})); err != nil {
				t.Fatal(err)
			}
			if err := storing.Close(); err != nil {
				t.Fatal(err)
			}
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
