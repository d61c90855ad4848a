package app

import (
	"cmp"
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/access"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/engine"
	"github.com/regie-run/regie/internal/plain"
	"github.com/regie-run/regie/internal/workspace"
)

// mainAgent answers where nothing else is said.
const mainAgent = "main"

// fill settles what a request leaves open of the workspace, the agent and the model: that of its
// session, else of this engine's settings. unnamed says that its session has no name yet.
func (l *local) fill(ctx context.Context, in *dispatch.RunRequest) (unnamed bool, err error) {
	if in.SessionID.IsZero() || in.Root != "" && in.Agent != "" && in.Provider != "" && in.Model != "" {
		return false, l.named(in)
	}
	session, place, err := l.store.Session(ctx, in.SessionID)
	switch {
	case err == nil && in.Root == "" && !in.WorkspaceID.IsZero() && in.WorkspaceID != place.ID:
		return false, regie.Errorf(regie.CodeNotFound, "there is no session %s in the workspace %s",
			in.SessionID, in.WorkspaceID)
	case regie.CodeOf(err) == regie.CodeNotFound:
		if place, err = l.known(ctx, in); err != nil {
			return false, err
		}
	case err != nil:
		return false, err
	}
	unnamed = !session.ID.IsZero() && session.Name == ""
	if in.Root == "" {
		in.Root, in.FoundBy = place.Root, place.FoundBy
	}
	in.Agent = cmp.Or(in.Agent, session.Agent, mainAgent)
	switch {
	case in.Provider == "" && in.Model == "" && session.Provider != "":
		in.Provider, in.Model = session.Provider, session.Model
	case in.Provider == "" && in.Model != "" && session.Provider != "":
		in.Provider = session.Provider
	case in.Provider == "" || in.Provider == l.config.Provider:
		in.Provider, in.Model = l.config.Provider, cmp.Or(in.Model, l.config.Model)
	}
	if in.Provider == "" || in.Model == "" {
		return false, cmp.Or(l.config.RequireModel(),
			error(regie.Errorf(regie.CodeNoModel, "the request names no model of the provider %s", in.Provider)))
	}
	if in.Settings.IsZero() && in.Provider != config.ProviderDemo { // the demo is the same everywhere
		in.Settings = l.config.FingerprintOf(in.Provider)
	}
	return unnamed, l.named(in)
}

// named has the agent of a request be one that there is, whose limits and instructions hold then,
// its provider one that this engine can ask, and a size that its provider maps be the model of
// that.
func (l *local) named(in *dispatch.RunRequest) error {
	if in.Agent != "" {
		if err := l.agent(in.Agent); err != nil {
			return err
		}
	}
	if in.Provider != "" {
		if err := l.sameModel(in); err != nil { // which also says why a provider is not there
			return err
		}
		if err := l.provider(in.Provider); err != nil {
			return err
		}
	}
	in.Model = l.config.ModelOf(in.Provider, in.Model)
	return nil
}

// sameModel returns CodeConflict where who asks, on this machine, has other settings of the model
// than this engine.
func (l *local) sameModel(in *dispatch.RunRequest) error {
	if in.Settings.IsZero() || in.Settings == l.config.FingerprintOf(in.Provider) {
		return nil
	}
	if at := l.served.Load(); at != nil { // it does not end with a run
		return regie.Errorf(regie.CodeConflict,
			"the server at %s works in %s with other settings of the model: use those with regie --server %s, or start it again with yours", *at, l.config.DataDir, *at)
	}
	return regie.Errorf(regie.CodeConflict,
		"the engine that holds %s was started with other settings of the model: wait until its run ends, or use another data directory", l.config.DataDir)
}

// provider returns CodeNotFound for one that is not configured.
func (l *local) provider(name string) error {
	if _, configured := l.config.Named(name); !configured && name != config.ProviderDemo {
		return regie.Errorf(regie.CodeNotFound,
			"there is no provider %q here: regie models lists those that are configured", plain.Line(name))
	}
	return nil
}

// agent returns CodeNotFound for one that is not configured.
func (l *local) agent(name string) error {
	if _, configured := l.config.File.Agents[name]; !configured && name != mainAgent {
		return regie.Errorf(regie.CodeNotFound, "there is no agent %q here", name)
	}
	return nil
}

