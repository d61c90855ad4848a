package access

import (
	"context"
	"slices"
	"sync"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
)

// Confine returns a Control of which each caller sees and does what its token opens: where nobody
// was let in, nothing. It has every method of Control by itself, so that a new one is not served
// before it is decided here whose it is. workspaceOf finds whose an id is, as Store.WorkspaceOf.
func Confine(inner dispatch.Control, workspaceOf func(context.Context, regie.ID) (regie.ID, error)) dispatch.Control {
	return &confined{inner: inner, workspaceOf: workspaceOf, known: map[regie.ID]regie.ID{}}
}

type confined struct {
	inner       dispatch.Control
	workspaceOf func(context.Context, regie.ID) (regie.ID, error)

	mu    sync.Mutex
	known map[regie.ID]regie.ID // of what; it never changes
}

// maxKnown bounds how many ids it is remembered of whose they are.
const maxKnown = 4096

func (c *confined) find(ctx context.Context, id regie.ID) (regie.ID, error) {
	c.mu.Lock()
	workspace, ok := c.known[id]
	c.mu.Unlock()
	if ok {
		return workspace, nil
	}
	workspace, err := c.workspaceOf(ctx, id)
	if err == nil {
		c.mu.Lock()
		if len(c.known) >= maxKnown {
			clear(c.known)
		}
		c.known[id] = workspace
		c.mu.Unlock()
	}
	return workspace, err
}

// mine returns CodeNotFound, in the same words, for ids that are not there and for those of
// workspaces that the caller does not see.
func (c *confined) mine(ctx context.Context, ids ...regie.ID) error {
	caller := From(ctx)
	if caller == nil {
		return ErrNobody
	}
	if !caller.Restricted() {
		return nil
	}
	for _, id := range ids {
		workspace, err := c.find(ctx, id)
		if err != nil && regie.CodeOf(err) != regie.CodeNotFound {
			return err
		}
		if err != nil || !caller.Sees(workspace) {
			return NotFound(id)
		}
	}
	return nil
}

// NotFound is the error for an id that is not there, or that the caller does not see.
func NotFound(id regie.ID) error {
	return regie.Errorf(regie.CodeNotFound, "there is nothing %s here", id)
}

// mineOrNew is mine for ids that a request gives to what it makes: they may be there already.
func (c *confined) mineOrNew(ctx context.Context, id regie.ID) error {
	caller := From(ctx)
	if caller == nil {
		return ErrNobody
	}
	if !caller.Restricted() || id.IsZero() {
		return nil
	}
	workspace, err := c.find(ctx, id)
	switch {
	case regie.CodeOf(err) == regie.CodeNotFound:
		return nil
	case err == nil && !caller.Sees(workspace):
		return NotFound(id)
	}
	return err
}

// places are the workspaces that the caller sees.
func (c *confined) places(ctx context.Context) ([]regie.Workspace, error) {
	caller := From(ctx)
	if caller == nil {
		return nil, ErrNobody
	}
	all, err := c.inner.Workspaces(ctx)
	return slices.DeleteFunc(all, func(w regie.Workspace) bool { return !caller.Sees(w.ID) }), err
}

// at returns the roots that a request is about: that which it names, or all that the caller sees.
// For a caller who sees everything there is one, as it was named: "" is all of them.
func (c *confined) at(ctx context.Context, root string) ([]string, error) {
	caller := From(ctx)
	switch {
	case caller == nil:
		return nil, ErrNobody
	case !caller.Restricted():
		return []string{root}, nil
	}
	places, err := c.places(ctx)
	if err != nil {
		return nil, err
	}
	out := []string{}
	for i := range places {
		if at := places[i].Root; at != "" && (root == "" || root == at) { // an empty root would be all of them
			out = append(out, at)
		}
	}
	if root != "" && len(out) == 0 {
		return nil, regie.Errorf(regie.CodeNotFound, "there is no workspace at %s here", root)
	}
	return out, nil
}

// each gathers what a list has of each root.
func each[T any](roots []string, list func(root string) ([]T, error)) ([]T, error) {
	out := []T{}
	for _, root := range roots {
		some, err := list(root)
		if err != nil {
			return nil, err
		}
		if len(roots) == 1 {
			return some, nil
		}
		out = append(out, some...)
	}
	return out, nil
}

// inPart returns CodeBadRequest where a restricted caller names something by a part of its id: what
// others have could be the one that is meant.
func inPart(ctx context.Context, part string) error {
	if caller := From(ctx); caller != nil && caller.Restricted() && part != "" {
		return regie.Errorf(regie.CodeBadRequest,
			"a token that is restricted to workspaces names things by their whole ids")
	}
	return nil
}

// NoNewWorkspace is why somebody without the scope admin works in no directory that is no workspace
// yet.
func NoNewWorkspace(root string) error {
	return regie.Errorf(regie.CodeMissingScope,
		"%s is no workspace yet: to make one of it needs a token with the scope %s", root, string(regie.ScopeAdmin))
}

