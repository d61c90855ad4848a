package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/access"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/slot"
	"github.com/regie-run/regie/internal/store"
)

// queue is several sessions of all kinds in one workspace with few slots, and what is asserted of
// them: after each commit, and where nothing moves.
type queue struct {
	*session
	slots    slot.Capacity
	sessions []regie.ID
	rounds   []regie.ID

	mu      sync.Mutex
	before  []slot.Entry // as the last commit left them
	started int
}

// entries are the slots as they are stored.
func (q *queue) entries() (out []slot.Entry) {
	rows, err := q.db.QueryContext(context.Background(), "SELECT session, kind, state, rank, place, coalesce(until, 0) FROM slots")
	if err != nil {
		q.violate("the slots cannot be read: %v", err)
		return nil
	}
	defer rows.Close()
	for rows.Next() {
		var e slot.Entry
		var kind, state string
		var until int64
		if err := rows.Scan(&e.Session, &kind, &state, &e.Rank, &e.Place, &until); err != nil {
			q.violate("the slots cannot be read: %v", err)
		}
		e.Kind, e.State, e.Until = slot.Kind(kind), slot.State(state), time.UnixMicro(until)
		out = append(out, e)
	}
	if err := rows.Err(); err != nil {
		q.violate("the slots cannot be read: %v", err)
	}
	return out
}

func (q *queue) same(a, b slot.Kind) bool {
	return a == b || q.slots.Exclusive && a != slot.API && b != slot.API
}

// committed looks at the slots after each commit: never more than there are, one chat in its place,
// and who starts was the first of its queue.
func (q *queue) committed() {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.entries()
	for _, kind := range []slot.Kind{slot.Chat, slot.Automation, slot.API} {
		held, placed := 0, 0
		for _, e := range now {
			switch {
			case !q.same(e.Kind, kind):
			case e.State == slot.Held:
				held++
			case e.State == slot.Queued && e.Rank == slot.RankPlaced:
				placed++
			}
		}
		if held > q.slots.Of(kind) || placed > 1 {
			q.violate("%d %s rounds run in %d slots, %d chats have the one place (spec 5.1)", held, kind, q.slots.Of(kind), placed)
		}
	}
	find := func(all []slot.Entry, session int64, state slot.State) *slot.Entry {
		for i := range all {
			if all[i].Session == session && all[i].State == state {
				return &all[i]
			}
		}
		return nil
	}
	for _, e := range now {
		was := find(q.before, e.Session, slot.Queued)
		if e.State != slot.Held || was == nil {
			continue
		}
		q.started++
		for _, other := range q.before {
			if other.State == slot.Queued && q.same(other.Kind, e.Kind) && find(now, other.Session, slot.Queued) != nil &&
				(other.Rank < was.Rank || other.Rank == was.Rank && other.Place < was.Place) {
				q.violate("a %s of rank %d at %d started before a %s of rank %d at %d (spec 5.1)", was.Kind, was.Rank, was.Place, other.Kind, other.Rank, other.Place)
			}
		}
	}
	q.before = now
}

// rests asserts, where nothing moves, that nobody waits who could run.
func (q *queue) rests() {
	synctest.Wait()
	if next := slot.Look(q.slots, q.entries(), time.Now()); len(next.Start) > 0 {
		q.violate("%d queued rounds could run, and nobody starts them", len(next.Start))
	}
}

// acts says and does things in sessions old and new.
func (q *queue) acts(dice *rand.Rand) {
	ctx := context.Background()
	for range 14 + dice.IntN(12) {
		time.Sleep(time.Duration(dice.Int64N(int64(2*time.Second))) + 1_000_003)
		q.rests()
		if n := len(q.sessions); n > 0 && dice.IntN(5) < 2 {
			i := dice.IntN(n)
			switch dice.IntN(7) {
			case 0:
				_ = q.engine.Service().Rounds.Interrupt(access.AsOwner(ctx), q.rounds[i]) // it may have ended
			case 1:
				_ = q.engine.Service().Rounds.Pause(access.AsOwner(ctx), q.rounds[i])
			case 2:
				_ = q.engine.Service().Rounds.Resume(access.AsOwner(ctx), q.rounds[i])
			case 3:
				_ = q.engine.Service().Sessions.ReleaseControl(access.AsOwner(ctx), q.sessions[i])
			default:
				_, _ = q.engine.Service().Sessions.RequestControl(access.AsOwner(ctx), dispatch.ControlRequest{SessionID: q.sessions[i]}) // of a closed automation it is refused
			}
			continue
		}
		in := q.request(fmt.Sprintf("do %d", dice.Uint64()))
		switch dice.IntN(4) {
		case 0:
			in.Type = regie.SessionAutomation
		case 1:
			in.Origin = regie.OriginAPISession
		case 2:
			if n := len(q.sessions); n > 0 {
				in.SessionID, in.WhenBusy = q.sessions[dice.IntN(n)], store.Queue
			}
		}
		run, err := q.engine.Service().Rounds.Submit(access.AsOwner(ctx), in)
		if err != nil {
			if regie.CodeOf(err) != regie.CodeConflict { // an automation that has ended takes nothing
				q.violate("a message was refused: %v", err)
			}
			continue
		}
		q.sessions, q.rounds = append(q.sessions, run.SessionID), append(q.rounds, run.RoundID)
	}
}

