package storetest

import (
	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// Named returns an enrichment of a round's first message: a file that existed, and one that did
// not.
func (w *World) Named(fence store.Fence, message regie.ID) store.Enrichment {
	out := store.Enrichment{Message: regie.Message{
		ID: regie.NewID(), Sender: regie.SenderSystem, Author: regie.Author{Kind: regie.AuthorComponent, ID: "engine"},
		System: &regie.SystemContent{Type: regie.SystemDataAdded, Summary: "named", Enriches: message},
	}}
	out.Calls = w.Calls(fence, 0, out.Message.ID, regie.KindQuery, regie.KindQuery)
	for i := range out.Calls {
		c := &out.Calls[i]
		c.Origin, c.ProviderCallID, c.State, c.Result, c.Attempts = regie.OriginUser, "",
			regie.CallSucceeded, "what it holds", 1
		if i == 1 {
			c.State, c.Result, c.Error = regie.CallFailed, "", &regie.CallError{
				Code: regie.CodeFileNotFound, Message: "it is gone",
			}
		}
		out.Message.System.CallIDs = append(out.Message.System.CallIDs, c.ID)
		out.Message.System.Queries = append(out.Message.System.Queries, regie.Part{
			Type: regie.PartCall, Text: "@x", CallID: c.ID, Tool: c.Tool, Arguments: regie.HashOf([]byte(c.Arguments)),
		})
	}
	return out
}

// enrich stores the data that a message names, whole or not at all. The log binds its calls, forks
// copy them with their message, and a removal erases their content (decision 46).
func enrich(w *World) {
	submission := w.Submission("")
	submission.Message.Text = ""
	submission.Message.Rich = []regie.Segment{{Text: "see "}, {
		Enrichment: &regie.EnrichmentBlock{Type: regie.EnrichmentPointer, Target: regie.TargetFile, Path: "x"},
	}}
	accepted := resultOf(w.Store.Submit(w.Ctx, submission))(w)
	fence := accepted.Fence
	half := w.Named(fence, accepted.Message.ID)
	half.Calls = half.Calls[:1]
	before := w.head(fence.SessionID)
	if _, err := w.Store.Enrich(w.Ctx, fence, half); regie.CodeOf(err) != regie.CodeConflict {
		w.T.Error("a message came without one of its calls")
	}
	w.equal("events of half of it", w.head(fence.SessionID), before)
	in := w.Named(fence, accepted.Message.ID)
	out := resultOf(w.Store.Enrich(w.Ctx, fence, in))(w)
	stale := fence
	stale.Epoch--
	w.unchanged(fence.SessionID, regie.CodeStale, func() error {
		_, err := w.Store.Enrich(w.Ctx, stale, w.Named(fence, accepted.Message.ID))
		return err
	})
	thread := resultOf(w.Store.Thread(w.Ctx, fence.SessionID, 0))(w)
	last := thread.Messages[len(thread.Messages)-1]
	w.equal("its place", []any{last.ID, last.Seq, last.RoundID, last.System.Enriches},
		[]any{in.Message.ID, out.Seq, fence.RoundID, accepted.Message.ID})
	w.equal("its calls", idsOf(thread.Calls[last.ID]), last.CallIDs())
	view := resultOf(w.Store.RoundView(w.Ctx, fence.RoundID))(w)
	seen := view.Enrichments[0].Calls
	w.equal("in the view of the round", []any{
		len(view.Enrichments), len(seen), seen[1].Error.Code,
		len(view.Exchanges[0].Calls),
	}, []any{1, 2, regie.CodeFileNotFound, 0})
	resultOf(w.Store.Verify(w.Ctx, fence.SessionID))(w)
	forked := resultOf(w.Store.Fork(w.Ctx, store.Fork{From: fence.SessionID, At: accepted.Message.Seq}))(w)
	copied := resultOf(w.Store.Thread(w.Ctx, forked.Session.ID, 0))(w)
	w.equal("the fork at the message", []any{len(copied.Messages), forked.Calls, forked.Open}, []any{2, 2, false})
	data := copied.Messages[1]
	w.equal("the copy", []any{data.System.Enriches, idsOf(copied.Calls[data.ID])},
		[]any{copied.Messages[0].ID, data.System.CallIDs})
	w.equal("the calls of the copy", data.CallIDs(), data.System.CallIDs)
	resultOf(w.Store.Verify(w.Ctx, forked.Session.ID))(w)
	resultOf(w.Store.RequestStop(w.Ctx, fence.RoundID, regie.StopInterrupt))(w)
	w.unchanged(fence.SessionID, regie.CodeStopRequested, func() error {
		_, err := w.Store.Enrich(w.Ctx, fence, w.Named(fence, accepted.Message.ID))
		return err
	})
	resultOf(w.Store.Remove(w.Ctx, store.Remove{SessionID: forked.Session.ID, By: "x"}))(w)
	resultOf(w.Store.Verify(w.Ctx, forked.Session.ID))(w)
}
