package app

import (
	"context"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/plain"
	"github.com/regie-run/regie/internal/store"
)

// Rules implements dispatch.Control. Where rules of workspaces are listed from their beginning, and
// not one by its id, their logs are verified on the way.
func (l *local) Rules(ctx context.Context, filter store.RuleFilter) (store.RuleList, error) {
	rules, err := l.store.ListRules(ctx, filter, time.Now())
	list := store.RuleList{Rules: rules}
	// the first page has said it
	if err != nil || !filter.ID.IsZero() || filter.Short != "" || filter.After.Micros() != 0 {
		return list, err
	}
	report, err := l.store.VerifyRules(ctx, filter.Root)
	if regie.CodeOf(err) == regie.CodeChainBroken {
		list.AuditError = err.Error()
		return list, nil
	}
	list.Audit = &report
	return list, err
}

// maxRevoked bounds how many rules one request takes back (spec 11.3).
const maxRevoked = 1000

// Revoke implements dispatch.Control. A run that goes on judges its next call without them.
func (l *local) Revoke(ctx context.Context, in dispatch.RevokeRequest) error {
	switch {
	case l.readOnly && !l.storeOnly:
		return errRunsNothing
	case len(in.RuleIDs) == 0:
		return regie.Errorf(regie.CodeBadRequest, "the request names no rule")
	case len(in.RuleIDs) > maxRevoked:
		return regie.Errorf(regie.CodeBadRequest, "the request names more than %d rules", maxRevoked)
	}
	return l.store.RevokeRules(ctx, store.RevokeRules{RuleIDs: in.RuleIDs, By: plain.Strip(author(in.By))})
}
