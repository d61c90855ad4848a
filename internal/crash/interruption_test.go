//go:build faults && linux

package crash

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// resumeWithin is how long a round may stand still that has lost its holder, while one engine runs
// all the time.
const resumeWithin = 10 * time.Second

// interruption is a round whose holder was killed or stopped while it ran.
type interruption struct {
	pid, epoch   int
	from         *member
	at           time.Time
	stopped      bool // not killed
	claimed      bool
	holder       string // who claimed it
	head, before int64  // of the log: when its new holder was first seen, and when the former one was lost
}

// interrupted notes which rounds a process held when it was lost. It is called with mu held.
func (f *fleet) interrupted(pid int, from *member, at time.Time, stopped bool) {
	rows, err := f.db.QueryContext(context.Background(), `SELECT r.id::text, s.epoch, c.head FROM rounds r JOIN sessions s ON s.n = r.session JOIN chains c ON c.n = s.n
		WHERE r.state = 'RUNNING' AND r.stop_request IS NULL AND s.paused_at IS NULL AND s.lease_holder LIKE $1`, fmt.Sprintf("%% pid %d %%", pid))
	if err != nil {
		f.h.world.violate("the rounds of a lost engine cannot be read: %v", err)
		return
	}
	defer rows.Close()
	for rows.Next() {
		i := &interruption{pid: pid, from: from, at: at, stopped: stopped}
		var id string
		if err := rows.Scan(&id, &i.epoch, &i.before); err != nil {
			f.h.world.violate("the rounds of a lost engine cannot be read: %v", err)
			return
		}
		if known := f.awaited[id]; known != nil && known.pid == pid { // stopped first, then killed
			continue
		}
		f.awaited[id] = i
	}
	if err := rows.Err(); err != nil {
		f.h.world.violate("the rounds of a lost engine cannot be read: %v", err)
	}
}

// watch measures how long what was interrupted stands still, until ctx ends.
func (f *fleet) watch(ctx context.Context) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			f.look(ctx)
		}
	}
}

func (f *fleet) look(ctx context.Context) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.awaited) == 0 {
		return
	}
	var ids []string
	for id := range f.awaited {
		ids = append(ids, id)
	}
	rows, err := f.db.QueryContext(ctx, `SELECT r.id::text, r.state, s.epoch, c.head, coalesce(s.lease_holder, ''), s.paused_at IS NOT NULL FROM rounds r
		JOIN sessions s ON s.n = r.session JOIN chains c ON c.n = s.n WHERE r.id = ANY($1::uuid[])`, ids)
	if err != nil {
		return
	}
	defer rows.Close()
	now := time.Now()
	for rows.Next() {
		var id, state, holder string
		var epoch int
		var head int64
		var paused bool
		if rows.Scan(&id, &state, &epoch, &head, &holder, &paused) != nil {
			return
		}
		f.moved(id, f.awaited[id], now, state, epoch, head, holder, paused)
	}
	if err := rows.Err(); err != nil && ctx.Err() == nil {
		f.h.world.violate("how interrupted rounds stand cannot be read: %v", err)
	}
}

// moved takes in how a round stands that was interrupted.
func (f *fleet) moved(id string, i *interruption, now time.Time, state string, epoch int, head int64, holder string, paused bool) {
	running := state == "RUNNING"
	if epoch > i.epoch && !i.claimed {
		i.claimed, i.head, i.holder = true, head, holder
		if head > i.before && running {
			i.head-- // its first step, or somebody's word, was faster than this look
		}
	}
	since := i.at
	if f.none.After(since) {
		since = f.none
	}
	took := now.Sub(since)
	switch {
	case paused, !running && !i.claimed: // it needs no engine
		delete(f.awaited, id)
	case i.claimed && (head > i.head || !running):
		delete(f.awaited, id)
		if strings.Contains(i.holder, ":"+i.from.dir+"/") {
			f.successors = append(f.successors, took)
		} else {
			f.takeovers = append(f.takeovers, took)
		}
	case took > resumeWithin && f.idler(resumeWithin) != nil:
		delete(f.awaited, id)
		f.h.world.violate("round %s stood still for %s after engine %s was lost (stopped: %v), while engine %s ran all the time; claimed: %v", id, took, i.from.name, i.stopped,
			f.idler(resumeWithin).name, i.claimed)
	}
}

func quantiles(of []time.Duration) string {
	if len(of) == 0 {
		return "none"
	}
	slices.Sort(of)
	return fmt.Sprintf("%d, p50 %.1f s, p90 %.1f s, max %.1f s", len(of), of[len(of)/2].Seconds(), of[len(of)*9/10].Seconds(), of[len(of)-1].Seconds())
}
