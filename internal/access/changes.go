package access

import (
	"context"
	"path"
	"slices"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
)

// allowed returns why a caller may not do what a scope opens to things that have ids.
func (c *confined) allowed(ctx context.Context, scope regie.TokenScope, ids ...regie.ID) error {
	if err := Require(ctx, scope); err != nil {
		return err
	}
	return c.mine(ctx, ids...)
}

// Decide implements dispatch.Control.
func (c *confined) Decide(ctx context.Context, in dispatch.DecideRequest) (store.Resolved, error) {
	if err := c.allowed(ctx, regie.ScopeApprove, in.ApprovalID); err != nil {
		return store.Resolved{}, err
	}
	in.By = From(ctx).By(in.By)
	return c.inner.Decide(ctx, in)
}

// Review implements dispatch.Control. It shows what only those see who may decide.
func (c *confined) Review(ctx context.Context, in dispatch.DecideRequest) (dispatch.Reviewed, error) {
	if err := c.allowed(ctx, regie.ScopeApprove, in.ApprovalID); err != nil {
		return dispatch.Reviewed{}, err
	}
	return c.inner.Review(ctx, in)
}

// Answer implements dispatch.Control.
func (c *confined) Answer(ctx context.Context, in dispatch.AnswerRequest) (store.Resolved, error) {
	if err := c.allowed(ctx, regie.ScopeApprove, in.QuestionID); err != nil {
		return store.Resolved{}, err
	}
	in.By = From(ctx).By(in.By)
	return c.inner.Answer(ctx, in)
}

// Resolve implements dispatch.Control.
func (c *confined) Resolve(ctx context.Context, in dispatch.ResolveRequest) error {
	if err := c.allowed(ctx, regie.ScopeApprove, in.CallID); err != nil {
		return err
	}
	in.By = From(ctx).By(in.By)
	return c.inner.Resolve(ctx, in)
}

// Revoke implements dispatch.Control.
func (c *confined) Revoke(ctx context.Context, in dispatch.RevokeRequest) error {
	if err := c.allowed(ctx, regie.ScopeAdmin, in.RuleIDs...); err != nil {
		return err
	}
	in.By = From(ctx).By(in.By)
	return c.inner.Revoke(ctx, in)
}

// Remove implements dispatch.Sessions. A session of an OpenAI-compatible client is its token's own,
// which may have it forgotten.
func (c *confined) Remove(ctx context.Context, in dispatch.RemoveRequest) (store.Removed, error) {
	if err := c.mine(ctx, in.SessionID); err != nil {
		return store.Removed{}, err
	}
	if err := Require(ctx, regie.ScopeAdmin); err != nil {
		view, failed := c.inner.Sessions(ctx, store.SessionFilter{ID: in.SessionID, Limit: 1})
		if failed != nil || len(view) == 0 || view[0].Origin != regie.OriginAPISession ||
			!From(ctx).Began(&view[0].Session) || Require(ctx, regie.ScopeCompletions) != nil {
			return store.Removed{}, err
		}
	}
	in.By = From(ctx).By(in.By)
	return c.inner.Remove(ctx, in)
}

// Rename implements dispatch.Sessions.
func (c *confined) Rename(ctx context.Context, in dispatch.RenameRequest) error {
	if err := c.mine(ctx, in.SessionID); err != nil {
		return err
	}
	return c.inner.Rename(ctx, in)
}

// MarkRead implements dispatch.Sessions.
func (c *confined) MarkRead(ctx context.Context, in dispatch.ReadRequest) error {
	if err := c.mine(ctx, in.SessionID); err != nil {
		return err
	}
	return c.inner.MarkRead(ctx, in)
}

// reads returns CodeNotFound for a session that the caller may not read: one that its token did not
// begin, where that does not have the scope for it.
func (c *confined) reads(ctx context.Context, session regie.ID) error {
	if err := c.mine(ctx, session); err != nil || From(ctx).Has(regie.ScopeRead) {
		return err
	}
	found, err := c.inner.Sessions(ctx, store.SessionFilter{ID: session, Limit: 1})
	if err == nil && (len(found) == 0 || found[0].ID != session || !From(ctx).Began(&found[0].Session)) {
		err = NotFound(session)
	}
	return err
}

