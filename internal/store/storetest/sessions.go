package storetest

import (
	"encoding/hex"
	"strings"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/slot"
	"github.com/regie-run/regie/internal/store"
)

// Told makes a session with everything that a fork has to handle: two queries, an UNKNOWN action, a
// resolved one, a question answered between its call and the results, and an open approval.
func (w *World) Told() (fence store.Fence, unknown regie.Call) {
	w.T.Helper()
	fence = w.Start()
	reply := w.Reply(fence, 1, regie.KindQuery, regie.KindQuery)
	blob := resultOf(w.Store.PutBlob(w.Ctx, []byte("the whole result")))(w)
	settle := w.Settled(1, reply.Calls)
	settle.Settled[0].ResultBlob = blob
	w.must(w.AppendReply(fence, reply))
	w.must(w.CommitCalls(fence, settle))

	reply = w.Reply(fence, 2, regie.KindAction, regie.KindAction, regie.KindAction)
	reply.Calls[1].State, reply.Calls[1].NotRun, reply.Calls[1].DuplicateOf = regie.CallNotRun,
		regie.NotRunDuplicateInBatch, reply.Calls[0].ID
	reply.Calls[1].Error = &regie.CallError{Code: "DUPLICATE_IN_BATCH", Message: "twice"}
	w.must(w.AppendReply(fence, reply))
	started := []regie.Call{reply.Calls[0], reply.Calls[2]}
	for i := range started {
		started[i].Intent = []byte(`{"kept":"` + blob.String() + `"}`)
		w.must(w.CommitCalls(fence, store.Settle{Exchange: 2, Start: &started[i]}))
		started[i].State, started[i].Attempts, started[i].Error = regie.CallUnknown, 1,
			&regie.CallError{Code: regie.CodeOutcomeUnknown, Message: "?"}
		w.must(w.CommitCalls(fence, store.Settle{Exchange: 2, Settled: started[i : i+1]}))
	}
	w.must(w.Store.ResolveCall(w.Ctx, started[1].ID, regie.ResolvedHappened, "seen", "ada"))
	settle = w.Settled(2, reply.Calls)
	settle.Settled = nil
	w.must(w.CommitCalls(fence, settle))

	reply = w.Reply(fence, 3, regie.KindAction)
	asked := w.Approval(fence, reply)
	asked.Exchange = 3
	reply.Ask, reply.Park = &store.Asked{Approval: asked}, true
	w.must(w.AppendReply(fence, reply))
	return fence, started[0]
}

// checkThread asserts that a thread fits a prompt (invariant 4): each call has exactly one result,
// behind its reply, in this session.
func checkThread(w *World, session regie.ID) store.Thread {
	w.T.Helper()
	thread := resultOf(w.Store.Thread(w.Ctx, session, 0))(w)
	var open []regie.ID
	for i := range thread.Messages {
		m := &thread.Messages[i]
		switch calls := thread.Calls[m.ID]; {
		case len(calls) > 0:
			w.equal("calls without a result", len(open), 0)
			w.equal("calls of the message", m.CallIDs(), idsOf(calls))
			for j := range calls {
				if open = append(open, calls[j].ID); !calls[j].State.Settled() {
					w.T.Errorf("call %d of message %d is %s", j, m.Seq, calls[j].State)
				}
			}
		case m.System != nil && len(m.System.CallIDs) > 0:
			w.equal("results", m.System.CallIDs, open)
			open = nil
		}
	}
	w.equal("calls without a result at the end", len(open), 0)
	return thread
}

func idsOf(calls []regie.Call) (out []regie.ID) {
	for i := range calls {
		out = append(out, calls[i].ID)
	}
	return out
}

