package storetest

import (
	"slices"
	"strconv"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/slot"
	"github.com/regie-run/regie/internal/store"
)

// NewAutomation returns the transition that stores an automation with its template.
func NewAutomation(w *World) store.SaveAutomation {
	in := w.Submission("water the plants")
	seed := *in.New
	seed.ID, seed.Type = regie.NewID(), regie.SessionSeed
	return store.SaveAutomation{
		Automation: regie.Automation{
			ID: regie.NewID(), WorkspaceID: seed.WorkspaceID, UserID: seed.UserID, Name: "plants", Enabled: true,
			Definition: regie.AutomationDefinition{
				Schedule: &regie.Schedule{EveryMinutes: 5, Zone: "UTC"}, Webhook: true,
			},
			CreatedBy: regie.AutomationAuthor{Kind: regie.AuthorUser, ID: seed.UserID.String()},
		},
		Template: &store.Template{Session: seed, Message: regie.Message{
			ID: regie.NewID(), Sender: regie.SenderUser, Text: "water the plants",
			Author: regie.Author{Kind: regie.AuthorUser, ID: seed.UserID.String()},
		}},
		Hook: regie.HashOf([]byte("hook " + in.SessionID.String())), By: "eve",
	}
}

func readAutomation(w *World, id regie.ID) store.AutomationRow {
	rows := resultOf(w.Store.Automations(w.Ctx, store.AutomationFilter{ID: id}))(w)
	if len(rows) != 1 {
		w.T.Fatalf("there are %d automations %s", len(rows), id)
	}
	return rows[0]
}

// automationVersions: a version keeps its template; a new schedule begins a series, a new text does
// not; an old version is refused.
func automationVersions(w *World) {
	in := NewAutomation(w)
	first := resultOf(w.Store.SaveAutomation(w.Ctx, in))(w)
	again := resultOf(w.Store.SaveAutomation(w.Ctx, in))(w)
	w.equal("the same again", []any{again.Version, again.SeedID}, []any{1, first.SeedID})
	row := readAutomation(w, first.ID)
	w.equal("stored", []any{row.Name, row.Message.Text, row.Version, row.HasHook, row.Definition.Schedule.EveryMinutes},
		[]any{"plants", "water the plants", 1, true, 5})
	if view := resultOf(w.Store.SessionView(w.Ctx, first.SeedID, w.User))(w); len(view.Thread) != 1 {
		w.T.Errorf("the template has %d messages", len(view.Thread))
	}
	w.head(first.SeedID)

	edit := in
	edit.After, edit.Template, edit.Hook = 1, nil, regie.Hash{}
	edit.Automation.SeedID, edit.Automation.Name = first.SeedID, "all plants"
	second := resultOf(w.Store.SaveAutomation(w.Ctx, edit))(w)
	w.equal("a new name", []any{second.Version, second.SeriesFrom, second.SeedID}, []any{2, first.SeriesFrom, first.SeedID})
	_, err := w.Store.SaveAutomation(w.Ctx, edit)
	w.refused(regie.CodeConflict, err)
	edit.After, edit.Automation.Definition.Schedule = 2, &regie.Schedule{EveryMinutes: 7, Zone: "UTC"}
	third := resultOf(w.Store.SaveAutomation(w.Ctx, edit))(w)
	if !third.DecidedTo.After(first.DecidedTo) || third.SeriesFrom.Before(first.SeriesFrom) {
		w.T.Errorf("a new schedule goes on with the series of %s", first.SeriesFrom)
	}
	versions := resultOf(w.Store.AutomationVersions(w.Ctx, first.ID))(w)
	w.equal("versions", []any{len(versions), versions[0].Definition.Schedule.EveryMinutes, versions[2].Definition.Schedule.EveryMinutes},
		[]any{3, 5, 7})
	found := resultOf(w.Store.AutomationByHook(w.Ctx, first.ID, in.Hook))(w)
	w.equal("its webhook's", found.ID, first.ID)
	w.must(w.Store.ChangeAutomation(w.Ctx, store.AutomationChange{ID: first.ID, Removed: true, By: "eve"}))
	_, err = w.Store.AutomationByHook(w.Ctx, first.ID, in.Hook)
	w.refused(regie.CodeNotFound, err)
	_, err = w.Store.SaveAutomation(w.Ctx, in)
	w.refused(regie.CodeConflict, err)
	_, err = w.Store.Verify(w.Ctx, first.WorkspaceID)
	w.must(err)
}

