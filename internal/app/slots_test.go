package app_test

import (
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/store/storetest"
)

// counted counts the model calls that are under way at once.
type counted struct{ now, most atomic.Int64 }

func (c *counted) step(step http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		now := c.now.Add(1)
		for before := c.most.Load(); now > before && !c.most.CompareAndSwap(before, now); before = c.most.Load() {
		}
		defer c.now.Add(-1)
		step(w, r)
	}
}

func (b *bed) submit(conn chat.Control, change func(*dispatch.RunRequest)) dispatch.Run {
	b.t.Helper()
	in := b.request(everything)
	if change != nil {
		change(&in)
	}
	run, err := conn.Submit(b.t.Context(), in)
	if err != nil {
		b.t.Fatal(err)
	}
	return run
}

// summary is a session as lists have it.
func (b *bed) summary(conn chat.Control, session regie.ID) store.SessionSummary {
	b.t.Helper()
	list, err := conn.Sessions(b.t.Context(), store.SessionFilter{ID: session})
	if err != nil || len(list) != 1 {
		b.t.Fatalf("%d sessions, %v", len(list), err)
	}
	return list[0]
}

var list = call{"l", "files__list_files", `{}`}

// TestSwitch asks for a second chat where there is one slot: the first one finishes its step and is
// queued, and goes on by itself (spec 5.1).
func TestSwitch(t *testing.T) {
	t.Parallel()
	asked, release := make(chan struct{}), make(chan struct{})
	var c counted
	m := newModel(t, c.step(once(func(w http.ResponseWriter, r *http.Request) {
		close(asked)
		<-release
		says("", list)(w, r)
	}, says("", list))), c.step(says("done")))
	b := newBed(t, m)
	b.settings.File.Slots = config.Slots{Exclusive: true}
	conn := b.connect()
	defer conn.Close()
	first := b.submit(conn, nil)
	<-asked
	second := b.submit(conn, nil)
	if first.Position != 0 || second.Position != 1 {
		t.Errorf("the places are %d and %d", first.Position, second.Position)
	}
	b.state(conn, second.SessionID, regie.SessionQueued)
	if line := b.summary(conn, second.SessionID); line.QueuePosition != 1 {
		t.Errorf("the list says place %d", line.QueuePosition)
	}
	close(release)
	ended := b.await(conn, second)
	expect(t, ended, regie.EndAnswered, "SUCCEEDED")
	expect(t, b.await(conn, first), regie.EndAnswered, "SUCCEEDED")
	if most := c.most.Load(); most != 1 {
		t.Errorf("%d rounds ran in one slot", most)
	}
	view, err := conn.Get(t.Context(), first.RoundID)
	if err != nil || view.Round.Counters.Resumes != 0 || len(view.Exchanges) != 2 || len(view.Exchanges[1].Attempts) != 0 {
		t.Errorf("the round that was suspended: %+v, %v", view.Exchanges, err)
	}
	if before := view.Exchanges[1].RepliedAt; before.Before(ended.Round.EndedAt) && !ended.Round.EndedAt.IsZero() && before.Before(ended.Round.StartedAt) {
		t.Errorf("the first round went on at %s, before the second one, which started at %s", before, ended.Round.StartedAt)
	}
}

// TestAutomationFinishes has a chat wait for an automation that shares its slot (decision 43), and
// automations behind it.
func TestAutomationFinishes(t *testing.T) {
	t.Parallel()
	asked, release := make(chan struct{}), make(chan struct{})
	m := newModel(t, once(func(w http.ResponseWriter, r *http.Request) {
		close(asked)
		<-release
		says("", list)(w, r)
	}, says("", list)), func(w http.ResponseWriter, r *http.Request) {
		says("", call{"c", "session__complete", `{"summary":"done"}`})(w, r)
	})
	b := newBed(t, m)
	b.settings.File.Slots = config.Slots{Exclusive: true}
	conn := b.connect()
	defer conn.Close()
	unattended := func(in *dispatch.RunRequest) { in.Type = regie.SessionAutomation }
	first := b.submit(conn, unattended)
	<-asked
	second := b.submit(conn, unattended)
	got, err := conn.RequestControl(t.Context(), second.SessionID)
	if err != nil || got.State != store.ControlQueued || got.Position != 1 {
		t.Errorf("control of a queued automation: %+v, %v", got, err)
	}
	interrupted := b.submit(conn, nil)
	if err := conn.Interrupt(t.Context(), interrupted.RoundID); err != nil {
		t.Fatal(err)
	}
	expect(t, b.await(conn, interrupted), regie.EndInterrupted)
	if second.Position != 1 || interrupted.Position != 1 {
		t.Errorf("the places are %d and %d", second.Position, interrupted.Position)
	}
	close(release)
	one, two := b.await(conn, first), b.await(conn, second)
	if two.Exchanges[0].RepliedAt.Before(one.Round.EndedAt) {
		t.Errorf("the second was answered at %v, before the first ended at %v", two.Exchanges[0].RepliedAt, one.Round.EndedAt)
	}
}