// known is the workspace that a request for a new session names.
func (l *local) known(ctx context.Context, in *dispatch.RunRequest) (regie.Workspace, error) {
	switch {
	case in.Root != "":
		return regie.Workspace{Root: in.Root, FoundBy: in.FoundBy}, nil
	case in.WorkspaceID.IsZero():
		return regie.Workspace{}, regie.Errorf(regie.CodeBadRequest,
			"the request names neither a session that is there nor a workspace")
	default:
		return l.workspace(ctx, in.WorkspaceID)
	}
}

func (l *local) workspace(ctx context.Context, id regie.ID) (regie.Workspace, error) {
	all, err := l.store.Workspaces(ctx)
	if err != nil {
		return regie.Workspace{}, err
	}
	for _, w := range all {
		if w.ID == id {
			return w, l.unlessOwn(w.Root)
		}
	}
	return regie.Workspace{}, regie.Errorf(regie.CodeNotFound, "there is no workspace %s here", id)
}

// Workspaces implements dispatch.Places.
func (l *local) Workspaces(ctx context.Context) ([]regie.Workspace, error) {
	return l.store.Workspaces(ctx)
}

// OpenWorkspace implements dispatch.Places.
func (l *local) OpenWorkspace(ctx context.Context, in dispatch.WorkspaceRequest) (regie.Workspace, error) {
	if err := l.mayStore(); err != nil {
		return regie.Workspace{}, err
	}
	if !strings.HasPrefix(in.Path, "/") {
		return regie.Workspace{}, regie.Errorf(regie.CodePathInvalid,
			"the workspace %q is not an absolute path", in.Path)
	}
	root, foundBy, err := workspace.Detect(in.Path, os.Getenv("HOME"), in.Here || in.Known)
	if in.Known {
		return l.knownAt(ctx, in.Path, root, err)
	}
	if err != nil {
		return regie.Workspace{}, err
	}
	_, place, err := l.place(ctx, dispatch.RunRequest{Root: root, FoundBy: foundBy, Here: in.Here})
	return place, err
}

// knownAt is the workspace that is there already at a root. Who may make none does not learn either
// what there is on this machine: err, why there is no root, is not told.
func (l *local) knownAt(ctx context.Context, named, root string, err error) (regie.Workspace, error) {
	if err == nil {
		all, err := l.store.Workspaces(ctx)
		if err != nil {
			return regie.Workspace{}, err
		}
		if at := slices.IndexFunc(all, func(w regie.Workspace) bool { return w.Root == root }); at >= 0 {
			return all[at], l.unlessOwn(root)
		}
	}
	return regie.Workspace{}, access.NoNewWorkspace(named)
}

// NewSession implements dispatch.Places.
func (l *local) NewSession(ctx context.Context, in dispatch.SessionRequest) (regie.Session, error) {
	if err := l.mayStore(); err != nil {
		return regie.Session{}, err
	}
	switch in.Type {
	case "", regie.SessionChat, regie.SessionAutomation:
	default:
		return regie.Session{}, regie.Errorf(regie.CodeBadRequest,
			"a session of type %q is not made by hand: use CHAT or AUTOMATION", string(in.Type))
	}
	if in.WorkspaceID.IsZero() {
		return regie.Session{}, regie.Errorf(regie.CodeBadRequest,
			"the request names no workspace_id: POST /api/v1/workspaces gives that of a directory")
	}
	in.Agent = cmp.Or(in.Agent, mainAgent)
	if err := l.agent(in.Agent); err != nil {
		return regie.Session{}, err
	}
	name := ""
	if in.Name != "" {
		var err error
		if name, err = sessionName(plain.Strip(in.Name)); err != nil {
			return regie.Session{}, err
		}
	}
	place, err := l.workspace(ctx, in.WorkspaceID)
	if err != nil {
		return regie.Session{}, err
	}
	owner, _, err := l.place(ctx, dispatch.RunRequest{Root: place.Root, FoundBy: place.FoundBy})
	if err != nil {
		return regie.Session{}, err
	}
	if in.SessionID.IsZero() {
		in.SessionID = regie.NewID()
	}
	if _, err := l.store.CreateSession(ctx, regie.Session{
		ID: in.SessionID, WorkspaceID: place.ID, UserID: owner.ID, Agent: in.Agent, Name: name,
		Type:     cmp.Or(in.Type, regie.SessionChat),
		Provider: l.config.Provider, Model: l.config.Model, RequireValidation: in.RequireValidation,
		TokenID: in.TokenID,
	}); err != nil {
		return regie.Session{}, err
	}
	made, where, err := l.store.Session(ctx, in.SessionID) // the one that was there, where the request is said again
	if err == nil && (where.ID != place.ID || made.Type != cmp.Or(in.Type, regie.SessionChat) ||
		made.Agent != in.Agent || made.RequireValidation != in.RequireValidation) {
		return regie.Session{}, regie.Errorf(regie.CodeConflict, "the session id %s is taken", in.SessionID)
	}
	return made, err
}

