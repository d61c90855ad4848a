package trigger_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/regie-run/regie/internal/automation/trigger"
)

// clock notes when it is called, and answers when to call it next.
type clock struct {
	mu     *sync.Mutex // guards calls
	began  time.Time
	calls  []string
	next   time.Duration // behind the call; 0: none
	broken bool
}

func (c *clock) answer(name string, now time.Time) (time.Time, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls = append(c.calls, name+" "+now.Sub(c.began).String())
	switch {
	case c.broken:
		return time.Time{}, errors.New("the disk is full")
	case c.next == 0:
		return time.Time{}, nil
	}
	return now.Add(c.next), nil
}

func (c *clock) Tick(_ context.Context, now time.Time) (time.Time, error) {
	return c.answer("tick", now)
}

func (c *clock) StartDue(_ context.Context, now time.Time) (time.Time, error) {
	return c.answer("start", now)
}

// seen returns the calls so far.
func (c *clock) seen() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.calls)
}

// TestScheduler calls at the instant that was named, at once after a change or an end of a run, and
// every five minutes in any case, also after an error.
func TestScheduler(t *testing.T) {
	for name, row := range map[string]struct {
		runner    clock
		schedules bool
		act       func(s *trigger.Scheduler)
		want      []string
	}{
		"named":     {clock{next: 90 * time.Second}, true, func(*trigger.Scheduler) {}, []string{"tick 0s", "tick 1m30s", "tick 3m0s"}},
		"no moment": {clock{}, true, func(*trigger.Scheduler) {}, []string{"tick 0s"}},
		"broken": {clock{broken: true}, true, func(*trigger.Scheduler) {}, []string{
			"tick 0s", "tick 30s", "tick 1m0s", "tick 1m30s", "tick 2m0s", "tick 2m30s", "tick 3m0s", "tick 3m30s", "tick 4m0s",
		}},
		"changed": {clock{}, true, (*trigger.Scheduler).Changed, []string{"tick 0s", "tick 1m0s"}},
		"freed":   {clock{}, true, (*trigger.Scheduler).Freed, []string{"tick 0s", "start 1m0s"}},
		"command": {clock{}, false, (*trigger.Scheduler).Changed, []string{"start 0s", "start 1m0s"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				runner := row.runner
				runner.began, runner.mu = time.Now(), new(sync.Mutex)
				s := trigger.NewScheduler()
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan struct{})
				go func() {
					defer close(done)
					s.Run(ctx, &runner, row.schedules, slog.New(slog.DiscardHandler))
				}()
				time.Sleep(time.Minute) // of the bubble
				row.act(s)
				time.Sleep(3 * time.Minute) // of the bubble
				synctest.Wait()
				if calls := runner.seen(); !slices.Equal(calls, row.want) {
					t.Errorf("called at %q, want %q", calls, row.want)
				}
				time.Sleep(5 * time.Minute) // of the bubble: the safety net
				synctest.Wait()
				if calls := runner.seen(); len(calls) <= len(row.want) {
					t.Errorf("no tick within five minutes: %q", calls)
				}
				cancel()
				<-done
			})
		})
	}
}