// dueFire returns a fire of a schedule.
func dueFire(a *regie.Automation, at time.Time) regie.Fire {
	return regie.Fire{
		AutomationID: a.ID, Trigger: regie.TriggerScheduled, NominalAt: at, Outcome: regie.FireDue, Version: a.Version,
	}
}

// decidedOnce: a nominal time has one row, whoever decides; a decision about another version of the
// automation changes nothing.
func decidedOnce(w *World) {
	a := resultOf(w.Store.SaveAutomation(w.Ctx, NewAutomation(w)))(w)
	at := a.SeriesFrom.Add(time.Minute)
	in := []store.DecideFires{{Automation: &a, Fires: []regie.Fire{dueFire(&a, at)}, DecidedTo: at}}
	w.must(w.Store.DecideFires(w.Ctx, in))
	w.must(w.Store.DecideFires(w.Ctx, in)) // another engine, which read the same
	fires := resultOf(w.Store.Fires(w.Ctx, store.FireFilter{AutomationID: a.ID}))(w)
	w.equal("fires", []any{len(fires), fires[0].Outcome, fires[0].NominalAt}, []any{1, regie.FireDue, at})
	w.equal("decided", readAutomation(w, a.ID).DecidedTo, at)

	// one waits already, so the next time joins it
	now := readAutomation(w, a.ID).Automation
	next := at.Add(time.Minute)
	in = []store.DecideFires{{Automation: &now, Fires: []regie.Fire{dueFire(&now, next)}, DecidedTo: next}}
	w.must(w.Store.DecideFires(w.Ctx, in))
	fires = resultOf(w.Store.Fires(w.Ctx, store.FireFilter{AutomationID: a.ID}))(w)
	w.equal("two times", []any{fires[0].Outcome, fires[1].Outcome}, []any{regie.FireCoalesced, regie.FireDue})

	w.equal("runnable", len(resultOf(w.Store.RunnableAutomations(w.Ctx))(w)), 1)
	off := false
	w.must(w.Store.ChangeAutomation(w.Ctx, store.AutomationChange{ID: a.ID, Enabled: &off}))
	w.equal("due", len(resultOf(w.Store.DueFires(w.Ctx))(w)), 0)
	w.equal("runnable once disabled", len(resultOf(w.Store.RunnableAutomations(w.Ctx))(w)), 0)
	now = readAutomation(w, a.ID).Automation
	in = []store.DecideFires{{Automation: &now, Fires: []regie.Fire{dueFire(&now, next.Add(time.Minute))}, DecidedTo: next.Add(time.Minute)}}
	w.must(w.Store.DecideFires(w.Ctx, in)) // it was disabled meanwhile
	_, _, err := w.Store.AddFire(w.Ctx, store.AddFire{
		Fire: regie.Fire{AutomationID: a.ID, Trigger: regie.TriggerEvent, Outcome: regie.FireDue}, Key: "file",
	})
	w.refused(regie.CodeConflict, err)
	w.equal("fires of a disabled one", len(resultOf(w.Store.Fires(w.Ctx, store.FireFilter{AutomationID: a.ID}))(w)), 2)
}

// startOfFire returns a submission that carries a fire out.
func startOfFire(w *World, f *regie.Fire, ask slot.Ask) store.Submission {
	in := automationSubmission(w)
	in.Fire = &store.StartFire{Fire: *f, Ask: ask}
	return in
}

