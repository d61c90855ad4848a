package sqlite

import (
	"context"

	"github.com/regie-run/regie"
)

// maxRecent bounds how far back RecentCalls looks: older calls no longer matter.
const maxRecent = 200

// RecentCalls returns the calls of one toolkit in a session, the newest first: those that
// succeeded, started, or are UNKNOWN.
func (s roundStore) RecentCalls(ctx context.Context, session regie.ID, toolkit string) ([]regie.Call, error) {
	return readCalls(ctx, s.read, callsOfThread+`WHERE s.id = ? AND substr(c.tool, 1, ?) = ? AND c.state IN ('SUCCEEDED', 'STARTED', 'UNKNOWN')
		ORDER BY m.seq DESC, c.ordinal DESC LIMIT ?`, session, len(toolkit)+1, toolkit+".", maxRecent)
}