// TestQueueSurvives ends the engine with a queue: the next one starts what waits, in order, in no
// more slots than there are.
func TestQueueSurvives(t *testing.T) {
	t.Parallel()
	var c counted
	asked, release := make(chan struct{}, 20), make(chan struct{})
	m := newModel(t, c.step(func(w http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		select {
		case <-release:
			says("", list)(w, r)
		case <-r.Context().Done():
		}
	}), c.step(says("done")))
	b := newBed(t, m)
	b.settings.File.Slots = config.Slots{Automation: 2}
	conn := b.connect()
	var runs []dispatch.Run
	for i := range 6 {
		runs = append(runs, b.submit(conn, func(in *dispatch.RunRequest) { in.Type = regie.SessionAutomation; in.Limits.Total = 2 }))
		if want := max(0, i-1); runs[i].Position != want {
			t.Errorf("run %d is at place %d", i, runs[i].Position)
		}
	}
	<-asked
	<-asked
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	conn = b.connect()
	defer conn.Close()
	for i, run := range runs[2:] {
		if line := b.summary(conn, run.SessionID); line.State != regie.SessionQueued || line.QueuePosition != i+1 {
			t.Errorf("after the restart run %d is %s at place %d", i+2, line.State, line.QueuePosition)
		}
	}
	close(release)
	var ends []time.Time
	for _, run := range runs {
		ends = append(ends, b.await(conn, run).Round.EndedAt)
	}
	if most := c.most.Load(); most > 2 {
		t.Errorf("%d model calls at once in two slots", most)
	}
	if !ends[5].After(ends[0]) || !ends[4].After(ends[1]) {
		t.Errorf("they ended at %v", ends)
	}
}

// TestControl asks for control over Control (decision 43): a slot that is reserved is given to
// nobody else, until it is given back.
func TestControl(t *testing.T) {
	t.Parallel()
	b := newBed(t, newModel(t, says("one"), says("two")))
	b.settings.File.Slots = config.Slots{Exclusive: true}
	engine := b.connect()
	defer engine.Close()
	conn := b.connect()
	defer conn.Close()
	first := b.submit(conn, nil)
	b.await(conn, first)
	got, err := conn.RequestControl(t.Context(), first.SessionID)
	if err != nil || got.State != store.ControlActivated || time.Until(got.Until) > 30*time.Second || time.Until(got.Until) < 20*time.Second {
		t.Fatalf("%+v, %v", got, err)
	}
	second := b.submit(conn, nil)
	if second.Position != 1 {
		t.Errorf("the place behind a reservation is %d", second.Position)
	}
	if err := conn.ReleaseControl(t.Context(), first.SessionID); err != nil {
		t.Fatal(err)
	}
	expect(t, b.await(conn, second), regie.EndAnswered)
	if _, err := conn.RequestControl(t.Context(), regie.NewID()); regie.CodeOf(err) != regie.CodeNotFound {
		t.Errorf("control of no session: %v", err)
	}
}

// TestSlotsOfTwoEngines runs many sessions on two engines with one database: never more at once
// than there are slots, and all of them.
func TestSlotsOfTwoEngines(t *testing.T) {
	t.Parallel()
	var c counted
	m := newModel(t, c.step(says("", list)), c.step(says("done")))
	b := newBed(t, m)
	b.settings.Database = storetest.Postgres(t)
	b.settings.File.Slots = config.Slots{Chat: 2}
	one := b.connect()
	other := *b
	other.settings.DataDir = b.elsewhere()
	two := other.connect()
	defer one.Close()
	defer two.Close()
	var group sync.WaitGroup
	for i := range 12 {
		group.Go(func() {
			conn := one
			if i%2 == 1 {
				conn = two
			}
			view := b.await(conn, b.submit(conn, func(in *dispatch.RunRequest) { in.Text = strings.Repeat("x", i+1) }))
			if view.Round.End != regie.EndAnswered {
				t.Errorf("run %d ended %s: %s", i, view.Round.End, view.Round.EndNote)
			}
		})
	}
	group.Wait()
	if most := c.most.Load(); most > 2 {
		t.Errorf("%d model calls at once in two slots", most)
	}
}