// Fork implements dispatch.Sessions. A fork is its caller's own, so that what a token may not read
// it may not copy.
func (c *confined) Fork(ctx context.Context, in dispatch.ForkRequest) (store.Forked, error) {
	err := c.reads(ctx, in.From)
	if err == nil && !in.RoundID.IsZero() {
		err = c.mine(ctx, in.RoundID)
	}
	if err == nil {
		err = c.mineOrNew(ctx, in.SessionID)
	}
	if err != nil {
		return store.Forked{}, err
	}
	caller := From(ctx)
	in.TokenID = caller.Token.ID
	out, err := c.inner.Fork(ctx, in)
	// one that somebody else made of it
	if err == nil && out.Session.TokenID != caller.Token.ID && !caller.Has(regie.ScopeRead) {
		return store.Forked{}, regie.Errorf(regie.CodeConflict, "the session id %s is taken", in.SessionID)
	}
	return out, err
}

// PlanUndo implements dispatch.Undoing.
func (c *confined) PlanUndo(ctx context.Context, in dispatch.UndoRequest) (regie.UndoPlan, error) {
	if err := c.undoes(ctx, &in); err != nil {
		return regie.UndoPlan{}, err
	}
	return c.inner.PlanUndo(ctx, in)
}

// Undo implements dispatch.Undoing. To who may not read the session, the answer says nothing of
// what was made there.
func (c *confined) Undo(ctx context.Context, in dispatch.UndoRequest) (regie.Undo, error) {
	if in.Force {
		if err := Require(ctx, regie.ScopeAdmin); err != nil {
			return regie.Undo{}, err
		}
	}
	if err := c.undoes(ctx, &in); err != nil {
		return regie.Undo{}, err
	}
	in.By = From(ctx).By(in.By)
	out, err := c.inner.Undo(ctx, in)
	if err != nil {
		return regie.Undo{}, c.notUndone(ctx, in, err)
	}
	if err := c.reads(ctx, out.SessionID); regie.CodeOf(err) == regie.CodeNotFound {
		out.Files, out.Makes, out.Removes, out.Effects = []regie.UndoFile{}, nil, nil, nil
	} else if err != nil {
		return regie.Undo{}, err
	}
	return out, nil
}

// notUndone is why an undo was refused, as its caller may know it: which files of a session are in
// the way is for who may read that.
func (c *confined) notUndone(ctx context.Context, in dispatch.UndoRequest, err error) error {
	if From(ctx).Has(regie.ScopeRead) {
		return err
	}
	switch regie.CodeOf(err) {
	case regie.CodeBadRequest, regie.CodeBadID, regie.CodeNotFound, regie.CodeRoundInProgress, regie.CodeStalePreview,
		regie.CodeEngineGone, regie.CodeInternal:
		return err // about what was asked, and nothing that was made
	}
	plan, failed := c.inner.PlanUndo(ctx, in) // it says whose session is meant, however that was named
	if failed == nil && c.reads(ctx, plan.SessionID) == nil {
		return err
	}
	if regie.CodeOf(err) == regie.CodeUndoConflict {
		return regie.Errorf(regie.CodeUndoConflict,
			"nothing was undone: files are not as the run left them; who may read the session is told which")
	}
	return regie.Errorf(regie.CodeOf(err), "the undo was refused; who may read the session is told why")
}

