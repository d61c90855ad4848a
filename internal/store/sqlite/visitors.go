package sqlite

import (
	"context"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// CreateVisitor stores a visitor of a widget. It keeps the one that has the same secret.
func (s tokenStore) CreateVisitor(ctx context.Context, in store.Visitor) error {
	return s.writer.do(ctx, func(t *tx) error {
		t.exec("INSERT INTO visitors (session_id, widget, hash, expires_at) VALUES (?, ?, ?, ?) ON CONFLICT (hash) DO NOTHING",
			in.SessionID, in.Widget, in.Hash, in.ExpiresAt.UnixMicro())
		return nil
	})
}

// VisitorBySecret returns the visitor with the hash of a secret, an expired one too. It returns
// CodeNotFound for an unknown secret and for one of a removed session.
func (s tokenStore) VisitorBySecret(ctx context.Context, secret regie.Hash) (out store.Visitor, err error) {
	out.Hash = secret
	err = s.read.QueryRowContext(ctx, `SELECT v.session_id, v.widget, v.expires_at FROM visitors v WHERE v.hash = ?
		AND NOT EXISTS (SELECT 1 FROM sessions s WHERE s.id = v.session_id AND s.deleted_at IS NOT NULL)`, secret).
		Scan(&out.SessionID, &out.Widget, &out.ExpiresAt)
	return out, unlessFound(err, regie.Errorf(regie.CodeNotFound, "there is no such visitor here"))
}

// usedByWidget selects what the visitors of a widget have spent and reserved in the runs of a day,
// from the moment ?1 on. A run counts on the day on which it began.
const usedByWidget = `SELECT CAST(coalesce(sum(r.spent_microusd + r.reserved_microusd), 0) AS BIGINT) FROM visitors v
	JOIN sessions s ON s.id = v.session_id JOIN rounds r ON r.session = s.n
	WHERE v.expires_at > CAST(?1 AS BIGINT) AND r.started_at >= CAST(?1 AS BIGINT) AND v.widget = `

// WidgetUsed returns what the visitors of a widget have spent and reserved today.
func (s moneyStore) WidgetUsed(ctx context.Context, widget string, now time.Time) (used int64, err error) {
	err = s.read.QueryRowContext(ctx, usedByWidget+"?2", dayBegins(now).UnixMicro(), widget).Scan(&used)
	return used, err
}

// dayBegins returns when the day of a moment begins, as dayOf has it.
func dayBegins(at time.Time) time.Time {
	year, month, day := at.In(time.Local).Date()               //nolint:gosmopolitan // as dayOf
	return time.Date(year, month, day, 0, 0, 0, 0, time.Local) //nolint:gosmopolitan // as dayOf
}
