package storetest

import (
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// HandedOut ends a round with two calls of a client's tools, and a settled one.
func (w *World) HandedOut() (store.Fence, []regie.Call) {
	w.T.Helper()
	in := w.Submission("weather?")
	in.New.Origin = regie.OriginAPISession
	accepted := resultOf(w.Store.Submit(w.Ctx, in))(w)
	fence := accepted.Fence
	reply := w.Reply(fence, 1, regie.KindQuery, regie.KindQuery, regie.KindQuery)
	for i := range reply.Calls[1:] {
		reply.Calls[i+1].Origin = regie.OriginClient
	}
	reply.Calls[0].State, reply.Calls[0].Result = regie.CallSucceeded, "mine"
	reply.Advance = store.Advance{
		Phase: regie.PhaseEnd, Counters: regie.Counters{Total: 1},
		End: &store.End{Reason: regie.EndClientTools},
	}
	w.must(w.AppendReply(fence, reply))
	return fence, reply.Calls
}

// resultsSubmission returns a submission of a client's results alone.
func resultsSubmission(w *World, fence store.Fence, results ...regie.ClientResult) store.Submission {
	in := w.Submission("")
	in.SessionID, in.New, in.Results = fence.SessionID, nil, results
	in.Message = regie.Message{
		ID: regie.NewID(), Sender: regie.SenderSystem, Author: regie.Author{Kind: regie.AuthorComponent, ID: "client"},
		System:   &regie.SystemContent{Type: regie.SystemDataAdded},
		ClientID: "r",
	}
	return in
}

// clientCases are the cases of Run for clients of the OpenAI-compatible endpoint.
var clientCases = map[string]func(*World){
	"Agents":      agentVersions,
	"Uploads":     uploads,
	"Settings":    settings,
	"RequestKeys": requestKeys,
	"Clients":     clients,
	"Histories":   histories,
	"PassedOn":    passedOn,
}

// clients settles the calls of a client's tools between two rounds: with its results, without them,
// and with invalid ones (decision 35).
func clients(w *World) {
	fence, calls := w.HandedOut()
	w.state(fence.SessionID, regie.SessionIdle)
	a, b := regie.ClientResult{CallID: calls[1].ID, Content: "sun"},
		regie.ClientResult{CallID: calls[2].ID, Content: ""}
	for _, wrong := range [][]regie.ClientResult{
		{a},
		{a, a},
		{a, b, {CallID: calls[0].ID}},
		{a, {CallID: regie.NewID()}},
	} {
		w.unchanged(fence.SessionID, regie.CodeBadRequest, func() error {
			_, err := w.Store.Submit(w.Ctx, resultsSubmission(w, fence, wrong...))
			return err
		})
	}
	in := resultsSubmission(w, fence, b, a)
	next := resultOf(w.Store.Submit(w.Ctx, in))(w)
	if view := resultOf(w.Store.RoundView(w.Ctx, next.RoundID))(w); !view.Session.Tainted {
		w.T.Error("a client's results are content of others")
	}
	again := in
	again.Round.ID = regie.NewID()
	duplicate := resultOf(w.Store.Submit(w.Ctx, again))(w)
	w.equal("said again", []any{duplicate.Duplicate, duplicate.RoundID, duplicate.Message.Seq},
		[]any{true, next.RoundID, next.Message.Seq})
	round := resultOf(w.Store.Round(w.Ctx, next.RoundID))(w)
	w.equal("the count goes on", round.Counters.Total, 1)
	thread := checkThread(w, fence.SessionID)
	last := thread.Messages[len(thread.Messages)-1]
	w.equal("the results", []any{last.ID, last.System.CallIDs, last.RoundID},
		[]any{in.Message.ID, []regie.ID{calls[0].ID, calls[1].ID, calls[2].ID}, next.RoundID})
	stored := thread.Calls[calls[0].MessageID]
	w.equal("results of calls", []any{
		stored[0].Result, stored[1].State, stored[1].Result,
		stored[2].State, stored[2].Error,
	}, []any{
		"mine", regie.CallSucceeded, "sun",
		regie.CallSucceeded, (*regie.CallError)(nil),
	})
	checkVerifies(w, fence.SessionID)

	// Anything but results leaves the calls NOT_RUN: a message, one that waited for the end of the
	// round, and the end of the session.
	other, left := w.HandedOut()
	in = w.Submission("something else")
	in.SessionID, in.New = other.SessionID, nil
	resultOf(w.Store.Submit(w.Ctx, in))(w)
	thread = checkThread(w, other.SessionID)
	w.equal("not run", thread.Calls[left[0].MessageID][1].NotRun, regie.NotRunSuperseded)
	checkVerifies(w, other.SessionID)
	checkWaitingFollows(w)
	gone, _ := w.HandedOut()
	resultOf(w.Store.Remove(w.Ctx, store.Remove{SessionID: gone.SessionID, By: "me"}))(w)
	checkVerifies(w, gone.SessionID)
}

// checkWaitingFollows: a message that arrived meanwhile follows a round that ends with calls of a
// client's tools.
func checkWaitingFollows(w *World) {
	w.T.Helper()
	fence := w.Start()
	in := w.Submission("and?")
	in.SessionID, in.New = fence.SessionID, nil
	pending := resultOf(w.Store.Submit(w.Ctx, in))(w)
	w.equal("pending", pending.Pending, true)
	reply := w.Reply(fence, 1, regie.KindQuery)
	reply.Calls[0].Origin = regie.OriginClient
	reply.Advance = store.Advance{
		Phase: regie.PhaseEnd, Counters: regie.Counters{Total: 1},
		End: &store.End{Reason: regie.EndClientTools},
	}
	out := resultOf(w.Store.AppendReply(w.Ctx, fence, reply))(w)
	w.equal("a round follows", out.Next.IsZero(), false)
	thread := checkThread(w, fence.SessionID)
	w.equal("not run", thread.Calls[reply.Message.ID][0].NotRun, regie.NotRunSuperseded)
	checkVerifies(w, fence.SessionID)
}

func checkVerifies(w *World, session regie.ID) {
	w.T.Helper()
	resultOf(w.Store.Verify(w.Ctx, session))(w)
}

// histories imports a client's messages, in the transition that makes its session.
func histories(w *World) {
	in := w.Submission("and now?")
	in.New.Origin = regie.OriginAPISession
	call := w.Calls(store.Fence{RoundID: in.Round.ID}, 0, regie.NewID(), regie.KindQuery)[0]
	call.Origin, call.State, call.Result, call.Definition = regie.OriginClient, regie.CallSucceeded, "sun", regie.Hash{}
	author := regie.Author{Kind: regie.AuthorComponent, ID: "client"}
	in.History = []store.Imported{
		{Message: regie.Message{ID: regie.NewID(), Sender: regie.SenderUser, Author: author, Text: "weather?"}},
		{Message: regie.Message{
			ID: call.MessageID, Sender: regie.SenderAI, Author: author,
			AI: &regie.AIReply{Parts: []regie.Part{
				{
					Type: regie.PartCall, CallID: call.ID, Tool: call.Tool,
					Arguments: regie.HashOf([]byte(call.Arguments)),
				},
			}},
		}, Calls: []regie.Call{call}},
		{Message: regie.Message{
			ID: regie.NewID(), Sender: regie.SenderSystem, Author: author,
			System: &regie.SystemContent{Type: regie.SystemDataAdded, CallIDs: []regie.ID{call.ID}},
		}},
	}
	accepted := resultOf(w.Store.Submit(w.Ctx, in))(w)
	thread := checkThread(w, in.SessionID)
	w.equal("messages", len(thread.Messages), 4)
	w.equal("the last one is the message", thread.Messages[3].ID, accepted.Message.ID)
	w.equal("the call", thread.Calls[call.MessageID][0].Result, "sun")
	checkVerifies(w, in.SessionID)
	other := w.Submission("another")
	other.SessionID, other.New.ID, other.New.Origin = in.SessionID, in.SessionID, regie.OriginAPISession
	w.unchanged(in.SessionID, regie.CodeKeyReused, func() error {
		_, err := w.Store.Submit(w.Ctx, other)
		return err
	})

	listed := resultOf(w.Store.Sessions(w.Ctx, store.SessionFilter{}))(w)
	for _, s := range listed {
		w.equal("origin of a session in a list", s.Origin, regie.SessionOrigin(""))
	}
	found := resultOf(w.Store.Sessions(w.Ctx, store.SessionFilter{ID: in.SessionID}))(w)
	w.equal("named", []any{len(found), found[0].Origin}, []any{1, regie.OriginAPISession})
	due, next, err := w.Store.Unused(w.Ctx, found[0].LastActivity, 10)
	w.must(err)
	w.equal("not yet", []any{len(due), next.Equal(found[0].LastActivity)}, []any{0, true})
	due, _, err = w.Store.Unused(w.Ctx, found[0].LastActivity.Add(time.Microsecond), 10)
	w.must(err)
	w.equal("due", due, []regie.ID{in.SessionID})
}

// passedOn reserves and logs model calls without a session, under a cap of a day that rounds share
// (decision 29).
func passedOn(w *World) {
	call := func() store.Proxied {
		return store.Proxied{
			ID: regie.NewID(), WorkspaceID: w.Workspace.ID, UserID: w.User, Provider: "p",
			Model: "m", StartedAt: time.Now(),
		}
	}
	before := resultOf(w.Store.SpentToday(w.Ctx, ""))(w)
	wants := store.Reservation{
		Prompt: 10, Reply: 90, Least: 20,
		Caps: regie.Caps{Workspace: before.Workspace.Cost + 1_000_000},
	}
	first, second := call(), call()
	granted := resultOf(w.Store.ReserveProxied(w.Ctx, first, wants))(w)
	w.equal("granted", granted.Reserved, int64(100))
	wants.Caps = regie.Caps{Round: 50}
	granted = resultOf(w.Store.ReserveProxied(w.Ctx, second, wants))(w)
	w.equal("shortened", granted.Reserved, int64(50))
	wants.Caps = regie.Caps{Round: 29}
	granted = resultOf(w.Store.ReserveProxied(w.Ctx, call(), wants))(w)
	w.equal("refused", granted.Refused, &store.OverCap{Scope: regie.CapRound, Cap: 29})
	first.Money, first.Usage, first.Duration = regie.Money{Reserved: 100, Cost: 42, Known: true},
		regie.Usage{Input: 7, Output: 3}, time.Millisecond
	third := call()
	third.Code, third.Money.Known, third.Duration = regie.CodeProviderAuth, true, time.Millisecond
	w.must(w.Store.LogProxied(w.Ctx, []store.Proxied{first, third}))
	fourth, fifth := call(), call()
	for _, free := range []store.Proxied{fourth, fifth} {
		resultOf(w.Store.ReserveProxied(w.Ctx, free, store.Reservation{}))(w)
	}
	fourth.Money, fourth.Duration = regie.Money{Cost: 1, Known: true}, time.Millisecond
	// a settled call is booked once, and does not affect others
	w.must(w.Store.LogProxied(w.Ctx, []store.Proxied{first, fourth}))
	w.must(w.Store.LogProxied(w.Ctx, []store.Proxied{fourth}))
	// the process of the second and the fifth one has died
	w.must(w.Store.LeftProxied(w.Ctx, time.Now().Add(time.Second)))
	after := resultOf(w.Store.SpentToday(w.Ctx, ""))(w)
	w.equal("spent", []any{after.All.Cost - before.All.Cost, after.All.Due - before.All.Due},
		[]any{int64(43), int64(50)})
	logged := resultOf(w.Store.ProxiedCalls(w.Ctx, 10))(w)
	w.equal("logged", []any{len(logged), logged[4].Usage, logged[4].Money.Cost, logged[3].Money.Known, logged[2].Code},
		[]any{5, first.Usage, int64(42), false, regie.CodeProviderAuth})
	w.equal("left", []any{logged[3].Code, logged[1].Money, logged[0].Code, logged[0].Money},
		[]any{regie.CodeEngineGone, regie.Money{Cost: 1, Known: true}, regie.CodeEngineGone, regie.Money{}})
}
