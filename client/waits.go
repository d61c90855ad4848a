package client

import (
	"cmp"
	"context"
	"math"
	"net/http"
	"strconv"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/httpread"
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

// Rules lists standing rules (spec 4.4).
func (c *Client) Rules(ctx context.Context, f store.RuleFilter) (store.RuleList, error) {
	out := store.RuleList{Rules: []store.StandingRule{}}
	wanted := cmp.Or(f.Limit, math.MaxInt)
	err := pages(ctx, c, "/api/v1/rules", f, wanted, func(p rulePage) (string, int) {
		out.Rules = append(out.Rules, p.Items...)
		out.Audit, out.AuditError = cmp.Or(out.Audit, p.Audit), cmp.Or(out.AuditError, p.AuditError)
		return p.Next, wanted - len(out.Rules)
	})
	return out, err
}

type rulePage struct {
	page[store.StandingRule]
	Audit      *store.VerifyReport `json:"audit"`
	AuditError string              `json:"audit_error"`
}

// maxPage is the largest page that the client requests.
const maxPage = 500

// pages reads a list page by page, from a cursor that the caller may know. take handles each page
// and returns the next cursor, empty at the end, and the number of items still wanted.
func pages[P any](ctx context.Context, c *Client, path string, filter any, wanted int,
	take func(P) (next string, wanted int),
) error {
	query := httpread.Query(filter)
	for {
		var p P
		query.Set("limit", strconv.Itoa(min(wanted, maxPage)))
		if err := c.call(ctx, http.MethodGet, path+"?"+query.Encode(), nil, &p); err != nil {
			return err
		}
		var next string
		if next, wanted = take(p); next == "" || wanted <= 0 {
			return nil
		}
		query.Set("cursor", next)
	}
}

// queryOf writes the parameters of a request.
func queryOf(request any) string { return httpread.Query(request).Encode() }
