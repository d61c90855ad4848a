package client

import (
	"cmp"
	"context"
	"math"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// Inbox returns what waits for people.
func (c *Client) Inbox(ctx context.Context, f store.InboxFilter) (store.Inbox, error) {
	limit := cmp.Or(f.Limit, math.MaxInt)
	out := store.Inbox{Approvals: []regie.Approval{}, Questions: []regie.Question{}}
	err := pages(ctx, c, "/api/v1/inbox", f, 500, func(p inboxPage) (string, int) {
		out.Approvals, out.Questions = append(out.Approvals, p.Approvals...), append(out.Questions, p.Questions...)
		// a page has both of them, and the limit is of each
		return p.Next, limit - min(len(out.Approvals), len(out.Questions))
	})
	out.Approvals, out.Questions = out.Approvals[:min(limit, len(out.Approvals))],
		out.Questions[:min(limit, len(out.Questions))]
	return out, err
}

type inboxPage struct {
	store.Inbox
	Next string `json:"next_cursor"`
}
