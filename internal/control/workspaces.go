package control

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/access"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/engine"
	"github.com/regie-run/regie/internal/workspace"
)

// Workspaces are the directories that agents work in (spec 8.1).
type Workspaces struct{ *core }

// List lists the workspaces that the caller sees, by name.
func (w *Workspaces) List(ctx context.Context) ([]regie.Workspace, error) {
	caller, err := w.authorize(ctx, "list_workspaces")
	if err != nil {
		return nil, err
	}
	places, err := w.visible(ctx, caller)
	if err != nil {
		return nil, err
	}
	active, err := w.Store.LastActive(ctx)
	for i := range places {
		places[i].LastActive = active[places[i].ID]
	}
	return places, err
}

// Open returns the workspace that a directory of the engine's machine belongs to, and makes it the
// first time. Only an admin makes one: others open what is there already. A restricted caller opens
// what it sees, by its root: nothing is made, and no file is looked at. It returns
// CodePathProtected for the home directory and / unless Here is set.
func (w *Workspaces) Open(ctx context.Context, in dispatch.WorkspaceRequest) (regie.Workspace, error) {
	caller, err := w.authorize(ctx, "open_workspace")
	opening := []regie.TokenScope{regie.ScopeRead, regie.ScopeChat, regie.ScopeMCP, regie.ScopeAdmin}
	if err == nil && !slices.ContainsFunc(opening, caller.Has) {
		err = access.MissingScope(regie.ScopeRead)
	}
	if err != nil {
		return regie.Workspace{}, err
	}
	if !caller.Restricted() {
		return w.open(ctx, in, !caller.Has(regie.ScopeAdmin))
	}
	places, err := w.visible(ctx, caller)
	place, there := placeAt(places, in.Path)
	if err == nil && (!there || in.Path == "") {
		return regie.Workspace{}, regie.Errorf(regie.CodeNotFound, "there is no workspace at %s here", in.Path)
	}
	return place, err
}

func (w *Workspaces) open(ctx context.Context, in dispatch.WorkspaceRequest, known bool) (regie.Workspace, error) {
	if w.ReadOnly && !w.StoreOnly {
		return regie.Workspace{}, errRunsNothing
	}
	if !strings.HasPrefix(in.Path, "/") {
		return regie.Workspace{}, regie.Errorf(regie.CodePathInvalid,
			"the workspace %q is not an absolute path", in.Path)
	}
	root, foundBy, err := workspace.Detect(in.Path, os.Getenv("HOME"), in.Here || known)
	if known {
		return w.openKnown(ctx, in.Path, root, err)
	}
	if err != nil {
		return regie.Workspace{}, err
	}
	_, place, err := w.ensureWorkspace(ctx, root, foundBy, in.Here)
	return place, err
}

// openKnown returns the workspace that is there already at a root. Who may make none does not learn
// either what there is on this machine: err, why there is no root, is not told.
func (w *Workspaces) openKnown(ctx context.Context, named, root string, err error) (regie.Workspace, error) {
	if err == nil {
		all, err := w.Store.Workspaces(ctx)
		if err != nil {
			return regie.Workspace{}, err
		}
		if place, there := placeAt(all, root); there {
			return place, w.refuseOwn(root)
		}
	}
	return regie.Workspace{}, noNewWorkspace(named)
}

// placeAt returns the workspace at a root.
func placeAt(places []regie.Workspace, root string) (place regie.Workspace, there bool) {
	at := slices.IndexFunc(places, func(w regie.Workspace) bool { return w.Root == root })
	if at < 0 {
		return regie.Workspace{}, false
	}
	return places[at], true
}

// noNewWorkspace is why a caller without the scope admin works in no directory that is no workspace
// yet.
func noNewWorkspace(root string) error {
	return regie.Errorf(regie.CodeMissingScope,
		"%s is not a workspace yet: creating one requires a token with the scope %s", root, string(regie.ScopeAdmin))
}

// ForClients returns the workspace for the sessions of an OpenAI-compatible client: that at root,
// or for a restricted caller the first one that it may see.
func (w *Workspaces) ForClients(ctx context.Context, root, foundBy string) (regie.Workspace, error) {
	caller, err := w.authorize(ctx, "client_workspace")
	if err != nil {
		return regie.Workspace{}, err
	}
	if !caller.Restricted() {
		_, place, err := w.ensureWorkspace(ctx, root, foundBy, false)
		return place, err
	}
	places, err := w.visible(ctx, caller)
	if err == nil && len(places) == 0 {
		err = regie.Errorf(regie.CodeNotFound, "the token can access no workspace here")
	}
	if err != nil {
		return regie.Workspace{}, err
	}
	place, there := placeAt(places, root)
	if !there {
		place = places[0]
	}
	return place, w.refuseOwn(place.Root)
}

