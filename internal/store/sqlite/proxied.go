package sqlite

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// ReserveProxied stores a model call that is about to be passed on, with as much as the caps leave
// of what it may cost (decision 29). Where they leave too little nothing is stored, and the cap is
// named.
func (s moneyStore) ReserveProxied(ctx context.Context, in store.Proxied,
	wants store.Reservation,
) (store.Granted, error) {
	var out store.Granted
	err := s.writer.do(ctx, func(t *tx) error {
		out = store.Granted{Reserved: wants.Prompt + wants.Reply}
		now := time.Now()
		for _, limit := range []struct {
			scope regie.CapScope
			cap   int64
		}{
			{regie.CapRound, wants.Caps.Round},
			{regie.CapSession, wants.Caps.Session},
			{regie.CapDay, wants.Caps.Day},
			{regie.CapWorkspace, wants.Caps.Workspace},
		} {
			if limit.cap <= 0 {
				continue
			}
			used, err := t.money.usedBeside(limit.scope, in.WorkspaceID, now)
			if err != nil {
				return err
			}
			granted, ok := wants.Grant(limit.cap - used)
			if !ok {
				out = store.Granted{Refused: &store.OverCap{Scope: limit.scope, Cap: limit.cap, Used: used}}
				return nil
			}
			out.Reserved = min(out.Reserved, granted)
		}
		return t.exec(
			`INSERT INTO proxied (id, workspace_id, user_id, provider, model, state, reserved_microusd, started_at) VALUES (?, ?, ?, ?, ?, 'OPEN', ?, ?)`,
			in.ID, in.WorkspaceID, in.UserID, in.Provider, in.Model, out.Reserved, in.StartedAt.UnixMicro())
	})
	return out, err
}

// usedBeside is what is spent and reserved of a cap for a call that is of no session: by itself it
// is a run, and a session.
func (t moneyTx) usedBeside(scope regie.CapScope, workspace regie.ID, now time.Time) (used int64, err error) {
	switch scope {
	case regie.CapWorkspace:
		t.holdBudget("SELECT id FROM workspaces WHERE id = ? FOR NO KEY UPDATE", workspace)
		err = t.row(`SELECT coalesce((SELECT p.spent_microusd FROM spending p WHERE p.day = ? AND p.owner = w.id), 0)
				+ coalesce((SELECT sum(r.reserved_microusd) FROM rounds r JOIN sessions o ON o.n = r.session
					WHERE r.reserved_microusd > 0 AND r.state <> 'ENDED' AND o.workspace_id = w.id), 0)
				+ coalesce((SELECT sum(x.reserved_microusd) FROM proxied x WHERE x.workspace_id = w.id AND x.state = 'OPEN'), 0)
			FROM workspaces w WHERE w.id = ?`, dayOf(now), workspace).Scan(&used)
	case regie.CapDay:
		t.holdBudget("SELECT key FROM meta WHERE key = ? FOR NO KEY UPDATE", RecordedKey)
		err = t.row(`SELECT coalesce((SELECT sum(p.spent_microusd) FROM spending p WHERE p.day = ?), 0)
			+ coalesce((SELECT sum(r.reserved_microusd) FROM rounds r WHERE r.reserved_microusd > 0 AND r.state <> 'ENDED'), 0)
			+ coalesce((SELECT sum(x.reserved_microusd) FROM proxied x WHERE x.state = 'OPEN'), 0)`, dayOf(now)).Scan(&used)
	default:
	}
	return used, err
}

// OpenProxied stores model calls that are with their providers, and for which nothing was reserved.
func (s moneyStore) OpenProxied(ctx context.Context, calls []store.Proxied) error {
	return s.writer.do(ctx, func(t *tx) error {
		for i := range calls {
			c := &calls[i]
			if err := t.exec(
				`INSERT INTO proxied (id, workspace_id, user_id, provider, model, state, started_at) VALUES (?, ?, ?, ?, ?, 'OPEN', ?)`,
				c.ID, c.WorkspaceID, c.UserID, c.Provider, c.Model, c.StartedAt.UnixMicro()); err != nil {
				return err
			}
		}
		return nil
	})
}

// LogProxied stores what became of model calls that were passed on, and books what they cost. A
// call that somebody else has settled meanwhile is left as it is.
func (s moneyStore) LogProxied(ctx context.Context, calls []store.Proxied) error {
	if len(calls) == 0 {
		return nil
	}
	return s.writer.do(ctx, func(t *tx) error {
		spent := map[regie.ID]*spending{} // what is booked is booked once for each workspace
		for i := range calls {
			c := &calls[i]
			settled, err := t.money.logProxied(c)
			if err != nil {
				return err
			}
			if !settled {
				continue
			}
			if spent[c.WorkspaceID] == nil {
				spent[c.WorkspaceID] = &spending{}
			}
			spent[c.WorkspaceID].add(c.Money)
		}
		for _, workspace := range slices.SortedFunc(maps.Keys(spent),
			func(a, b regie.ID) int { return bytes.Compare(a[:], b[:]) }) {
			if err := t.money.bookBeside(workspace, spent[workspace], time.Now()); err != nil {
				return err
			}
		}
		return nil
	})
}

