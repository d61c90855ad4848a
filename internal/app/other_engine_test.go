package app_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store/postgres"
	"github.com/regie-run/regie/internal/store/storetest"
)

// shares returns two beds on one database, each with a data directory of its own, as on two
// machines, and opens the first one's engine, which makes the key.
func shares(t *testing.T, m *model, change func(database string) string) (first, second *harness) {
	t.Helper()
	first = newHarness(t, m)
	first.settings.Database = storetest.Postgres(t)
	other := *first
	if change != nil {
		other.settings.Database = change(first.settings.Database)
	}
	return first, &other
}

// nodes opens an engine on each of two beds, the second one's with a data directory as on another
// machine.
func nodes(b, other *harness) (here, there *app.Conn) {
	b.t.Helper()
	here = b.connect()
	other.settings.DataDir = b.elsewhere()
	return here, other.connect()
}

// TestWordsFromElsewhere says each stopping word on one engine while another one asks its model,
// which never answers: the model call is cut, and the run ends, or is paused until it is resumed,
// again from elsewhere.
func TestWordsFromElsewhere(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{}, 2)
	b, other := shares(t, newModel(t, hangs(asked)), nil)
	here, there := nodes(b, other)

	run := b.startRun(here, everything)
	<-asked
	fatal(t, there.Pause(t.Context(), run.RoundID))
	fatal(t, here.Wait(t.Context(), run.RoundID))
	fatal(t, there.Resume(t.Context(), run.RoundID))
	<-asked
	fatal(t, here.Interrupt(t.Context(), run.RoundID))
	expect(t, other.await(there, run), regie.EndInterrupted)

	run = b.startRun(here, everything)
	<-asked
	began := time.Now()
	fatal(t, there.Interrupt(t.Context(), run.RoundID))
	fatal(t, here.Wait(t.Context(), run.RoundID))
	t.Logf("an interrupt from elsewhere cut the model call and ended the run in %s", time.Since(began))
	expect(t, b.await(here, run), regie.EndInterrupted)
}

// TestStreamFromElsewhere follows a run on another engine than the one that runs it. The model
// answers each step only when the follower has seen the one before, and in the middle the
// follower's listening connection is cut.
func TestStreamFromElsewhere(t *testing.T) {
	const steps = 8
	seen := make(chan struct{}, 1)
	var script []http.HandlerFunc
	for i := range steps {
		reply := replyWith("", call{string(rune('a' + i)), "list_files", `{}`})
		if i == steps-1 {
			reply = replyWith("done")
		}
		script = append(script, func(w http.ResponseWriter, r *http.Request) {
			select {
			case <-seen:
			case <-r.Context().Done():
				return
			}
			reply(w, r)
		})
	}

	b, other := shares(t, newModel(t, script...), func(database string) string { return database + "&application_name=" + regie.NewID().String() })
	here, there := nodes(b, other)
	run := b.startRun(here, everything)
	began, replies := time.Now(), 0
	seen <- struct{}{}
	for after := int64(0); ; {
		err := there.Events(t.Context(), run.SessionID, after, func(item dispatch.Item) error {
			var body struct {
				Sender regie.Sender     `json:"sender"`
				State  regie.RoundState `json:"state"`
			}
			if item.Event == nil {
				return nil
			}
			after = item.Event.Seq
			if err := json.Unmarshal(item.Event.Body, &body); err != nil {
				return err
			}
			if item.Event.Type == regie.EventRound && body.State == regie.RoundEnded {
				return errSeen
			}
			if item.Event.Type == regie.EventMessage && body.Sender == regie.SenderAI {
				if replies++; replies == steps/2 {
					storetest.PostgresExec(t, other.settings.Database, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
						WHERE query LIKE 'LISTEN%' AND application_name = current_setting('application_name')`)
				}
				seen <- struct{}{}
			}
			return nil
		})
		if errors.Is(err, errSeen) {
			break
		}
		t.Fatal(err)
	}
	took := time.Since(began)
	if took > 10*time.Second { // without a word each step would wait for the look at everything that comes once in 6 s
		t.Errorf("the stream of %d steps elsewhere took %s", steps, took)
	}
	t.Logf("the stream of %d steps elsewhere took %s", steps, took)
}

// TestUndoLeft leaves an undo in the middle, by a process whose lease is not over yet. What would
// run in its session waits for it. Once the lease is over an engine that runs ends it: what was to
// go back goes back, once.
func TestUndoLeft(t *testing.T) {
	t.Parallel()
	here, _ := shares(t, newModel(t, replyWith("", over("a", "a.txt", "A1\n"), over("b", "b.txt", "B1\n")), replyWith("ok"), replyWith("again")), nil)
	u := &undoing{harness: here}
	u.put("a.txt", "A0\n")
	u.conn = here.connect()
	t.Cleanup(func() { _ = u.conn.Close() })
	session := regie.NewID()
	run := u.say(session, "go")
	plan := u.plan(dispatch.UndoRequest{Target: run.RoundID})
	dead, err := postgres.Open(t.Context(), postgres.Config{URL: here.settings.Database, Dir: here.settings.DataDir})
	fatal(t, err)
	defer dead.Close()
	for _, content := range []string{"A1\n", "B1\n"} {
		if _, err := dead.PutBlob(t.Context(), []byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	const lease = 3 * time.Second
	began := time.Now()
	fatal(t, dead.Lease(t.Context(), "dead", lease))
	left := plan.Undo
	left.ID = regie.NewID()
	if _, err := dead.BeginUndo(t.Context(), left, "dead"); err != nil {
		t.Fatal(err)
	}
	u.put("a.txt", "A0\n") // so far it had come
	u.say(session, "and now?")
	if took := time.Since(began); took < lease {
		t.Errorf("a run started after %s, while another process was undoing", took)
	}
	u.holds("after the undo", map[string]string{"a.txt": "A0\n"})
	done, err := u.conn.Undos.Undo(t.Context(), dispatch.UndoRequest{UndoID: left.ID, Target: run.RoundID})
	if err != nil || done.State != regie.UndoDone || done.Left() != 0 {
		t.Errorf("%+v, %v", done, err)
	}
	u.verified()
}