// Submit implements dispatch.Control. What a run allows beforehand is an approval, a message that
// is taken as the answer to a question is an answer, and a directory that nobody has worked in yet
// is the admin's to name.
func (c *confined) Submit(ctx context.Context, in dispatch.RunRequest) (dispatch.Run, error) {
	caller := From(ctx)
	if caller == nil {
		return dispatch.Run{}, ErrNobody
	}
	if len(in.Policy.Allow) > 0 {
		if err := Require(ctx, regie.ScopeApprove); err != nil {
			return dispatch.Run{}, err
		}
	}
	in.By, in.TokenID, in.LeavesWaits = caller.By(""), caller.Token.ID, in.LeavesWaits ||
		!caller.Has(regie.ScopeApprove)
	switch {
	case caller.Restricted():
		if err := c.place(ctx, &in); err != nil {
			return dispatch.Run{}, err
		}
	case in.Root != "" && !caller.Has(regie.ScopeAdmin):
		all, err := c.inner.Workspaces(ctx)
		if err != nil {
			return dispatch.Run{}, err
		}
		if !slices.ContainsFunc(all, func(w regie.Workspace) bool { return w.Root == in.Root }) {
			return dispatch.Run{}, NoNewWorkspace(in.Root)
		}
	}
	return c.inner.Submit(ctx, in)
}

// place has a message go into a session that is the caller's, or into a new one of a workspace that
// is.
func (c *confined) place(ctx context.Context, in *dispatch.RunRequest) error {
	if !in.WorkspaceID.IsZero() && !From(ctx).Sees(in.WorkspaceID) {
		return NotFound(in.WorkspaceID)
	}
	if in.Root != "" {
		if _, err := c.at(ctx, in.Root); err != nil {
			return err
		}
	}
	return c.mineOrNew(ctx, in.SessionID)
}

// Interrupt implements dispatch.Control.
func (c *confined) Interrupt(ctx context.Context, round regie.ID) error {
	return c.say(ctx, round, c.inner.Interrupt)
}

// Pause implements dispatch.Control.
func (c *confined) Pause(ctx context.Context, round regie.ID) error {
	return c.say(ctx, round, c.inner.Pause)
}

// Resume implements dispatch.Control.
func (c *confined) Resume(ctx context.Context, round regie.ID) error {
	return c.say(ctx, round, c.inner.Resume)
}

// TakeBack implements dispatch.Control. To who may not read, what others said is not there.
func (c *confined) TakeBack(ctx context.Context, in dispatch.TakeBackRequest) (regie.Message, error) {
	if err := c.mine(ctx, in.SessionID); err != nil {
		return regie.Message{}, err
	}
	if caller := From(ctx); !caller.Has(regie.ScopeRead) {
		in.TokenID = caller.Token.ID
	}
	return c.inner.TakeBack(ctx, in)
}

// CloseSession implements dispatch.Control.
func (c *confined) CloseSession(ctx context.Context, session regie.ID) error {
	return c.say(ctx, session, c.inner.CloseSession)
}

// ReleaseControl implements dispatch.Control.
func (c *confined) ReleaseControl(ctx context.Context, session regie.ID) error {
	return c.say(ctx, session, c.inner.ReleaseControl)
}

func (c *confined) say(ctx context.Context, to regie.ID, word func(context.Context, regie.ID) error) error {
	if err := c.mine(ctx, to); err != nil {
		return err
	}
	return word(ctx, to)
}

// ask asks about one thing that is the caller's.
func ask[A any](ctx context.Context, c *confined, about regie.ID,
	question func(context.Context, regie.ID) (A, error),
) (A, error) {
	if err := c.mine(ctx, about); err != nil {
		var none A
		return none, err
	}
	return question(ctx, about)
}

// Stop implements dispatch.Control. To who may not read, only what they said themselves comes back.
func (c *confined) Stop(ctx context.Context, session regie.ID) (dispatch.Stopped, error) {
	out, err := ask(ctx, c, session, c.inner.Stop)
	if caller := From(ctx); err == nil && !caller.Has(regie.ScopeRead) {
		out.Withdrawn = slices.DeleteFunc(out.Withdrawn, func(m regie.Message) bool {
			return m.Author.TokenID != caller.Token.ID
		})
	}
	return out, err
}

// RequestControl implements dispatch.Control.
func (c *confined) RequestControl(ctx context.Context, session regie.ID) (store.Controlled, error) {
	return ask(ctx, c, session, c.inner.RequestControl)
}

// Get implements dispatch.Control.
func (c *confined) Get(ctx context.Context, round regie.ID) (store.RoundView, error) {
	return ask(ctx, c, round, c.inner.Get)
}

// Session implements dispatch.Sessions.
func (c *confined) Session(ctx context.Context, session regie.ID) (store.SessionView, error) {
	return ask(ctx, c, session, c.inner.Session)
}

// Export implements dispatch.Sessions.
func (c *confined) Export(ctx context.Context, session regie.ID) (store.SessionExport, error) {
	return ask(ctx, c, session, c.inner.Export)
}

// Replay implements dispatch.Sessions.
func (c *confined) Replay(ctx context.Context, round regie.ID) (dispatch.Replay, error) {
	return ask(ctx, c, round, c.inner.Replay)
}

// Events implements dispatch.Control.
func (c *confined) Events(ctx context.Context, session regie.ID, after int64, sink func(dispatch.Item) error) error {
	if err := c.mine(ctx, session); err != nil {
		return err
	}
	return c.inner.Events(ctx, session, after, sink)
}

// Watch implements dispatch.Control. Of what is nobody's nothing is told.
func (c *confined) Watch(ctx context.Context, sink func(regie.Event) error) error {
	caller := From(ctx)
	switch {
	case caller == nil:
		return ErrNobody
	case !caller.Restricted():
		return c.inner.Watch(ctx, sink)
	}
	return c.inner.Watch(ctx, func(e regie.Event) error {
		if e.SessionID.IsZero() {
			return sink(e)
		}
		switch regie.CodeOf(c.mine(ctx, e.SessionID)) {
		case "":
			return sink(e)
		case regie.CodeNotFound:
			return nil
		default: // whose it is could not be read: what is missed is looked for
			return sink(regie.Event{Type: regie.EventSession})
		}
	})
}