// Query calls a query of a workspace, without a model and without a session (spec 4.1): it is
// validated and judged as a model's call is. It returns CodeForbidden for an action,
// CodePathProtected for what a person would have to be asked about, and the tool's own codes.
func (w *Workspaces) Query(ctx context.Context, in dispatch.QueryRequest) (dispatch.QueryResult, error) {
	caller, err := w.authorize(ctx, "query_workspace")
	switch {
	case err != nil:
		return dispatch.QueryResult{}, err
	case !caller.Sees(in.WorkspaceID):
		return dispatch.QueryResult{}, notFound(in.WorkspaceID)
	case w.ReadOnly:
		return dispatch.QueryResult{}, errRunsNothing
	}
	place, err := w.findWorkspace(ctx, in.WorkspaceID)
	if err != nil {
		return dispatch.QueryResult{}, err
	}
	content, err := w.Engine.Query(ctx, engine.Query{Workspace: place, Tool: in.Tool, Arguments: in.Arguments})
	return dispatch.QueryResult{Content: content}, err
}

// ensureWorkspace returns the owner and the workspace of a root, and makes that the first time.
func (c *core) ensureWorkspace(ctx context.Context, root, foundBy string, here bool) (
	regie.User, regie.Workspace, error,
) {
	owner, err := c.Owner(ctx)
	if err != nil {
		return owner, regie.Workspace{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if place, ok := c.workspaces[root]; ok {
		return owner, place, nil
	}
	if err := c.checkNew(ctx, root, here); err != nil {
		return owner, regie.Workspace{}, err
	}
	place, err := c.Store.EnsureWorkspace(ctx, owner.ID,
		regie.Workspace{Name: filepath.Base(root), Root: root, FoundBy: foundBy})
	if err == nil {
		c.workspaces[root] = place
	}
	return owner, place, err
}

func (c *core) findWorkspace(ctx context.Context, id regie.ID) (regie.Workspace, error) {
	all, err := c.Store.Workspaces(ctx)
	if err != nil {
		return regie.Workspace{}, err
	}
	for _, w := range all {
		if w.ID == id {
			return w, c.refuseOwn(w.Root)
		}
	}
	return regie.Workspace{}, regie.Errorf(regie.CodeNotFound, "there is no workspace %s here", id)
}

// OwnPlace is the workspace of sessions that live in none of a person's, in the data directory.
func OwnPlace(dir string) string { return filepath.Join(dir, "workspace") }

// refuseOwn returns CodePathProtected for what lies in the data directory or among the settings:
// keys lie there, and what decides what an agent may do. A workspace that was made there before is
// none any more.
func (c *core) refuseOwn(root string) error {
	found := workspace.Resolved(root)
	if dir := c.Settings.DataDir; root == OwnPlace(dir) || found == OwnPlace(workspace.Resolved(dir)) {
		return nil
	}
	within := func(dir string) bool { return IsBelow(workspace.Resolved(dir), found) || IsBelow(dir, root) }
	switch {
	case within(c.Settings.OwnDir()):
		return regie.Errorf(regie.CodePathProtected,
			"%s is inside Regie's data directory: change to a project's directory", root)
	case slices.ContainsFunc(c.Private, within):
		return regie.Errorf(regie.CodePathProtected,
			"%s is inside Regie's settings directory: change to a project's directory", root)
	}
	return nil
}

// checkNew is refuseOwn, and refuses a directory that cannot become a workspace
// (workspace.Settled).
func (c *core) checkNew(ctx context.Context, root string, here bool) error {
	dir := c.Settings.DataDir
	if err := c.refuseOwn(root); err != nil || root == OwnPlace(dir) || root == OwnPlace(workspace.Resolved(dir)) {
		return err
	}
	all, err := c.Store.Workspaces(ctx)
	if _, there := placeAt(all, root); err != nil || there {
		return err
	}
	return workspace.Settled(root, os.Getenv("HOME"), here)
}

// IsBelow reports whether a path is a directory or lies in it, by their names.
func IsBelow(dir, path string) bool {
	within, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(within)
}
