package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store/sqlite"
	"github.com/regie-run/regie/internal/store/storetest"
	"github.com/regie-run/regie/internal/tool"
)

// node is what the child process of TestStoppedNode is told.
type node struct {
	Settings config.Config
	Request  dispatch.RunRequest
}

// TestStoppedNode stops an engine (SIGSTOP) while its model is asked. Its lease runs out, another
// engine process on the same database takes the run over and brings it to its end; woken up
// (SIGCONT), the first one gets its answer, and stores nothing of it and does nothing.
func TestStoppedNode(t *testing.T) {
	if said := os.Getenv("REGIE_TEST_NODE"); said != "" {
		runNode(t, said)
		return
	}
	database := storetest.Postgres(t)
	asked, release := make(chan struct{}), make(chan struct{})
	var first atomic.Bool
	write := replyWith("", put("a", "append", "one\n"))
	m := newModel(t, func(w http.ResponseWriter, r *http.Request) {
		if first.CompareAndSwap(false, true) {
			close(asked)
			<-release
		}
		write(w, r)
	}, replyWith("ok"))
	b := newHarness(t, m)
	b.holds("zero\n")
	b.settings.Database = database
	said, err := json.Marshal(node{b.settings, b.request(everything)})
	fatal(t, err)
	var in node
	fatal(t, json.Unmarshal(said, &in))
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestStoppedNode$", "-test.count=1")
	child.Env = append(os.Environ(), "REGIE_TEST_NODE="+string(said))
	output, err := child.StdoutPipe()
	fatal(t, err)
	fatal(t, child.Start())
	<-asked
	fatal(t, child.Process.Signal(syscall.SIGSTOP))
	stopped := time.Now()

	other := *b
	other.settings.DataDir = b.elsewhere()
	conn := other.connect()
	view, err := conn.Session(t.Context(), in.Request.SessionID)
	fatal(t, err)
	ended := other.await(conn, dispatch.Run{SessionID: in.Request.SessionID, RoundID: view.History[0].ID})
	took := time.Since(stopped)
	expect(t, ended, regie.EndAnswered, "SUCCEEDED")
	if took > 10*time.Second {
		t.Errorf("the run went on elsewhere after %s", took)
	}
	t.Logf("resumed elsewhere and ended %s after the stop", took)
	b.held("zero\none\n")

	close(release)
	fatal(t, child.Process.Signal(syscall.SIGCONT))
	told, err := io.ReadAll(output)
	if err == nil {
		err = child.Wait()
	}
	if err != nil || !strings.Contains(string(told), "taken over: true") {
		t.Errorf("the process that was stopped: %v\n%s", err, told)
	}
	b.held("zero\none\n")
	after, err := conn.Get(t.Context(), ended.Round.ID)
	if err != nil || after.Head != ended.Head {
		t.Errorf("the log went from %d to %d, %v", ended.Head, after.Head, err)
	}
	if fault := unlikeWritten(t, conn, ended.Session.ID); fault != "" {
		t.Error(fault)
	}
}

func runNode(t *testing.T, said string) {
	t.Helper()
	var in node
	fatal(t, json.Unmarshal([]byte(said), &in))
	conn, err := app.Connect(context.Background(), app.Options{Config: in.Settings})
	fatal(t, err)
	run, err := conn.Submit(context.Background(), in.Request)
	fatal(t, err)
	err = conn.Wait(context.Background(), run.RoundID)
	_, _ = fmt.Printf("taken over: %v (%v)\n", err != nil, err)
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
}

// TestDatabaseAway takes the database away while the model is asked, and brings it back: the reply
// waits for it, the run goes on by itself, and its write happens once.
func TestDatabaseAway(t *testing.T) {
	t.Parallel()
	proxy, database := storetest.NewProxy(t, storetest.Postgres(t))
	var first atomic.Bool
	write := replyWith("", put("a", "append", "one\n"))
	m := newModel(t, func(w http.ResponseWriter, r *http.Request) {
		if first.CompareAndSwap(false, true) {
			proxy.Down()
			time.AfterFunc(5*time.Second, proxy.Up)
		}
		write(w, r)
	}, replyWith("ok"))
	b := newHarness(t, m)
	b.holds("zero\n")
	b.settings.Database = database
	conn := b.connect()
	run := b.startRun(conn, everything)
	view := b.comes(conn, run) // a stream ends with what stopped the run
	expect(t, view, regie.EndAnswered, "SUCCEEDED")
	b.held("zero\none\n")
}

// TestStalledBeforeEffect stalls an engine between the stored intent of an action and its effect,
// until its lease is over and another one has taken the run over. What nobody may repeat is then
// not done by the first one either.
func TestStalledBeforeEffect(t *testing.T) {
	t.Parallel()
	var effects atomic.Int64
	pay := action(t, "bank.pay", regie.ClassOnce, func(context.Context, *tool.Invocation) (tool.Result, error) {
		effects.Add(1)
		return tool.Result{Content: "paid"}, nil
	}, nil)
	var stalled atomic.Bool
	release := make(chan struct{})
	reply := replyWith("", call{"a", "bank__pay", `{}`})
	m := newModel(t, func(w http.ResponseWriter, r *http.Request) {
		stalled.Store(true) // from here on nothing that this engine commits comes back to it
		reply(w, r)
	}, replyWith("ok"))
	b := newHarness(t, m, pay)
	b.settings.Database = storetest.Postgres(t)
	gate := func(committed, _ bool) error {
		if committed && stalled.Load() {
			<-release
		}
		return t.Context().Err()
	}
	first, err := app.Connect(t.Context(), app.Options{Config: b.settings, Tools: b.tools, TuneStore: func(c *sqlite.Config) { c.Gate = gate }})
	fatal(t, err)
	defer first.Close()
	run := b.startRun(first, everything)
	other := *b
	other.settings.DataDir = b.elsewhere()
	second := other.connect()
	expect(t, other.await(second, run), regie.EndAnswered, "UNKNOWN")
	close(release)
	_ = first.Wait(t.Context(), run.RoundID)
	if n := effects.Load(); n != 0 {
		t.Errorf("it was paid %d times, by an engine that another one had taken over from", n)
	}
}

// elsewhere is a data directory as on another machine, with the same key.
func (b *harness) elsewhere() string {
	b.t.Helper()
	dir := b.t.TempDir()
	key, err := os.ReadFile(filepath.Join(b.settings.DataDir, "audit.key"))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "audit.key"), key, 0o600)
	}
	fatal(b.t, err)
	return dir
}
