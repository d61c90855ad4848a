package trigger

import (
	"context"
	"log/slog"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/automation"
)

const (
	// tickEvery is the safety net: what no timer and no change announced is found then (spec 5.2).
	tickEvery = 5 * time.Minute
	// retryAfter is the pause after a look that failed, by a database that is away for instance.
	retryAfter = 30 * time.Second
)

// Runner decides and starts what is due. Both methods return when they have to be called again at
// the latest; zero: no such moment is known.
type Runner interface {
	Tick(ctx context.Context, now time.Time) (next time.Time, err error)
	StartDue(ctx context.Context, now time.Time) (next time.Time, err error)
}

// Scheduler calls a Runner at the instants of schedules, after changes, and when a slot may be
// free. Its goroutine is Run.
type Scheduler struct {
	changed, freed chan struct{} // hold one token at most
}

// NewScheduler returns a scheduler. Calls before Run are kept for it.
func NewScheduler() *Scheduler {
	return &Scheduler{changed: make(chan struct{}, 1), freed: make(chan struct{}, 1)}
}

// Changed says that an automation has changed, or an event has come. It never blocks.
func (s *Scheduler) Changed() { put(s.changed) }

// Freed says that a run has ended, so that a due one may start. It never blocks.
func (s *Scheduler) Freed() { put(s.freed) }

func put(token chan<- struct{}) {
	select {
	case token <- struct{}{}:
	default:
	}
}

// Run calls the runner until ctx ends. Without schedules it starts due fires and decides none: a
// command that becomes the engine for a while leaves schedules to the server.
func (s *Scheduler) Run(ctx context.Context, runner Runner, schedules bool, log *slog.Logger) {
	look := runner.StartDue
	if schedules {
		look = runner.Tick
	}
	tick, start := look, runner.StartDue
	next := time.Time{}
	for {
		at, err := look(ctx, time.Now())
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			log.Error("due automations could not be started", "code", string(regie.CodeOf(err)), "error", err)
			next = time.Now().Add(retryAfter)
		default:
			next = automation.Earlier(next, at)
		}
		timer := time.NewTimer(min(tickEvery, max(0, time.Until(orTick(next)))))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
			look, next = tick, time.Time{}
		case <-s.changed:
			look, next = tick, time.Time{}
		case <-s.freed:
			look = start
		}
		timer.Stop()
	}
}

func orTick(at time.Time) time.Time {
	if at.IsZero() {
		return time.Now().Add(tickEvery)
	}
	return at
}
