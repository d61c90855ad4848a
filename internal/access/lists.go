package access

import (
	"cmp"
	"context"
	"slices"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
)

// newestFirst sorts what several lists gave as one list has it, and cuts it.
func newestFirst[T any](items []T, limit int, mark func(*T) store.Mark) []T {
	slices.SortStableFunc(items, func(a, b T) int {
		x, y := mark(&a), mark(&b)
		return cmp.Or(y.At.Compare(x.At), slices.Compare(y.ID[:], x.ID[:]))
	})
	if limit > 0 && len(items) > limit {
		items = items[:limit]
	}
	return items
}

// Sessions implements dispatch.Sessions.
func (c *confined) Sessions(ctx context.Context, filter store.SessionFilter) ([]store.SessionSummary, error) {
	roots, err := c.at(ctx, filter.Root)
	if err != nil {
		return nil, err
	}
	found, err := each(roots, func(root string) ([]store.SessionSummary, error) {
		filter.Root = root
		return c.inner.Sessions(ctx, filter)
	})
	if len(roots) != 1 {
		found = newestFirst(found, cmp.Or(filter.Limit, 1000), func(s *store.SessionSummary) store.Mark {
			return store.Mark{At: s.LastActivity, ID: s.ID}
		})
	}
	return found, err
}

// List implements dispatch.Control.
func (c *confined) List(ctx context.Context, filter store.RoundFilter) ([]store.RoundSummary, error) {
	if !filter.SessionID.IsZero() {
		if err := c.mine(ctx, filter.SessionID); err != nil {
			return nil, err
		}
	}
	roots, err := c.at(ctx, filter.Root)
	if err != nil {
		return nil, err
	}
	found, err := each(roots, func(root string) ([]store.RoundSummary, error) {
		filter.Root = root
		return c.inner.List(ctx, filter)
	})
	if len(roots) != 1 {
		found = newestFirst(found, cmp.Or(filter.Limit, 20), func(r *store.RoundSummary) store.Mark {
			return store.Mark{At: r.Round.StartedAt, ID: r.Round.ID}
		})
	}
	return found, err
}

// Inbox implements dispatch.Control.
func (c *confined) Inbox(ctx context.Context, filter store.InboxFilter) (store.Inbox, error) {
	roots, err := c.at(ctx, filter.Root)
	out := store.Inbox{Approvals: []regie.Approval{}, Questions: []regie.Question{}}
	for _, root := range roots {
		filter.Root = root
		some, err := c.inner.Inbox(ctx, filter)
		if err != nil {
			return out, err
		}
		if len(roots) == 1 {
			return some, nil
		}
		out.Approvals, out.Questions = append(out.Approvals, some.Approvals...),
			append(out.Questions, some.Questions...)
	}
	slices.SortFunc(out.Approvals, func(a, b regie.Approval) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), slices.Compare(a.ID[:], b.ID[:]))
	})
	slices.SortFunc(out.Questions, func(a, b regie.Question) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), slices.Compare(a.ID[:], b.ID[:]))
	})
	if filter.Limit > 0 {
		out.Approvals = out.Approvals[:min(filter.Limit, len(out.Approvals))]
		out.Questions = out.Questions[:min(filter.Limit, len(out.Questions))]
	}
	return out, err
}

// Messages implements dispatch.Sessions.
func (c *confined) Messages(ctx context.Context, in dispatch.MessagesRequest) ([]store.MessageView, error) {
	if err := c.mine(ctx, in.SessionID); err != nil {
		return nil, err
	}
	return c.inner.Messages(ctx, in)
}

// Rules implements dispatch.Control.
func (c *confined) Rules(ctx context.Context, filter store.RuleFilter) (store.RuleList, error) {
	roots, err := c.at(ctx, filter.Root)
	out := store.RuleList{Rules: []store.StandingRule{}}
	for _, root := range roots {
		filter.Root = root
		some, err := c.inner.Rules(ctx, filter)
		if err != nil || len(roots) == 1 {
			return some, err
		}
		out.Rules = append(out.Rules, some.Rules...)
		if some.AuditError != "" {
			out.AuditError = some.AuditError
		}
		if some.Audit != nil {
			out.Audit = cmp.Or(out.Audit, &store.VerifyReport{})
			out.Audit.Events, out.Audit.Erased = out.Audit.Events+some.Audit.Events, out.Audit.Erased+some.Audit.Erased
		}
	}
	if out.AuditError != "" {
		out.Audit = nil
	}
	slices.SortFunc(out.Rules, func(a, b store.StandingRule) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), slices.Compare(a.ID[:], b.ID[:]))
	})
	if filter.Limit > 0 {
		out.Rules = out.Rules[:min(filter.Limit, len(out.Rules))]
	}
	return out, err
}

