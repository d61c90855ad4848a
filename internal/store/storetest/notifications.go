package storetest

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

var notificationCases = map[string]func(*World){
	"Notifications": notifications, "NotificationChannels": notificationChannels,
	"NotifiedOnlyIfStored": notifiedOnlyIfStored, "Deliveries": deliveries, "SealedDelivery": sealedDelivery,
}

// everyKind is a channel for all notifications.
func everyKind(name string) store.Channel {
	return store.Channel{Name: name, Kinds: regie.NotificationKinds()}
}

// kindsOf returns what the notifications of a session are about.
func kindsOf(w *World, session regie.ID) (kinds []regie.NotificationKind) {
	w.T.Helper()
	for _, d := range resultOf(w.Store.Deliveries(w.Ctx, store.DeliveryFilter{}))(w) {
		if d.SessionID == session {
			kinds = append(kinds, d.Kind)
		}
	}
	return kinds
}

// commitUnknown commits a call without a known outcome and returns its id.
func commitUnknown(w *World, fence store.Fence) regie.ID {
	w.T.Helper()
	reply := w.Reply(fence, 1, regie.KindAction)
	w.must(w.AppendReply(fence, reply))
	call := reply.Calls[0]
	w.must(w.CommitCalls(fence, store.Settle{Exchange: 1, Start: &call}))
	call.State, call.Error = regie.CallUnknown, &regie.CallError{Code: regie.CodeOutcomeUnknown, Message: "?"}
	w.must(w.CommitCalls(fence, store.Settle{Exchange: 1, Settled: []regie.Call{call}}))
	return call.ID
}

// endAs submits a message and ends its round by a failed attempt.
func endAs(w *World, in store.Submission, code regie.Code, end regie.RoundEnd) regie.ID {
	w.T.Helper()
	accepted := resultOf(w.Store.Submit(w.Ctx, in))(w)
	w.must(w.FailAttempt(accepted.Fence, store.Failure{
		Attempt: regie.Attempt{RoundID: accepted.RoundID, Exchange: 1, Number: 1, Code: code, Error: "x"},
		Advance: &store.Advance{Phase: regie.PhaseEnd, End: &store.End{
			Reason: end, Notice: &regie.Notice{RoundID: accepted.RoundID, Kind: regie.NoticeFailed},
		}},
	}))
	return in.SessionID
}

