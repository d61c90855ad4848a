package sqlite

import (
	"context"
	"time"

	"github.com/regie-run/regie/internal/fault"
	"github.com/regie-run/regie/internal/store"
)

// Leases are for a database that several engines write to (spec 11.1): a holder keeps one row alive
// by the database's clock, and what it has claimed is its own for as long. A lease is what keeps
// others from claiming; what keeps a former holder from writing is the epoch, which each claim
// raises and every write of a round checks (invariant 8). The embedded store has the engine lock in
// place of leases.

// Lease says that a holder lives, until ttl from now by the database's clock. What it has claimed
// is left to it until then. It returns store.ErrNewerSchema, and there is no lease, where the
// schema is newer than this program.
func (s roundStore) Lease(ctx context.Context, holder string, ttl time.Duration) error {
	if s.other == nil {
		return nil
	}
	return s.writer.do(ctx, func(t *tx) error {
		// Old records of commits are deleted on the way: their callers have asked long ago.
		t.exec("DELETE FROM commits WHERE at < clock_timestamp() - interval '1 hour'")
		t.one(store.ErrNewerSchema, `INSERT INTO holders (name, until) SELECT ?, clock_timestamp() + ? * interval '1 microsecond'
			WHERE NOT EXISTS (SELECT 1 FROM goose_db_version WHERE version_id > ?)
			ON CONFLICT (name) DO UPDATE SET until = excluded.until`, holder, ttl.Microseconds(), s.schema)
		return nil
	})
}

// EndLease says that a holder holds nothing any more: what it leaves can be claimed at once. Leases
// that have been over for a day go too.
func (s roundStore) EndLease(ctx context.Context, holder string) error {
	if s.other == nil {
		return nil
	}
	return s.writer.do(ctx, func(t *tx) error {
		t.exec("DELETE FROM holders WHERE name = ? OR until < clock_timestamp() - interval '1 day'", holder)
		return nil
	})
}

// Succeed ends the leases of holders with a name prefix: these processes have certainly ended,
// because the caller has their place.
func (s roundStore) Succeed(ctx context.Context, begins string) error {
	if s.other == nil {
		return nil
	}
	return s.writer.do(ctx, func(t *tx) error {
		t.exec("DELETE FROM holders WHERE starts_with(name, ?)", begins)
		return nil
	})
}

// leased reports that another holder's lease of a session s is not over; ? is who asks.
const leased = "EXISTS (SELECT 1 FROM holders h WHERE h.name = s.lease_holder AND h.name <> ? AND h.until > clock_timestamp())"

// mayClaim refuses a session that another holder's lease still covers, with store.ErrElsewhere.
func (t slotTx) mayClaim(chain int64, holder string) error {
	if t.other == nil || fault.Bug(fault.BugNoLease) {
		return nil
	}
	var elsewhere bool
	if err := t.row("SELECT "+leased+" FROM sessions s WHERE s.n = ?", holder, chain).Scan(&elsewhere); err != nil {
		return err
	}
	if elsewhere {
		return store.ErrElsewhere
	}
	return nil
}

// dropFence returns the fence of the present holder for the seeded bug, and the unchanged fence
// otherwise.
func (t slotTx) dropFence(fence store.Fence) store.Fence {
	if fault.Bug(fault.BugNoEpoch) {
		_ = t.row("SELECT epoch FROM rounds WHERE id = ?", fence.RoundID).Scan(&fence.Epoch)
	}
	return fence
}