// spending is what calls cost together.
type spending struct {
	spent, due int64 // due is the part of spent that nobody knows to have been charged
	unknown    int   // calls whose cost nobody knows
}

func (s *spending) add(m regie.Money) {
	booked := m.Booked()
	s.spent += booked
	if !m.Known {
		s.due += booked
		s.unknown++
	}
}

// logProxied stores what became of a call, and reports whether it did: one that is OPEN no more has
// been settled, and booked, by somebody else.
func (t moneyTx) logProxied(c *store.Proxied) (bool, error) {
	var cost any
	if c.Money.Known {
		cost = c.Money.Cost
	}
	if c.Stored || c.Money.Reserved > 0 {
		n, err := t.count(`UPDATE proxied SET state = 'DONE', code = ?, cached = ?, input_tokens = ?, output_tokens = ?, cache_read_tokens = ?,
				cost_microusd = ?, duration_us = ? WHERE id = ? AND state = 'OPEN'`,
			null(c.Code), flag(c.Cached), c.Usage.Input, c.Usage.Output, c.Usage.CacheRead, cost,
			c.Duration.Microseconds(), c.ID)
		return n == 1, err
	}
	return true, t.exec(`INSERT INTO proxied (id, workspace_id, user_id, provider, model, state, code, cached, input_tokens, output_tokens, cache_read_tokens,
			cost_microusd, started_at, duration_us) VALUES (?, ?, ?, ?, ?, 'DONE', ?, ?, ?, ?, ?, ?, ?, ?)`,
		c.ID, c.WorkspaceID, c.UserID, c.Provider, c.Model, null(c.Code), flag(c.Cached), c.Usage.Input,
		c.Usage.Output, c.Usage.CacheRead,
		cost, c.StartedAt.UnixMicro(), c.Duration.Microseconds())
}

// bookBeside adds what calls of no session cost to what their workspace has spent.
func (t moneyTx) bookBeside(workspace regie.ID, s *spending, now time.Time) error {
	if *s == (spending{}) {
		return nil
	}
	return t.exec(`INSERT INTO spending (day, owner, spent_microusd, due_microusd, unknown_calls) VALUES (?, ?, ?, ?, ?)
		ON CONFLICT (day, owner) DO UPDATE SET spent_microusd = spending.spent_microusd + excluded.spent_microusd,
		due_microusd = spending.due_microusd + excluded.due_microusd, unknown_calls = spending.unknown_calls + excluded.unknown_calls`,
		dayOf(now), workspace, s.spent, s.due, s.unknown)
}

// LeftProxied ends calls that a process left OPEN which died: nobody knows what they cost, so what
// was reserved for them may be due. A call that began since is another's, and is left alone.
func (s moneyStore) LeftProxied(ctx context.Context, before time.Time) error {
	return s.writer.do(ctx, func(t *tx) error {
		var left []store.Proxied
		if err := t.each(
			"SELECT id, workspace_id, reserved_microusd FROM proxied WHERE state = 'OPEN' AND started_at < ?",
			[]any{before.UnixMicro()}, func(row found) error {
				var c store.Proxied
				err := row.Scan(&c.ID, &c.WorkspaceID, &c.Money.Reserved)
				c.Code, c.Stored = regie.CodeEngineGone, true
				left = append(left, c)
				return err
			}); err != nil {
			return err
		}
		for i := range left {
			settled, err := t.money.logProxied(&left[i])
			if err != nil {
				return err
			}
			if !settled {
				continue
			}
			var s spending
			s.add(left[i].Money)
			if err := t.money.bookBeside(left[i].WorkspaceID, &s, time.Now()); err != nil {
				return err
			}
		}
		return nil
	})
}

// ProxiedCalls returns the newest model calls that were passed on for clients.
func (s moneyStore) ProxiedCalls(ctx context.Context, limit int) ([]store.Proxied, error) {
	rows, err := s.read.QueryContext(ctx, `SELECT id, workspace_id, user_id, provider, model, coalesce(code, ''), cached, input_tokens, output_tokens, cache_read_tokens,
			coalesce(cost_microusd, 0), CASE WHEN cost_microusd IS NULL THEN 0 ELSE 1 END, reserved_microusd, started_at, coalesce(duration_us, 0)
		FROM proxied ORDER BY started_at DESC, id DESC LIMIT ?`, limit)
	if err != nil {
		return nil, explain(err, FileName)
	}
	defer rows.Close()
	var out []store.Proxied
	for rows.Next() {
		var c store.Proxied
		var code string
		var started, took, cached, known int64
		var model []byte
		if err := rows.Scan(&c.ID, &c.WorkspaceID, &c.UserID, &c.Provider, &model, &code, &cached, &c.Usage.Input,
			&c.Usage.Output, &c.Usage.CacheRead,
			&c.Money.Cost, &known, &c.Money.Reserved, &started, &took); err != nil {
			return nil, explain(err, FileName)
		}
		c.Model, c.Cached, c.Money.Known = string(model), cached == 1, known == 1
		c.Code, c.StartedAt, c.Duration = regie.Code(code), fromMicros(started), time.Duration(took)*time.Microsecond
		out = append(out, c)
	}
	return out, explain(rows.Err(), FileName)
}