// Agents implements dispatch.Places.
func (l *local) Agents(context.Context) ([]dispatch.AgentView, error) {
	return Agents(l.config), nil
}

// Agents are those of the settings, and the one that is always there.
func Agents(c config.Config) []dispatch.AgentView {
	names := slices.Collect(maps.Keys(c.File.Agents))
	if !slices.Contains(names, mainAgent) {
		names = append(names, mainAgent)
	}
	slices.Sort(names)
	out := []dispatch.AgentView{}
	for _, name := range names {
		out = append(out, dispatch.AgentView{Name: name, Provider: c.Provider, Model: c.Model})
	}
	return out
}

// Tools implements dispatch.Places.
func (l *local) Tools(ctx context.Context) ([]regie.ToolDefinition, error) {
	return l.tools(ctx).Definitions(), nil
}

// Providers implements dispatch.Places.
func (l *local) Providers(context.Context) ([]dispatch.ProviderView, error) {
	out := []dispatch.ProviderView{}
	names := l.config.ProviderNames()
	if l.config.Provider != "" && !slices.Contains(names, l.config.Provider) {
		names = append(names, l.config.Provider)
	}
	for _, name := range names {
		p, _ := l.config.Named(name)
		out = append(out, dispatch.ProviderView{
			Name: name, Type: cmp.Or(p.Type, name), BaseURL: p.BaseURL, HasKey: p.APIKey != "",
			Chosen: name == l.config.Provider,
		})
	}
	return out, nil
}

// Query implements dispatch.Places.
func (l *local) Query(ctx context.Context, in dispatch.QueryRequest) (dispatch.QueryResult, error) {
	if l.readOnly {
		return dispatch.QueryResult{}, errRunsNothing
	}
	place, err := l.workspace(ctx, in.WorkspaceID)
	if err != nil {
		return dispatch.QueryResult{}, err
	}
	content, err := l.engine.Query(ctx, engine.Query{Workspace: place, Tool: in.Tool, Arguments: in.Arguments})
	return dispatch.QueryResult{Content: content}, err
}

// ownPlace is the workspace of sessions that live in none of a person's, in the data directory.
func ownPlace(dir string) string { return filepath.Join(dir, "workspace") }

// unlessOwn returns CodePathProtected for what lies in the data directory or among the settings:
// keys lie there, and what decides what an agent may do. A workspace that was made there before is
// none any more.
func (l *local) unlessOwn(root string) error {
	found := workspace.Resolved(root)
	if dir := l.config.DataDir; root == ownPlace(dir) || found == ownPlace(workspace.Resolved(dir)) {
		return nil
	}
	within := func(dir string) bool { return isBelow(workspace.Resolved(dir), found) || isBelow(dir, root) }
	switch {
	case within(l.config.OwnDir()):
		return regie.Errorf(regie.CodePathProtected,
			"%s lies in Regie's own data directory: go into a project's directory", root)
	case slices.ContainsFunc(privatePaths(&l.config), within):
		return regie.Errorf(regie.CodePathProtected,
			"%s lies among Regie's own settings: go into a project's directory", root)
	}
	return nil
}

// placeable is unlessOwn, and has a directory that nobody has worked in yet be one that a workspace
// can be (workspace.Settled).
func (l *local) placeable(ctx context.Context, in *dispatch.RunRequest) error {
	root, dir := in.Root, l.config.DataDir
	if err := l.unlessOwn(root); err != nil || root == ownPlace(dir) || root == ownPlace(workspace.Resolved(dir)) {
		return err
	}
	all, err := l.store.Workspaces(ctx)
	if err != nil || slices.ContainsFunc(all, func(w regie.Workspace) bool { return w.Root == root }) {
		return err
	}
	return workspace.Settled(root, os.Getenv("HOME"), in.Here)
}
