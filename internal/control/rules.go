package control

import (
	"context"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/sanitize"
	"github.com/regie-run/regie/internal/store"
)

// Rules are the standing rules (spec 4.4).
type Rules struct{ *core }

// List returns standing rules. Where rules of workspaces are listed from their beginning, and not
// one by its id, their logs are verified on the way.
func (r *Rules) List(ctx context.Context, filter store.RuleFilter) (store.RuleList, error) {
	if _, err := r.authorizeIn(ctx, "list_rules", &filter.Root); err != nil {
		return store.RuleList{}, err
	}
	rules, err := r.Store.ListRules(ctx, filter, time.Now())
	list := store.RuleList{Rules: rules}
	// the first page has said it
	if err != nil || !filter.ID.IsZero() || filter.Short != "" || filter.After.Micros() != 0 {
		return list, err
	}
	report, err := r.Store.VerifyRules(ctx, filter.Root)
	if regie.CodeOf(err) == regie.CodeChainBroken {
		list.AuditError = err.Error()
		return list, nil
	}
	list.Audit = &report
	return list, err
}

// maxRevoked bounds how many rules one request takes back (spec 11.3).
const maxRevoked = 1000

// Revoke takes standing rules back, all of them or none: when it returns they allow nothing. A run
// that goes on judges its next call without them.
func (r *Rules) Revoke(ctx context.Context, in dispatch.RevokeRequest) error {
	caller, err := r.authorize(ctx, "revoke_rules", in.RuleIDs...)
	if err != nil {
		return err
	}
	switch {
	case len(in.RuleIDs) == 0:
		return regie.Errorf(regie.CodeBadRequest, "the request names no rule")
	case len(in.RuleIDs) > maxRevoked:
		return regie.Errorf(regie.CodeBadRequest, "the request names more than %d rules", maxRevoked)
	}
	return r.Store.RevokeRules(ctx, store.RevokeRules{RuleIDs: in.RuleIDs, By: sanitize.Strip(r.author(caller, in.By))})
}
