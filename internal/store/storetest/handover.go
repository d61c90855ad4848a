package storetest

import (
	"sync/atomic"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// handOver releases a round in good order. The next claim does not count as a resume after a crash
// (spec 5.3), however often it happens, and the former holder can no longer write.
func handOver(w *World) {
	fence := w.Start()
	for range 5 {
		w.must(w.Store.Release(w.Ctx, fence))
		claimed := resultOf(w.Store.Claim(w.Ctx, fence.RoundID, "next"))(w)
		w.equal("resumes", claimed.Round.Counters.Resumes, 0)
		w.refused(regie.CodeStale, w.AppendReply(fence, w.Answer(1)))
		fence = claimed.Fence
	}
	w.must(w.AppendReply(fence, w.Answer(1)))
}

// claimsTogether claims one round many times at once: the epochs all differ, and only the highest
// can write (invariant 8).
func claimsTogether(w *World) {
	fence := w.Start()
	const holders = 8
	fences := make([]store.Fence, holders)
	together(holders, func(i int) {
		claimed, err := w.Store.Claim(w.Ctx, fence.RoundID, "holder")
		if err != nil {
			w.T.Error(err)
		}
		fences[i] = claimed.Fence
	})
	var wrote atomic.Int64
	together(holders, func(i int) {
		switch err := w.AppendReply(fences[i], w.Answer(1)); regie.CodeOf(err) {
		case "":
			wrote.Add(1)
			w.equal("the writer's epoch", fences[i].Epoch, fence.Epoch+holders)
		case regie.CodeStale:
		default:
			w.T.Error(err)
		}
	})
	w.equal("writers", wrote.Load(), int64(1))
}
