package sqlite_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/slot"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/store/sqlite"
	"github.com/regie-run/regie/internal/store/storetest"
)

// spoken is in the message of TestNothingIsLeft, which is stored once and never updated: its pages
// are overwritten at once.
var spoken = strings.Repeat("spoken-9c1e ", 800)

// canary is in everything that the removed session of TestNothingIsLeft holds; long, so that it
// takes pages of its own.
var canary = strings.Repeat("canary-7f3a ", 800)

// TestNothingIsLeft removes a session and looks for what it held in every byte of the data
// directory. Another session, with the same words in one place, keeps its own.
func TestNothingIsLeft(t *testing.T) {
	dir := t.TempDir()
	s, err := sqlite.Open(t.Context(), sqlite.Config{Dir: dir})
	must(t, err)
	w := storetest.NewWorld(t, s)
	in := w.Submission(spoken)
	in.New.Name = canary
	accepted, err := s.Submit(t.Context(), in)
	must(t, err)
	fence := accepted.Fence
	must(t, w.FailAttempt(fence, store.Failure{
		Attempt: regie.Attempt{RoundID: fence.RoundID, Exchange: 1, Number: 1, Code: "X", Error: canary, Partial: canary}, Retry: &store.Open{Number: 1},
	}))
	blob, err := s.PutBlob(t.Context(), []byte("whole "+canary))
	must(t, err)
	kept, err := s.PutBlob(t.Context(), []byte("kept "+canary))
	must(t, err)
	reply := w.Reply(fence, 1, regie.KindQuery, regie.KindAction, regie.KindAction)
	for i := range reply.Calls {
		reply.Calls[i].Arguments, reply.Calls[i].ProviderCallID = canary, canary
	}
	// a tool that nobody has
	reply.Calls[0].Tool, reply.Calls[0].Definition, reply.Exchange.StopReason = canary, regie.Hash{}, canary
	asked := w.Approval(fence, store.Reply{Calls: reply.Calls[1:2]})
	asked.Reviews[0].Arguments, asked.Reviews[0].Preview.Diff = []byte(`"`+canary+`"`), canary
	reply.Ask, reply.Park = &store.Asked{Approval: asked}, true
	must(t, w.AppendReply(fence, reply))
	scope := regie.Scope{Tool: "t.action", Kind: regie.ScopeAny}
	rule := regie.Rule{ID: regie.NewID(), SessionID: fence.SessionID, Verdict: regie.VerdictAllow, Scope: scope, Author: "ada", FromCall: reply.Calls[1].ID}
	_, err = s.Decide(t.Context(), store.Decide{ApprovalID: asked.ID, Request: "1", Rules: []regie.Rule{rule}, Decisions: []regie.Decision{
		{CallID: reply.Calls[1].ID, Answer: regie.AnswerSession, By: "ada", Scope: &scope, Arguments: []byte(`{"x":"` + canary + `"}`)},
	}})
	must(t, err)
	claimed, err := s.Claim(t.Context(), fence.RoundID, "x")
	must(t, err)
	settle := w.Settled(1, reply.Calls)
	settle.Settled = nil
	for _, c := range claimed.Calls {
		if c.Kind == regie.KindAction {
			c.Intent = []byte(`{"path":"` + canary + `","kept":"` + kept.String() + `"}`)
			must(t, w.CommitCalls(claimed.Fence, store.Settle{Exchange: 1, Start: &c}))
		}
		c.State, c.Result, c.ResultBlob = regie.CallSucceeded, canary, blob
		if c.Ordinal == 2 {
			c.State, c.Result, c.Error = regie.CallUnknown, "", &regie.CallError{Code: regie.CodeOutcomeUnknown, Message: canary}
		}
		must(t, w.CommitCalls(claimed.Fence, store.Settle{Exchange: 1, Settled: []regie.Call{c}}))
	}
	must(t, s.ResolveCall(t.Context(), reply.Calls[2].ID, regie.ResolvedHappened, canary, "ada"))
	settle.Message.System.Summary = canary
	settle.Advance.Open, settle.Advance.Phase, settle.Advance.End = nil, regie.PhaseEnd, &store.End{Reason: regie.EndAnswered, Note: regie.Verbatim(canary)}
	must(t, w.CommitCalls(claimed.Fence, settle))
	must(t, s.Rename(t.Context(), fence.SessionID, canary))

	other, err := s.PutBlob(t.Context(), []byte("whole other"))
	must(t, err)
	running := w.Start() // what was put lately may be this one's
	out, err := s.Remove(t.Context(), store.Remove{SessionID: fence.SessionID})
	must(t, err)
	if out.Blobs != 0 || out.Rules != 1 {
		t.Errorf("removed while another one works: %+v", out)
	}
	must(t, w.AppendReply(running, w.Answer(1)))
	if _, err := s.Blob(t.Context(), other); err != nil {
		t.Error(err)
	}
	must(t, s.Close())
	// Whole pages are overwritten at once. What SQLite moved about before lies in unused bytes
	// until the file is made anew.
	if left := strings.Count(holding(t, dir), "spoken-9c1e"); left > 200 {
		t.Errorf("%d of 800 words of the message are still in the file", left)
	}
	vacuum(t, dir)
	if strings.Contains(holding(t, dir), "spoken-9c1e") {
		t.Error("a row still holds the message")
	}
	// the two blobs, but for those on the edges of pages
	if left := strings.Count(holding(t, dir), "canary-7f3a"); left < 2*790 || left > 2*800 {
		t.Errorf("%d canaries are left", left)
	}
}

