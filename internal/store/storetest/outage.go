package storetest

import (
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// lostResult settles a call without its whole result, which could not be stored. The result has its
// hash, reading it fails as lost, and storing the same content later restores it.
func lostResult(w *World) {
	fence := w.Start()
	reply := w.Reply(fence, 1, regie.KindQuery, regie.KindQuery)
	w.must(w.AppendReply(fence, reply))
	whole := []byte("the whole of it")
	lost, kept := reply.Calls[0], reply.Calls[1]
	lost.ResultBlob, lost.ResultLost = regie.HashOf(whole), int64(len(whole))
	in := w.Settled(1, []regie.Call{lost, kept})
	w.must(w.CommitCalls(fence, in))

	read := func() regie.Call {
		thread := resultOf(w.Store.Thread(w.Ctx, fence.SessionID, 0))(w)
		return thread.Calls[reply.Message.ID][0]
	}
	if got := read(); got.ResultBlob != lost.ResultBlob || got.ResultLost != lost.ResultLost ||
		got.State != regie.CallSucceeded {
		w.T.Errorf("the call holds blob %s, %d bytes lost, %s", got.ResultBlob, got.ResultLost, got.State)
	}
	_, err := w.Store.WholeResult(w.Ctx, fence.SessionID, lost.ID)
	w.refused(regie.CodeNotFound, err)
	_, err = w.Store.Blob(w.Ctx, lost.ResultBlob)
	w.refused(regie.CodeNotFound, err)
	if got, err := w.Store.WholeResult(w.Ctx, fence.SessionID, kept.ID); err != nil || got != in.Settled[1].Result {
		w.T.Errorf("the other call's result is %q, %v", got, err)
	}
	w.head(fence.SessionID)

	resultOf(w.Store.PutBlob(w.Ctx, whole))(w)
	if got, err := w.Store.WholeResult(w.Ctx, fence.SessionID, lost.ID); err != nil ||
		got != string(whole) || read().ResultLost != 0 {
		w.T.Errorf("stored later it reads %q, %v", got, err)
	}
}

// outage: a round waits for the network. The next claim returns the outage, a pause keeps the wait
// from ending, and a resume ends it.
func outage(w *World) {
	fence := w.Start()
	began := time.Now().UTC().Truncate(time.Microsecond)
	fails := func(attempt int, change func(*store.Failure)) {
		in := store.Failure{
			Attempt: regie.Attempt{
				RoundID: fence.RoundID, Exchange: 1, Number: attempt,
				Code: regie.CodeProviderOffline, Error: "no route",
			},
			Retry: &store.Open{Number: 1}, WaitUntil: began, Outage: &regie.Outage{
				Exchange: 1,
				Since:    began, Tries: attempt,
			},
		}
		change(&in)
		out := resultOf(w.Store.FailAttempt(w.Ctx, fence, in))(w)
		w.equal("parked", out.Parked, true)
	}
	claim := func() *regie.Outage {
		claimed := resultOf(w.Store.Claim(w.Ctx, fence.RoundID, "next"))(w)
		fence = claimed.Fence
		return claimed.Outage
	}
	expire := func(ready int) {
		w.T.Helper()
		due, _, err := w.Store.ExpireWaits(w.Ctx, time.Now().Add(time.Hour))
		w.must(err)
		w.equal("rounds whose waits are over", len(due), ready)
	}
	state := func(want regie.SessionState) {
		w.T.Helper()
		session, _, err := w.Store.Session(w.Ctx, fence.SessionID)
		w.must(err)
		w.equal("state", session.State, want)
	}
	fails(1, func(*store.Failure) {})
	state(regie.SessionWaitingNetwork)
	expire(1)
	w.equal("the outage", claim(), &regie.Outage{Exchange: 1, Since: began, Tries: 1})

	fails(2, func(*store.Failure) {})
	resultOf(w.Store.RequestStop(w.Ctx, fence.RoundID, regie.StopPause))(w)
	expire(0)
	if _, next, err := w.Store.ExpireWaits(w.Ctx, time.Now()); err != nil || !next.IsZero() {
		w.T.Errorf("a paused session's deadline is %s, %v", next, err)
	}
	w.must(w.Store.Resume(w.Ctx, fence.RoundID))
	state(regie.SessionActive)
	w.equal("the outage that somebody has ended", claim(), (*regie.Outage)(nil))

	fails(3, func(in *store.Failure) {
		in.WaitUntil, in.Pause, in.Notice = time.Time{}, true, &regie.Notice{
			RoundID: fence.RoundID,
			Kind:    regie.NoticeNetworkGiveUp, Since: began, Text: "no route",
		}
	})
	state(regie.SessionPaused)
	expire(0)
	if found, err := w.Store.Orphans(w.Ctx, ""); err != nil || len(found) != 0 {
		w.T.Errorf("orphans %+v, %v", found, err)
	}
	_, err := w.Store.Claim(w.Ctx, fence.RoundID, "other")
	w.refused(regie.CodeConflict, err)
	w.must(w.Store.Resume(w.Ctx, fence.RoundID))
	w.must(w.Store.Resume(w.Ctx, fence.RoundID)) // a repeat changes nothing
	w.equal("the outage after giving up", claim(), (*regie.Outage)(nil))
	w.head(fence.SessionID)
}