// fork forks a session at every event of it (decision 17): each fork verifies, is legal, has the
// messages until then, and nothing that could run. The source stays unchanged.
func fork(w *World) {
	fence, unknown := w.Told()
	head := w.head(fence.SessionID)
	source := resultOf(w.Store.Thread(w.Ctx, fence.SessionID, 0))(w)
	opened := source.Messages[len(source.Messages)-1].Seq // the reply with calls that wait for a person
	for at := int64(1); at <= head; at++ {
		in := store.Fork{SessionID: regie.NewID(), From: fence.SessionID, At: at}
		out := resultOf(w.Store.Fork(w.Ctx, in))(w)
		w.head(in.SessionID)
		copies := checkThread(w, in.SessionID)
		w.equal("open", out.Open, at >= opened)
		w.equal("messages", len(copies.Messages), out.Messages)
		for i := range copies.Messages {
			is, was := &copies.Messages[i], &source.Messages[i]
			if is.Copied == nil || is.Copied.MessageID != was.ID || !is.Copied.At.Equal(was.Time) || is.ID == was.ID ||
				was.Seq > out.Session.ForkedFrom.Seq {
				w.T.Errorf("a fork at %d holds %+v, a copy of %+v", at, is, was)
			}
			w.equal("text", is.Text, was.Text)
			w.equal("calls", copies.Calls[is.ID], source.Calls[was.ID],
				cmpopts.IgnoreFields(regie.Call{}, "ID", "SessionID", "MessageID", "CopyOf", "Intent", "DuplicateOf"))
		}
		if n := len(source.Messages); len(copies.Messages) < n &&
			source.Messages[len(copies.Messages)].Seq <= at && !out.Open {
			w.T.Errorf("a fork at %d ends with %d messages", at, len(copies.Messages))
		}
		again := resultOf(w.Store.Fork(w.Ctx, in))(w)
		w.equal("the same fork again", []int{again.Messages, again.Calls}, []int{out.Messages, out.Calls})
		session, _, err := w.Store.Session(w.Ctx, in.SessionID)
		w.must(err)
		w.equal("session", []any{session.State, session.Type, session.ForkedFrom.SessionID},
			[]any{regie.SessionIdle, regie.SessionChat, fence.SessionID})
		inbox := resultOf(w.Store.Inbox(w.Ctx, store.InboxFilter{SessionID: in.SessionID, Closed: true}))(w)
		w.equal("inherited waits", len(inbox.Approvals)+len(inbox.Questions), 0)
	}
	w.equal("the source's log", w.head(fence.SessionID), head)
	w.equal("the source's thread", checkOpenThread(w, fence.SessionID), source)
	checkForkOfFork(w, fence, unknown)
}

// checkOpenThread returns checkThread for a thread that may end in an open batch.
func checkOpenThread(w *World, session regie.ID) store.Thread {
	thread := resultOf(w.Store.Thread(w.Ctx, session, 0))(w)
	return thread
}

// checkForkOfFork continues a fork, forks that, and checks the references of the copies.
func checkForkOfFork(w *World, fence store.Fence, unknown regie.Call) {
	w.T.Helper()
	first, err := w.Store.Fork(w.Ctx, store.Fork{
		SessionID: regie.NewID(), From: fence.SessionID,
		Round: fence.RoundID, Name: "another way",
	})
	w.must(err)
	w.equal("name", first.Session.Name, "another way")
	in := w.Submission("go on")
	in.SessionID, in.New = first.Session.ID, nil
	accepted := resultOf(w.Store.Submit(w.Ctx, in))(w)
	w.must(w.AppendReply(accepted.Fence, w.Answer(1)))
	second := resultOf(w.Store.Fork(w.Ctx, store.Fork{SessionID: regie.NewID(), From: first.Session.ID}))(w)
	w.head(second.Session.ID)
	thread := checkThread(w, second.Session.ID)
	w.equal("messages", len(thread.Messages), first.Messages+2)
	var whole, open regie.Call
	for _, calls := range thread.Calls {
		for _, c := range calls {
			switch {
			case !c.ResultBlob.IsZero():
				whole = c
			case c.State == regie.CallUnknown:
				open = c
			case !c.DuplicateOf.IsZero() && thread.Calls[c.MessageID][0].ID != c.DuplicateOf:
				w.T.Errorf("the duplicate is one of %s", c.DuplicateOf)
			}
		}
	}
	// A shortened result names the original call. It can be read in the fork of a fork too, and in
	// no other session.
	w.equal("the unknown call", open.CopyOf, unknown.ID)
	text := resultOf(w.Store.WholeResult(w.Ctx, second.Session.ID, whole.CopyOf))(w)
	w.equal("whole result", text, "the whole result")
	_, err = w.Store.WholeResult(w.Ctx, second.Session.ID, regie.NewID())
	w.refused(regie.CodeNotFound, err)
	// A person resolves the copy independently of the original.
	w.must(w.Store.ResolveCall(w.Ctx, open.ID, regie.ResolvedDidNotHappen, "", "bob"))
	w.head(second.Session.ID)
	w.head(first.Session.ID)
}

