package storetest

import (
	"encoding/json"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// summarised makes the CONTEXT_SUMMARY that ends an exchange.
func summarised(exchange int, c regie.Compaction) regie.Message {
	return regie.Message{
		ID: regie.NewID(), Sender: regie.SenderSystem, Author: regie.Author{
			Kind: regie.AuthorAgent, ID: "main",
			Model: "m",
		}, Exchange: exchange,
		System: &regie.SystemContent{Type: regie.SystemContextSummary, Summary: "In short.", Compaction: &c},
	}
}

// summary replaces an open step by a summary, which ends its exchange and opens the step again,
// with the messages that steered the round meanwhile.
func summary(w *World) {
	fence := w.Start()
	w.must(w.Store.BeginSummary(w.Ctx, fence, 1))
	w.refused(regie.CodeConflict, w.Store.BeginSummary(w.Ctx, fence, 1)) // it is one
	w.refused(regie.CodeConflict, w.Store.BeginSummary(w.Ctx, fence, 2))
	stale := fence
	stale.Epoch--
	w.refused(regie.CodeStale, w.Store.BeginSummary(w.Ctx, stale, 1))

	steer := w.Submission("and hurry")
	steer.SessionID, steer.New, steer.WhenBusy = fence.SessionID, nil, store.Steer
	if _, err := w.Store.Submit(w.Ctx, steer); err != nil {
		w.T.Fatal(err)
	}
	claimed, err := w.Store.Claim(w.Ctx, fence.RoundID, "another") // the next holder continues with the summary
	w.must(err)
	fence = claimed.Fence
	w.equal("purpose", claimed.Exchange.Purpose, regie.PurposeSummary)

	want := regie.Compaction{Hidden: 1, Requests: []int{1}, Before: 100, After: 10}
	head := resultOf(w.Store.PutBlob(w.Ctx, []byte(`{"tools":[]}`)))(w)
	in := store.Reply{
		Message: summarised(1, want),
		Exchange: regie.Exchange{
			Number: 1, FirstSeq: 2, LastSeq: 2, Request: regie.HashOf([]byte("r")), Head: head,
			Usage: regie.Usage{Input: 9, Output: 3},
		},
		Advance: store.Advance{Phase: regie.PhaseModel, Open: &store.Open{Number: 2, Reason: regie.ExchangeStart}},
	}
	out := resultOf(w.Store.AppendReply(w.Ctx, fence, in))(w)
	w.equal("admitted", len(out.Admitted), 1)
	view := resultOf(w.Store.RoundView(w.Ctx, fence.RoundID))(w)
	first, next := view.Exchanges[0], view.Exchanges[1]
	w.equal("the summary", []any{first.Purpose, first.State, first.ReplyID, first.Head, first.Usage.Input},
		[]any{regie.PurposeSummary, regie.ExchangeReplied, in.Message.ID, head, int64(9)})
	w.equal("what it says", []any{first.Reply.System.Summary, *first.Reply.System.Compaction, first.Reply.Seq},
		[]any{"In short.", want, out.Seq})
	w.equal("the step", []any{next.Purpose, next.State, next.Reason, next.Head.IsZero()},
		[]any{regie.ExchangePurpose(""), regie.ExchangeOpen, regie.ExchangeStart, true})
	w.must(w.AppendReply(fence, w.Answer(2)))
	w.refused(regie.CodeConflict, w.Store.BeginSummary(w.Ctx, fence, 2))
	last := resultOf(w.Store.LastRound(w.Ctx, fence.SessionID))(w)
	w.equal("the newest round", last.ID, fence.RoundID)
	if _, err := w.Store.Verify(w.Ctx, fence.SessionID); err != nil {
		w.T.Error(err)
	}
}

// noSummary ends a summary that no model could write, in one transition with its replacement and
// the next step. A stop request refuses all of it.
func noSummary(w *World) {
	fence := w.Start()
	reply := w.Reply(fence, 1, regie.KindQuery)
	w.must(w.AppendReply(fence, reply))
	w.must(w.CommitCalls(fence, w.Settled(1, reply.Calls)))
	w.must(w.Store.BeginSummary(w.Ctx, fence, 2))
	message := summarised(2, regie.Compaction{Dropped: 1, DroppedCalls: 1, Fallback: "no"})
	message.System.Summary = ""
	failure := store.Failure{
		Attempt: regie.Attempt{
			RoundID: fence.RoundID, Exchange: 2, Number: 1, Code: regie.CodeBadReply, Error: "no",
			Usage: regie.Usage{Input: 4},
		},
		Message: &message, Advance: &store.Advance{
			Phase: regie.PhaseModel, Counters: regie.Counters{Total: 1},
			Open: &store.Open{Number: 3, Reason: regie.ExchangeData},
		},
	}
	w.must(w.FailAttempt(fence, failure))
	view := resultOf(w.Store.RoundView(w.Ctx, fence.RoundID))(w)
	w.equal("exchanges", []any{view.Exchanges[1].State, view.Exchanges[1].Purpose, view.Exchanges[2].State},
		[]any{regie.ExchangeFailed, regie.PurposeSummary, regie.ExchangeOpen})
	w.equal("attempts", len(view.Exchanges[1].Attempts), 1)
	round, exchange, err := w.Store.ExchangeOf(w.Ctx, reply.Calls[0].ID)
	w.must(err)
	w.equal("the call's exchange", []any{round, exchange}, []any{fence.RoundID, 1})
	if _, _, err := w.Store.ExchangeOf(w.Ctx, regie.NewID()); regie.CodeOf(err) != regie.CodeNotFound {
		w.T.Errorf("a call that is not there: %v", err)
	}

	if _, err := w.Store.RequestStop(w.Ctx, fence.RoundID, regie.StopPause); err != nil {
		w.T.Fatal(err)
	}
	w.refused(regie.CodeStopRequested, w.Store.BeginSummary(w.Ctx, fence, 3))
}

// levels: a round continues with another level 2 than it began with (decision 53). A removal erases
// all levels that only its session had.
func levels(w *World) {
	fence := w.Start()
	var texts [3]regie.Hash
	for i := range texts {
		var err error
		texts[i], err = w.Store.PutBlob(w.Ctx, []byte{'l', byte('0' + i)})
		w.must(err)
	}
	stale := fence
	stale.Epoch--
	w.unchanged(fence.SessionID, regie.CodeStale, func() error { return w.Store.SetLevel2(w.Ctx, stale, texts[0]) })
	for _, level := range []regie.Hash{texts[0], texts[1], texts[0], {}, texts[2]} {
		w.must(w.Store.SetLevel2(w.Ctx, fence, level))
		round, err := w.Store.Round(w.Ctx, fence.RoundID)
		w.must(err)
		w.equal("level 2", round.Level2, level)
		events, err := w.Store.Events(w.Ctx, fence.SessionID, 0, 100)
		w.must(err)
		var told regie.Levels
		w.must(json.Unmarshal(events[len(events)-1].Body, &told))
		w.equal("what the log tells", told, regie.Levels{RoundID: fence.RoundID, Level2: level})
	}
	_, err := w.Store.Verify(w.Ctx, fence.SessionID)
	w.must(err)

	other := w.Start() // has one of the levels too
	w.must(w.Store.SetLevel2(w.Ctx, other, texts[1]))
	w.must(w.Store.SetLevel2(w.Ctx, other, regie.Hash{}))
	w.must(w.AppendReply(fence, w.Answer(1)))
	w.must(w.AppendReply(other, w.Answer(1)))
	for _, in := range []struct {
		fence store.Fence
		blobs int64
	}{{fence, 2}, {other, 1}} {
		out, err := w.Store.Remove(w.Ctx, store.Remove{SessionID: in.fence.SessionID, By: "ada"})
		w.must(err)
		w.equal("erased", out.Blobs, in.blobs)
	}

	stopped := w.Start()
	_, err = w.Store.RequestStop(w.Ctx, stopped.RoundID, regie.StopInterrupt)
	w.must(err)
	w.unchanged(stopped.SessionID, regie.CodeStopRequested, func() error {
		return w.Store.SetLevel2(w.Ctx, stopped, texts[1])
	})
}
