package app_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
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
	if said := os.Getenv("REGIE_TEST_KILLED"); said != "" {
		answerAndDie(t, said)
		return
	}
	for name, storeOnly := range map[string]bool{"approve": false, "approve --no-continue": true} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, newModel(t, says("", put("a", "append", "one\n")), says("ok")))
			b.holds("zero\n")
			conn, run := b.start(approval.Policy{})
			asked := b.parked(conn, run.SessionID).Approvals[0]
			fatal(t, conn.Close())
			said, err := json.Marshal(killed{b.settings, storeOnly, decide(asked, "x", allowAll(asked)...)})
			fatal(t, err)
			child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestAnsweredThenKilled$", "-test.count=1")
			child.Env = append(os.Environ(), "REGIE_TEST_KILLED="+string(said))
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

func answerAndDie(t *testing.T, said string) {
	t.Helper()
	var in killed
	fatal(t, json.Unmarshal([]byte(said), &in))
	conn, err := app.Connect(context.Background(), app.Options{Config: in.Settings, StoreOnly: in.StoreOnly})
	fatal(t, err)
	if _, err := conn.Decide(context.Background(), in.Decide); err != nil {
		t.Fatal(err)
	}
	fatal(t, syscall.Kill(os.Getpid(), syscall.SIGKILL))
	select {}
}
