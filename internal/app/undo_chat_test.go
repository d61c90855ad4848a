package app_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store/sqlite"
	"github.com/regie-run/regie/internal/tool"
)

// TestUndoChat takes a run's messages out of the conversation and brings them again, in either
// dialect: the model reads what counts and that its files went back, every prompt stays legal, and
// what was sent before can still be shown byte for byte (decisions 14 and 16).
func TestUndoChat(t *testing.T) {
	t.Parallel()
	for _, spoken := range []regie.Dialect{regie.DialectNative, regie.DialectJSON} {
		t.Run(string(spoken), func(t *testing.T) {
			writes := replyWith("I write.", over("a", "a.txt", "A1\n"))
			ok := replyWith("First answer.")
			if spoken == regie.DialectJSON {
				writes = replyWith(`{"pre_text":"I write.","keep_control":true,"action_commands":[{"type":"files.write_file","params":{"path":"a.txt","content":"A1\n","mode":"overwrite"}}]}`)
				ok = replyWith(`{"pre_text":"First answer."}`)
			}
			talk := replyWith("Fine.")
			if spoken == regie.DialectJSON {
				talk = replyWith(`{"pre_text":"Fine."}`)
			}
			m := newModel(t, slices.Concat([]http.HandlerFunc{talk, writes, ok}, slices.Repeat([]http.HandlerFunc{talk}, 3))...)
			u := newUndoing(t, m, map[string]string{"a.txt": "A0\n"})
			u.spoken = spoken
			session := regie.NewID()
			say := func(text string) dispatch.Run {
				in := u.request(everything)
				in.SessionID, in.Text, in.Dialect = session, text, spoken
				run, err := u.conn.Submit(t.Context(), in)
				fatal(t, err)
				u.await(u.conn, run)
				return run
			}
			say("hello there")
			wrong := say("do the wrong thing")
			undone := u.undo(dispatch.UndoRequest{SessionID: session, Chat: true})
			if undone.RoundID != wrong.RoundID || !undone.Chat {
				t.Fatalf("undone is %+v", undone)
			}
			u.holds("undone", map[string]string{"a.txt": "A0\n"})
			m.steps[1] = talk // the model counts the replies that it sees
			after := say("and now?")
			sent := m.last()
			for text, want := range map[string]bool{"hello there": true, "do the wrong thing": false, "First answer.": false, "[UNDONE]": true, "a.txt": true, "and now?": true} {
				if strings.Contains(sent, text) != want {
					t.Errorf("the prompt holds %q: %v", text, !want)
				}
			}
			u.exact(wrong.RoundID)
			u.exact(after.RoundID)
			view, err := u.conn.Session(t.Context(), session)
			fatal(t, err)
			gone := 0
			for _, line := range view.Thread {
				if line.Superseded {
					gone++
				}
			}
			if gone != 4 || len(view.Undos) != 1 {
				t.Errorf("%d messages are superseded, %d undos", gone, len(view.Undos))
			}
			u.undo(dispatch.UndoRequest{Target: undone.ID})
			u.holds("redone", map[string]string{"a.txt": "A1\n"})
			say("really?")
			if sent := m.last(); !strings.Contains(sent, "do the wrong thing") || strings.Count(sent, "[UNDONE]") != 2 {
				t.Errorf("the prompt after the redo: %s", sent)
			}
			u.exact(wrong.RoundID)
			u.exact(after.RoundID)
			u.verified()
		})
	}
}

// exact rebuilds every prompt of a run.
func (u *undoing) exact(round regie.ID) {
	u.t.Helper()
	replay, err := u.conn.Replay(u.t.Context(), round)
	if err != nil || replay.Difference != 0 || replay.Identical == 0 {
		u.t.Errorf("of the run's requests %d can be rebuilt, the first other one is %d: %v", replay.Identical, replay.Difference, err)
	}
}

