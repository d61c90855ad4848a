package app_test

import (
	"context"
	"os"
	"syscall"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/dispatch"
)

// killed is what the child process of TestAnsweredThenKilled is told.
type killed struct {
	Settings  config.Config
	StoreOnly bool
	Decide    dispatch.DecideRequest
}

// TestAnsweredThenKilled answers in a process of its own, as regie approve does where no other one
// runs, and kills it with SIGKILL when the answer is acknowledged: the next engine goes on with the
// run, and the approved write happens once.
func TestAnsweredThenKilled(t *testing.T) {
	t.Parallel()
	if in := (killed{}); isChild(t, &in) {
		answerAndDie(t, in)
	}
	for name, storeOnly := range map[string]bool{"approve": false, "approve --no-continue": true} {
		t.Run(name, func(t *testing.T) {
			b := newHarness(t, newModel(t, replyWith("", put("a", "append", "one\n")), replyWith("ok")))
			b.holds("zero\n")
			conn, run, asked := b.startAsked(approval.Policy{})
			fatal(t, conn.Close())
			child := b.child(killed{b.settings, storeOnly, decide(asked, "x", allowAll(asked)...)})
			out, err := child.CombinedOutput()
			if status, ok := child.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
				t.Fatalf("the child was not killed: %v\n%s", err, out)
			}
			if storeOnly {
				b.held("zero\n")
			}
			conn = b.connect()
			expect(t, b.await(conn, run), regie.EndAnswered, "SUCCEEDED")
			b.held("zero\none\n")
		})
	}
}

func answerAndDie(t *testing.T, in killed) {
	t.Helper()
	conn, err := app.Connect(context.Background(), app.Options{Config: in.Settings, StoreOnly: in.StoreOnly})
	fatal(t, err)
	if _, err := conn.Decide(context.Background(), in.Decide); err != nil {
		t.Fatal(err)
	}
	fatal(t, syscall.Kill(os.Getpid(), syscall.SIGKILL))
	select {}
}