// TestNothingIsLeftOfBlobs removes a session in another process than the one that filled it: its
// blobs go too, unless others name them.
func TestNothingIsLeftOfBlobs(t *testing.T) {
	dir := t.TempDir()
	s, err := sqlite.Open(t.Context(), sqlite.Config{Dir: dir})
	must(t, err)
	w := storetest.NewWorld(t, s)
	var fences []store.Fence
	for range 2 {
		fence := w.Start()
		reply := w.Reply(fence, 1, regie.KindQuery, regie.KindQuery)
		settle := w.Settled(1, reply.Calls)
		shared, err := s.PutBlob(t.Context(), []byte("shared "+canary))
		must(t, err)
		own, err := s.PutBlob(t.Context(), []byte(fence.SessionID.String()+canary))
		must(t, err)
		settle.Settled[0].ResultBlob, settle.Settled[1].ResultBlob = shared, own
		must(t, w.AppendReply(fence, reply))
		must(t, w.CommitCalls(fence, settle))
		must(t, w.AppendReply(fence, w.Answer(2)))
		fences = append(fences, fence)
	}
	must(t, s.Close())
	for i, want := range []int64{1, 2} { // the shared one goes with the last
		s := open(t, dir)
		out, err := s.Remove(t.Context(), store.Remove{SessionID: fences[i].SessionID})
		must(t, err)
		if out.Blobs != want {
			t.Errorf("the removal of session %d erased %d blobs, want %d", i, out.Blobs, want)
		}
		must(t, s.Close())
	}
	vacuum(t, dir)
	if left := holding(t, dir); strings.Contains(left, "canary-7f3a") {
		t.Errorf("%d canaries are left", strings.Count(left, "canary-7f3a"))
	}
}

// TestNothingIsLeftOfEvents removes the session of a run with the events that it read, and another
// automation, and looks for them in every byte of the data directory.
func TestNothingIsLeftOfEvents(t *testing.T) {
	dir := t.TempDir()
	s, err := sqlite.Open(t.Context(), sqlite.Config{Dir: dir})
	must(t, err)
	w := storetest.NewWorld(t, s)
	save := func() regie.Automation {
		a, err := s.SaveAutomation(t.Context(), storetest.NewAutomation(w))
		must(t, err)
		return a
	}
	add := func(a regie.Automation, key, text string) regie.Fire {
		fire, _, err := s.AddFire(t.Context(), store.AddFire{Key: key, Fire: regie.Fire{
			AutomationID: a.ID, Trigger: regie.TriggerEvent, Outcome: regie.FireDue, Payload: []byte(text),
		}})
		must(t, err)
		return fire
	}
	runs, goes, stays := save(), save(), save()
	first := add(runs, "1", spoken)
	in := w.Submission("hello")
	in.New.Type, in.Round.Reason = regie.SessionAutomation, regie.ReasonAutomationStart
	in.Fire = &store.StartFire{Fire: first, Ask: slot.AskEvent, Joined: 1}
	add(runs, "2", spoken)
	accepted, err := s.Submit(t.Context(), in)
	must(t, err)
	add(runs, "3", "waits")
	answer := w.Answer(1)
	answer.Advance.End = &store.End{Reason: regie.EndCompleted, Close: regie.SessionCompleted}
	must(t, w.AppendReply(accepted.Fence, answer))
	add(goes, "1", spoken)
	add(stays, "1", canary)
	_, err = s.Remove(t.Context(), store.Remove{SessionID: in.SessionID})
	must(t, err)
	must(t, s.ChangeAutomation(t.Context(), store.AutomationChange{ID: goes.ID, Removed: true}))
	fires, err := s.Fires(t.Context(), store.FireFilter{AutomationID: runs.ID})
	must(t, err)
	if got := []int{len(fires[0].Payload), len(fires[1].Payload), len(fires[2].Payload)}; !slices.Equal(got, []int{len("waits"), 0, 0}) {
		t.Errorf("the events have %d bytes", got)
	}
	must(t, s.Close())
	if left := strings.Count(holding(t, dir), "spoken-9c1e"); left > 200 {
		t.Errorf("%d of 2,400 words of erased events are still in the file", left)
	}
	vacuum(t, dir)
	held := holding(t, dir)
	if gone, kept := strings.Count(held, "spoken-9c1e"), strings.Count(held, "canary-7f3a"); gone > 0 || kept < 780 {
		t.Errorf("%d words of erased events, %d of 800 of one that stays", gone, kept)
	}
}

