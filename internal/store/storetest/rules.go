package storetest

import (
	"encoding/json"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// Standing reviews a call and allows it always. The rule expires at a time, or never for the zero
// time.
func (w *World) Standing(expires time.Time) regie.Rule {
	w.T.Helper()
	_, reply, asked := w.Ask(1)
	scope := regie.Scope{Tool: "t.action", Kind: regie.ScopeAny, Sentence: regie.Say("any file of this workspace")}
	rule := regie.Rule{
		ID: regie.NewID(), Verdict: regie.VerdictAllow, Scope: scope, Author: "ada",
		FromCall: reply.Calls[0].ID, ExpiresAt: expires,
	}
	_, err := w.Store.Decide(w.Ctx, store.Decide{
		ApprovalID: asked.ID, Request: "x", Rules: []regie.Rule{rule},
		Decisions: []regie.Decision{{
			CallID: rule.FromCall, Answer: regie.AnswerAlways, Scope: &scope,
			By: "ada", ExpiresAt: expires,
		}},
	})
	w.must(err)
	return rule
}

func checkRules(w *World, want ...regie.ID) {
	w.T.Helper()
	all := resultOf(w.Store.Rules(w.Ctx, w.Workspace.ID, regie.NewID()))(w)
	var got []regie.ID
	for _, rule := range all {
		got = append(got, rule.ID)
	}
	w.equal("the rules that hold", got, want)
}

// rulesRevoked revokes rules: reads that knew them lose them at once, and the log of the workspace
// records it (spec 4.4, decision 15).
func rulesRevoked(w *World) {
	first, second, third := w.Standing(time.Time{}), w.Standing(time.Time{}), w.Standing(time.Time{})
	checkRules(w, first.ID, second.ID, third.ID) // the store knows them from here on
	before := w.head(w.Workspace.ID)
	w.equal("events of three rules", before, int64(3))

	w.refused(regie.CodeNotFound, w.Store.RevokeRules(w.Ctx, store.RevokeRules{
		RuleIDs: []regie.ID{first.ID, regie.NewID()}, By: "bob",
	}))
	checkRules(w, first.ID, second.ID, third.ID) // all or none
	w.equal("the log of the workspace", w.head(w.Workspace.ID), before)

	for range 2 {
		w.must(w.Store.RevokeRules(w.Ctx, store.RevokeRules{RuleIDs: []regie.ID{first.ID, third.ID}, By: "bob"}))
		checkRules(w, second.ID)
		w.equal("the log of the workspace", w.head(w.Workspace.ID), before+2)
	}
	w.must(w.Store.RevokeRules(w.Ctx, store.RevokeRules{RuleIDs: []regie.ID{third.ID, second.ID}, By: "eve"}))
	checkRules(w)

	events := resultOf(w.Store.Events(w.Ctx, w.Workspace.ID, before, 10))(w)
	var last struct {
		RuleID regie.ID        `json:"rule_id"`
		State  regie.RuleState `json:"state"`
		By     string          `json:"by"`
	}
	w.must(json.Unmarshal(events[len(events)-1].Body, &last))
	w.equal("the last event", []any{len(events), events[len(events)-1].Type, last.RuleID, last.State, last.By},
		[]any{3, regie.EventRule, second.ID, regie.RuleRevoked, "eve"})

	open := resultOf(w.Store.ListRules(w.Ctx, store.RuleFilter{Root: "/w"}, time.Now()))(w)
	w.equal("rules that hold", len(open), 0)
	all := resultOf(w.Store.ListRules(w.Ctx, store.RuleFilter{Root: "/w", Ended: true}, time.Now()))(w)
	if len(all) != 3 || all[2].RevokedBy != "bob" || all[1].RevokedBy != "eve" ||
		all[0].State != regie.RuleRevoked || all[0].RevokedAt.IsZero() {
		w.T.Errorf("the rules are %+v", all)
	}
	w.head(w.Workspace.ID)
}

// rulesEnd lists rules with their details, and their state at a time.
func rulesEnd(w *World) {
	end := time.Now().Add(time.Hour).Truncate(time.Microsecond).UTC()
	ends, stays := w.Standing(end), w.Standing(time.Time{})
	made, err := w.Store.ListRules(w.Ctx, store.RuleFilter{Ended: true}, end)
	w.must(err)
	mark := func(i int) store.Mark { return store.Mark{At: made[i].CreatedAt, ID: made[i].ID} }
	for _, c := range []struct {
		at     time.Time
		filter store.RuleFilter
		want   []regie.ID
	}{
		{end.Add(-time.Microsecond), store.RuleFilter{}, []regie.ID{ends.ID, stays.ID}},
		{end, store.RuleFilter{}, []regie.ID{stays.ID}},
		{end, store.RuleFilter{Limit: 1}, []regie.ID{stays.ID}},
		{end, store.RuleFilter{Limit: 1, Ended: true}, []regie.ID{ends.ID}},
		{end, store.RuleFilter{After: mark(0), Ended: true, Limit: 5}, []regie.ID{stays.ID}},
		{end, store.RuleFilter{After: mark(1), Ended: true}, nil},
	} {
		found, err := w.Store.ListRules(w.Ctx, c.filter, c.at)
		w.must(err)
		var got []regie.ID
		for _, rule := range found {
			got = append(got, rule.ID)
		}
		w.equal("the rules at "+c.at.String(), got, c.want)
	}
	digits := ends.ID.String()
	for _, filter := range []store.RuleFilter{
		{ID: ends.ID},
		{Short: digits[len(digits)-6:]},
		{Root: "/w", Ended: true},
	} {
		found, err := w.Store.ListRules(w.Ctx, filter, end)
		w.must(err)
		if len(found) == 0 {
			w.T.Fatalf("%+v finds nothing", filter)
		}
		rule := found[0]
		w.equal("the rule", []any{
			rule.ID, rule.State, rule.ExpiresAt, rule.Author,
			rule.FromCall, rule.Scope, rule.Workspace,
		},
			[]any{ends.ID, regie.RuleExpired, end, "ada", ends.FromCall, ends.Scope, "w"})
		if rule.RoundID.IsZero() || rule.CreatedAt.IsZero() ||
			rule.Call.String() != "write 1 line to a.txt (new file)" {
			w.T.Errorf("the rule comes from %+v", rule)
		}
	}
	none, err := w.Store.ListRules(w.Ctx, store.RuleFilter{Root: "/elsewhere", Ended: true}, end)
	w.must(err)
	w.equal("rules of another workspace", len(none), 0)
	_, err = w.Store.ListRules(w.Ctx, store.RuleFilter{Short: "%"}, end)
	w.refused(regie.CodeBadID, err)
	inbox, err := w.Store.Inbox(w.Ctx, store.InboxFilter{SessionID: found(w, ends.FromCall), Short: ""})
	w.must(err)
	w.equal("open approvals", len(inbox.Approvals), 0)
	report, err := w.Store.VerifyRules(w.Ctx, "/w")
	w.must(err)
	w.equal("events of two rules", report.Events, int64(2))
}

// found returns the session of a call that a person reviewed.
func found(w *World, call regie.ID) regie.ID {
	w.T.Helper()
	rounds := resultOf(w.Store.Rounds(w.Ctx, store.RoundFilter{Limit: 100}))(w)
	for _, line := range rounds {
		view := resultOf(w.Store.RoundView(w.Ctx, line.Round.ID))(w)
		for _, e := range view.Exchanges {
			for i := range e.Calls {
				if e.Calls[i].ID == call {
					return view.Session.ID
				}
			}
		}
	}
	w.T.Fatal("no such call")
	return regie.ID{}
}

// givenBack stops a session with waiting messages: each is withdrawn with an event, and a repeated
// stop returns them again (decisions 6 and 10).
func givenBack(w *World) {
	fence := w.Start()
	say := func(text string, when store.WhenBusy) regie.ID {
		w.T.Helper()
		in := w.Submission(text)
		in.SessionID, in.New, in.WhenBusy = fence.SessionID, nil, when
		accepted := resultOf(w.Store.Submit(w.Ctx, in))(w)
		return accepted.Message.ID
	}
	texts := func() []string {
		w.T.Helper()
		messages := resultOf(w.Store.Withdrawn(w.Ctx, fence.SessionID))(w)
		out := []string{}
		for _, m := range messages {
			out = append(out, m.Text)
		}
		return out
	}
	first, second := say("one", store.Queue), say("two", store.Steer)
	w.equal("given back before the stop", texts(), []string{})
	before := w.head(fence.SessionID)
	for range 2 {
		resultOf(w.Store.RequestStop(w.Ctx, fence.RoundID, regie.StopStop))(w)
		w.equal("given back", texts(), []string{"one", "two"})
	}
	events := resultOf(w.Store.Events(w.Ctx, fence.SessionID, before, 10))(w)
	var told []regie.ID
	for _, e := range events {
		var body struct {
			MessageID regie.ID `json:"message_id"`
		}
		if e.Type == regie.EventMessageWithdrawn && json.Unmarshal(e.Body, &body) == nil {
			told = append(told, body.MessageID)
		}
	}
	w.equal("the log tells", told, []regie.ID{first, second})

	third := say("three", store.Queue) // before the round has obeyed
	end := w.Answer(1)
	end.Advance.End = &store.End{Reason: regie.EndStopped}
	w.must(w.AppendReply(fence, end))
	w.state(fence.SessionID, regie.SessionClosed)
	w.equal("given back at the end", texts(), []string{"one", "two", "three"})
	in := w.Submission("three")
	in.SessionID, in.New, in.Message.ID = fence.SessionID, nil, third
	again := resultOf(w.Store.Submit(w.Ctx, in))(w)
	w.equal("a message that came back and is said again under its id",
		[]bool{again.Duplicate, again.Pending}, []bool{true, false})
	w.head(fence.SessionID)

	in = w.Submission("a new beginning")
	in.SessionID, in.New = fence.SessionID, nil
	resultOf(w.Store.Submit(w.Ctx, in))(w)
	w.equal("given back by the round after", texts(), []string{})
	w.head(fence.SessionID)
}

// askedAnew asks twice about one call: the later review counts.
func askedAnew(w *World) {
	fence, reply, asked := w.Ask(1)
	call := reply.Calls[0].ID
	resultOf(w.decide(asked, "1", regie.Decision{CallID: call, Answer: regie.AnswerAllow}))(w)
	again := w.AskAgain(fence, reply)
	batch := resultOf(w.Store.Batch(w.Ctx, fence, 1, reply.Message.ID))(w)
	review := batch.Reviews[call]
	w.equal("the review", []any{review.Decision == nil, review.Verdict}, []any{true, again.Reviews[0].Verdict})
	w.head(fence.SessionID)
}

// AskAgain asks again about the first call of a reply, which was decided before.
func (w *World) AskAgain(fence store.Fence, reply store.Reply) *regie.Approval {
	w.T.Helper()
	claimed := resultOf(w.Store.Claim(w.Ctx, fence.RoundID, "test"))(w)
	reply.Calls = reply.Calls[:1]
	again := w.Approval(claimed.Fence, reply)
	again.Reviews[0].Verdict = regie.VerdictMustAsk
	out, err := w.Store.CommitCalls(w.Ctx, claimed.Fence, store.Settle{
		Exchange: 1,
		Ask:      &store.Asked{Approval: again}, Park: true,
	})
	w.must(err)
	w.equal("parked", out.Parked, true)
	return again
}
