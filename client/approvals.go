package client

import (
	"cmp"
	"context"
	"math"
	"net/http"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
)

// Inbox returns what waits for people.
func (c *Client) Inbox(ctx context.Context, f store.InboxFilter) (store.Inbox, error) {
	limit := cmp.Or(f.Limit, math.MaxInt)
	out := store.Inbox{Approvals: []regie.Approval{}, Questions: []regie.Question{}}
	err := pages(ctx, c, "/api/v1/inbox", f, 500, func(p inboxPage) (string, int) {
		out.Approvals, out.Questions = append(out.Approvals, p.Approvals...), append(out.Questions, p.Questions...)
		if p.SetAside != nil || len(p.Unknown) > 0 {
			out.Unknown, out.SetAside = p.Unknown, p.SetAside // the first one
		}
		// a page has both of them, and the limit is of each
		return p.Next, limit - min(len(out.Approvals), len(out.Questions))
	})
	out.Approvals, out.Questions = out.Approvals[:min(limit, len(out.Approvals))],
		out.Questions[:min(limit, len(out.Questions))]
	return out, err
}

// SetAside hides an item of the inbox from its reader until a time (decision 61).
func (c *Client) SetAside(ctx context.Context, in dispatch.SetAsideRequest) error {
	return c.call(ctx, http.MethodPost, "/api/v1/inbox/"+in.ItemID.String()+"/set-aside", in, nil)
}

// Extend keeps an approval or a question open until a later time.
func (c *Client) Extend(ctx context.Context, in dispatch.ExtendRequest) error {
	return c.call(ctx, http.MethodPost, "/api/v1/inbox/"+in.ItemID.String()+"/extend", in, nil)
}

type inboxPage struct {
	store.Inbox
	Next string `json:"next_cursor"`
}

// Rules are the standing rules, as control.Rules.
type Rules struct{ client *Client }

// List lists standing rules (spec 4.4).
func (r *Rules) List(ctx context.Context, f store.RuleFilter) (store.RuleList, error) {
	out := store.RuleList{Rules: []store.StandingRule{}}
	wanted := cmp.Or(f.Limit, math.MaxInt)
	err := pages(ctx, r.client, "/api/v1/rules", f, wanted, func(p rulePage) (string, int) {
		out.Rules = append(out.Rules, p.Items...)
		out.Audit, out.AuditError = cmp.Or(out.Audit, p.Audit), cmp.Or(out.AuditError, p.AuditError)
		return p.Next, wanted - len(out.Rules)
	})
	return out, err
}

// Revoke takes standing rules back, all of them or none: when it returns they allow nothing.
func (r *Rules) Revoke(ctx context.Context, in dispatch.RevokeRequest) error {
	return r.client.call(ctx, http.MethodPost, "/api/v1/rules/revoke", in, nil)
}

type rulePage struct {
	page[store.StandingRule]
	Audit      *store.VerifyReport `json:"audit"`
	AuditError string              `json:"audit_error"`
}