func vacuum(t *testing.T, dir string) {
	t.Helper()
	db := raw(t, dir)
	_, err := db.ExecContext(t.Context(), "VACUUM")
	must(t, err)
	must(t, db.Close())
}

// holding is every byte of a closed data directory.
func holding(t *testing.T, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	must(t, err)
	var all bytes.Buffer
	for _, file := range files {
		data, err := os.ReadFile(file)
		must(t, err)
		all.Write(data)
	}
	return all.String()
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestChildrenGoToo removes a session with a sub-agent's: that one goes with it and never by
// itself.
func TestChildrenGoToo(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	w := storetest.NewWorld(t, s)
	fence := w.Start()
	reply := w.Reply(fence, 1, regie.KindQuery)
	must(t, w.AppendReply(fence, reply))
	must(t, w.CommitCalls(fence, w.Settled(1, reply.Calls)))
	must(t, w.AppendReply(fence, w.Answer(2)))
	child := w.Start()
	_, err := raw(t, dir).ExecContext(t.Context(), `UPDATE sessions SET type = 'SUBAGENT', parent_call = ? WHERE id = ?`, reply.Calls[0].ID, child.SessionID)
	must(t, err)
	remove := func(id regie.ID) (store.Removed, error) { return s.Remove(t.Context(), store.Remove{SessionID: id}) }
	if _, err := remove(child.SessionID); regie.CodeOf(err) != regie.CodeConflict {
		t.Errorf("a child by itself: %v", err)
	}
	if _, err := remove(fence.SessionID); regie.CodeOf(err) != regie.CodeRoundInProgress {
		t.Errorf("while the child works: %v", err)
	}
	must(t, w.AppendReply(child, w.Answer(1)))
	out, err := remove(fence.SessionID)
	must(t, err)
	if len(out.SessionIDs) != 2 || out.SessionIDs[1] != child.SessionID {
		t.Errorf("removed %v", out.SessionIDs)
	}
	for _, id := range out.SessionIDs {
		if report, err := s.Verify(t.Context(), id); err != nil || report.Erased != report.Events-1 {
			t.Errorf("%+v, %v", report, err)
		}
	}
}

// TestVerifyForks alters a fork behind the store's back: the log of the fork binds its copies by
// itself.
func TestVerifyForks(t *testing.T) {
	for statement, says := range map[string]string{
		"UPDATE calls SET result = 'better' WHERE copy_of IS NOT NULL AND result IS NOT NULL":             ": result",
		"UPDATE calls SET copy_of = id WHERE copy_of IS NOT NULL":                                         "copy_of",
		"UPDATE calls SET copy_of = NULL WHERE copy_of IS NOT NULL":                                       "copy_of",
		"UPDATE calls SET arguments = '{}' WHERE copy_of IS NOT NULL":                                     ": arguments",
		"UPDATE calls SET resolve_note = 'guessed' WHERE copy_of IS NOT NULL AND resolved_at IS NOT NULL": "resolve_note",
		"UPDATE calls SET resolved_at = 7 WHERE copy_of IS NOT NULL AND resolved_at IS NOT NULL":          "resolved_at",
		"UPDATE sessions SET forked_at_seq = 3 WHERE forked_from IS NOT NULL":                             "forked_",
		"UPDATE sessions SET forked_at_seq = NULL, forked_from = NULL WHERE forked_from IS NOT NULL":      "forked_",
		"UPDATE sessions SET forked_from = id WHERE forked_from IS NOT NULL":                              "forked_",
	} {
		dir := t.TempDir()
		s := open(t, dir)
		fence, _ := storetest.NewWorld(t, s).Told()
		out, err := s.Fork(t.Context(), store.Fork{From: fence.SessionID})
		must(t, err)
		unguarded(t, dir)(statement)
		if _, err := s.Verify(t.Context(), out.Session.ID); regie.CodeOf(err) != regie.CodeChainBroken || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: got %v", statement, err)
		}
		if _, err := s.Verify(t.Context(), fence.SessionID); err != nil {
			t.Errorf("%s: the source: %v", statement, err)
		}
	}
}
