package storetest

import (
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// chargedReply returns a reply with a cost, followed by another model call.
func chargedReply(w *World, fence store.Fence, exchange int, money regie.Money, wants *store.Reservation) store.Reply {
	in := w.Reply(fence, exchange)
	in.Exchange.Money = money
	in.Advance = store.Advance{
		Phase: regie.PhaseModel, Counters: regie.Counters{Total: exchange},
		Open: &store.Open{Number: exchange + 1, Reason: regie.ExchangeNudge, Wants: wants},
	}
	in.Results = &regie.Message{
		ID: regie.NewID(), Sender: regie.SenderSystem, Author: regie.Author{Kind: regie.AuthorComponent, ID: "engine"},
		Exchange: exchange,
		System:   &regie.SystemContent{Type: regie.SystemCompleteRefused, Summary: "go on"},
	}
	return in
}

// startFree is Start without a reservation.
func startFree(w *World, in store.Submission) store.Fence {
	w.T.Helper()
	in.Reserved = 0
	accepted := resultOf(w.Store.Submit(w.Ctx, in))(w)
	return accepted.Fence
}

func reserveMoney(w *World, fence store.Fence, exchange int, wants store.Reservation) store.Granted {
	w.T.Helper()
	out := resultOf(w.Store.Reserve(w.Ctx, fence, exchange, wants))(w)
	return out
}

// money adds up the cost of calls, by round, session, workspace and day.
func money(w *World) {
	other := resultOf(w.Store.EnsureWorkspace(w.Ctx, w.User, regie.Workspace{Name: "o", Root: "/o", FoundBy: "git"}))(w)
	fence := w.Start() // with 70 reserved
	w.must(w.AppendReply(fence, chargedReply(w, fence, 1, regie.Money{Reserved: 70, Cost: 42, Known: true}, nil)))
	w.must(w.FailAttempt(fence, store.Failure{ // cut, and charged
		Attempt: regie.Attempt{
			RoundID: fence.RoundID, Exchange: 2, Number: 1, Code: regie.CodeTruncatedStream,
			Money: regie.Money{Cost: 8, Known: true},
		},
		Retry: &store.Open{Number: 2, Reserved: 30},
	}))
	w.must(w.FailAttempt(fence, store.Failure{ // its outcome is unknown
		Attempt: regie.Attempt{
			RoundID: fence.RoundID, Exchange: 2, Number: 2, Code: regie.CodeProviderBroken,
			Money: regie.Money{Reserved: 30},
		},
		Retry: &store.Open{Number: 2},
	}))
	want := regie.Spending{Cost: 50, Due: 30, Estimated: 8}
	view := resultOf(w.Store.RoundView(w.Ctx, fence.RoundID))(w)
	w.equal("the round's", view.Spent, want)
	failed := view.Exchanges[1].Attempts
	w.equal("the attempts", []regie.Money{failed[0].Money, failed[1].Money},
		[]regie.Money{{Cost: 8, Known: true, Estimated: true}, {Reserved: 30}})
	session := resultOf(w.Store.SessionView(w.Ctx, fence.SessionID, w.User))(w)
	w.equal("the session's", session.Spent, want)

	apart := w.Submission("elsewhere")
	apart.New.WorkspaceID = other.ID
	fence = startFree(w, apart)
	w.must(w.AppendReply(fence, chargedReply(w, fence, 1, regie.Money{Cost: 7, Known: true}, nil)))
	idle := startFree(w, w.Submission("nothing yet"))
	rounds := resultOf(w.Store.Rounds(w.Ctx, store.RoundFilter{Limit: 10}))(w)
	of := map[regie.ID]regie.Spending{}
	for _, line := range rounds {
		of[line.Round.ID] = line.Spent
	}
	w.equal("in the list", []regie.Spending{of[view.Round.ID], of[fence.RoundID], of[idle.RoundID]},
		[]regie.Spending{want, {Cost: 7, Known: true}, {Known: true}})
	today := resultOf(w.Store.SpentToday(w.Ctx, "/o"))(w)
	w.equal("today", []regie.Spending{today.Workspace, today.All},
		[]regie.Spending{{Cost: 7, Known: true}, {Cost: 57, Due: 30}})
}

// AgedAttempt asserts that the reservation of a call that a crash cut may be due, and counts as the
// estimated cost once it is a day old (decision 72). The caps count it either way. age makes all
// failed calls two days older.
func (w *World) AgedAttempt(age func()) {
	w.T.Helper()
	fence := w.Start() // with 70 reserved
	w.must(w.FailAttempt(fence, store.Failure{
		Attempt: regie.Attempt{
			RoundID: fence.RoundID, Exchange: 1, Number: 1, Code: regie.CodeEngineGone,
			Money: regie.Money{Reserved: 70},
		},
		Retry: &store.Open{Number: 1},
	}))
	wants := store.Reservation{Prompt: 20, Reply: 80, Least: 80, Caps: regie.Caps{Session: 169}}
	refused := store.Granted{Refused: &store.OverCap{Scope: regie.CapSession, Cap: 169, Used: 70}}
	for _, want := range []regie.Spending{{Due: 70}, {Cost: 70, Known: true, Estimated: 70}} {
		view := resultOf(w.Store.RoundView(w.Ctx, fence.RoundID))(w)
		session := resultOf(w.Store.SessionView(w.Ctx, fence.SessionID, w.User))(w)
		rounds := resultOf(w.Store.Rounds(w.Ctx, store.RoundFilter{Limit: 10}))(w)
		w.equal("the round, its session, in the list", []regie.Spending{view.Spent, session.Spent, rounds[0].Spent},
			[]regie.Spending{want, want, want})
		w.equal("the call", view.Exchanges[0].Attempts[0].Money,
			regie.Money{Reserved: 70, Cost: want.Cost, Known: want.Known, Estimated: want.Known})
		w.equal("under a cap", reserveMoney(w, fence, 1, wants), refused)
		age()
	}
}

// caps grants the rest of each cap, less than wanted where that is still useful, and nothing else.
func caps(w *World) {
	wants := func(c regie.Caps) store.Reservation {
		return store.Reservation{Prompt: 20, Reply: 80, Least: 10, Caps: c}
	}
	fence := startFree(w, w.Submission("go"))
	w.equal("all", reserveMoney(w, fence, 1, wants(regie.Caps{Round: 100})), store.Granted{Reserved: 100})
	w.equal("once more in its place", reserveMoney(w, fence, 1, wants(regie.Caps{Round: 100})), store.Granted{Reserved: 100})
	w.equal("what is left", reserveMoney(w, fence, 1, wants(regie.Caps{Round: 100, Session: 31})),
		store.Granted{Reserved: 31})
	w.equal("too little", reserveMoney(w, fence, 1, wants(regie.Caps{Round: 100, Session: 29})),
		store.Granted{Refused: &store.OverCap{Scope: regie.CapSession, Cap: 29}})
	reserveMoney(w, fence, 1, wants(regie.Caps{Round: 100}))
	in := chargedReply(w, fence, 1, regie.Money{Reserved: 100, Cost: 60, Known: true}, nil)
	open := wants(regie.Caps{Round: 150, Session: 165, Workspace: 200, Day: 1000})
	in.Advance.Open.Wants = &open
	out, err := w.Store.AppendReply(w.Ctx, fence, in)
	w.must(err)
	w.equal("with the reply: the round has spent 60", out.Reserved, int64(90))
	claimed, err := w.Store.RoundView(w.Ctx, fence.RoundID)
	w.must(err)
	w.equal("in its row", claimed.Exchanges[1].Money.Reserved, int64(90))

	// Another session of the workspace sees the 60 spent and the 90 reserved.
	second := startFree(w, w.Submission("too"))
	for _, c := range []struct {
		caps    regie.Caps
		granted int64
		scope   regie.CapScope
	}{
		{regie.Caps{Round: 150}, 100, ""},
		{regie.Caps{Workspace: 250}, 100, ""},
		{regie.Caps{Workspace: 200}, 50, ""},
		{regie.Caps{Workspace: 179}, 0, regie.CapWorkspace},
		{regie.Caps{Day: 185}, 35, ""},
		{regie.Caps{Day: 160}, 0, regie.CapDay},
		{regie.Caps{Workspace: 200, Day: 190}, 40, ""},
	} {
		got := reserveMoney(w, second, 1, wants(c.caps))
		if got.Reserved != c.granted || (got.Refused != nil) != (c.scope != "") || got.Refused != nil &&
			(got.Refused.Scope != c.scope || got.Refused.Used != 150) {
			w.T.Errorf("under %+v: %+v %+v, want %d %q", c.caps, got, got.Refused, c.granted, c.scope)
		}
	}
	// A release frees the reservation; a death does not.
	reserveMoney(w, second, 1, wants(regie.Caps{Day: 1000}))
	w.must(w.Store.Release(w.Ctx, second))
	third := startFree(w, w.Submission("three"))
	w.equal("after a release", reserveMoney(w, third, 1, wants(regie.Caps{Day: 250})), store.Granted{Reserved: 100})
	taken, err := w.Store.Claim(w.Ctx, fence.RoundID, "another")
	w.must(err)
	w.equal("after a death", []any{taken.Resumed, taken.Exchange.Money.Reserved}, []any{true, int64(90)})
	_, err = w.Store.Reserve(w.Ctx, fence, 2, wants(regie.Caps{}))
	w.refused(regie.CodeStale, err)
	w.must(w.FailAttempt(taken.Fence, store.Failure{
		Attempt: regie.Attempt{
			RoundID: fence.RoundID, Exchange: 2,
			Number: 1, Code: regie.CodeProviderBroken, Money: regie.Money{Reserved: 90},
		}, Retry: &store.Open{Number: 2},
	}))
	w.equal("what may be due is spent", reserveMoney(w, taken.Fence, 2, wants(regie.Caps{Round: 160})),
		store.Granted{Refused: &store.OverCap{Scope: regie.CapRound, Cap: 160, Used: 150}})
	_, err = w.Store.Reserve(w.Ctx, taken.Fence, 7, wants(regie.Caps{}))
	w.refused(regie.CodeConflict, err)
}

// capsTogether reserves for many sessions under one cap at once: the cap is never exceeded.
func capsTogether(w *World) {
	const sessions, times, most = 8, 6, 100
	for _, limit := range []regie.Caps{{Day: 1500}, {Workspace: 1500}} {
		before := resultOf(w.Store.SpentToday(w.Ctx, ""))(w)
		bound := before.All.Cost + before.All.Due + 1500
		if limit.Day > 0 {
			limit.Day = bound
		} else {
			limit.Workspace = bound
		}
		fences := make([]store.Fence, sessions)
		for i := range fences {
			fences[i] = startFree(w, w.Submission("go"))
		}
		var together sync.WaitGroup
		refused := make([]int, sessions)
		for i, fence := range fences {
			together.Go(func() {
				chance := rand.New(rand.NewPCG(uint64(i), 7))
				wants := store.Reservation{Prompt: 10, Reply: most - 10, Least: 20, Caps: limit}
				reserved := int64(0)
				for n := 1; n <= times; n++ {
					if reserved == 0 {
						granted, err := w.Store.Reserve(w.Ctx, fence, n, wants)
						if err != nil {
							w.T.Error(err)
							return
						}
						if reserved = granted.Reserved; granted.Refused != nil {
							refused[i]++
							return
						}
					}
					money := regie.Money{
						Reserved: reserved, Cost: reserved - chance.Int64N(5),
						Known: chance.IntN(4) > 0,
					}
					if !money.Known {
						money.Cost = 0
					}
					next := &wants
					if n == times { // an unspent reservation would be missing below
						next = nil
					}
					out, err := w.Store.AppendReply(w.Ctx, fence, chargedReply(w, fence, n, money, next))
					if err != nil {
						w.T.Error(err)
						return
					}
					reserved = out.Reserved
				}
			})
		}
		together.Wait()
		after := resultOf(w.Store.SpentToday(w.Ctx, ""))(w)
		if spent := after.All.Cost + after.All.Due; spent > bound || spent < bound-most {
			w.T.Errorf("%d was spent of %d (%+v)", spent+1500-bound, 1500, limit)
		}
		if !slices.ContainsFunc(refused, func(n int) bool { return n > 0 }) {
			w.T.Error("nobody was refused: this shows nothing")
		}
		for _, fence := range fences { // frees its reservation
			w.must(w.Store.Release(w.Ctx, fence))
		}
	}
}

// halt pauses a round with its reason, and a resume continues it.
func halt(w *World) {
	fence := w.Start()
	notice := regie.Notice{
		RoundID: fence.RoundID, Kind: regie.NoticeBudget, Since: time.Now().UTC(), Text: "no",
		Said: []regie.Sentence{regie.Verbatim("no")},
	}
	w.must(w.Store.Halt(w.Ctx, fence, store.Halt{Notice: notice}))
	session, _, err := w.Store.Session(w.Ctx, fence.SessionID)
	w.must(err)
	round := resultOf(w.Store.Round(w.Ctx, fence.RoundID))(w)
	w.equal("paused", []any{session.State, round.State, round.Stop},
		[]any{regie.SessionPaused, regie.RoundRunning, regie.StopPause})
	w.unchanged(fence.SessionID, regie.CodeStopRequested, func() error {
		return w.Store.Halt(w.Ctx, fence, store.Halt{Notice: notice})
	})
	events := resultOf(w.Store.Events(w.Ctx, fence.SessionID, 0, 100))(w)
	told := 0
	for i := range events {
		if events[i].Type == regie.EventNotice {
			told++
		}
	}
	w.equal("people are told once", told, 1)
	w.must(w.Store.Resume(w.Ctx, fence.RoundID))
	claimed := resultOf(w.Store.Claim(w.Ctx, fence.RoundID, "another"))(w)
	w.equal("nobody died", claimed.Resumed, false)
	resultOf(w.Store.Verify(w.Ctx, fence.SessionID))(w)
}
