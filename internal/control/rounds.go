package control

import (
	"cmp"
	"context"
	"slices"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/store"
)

// Rounds are the runs of agents.
type Rounds struct{ *core }

// List returns the rounds that a filter selects, the newest first.
func (r *Rounds) List(ctx context.Context, filter store.RoundFilter) ([]store.RoundSummary, error) {
	caller, err := r.authorize(ctx, "list_rounds", given(filter.SessionID)...)
	if err != nil {
		return nil, err
	}
	roots, err := r.roots(ctx, caller, filter.Root)
	if err != nil {
		return nil, err
	}
	out, err := newestFirst(roots, cmp.Or(filter.Limit, 20), func(r *store.RoundSummary) store.Mark {
		return store.Mark{At: r.Round.StartedAt, ID: r.Round.ID}
	}, func(root string) ([]store.RoundSummary, error) {
		filter.Root = root
		return r.Store.Rounds(ctx, filter)
	})
	if err != nil || !slices.ContainsFunc(out, func(s store.RoundSummary) bool {
		return IsForeign(&r.Settings, &s.Round)
	}) {
		return out, err
	}
	left, err := r.Store.Abandoned(ctx, "")
	for i := range out {
		out[i].Stuck = IsForeign(&r.Settings, &out[i].Round) && slices.ContainsFunc(left,
			func(o store.Orphan) bool { return o.RoundID == out[i].Round.ID })
	}
	return out, err
}

// IsForeign reports whether a round was started with other settings of its provider than these.
func IsForeign(settings *config.Config, round *regie.Round) bool {
	return round.State != regie.RoundEnded && !round.Pin.IsZero() && round.Pin != settings.FingerprintOf(round.Provider)
}

// Get returns a round with everything that happened in it.
func (r *Rounds) Get(ctx context.Context, round regie.ID) (store.RoundView, error) {
	if _, err := r.authorize(ctx, "show_round", round); err != nil {
		return store.RoundView{}, err
	}
	return r.Store.RoundView(ctx, round)
}

// Interrupt ends a round at its current exchange. It is durable when it returns (decision 6), as
// Pause and Resume.
func (r *Rounds) Interrupt(ctx context.Context, round regie.ID) error {
	if _, err := r.authorize(ctx, "interrupt_round", round); err != nil {
		return err
	}
	return r.Dispatcher.Stop(ctx, round, regie.StopInterrupt)
}

// Pause starts nothing new of a round.
func (r *Rounds) Pause(ctx context.Context, round regie.ID) error {
	if _, err := r.authorize(ctx, "pause_round", round); err != nil {
		return err
	}
	return r.Dispatcher.Stop(ctx, round, regie.StopPause)
}

// Resume goes on with a paused round, or with one that no process holds.
func (r *Rounds) Resume(ctx context.Context, round regie.ID) error {
	if _, err := r.authorize(ctx, "resume_round", round); err != nil {
		return err
	}
	return r.Dispatcher.Resume(ctx, round)
}

// Spent returns what was spent today in the workspace at root, or in all for "", and in all of them
// (spec 11.4). To a restricted caller all are the workspaces that it sees.
func (r *Rounds) Spent(ctx context.Context, root string) (store.Spent, error) {
	caller, err := r.authorize(ctx, "show_spending")
	if err != nil {
		return store.Spent{}, err
	}
	roots, err := r.roots(ctx, caller, root)
	var out store.Spent
	for _, at := range roots {
		some, err := r.Store.SpentToday(ctx, at)
		if err != nil {
			return out, err
		}
		some.Caps = r.Settings.File.Caps("")
		if !caller.Restricted() {
			return some, nil
		}
		sum := some.Workspace
		if at != roots[0] {
			sum.Cost, sum.Due, sum.Known = sum.Cost+out.All.Cost, sum.Due+out.All.Due, sum.Known && out.All.Known
		}
		out = some
		out.Workspace, out.All = sum, sum
	}
	return out, err
}