// forkRefuses tries invalid forks.
func forkRefuses(w *World) {
	fence := w.Start()
	other := w.Start()
	head := w.head(fence.SessionID)
	for name, c := range map[string]struct {
		in   store.Fork
		code regie.Code
	}{
		"before the beginning": {store.Fork{From: fence.SessionID, At: -1}, regie.CodeBadRequest},
		"behind the end":       {store.Fork{From: fence.SessionID, At: head + 1}, regie.CodeBadRequest},
		"no such session":      {store.Fork{From: regie.NewID()}, regie.CodeNotFound},
		"another's run":        {store.Fork{From: fence.SessionID, Round: other.RoundID}, regie.CodeNotFound},
		"an id that is taken":  {store.Fork{From: fence.SessionID, SessionID: other.SessionID}, regie.CodeConflict},
	} {
		_, err := w.Store.Fork(w.Ctx, c.in)
		if regie.CodeOf(err) != c.code {
			w.T.Errorf("%s: %v", name, err)
		}
	}
	id := regie.NewID()
	together(8, func(int) {
		if _, err := w.Store.Fork(w.Ctx, store.Fork{SessionID: id, From: fence.SessionID}); err != nil {
			w.T.Error(err)
		}
	})
	w.equal("events of one fork, made eight times", w.head(id), int64(2))
}

// removal removes a session (decision 15): all its content is erased, its log verifies, and its
// forks keep theirs.
func removal(w *World) {
	fence, _ := w.Told()
	forked := resultOf(w.Store.Fork(w.Ctx, store.Fork{From: fence.SessionID}))(w)
	before := checkThread(w, forked.Session.ID)
	w.unchanged(fence.SessionID, regie.CodeRoundInProgress, func() error {
		_, err := w.Store.Remove(w.Ctx, store.Remove{SessionID: fence.SessionID, By: "ada"})
		return err
	})
	resultOf(w.Store.RequestStop(w.Ctx, fence.RoundID, regie.StopStop))(w)
	claimed := resultOf(w.Store.Claim(w.Ctx, fence.RoundID, "next"))(w)
	w.must(w.CommitCalls(claimed.Fence, store.Settle{
		Exchange: 3, Message: w.Settled(3, claimed.Calls).Message,
		Advance: &store.Advance{
			Phase: regie.PhaseEnd, Counters: claimed.Round.Counters,
			End: &store.End{Reason: regie.EndStopped, Note: regie.Verbatim("the end note")},
		},
	}))
	head := w.head(fence.SessionID)
	out := resultOf(w.Store.Remove(w.Ctx, store.Remove{SessionID: fence.SessionID, By: "ada"}))(w)
	w.equal("removed", out, store.Removed{
		SessionIDs: []regie.ID{fence.SessionID}, Bodies: head,
		Forks: []regie.ID{forked.Session.ID},
	})
	report := resultOf(w.Store.Verify(w.Ctx, fence.SessionID))(w)
	w.equal("the log", []int64{report.Events, report.Erased}, []int64{head + 1, head})
	for range 2 { // again; from now on it is missing
		out = resultOf(w.Store.Remove(w.Ctx, store.Remove{SessionID: fence.SessionID, By: "bob"}))(w)
		w.equal("removed again", out, store.Removed{SessionIDs: []regie.ID{}})
	}
	checkGone(w, fence)
	// The fork is as it was, and still says where it comes from.
	w.head(forked.Session.ID)
	w.equal("the fork's thread", checkThread(w, forked.Session.ID), before)
	session, _, err := w.Store.Session(w.Ctx, forked.Session.ID)
	w.must(err)
	w.equal("forked from", session.ForkedFrom.SessionID, fence.SessionID)
	for _, calls := range before.Calls {
		for _, c := range calls {
			if !c.ResultBlob.IsZero() {
				resultOf(w.Store.WholeResult(w.Ctx, session.ID, c.ID))(w)
			}
		}
	}
	// The whole result is erased with its last reference.
	out = resultOf(w.Store.Remove(w.Ctx, store.Remove{SessionID: forked.Session.ID}))(w)
	w.equal("blobs", out.Blobs, int64(1))
	w.head(forked.Session.ID)
	_, err = w.Store.Remove(w.Ctx, store.Remove{SessionID: regie.NewID()})
	w.refused(regie.CodeNotFound, err)
}