// notifications: the transition that makes a thing true stores its notification.
func notifications(w *World) {
	w.Store.SetChannels([]store.Channel{everyKind("phone")})
	fence, reply, asked := w.Ask(1)
	d := dueDelivery(w)
	w.equal("the notification", []any{d.Kind, d.SessionID, d.RoundID, d.ObjectID, d.State, d.UserID, d.WorkspaceID, d.Moot},
		[]any{regie.NotifyApproval, fence.SessionID, fence.RoundID, asked.ID, store.DeliveryPending, w.User, w.Workspace.ID, false})
	w.must(w.Store.ExtendDeadline(w.Ctx, store.Extension{ItemID: asked.ID, Until: asked.ExpiresAt.Add(time.Hour)}))
	resultOf(w.decide(asked, "x", regie.Decision{CallID: reply.Calls[0].ID, Answer: regie.AnswerDeny}))(w)
	w.equal("of an approval that was extended and decided", kindsOf(w, fence.SessionID), []regie.NotificationKind{regie.NotifyApproval})
	w.equal("moot", dueDelivery(w).Moot, true)

	unknown := w.Start()
	call := commitUnknown(w, unknown)
	w.must(w.Store.ResolveCall(w.Ctx, call, regie.ResolvedHappened, "", "ada"))
	halted, paused, waiting := w.Start(), w.Start(), w.Start()
	w.must(w.Store.Halt(w.Ctx, halted, store.Halt{Notice: regie.Notice{RoundID: halted.RoundID, Kind: regie.NoticeBudget}}))
	_, err := w.Store.RequestStop(w.Ctx, paused.RoundID, regie.StopPause)
	w.must(err)
	waitForProvider(w, waiting, time.Now().Add(-time.Second))
	_, _, err = w.Store.ExpireWaits(w.Ctx, time.Now())
	w.must(err)
	gaveUp := w.Start()
	w.must(w.FailAttempt(gaveUp, store.Failure{
		Attempt: regie.Attempt{RoundID: gaveUp.RoundID, Exchange: 1, Number: 1, Code: regie.CodeProviderOffline},
		Retry:   &store.Open{Number: 1}, Outage: &regie.Outage{Exchange: 1}, Pause: true,
		Notice: &regie.Notice{RoundID: gaveUp.RoundID, Kind: regie.NoticeNetworkGiveUp},
	}))
	ofAPI := w.Submission("by a program")
	ofAPI.New.Origin = regie.OriginAPISession
	for _, c := range []struct {
		what    string
		session regie.ID
		want    []regie.NotificationKind
	}{
		{"an unknown outcome, resolved", unknown.SessionID, []regie.NotificationKind{regie.NotifyUnknown}},
		{"a round at its budget", halted.SessionID, []regie.NotificationKind{regie.NotifyBudget}},
		{"a person's pause", paused.SessionID, nil},
		{"a provider that nobody brought", waiting.SessionID, []regie.NotificationKind{regie.NotifyPause}},
		{"a network given up", gaveUp.SessionID, []regie.NotificationKind{regie.NotifyPause}},
		{"a chat's failed provider", endAs(w, w.Submission("x"), regie.CodeProviderOffline, regie.EndProviderError), []regie.NotificationKind{regie.NotifyFailure}},
		{"an API client's", endAs(w, ofAPI, regie.CodeProviderOffline, regie.EndProviderError), nil},
		{"a chat's limit", endAs(w, w.Submission("x"), regie.CodeProviderOffline, regie.EndLimit), nil},
		{"a chat's budget", endAs(w, w.Submission("x"), regie.CodeOverBudget, regie.EndLimit), []regie.NotificationKind{regie.NotifyBudget}},
		{"an automation's limit", endAs(w, automationSubmission(w), regie.CodeProviderOffline, regie.EndLimit), []regie.NotificationKind{regie.NotifyFailure}},
		{"a completed automation", endAs(w, automationSubmission(w), regie.CodeProviderOffline, regie.EndCompleted), []regie.NotificationKind{regie.NotifyFinished}},
		{"an interrupted automation", endAs(w, automationSubmission(w), regie.CodeProviderOffline, regie.EndInterrupted), nil},
	} {
		w.equal(c.what, kindsOf(w, c.session), c.want)
	}
}

// notificationChannels: each channel has its kinds, workspace and user.
func notificationChannels(w *World) {
	fence, _, _ := w.Ask(1)
	w.equal("without a channel", kindsOf(w, fence.SessionID), []regie.NotificationKind(nil))
	all, here, elsewhere, hers, his := everyKind("all"), everyKind("here"), everyKind("elsewhere"), everyKind("hers"), everyKind("his")
	here.Root, elsewhere.Root, hers.User, his.User = "/w", "/w/below", "ada", "bob"
	failures := store.Channel{Name: "failures", Kinds: []regie.NotificationKind{regie.NotifyFailure}}
	w.Store.SetChannels([]store.Channel{all, here, elsewhere, hers, his, failures})
	w.Ask(1)
	var names []string
	ids := map[regie.ID]bool{}
	for _, d := range resultOf(w.Store.Deliveries(w.Ctx, store.DeliveryFilter{Root: "/w"}))(w) {
		names, ids[d.ID] = append(names, d.Channel), true
	}
	slices.Sort(names)
	w.equal("channels", names, []string{"all", "here", "hers"})
	w.equal("of one notification", len(ids), 1)
	w.equal("elsewhere", len(resultOf(w.Store.Deliveries(w.Ctx, store.DeliveryFilter{Root: "/x"}))(w)), 0)
	w.equal("at most", len(resultOf(w.Store.Deliveries(w.Ctx, store.DeliveryFilter{Limit: 2}))(w)), 2)
}

// notifiedOnlyIfStored: a refused transition notifies nobody.
func notifiedOnlyIfStored(w *World) {
	w.Store.SetChannels([]store.Channel{everyKind("phone")})
	fence := w.Start()
	reply := w.Reply(fence, 1, regie.KindAction)
	reply.Ask, reply.Park = &store.Asked{Approval: w.Approval(fence, reply)}, true
	stale := fence
	stale.Epoch--
	w.refused(regie.CodeStale, w.AppendReply(stale, reply))
	due := resultOf(w.Store.DueDelivery(w.Ctx, "phone", time.Now()))(w)
	w.equal("due", len(due), 0)
	w.must(w.AppendReply(fence, reply))
	dueDelivery(w)
}

