package storetest

import (
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// waitForProvider parks a round that has lost its engine.
func waitForProvider(w *World, fence store.Fence, until time.Time) {
	w.T.Helper()
	w.must(w.Store.SetAside(w.Ctx, store.SetAside{
		RoundID: fence.RoundID, Holder: "other", Until: until,
		Notice: &regie.Notice{RoundID: fence.RoundID, Kind: regie.NoticeProvider, Text: "waits"},
	}))
}

// providerWait: a round waits for the settings of its provider. Its former holder can no longer
// write, the round can get another provider, and a resume makes it claimable.
func providerWait(w *World) {
	fence := w.Start()
	told := regie.Fallback{RoundID: fence.RoundID, Exchange: 1, Provider: "q", Model: "n", Instead: "p"}
	pin := regie.HashOf([]byte("settings"))
	w.refused(regie.CodeConflict, w.Store.Repin(w.Ctx, fence.RoundID, pin, told)) // it runs
	until := time.Now().Add(time.Hour)
	waitForProvider(w, fence, until)
	waitForProvider(w, fence, until) // once is enough
	session, _, err := w.Store.Session(w.Ctx, fence.SessionID)
	w.must(err)
	w.equal("state", session.State, regie.SessionWaitingProvider)
	w.refused(regie.CodeStale, w.AppendReply(fence, w.Reply(fence, 1)))
	waits, err := w.Store.ProviderWaits(w.Ctx)
	w.must(err)
	w.equal("waits", waits, []regie.ID{fence.RoundID})

	w.must(w.Store.Repin(w.Ctx, fence.RoundID, pin, told))
	w.must(w.Store.Resume(w.Ctx, fence.RoundID))
	claimed, err := w.Store.Claim(w.Ctx, fence.RoundID, "test")
	w.must(err)
	w.equal("pin", claimed.Round.Pin, pin)
	w.equal("provider", claimed.Round.Provider+"/"+claimed.Exchange.Provider, "q/q")
	w.must(w.AppendReply(claimed.Fence, w.Reply(claimed.Fence, 1)))
	if waits, err = w.Store.ProviderWaits(w.Ctx); err != nil || len(waits) != 0 {
		w.T.Errorf("waits after the claim: %v, %v", waits, err)
	}
	w.head(fence.SessionID)
}

// providerExpires: the wait for a provider passes its deadline. The session is paused, and a person
// only has to resume it.
func providerExpires(w *World) {
	fence := w.Start()
	waitForProvider(w, fence, time.Now().Add(-time.Second))
	_, _, err := w.Store.ExpireWaits(w.Ctx, time.Now())
	w.must(err)
	session, _, err := w.Store.Session(w.Ctx, fence.SessionID)
	w.must(err)
	w.equal("state", session.State, regie.SessionPaused)
	w.must(w.Store.Resume(w.Ctx, fence.RoundID))
	_, err = w.Store.Claim(w.Ctx, fence.RoundID, "test")
	w.must(err)
	w.head(fence.SessionID)
}
