//go:build faults && linux

package crash

import (
	"context"
	"flag"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/fault"
	"github.com/regie-run/regie/internal/store/sqlite"
)

var (
	nodeTime = flag.Duration("node-time", 20*time.Second, "how long each number of engines is harassed")
	people   = flag.Int("people", 12, "how many sessions run side by side on several engines")
)

// apartKinds are the scenarios that several engines cannot have here: deadlines, and one slot for
// all, are an engine's settings.
var apartKinds = []string{"late", "queued"}

// TestNodes has two engines on one database, then three, killed, stopped and woken at moments of
// chance, with clients that ask any of them.
func TestNodes(t *testing.T) {
	for _, n := range []int{2, 3} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			h := newHarness(t, "")
			h.pin(n)
			f := h.nodes(t.Context(), n, *nodeTime)
			for _, v := range h.violations() {
				t.Error(v)
			}
			t.Logf("%d engines, %d sessions, %d effects, %d people at once, seed %d", n, h.runs, len(h.world.effects), *people, h.first)
			t.Logf("%d killed, %d stopped, %d cut off; %d stale writes refused, %d effects of engines that had been stopped on the way; %d times the server had no connection left",
				f.kills, f.stops, f.cuts, f.refused, f.overtaken, f.full)
			t.Logf("taken over elsewhere: %s", quantiles(f.takeovers))
			t.Logf("taken up by the next process of the same place: %s", quantiles(f.successors))
			t.Logf("killed at: %v", h.at)
			t.Logf("seen: %v", h.seen)
		})
	}
}

// TestNodeBugs expects each bug that shows only among several engines to be caught.
func TestNodeBugs(t *testing.T) {
	for _, bug := range fault.SharedBugs() {
		t.Run(bug, func(t *testing.T) {
			h := newHarness(t, bug)
			started := time.Now()
			f := h.nodes(t.Context(), 2, 6*time.Minute)
			if len(h.violations()) == 0 {
				t.Errorf("the bug %s was not caught in %s, with %d engines killed and %d stopped", bug, time.Since(started), f.kills, f.stops)
			} else {
				t.Logf("caught after %.1f s, %d kills and %d stops: %s", time.Since(started).Seconds(), f.kills, f.stops, h.violations()[0])
			}
		})
	}
}

// nodes runs sessions on n engines for as long as it is told, and checks what is left of each.
func (h *harness) nodes(ctx context.Context, n int, length time.Duration) *fleet {
	*onPostgres = true
	h.newStore()
	f := newFleet(h, n)
	h.fleet = f
	var err error
	if f.reader, err = h.reader(); err != nil {
		h.t.Fatal(err)
	}
	defer f.reader.Close()
	own, err := h.open(ctx)
	if err != nil {
		h.t.Fatal(err)
	}
	defer own.Close()
	// so that most of the time each engine holds something
	h.world.late, h.world.latency = f.isLate, 400*time.Millisecond
	if h.bug != "" {
		h.world.latency = 3 * time.Second // and is stopped while its model is asked
	}
	watching, stop := context.WithCancel(ctx)
	var engines, looking, working sync.WaitGroup
	for _, m := range f.members {
		engines.Go(func() { f.live(m) })
	}
	looking.Go(func() { f.watch(watching) })
	until := time.Now().Add(length)
	next := &seeds{h: h, until: until}
	var mu sync.Mutex
	ended := map[regie.ID]int64{} // how far the log of each session reached
	for range *people {
		working.Go(func() {
			for p, ok := next.take(); ok; p, ok = next.take() {
				id, head := h.person(ctx, own, p)
				mu.Lock()
				ended[id] = head
				mu.Unlock()
			}
		})
	}
	f.harass(until)
	working.Wait()
	stop()
	looking.Wait()
	f.mu.Lock()
	f.ending = true
	f.mu.Unlock()
	engines.Wait()
	h.unchanged(ctx, own, ended)
	return f
}

// seeds are the plans of a run, one after the other.
type seeds struct {
	h     *harness
	until time.Time
	mu    sync.Mutex
}

func (s *seeds) take() (p plan, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p = s.h.nextPlan(apartKinds...)
	ok = time.Now().Before(s.until) && len(s.h.violations()) == 0
	if ok {
		s.h.runs++
	}
	return p, ok
}

// person lives a plan, by way of any engine, and checks what is left of it. It returns how far the
// log reaches.
func (h *harness) person(ctx context.Context, own *sqlite.Store, p plan) (session regie.ID, head int64) {
	session = regie.NewID()
	if err := os.MkdirAll(h.work(p.seed), 0o755); err != nil {
		h.fail(p, "%v", err)
		return session, 0
	}
	h.furnish(p.seed)
	told, err := openJournal(h.journal(p))
	if err != nil {
		h.fail(p, "%v", err)
		return session, 0
	}
	defer told.file.Close()
	clients := &anywhere{}
	for _, m := range h.fleet.members {
		clients.clients = append(clients.clients, m.client)
	}
	settings, err := config.Load(h.settings, config.Flags{})
	if err != nil {
		h.fail(p, "%v", err)
		return session, 0
	}
	settings.Provider, settings.Model = "openai", "scripted"
	var mu sync.Mutex
	acked := int64(0)
	one := newPerson(clients, clients, p, session, h.work(p.seed), settings, told)
	one.patience, one.many = 3*time.Minute, true
	one.heard = func(seq int64) {
		mu.Lock()
		defer mu.Unlock()
		acked = max(acked, seq)
	}
	if err := one.live(ctx); err != nil {
		h.fail(p, "%v", err)
		return session, 0
	}
	mu.Lock()
	defer mu.Unlock()
	h.checkIn(own, session, p, acked)
	report, err := own.Verify(ctx, session)
	if err != nil {
		h.fail(p, "%v", err)
	}
	return session, report.Events
}

// unchanged asserts that nobody wrote to a session any more once it had ended.
func (h *harness) unchanged(ctx context.Context, own *sqlite.Store, ended map[regie.ID]int64) {
	for id, head := range ended {
		if head == 0 {
			continue
		}
		if report, err := own.Verify(ctx, id); err != nil || report.Events != head {
			h.world.violate("the log of session %s went from %d to %d after its end: %v", id, head, report.Events, err)
		}
	}
}
