package sqlite

import (
	"context"
	"time"

	"github.com/regie-run/regie/internal/fault"
	"github.com/regie-run/regie/internal/store"
)

// Leases are for a database that several engines write to (spec 11.1). A holder renews one row by
// the database's clock, and keeps its claims for as long. The lease keeps others from claiming. The
// epoch, which each claim raises and every write of a round checks, keeps a former holder from
// writing (invariant 8). The embedded store has the engine lock instead of leases.

// Lease renews a holder's lease, until ttl from now by the database's clock. Until then others
// cannot claim its rounds. It returns store.ErrNewerSchema, and no lease, where the schema is newer
// than this program.
func (s roundStore) Lease(ctx context.Context, holder string, ttl time.Duration) error {
	if s.other == nil {
		return nil
	}
	return s.writer.do(ctx, func(t *tx) error {
		// The heartbeat also deletes old proofs of commits: a process asks for one at once or
		// never.
		t.exec("DELETE FROM commits WHERE at < clock_timestamp() - interval '1 hour'")
		t.one(store.ErrNewerSchema, `INSERT INTO holders (name, until) SELECT ?, clock_timestamp() + ? * interval '1 microsecond'
			WHERE NOT EXISTS (SELECT 1 FROM goose_db_version WHERE version_id > ?)
			ON CONFLICT (name) DO UPDATE SET until = excluded.until`, holder, ttl.Microseconds(), s.schema)
		return nil
	})
}

// EndLease ends a holder's lease: others can claim its rounds at once. It also deletes leases that
// expired more than a day ago.
func (s roundStore) EndLease(ctx context.Context, holder string) error {
	if s.other == nil {
		return nil
	}
	return s.writer.do(ctx, func(t *tx) error {
		t.exec("DELETE FROM holders WHERE name = ? OR until < clock_timestamp() - interval '1 day'", holder)
		return nil
	})
}

// Succeed ends the leases of holders with a name that begins so. Their processes have certainly
// ended, because the caller has their place.
func (s roundStore) Succeed(ctx context.Context, begins string) error {
	if s.other == nil {
		return nil
	}
	return s.writer.do(ctx, func(t *tx) error {
		t.exec("DELETE FROM holders WHERE starts_with(name, ?)", begins)
		return nil
	})
}

// leased reports that another holder's lease of a session s is valid; ? is the caller's name.
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

// dropFence returns the fence of the current holder where the seeded bug is on, and else the fence
// unchanged.
func (t slotTx) dropFence(fence store.Fence) store.Fence {
	if fault.Bug(fault.BugNoEpoch) {
		_ = t.row("SELECT epoch FROM rounds WHERE id = ?", fence.RoundID).Scan(&fence.Epoch)
	}
	return fence
}
