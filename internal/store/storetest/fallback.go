package storetest

import (
	"encoding/json"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// fallback: other providers continue an exchange (spec 3.6). Each attempt has its provider, the
// exchange the one that answered, the log the reason. The next exchange is the round's own
// provider's again, unless it names another.
func fallback(w *World) {
	fence := w.Start()
	told := regie.Fallback{
		RoundID: fence.RoundID, Exchange: 1, Attempt: 2, Provider: "q", Model: "n", Instead: "p",
		Code: regie.CodeProviderBusy, Text: "busy",
	}
	fails := func(number int, to store.Open, told *regie.Fallback) {
		w.must(w.FailAttempt(fence, store.Failure{
			Attempt: regie.Attempt{
				RoundID: fence.RoundID, Exchange: 1, Number: number, Code: regie.CodeProviderBusy,
				Error: "busy",
			}, Retry: &to, Fallback: told,
		}))
	}
	fails(1, store.Open{Number: 1}, nil)
	fails(2, store.Open{Number: 1, Provider: "q", Model: "n"}, &told)
	claimed := resultOf(w.Store.Claim(w.Ctx, fence.RoundID, "next"))(w)
	fence = claimed.Fence
	w.equal("who is asked", []string{claimed.Exchange.Provider, claimed.Exchange.Model, claimed.Round.Provider},
		[]string{"q", "n", "p"})
	fails(3, store.Open{Number: 1}, nil)

	reply := w.Reply(fence, 1, regie.KindQuery)
	reply.Exchange.Provider, reply.Exchange.Model = "r", "o"
	w.must(w.AppendReply(fence, reply))
	settle := w.Settled(1, reply.Calls)
	settle.Advance.Open.Provider, settle.Advance.Open.Model = "r", "o"
	w.must(w.CommitCalls(fence, settle))
	reply = w.Reply(fence, 2, regie.KindQuery)
	w.must(w.AppendReply(fence, reply))
	w.must(w.CommitCalls(fence, w.Settled(2, reply.Calls)))

	view := resultOf(w.Store.RoundView(w.Ctx, fence.RoundID))(w)
	var asked []string
	for _, a := range view.Exchanges[0].Attempts {
		asked = append(asked, a.Provider+" "+a.Model)
	}
	for _, e := range view.Exchanges {
		asked = append(asked, e.Provider+" "+e.Model)
	}
	w.equal("who was asked", asked, []string{"p m", "p m", "q n", "r o", "r o", "p m"})
	events := resultOf(w.Store.Events(w.Ctx, fence.SessionID, 0, 100))(w)
	var found []regie.Fallback
	for i := range events {
		var f regie.Fallback
		if events[i].Type == regie.EventFallback {
			w.must(json.Unmarshal(events[i].Body, &f))
			found = append(found, f)
		}
	}
	w.equal("told", found, []regie.Fallback{told})
	w.head(fence.SessionID)
}
