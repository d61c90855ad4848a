package invariant

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"strings"
)

// AtEffect checks at the moment of an effect, over its own connection. The effect's intent must be
// committed (invariant 2), and a person who was asked must have allowed exactly these arguments
// (invariant 3). It reports nothing if ctx ends meanwhile.
func AtEffect(ctx context.Context, db Rows, e Effect, fail func(format string, args ...any)) {
	var state string
	err := db.QueryRowContext(ctx, "SELECT state FROM calls WHERE id = ?", e.Key).Scan(&state)
	switch {
	case ctx.Err() != nil: // who brought it about died while we looked
	case err != nil:
		fail("an effect of %s without a stored call %s: %v", e.Name, e.Key, err)
	case state == "UNKNOWN": // it was STARTED, and cut by a stop while it was on its way here
	case state != "STARTED":
		fail("an effect of %s while its call is %s, not STARTED (invariant 2)", e.Name, state)
	default:
		atAllowed(ctx, db, e, fail)
		atSlot(ctx, db, e, fail)
	}
}

// atSlot asserts that a queued round brings about nothing: it holds no slot (spec 5.1).
func atSlot(ctx context.Context, db Rows, e Effect, fail func(format string, args ...any)) {
	var queued int
	err := db.QueryRowContext(ctx,
		"SELECT count(*) FROM slots q JOIN calls c ON c.session = q.session WHERE c.id = ? AND q.state = 'QUEUED'",
		e.Key).Scan(&queued)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		fail("the slot of %s cannot be read: %v", e.Name, err)
	case queued > 0:
		fail("an effect of %s while its round is queued", e.Name)
	}
}

// AtSlots asserts at an effect that its session's owner holds no more slots in that workspace than
// there are (spec 5.1).
func AtSlots(ctx context.Context, db Rows, e Effect, slots int, fail func(format string, args ...any)) {
	var held int
	err := db.QueryRowContext(ctx, `SELECT count(*) FROM slots q JOIN slots own ON own.workspace_id = q.workspace_id AND own.user_id = q.user_id
		JOIN calls c ON c.session = own.session WHERE c.id = ? AND q.state = 'HELD'`, e.Key).Scan(&held)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		fail("the slots at %s cannot be read: %v", e.Name, err)
	case held > slots:
		fail("an effect of %s while %d rounds hold %d slots", e.Name, held, slots)
	}
}

// atAllowed compares an effect with the stored answer to the latest question about its call.
func atAllowed(ctx context.Context, db Rows, e Effect, fail func(format string, args ...any)) {
	var answer sql.NullString
	var arguments string
	err := db.QueryRowContext(ctx, `SELECT v.answer, coalesce(v.edited, v.arguments) FROM reviews v JOIN approvals a ON a.id = v.approval_id
		WHERE v.call_id = ? ORDER BY a.created_at DESC, a.id DESC LIMIT 1`, e.Key).Scan(&answer, &arguments)
	var args named
	switch {
	case ctx.Err() != nil, errors.Is(err, sql.ErrNoRows):
	case err != nil, json.Unmarshal([]byte(arguments), &args) != nil:
		fail("what was asked about %s cannot be read: %v", e.Name, err)
	case !strings.HasPrefix(answer.String, "allow"):
		fail("an effect of %s, of which the person said %q (invariant 3)", e.Name, answer.String)
	case args.Name != e.Name:
		fail("an effect of %s where %s was allowed (invariant 3)", e.Name, args.Name)
	}
}
