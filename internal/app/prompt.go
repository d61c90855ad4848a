package app

import (
	"context"
	"encoding/json"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/engine"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/tool"
)

// Prompt implements dispatch.Control.
func (l *local) Prompt(ctx context.Context, in dispatch.PromptRequest) (dispatch.Prompt, error) {
	named := 0
	for _, id := range []regie.ID{in.SessionID, in.RoundID, in.CallID} {
		if !id.IsZero() {
			named++
		}
	}
	if in.CallPart != "" {
		named++
	}
	if named != 1 || !in.RoundID.IsZero() != (in.Exchange > 0) {
		return dispatch.Prompt{}, regie.Errorf(regie.CodeBadRequest,
			"a prompt is named by a session, by a call, or by a run and the number of one of its exchanges")
	}
	if in.CallPart != "" {
		var err error
		if in.CallID, err = l.store.CallNamed(ctx, in.Root, in.CallPart); err != nil {
			return dispatch.Prompt{}, err
		}
	}
	if !in.CallID.IsZero() {
		var err error
		if in.RoundID, in.Exchange, err = l.store.ExchangeOf(ctx, in.CallID); err != nil {
			return dispatch.Prompt{}, err
		}
	}
	if err := l.within(ctx, in); err != nil {
		return dispatch.Prompt{}, err
	}
	round, err := l.roundOf(ctx, in)
	if err != nil {
		return dispatch.Prompt{}, err
	}
	tools := l.tools(ctx)
	var out dispatch.Prompt
	for i, codecs := range l.ways(round) { // nothing is sent, so the settings of then need not be here: see Replay
		again, err := engine.New(engine.Config{
			Store: l.store, Tools: func(context.Context) *tool.Registry { return tools }, Providers: codecs,
			Scoped: l.projects.toolsIn,
		}).Prompt(ctx, engine.PromptRequest{
			SessionID: in.SessionID, RoundID: in.RoundID,
			Exchange: in.Exchange, Attempt: in.Attempt,
		})
		switch {
		case err != nil && i == 0:
			return out, err
		case err != nil: // a vendor that cannot have been asked so
			continue
		}
		if i == 0 || again.Exact() {
			out = again
		}
		if out.Exact() {
			break
		}
	}
	return out, nil
}

// within reports what is not in the workspace that was named as not found (spec 2.1).
func (l *local) within(ctx context.Context, in dispatch.PromptRequest) error {
	if in.Root == "" {
		return nil
	}
	id, session := in.SessionID, in.SessionID
	if !in.RoundID.IsZero() {
		round, err := l.store.Round(ctx, in.RoundID)
		if err != nil {
			return err
		}
		id, session = in.RoundID, round.SessionID
	}
	_, workspace, err := l.store.Session(ctx, session)
	if err == nil && workspace.Root != in.Root {
		err = regie.Errorf(regie.CodeNotFound, "nothing in this workspace has the id %s: look everywhere with --all",
			id)
	}
	return err
}

// roundOf is the round whose request is meant.
func (l *local) roundOf(ctx context.Context, in dispatch.PromptRequest) (regie.Round, error) {
	if in.RoundID.IsZero() {
		return l.store.LastRound(ctx, in.SessionID)
	}
	return l.store.Round(ctx, in.RoundID)
}

// ways are those in which the requests of a round may have been written, by the provider's name:
// each that its own provider has (codecs), with each of its fallbacks. The configured ones come
// first.
func (l *local) ways(round regie.Round) (out []func(name string) (provider.Provider, error)) {
	var policy approval.Policy
	_ = json.Unmarshal(round.Policy, &policy) // who rebuilds the round says what is wrong with it
	others := 1
	for _, f := range policy.Fallback {
		others = max(others, len(l.codecs(f.Provider)))
	}
	for _, own := range l.codecs(round.Provider) {
		for i := range others {
			out = append(out, func(name string) (provider.Provider, error) {
				if name == round.Provider {
					return own()
				}
				codecs := l.codecs(name)
				return codecs[min(i, len(codecs)-1)]()
			})
		}
	}
	return out
}
