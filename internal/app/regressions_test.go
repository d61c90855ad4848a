package app_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/tool"
)

// The tests of this file hold faults that were found and mended.

func query(t *testing.T, name string, risk regie.Risk, safe bool, run func(context.Context, *tool.Invocation) (tool.Result, error)) tool.Tool {
	t.Helper()
	out, err := tool.New(regie.ToolDefinition{Name: name, Description: "a query", Kind: regie.KindQuery, Risk: risk, ParallelSafe: safe},
		tool.Handler[nameArgs]{Run: func(ctx context.Context, inv *tool.Invocation, _ nameArgs) (tool.Result, error) { return run(ctx, inv) }})
	fatal(t, err)
	return out
}

// slowQuery is the query q.slow, which runs until free is closed.
func slowQuery(t *testing.T) (slow tool.Tool, free chan struct{}) {
	t.Helper()
	free = make(chan struct{})
	return query(t, "q.slow", regie.RiskInternal, false, func(context.Context, *tool.Invocation) (tool.Result, error) {
		<-free
		return tool.Result{Content: "slow"}, nil
	}), free
}

// countedAction is the action x.act, which counts its runs; fails is what its first run comes to.
func countedAction(t *testing.T, runs *atomic.Int64, fails error) tool.Tool {
	t.Helper()
	return action(t, "x.act", regie.ClassOnce, func(context.Context, *tool.Invocation) (tool.Result, error) {
		if runs.Add(1) == 1 && fails != nil {
			return tool.Result{}, fails
		}
		return tool.Result{Content: "done"}, nil
	}, nil)
}

// TestDuplicatesAreAskedOnce puts two identical calls of one reply to the person once.
func TestDuplicatesAreAskedOnce(t *testing.T) {
	t.Parallel()
	var runs atomic.Int64
	b := newHarness(t, newModel(t, replyWith("", call{"a", "x__act", `{"name":"pay"}`}, call{"b", "x__act", `{"name":"pay"}`}), replyWith("ok")), countedAction(t, &runs, nil))
	conn, run, asked := b.startAsked(approval.Policy{})
	if len(asked.Reviews) != 1 {
		t.Errorf("%d identical calls of one reply are put to the person", len(asked.Reviews))
	}
	b.decide(conn, asked, allowAll(asked)...)
	b.await(conn, run)
	if runs.Load() != 1 {
		t.Errorf("the action ran %d times", runs.Load())
	}
}

// TestResumedQueryRuns resumes a batch of which one query was cut by a pause and another is asked
// about: the first runs at once.
func TestResumedQueryRuns(t *testing.T) {
	t.Parallel()
	started := make(chan struct{}, 10)
	var block atomic.Bool
	block.Store(true)
	slow := query(t, "q.slow", regie.RiskInternal, true, func(ctx context.Context, _ *tool.Invocation) (tool.Result, error) {
		started <- struct{}{}
		if block.Load() {
			<-ctx.Done()
			return tool.Result{}, context.Cause(ctx)
		}
		return tool.Result{Content: "slow"}, nil
	})
	out := query(t, "q.outside", regie.RiskExternal, true, func(context.Context, *tool.Invocation) (tool.Result, error) {
		return tool.Result{Content: "outside"}, nil
	})
	b := newHarness(t, newModel(t, replyWith("", call{"a", "q__slow", `{}`}, call{"b", "q__outside", `{}`}), replyWith("ok")), slow, out)
	conn, run := b.start(approval.Policy{})
	<-started
	fatal(t, conn.Pause(t.Context(), run.RoundID))
	fatal(t, conn.Wait(t.Context(), run.RoundID))
	block.Store(false)
	fatal(t, conn.Resume(t.Context(), run.RoundID))
	select {
	case <-started:
	case <-time.After(30 * time.Second):
		view, _ := conn.Get(t.Context(), run.RoundID)
		t.Errorf("30 s after resume the free query has not run: %v %s", states(view), view.Session.State)
	}
}

