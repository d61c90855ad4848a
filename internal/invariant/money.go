package invariant

import (
	"context"

	"github.com/regie-run/regie"
)

// checkMoney asserts invariant 9 on the rows. A round's spent and reserved money matches its calls,
// an ended round has nothing reserved, and the sums for caps match the calls.
func (c *check) checkMoney(ctx context.Context) {
	var whole int64
	for i := range c.views {
		view := &c.views[i]
		var spent, reserved int64
		for k := range view.Exchanges {
			x := &view.Exchanges[k]
			for _, a := range x.Attempts {
				spent += a.Money.Booked()
			}
			switch x.State {
			case regie.ExchangeReplied:
				spent += x.Money.Booked()
			case regie.ExchangeOpen:
				reserved += x.Money.Reserved
			}
		}
		whole += spent
		if view.Round.State == regie.RoundEnded {
			reserved = 0
		}
		var booked, held int64
		if err := c.DB.QueryRowContext(ctx, "SELECT spent_microusd, reserved_microusd FROM rounds WHERE id = ?",
			view.Round.ID).Scan(&booked, &held); err != nil {
			c.Fail("the money of round %d cannot be read: %v", view.Round.Number, err)
		}
		if booked != spent || held != reserved {
			c.Fail("round %d has spent %d and reserved %d, by its calls %d and %d (invariant 9)", view.Round.Number,
				booked, held, spent, reserved)
		}
	}
	var sum int64
	if err := c.DB.QueryRowContext(ctx,
		"SELECT coalesce((SELECT spent_microusd FROM spending WHERE day = 0 AND owner = ?), 0)",
		c.Session).Scan(&sum); err != nil {
		c.Fail("what the session has spent cannot be read: %v", err)
	}
	if sum != whole {
		c.Fail("the session has spent %d, by its calls %d (invariant 9)", sum, whole)
	}
	if whole > 0 {
		c.Saw("money")
	}
}

// WithinCap asserts invariant 9 on a session under a cap: its spent and reserved money is within
// it, except for usage beyond the calls' estimates (decision 29).
func WithinCap(ctx context.Context, db Rows, session regie.ID, most int64, fail func(format string, args ...any)) {
	var used, overrun int64
	err := db.QueryRowContext(ctx, `SELECT (SELECT coalesce(sum(r.spent_microusd + r.reserved_microusd), 0) FROM rounds r WHERE r.session = s.n),
			(SELECT coalesce(sum(e.overrun_microusd), 0) FROM rounds r JOIN exchanges e ON e.round_id = r.id WHERE r.session = s.n AND e.state = 'REPLIED')
			+ (SELECT coalesce(sum(a.overrun_microusd), 0) FROM rounds r JOIN attempts a ON a.round_id = r.id WHERE r.session = s.n)
		FROM sessions s WHERE s.id = ?`, session).Scan(&used, &overrun)
	if err != nil {
		fail("what the session has spent cannot be read: %v", err)
	} else if used-overrun > most {
		fail("the session has spent and reserved %d of %d, %d of it overrun (invariant 9)", used, most, overrun)
	}
}