// firesRun: a fire has one session; the automation's next one waits for its end; three failures
// pause the automation.
func firesRun(w *World) {
	w.Store.SetChannels([]store.Channel{everyKind("phone")})
	var last regie.ID
	a := resultOf(w.Store.SaveAutomation(w.Ctx, NewAutomation(w)))(w)
	for n := range store.MaxFailures {
		fire, repeated, err := w.Store.AddFire(w.Ctx, store.AddFire{
			Fire: regie.Fire{AutomationID: a.ID, Trigger: regie.TriggerManual, Outcome: regie.FireDue}, Key: strconv.Itoa(n),
		})
		w.must(err)
		w.equal("added", []any{repeated, fire.Outcome}, []any{false, regie.FireDue})
		in := startOfFire(w, &fire, slot.AskManual)
		accepted := resultOf(w.Store.Submit(w.Ctx, in))(w)
		last = in.SessionID
		second := startOfFire(w, &fire, slot.AskManual)
		_, err = w.Store.Submit(w.Ctx, second)
		w.refused(regie.CodeConflict, err)
		if _, _, err := w.Store.Session(w.Ctx, second.SessionID); regie.CodeOf(err) != regie.CodeNotFound {
			w.T.Errorf("a second session of one fire: %v", err)
		}
		row := readAutomation(w, a.ID)
		w.equal("running", row.Running, []regie.ID{in.SessionID})
		w.equal("last", []any{row.LastFire.ID, row.LastFire.Outcome, row.LastFire.SessionID},
			[]any{fire.ID, regie.FireRan, in.SessionID})
		view := resultOf(w.Store.SessionView(w.Ctx, in.SessionID, w.User))(w)
		w.equal("execution", []any{view.Execution.Trigger, view.Execution.AutomationID}, []any{regie.TriggerManual, a.ID})
		answer := w.Answer(1)
		answer.Advance.End = &store.End{Reason: regie.EndProviderError, Close: regie.SessionError}
		w.must(w.AppendReply(accepted.Fence, answer))
		same, again, err := w.Store.AddFire(w.Ctx, store.AddFire{
			Fire: regie.Fire{AutomationID: a.ID, Trigger: regie.TriggerManual, Outcome: regie.FireDue}, Key: strconv.Itoa(n),
		})
		w.must(err)
		w.equal("the same request", []any{again, same.ID}, []any{true, fire.ID})
	}
	row := readAutomation(w, a.ID)
	w.equal("after three failures", []any{row.Paused, row.Failures, row.PauseReason.Format != ""}, []any{true, 3, true})
	if kinds := kindsOf(w, last); !slices.Contains(kinds, regie.NotifyPause) {
		w.T.Errorf("people hear of %v", kinds)
	}
	resumed := false
	w.must(w.Store.ChangeAutomation(w.Ctx, store.AutomationChange{ID: a.ID, Paused: &resumed, By: "eve"}))
	w.equal("resumed", readAutomation(w, a.ID).Failures, 0)
}

// firesWait: a scheduled run needs a free slot and is never queued, an event waits for the slot.
func firesWait(w *World) {
	w.Store.SetChannels([]store.Channel{everyKind("phone")})
	w.Store.SetSlots(slot.Capacity{Automation: 1})
	busy := automationSubmission(w)
	resultOf(w.Store.Submit(w.Ctx, busy))(w)
	a := resultOf(w.Store.SaveAutomation(w.Ctx, NewAutomation(w)))(w)
	at := a.SeriesFrom.Add(time.Minute)
	w.must(w.Store.DecideFires(w.Ctx, []store.DecideFires{{Automation: &a, Fires: []regie.Fire{dueFire(&a, at)}, DecidedTo: at}}))
	due := resultOf(w.Store.DueFires(w.Ctx))(w)
	w.equal("due", []any{len(due), due[0].WorkspaceID}, []any{1, a.WorkspaceID})
	in := startOfFire(w, &due[0].Fire, slot.AskScheduled)
	if _, err := w.Store.Submit(w.Ctx, in); err != store.ErrNoSlot { //nolint:errorlint // it is not wrapped
		w.T.Errorf("without a slot: %v", err)
	}
	w.equal("still due", len(resultOf(w.Store.DueFires(w.Ctx))(w)), 1)
	event := startOfFire(w, &due[0].Fire, slot.AskEvent)
	w.equal("an event's place", resultOf(w.Store.Submit(w.Ctx, event))(w).Position, 1)
	paused := true
	w.must(w.Store.ChangeAutomation(w.Ctx, store.AutomationChange{ID: a.ID, Paused: &paused, Reason: regie.Say("a while")}))
	fire, _, err := w.Store.AddFire(w.Ctx, store.AddFire{
		Fire: regie.Fire{AutomationID: a.ID, Trigger: regie.TriggerEvent, Outcome: regie.FireDue, Payload: []byte(`{"a":1}`)}, Key: "k",
	})
	w.must(err)
	if _, err := w.Store.Submit(w.Ctx, startOfFire(w, &fire, slot.AskEvent)); err != store.ErrNotNow { //nolint:errorlint // it is not wrapped
		w.T.Errorf("of a paused automation: %v", err)
	}
	joined, _, err := w.Store.AddFire(w.Ctx, store.AddFire{
		Fire: regie.Fire{AutomationID: a.ID, Trigger: regie.TriggerEvent, Outcome: regie.FireDue, Payload: []byte(`{"a":2}`)}, Key: "l",
	})
	w.must(err)
	w.equal("joined", joined.Outcome, regie.FireCoalesced)
	payloads, count, err := w.Store.JoinedPayloads(w.Ctx, fire.ID, 9)
	w.must(err)
	w.equal("payloads", []any{payloads, count}, []any{[]string{`{"a":2}`}, 1})
	w.must(w.Store.SettleFire(w.Ctx, store.SettleFire{ID: fire.ID, Outcome: regie.FireFailed, Reason: regie.Say("a while")}))
	w.equal("failures", readAutomation(w, a.ID).Failures, 1)
	w.equal("people hear of", kindsOf(w, a.SeedID), []regie.NotificationKind{regie.NotifyFailure})
}

