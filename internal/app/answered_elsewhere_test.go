package app_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/tool"
)

// paying is an action that counts, and a model that proposes it once.
func paying(t *testing.T) (*atomic.Int64, tool.Tool, *model) {
	t.Helper()
	var paid atomic.Int64
	pay := action(t, "bank.pay", regie.ClassOnce, func(context.Context, *tool.Invocation) (tool.Result, error) {
		paid.Add(1)
		return tool.Result{Content: "paid"}, nil
	}, nil)
	return &paid, pay, newModel(t, replyWith("", call{"a", "bank__pay", `{}`}), replyWith("ok"))
}

// TestAnsweredElsewhere answers what one engine asked in a process that runs nothing, and on
// another engine: the run goes on at once, once.
func TestAnsweredElsewhere(t *testing.T) {
	t.Parallel()
	paid, pay, m := paying(t)
	b, other := shares(t, m, nil)
	b.tools, other.tools = []tool.Tool{pay}, []tool.Tool{pay}
	here, there := nodes(b, other)
	third := *b
	third.settings.DataDir = b.elsewhere()
	storing, err := app.Connect(t.Context(), app.Options{Config: third.settings, Tools: b.tools, StoreOnly: true})
	fatal(t, err)
	defer storing.Close()
	for i, answers := range []service{storing, there, storing, here} {
		run := b.startRun(here, approval.Policy{})
		asked := b.parked(here, run.SessionID).Approvals[0]
		began := time.Now()
		b.decide(answers, asked, allow(asked.Reviews[0]))
		expect(t, b.await(here, run), regie.EndAnswered, "SUCCEEDED")
		t.Logf("answer %d: ended %s later", i+1, time.Since(began))
		if n := paid.Load(); n != int64(i+1) {
			t.Fatalf("after %d answers it was paid %d times", i+1, n)
		}
	}
}
