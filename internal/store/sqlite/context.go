package sqlite

import (
	"context"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// BeginSummary turns the open step of a round into the summary that has to precede it (spec 3.4).
// The exchange keeps its number, its attempts and its reservation, and the step follows as the next
// one. It returns CodeStale, CodeStopRequested, or CodeConflict where the exchange is no open step.
func (s roundStore) BeginSummary(ctx context.Context, fence store.Fence, exchange int) error {
	return s.writer.do(ctx, func(t *tx) error {
		t.rounds.mayWrite(fence, true)
		t.one(errNotOpen,
			"UPDATE exchanges SET purpose = 'summary' WHERE round_id = ? AND number = ? AND state = 'OPEN' AND purpose = 'step'",
			fence.RoundID, exchange)
		return nil
	})
}

// ExchangeOf returns the exchange that proposed a call, or CodeNotFound. For a copied call in a
// fork it returns the exchange of the original.
func (s roundStore) ExchangeOf(ctx context.Context, call regie.ID) (round regie.ID, exchange int, err error) {
	err = s.read.QueryRowContext(ctx, `SELECT e.round_id, e.number FROM calls c JOIN calls o ON o.id = coalesce(c.copy_of, c.id)
		JOIN exchanges e ON e.round_id = o.round_id AND e.number = o.exchange WHERE c.id = ? AND e.reply_id = o.message_id`, call).Scan(&round, &exchange)
	return round, exchange, unlessFound(err, notFound("model call that proposed the call", call))
}

// CallNamed returns the one call with this end of its id, or its beginning from eight digits on, in
// the workspace at root, or in all for "". It returns CodeBadID for a part that is not hexadecimal,
// CodeNotFound, and CodeConflict with the ids where there are several.
func (s roundStore) CallNamed(ctx context.Context, root, part string) (regie.ID, error) {
	if err := checkPart(part); err != nil {
		return regie.ID{}, err
	}
	found, err := queryAll(ctx, s.read, scanOne[regie.ID], `SELECT c.id FROM calls c JOIN sessions s ON s.n = c.session JOIN workspaces w ON w.id = s.workspace_id
		WHERE s.deleted_at IS NULL AND (w.root = ?1 OR ?1 = '') AND `+hasPart("c.id", "?2")+" ORDER BY c.id LIMIT 10", root, part)
	switch {
	case err != nil:
		return regie.ID{}, err
	case len(found) == 0:
		return regie.ID{}, regie.Errorf(regie.CodeNotFound, "there is no call %s here", part)
	case len(found) == 1:
		return found[0], nil
	}
	names := make([]string, len(found))
	for i := range found {
		names[i] = found[i].String()
	}
	return regie.ID{}, regie.Errorf(regie.CodeConflict,
		"%s matches several ids, write more of it: %s", part, strings.Join(names, " "))
}

// LastRound returns the newest round of a session, or CodeNotFound where it has none.
func (s roundStore) LastRound(ctx context.Context, session regie.ID) (round regie.Round, err error) {
	err = scanRound(s.read.QueryRowContext(ctx, "SELECT "+roundColumns+
		" FROM rounds r JOIN sessions s ON s.n = r.session WHERE s.id = ? AND s.deleted_at IS NULL ORDER BY r.number DESC LIMIT 1", session), &round)
	return round, unlessFound(err, notFound("run of session", session))
}