// eventsErased: the events that a run read are erased with its session, and all events of an
// automation with that (decision 15).
func eventsErased(w *World) {
	a := resultOf(w.Store.SaveAutomation(w.Ctx, NewAutomation(w)))(w)
	add := func(text string) regie.Fire {
		fire, _, err := w.Store.AddFire(w.Ctx, store.AddFire{Key: text, Fire: regie.Fire{
			AutomationID: a.ID, Trigger: regie.TriggerEvent, Outcome: regie.FireDue, Payload: []byte(text),
		}})
		w.must(err)
		return fire
	}
	left := func() (all []string) {
		for _, f := range resultOf(w.Store.Fires(w.Ctx, store.FireFilter{AutomationID: a.ID}))(w) {
			all = append(all, string(f.Payload))
		}
		return all
	}
	first := add("1")
	w.equal("joined", add("2").Outcome, regie.FireCoalesced)
	start := startOfFire(w, &first, slot.AskEvent)
	start.Fire.Joined = 1
	accepted := resultOf(w.Store.Submit(w.Ctx, start))(w)
	answer := w.Answer(1)
	answer.Advance.End = &store.End{Reason: regie.EndCompleted, Close: regie.SessionCompleted}
	w.must(w.AppendReply(accepted.Fence, answer))
	w.equal("outcomes", []regie.FireOutcome{add("3").Outcome, add("4").Outcome}, []regie.FireOutcome{regie.FireDue, regie.FireCoalesced})
	w.equal("payloads", left(), []string{"4", "3", "2", "1"})
	resultOf(w.Store.Remove(w.Ctx, store.Remove{SessionID: accepted.Fence.SessionID, By: "ada"}))(w)
	w.equal("without the first session", left(), []string{"4", "3", "", ""})
	w.must(w.Store.ChangeAutomation(w.Ctx, store.AutomationChange{ID: a.ID, Removed: true, By: "ada"}))
	w.equal("without the automation", left(), []string{"", "", "", ""})
	for _, log := range []regie.ID{accepted.Fence.SessionID, a.WorkspaceID} {
		_, err := w.Store.Verify(w.Ctx, log)
		w.must(err)
	}
}

// levelsGo: prompt levels of a workspace are erased with their last session, and Regie's own level
// stays (decisions 14 and 15).
func levelsGo(w *World) {
	level1, err := w.Store.PutBlob(w.Ctx, []byte("what Regie says to all"))
	w.must(err)
	level2, err := w.Store.PutBlob(w.Ctx, []byte("what the workspace says"))
	w.must(err)
	var sessions []regie.ID
	for range 2 {
		in := w.Submission("go")
		in.Round.Level1, in.Round.Level2 = level1, level2
		accepted, err := w.Store.Submit(w.Ctx, in)
		w.must(err)
		w.must(w.AppendReply(accepted.Fence, w.Answer(1)))
		sessions = append(sessions, in.SessionID)
	}
	for i, erased := range []int64{0, 1} {
		out, err := w.Store.Remove(w.Ctx, store.Remove{SessionID: sessions[i], By: "ada"})
		w.must(err)
		w.equal("erased", out.Blobs, erased)
	}
	_, err = w.Store.Blob(w.Ctx, level1)
	w.must(err)
	_, err = w.Store.Blob(w.Ctx, level2)
	w.refused(regie.CodeNotFound, err)
	// It can be stored again.
	again, err := w.Store.PutBlob(w.Ctx, []byte("what the workspace says"))
	w.must(err)
	w.equal("its name", again, level2)
	_, err = w.Store.Blob(w.Ctx, level2)
	w.must(err)
}