// TestUndoWaits refuses while a run of the session is open, and names what it waits for.
func TestUndoWaits(t *testing.T) {
	t.Parallel()
	u := newUndoing(t, newModel(t, replyWith("", over("a", "a.txt", "A1\n")), replyWith("ok"), replyWith("", over("b", "a.txt", "A2\n")), replyWith("done")), map[string]string{"a.txt": "A0\n"})
	session := regie.NewID()
	first := u.say(session, "go")
	in := u.request(approval.Policy{})
	in.SessionID = session
	if _, err := u.conn.Submit(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	u.parked(u.conn, session)
	u.refused(regie.CodeRoundInProgress, "answer what it asks", dispatch.UndoRequest{Target: first.RoundID})
	if _, err := u.conn.Undos.Plan(t.Context(), dispatch.UndoRequest{Target: first.RoundID}); regie.CodeOf(err) != regie.CodeRoundInProgress {
		t.Errorf("a plan: %v", err)
	}
	if _, err := u.conn.Stop(t.Context(), session); err != nil {
		t.Fatal(err)
	}
	u.settled(session)
	u.undo(dispatch.UndoRequest{Target: first.RoundID}) // also of a closed session
	u.holds("undone", map[string]string{"a.txt": "A0\n"})
}

// settled waits until nothing of a session is open.
func (u *undoing) settled(session regie.ID) {
	u.t.Helper()
	u.until(u.conn, session, func(e *regie.Event) bool {
		view, err := u.conn.Session(u.t.Context(), session)
		return err == nil && (view.State == regie.SessionIdle || view.State == regie.SessionClosed) && e.Seq > 5
	})
}

// TestUndoEffects names what a run did otherwise, also where nobody knows whether it did, and
// leaves it.
func TestUndoEffects(t *testing.T) {
	t.Parallel()
	m := newModel(t, replyWith("", call{"p", "x__pay", `{"name":"ada"}`}, over("a", "a.txt", "A1\n"), call{"q", "x__mail", `{"name":"bob"}`}), replyWith("ok"), replyWith("that"))
	u := newUndoing(t, m, nil,
		action(t, "x.pay", regie.ClassOnce, func(context.Context, *tool.Invocation) (tool.Result, error) { return tool.Result{Content: "paid"}, nil }, nil),
		action(t, "x.mail", regie.ClassOnce, func(context.Context, *tool.Invocation) (tool.Result, error) {
			return tool.Result{}, errors.New("the line went dead")
		}, nil))
	session := regie.NewID()
	u.say(session, "go")
	plan := u.plan(dispatch.UndoRequest{Root: u.root})
	if len(plan.Effects) != 2 || plan.Effects[0].Tool != "x.pay" || plan.Effects[0].State != regie.CallSucceeded ||
		plan.Effects[1].Tool != "x.mail" || plan.Effects[1].State != regie.CallUnknown || !strings.Contains(plan.Effects[1].Arguments, "bob") {
		t.Errorf("the effects are %+v", plan.Effects)
	}
	done := u.undo(dispatch.UndoRequest{Root: u.root})
	if len(done.Effects) != 2 {
		t.Errorf("the record has %+v", done.Effects)
	}
	u.say(session, "what stands?")
	if sent := m.last(); !strings.Contains(sent, "What was done otherwise stands: x.pay, x.mail.") {
		t.Errorf("the model is told: %s", sent)
	}
}

// TestUndoFork forks a session that was undone: the fork has what was said, with what counts of it,
// and nothing to undo (decision 17).
func TestUndoFork(t *testing.T) {
	t.Parallel()
	u := newUndoing(t, newModel(t, replyWith("", over("a", "a.txt", "A1\n")), replyWith("ok")), map[string]string{"a.txt": "A0\n"})
	session := regie.NewID()
	run := u.say(session, "go")
	before, err := u.conn.Session(t.Context(), session)
	fatal(t, err)
	u.undo(dispatch.UndoRequest{Target: run.RoundID, Chat: true})
	for at, want := range map[int64]int{0: 4, before.Head: 0} {
		forked, err := u.conn.Fork(t.Context(), dispatch.ForkRequest{From: session, At: at})
		fatal(t, err)
		view, err := u.conn.Session(t.Context(), forked.Session.ID)
		if err != nil || view.Audit == nil {
			t.Fatalf("%v, %s", err, view.AuditError)
		}
		gone := 0
		for _, line := range view.Thread {
			if line.Superseded {
				gone++
			}
		}
		if gone != want || len(view.Undos) != 0 {
			t.Errorf("forked at %d: %d messages are superseded, want %d; %d undos", at, gone, want, len(view.Undos))
		}
		u.refused(regie.CodeNotFound, "no run here", dispatch.UndoRequest{SessionID: forked.Session.ID})
		again, err := u.conn.Fork(t.Context(), dispatch.ForkRequest{SessionID: forked.Session.ID, From: session, At: at})
		if err != nil || again.Messages != forked.Messages {
			t.Errorf("the same fork again: %d messages, %v", again.Messages, err)
		}
	}
}

// TestUndoErased removes a session that was undone: its log verifies, and nothing of what its files
// held or were called is left.
func TestUndoErased(t *testing.T) {
	t.Parallel()
	const word = "vermilion"
	u := newUndoing(t, newModel(t, replyWith("", over("a", word+".txt", word+" one\n")), replyWith("ok")), map[string]string{word + ".txt": word + " zero\n"})
	session := regie.NewID()
	run := u.say(session, "go")
	done := u.undo(dispatch.UndoRequest{Target: run.RoundID})
	if out, err := u.conn.Export(t.Context(), session); err != nil || len(out.Undos) != 1 || out.Undos[0].ID != done.ID || len(out.Undos[0].Files) != 1 {
		t.Errorf("the export has %+v, %v", out.Undos, err)
	}
	removed, err := u.conn.Remove(t.Context(), dispatch.RemoveRequest{SessionID: session})
	if err != nil || removed.Blobs < 2 {
		t.Errorf("%+v, %v", removed, err)
	}
	u.verified()
	if _, err := u.conn.Undos.Plan(t.Context(), dispatch.UndoRequest{Target: done.ID}); regie.CodeOf(err) != regie.CodeNotFound {
		t.Errorf("a plan of what was removed: %v", err)
	}
	fatal(t, u.conn.Close())
	for _, query := range []string{"SELECT path || coalesce(why, '') FROM undo_files", "SELECT makes || removes || effects FROM undos", "SELECT cast(data AS TEXT) FROM blobs WHERE data IS NOT NULL"} {
		if found := u.column(query); strings.Contains(found, word) {
			t.Errorf("%s: %s", query, found)
		}
	}
	data, err := os.ReadFile(filepath.Join(u.settings.DataDir, sqlite.FileName))
	if err != nil || bytes.Contains(data, []byte(word+" one")) {
		t.Errorf("the database file holds what was erased, %v", err)
	}
	u.conn = u.connect()
}
