package sqlite

import (
	"context"

	"github.com/regie-run/regie"
)

// maxRecent bounds how far back RecentCalls looks: a session that has called a toolkit more often
// than this has long forgotten.
const maxRecent = 2000

// RecentCalls gives the calls of one toolkit in a session, from the newest one on, until visit
// returns false: those that succeeded, that have started, or whose outcome nobody knows. They come
// as they are stored, one after another, so looking at the newest ones is cheap.
func (s roundStore) RecentCalls(ctx context.Context, session regie.ID, toolkit string,
	visit func(regie.Call) bool,
) error {
	for at := 0; at < maxRecent; {
		step := min(10+at, 200)
		calls, err := readCalls(ctx, s.read, callsOfThread+`WHERE s.id = ? AND substr(c.tool, 1, ?) = ? AND c.state IN ('SUCCEEDED', 'STARTED', 'UNKNOWN')
			ORDER BY m.seq DESC, c.ordinal DESC LIMIT ? OFFSET ?`, session, len(toolkit)+1, toolkit+".", step, at)
		if err != nil {
			return err
		}
		for i := range calls {
			if !visit(calls[i]) {
				return nil
			}
		}
		if at += step; len(calls) < step {
			return nil
		}
	}
	return nil
}
