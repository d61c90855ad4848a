package app_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/dispatch"
)

// TestDrain: an engine that is left waits for a model call that another command's run has under
// way, so that it is not paid for twice; the run lets go at its next step, and goes on with whoever
// comes next, its follower none the wiser (decision 29).
func TestDrain(t *testing.T) {
	t.Parallel()
	asked, free := make(chan struct{}), make(chan struct{})
	var calls atomic.Int32
	m := newModel(t, func(w http.ResponseWriter, r *http.Request) {
		if calls.Add(1) > 1 {
			replyWith("The later one.")(w, r)
			return
		}
		close(asked)
		<-free
		replyWith("", write("a", "a.txt", "one\n"))(w, r)
	}, replyWith("Done."))
	b := newHarness(t, m)
	b.priced(b.settings.File.Budget)
	first := b.connect()
	other := b.connect()
	if !first.IsEngine() || other.IsEngine() {
		t.Fatal("the first command is not the engine")
	}
	run := b.startRun(other, everything)
	followed := make(chan error, 1)
	go func() {
		followed <- other.Events(t.Context(), run.SessionID, 0, func(item dispatch.Item) error {
			if item.Event != nil && item.Event.Type == regie.EventRound && strings.Contains(string(item.Event.Body), "ENDED") {
				return errSeen
			}
			return nil
		})
	}()
	<-asked
	drained, busy := make(chan struct{}), make(chan struct{})
	go func() {
		first.Drain(t.Context(), func() { close(busy) })
		close(drained)
	}()
	// What is asked meanwhile waits for the next engine.
	var next dispatch.Run
	third, later := b.connect(), make(chan error, 1)
	defer third.Close()
	go func() {
		<-busy
		var err error
		next, err = third.Submit(t.Context(), b.request(everything))
		later <- err
	}()
	select {
	case <-drained:
		t.Fatal("it did not wait for the model call")
	case <-busy:
	}
	close(free)
	<-drained
	fatal(t, first.Close())
	if err := <-followed; !errors.Is(err, errSeen) {
		t.Fatal(err)
	}
	fatal(t, <-later)
	b.await(third, next)
	view := b.await(other, run)
	if calls.Load() != 2 {
		t.Errorf("the model was asked %d times by two jobs", calls.Load())
	}
	if len(view.Exchanges) != 2 || len(view.Exchanges[0].Attempts) > 1 || !view.Spent.Known {
		t.Errorf("%d exchanges, attempts %+v, spent %+v", len(view.Exchanges), view.Exchanges[0].Attempts, view.Spent)
	}
}

// TestDrainLeaves: whoever does not want to wait leaves at once.
func TestDrainLeaves(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{})
	m := newModel(t, func(_ http.ResponseWriter, r *http.Request) {
		close(asked)
		<-r.Context().Done()
	})
	b := newHarness(t, m)
	first := b.connect()
	run := b.startRun(first, everything)
	<-asked
	ctx, cancel := context.WithCancel(t.Context())
	told := make(chan struct{})
	go func() {
		<-told
		cancel()
	}()
	first.Drain(ctx, func() { close(told) })
	fatal(t, first.Close())
	next, err := app.Connect(t.Context(), app.Options{Config: b.settings, ReadOnly: true})
	fatal(t, err)
	defer next.Close()
	view, err := next.Get(t.Context(), run.RoundID)
	if err != nil || view.Round.State != regie.RoundRunning {
		t.Errorf("%+v %v", view.Round, err)
	}
}