func (q *queue) request(text string) dispatch.RunRequest {
	return dispatch.RunRequest{
		ClientID: regie.NewID().String(), Root: filepath.Join(q.dir, "work"), FoundBy: "directory", SessionID: regie.NewID(), Agent: "main", Provider: "sim", Model: "m",
		Text: text, Policy: q.plan.Policy,
	}
}

// ends asserts that each round ends: nobody is in the queue for ever.
func (q *queue) ends() {
	ctx := context.Background()
	for _, round := range q.rounds {
		_ = q.engine.Service().Rounds.Resume(access.AsOwner(ctx), round)
	}
	time.Sleep(3 * time.Hour)
	for range 5 { // what waited for a paused one, and was paused itself
		for _, round := range q.rounds {
			_ = q.engine.Service().Rounds.Resume(access.AsOwner(ctx), round)
		}
		time.Sleep(time.Hour)
	}
	q.rests()
	for _, round := range q.rounds {
		if r, err := q.engine.Round(ctx, round); err != nil && regie.CodeOf(err) != regie.CodeNotFound || err == nil && r.State != regie.RoundEnded {
			q.violate("a round is %s at the end, stop %q: %v", r.State, r.Stop, err)
		}
	}
	for _, e := range q.entries() {
		if e.State != slot.Reserved {
			q.violate("session %d has a slot %s %s at the end", e.Session, e.Kind, e.State)
		}
	}
}

// simulateQueue simulates the sessions of a seed.
func simulateQueue(t *testing.T, seed uint64) *queue {
	t.Helper()
	dir := furnished(t)
	defer os.RemoveAll(dir)
	m := &maker{Rand: rand.New(rand.NewPCG(seed, 0x9e0e)), plan: plan{Seed: seed, Tools: map[string][]behaviour{}}}
	m.plan.Policy = approval.Policy{Allow: []string{"*.*"}, OnApproval: approval.DenyAndGoOn}
	for range 40 {
		r := m.honest()
		r.Pause = m.moment(400 * time.Millisecond)
		m.plan.Replies = append(m.plan.Replies, r, reply{Parts: []part{{Text: "Done."}}, Pause: m.moment(time.Second)})
	}
	q := &queue{slots: pick(m, slot.Capacity{Chat: 1, Automation: 1, API: 1}, slot.Capacity{Exclusive: true, API: 2}, slot.Capacity{Chat: 2, Automation: 1, API: 2})}
	synctest.Test(t, func(t *testing.T) {
		q.session = &session{world: newWorld(m.plan), t: t, dir: dir}
		q.live(t, m.Rand)
	})
	return q
}

func (q *queue) live(t *testing.T, dice *rand.Rand) {
	t.Helper()
	db, err := q.lookIn()
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	q.db, q.log, q.person = db, &alarm{world: q.world}, newPerson()
	q.session.slots, q.session.committed = config.Slots{Exclusive: q.slots.Exclusive, Chat: q.slots.Chat, Automation: q.slots.Automation, API: q.slots.API}, q.committed
	q.open()
	q.acts(dice)
	q.ends()
	q.life.end()
	q.shut()
	q.checkGoroutines()
}

// TestQueue simulates several sessions of all kinds that share few slots (spec 5.1).
func TestQueue(t *testing.T) {
	started, first := 0, firstSeed(t)
	for seed := first; seed < first+uint64(max(quick/10, *seeds/20)); seed++ {
		q := simulateQueue(t, seed)
		slices.Sort(q.violations)
		for _, v := range slices.Compact(q.violations) {
			t.Errorf("seed %d: %s", seed, v)
		}
		started += q.started
	}
	if started < quick/3 {
		t.Errorf("only %d rounds waited for their slot", started)
	}
	t.Logf("%d rounds waited for their slot", started)
}