// TestEditWhileQueryRuns edits a call into one of unknown outcome while a query of its reply runs:
// it runs again only after an approval that says why.
func TestEditWhileQueryRuns(t *testing.T) {
	t.Parallel()
	slow, free := slowQuery(t)
	var runs atomic.Int64
	b := newHarness(t, newModel(t, replyWith("", call{"a", "x__act", `{"name":"pay"}`}), replyWith("", call{"q", "q__slow", `{}`}, call{"b", "x__act", `{"name":"other"}`}), replyWith("ok")),
		slow, countedAction(t, &runs, context.DeadlineExceeded))
	conn, run, asked := b.startAsked(approval.Policy{})
	b.decide(conn, asked, allowAll(asked)...)
	asked = b.next(conn, run.SessionID, asked.ID)
	edited := allow(asked.Reviews[0])
	edited.Arguments = json.RawMessage(`{"name":"pay"}`)
	b.decide(conn, asked, edited)
	close(free)
	var why []regie.Ground
	b.until(conn, run.SessionID, func(*regie.Event) bool { // it is asked about again, or the run has ended without that
		inbox, err := conn.Inbox(t.Context(), store.InboxFilter{SessionID: run.SessionID})
		fatal(t, err)
		view := b.round(conn, run.RoundID)
		if len(inbox.Approvals) > 0 && inbox.Approvals[0].ID != asked.ID {
			why = inbox.Approvals[0].Reviews[0].Grounds
		}
		return why != nil || view.Round.State == regie.RoundEnded
	})
	if runs.Load() != 1 || !slices.ContainsFunc(why, func(g regie.Ground) bool { return g.Source == regie.SourceUnknown }) {
		view, _ := conn.Get(t.Context(), run.RoundID)
		t.Errorf("the UNKNOWN action ran a second time without an approval that says why: %v", states(view))
	}
}

// TestStricterSettings approves a call under settings that are stricter than those of its run: the
// run goes on.
func TestStricterSettings(t *testing.T) {
	t.Parallel()
	b := newHarness(t, newModel(t, replyWith("", write("a", "a.txt", "one\n")), replyWith("ok")))
	conn := b.connect()
	in := b.request(approval.Policy{})
	in.Settings = b.settings.Fingerprint() // as cmd/regie sends it
	run := b.send(conn, in)
	asked := b.parked(conn, run.SessionID).Approvals[0]
	fatal(t, conn.Close())
	b.settings.File.Approvals = config.Approvals{Expire: 48 * time.Hour}
	conn = b.connect()
	b.decide(conn, asked, allowAll(asked)...)
	expect(t, b.await(conn, run), regie.EndAnswered, "SUCCEEDED") // where nobody goes on, this waits for ever
}

// TestRuleAndLink: a rule for a directory does not cover a write that a link leads out of it.
func TestRuleAndLink(t *testing.T) {
	t.Parallel()
	m := newModel(t, replyWith("", write("a", "docs/a.txt", "one\n")), replyWith("", over("b", "docs/link/secret.txt", "owned")), replyWith("ok"))
	b := newHarness(t, m)
	b.file("docs/b.txt", "")
	b.file("src/secret.txt", "mine\n")
	fatal(t, os.Symlink("../src", filepath.Join(b.root, "docs", "link")))
	conn, run, asked := b.startAsked(approval.Policy{})
	b.allowBelow(conn.Client, asked, time.Time{})
	again := b.next(conn, run.SessionID, asked.ID) // a person is asked about the write through the link
	if warning := again.Reviews[0].Preview.Warnings; len(warning) == 0 || !strings.Contains(warning[0].String(), "leads through a link to src/secret.txt") {
		t.Errorf("the warnings are %v", warning)
	}
	if got, err := os.ReadFile(filepath.Join(b.root, "src", "secret.txt")); err != nil || string(got) != "mine\n" {
		t.Errorf("the rule for docs/ let a file of src/ be written: %q, %v", got, err)
	}
}

// TestLinkMovedAfterApproval writes nowhere else than was shown.
func TestLinkMovedAfterApproval(t *testing.T) {
	t.Parallel()
	b := newHarness(t, newModel(t, replyWith("", write("a", "docs/link/new.txt", "x\n")), replyWith("ok")))
	for _, d := range []string{"docs", "one", "two"} {
		fatal(t, os.Mkdir(filepath.Join(b.root, d), 0o755))
	}
	link := filepath.Join(b.root, "docs", "link")
	fatal(t, os.Symlink("../one", link))
	conn, run, asked := b.startAsked(approval.Policy{})
	fatal(t, os.Remove(link))
	fatal(t, os.Symlink("../two", link))
	b.decide(conn, asked, allowAll(asked)...)
	view := b.await(conn, run)
	if _, err := os.Stat(filepath.Join(b.root, "two", "new.txt")); err == nil {
		t.Errorf("written to another place than was shown: %v", states(view))
	}
}

// TestVerifyBindsWhatRan alters, behind the store's back, what ran and who allowed it.
func TestVerifyBindsWhatRan(t *testing.T) {
	t.Parallel()
	b, conn, run, asked := chained(t, write("a", "b.txt", "one\n"))
	edited := allow(asked.Reviews[0])
	edited.Arguments = json.RawMessage(`{"path":"c.txt","content":"edited\n"}`)
	b.decide(conn, asked, edited)
	b.await(conn, run)
	fatal(t, conn.Close())
	fatal(t, b.raw(`UPDATE calls SET executed = '{"path":"forged"}', intent = '{}';
		UPDATE reviews SET decided_by = 'mallory', edited = NULL, preview = '{}', arguments = '{}'`))
	if unlikeWritten(t, b.connect(), run.SessionID) == "" {
		t.Error("verify finds nothing")
	}
}
