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

// stopRelay brings the words of other processes to the rounds that run here. Its fields are under
// the dispatcher's lock.
type stopRelay struct {
	d      *Dispatcher
	rounds map[regie.ID]struct{} // that run here and that another process may have said something about
	wake   chan struct{}         // holds one token at most
}

// checkSession has the round of a session that runs here looked at, or, for the zero ID, every
// round that does. It never blocks.
func (s *stopRelay) checkSession(session regie.ID) {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	if session.IsZero() {
		for round := range s.d.running {
			s.rounds[round] = struct{}{}
		}
	} else if round, runs := s.d.rounds[session]; runs {
		s.rounds[round] = struct{}{}
		s.d.running[round].again = true
	}
	if len(s.rounds) > 0 {
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}
}

// deliverStops hands stopping words that other processes stored to the rounds that run here, until
// the dispatcher closes: what is stored now is obeyed now, not at the round's next step (decision
// 6). Once in maxSleep it looks for deadlines that the queue did not tell of.
func (s *stopRelay) deliverStops() {
	defer s.d.wg.Done()
	sweep := time.NewTicker(maxSleep)
	defer sweep.Stop()
	for {
		select {
		case <-s.wake:
		case <-sweep.C:
			s.d.endOverdue(s.d.base)
			continue
		case <-s.d.closed:
			return
		}
		s.d.mu.Lock()
		rounds := slices.Collect(maps.Keys(s.rounds))
		clear(s.rounds)
		s.d.mu.Unlock()
		for _, id := range rounds {
			round, err := s.d.store.Round(s.d.base, id)
			switch {
			case err == nil && round.State == regie.RoundRunning && round.Stop != "":
				s.d.deliverStop(id, round.Stop)
			case regie.CodeOf(err) == regie.CodeNotFound: // reserved here, and not stored yet
			case err != nil && !errors.Is(err, context.Canceled):
				s.d.log.Warn("a run could not be looked at after another engine's word", "round", id.String(), "code",
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
