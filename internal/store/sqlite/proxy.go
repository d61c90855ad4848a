package sqlite

import (
	"context"
	"database/sql"
	"slices"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// ReserveProxied stores a model call that is about to be forwarded, with as much of its possible
// cost as the caps leave (decision 29). Where they leave too little it stores nothing and names the
// cap.
func (s moneyStore) ReserveProxied(ctx context.Context, in store.Proxied,
	wants store.Reservation,
) (out store.Granted, err error) {
	err = s.writer.do(ctx, func(t *tx) (err error) {
		out, err = t.money.grantMoney(wants, store.Fence{}, in.WorkspaceID, time.Now())
		if err != nil || out.Refused != nil {
			return err
		}
		t.exec(
			`INSERT INTO proxied (id, workspace_id, user_id, provider, model, state, reserved_microusd, started_at) VALUES (?, ?, ?, ?, ?, 'OPEN', ?, ?)`,
			in.ID, in.WorkspaceID, in.UserID, in.Provider, in.Model, out.Reserved, in.StartedAt.UnixMicro())
		return nil
	})
	return out, err
}

// LogProxied stores the outcome of forwarded model calls, and books their cost. It skips calls that
// are settled already.
func (s moneyStore) LogProxied(ctx context.Context, calls []store.Proxied) error {
	if len(calls) == 0 {
		return nil
	}
	return s.writer.do(ctx, func(t *tx) error {
		t.money.logAll(calls)
		return nil
	})
}

// logAll settles calls in the order of their workspaces, as every transition books.
func (t moneyTx) logAll(calls []store.Proxied) {
	for _, c := range slices.SortedStableFunc(slices.Values(calls), func(a, b store.Proxied) int {
		return compareIDs(a.WorkspaceID, b.WorkspaceID)
	}) {
		settled := t.logProxied(&c)
		if add := (totals{cost: c.Money.Booked(), unknown: !c.Money.Known}); settled {
			t.bookFor(dayOf(time.Now()), "?", c.WorkspaceID, add)
		}
	}
}

// logProxied stores the outcome of a call. It reports false for a call that is settled, and booked,
// already.
func (t moneyTx) logProxied(c *store.Proxied) bool {
	var cost any
	if c.Money.Known {
		cost = c.Money.Cost
	}
	return t.count(`INSERT INTO proxied (id, workspace_id, user_id, provider, model, state, code, cached, input_tokens, output_tokens, cache_read_tokens,
			cost_microusd, started_at, duration_us) VALUES (?, ?, ?, ?, ?, 'DONE', ?, 0, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET state = 'DONE', code = excluded.code, input_tokens = excluded.input_tokens,
			output_tokens = excluded.output_tokens, cache_read_tokens = excluded.cache_read_tokens, cost_microusd = excluded.cost_microusd,
			duration_us = excluded.duration_us WHERE proxied.state = 'OPEN'`,
		c.ID, c.WorkspaceID, c.UserID, c.Provider, c.Model, nullIfEmpty(c.Code), c.Usage.Input,
		c.Usage.Output, c.Usage.CacheRead, cost, c.StartedAt.UnixMicro(), c.Duration.Microseconds()) == 1
}

// LeftProxied ends calls that a dead process left OPEN. Their cost is unknown, so their reservation
// may be due. Calls that began later belong to other processes and stay unchanged.
func (s moneyStore) LeftProxied(ctx context.Context, before time.Time) error {
	return s.writer.do(ctx, func(t *tx) error {
		left, err := readAll(t, func(row scanner, c *store.Proxied) error {
			c.Code = regie.CodeEngineGone
			return row.Scan(&c.ID, &c.WorkspaceID, &c.UserID, &c.Provider, &c.Model, &c.StartedAt, &c.Money.Reserved)
		}, "SELECT id, workspace_id, user_id, provider, model, started_at, reserved_microusd FROM proxied WHERE state = 'OPEN' AND started_at < ?", before.UnixMicro())
		t.money.logAll(left)
		return err
	})
}

// ProxiedCalls returns the newest forwarded model calls.
func (s moneyStore) ProxiedCalls(ctx context.Context, limit int) ([]store.Proxied, error) {
	return queryAll(ctx, s.read, func(row scanner, c *store.Proxied) error {
		var cost sql.NullInt64
		var micros int64
		err := row.Scan(&c.ID, &c.WorkspaceID, &c.UserID, &c.Provider, &c.Model, &c.Code, &c.Usage.Input,
			&c.Usage.Output, &c.Usage.CacheRead, &cost, &c.Money.Reserved, &c.StartedAt, &micros)
		c.Money.Cost, c.Money.Known, c.Duration = cost.Int64, cost.Valid, time.Duration(micros)*time.Microsecond
		return err
	}, `SELECT id, workspace_id, user_id, provider, model, coalesce(code, ''), input_tokens, output_tokens, cache_read_tokens,
			cost_microusd, reserved_microusd, started_at, coalesce(duration_us, 0)
		FROM proxied ORDER BY started_at DESC, id DESC LIMIT ?`, limit)
}