// undoes settles what an undo may be about.
func (c *confined) undoes(ctx context.Context, in *dispatch.UndoRequest) error {
	caller := From(ctx)
	switch {
	case caller == nil:
		return ErrNobody
	case !caller.Restricted():
		return nil
	}
	if err := inPart(ctx, in.Short); err != nil {
		return err
	}
	ids := slices.Clone(in.Over)
	for _, id := range []regie.ID{in.Target, in.SessionID} {
		if !id.IsZero() {
			ids = append(ids, id)
		}
	}
	if in.Back != "" {
		back, err := regie.ParseID(in.Back)
		if err != nil {
			return inPart(ctx, in.Back)
		}
		ids = append(ids, back)
	}
	if err := c.mine(ctx, ids...); err != nil {
		return err
	}
	if err := c.mineOrNew(ctx, in.UndoID); err != nil {
		return err
	}
	roots, err := c.at(ctx, in.Root)
	switch {
	case err != nil:
		return err
	case len(ids) > len(in.Over): // an id says where
		return nil
	case len(roots) != 1:
		return regie.Errorf(regie.CodeBadRequest, "say which workspace is meant")
	}
	in.Root = roots[0]
	return nil
}

// ClearCache implements dispatch.Caching.
func (c *confined) ClearCache(ctx context.Context, in dispatch.ClearRequest) (dispatch.Cleared, error) {
	var out dispatch.Cleared
	if err := Require(ctx, regie.ScopeAdmin); err != nil {
		return out, err
	}
	roots, err := c.at(ctx, in.Root)
	for _, at := range roots {
		some, err := c.inner.ClearCache(ctx, dispatch.ClearRequest{Root: at})
		if out.Entries += some.Entries; err != nil {
			return out, err
		}
	}
	return out, err
}

// OpenWorkspace implements dispatch.Places. Which directories of the machine agents work in is the
// admin's to say: others open what is there already. A restricted caller opens what it sees, by a
// directory of it: nothing is made, and no file is looked at.
func (c *confined) OpenWorkspace(ctx context.Context, in dispatch.WorkspaceRequest) (regie.Workspace, error) {
	caller := From(ctx)
	switch {
	case caller == nil:
		return regie.Workspace{}, ErrNobody
	case !slices.ContainsFunc([]regie.TokenScope{regie.ScopeChat, regie.ScopeMCP, regie.ScopeAdmin}, caller.Has):
		// they work there, readers look
		if err := Require(ctx, regie.ScopeRead); err != nil {
			return regie.Workspace{}, err
		}
	}
	if !caller.Restricted() {
		in.Known = !caller.Has(regie.ScopeAdmin)
		return c.inner.OpenWorkspace(ctx, in)
	}
	places, err := c.places(ctx)
	var found regie.Workspace
	for i := range places {
		if root := places[i].Root; root != "" && len(root) > len(found.Root) &&
			(in.Path == root || strings.HasPrefix(path.Clean(in.Path), strings.TrimSuffix(root, "/")+"/")) {
			found = places[i]
		}
	}
	if found.Root != "" {
		return found, nil
	}
	if err == nil {
		err = regie.Errorf(regie.CodeNotFound, "there is no workspace at %s here", in.Path)
	}
	return regie.Workspace{}, err
}

// NewSession implements dispatch.Places.
func (c *confined) NewSession(ctx context.Context, in dispatch.SessionRequest) (regie.Session, error) {
	err := c.mineOrNew(ctx, in.SessionID)
	if err == nil && !in.WorkspaceID.IsZero() && !From(ctx).Sees(in.WorkspaceID) {
		err = NotFound(in.WorkspaceID)
	}
	if err != nil {
		return regie.Session{}, err
	}
	caller := From(ctx)
	in.TokenID = caller.Token.ID
	made, err := c.inner.NewSession(ctx, in)
	// somebody else's, which this one may not read
	if err == nil && made.TokenID != caller.Token.ID && !caller.Has(regie.ScopeRead) {
		return regie.Session{}, regie.Errorf(regie.CodeConflict, "the session id %s is taken", in.SessionID)
	}
	return made, err
}

// Query implements dispatch.Places.
func (c *confined) Query(ctx context.Context, in dispatch.QueryRequest) (dispatch.QueryResult, error) {
	caller := From(ctx)
	switch {
	case caller == nil:
		return dispatch.QueryResult{}, ErrNobody
	case !caller.Sees(in.WorkspaceID):
		return dispatch.QueryResult{}, NotFound(in.WorkspaceID)
	}
	return c.inner.Query(ctx, in)
}
