package control

import (
	"context"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/engine"
	"github.com/regie-run/regie/internal/store"
)

// Replay runs a stored round once more from the store alone and compares what it would ask of the
// model. Its provider is written to as the settings say now.
func (r *Rounds) Replay(ctx context.Context, round regie.ID) (dispatch.Replay, error) {
	if _, err := r.authorize(ctx, "replay_round", round); err != nil {
		return dispatch.Replay{}, err
	}
	var thread store.Thread
	view, err := r.Store.RoundView(ctx, round)
	if err == nil {
		_, err = r.Store.Verify(ctx, view.Session.ID) // what was tampered with is no evidence
	}
	if err == nil {
		thread, err = r.Store.Thread(ctx, view.Session.ID, 0)
	}
	if err != nil {
		return dispatch.Replay{}, err
	}
	return engine.New(engine.Config{Store: r.Store, Tools: r.Tools, Providers: r.Codec}).Replay(ctx, view, thread)
}

// Prompt returns what would be sent to a session's model now, or what was sent in a stored model
// call, byte for byte (decision 14).
func (r *Rounds) Prompt(ctx context.Context, in dispatch.PromptRequest) (dispatch.Prompt, error) {
	caller, err := r.authorize(ctx, "show_prompt")
	if err == nil {
		err = refusePart(caller, in.CallPart)
	}
	named := given(in.SessionID, in.RoundID, in.CallID)
	if err == nil {
		_, err = r.root(ctx, caller, in.Root, named...)
	}
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
			"name a prompt by a session, by a call, or by a run and the number of one of its exchanges")
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
	return engine.New(engine.Config{
		Store: r.Store, Tools: r.Tools, Providers: r.Codec, Scoped: r.Projects.ToolsIn,
	}).Prompt(ctx, engine.PromptRequest{
		SessionID: in.SessionID, RoundID: in.RoundID, Exchange: in.Exchange,
	})
}