// eventsJoined: an event is read by the one run that it was joined to, also if it comes as that run
// begins; a person's start does not wait for one that a pause holds.
func eventsJoined(w *World) {
	a := resultOf(w.Store.SaveAutomation(w.Ctx, NewAutomation(w)))(w)
	late := []regie.Fire{dueFire(&a, a.SeriesFrom.Add(time.Minute)), dueFire(&a, a.SeriesFrom.Add(2*time.Minute))}
	late[0].Late, late[1].Late = true, true
	w.must(w.Store.DecideFires(w.Ctx, []store.DecideFires{{Automation: &a, Fires: late, DecidedTo: late[1].NominalAt}}))
	due := resultOf(w.Store.DueFires(w.Ctx))(w)
	w.equal("due", len(due), 2)
	start := startOfFire(w, &due[0].Fire, slot.AskManual)
	add := func(trigger regie.Trigger) regie.Fire {
		fire, _, err := w.Store.AddFire(w.Ctx, store.AddFire{
			Fire: regie.Fire{AutomationID: a.ID, Trigger: trigger, Outcome: regie.FireDue, Payload: []byte(`{"pay":"once"}`)},
			Key:  regie.NewID().String(),
		})
		w.must(err)
		return fire
	}
	w.equal("the event", add(regie.TriggerEvent).Outcome, regie.FireCoalesced)
	if _, err := w.Store.Submit(w.Ctx, start); err != store.ErrEventJoined { //nolint:errorlint // it is not wrapped
		w.T.Errorf("a run without the event: %v", err)
	}
	for i, want := range []int{1, 0} {
		payloads, count, err := w.Store.JoinedPayloads(w.Ctx, due[i].ID, 9)
		w.must(err)
		w.equal("joined", []any{len(payloads), count}, []any{want, want})
	}
	paused := true
	w.must(w.Store.ChangeAutomation(w.Ctx, store.AutomationChange{ID: a.ID, Paused: &paused}))
	w.equal("by hand", add(regie.TriggerManual).Outcome, regie.FireDue)
	before := time.Now()
	paused = false
	w.must(w.Store.ChangeAutomation(w.Ctx, store.AutomationChange{ID: a.ID, Paused: &paused}))
	if at := readAutomation(w, a.ID).DecidedTo; at.Before(before.Truncate(time.Microsecond)) {
		w.T.Errorf("times of the pause are still to be decided, from %s", at)
	}
	start.Fire.Joined = 1
	resultOf(w.Store.Submit(w.Ctx, start))(w)
}

// clockSetBack: a new schedule may come to an instant that has its row already. It keeps the row,
// and the decisions about others are made.
func clockSetBack(w *World) {
	a := resultOf(w.Store.SaveAutomation(w.Ctx, NewAutomation(w)))(w)
	other := resultOf(w.Store.SaveAutomation(w.Ctx, NewAutomation(w)))(w)
	at := a.SeriesFrom.Add(time.Hour)
	decide := func(a *regie.Automation) store.DecideFires {
		return store.DecideFires{Automation: a, Fires: []regie.Fire{dueFire(a, at)}, DecidedTo: at}
	}
	w.must(w.Store.DecideFires(w.Ctx, []store.DecideFires{decide(&a)}))
	row := resultOf(w.Store.Fires(w.Ctx, store.FireFilter{AutomationID: a.ID}))(w)
	edit := store.SaveAutomation{Automation: a, After: 1, By: "eve"}
	edit.Automation.Definition.Schedule = &regie.Schedule{EveryMinutes: 1, Zone: "UTC"}
	edited := resultOf(w.Store.SaveAutomation(w.Ctx, edit))(w)
	w.must(w.Store.DecideFires(w.Ctx, []store.DecideFires{decide(&edited), decide(&other)}))
	w.equal("its row", resultOf(w.Store.Fires(w.Ctx, store.FireFilter{AutomationID: a.ID}))(w), row)
	w.equal("the other's", len(resultOf(w.Store.Fires(w.Ctx, store.FireFilter{AutomationID: other.ID}))(w)), 1)
}