// checkGone asserts that a session cannot be reached any more.
func checkGone(w *World, fence store.Fence) {
	w.T.Helper()
	_, _, err := w.Store.Session(w.Ctx, fence.SessionID)
	w.refused(regie.CodeNotFound, err)
	_, err = w.Store.SessionView(w.Ctx, fence.SessionID, w.User)
	w.refused(regie.CodeNotFound, err)
	_, err = w.Store.RoundView(w.Ctx, fence.RoundID)
	w.refused(regie.CodeNotFound, err)
	_, err = w.Store.Export(w.Ctx, fence.SessionID)
	w.refused(regie.CodeNotFound, err)
	_, err = w.Store.Fork(w.Ctx, store.Fork{From: fence.SessionID})
	w.refused(regie.CodeNotFound, err)
	w.refused(regie.CodeNotFound, w.Store.Rename(w.Ctx, fence.SessionID, "x"))
	in := w.Submission("more")
	in.SessionID, in.New = fence.SessionID, nil
	_, err = w.Store.Submit(w.Ctx, in)
	w.refused(regie.CodeNotFound, err)
	inbox := resultOf(w.Store.Inbox(w.Ctx, store.InboxFilter{Closed: true}))(w)
	for i := range inbox.Approvals {
		if inbox.Approvals[i].SessionID == fence.SessionID {
			w.T.Error("an approval of the removed session is listed")
		}
	}
	listed := resultOf(w.Store.Sessions(w.Ctx, store.SessionFilter{ID: fence.SessionID}))(w)
	w.equal("listed", len(listed), 0)
	logs := resultOf(w.Store.Logs(w.Ctx, store.LogFilter{ID: fence.SessionID}))(w)
	w.equal("logs", logs, []store.LogOwner{{ID: fence.SessionID, Kind: "session", Workspace: "w", Removed: true}})
}

