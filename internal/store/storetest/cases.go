package storetest

import (
	"fmt"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

func submit(w *World) {
	in := w.Submission("hello")
	in.Message.ClientID = "client-1"
	first := resultOf(w.Store.Submit(w.Ctx, in))(w)
	if !first.Created || first.Duplicate || first.Message.Seq != 2 || first.Fence.Epoch != 1 {
		w.T.Errorf("accepted %+v", first)
	}
	head := w.head(in.SessionID)
	// The same again, by client id and by message id: nothing is added (spec 2.3).
	again := in
	again.Message.ID, again.Round.ID = regie.NewID(), regie.NewID()
	for _, repeat := range []store.Submission{again, in} {
		second := resultOf(w.Store.Submit(w.Ctx, repeat))(w)
		if !second.Duplicate || second.RoundID != first.RoundID ||
			second.Message.ID != in.Message.ID || second.Message.Seq != 2 {
			w.T.Errorf("a repeated submission gave %+v", second)
		}
	}
	// Another message with the same id would be lost silently.
	for _, other := range []regie.Message{{Text: "something else"}, {Rich: []regie.Segment{{Text: "hello"}}}} {
		clash := again
		clash.Message.Text, clash.Message.Rich = other.Text, other.Rich
		w.unchanged(in.SessionID, regie.CodeKeyReused, func() error {
			_,
				err := w.Store.Submit(w.Ctx, clash)
			return err
		})
	}
	if got := w.head(in.SessionID); got != head {
		w.T.Errorf("a repeated submission moved the log from %d to %d", head, got)
	}
	session, workspace, err := w.Store.Session(w.Ctx, in.SessionID)
	w.must(err)
	w.equal("state", session.State, regie.SessionActive)
	w.equal("workspace", workspace.Root, "/w")
	round := resultOf(w.Store.Round(w.Ctx, first.RoundID))(w)
	w.equal("round", round, in.Round, cmpopts.IgnoreFields(regie.Round{}, "SessionID", "StartedAt", "Number", "State",
		"Phase", "Exchange", "Epoch"))
	if round.State != regie.RoundRunning || round.Phase != regie.PhaseModel ||
		round.Exchange != 1 || round.Number != 1 {
		w.T.Errorf("a new round is %+v", round)
	}
	open := resultOf(w.Store.OpenRound(w.Ctx, in.SessionID))(w)
	w.equal("open round", open, first.RoundID)
}

func submitRefuses(w *World) {
	in := w.Submission("first")
	resultOf(w.Store.Submit(w.Ctx, in))(w)
	second := w.Submission("second")
	second.SessionID, second.New = in.SessionID, nil
	// One round at a time per session (spec 3).
	second.WhenBusy = store.Reject
	w.unchanged(in.SessionID, regie.CodeRoundInProgress, func() error {
		_,
			err := w.Store.Submit(w.Ctx, second)
		return err
	})
	template := w.Submission("template")
	template.New.Type = regie.SessionSeed
	resultOf(w.Store.CreateSession(w.Ctx, *template.New))(w)
	w.unchanged(template.SessionID, regie.CodeConflict, func() error {
		_,
			err := w.Store.Submit(w.Ctx, template)
		return err
	})
	empty := w.Submission("")
	_, err := w.Store.Submit(w.Ctx, empty)
	w.refused(regie.CodeBadRequest, err)
	if _, _, err := w.Store.Session(w.Ctx, empty.SessionID); regie.CodeOf(err) != regie.CodeNotFound {
		w.T.Errorf("a refused submission left its session: %v", err)
	}
}

func exchange(w *World) {
	fence := w.Start()
	reply := w.Reply(fence, 1, regie.KindQuery, regie.KindQuery)
	w.must(w.AppendReply(fence, reply))
	settle := w.Settled(1, reply.Calls)
	w.must(w.CommitCalls(fence, settle))
	w.must(w.AppendReply(fence, w.Answer(2)))

	view := resultOf(w.Store.RoundView(w.Ctx, fence.RoundID))(w)
	if view.Round.State != regie.RoundEnded || view.Round.End != regie.EndAnswered ||
		view.Round.EndedAt.IsZero() || len(view.Exchanges) != 2 {
		w.T.Fatalf("the round is %+v", view.Round)
	}
	got := view.Exchanges[0]
	reply.Exchange.Provider, reply.Exchange.Model = "p", "m" // the round's own
	w.equal("exchange", got.Exchange, reply.Exchange, cmpopts.IgnoreFields(regie.Exchange{}, "RoundID", "Reason",
		"State", "Attempt", "ReplyID", "OpenedAt", "RepliedAt"))
	w.equal("calls", got.Calls, settle.Settled, cmpopts.IgnoreFields(regie.Call{},
		"SessionID", "ProposedAt", "SettledAt"))
	w.equal("reply", got.Reply.AI, reply.Message.AI)
	session, _, err := w.Store.Session(w.Ctx, fence.SessionID)
	w.must(err)
	w.equal("session", session.State, regie.SessionIdle)

	thread := resultOf(w.Store.Thread(w.Ctx, fence.SessionID, 0))(w)
	var senders []regie.Sender
	for _, m := range thread.Messages {
		senders = append(senders, m.Sender)
	}
	w.equal("thread", senders, []regie.Sender{regie.SenderUser, regie.SenderAI, regie.SenderSystem, regie.SenderAI})
	w.equal("calls of the reply", len(thread.Calls[reply.Message.ID]), 2)
	w.refused(regie.CodeConflict, w.AppendReply(fence, w.Answer(3)))
}

// exchangeAtOnce stores a reply with the results of its queries, in one transition instead of two.
// The result of an action is refused there.
func exchangeAtOnce(w *World) {
	fence := w.Start()
	reply := w.Reply(fence, 1, regie.KindQuery, regie.KindQuery)
	settle := w.Settled(1, reply.Calls)
	reply.Calls, reply.Results, reply.Advance = settle.Settled, settle.Message, *settle.Advance
	reply.Calls[1].State, reply.Calls[1].Result, reply.Calls[1].Error = regie.CallFailed, "",
		&regie.CallError{Code: "NOT_FOUND", Message: "gone"}
	for i := range reply.Calls {
		reply.Calls[i].Attempts = 1
	}
	w.must(w.AppendReply(fence, reply))
	view := resultOf(w.Store.RoundView(w.Ctx, fence.RoundID))(w)
	if len(view.Exchanges) != 2 || view.Round.Phase != regie.PhaseModel || view.Round.Exchange != 2 ||
		view.Exchanges[1].State != regie.ExchangeOpen {
		w.T.Fatalf("the round is %+v with %d exchanges", view.Round, len(view.Exchanges))
	}
	w.equal("calls", view.Exchanges[0].Calls, reply.Calls, cmpopts.IgnoreFields(regie.Call{},
		"SessionID", "ProposedAt", "SettledAt"))
	w.refused(regie.CodeConflict, w.CommitCalls(fence, store.Settle{Exchange: 1, Settled: settle.Settled[:1]}))

	second := w.Reply(fence, 2, regie.KindAction)
	settle = w.Settled(2, second.Calls)
	second.Calls, second.Results, second.Advance = settle.Settled, settle.Message, *settle.Advance
	w.unchanged(fence.SessionID, regie.CodeConflict, func() error { return w.AppendReply(fence, second) })
	w.must(w.AppendReply(fence, w.Answer(2)))
}

func actionsOneByOne(w *World) {
	fence := w.Start()
	reply := w.Reply(fence, 1, regie.KindAction, regie.KindAction)
	reply.Calls[0].State, reply.Calls[0].StartedAt, reply.Calls[0].Intent = regie.CallStarted,
		time.Now(), []byte(`{"before":"x"}`)
	w.must(w.AppendReply(fence, reply))
	first := reply.Calls[0]
	first.State, first.Result = regie.CallSucceeded, "ok"
	second := reply.Calls[1]
	second.Intent = []byte(`{"before":"y"}`)
	// The result of one and the intent of the next are one transition (decision 4).
	w.must(w.CommitCalls(fence, store.Settle{Exchange: 1, Settled: []regie.Call{first}, Start: &second}))
	claimed := resultOf(w.Store.Claim(w.Ctx, fence.RoundID, "other"))(w)
	states := []regie.CallState{claimed.Calls[0].State, claimed.Calls[1].State}
	w.equal("states", states, []regie.CallState{regie.CallSucceeded, regie.CallStarted})
	w.equal("intent", string(claimed.Calls[1].Intent), `{"before":"y"}`)
	w.equal("resumed", claimed.Resumed, true)
	w.equal("phase", claimed.Round.Phase, regie.PhaseCalls)
	// An action that never started cannot succeed (invariant 2).
	third := w.Start()
	only := w.Reply(third, 1, regie.KindAction)
	w.must(w.AppendReply(third, only))
	w.unchanged(third.SessionID, regie.CodeConflict, func() error {
		return w.CommitCalls(third, w.Settled(1, only.Calls))
	})
}

func settleOnce(w *World) {
	fence := w.Start()
	reply := w.Reply(fence, 1, regie.KindQuery)
	w.must(w.AppendReply(fence, reply))
	settle := w.Settled(1, reply.Calls)
	half := store.Settle{Exchange: 1, Settled: settle.Settled}
	w.must(w.CommitCalls(fence, half))
	half.Settled[0].Result = "another"
	w.unchanged(fence.SessionID, regie.CodeConflict, func() error { return w.CommitCalls(fence, half) })
	view := resultOf(w.Store.RoundView(w.Ctx, fence.RoundID))(w)
	w.equal("result", view.Exchanges[0].Calls[0].Result, `result of {"n":0}`)
}

func replyIsWhole(w *World) {
	fence := w.Start()
	// The message names two calls, one is given: neither is stored (spec 2.3, decision 7).
	reply := w.Reply(fence, 1, regie.KindQuery, regie.KindQuery)
	reply.Calls = reply.Calls[:1]
	w.unchanged(fence.SessionID, regie.CodeConflict, func() error { return w.AppendReply(fence, reply) })
	thread := resultOf(w.Store.Thread(w.Ctx, fence.SessionID, 0))(w)
	w.equal("messages", len(thread.Messages), 1)
	// A second reply to the same exchange is refused.
	w.must(w.AppendReply(fence, w.Reply(fence, 1, regie.KindQuery)))
	w.unchanged(fence.SessionID, regie.CodeConflict, func() error { return w.AppendReply(fence, w.Reply(fence, 1)) })
}

func staleEpoch(w *World) {
	fence := w.Start()
	reply := w.Reply(fence, 1, regie.KindQuery)
	w.must(w.AppendReply(fence, reply))
	claimed := resultOf(w.Store.Claim(w.Ctx, fence.RoundID, "other"))(w)
	if claimed.Fence.Epoch <= fence.Epoch {
		w.T.Errorf("the epoch went from %d to %d", fence.Epoch, claimed.Fence.Epoch)
	}
	for name, fn := range map[string]func() error{
		"AppendReply": func() error { return w.AppendReply(fence, w.Answer(1)) },
		"CommitCalls": func() error { return w.CommitCalls(fence, w.Settled(1, reply.Calls)) },
		"Release":     func() error { return w.Store.Release(w.Ctx, fence) },
		"FailAttempt": func() error {
			return w.FailAttempt(fence, store.Failure{
				Attempt: regie.Attempt{Exchange: 1, Number: 1},
				Retry:   &store.Open{Number: 1},
			})
		},
	} {
		before := w.head(fence.SessionID)
		if err := fn(); regie.CodeOf(err) != regie.CodeStale {
			w.T.Errorf("%s under a stale epoch: %v", name, err)
		}
		if after := w.head(fence.SessionID); after != before {
			w.T.Errorf("%s under a stale epoch moved the log", name)
		}
	}
	w.must(w.CommitCalls(claimed.Fence, w.Settled(1, reply.Calls)))
}

func interruptWins(w *World) {
	fence := w.Start()
	session := resultOf(w.Store.RequestStop(w.Ctx, fence.RoundID, regie.StopInterrupt))(w)
	w.equal("session", session, fence.SessionID)
	w.unchanged(fence.SessionID, regie.CodeStopRequested, func() error {
		return w.AppendReply(fence, w.Reply(fence, 1, regie.KindQuery))
	})
	// Nor an answer: the stop request came first. The stronger request needs its own end.
	w.unchanged(fence.SessionID, regie.CodeStopRequested, func() error { return w.AppendReply(fence, w.Answer(1)) })
	end := w.Reply(fence, 1, regie.KindQuery)
	end.Calls[0].State, end.Calls[0].NotRun = regie.CallNotRun, regie.NotRunInterrupted
	end.Calls[0].Error = &regie.CallError{Code: "INTERRUPTED", Message: "not run"}
	end.Results = w.Settled(1, end.Calls).Message
	end.Advance = store.Advance{Phase: regie.PhaseEnd, End: &store.End{Reason: regie.EndInterrupted}}
	resultOf(w.Store.RequestStop(w.Ctx, fence.RoundID, regie.StopStop))(w)
	w.unchanged(fence.SessionID, regie.CodeStopRequested, func() error { return w.AppendReply(fence, end) })
	end.Advance.End = &store.End{Reason: regie.EndStopped}
	w.must(w.AppendReply(fence, end))
	view := resultOf(w.Store.RoundView(w.Ctx, fence.RoundID))(w)
	w.equal("end", view.Round.End, regie.EndStopped)
	w.equal("call", view.Exchanges[0].Calls[0].NotRun, regie.NotRunInterrupted)
	w.equal("error", view.Exchanges[0].Calls[0].Error, end.Calls[0].Error)
}

func pauseStartsNothing(w *World) {
	fence := w.Start()
	reply := w.Reply(fence, 1, regie.KindAction, regie.KindAction)
	reply.Calls[0].State, reply.Calls[0].StartedAt = regie.CallStarted, time.Now()
	w.must(w.AppendReply(fence, reply))
	resultOf(w.Store.RequestStop(w.Ctx, fence.RoundID, regie.StopPause))(w)
	first := reply.Calls[0]
	first.State, first.Result = regie.CallSucceeded, "ok"
	second := reply.Calls[1]
	w.unchanged(fence.SessionID, regie.CodeStopRequested, func() error {
		return w.CommitCalls(fence, store.Settle{Exchange: 1, Settled: []regie.Call{first}, Start: &second})
	})
	// A finished result is stored all the same.
	w.must(w.CommitCalls(fence, store.Settle{Exchange: 1, Settled: []regie.Call{first}}))
	w.must(w.Store.Release(w.Ctx, fence))
	session, _, err := w.Store.Session(w.Ctx, fence.SessionID)
	w.must(err)
	w.equal("state", session.State, regie.SessionPaused)
	_, err = w.Store.Claim(w.Ctx, fence.RoundID, "other")
	w.refused(regie.CodeConflict, err)
	w.must(w.Store.Resume(w.Ctx, fence.RoundID))
	claimed := resultOf(w.Store.Claim(w.Ctx, fence.RoundID, "other"))(w)
	w.equal("resumes of a released round", claimed.Round.Counters.Resumes, 0)
	w.equal("stop", claimed.Round.Stop, regie.StopRequest(""))
	// A pause that came with the end holds the round behind it, and can be resumed all the same.
	ended := w.Start()
	resultOf(w.Store.Submit(w.Ctx, furtherSubmission(w, ended)))(w)
	resultOf(w.Store.RequestStop(w.Ctx, ended.RoundID, regie.StopPause))(w)
	w.must(w.AppendReply(ended, w.Answer(1)))
	w.state(ended.SessionID, regie.SessionPaused)
	w.must(w.Store.Resume(w.Ctx, ended.RoundID))
	w.state(ended.SessionID, regie.SessionActive)
}

func stopIsIdempotent(w *World) {
	fence := w.Start()
	for _, word := range []regie.StopRequest{
		regie.StopPause, regie.StopInterrupt,
		regie.StopInterrupt, regie.StopPause,
	} {
		resultOf(w.Store.RequestStop(w.Ctx, fence.RoundID, word))(w)
	}
	round := resultOf(w.Store.Round(w.Ctx, fence.RoundID))(w)
	w.equal("the stronger word stays", round.Stop, regie.StopInterrupt)
	end := w.Answer(1)
	end.Advance.End.Reason = regie.EndInterrupted
	w.must(w.AppendReply(fence, end))
	before := w.head(fence.SessionID)
	resultOf(w.Store.RequestStop(w.Ctx, fence.RoundID, regie.StopStop))(w)
	w.equal("log after stopping an ended round", w.head(fence.SessionID), before)
}

func attempts(w *World) {
	fence := w.Start()
	failure := store.Failure{
		Attempt: regie.Attempt{
			RoundID: fence.RoundID, Exchange: 1, Number: 1, Code: regie.CodeProviderBusy, Error: "busy",
			Partial: "half a", Usage: regie.Usage{Input: 3, Estimated: true},
			ModelUS:  9,
			Provider: "p", Model: "m", Money: regie.Money{Reserved: 70, Cost: 5, Known: true, Estimated: true},
			FirstSeq: 2, LastSeq: 2, Request: regie.HashOf([]byte("request")),
		},
		Retry: &store.Open{Number: 1, Reserved: 80},
	}
	w.must(w.FailAttempt(fence, failure))
	// The same attempt cannot fail twice.
	w.unchanged(fence.SessionID, regie.CodeConflict, func() error { return w.FailAttempt(fence, failure) })
	last := failure
	last.Attempt.Number, last.Retry = 2, nil
	last.Attempt.Money = regie.Money{}
	last.Message = &regie.Message{
		ID: regie.NewID(), Sender: regie.SenderSystem, Author: regie.Author{Kind: regie.AuthorComponent, ID: "engine"},
		ExcludeFromPrompt: true,
		System:            &regie.SystemContent{Type: regie.SystemNetworkError, Summary: "busy"},
	}
	last.Advance = &store.Advance{Phase: regie.PhaseEnd, End: &store.End{
		Reason: regie.EndProviderError,
		Note:   regie.Verbatim("busy"),
	}}
	w.must(w.FailAttempt(fence, last))
	view := resultOf(w.Store.RoundView(w.Ctx, fence.RoundID))(w)
	w.equal("end", []any{view.Round.End, view.Round.EndNote.String(), view.Exchanges[0].State},
		[]any{regie.EndProviderError, "busy", regie.ExchangeFailed})
	w.equal("attempts", len(view.Exchanges[0].Attempts), 2)
	w.equal("tokens of both", view.Round.Tokens, int64(6))
	w.equal("attempt", view.Exchanges[0].Attempts[0], failure.Attempt,
		cmpopts.IgnoreFields(regie.Attempt{}, "OpenedAt", "EndedAt"))
	w.equal("what the last one was sent", []any{view.Exchanges[0].Request, view.Exchanges[0].LastSeq},
		[]any{failure.Attempt.Request, failure.Attempt.LastSeq})
	w.equal("an unknown price is unknown", view.Exchanges[0].Attempts[1].Money.Known, false)
}

func orphans(w *World) {
	running, paused, done := w.Start(), w.Start(), w.Start()
	_, err := w.Store.RequestStop(w.Ctx, paused.RoundID, regie.StopPause)
	w.must(err)
	w.must(w.AppendReply(done, w.Answer(1)))
	found, err := w.Store.Orphans(w.Ctx, "")
	w.must(err)
	if len(found) != 1 || found[0].RoundID != running.RoundID || found[0].SessionID != running.SessionID {
		w.T.Errorf("orphans %+v, want only %s", found, running.RoundID)
	}
	// A claim after a holder died counts as a resume, unless the holder itself claims.
	for want := 1; want <= 2; want++ {
		for range 2 {
			claimed, err := w.Store.Claim(w.Ctx, running.RoundID, fmt.Sprint("other", want))
			w.must(err)
			w.equal("resumes", []any{claimed.Round.Counters.Resumes, claimed.Resumed}, []any{want, true})
		}
	}
	_, err = w.Store.Claim(w.Ctx, done.RoundID, "other")
	w.refused(regie.CodeConflict, err)
}

func streamEqualsLog(w *World) {
	fence := w.Start()
	reply := w.Reply(fence, 1, regie.KindQuery)
	w.must(w.AppendReply(fence, reply))
	w.must(w.CommitCalls(fence, w.Settled(1, reply.Calls)))
	all := resultOf(w.Store.Events(w.Ctx, fence.SessionID, 0, 1000))(w)
	var paged []regie.Event
	for after := int64(0); ; {
		page := resultOf(w.Store.Events(w.Ctx, fence.SessionID, after, 2))(w)
		if len(page) == 0 {
			break
		}
		paged = append(paged, page...)
		after = page[len(page)-1].Seq
	}
	w.equal("pages", paged, all)
	var kinds []regie.EventType
	for i, e := range all {
		w.equal("seq", e.Seq, int64(i+1))
		kinds = append(kinds, e.Type)
	}
	w.equal("types", kinds, []regie.EventType{
		regie.EventSession, regie.EventMessage, regie.EventRound, regie.EventMessage,
		regie.EventToolResult, regie.EventMessage,
	})
}

func sessionsNeverMix(w *World) {
	a, b := w.Start(), w.Start()
	reply := w.Reply(a, 1, regie.KindQuery)
	w.must(w.AppendReply(a, reply))
	thread := resultOf(w.Store.Thread(w.Ctx, b.SessionID, 0))(w)
	if len(thread.Messages) != 1 || len(thread.Calls) != 0 {
		w.T.Errorf("the other session's thread is %+v", thread)
	}
	other := resultOf(w.Store.EnsureWorkspace(w.Ctx, w.User, regie.Workspace{Name: "x", Root: "/x"}))(w)
	if other.ID == w.Workspace.ID {
		w.T.Error("two roots are one workspace")
	}
	list := resultOf(w.Store.Rounds(w.Ctx, store.RoundFilter{Root: "/x", Limit: 10}))(w)
	w.equal("rounds of the other workspace", len(list), 0)
	list = resultOf(w.Store.Rounds(w.Ctx, store.RoundFilter{Root: "/w", Limit: 10}))(w)
	w.equal("rounds of the workspace", len(list), 2)
	w.equal("calls of the older", list[1].Calls, 1)
	w.equal("its text", list[1].Text, "go")
	whole, _, err := w.Store.Session(w.Ctx, list[1].Session.ID)
	w.must(err)
	w.equal("its session", list[1].Session, whole)
}

// neighboursUnharmed drives many sessions at once, some of them wrongly: a failure affects no
// other.
func neighboursUnharmed(w *World) {
	fences := make([]store.Fence, 24)
	together(len(fences), func(i int) {
		accepted, err := w.Store.Submit(w.Ctx, w.Submission(fmt.Sprint(i)))
		if err != nil {
			w.T.Error(err)
		}
		fences[i] = accepted.Fence
	})
	together(len(fences), func(i int) {
		for exchange := 1; exchange <= 8; exchange++ {
			reply := w.Reply(fences[i], exchange, regie.KindQuery, regie.KindQuery)
			if i%3 == 0 { // fails after it has written: the group is run again without it
				broken := w.Reply(fences[i], exchange, regie.KindQuery)
				broken.Message.AI.Parts = broken.Message.AI.Parts[:1]
				if err := w.AppendReply(fences[i], broken); regie.CodeOf(err) != regie.CodeConflict {
					w.T.Errorf("a reply without its call: %v", err)
				}
			}
			if err := w.AppendReply(fences[i], reply); err != nil {
				w.T.Error(err)
			}
			if err := w.CommitCalls(fences[i], w.Settled(exchange, reply.Calls)); err != nil {
				w.T.Error(err)
			}
		}
	})
	for _, fence := range fences {
		w.equal("events", w.head(fence.SessionID), int64(3+8*4))
	}
	w.must(w.Store.QuickCheck(w.Ctx))
	w.must(w.Store.CheckIntegrity(w.Ctx))
}

func blobsAndReadMarks(w *World) {
	for _, data := range [][]byte{[]byte("level one"), {}, []byte("level one")} {
		hash := resultOf(w.Store.PutBlob(w.Ctx, data))(w)
		got := resultOf(w.Store.Blob(w.Ctx, hash))(w)
		if !cmp.Equal(got, data, cmpopts.EquateEmpty()) || hash != regie.HashOf(data) {
			w.T.Errorf("blob %q came back as %q", data, got)
		}
	}
	_, err := w.Store.Blob(w.Ctx, regie.HashOf([]byte("never stored")))
	w.refused(regie.CodeNotFound, err)
	fence := w.Start()
	mark := regie.ReadMark{UserID: w.User, SessionID: fence.SessionID, Seq: 2}
	w.must(w.Store.MarkRead(w.Ctx, mark))
	mark.Seq = 99
	w.refused(regie.CodeBadRequest, w.Store.MarkRead(w.Ctx, mark))
}

func messageVariants(w *World) {
	user := regie.Author{Kind: regie.AuthorUser, ID: "u"}
	for name, m := range map[string]regie.Message{
		"none":          {Sender: regie.SenderUser},
		"two":           {Sender: regie.SenderUser, Text: "a", Rich: []regie.Segment{{Text: "b"}}},
		"system's user": {Sender: regie.SenderUser, System: &regie.SystemContent{Type: regie.SystemDataAdded}},
		"rich AI":       {Sender: regie.SenderAI, Rich: []regie.Segment{{Text: "b"}}},
		"AI's user":     {Sender: regie.SenderUser, AI: &regie.AIReply{}},
	} {
		in := w.Submission("x")
		m.ID, m.Author = regie.NewID(), user
		in.Message = m
		if _, err := w.Store.Submit(w.Ctx, in); regie.CodeOf(err) != regie.CodeBadRequest {
			w.T.Errorf("%s: %v", name, err)
		}
	}
	rich := w.Submission("x")
	hash := resultOf(w.Store.PutBlob(w.Ctx, []byte("picture")))(w)
	rich.Message.Text = ""
	rich.Message.Rich = []regie.Segment{
		{Text: "see"},
		{Attachment: &regie.Attachment{Blob: hash, MediaType: "image/png", Name: "a.png", Size: 7}},
	}
	resultOf(w.Store.Submit(w.Ctx, rich))(w)
	thread := resultOf(w.Store.Thread(w.Ctx, rich.SessionID, 0))(w)
	w.equal("segments", thread.Messages[0].Rich, rich.Message.Rich)
}
