package control

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/engine"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/tool"
)

// Replay runs a stored round once more from the store alone and compares what it would ask of the
// model. Only the requests' hashes are kept, so where the settings of then are not configured here
// the ways in which a provider's requests differ by vendor are tried in turn: the right one is that
// under which the first request is what was sent.
func (r *Rounds) Replay(ctx context.Context, round regie.ID) (dispatch.Replay, error) {
	out := dispatch.Replay{RoundID: round, Steps: []dispatch.ReplayStep{}}
	if _, err := r.authorize(ctx, "replay_round", round); err != nil {
		return dispatch.Replay{}, err
	}
	view, err := r.Store.RoundView(ctx, round)
	if err != nil {
		return out, err
	}
	if _, err := r.Store.Verify(ctx, view.Session.ID); err != nil {
		return out, err // what was tampered with is no evidence
	}
	thread, err := r.Store.Thread(ctx, view.Session.ID, 0)
	if err != nil {
		return out, err
	}
	tools := r.Tools(ctx)
	for i, codecs := range r.codecsOf(view.Round) {
		again, err := engine.New(engine.Config{
			Store: r.Store, Tools: func(context.Context) *tool.Registry { return tools }, Providers: codecs,
		}).Replay(ctx, view, thread)
		switch {
		case err != nil && i == 0:
			return out, err
		case err != nil: // a vendor that cannot have been asked so
			continue
		}
		if i == 0 || again.Difference == 0 || out.Difference != 0 &&
			again.Difference > out.Difference {
			out = again
		}
		if out.Difference == 0 {
			break
		}
	}
	if out.Difference == 0 { // what was declared then is stored, whatever is there now
		return out, nil
	}
	for i := range view.Exchanges {
		for _, c := range view.Exchanges[i].Calls {
			if _, _, known := tools.Lookup(c.Tool); !known && c.NotRun != regie.NotRunOutOfScope &&
				!slices.Contains(out.Unknown, c.Tool) {
				out.Unknown = append(out.Unknown, c.Tool)
			}
		}
	}
	return out, nil
}

// Prompt returns what would be sent to a session's model now, or what was sent in a stored model
// call, byte for byte (decision 14).
func (r *Rounds) Prompt(ctx context.Context, in dispatch.PromptRequest) (dispatch.Prompt, error) {
	caller, err := r.authorize(ctx, "show_prompt")
	if err == nil {
		err = refusePart(caller, in.CallPart)
	}
	if err == nil {
		_, err = r.roots(ctx, caller, in.Root)
	}
	named := given(in.SessionID, in.RoundID, in.CallID)
	if err == nil {
		err = r.owns(ctx, caller, named...)
	}
	if err != nil {
		return dispatch.Prompt{}, err
	}
	if in.CallPart != "" {
		named = append(named, regie.ID{})
	}
	if len(named) != 1 || !in.RoundID.IsZero() != (in.Exchange > 0) {
		return dispatch.Prompt{}, regie.Errorf(regie.CodeBadRequest,
			"a prompt is named by a session, by a call, or by a run and the number of one of its exchanges")
	}
	if in.CallPart != "" {
		if in.CallID, err = r.Store.CallNamed(ctx, in.Root, in.CallPart); err != nil {
			return dispatch.Prompt{}, err
		}
	}
	if !in.CallID.IsZero() {
		if in.RoundID, in.Exchange, err = r.Store.ExchangeOf(ctx, in.CallID); err != nil {
			return dispatch.Prompt{}, err
		}
	}
	if err := r.checkWithin(ctx, in); err != nil {
		return dispatch.Prompt{}, err
	}
	round, err := r.roundOf(ctx, in)
	if err != nil {
		return dispatch.Prompt{}, err
	}
	tools := r.Tools(ctx)
	var out dispatch.Prompt
	for i, codecs := range r.codecsOf(round) { // nothing is sent, so the settings of then need not be here: see Replay
		again, err := engine.New(engine.Config{
			Store: r.Store, Tools: func(context.Context) *tool.Registry { return tools }, Providers: codecs,
			Scoped: r.Projects.ToolsIn,
		}).Prompt(ctx, engine.PromptRequest{
			SessionID: in.SessionID, RoundID: in.RoundID, Exchange: in.Exchange,
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

// checkWithin reports what is not in the workspace that was named as not found (spec 2.1).
func (r *Rounds) checkWithin(ctx context.Context, in dispatch.PromptRequest) error {
	if in.Root == "" {
		return nil
	}
	id, session := in.SessionID, in.SessionID
	if !in.RoundID.IsZero() {
		round, err := r.Store.Round(ctx, in.RoundID)
		if err != nil {
			return err
		}
		id, session = in.RoundID, round.SessionID
	}
	_, workspace, err := r.Store.Session(ctx, session)
	if err == nil && workspace.Root != in.Root {
		err = regie.Errorf(regie.CodeNotFound, "nothing in this workspace has the id %s: look everywhere with --all",
			id)
	}
	return err
}

// roundOf is the round whose request is meant.
func (r *Rounds) roundOf(ctx context.Context, in dispatch.PromptRequest) (regie.Round, error) {
	if in.RoundID.IsZero() {
		return r.Store.LastRound(ctx, in.SessionID)
	}
	return r.Store.Round(ctx, in.RoundID)
}

// codecsOf are those in which the requests of a round may have been written, by the provider's
// name: each that its own provider has (codecs), with each of its fallbacks. The configured ones
// come first.
func (r *Rounds) codecsOf(round regie.Round) (out []func(name string) (provider.Provider, error)) {
	var policy approval.Policy
	_ = json.Unmarshal(round.Policy, &policy) // who rebuilds the round says what is wrong with it
	others := 1
	for _, f := range policy.Fallback {
		others = max(others, len(r.Codecs(f.Provider)))
	}
	for _, own := range r.Codecs(round.Provider) {
		for i := range others {
			out = append(out, func(name string) (provider.Provider, error) {
				if name == round.Provider {
					return own()
				}
				codecs := r.Codecs(name)
				return codecs[min(i, len(codecs)-1)]()
			})
		}
	}
	return out
}
