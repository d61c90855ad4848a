package storetest

import (
	"encoding/json"
	"strings"
	"sync/atomic"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// Ask starts a round with a reply that proposes actions for approval, and parks it.
func (w *World) Ask(n int) (store.Fence, store.Reply, *regie.Approval) {
	w.T.Helper()
	fence := w.Start()
	kinds := make([]regie.CallKind, n)
	for i := range kinds {
		kinds[i] = regie.KindAction
	}
	reply := w.Reply(fence, 1, kinds...)
	asked := w.Approval(fence, reply)
	reply.Ask, reply.Park = &store.Asked{Approval: asked}, true
	out := resultOf(w.Store.AppendReply(w.Ctx, fence, reply))(w)
	if !out.Parked {
		w.T.Fatal("the round did not park")
	}
	return fence, reply, asked
}

// Approval makes the approval of a reply's calls and has them await it.
func (w *World) Approval(fence store.Fence, reply store.Reply) *regie.Approval {
	a := &regie.Approval{
		ID: regie.NewID(), SessionID: fence.SessionID, RoundID: fence.RoundID, Exchange: 1,
		ExpiresAt: time.Now().Add(time.Hour).Truncate(time.Microsecond).UTC(),
	}
	for i := range reply.Calls {
		c := &reply.Calls[i]
		c.State = regie.CallAwaitingApproval
		a.Reviews = append(a.Reviews, regie.Review{
			CallID: c.ID, Tool: c.Tool, Definition: c.Definition, Arguments: json.RawMessage(c.Arguments),
			Verdict: regie.VerdictAsk,
			Preview: regie.Preview{Sentence: regie.Say("write 1 line to %s (new file)", "a.txt"), Diff: "+x\n"},
			Grounds: []regie.Ground{{Source: regie.SourceApp, Verdict: regie.VerdictAsk}},
		})
	}
	return a
}

func (w *World) state(session regie.ID, want regie.SessionState) {
	w.T.Helper()
	got, _, err := w.Store.Session(w.Ctx, session)
	w.must(err)
	w.equal("session state", got.State, want)
}

func (w *World) decide(a *regie.Approval, request string, decisions ...regie.Decision) (store.Resolved, error) {
	for i := range decisions {
		decisions[i].By = "ada"
	}
	return w.Store.Decide(w.Ctx, store.Decide{ApprovalID: a.ID, Request: request, Decisions: decisions})
}

// approvals follows an approval from its request to the decided calls (spec 4.4, decision 20).
func approvals(w *World) {
	fence, reply, asked := w.Ask(3)
	w.state(fence.SessionID, regie.SessionWaitingValidation)
	_, err := w.Store.Claim(w.Ctx, fence.RoundID, "other")
	w.refused(regie.CodeConflict, err) // a waiting round has no holder
	found := resultOf(w.Store.Orphans(w.Ctx, ""))(w)
	w.equal("orphans", len(found), 0)
	inbox := resultOf(w.Store.Inbox(w.Ctx, store.InboxFilter{Root: "/w"}))(w)
	if len(inbox.Approvals) != 1 || len(inbox.Approvals[0].Reviews) != 3 {
		w.T.Fatalf("the inbox holds %+v", inbox)
	}
	w.equal("review", inbox.Approvals[0].Reviews[1], asked.Reviews[1])
	w.equal("expiry", inbox.Approvals[0].ExpiresAt, asked.ExpiresAt)
	view := resultOf(w.Store.SessionView(w.Ctx, fence.SessionID, w.User))(w)
	if len(view.Waits) != 1 || view.Waits[0].Since.IsZero() {
		w.T.Fatalf("the session waits for %+v", view.Waits)
	}
	view.Waits[0].ID, view.Waits[0].Since = regie.ID{}, time.Time{}
	w.equal("what the session waits for", view.Waits[0],
		regie.Wait{RoundID: fence.RoundID, Kind: regie.WaitApproval, ObjectID: asked.ID, Deadline: asked.ExpiresAt})
	brief := resultOf(w.Store.Inbox(w.Ctx, store.InboxFilter{Root: "/w", Brief: true}))(w)
	if len(brief.Approvals) != 1 || len(brief.Approvals[0].Reviews) != 3 {
		w.T.Fatalf("the brief inbox holds %+v", brief)
	}
	short, whole := brief.Approvals[0].Reviews[1], asked.Reviews[1]
	w.equal("diff of a list", short.Preview.Diff, "")
	w.equal("arguments of a list", string(short.Arguments), "")
	w.equal("scopes of a list", short.Preview.Scopes, whole.Preview.Scopes)
	w.equal("sentence of a list", short.Preview.Sentence, whole.Preview.Sentence)
	other := resultOf(w.Store.Inbox(w.Ctx, store.InboxFilter{Root: "/elsewhere"}))(w)
	w.equal("another workspace's inbox", len(other.Approvals), 0)

	out := resultOf(w.decide(asked, "1", regie.Decision{CallID: reply.Calls[0].ID, Answer: regie.AnswerAllow}))(w)
	w.equal("ready", out.Ready, false)
	before := w.head(fence.SessionID)
	_, err = w.decide(asked, "1", regie.Decision{CallID: reply.Calls[0].ID, Answer: regie.AnswerAllow}) // said again
	w.must(err)
	_, err = w.decide(asked, "2", regie.Decision{CallID: reply.Calls[0].ID, Answer: regie.AnswerDeny})
	w.refused(regie.CodeConflict, err)
	// A request with one late decision is refused as a whole.
	_, err = w.decide(asked, "3", regie.Decision{CallID: reply.Calls[1].ID, Answer: regie.AnswerAllow},
		regie.Decision{CallID: reply.Calls[0].ID, Answer: regie.AnswerDeny})
	w.refused(regie.CodeConflict, err)
	w.equal("the log", w.head(fence.SessionID), before)

	edited := json.RawMessage(`{"n":7}`)
	_, err = w.decide(asked, "4", regie.Decision{
		CallID: reply.Calls[1].ID,
		Answer: regie.AnswerAllow, Arguments: edited,
	})
	w.must(err)
	before = w.head(fence.SessionID)
	out = resultOf(w.decide(asked, "5",
		regie.Decision{CallID: reply.Calls[2].ID, Answer: regie.AnswerDeny, Reason: "no"}))(w)
	checkDecisionFirst(w, fence.SessionID, before, regie.EventApproval)
	w.equal("ready", out.Ready, true)
	w.state(fence.SessionID, regie.SessionActive)
	claimed := resultOf(w.Store.Claim(w.Ctx, fence.RoundID, "other"))(w)
	w.equal("resumes", claimed.Round.Counters.Resumes, 0)
	w.equal("states", []regie.CallState{claimed.Calls[0].State, claimed.Calls[1].State, claimed.Calls[2].State},
		[]regie.CallState{regie.CallApproved, regie.CallApproved, regie.CallNotRun})
	w.equal("executed", string(claimed.Calls[1].Executed), string(edited))
	w.equal("review", claimed.Reviews[reply.Calls[0].ID].Decision.By, "ada")
	if problem := claimed.Calls[2].Error; problem == nil || problem.Code != regie.CodeUserRejected ||
		!strings.Contains(problem.Message, "no") {
		w.T.Errorf("the denial says %+v", problem)
	}
	w.head(fence.SessionID)
}

// decideTogether answers one call many times at once: one answer is accepted.
func decideTogether(w *World) {
	fence, reply, asked := w.Ask(1)
	var accepted atomic.Int64
	together(8, func(i int) {
		_, err := w.decide(asked, string(rune('a'+i)), regie.Decision{
			CallID: reply.Calls[0].ID, Answer: regie.AnswerAllow,
		})
		switch regie.CodeOf(err) {
		case "":
			accepted.Add(1)
		case regie.CodeConflict:
		default:
			w.T.Error(err)
		}
	})
	w.equal("accepted", accepted.Load(), int64(1))
	w.head(fence.SessionID)
}

// decidedBeforeParking answers while the holder still works on the queries of the batch: the
// outcome tells the holder that the round does not park.
func decidedBeforeParking(w *World) {
	fence := w.Start()
	reply := w.Reply(fence, 1, regie.KindQuery, regie.KindAction)
	asked := w.Approval(fence, store.Reply{Calls: reply.Calls[1:]})
	reply.Ask = &store.Asked{Approval: asked}
	w.must(w.AppendReply(fence, reply))
	out := resultOf(w.decide(asked, "x", regie.Decision{CallID: reply.Calls[1].ID, Answer: regie.AnswerAllow}))(w)
	w.equal("ready", out.Ready, false) // the holder has it
	query := reply.Calls[0]
	query.State, query.Result = regie.CallSucceeded, "ok"
	parked, err := w.Store.CommitCalls(w.Ctx, fence, store.Settle{
		Exchange: 1,
		Settled:  []regie.Call{query}, Park: true,
	})
	w.must(err)
	w.equal("parked", parked.Parked, false)
	batch := resultOf(w.Store.Batch(w.Ctx, fence, 1, reply.Message.ID))(w)
	w.equal("the action", batch.Calls[1].State, regie.CallApproved)
	w.state(fence.SessionID, regie.SessionActive)
}

// expiry ends a wait by its deadline: its calls are not run, and later answers are refused
// (decision 11).
func expiry(w *World) {
	fence, reply, asked := w.Ask(2)
	resultOf(w.decide(asked, "x", regie.Decision{CallID: reply.Calls[0].ID, Answer: regie.AnswerAllow}))(w)
	ready, next, err := w.Store.ExpireWaits(w.Ctx, asked.ExpiresAt.Add(-time.Second))
	w.must(err)
	if len(ready) != 0 || !next.Equal(asked.ExpiresAt) {
		w.T.Errorf("before the deadline: %v, next %v", ready, next)
	}
	ready, next, err = w.Store.ExpireWaits(w.Ctx, asked.ExpiresAt)
	w.must(err)
	if len(ready) != 1 || ready[0].RoundID != fence.RoundID || !next.IsZero() {
		w.T.Errorf("at the deadline: %v, next %v", ready, next)
	}
	claimed := resultOf(w.Store.Claim(w.Ctx, fence.RoundID, "other"))(w)
	w.equal("decided in time", claimed.Calls[0].State, regie.CallApproved)
	w.equal("not decided", claimed.Calls[1].NotRun, regie.NotRunExpired)
	_, err = w.decide(asked, "y", regie.Decision{CallID: reply.Calls[1].ID, Answer: regie.AnswerAllow})
	w.refused(regie.CodeExpired, err)
	w.head(fence.SessionID)
}

// checkDecisionFirst asserts that the log has a person's decision before its result.
func checkDecisionFirst(w *World, session regie.ID, after int64, said regie.EventType) {
	events := resultOf(w.Store.Events(w.Ctx, session, after, 10))(w)
	var kinds []regie.EventType
	for _, event := range events {
		if event.Type == said || event.Type == regie.EventToolResult {
			kinds = append(kinds, event.Type)
		}
	}
	w.equal("the order of the log", kinds, []regie.EventType{said, regie.EventToolResult})
}

// question follows a question to its answer (spec 4.5, decision 40).
func question(w *World) {
	fence := w.Start()
	reply := w.Reply(fence, 1, regie.KindQuery)
	asked := regie.Question{
		ID: regie.NewID(), RoundID: fence.RoundID, CallID: reply.Calls[0].ID,
		Module:    regie.Module{Kind: regie.ModuleChoice, Text: "which?", Options: []string{"a", "b"}},
		ExpiresAt: time.Now().Add(time.Hour),
	}
	reply.Ask, reply.Park = &store.Asked{Questions: []regie.Question{asked}}, true
	w.must(w.AppendReply(fence, reply))
	w.state(fence.SessionID, regie.SessionWaitingResponse)
	inbox := resultOf(w.Store.Inbox(w.Ctx, store.InboxFilter{SessionID: fence.SessionID}))(w)
	if len(inbox.Questions) != 1 || inbox.Questions[0].Module.Options[1] != "b" {
		w.T.Fatalf("the inbox holds %+v", inbox)
	}
	steer := w.Submission("something else")
	steer.SessionID, steer.New, steer.WhenBusy, steer.LeavesWaits = fence.SessionID, nil, store.Steer, true
	w.unchanged(fence.SessionID, regie.CodeMissingScope, func() error {
		_,
			err := w.Store.Submit(w.Ctx, steer)
		return err
	})
	answer := store.AnswerQuestion{
		QuestionID: asked.ID, Request: "r", Reply: regie.QuestionReply{Choices: []string{"b"}, By: "ada"}, Result: "b",
		Message: regie.Message{
			ID: regie.NewID(), Sender: regie.SenderUser,
			Author: regie.Author{Kind: regie.AuthorUser, ID: "ada"}, Text: "b", ExcludeFromPrompt: true,
		},
	}
	before := w.head(fence.SessionID)
	for range 2 {
		resultOf(w.Store.Answer(w.Ctx, answer))(w)
	}
	checkDecisionFirst(w, fence.SessionID, before, regie.EventQuestion)
	answer.Request = "another"
	_, err := w.Store.Answer(w.Ctx, answer)
	w.refused(regie.CodeConflict, err)
	claimed := resultOf(w.Store.Claim(w.Ctx, fence.RoundID, "other"))(w)
	w.equal("result", claimed.Calls[0].Result, "b")
	w.equal("asked", claimed.Asked[reply.Calls[0].ID], true)
	w.head(fence.SessionID)
}

// pending stores messages that arrive during a round and admits them when it ends (decision 10).
func pending(w *World) {
	fence := w.Start()
	say := func(text string, when store.WhenBusy) {
		w.T.Helper()
		in := w.Submission(text)
		in.SessionID, in.New, in.WhenBusy = fence.SessionID, nil, when
		in.Message.ClientID, in.Message.Opening = text, &regie.Opening{Zone: "Europe/Paris", User: text}
		accepted := resultOf(w.Store.Submit(w.Ctx, in))(w)
		again := resultOf(w.Store.Submit(w.Ctx, in))(w)
		if !again.Duplicate || !again.Pending || again.RoundID != fence.RoundID ||
			again.Message.Seq != accepted.Message.Seq ||
			!accepted.Pending || accepted.RoundID != fence.RoundID {
			w.T.Errorf("%q was taken as %+v, then %+v", text, accepted, again)
		}
		in.Message.Text = "not " + text
		w.unchanged(fence.SessionID, regie.CodeKeyReused, func() error {
			_,
				err := w.Store.Submit(w.Ctx, in)
			return err
		})
	}
	say("queued one", store.Queue)
	say("steering", store.Steer)
	say("queued two", store.Queue)
	reply := w.Reply(fence, 1, regie.KindQuery)
	w.must(w.AppendReply(fence, reply))
	out := resultOf(w.Store.CommitCalls(w.Ctx, fence, w.Settled(1, reply.Calls)))(w)
	if len(out.Admitted) != 1 || out.Admitted[0].Text != "steering" || out.Admitted[0].Seq == 0 {
		w.T.Errorf("admitted into the round: %+v", out.Admitted)
	}
	out = resultOf(w.Store.AppendReply(w.Ctx, fence, w.Answer(2)))(w)
	if out.Next.IsZero() {
		w.T.Fatal("no next round")
	}
	w.state(fence.SessionID, regie.SessionActive)
	found := resultOf(w.Store.Orphans(w.Ctx, ""))(w)
	if len(found) != 1 || found[0].RoundID != out.Next {
		w.T.Errorf("orphans %+v", found)
	}
	next := resultOf(w.Store.Claim(w.Ctx, out.Next, "other"))(w)
	thread := resultOf(w.Store.Thread(w.Ctx, fence.SessionID, 0))(w)
	var said []string
	var last int64
	for _, m := range thread.Messages {
		if m.Seq <= last {
			w.T.Errorf("message %d stands after %d", m.Seq, last)
		}
		last = m.Seq
		if m.Sender == regie.SenderUser {
			said = append(said, m.Text)
		}
		if o := m.Opening; (o != nil) != (m.Text == "queued one") { // only the first message of a round has an Opening
			w.T.Errorf("%q opens with %+v", m.Text, o)
		} else if o != nil && (o.User != m.Text || o.At.Sub(m.Time).Abs() > time.Second ||
			o.At.Location() == time.UTC) {
			w.T.Errorf("%q at %v opens with %+v", m.Text, m.Time, o)
		}
	}
	w.equal("the thread", said, []string{"go", "steering", "queued one", "queued two"})
	w.must(w.AppendReply(next.Fence, w.Answer(1)))
	w.state(fence.SessionID, regie.SessionIdle)
	w.head(fence.SessionID)
}

// steeredBeforeParking steers a round that is about to ask people: it does not wait for them.
func steeredBeforeParking(w *World) {
	fence := w.Start()
	in := w.Submission("something else")
	in.SessionID, in.New, in.WhenBusy = fence.SessionID, nil, store.Steer
	resultOf(w.Store.Submit(w.Ctx, in))(w)
	reply := w.Reply(fence, 1, regie.KindAction)
	reply.Ask, reply.Park = &store.Asked{Approval: w.Approval(fence, reply)}, true
	out := resultOf(w.Store.AppendReply(w.Ctx, fence, reply))(w)
	w.equal("parked", out.Parked, false)
	batch := resultOf(w.Store.Batch(w.Ctx, fence, 1, reply.Message.ID))(w)
	w.equal("the call", batch.Calls[0].NotRun, regie.NotRunSuperseded)
	w.state(fence.SessionID, regie.SessionActive)
	w.head(fence.SessionID)
}

// steeredByWhoMayNot steers a round that is about to ask people, with a message that may not
// answer: the round waits for them, and the message with it.
func steeredByWhoMayNot(w *World) {
	fence := w.Start()
	in := w.Submission("something else")
	in.SessionID, in.New, in.WhenBusy, in.LeavesWaits = fence.SessionID, nil, store.Steer, true
	resultOf(w.Store.Submit(w.Ctx, in))(w)
	reply := w.Reply(fence, 1, regie.KindAction)
	asked := w.Approval(fence, reply)
	reply.Ask, reply.Park = &store.Asked{Approval: asked}, true
	out := resultOf(w.Store.AppendReply(w.Ctx, fence, reply))(w)
	w.equal("parked", out.Parked, true)
	w.state(fence.SessionID, regie.SessionWaitingValidation)
	resultOf(w.decide(asked, "x", regie.Decision{CallID: reply.Calls[0].ID, Answer: regie.AnswerDeny}))(w)
	claimed := resultOf(w.Store.Claim(w.Ctx, fence.RoundID, "other"))(w)
	settle := w.Settled(1, nil)
	settle.Message.System.CallIDs = []regie.ID{reply.Calls[0].ID}
	settled := resultOf(w.Store.CommitCalls(w.Ctx, claimed.Fence, settle))(w)
	if len(settled.Admitted) != 1 || settled.Admitted[0].Text != "something else" {
		w.T.Errorf("admitted into the round: %+v", settled.Admitted)
	}
	w.head(fence.SessionID)
}

// stopping withdraws a session's requests and closes it; a message reopens a chat (decision 6).
func stopping(w *World) {
	fence, reply, asked := w.Ask(1)
	in := w.Submission("later")
	in.SessionID, in.New = fence.SessionID, nil
	queued, err := w.Store.Submit(w.Ctx, in)
	w.must(err)
	for range 2 {
		_, err := w.Store.RequestStop(w.Ctx, fence.RoundID, regie.StopStop)
		w.must(err)
	}
	_, err = w.decide(asked, "x", regie.Decision{CallID: reply.Calls[0].ID, Answer: regie.AnswerAllow})
	w.refused(regie.CodeConflict, err)
	claimed, err := w.Store.Claim(w.Ctx, fence.RoundID, "other")
	w.must(err)
	w.equal("the call", claimed.Calls[0].NotRun, regie.NotRunInterrupted)
	settle := w.Settled(1, nil)
	settle.Message.System.CallIDs = []regie.ID{reply.Calls[0].ID}
	settle.Advance = &store.Advance{
		Phase: regie.PhaseEnd, Counters: regie.Counters{Total: 1},
		End: &store.End{Reason: regie.EndStopped},
	}
	w.must(w.CommitCalls(claimed.Fence, settle))
	session, _, err := w.Store.Session(w.Ctx, fence.SessionID)
	w.must(err)
	w.equal("end", []string{string(session.State), string(session.EndReason)}, []string{"CLOSED", "CANCELLED"})
	thread, err := w.Store.Thread(w.Ctx, fence.SessionID, 0)
	w.must(err)
	for _, m := range thread.Messages {
		if m.ID == queued.Message.ID {
			w.T.Error("a withdrawn message stands in the thread")
		}
	}
	again := w.Submission("hello again")
	again.SessionID, again.New = fence.SessionID, nil
	accepted, err := w.Store.Submit(w.Ctx, again)
	w.must(err)
	w.refused(regie.CodeRoundInProgress, w.Store.CloseSession(w.Ctx, fence.SessionID, ""))
	w.must(w.AppendReply(accepted.Fence, w.Answer(1)))
	w.must(w.Store.CloseSession(w.Ctx, fence.SessionID, ""))
	w.must(w.Store.CloseSession(w.Ctx, fence.SessionID, ""))
	w.state(fence.SessionID, regie.SessionClosed)
	w.head(fence.SessionID)
}

// rules are stored with the answer that made them, for the session or for the workspace (spec 4.4).
func rules(w *World) {
	fence, reply, asked := w.Ask(2)
	scope := regie.Scope{Tool: "t.action", Kind: regie.ScopeAny}
	rule := func(session regie.ID) regie.Rule {
		return regie.Rule{
			ID: regie.NewID(), SessionID: session, Verdict: regie.VerdictAllow, Scope: scope,
			Author: "ada", FromCall: reply.Calls[0].ID,
		}
	}
	_, err := w.Store.Decide(w.Ctx, store.Decide{
		ApprovalID: asked.ID, Request: "x", Rules: []regie.Rule{rule(fence.SessionID), rule(regie.ID{})},
		Decisions: []regie.Decision{
			{CallID: reply.Calls[0].ID, Answer: regie.AnswerSession, Scope: &scope, By: "ada"},
			{CallID: reply.Calls[1].ID, Answer: regie.AnswerAlways, Scope: &scope, By: "ada"},
		},
	})
	w.must(err)
	own := resultOf(w.Store.Rules(w.Ctx, w.Workspace.ID, fence.SessionID))(w)
	w.equal("rules of the session", len(own), 2)
	w.equal("scope", own[0].Scope, scope)
	others := resultOf(w.Store.Rules(w.Ctx, w.Workspace.ID, w.Start().SessionID))(w)
	if len(others) != 1 || !others[0].SessionID.IsZero() || others[0].WorkspaceID != w.Workspace.ID {
		w.T.Errorf("rules of another session: %+v", others)
	}
}

// resolve settles an UNKNOWN call by a person's finding, once, and nothing else (decision 5,
// invariant 5).
func resolve(w *World) {
	fence := w.Start()
	reply := w.Reply(fence, 1, regie.KindAction, regie.KindQuery)
	w.must(w.AppendReply(fence, reply))
	call := reply.Calls[0]
	w.must(w.CommitCalls(fence, store.Settle{Exchange: 1, Start: &call}))
	// it may still be running
	w.refused(regie.CodeConflict, w.Store.ResolveCall(w.Ctx, call.ID, regie.ResolvedHappened, "", "ada"))
	call.State, call.Error = regie.CallUnknown, &regie.CallError{Code: regie.CodeOutcomeUnknown, Message: "?"}
	w.must(w.CommitCalls(fence, store.Settle{Exchange: 1, Settled: []regie.Call{call}}))
	for range 2 {
		w.must(w.Store.ResolveCall(w.Ctx, call.ID, regie.ResolvedHappened, "seen on the account", "ada"))
	}
	w.unchanged(fence.SessionID, regie.CodeConflict, func() error {
		return w.Store.ResolveCall(w.Ctx, call.ID, regie.ResolvedDidNotHappen, "", "bob")
	})
	w.unchanged(fence.SessionID, regie.CodeConflict, func() error {
		return w.Store.ResolveCall(w.Ctx, reply.Calls[1].ID, regie.ResolvedHappened, "", "bob")
	})
	w.refused(regie.CodeNotFound, w.Store.ResolveCall(w.Ctx, regie.NewID(), regie.ResolvedHappened, "", "bob"))
	view := resultOf(w.Store.RoundView(w.Ctx, fence.RoundID))(w)
	got := view.Exchanges[0].Calls[0]
	if got.State != regie.CallSucceeded || got.Resolution == nil || got.Resolution.By != "ada" ||
		got.Resolution.Note == "" || got.Error == nil {
		w.T.Errorf("resolved as %s: %+v", got.State, got.Resolution)
	}
	w.head(fence.SessionID)
}

// inboxPages reads the inbox page by page: each approval once, the oldest first.
func inboxPages(w *World) {
	var asked []regie.ID
	for range 5 {
		_, _, a := w.Ask(1)
		asked = append(asked, a.ID)
	}
	var read []regie.ID
	filter := store.InboxFilter{Closed: true, Limit: 2}
	for {
		inbox := resultOf(w.Store.Inbox(w.Ctx, filter))(w)
		if len(inbox.Approvals) == 0 {
			break
		}
		w.equal("within the limit", len(inbox.Approvals) <= 2, true)
		for _, a := range inbox.Approvals {
			read = append(read, a.ID)
			filter.After = store.Mark{At: a.CreatedAt, ID: a.ID}
		}
	}
	w.equal("read", read, asked)
}
