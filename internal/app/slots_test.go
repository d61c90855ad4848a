package app_test

import (
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
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

// startRun submits the harness's job.
func (b *harness) startRun(conn service, policy approval.Policy) dispatch.Run {
	b.t.Helper()
	return b.submit(conn, func(in *dispatch.RunRequest) { in.Policy = policy })
}

func (b *harness) submit(conn service, change func(*dispatch.RunRequest)) dispatch.Run {
	b.t.Helper()
	in := b.request(everything)
	if change != nil {
		change(&in)
	}
	run, err := conn.Submit(b.t.Context(), in)
	fatal(b.t, err)
	return run
}

// summary is a session as lists have it.
func (b *harness) summary(conn service, session regie.ID) store.SessionSummary {
	b.t.Helper()
	list, err := conn.Sessions(b.t.Context(), store.SessionFilter{ID: session})
	if err != nil || len(list) != 1 {
		b.t.Fatalf("%d sessions, %v", len(list), err)
	}
	return list[0]
}

var list = call{"l", "files__list_files", `{}`}

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
			replyWith("", list)(w, r)
		case <-r.Context().Done():
		}
	}), c.step(replyWith("done")))
	b := newHarness(t, m)
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
	chat := b.request(everything)
	chat.SessionID, chat.Type = runs[0].SessionID, regie.SessionChat
	if _, err := conn.Submit(t.Context(), chat); regie.CodeOf(err) != regie.CodeConflict {
		t.Errorf("a message of a chat to an automation: %v", err)
	}
	fatal(t, conn.Close())
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
