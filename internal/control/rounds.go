package control

import (
	"cmp"
	"context"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/dispatch"
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
	if filter.Root, err = r.root(ctx, caller, filter.Root, filter.SessionID); err != nil {
		return nil, err
	}
	return r.Store.Rounds(ctx, filter)
}

// ChangeProvider gives a round that waits or is paused another provider: its pin is new, the log
// says so, and its thread goes on.
func (r *Rounds) ChangeProvider(ctx context.Context, in dispatch.ProviderRequest) error {
	caller, err := r.authorize(ctx, "resume_round", in.RoundID)
	if err != nil {
		return err
	}
	round, err := r.Store.Round(ctx, in.RoundID)
	if err != nil {
		return err
	}
	asked := dispatch.RunRequest{Provider: in.Provider, Model: in.Model, Settings: in.Settings, Agent: round.Agent}
	if err := r.checkNames(&asked); err != nil {
		return err
	}
	settings := r.settingsOf(&asked)
	asked.Model = cmp.Or(asked.Model, settings.ModelOf(in.Provider, config.DefaultSize))
	if in.Provider == settings.Provider && in.Model == "" {
		asked.Model = settings.Model
	}
	if err := r.checkAffordable(&asked, r.Settings.File.Caps(round.Agent)); err != nil {
		return err
	}
	pin := cmp.Or(in.Settings, r.pinOf(in.Provider))
	if err := r.checkDialect(round.Dialect, in.Provider, asked.Model, pin); err != nil {
		return err
	}
	why := regie.Say("the settings of that provider are not here (by %s)", r.author(caller, ""))
	return r.Store.Repin(ctx, in.RoundID, pin, regie.Fallback{
		RoundID: in.RoundID, Exchange: round.Exchange, Provider: in.Provider, Model: asked.Model,
		Instead: round.Provider, Code: regie.CodeNoModel, Text: why.String(), Why: why,
	})
}

// AddProvider keeps a client's provider for its runs, in memory, and goes on with the runs that
// waited for its settings (decision 54).
func (r *Rounds) AddProvider(ctx context.Context, in config.ClientProvider) error {
	if _, err := r.authorize(ctx, "add_client_provider"); err != nil {
		return err
	}
	added, err := r.Config.AddProvider(in)
	if added {
		r.Dispatcher.ResumeProviderWaits(context.WithoutCancel(ctx))
	}
	return err
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
	caller, err := r.authorizeIn(ctx, "show_spending", &root)
	if err != nil {
		return store.Spent{}, err
	}
	out, err := r.Store.SpentToday(ctx, root)
	out.Caps = r.Settings.File.Caps("")
	if caller.Restricted() {
		out.All = out.Workspace
	}
	return out, err
}
