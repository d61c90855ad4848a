package engine

import (
	"context"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/prompt"
	"github.com/regie-run/regie/internal/store"
)

// Weighing is a round that is not begun: what it would run under, and the thread that its model
// would be shown.
type Weighing struct {
	Session   regie.Session
	Workspace regie.Workspace
	Round     regie.Round
	Thread    store.Thread
}

// Weigh estimates the tokens of the first request of a round, with its levels, its tools and its
// thread, as its provider would be sent it now. Nothing is sent.
func (e *Engine) Weigh(ctx context.Context, in Weighing) (int, error) {
	r, err := e.newRun(ctx, store.Claimed{Session: in.Session, Workspace: in.Workspace, Round: in.Round},
		e.workspaceTools(ctx, in.Workspace, e.cfg.Tools(ctx)))
	if err != nil {
		return 0, err
	}
	model, err := e.cfg.Providers(r.round.Provider, r.round.Pin)
	if err != nil {
		return 0, err
	}
	s := &showing{run: r, prompt: r.head.promptView()}
	s.out.Provider, s.out.Model, s.out.Window = r.round.Provider, r.round.Model,
		model.Capabilities(r.round.Model).ContextTokens
	if s.head, err = r.head.freshHead(ctx, prompt.Reply(r.cfg.MaxOutput, s.out.Window)); err != nil {
		return 0, err
	}
	s.entries = prompt.Entries(in.Thread.Messages, in.Thread.Calls)
	s.window = prompt.WindowOf(s.entries)
	err = s.buildPrompt(model)
	return s.out.Tokens, err
}
