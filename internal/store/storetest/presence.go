package storetest

import (
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/slot"
	"github.com/regie-run/regie/internal/store"
)

// presence keeps heartbeats for a day, a row for each user and engine, and counts running and
// waiting sessions.
func presence(w *World) {
	now := time.Now().UTC().Truncate(time.Microsecond)
	at := func(place string, since, seen time.Duration) store.PresenceMark {
		return store.PresenceMark{UserID: w.User, Place: place, Since: now.Add(-since), Seen: now.Add(-seen)}
	}
	all := func(want ...store.PresenceMark) {
		w.T.Helper()
		got := resultOf(w.Store.Presences(w.Ctx, now.Add(-store.PresenceKept)))(w)
		w.equal("presence", got, want)
	}
	w.must(w.Store.Present(w.Ctx, []store.PresenceMark{
		at("a", 3*time.Hour, 2*time.Hour),
		at("b", 30*time.Hour, 25*time.Hour),
	}))
	all(at("a", 3*time.Hour, 2*time.Hour)) // marks older than a day are deleted
	w.must(w.Store.Present(w.Ctx, []store.PresenceMark{at("b", time.Minute, 0), at("a", time.Hour, time.Minute)}))
	all(at("b", time.Minute, 0), at("a", time.Hour, time.Minute))
	w.must(w.Store.Present(w.Ctx, []store.PresenceMark{at("b", time.Hour, time.Hour)})) // late
	all(at("b", time.Minute, 0), at("a", time.Hour, time.Minute))
	recent := resultOf(w.Store.Presences(w.Ctx, now.Add(-30*time.Second)))(w)
	w.equal("since then", recent, []store.PresenceMark{at("b", time.Minute, 0)})
	name := resultOf(w.Store.UserName(w.Ctx, w.User))(w)
	w.equal("the user has a name", name != "", true)
	name = resultOf(w.Store.UserName(w.Ctx, regie.NewID()))(w)
	w.equal("nobody's name", name, "")

	w.Store.SetSlots(one)
	counted := func() map[string]int {
		w.T.Helper()
		counts := resultOf(w.Store.SlotCounts(w.Ctx))(w)
		out := map[string]int{}
		for _, c := range counts {
			if age := time.Since(c.Since); age < 0 || age > time.Hour {
				w.T.Errorf("%s %s since %s", c.Kind, c.State, c.Since)
			}
			out[string(c.Kind)+" "+string(c.State)] = c.Sessions
		}
		return out
	}
	w.equal("nobody", counted(), map[string]int{})
	over := resultOf(w.Store.RequestControl(w.Ctx,
		store.Control{SessionID: newIdleSession(w), For: -time.Second, Ask: slot.AskChat}))(w)
	w.equal("reserved", over.State, store.ControlActivated)
	w.equal("a reservation that has ended", counted(), map[string]int{})
	first, _ := w.submitted()
	second, _ := w.submitted()
	third, _ := w.submitted()
	w.equal("one runs", counted(), map[string]int{"chat " + string(slot.Held): 1, "chat " + string(slot.Queued): 2})
	w.queue(regie.ID{}, nil, []store.Fence{first})
	w.must(w.Store.TellPlaces(w.Ctx, []regie.ID{third.SessionID, first.SessionID})) // one is up to date, one is not queued
	w.equal("states", readStates(w, third.SessionID), []string{"QUEUED at 1"})
	resultOf(w.Store.RequestStop(w.Ctx, third.RoundID, regie.StopPause))(w)
	w.queue(regie.ID{}, nil, nil)
	w.equal("who moves up is told", readStates(w, second.SessionID), []string{"QUEUED at 1", "QUEUED at 2", "QUEUED at 1"})
	w.equal("one waits", counted(), map[string]int{"chat " + string(slot.Held): 1, "chat " + string(slot.Queued): 1})
	w.must(w.Store.SetAside(w.Ctx, store.SetAside{RoundID: second.RoundID}))
	view := resultOf(w.Store.Queues(w.Ctx, regie.ID{}))(w)
	w.equal("nobody is to be told anything", view.Moved, []regie.ID(nil))
}