// sessions lists sessions with their unread messages (decision 45), by every part of an id, and
// exports one.
func sessions(w *World) {
	fence := w.Start()
	reply := w.Reply(fence, 1, regie.KindQuery)
	w.must(w.AppendReply(fence, reply))
	w.must(w.CommitCalls(fence, w.Settled(1, reply.Calls)))
	one := func(filter store.SessionFilter) store.SessionSummary {
		w.T.Helper()
		filter.UserID = w.User
		found, err := w.Store.Sessions(w.Ctx, filter)
		w.must(err)
		if len(found) != 1 {
			w.T.Fatalf("%+v selects %d sessions", filter, len(found))
		}
		return found[0]
	}
	hexID := strings.ReplaceAll(fence.SessionID.String(), "-", "")
	line := one(store.SessionFilter{Short: hexID[24:], Root: "/w"})
	w.equal("while it runs", []any{line.Messages, line.Rounds, line.Unread, line.Finished, line.LastEnd},
		[]any{3, 1, 0, false, regie.RoundEnd("")})
	w.must(w.AppendReply(fence, w.Answer(2)))
	line = one(store.SessionFilter{Short: hexID[:12]})
	w.equal("when it has ended", []any{line.Messages, line.Unread, line.Finished, line.LastEnd, line.Workspace},
		[]any{4, 1, true, regie.EndAnswered, "w"})
	w.must(w.Store.MarkRead(w.Ctx, regie.ReadMark{UserID: w.User, SessionID: fence.SessionID, Seq: line.Head}))
	line = one(store.SessionFilter{ID: fence.RoundID})
	w.equal("once it was read", []any{line.Unread, line.Finished}, []any{0, false})
	w.must(w.Store.Rename(w.Ctx, fence.SessionID, "the house"))
	w.must(w.Store.Rename(w.Ctx, fence.SessionID, "the house"))
	w.equal("events of the new name", w.head(fence.SessionID), line.Head+1)
	w.equal("name", one(store.SessionFilter{ID: fence.SessionID}).Name, "the house")
	w.must(w.Store.SetMode(w.Ctx, fence.SessionID, regie.ModePlan, "ann"))
	w.must(w.Store.SetMode(w.Ctx, fence.SessionID, regie.ModePlan, "bob"))
	w.equal("events of the mode", w.head(fence.SessionID), line.Head+2)
	w.equal("mode", resultOf(w.Store.Mode(w.Ctx, fence.SessionID))(w), regie.ModePlan)
	planned := resultOf(w.Store.Fork(w.Ctx, store.Fork{From: fence.SessionID, SessionID: regie.NewID()}))(w)
	w.equal("a fork plans too", planned.Session.ApprovalMode, regie.ModePlan)
	w.must(w.Store.SetMode(w.Ctx, fence.SessionID, regie.ModeAuto, "ann"))
	forked := resultOf(w.Store.Fork(w.Ctx, store.Fork{From: fence.SessionID, SessionID: regie.NewID()}))(w)
	w.equal("and is allowed nothing", resultOf(w.Store.Mode(w.Ctx, forked.Session.ID))(w), regie.Mode(""))
	for _, id := range []regie.ID{fence.SessionID, planned.Session.ID, forked.Session.ID} {
		_, err := w.Store.Verify(w.Ctx, id)
		w.must(err)
		w.must(w.Store.Rename(w.Ctx, id, "the house"))
		_, err = w.Store.Verify(w.Ctx, id)
		w.must(err)
	}
	for _, filter := range []store.SessionFilter{{Root: "/elsewhere"}, {Short: "00000000"}, {ID: regie.NewID()}} {
		found, err := w.Store.Sessions(w.Ctx, filter)
		w.must(err)
		w.equal("selected by nothing", len(found), 0)
	}
	w.equal("of its type", one(store.SessionFilter{ID: fence.SessionID, Type: regie.SessionChat}).Type,
		regie.SessionChat)
	automations, err := w.Store.Sessions(w.Ctx, store.SessionFilter{ID: fence.SessionID, Type: regie.SessionAutomation})
	w.must(err)
	w.equal("of another type", len(automations), 0)
	_, err = w.Store.Sessions(w.Ctx, store.SessionFilter{Short: "x' OR 1"})
	w.refused(regie.CodeBadID, err)

	view, err := w.Store.SessionView(w.Ctx, fence.SessionID, w.User)
	w.must(err)
	w.equal("thread", []int{len(view.Thread), len(view.Thread[1].Calls), len(view.History)}, []int{4, 1, 1})
	checkExport(w, fence, view)
}

// checkExport checks an export as a third party would, who has only the export and its description:
// rows without a gap, bodies by their hashes, and messages and calls by the bodies.
func checkExport(w *World, fence store.Fence, view store.SessionView) {
	w.T.Helper()
	out := resultOf(w.Store.Export(w.Ctx, fence.SessionID))(w)
	w.equal("messages", out.Messages, view.Thread)
	report := resultOf(w.Store.Verify(w.Ctx, fence.SessionID))(w)
	w.equal("head", []any{out.Log.Head, out.Log.MAC, out.Format}, []any{report.Events, report.Head, "regie-session-1"})
	for i, row := range out.Log.Events {
		mac, err := hex.DecodeString(row.MAC)
		if err != nil || len(mac) != 32 || row.Seq != int64(i+1) || row.Body == nil ||
			regie.HashOf([]byte(*row.Body)) != row.BodySHA256 {
			w.T.Errorf("row %d is %+v, %v", i+1, row, err)
		}
	}
	w.equal("the last row", out.Log.Events[len(out.Log.Events)-1].MAC, out.Log.MAC)
	w.equal("rounds", []any{len(out.Rounds), len(out.Rounds[0].Exchanges), out.Rounds[0].Exchanges[0].Request},
		[]any{1, 2, regie.HashOf([]byte("request"))})
}