// dueDelivery returns the delivery of the channel phone that is due.
func dueDelivery(w *World) store.Delivery {
	w.T.Helper()
	due := resultOf(w.Store.DueDelivery(w.Ctx, "phone", time.Now()))(w)
	if len(due) != 1 {
		w.T.Fatalf("due are %+v", due)
	}
	return due[0]
}

// deliveries: one of several engines makes each attempt, and an old attempt changes nothing.
func deliveries(w *World) {
	w.Store.SetChannels([]store.Channel{everyKind("phone")})
	w.Ask(1)
	w.Ask(1)
	until := time.Now().Add(time.Minute).UTC().Truncate(time.Microsecond)
	claim := func(d store.Delivery) (store.Delivery, bool) {
		d.Attempts, d.NextAt = d.Attempts+1, until
		claimed, err := w.Store.UpdateDelivery(w.Ctx, &d, d.Attempts-1)
		if err != nil {
			w.T.Error(err)
		}
		return d, claimed
	}
	first := dueDelivery(w)
	var claims atomic.Int64
	together(4, func(int) {
		if _, claimed := claim(first); claimed {
			claims.Add(1)
		}
	})
	w.equal("claims", claims.Load(), int64(1))
	second, claimed := claim(dueDelivery(w))
	w.equal("the other one is claimed", []any{claimed, second.ID == first.ID}, []any{true, false})
	w.equal("due before a lease ends", len(resultOf(w.Store.DueDelivery(w.Ctx, "phone", until.Add(-1)))(w)), 0)
	w.equal("due after it", len(resultOf(w.Store.DueDelivery(w.Ctx, "phone", until))(w)), 1)
	late := second
	second.NextAt, second.Error = until.Add(time.Hour), regie.Verbatim("down \x00 and out")
	w.equal("failed", resultOf(w.Store.UpdateDelivery(w.Ctx, &second, second.Attempts))(w), true)
	again, _ := claim(second)
	late.State = store.DeliveryFailed
	w.equal("an old attempt", resultOf(w.Store.UpdateDelivery(w.Ctx, &late, late.Attempts))(w), false)
	newest := func() store.Delivery { return resultOf(w.Store.Deliveries(w.Ctx, store.DeliveryFilter{}))(w)[0] }
	d := newest()
	w.equal("the newest", []any{d.ID, d.State, d.Attempts, d.NextAt, d.Error, d.SettledAt},
		[]any{second.ID, store.DeliveryPending, 2, until, second.Error, time.Time{}})
	again.State = store.DeliverySent
	w.equal("sent", resultOf(w.Store.UpdateDelivery(w.Ctx, &again, again.Attempts))(w), true)
	again.State = store.DeliveryFailed
	w.equal("settled again", resultOf(w.Store.UpdateDelivery(w.Ctx, &again, again.Attempts))(w), false)
	d = newest()
	w.equal("settled once", []any{d.State, d.SettledAt.IsZero()}, []any{store.DeliverySent, false})
	w.must(w.Store.RemoveDeliveries(w.Ctx, first.CreatedAt.Add(time.Microsecond)))
	w.equal("left", len(resultOf(w.Store.Deliveries(w.Ctx, store.DeliveryFilter{}))(w)), 1)
}

// sealedDelivery: a session that has read private data and what others wrote seals its
// notifications, and a removed one makes them moot.
func sealedDelivery(w *World) {
	w.Store.SetChannels([]store.Channel{everyKind("phone")})
	fence := w.Start()
	reply := w.Reply(fence, 1, regie.KindQuery)
	w.must(w.AppendReply(fence, reply))
	settle := w.Settled(1, reply.Calls)
	settle.Settled[0].Tainted, settle.Settled[0].ReadPrivate = true, true
	settle.Advance = &store.Advance{Phase: regie.PhaseEnd, End: &store.End{Reason: regie.EndWatchdog}}
	w.must(w.CommitCalls(fence, settle))
	d := dueDelivery(w)
	w.equal("the notification", []any{d.Kind, d.Sealed, d.Moot, d.SessionName}, []any{regie.NotifyFailure, true, false, "go"})
	resultOf(w.Store.Remove(w.Ctx, store.Remove{SessionID: fence.SessionID, By: "ada"}))(w)
	d = dueDelivery(w)
	w.equal("of a removed session", []any{d.Moot, d.SessionName}, []any{true, ""})
}
