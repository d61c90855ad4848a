package dispatch

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/engine"
)

// Commits of other processes on the database reach the hub (spec 11.1). Such a notification is only
// a hint: streams read the log, and a round reads its row. So a notification that comes twice, late
// or not at all does no harm; keepAdopting looks at everything once per lease.

// Foreign tells that another process made a session's log grow. It never blocks.
func (h *Hub) Foreign(session regie.ID) {
	h.Commit(session, nil)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.foreign != nil {
		h.foreign(session)
	}
}

// Missed tells that any log may have grown. It never blocks.
func (h *Hub) Missed() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, readers := range h.readers {
		for r := range readers {
			r.addEvents(nil) // it reads the log
		}
	}
	for w := range h.watchers {
		w.addNews([]regie.Event{{Type: regie.EventSession}})
	}
	if h.foreign != nil {
		h.foreign(regie.ID{})
	}
}

// checkSession has the round of a session that runs here looked at, or, for the zero ID, every
// round that does. It never blocks.
func (d *Dispatcher) checkSession(session regie.ID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if session.IsZero() {
		for round := range d.running {
			d.looks[round] = struct{}{}
		}
	} else if round, runs := d.rounds[session]; runs {
		d.looks[round] = struct{}{}
		d.running[round].again = true
	}
	if len(d.looks) > 0 {
		select {
		case d.look <- struct{}{}:
		default:
		}
	}
}

// deliverStops hands stopping words that other processes stored to the rounds that run here, until
// the dispatcher closes: what is stored now is obeyed now, not at the round's next step (decision
// 6). Once in maxSleep it looks for deadlines that the queue did not tell of.
func (d *Dispatcher) deliverStops() {
	defer d.wg.Done()
	sweep := time.NewTicker(maxSleep)
	defer sweep.Stop()
	for {
		select {
		case <-d.look:
		case <-sweep.C:
			d.endOverdue(d.base)
			continue
		case <-d.closed:
			return
		}
		d.mu.Lock()
		rounds := slices.Collect(maps.Keys(d.looks))
		clear(d.looks)
		d.mu.Unlock()
		for _, id := range rounds {
			round, err := d.store.Round(d.base, id)
			switch {
			case err == nil && round.State == regie.RoundRunning && round.Stop != "":
				d.deliverStop(id, round.Stop)
			case regie.CodeOf(err) == regie.CodeNotFound: // reserved here, and not stored yet
			case err != nil && !errors.Is(err, context.Canceled):
				d.log.Warn("a run could not be looked at after another engine's word", "round", id.String(), "code",
					string(regie.CodeOf(err)), "error", err)
			}
		}
	}
}

// deliverStop hands a stop request to the round's goroutine and reports whether there is one here.
func (d *Dispatcher) deliverStop(round regie.ID, word regie.StopRequest) bool {
	d.mu.Lock()
	defer d.mu.Unlock() // held while the word is handed over: a holding that ends now sees it
	h := d.running[round]
	if h == nil {
		return false
	}
	if word == regie.StopPause {
		h.soften(engine.Stopped{Word: word})
	} else {
		h.cancel(engine.Stopped{Word: word})
	}
	return true
}