// Spent implements dispatch.Control. To a restricted caller all that was spent is what was spent in
// the workspaces that it sees.
func (c *confined) Spent(ctx context.Context, root string) (store.Spent, error) {
	roots, err := c.at(ctx, root)
	if err != nil {
		return store.Spent{}, err
	}
	if !From(ctx).Restricted() {
		return c.inner.Spent(ctx, root)
	}
	var out store.Spent
	for _, at := range roots {
		some, err := c.inner.Spent(ctx, at)
		if err != nil {
			return out, err
		}
		sum := some.Workspace
		if at != roots[0] {
			sum.Cost, sum.Due, sum.Known = sum.Cost+out.All.Cost, sum.Due+out.All.Due, sum.Known && out.All.Known
		}
		out = some
		out.Workspace, out.All = sum, sum
	}
	return out, nil
}

// Verify implements dispatch.Sessions.
func (c *confined) Verify(ctx context.Context, filter store.LogFilter) ([]store.LogReport, error) {
	roots, err := c.at(ctx, filter.Root)
	if err != nil {
		return nil, err
	}
	return each(roots, func(root string) ([]store.LogReport, error) {
		filter.Root = root
		return c.inner.Verify(ctx, filter)
	})
}

// Prompt implements dispatch.Control.
func (c *confined) Prompt(ctx context.Context, in dispatch.PromptRequest) (dispatch.Prompt, error) {
	if err := inPart(ctx, in.CallPart); err != nil {
		return dispatch.Prompt{}, err
	}
	if _, err := c.at(ctx, in.Root); err != nil {
		return dispatch.Prompt{}, err
	}
	for _, id := range []regie.ID{in.SessionID, in.RoundID, in.CallID} {
		if !id.IsZero() {
			if err := c.mine(ctx, id); err != nil {
				return dispatch.Prompt{}, err
			}
		}
	}
	return c.inner.Prompt(ctx, in)
}

// CacheStats implements dispatch.Caching.
func (c *confined) CacheStats(ctx context.Context, root string) (store.CacheStats, error) {
	roots, err := c.at(ctx, root)
	var out store.CacheStats
	for _, at := range roots {
		some, err := c.inner.CacheStats(ctx, at)
		if err != nil {
			return out, err
		}
		out.Entries, out.Bytes, out.Hits = out.Entries+some.Entries, out.Bytes+some.Bytes, out.Hits+some.Hits
		out.Saved, out.Expired = out.Saved+some.Saved, out.Expired+some.Expired
		if out.Oldest.IsZero() || !some.Oldest.IsZero() && some.Oldest.Before(out.Oldest) {
			out.Oldest = some.Oldest
		}
	}
	return out, err
}

// Workspaces implements dispatch.Places.
func (c *confined) Workspaces(ctx context.Context) ([]regie.Workspace, error) { return c.places(ctx) }

// Agents implements dispatch.Places.
func (c *confined) Agents(ctx context.Context) ([]dispatch.AgentView, error) {
	return anybody(ctx, c.inner.Agents)
}

// Tools implements dispatch.Places.
func (c *confined) Tools(ctx context.Context) ([]regie.ToolDefinition, error) {
	return anybody(ctx, c.inner.Tools)
}

// Providers implements dispatch.Places.
func (c *confined) Providers(ctx context.Context) ([]dispatch.ProviderView, error) {
	return anybody(ctx, c.inner.Providers)
}

// anybody lists what is the whole installation's, to anybody who was let in.
func anybody[T any](ctx context.Context, list func(context.Context) ([]T, error)) ([]T, error) {
	if From(ctx) == nil {
		return nil, ErrNobody
	}
	return list(ctx)
}
