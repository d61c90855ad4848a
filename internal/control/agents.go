package control

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/access"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
)

// Agents are the agents of the settings, of the database and of workspaces (decision 66).
type Agents struct{ *core }

// MainAgent is the default agent.
const MainAgent = "main"

// AgentFile is an agent that a workspace defines in a file, or why it cannot be used.
type AgentFile struct {
	Name, Path string
	Agent      config.Agent
	Err        error
}

// foundAgent is an agent as it works in a workspace now.
type foundAgent struct {
	config.Agent
	version int // of one in the database
	// lowers says that its limits can only lower: a workspace's file defines it.
	lowers bool
}

// isConfigured reports whether the settings have an agent.
func (c *core) isConfigured(name string) bool {
	_, configured := c.Settings.File.Agents[name]
	return configured || name == MainAgent
}

// findAgent returns an agent as it works in a workspace: that of the settings, else the given
// version of the database's, 0 for the newest, else that of a trusted workspace. It returns
// CodeNotFound for one that is not there, and CodeBadRequest for one that cannot be used.
func (c *core) findAgent(ctx context.Context, root, name string, version int) (out foundAgent, err error) {
	if version == 0 && c.isConfigured(name) {
		out.Agent = c.Projects.Agent(root, name, c.Settings.File.Agents[name])
		return out, nil
	}
	stored, err := c.Store.Agent(ctx, name, version)
	switch regie.CodeOf(err) {
	case "":
		out.version = stored.Version
		if out.Agent, err = parseStored(&stored); err == nil {
			out.Agent = c.Projects.Agent(root, name, out.Agent)
			err = c.Settings.CheckAgent(name, &out.Agent)
		}
		return out, err
	case regie.CodeNotFound:
	default:
		return out, err
	}
	for _, file := range c.Projects.AgentFiles(root) {
		if file.Name == name {
			if err = file.Err; err == nil {
				err = c.Settings.CheckAgent(name, &file.Agent)
			}
			return foundAgent{Agent: file.Agent, lowers: true}, err
		}
	}
	return out, regie.Errorf(regie.CodeNotFound,
		"there is no agent %q here: regie agents list names them, and those of .regie/agents need regie trust", name)
}

func parseStored(v *store.AgentVersion) (config.Agent, error) {
	return config.ParseAgent("the database ("+v.Name+")", v.Definition)
}

// checkTools returns CodeBadRequest where an agent names a tool that its toolkit does not have, or
// a toolkit that is not there and looks like one that is, with the nearest name: what was to be
// excluded would be offered. Any other toolkit may come later.
func (c *core) checkTools(ctx context.Context, name string, scopes []regie.ToolScope) error {
	if len(scopes) == 0 {
		return nil
	}
	tools := c.Tools(ctx)
	for _, pattern := range slices.Concat(scopes...) {
		pattern = strings.TrimPrefix(pattern, "!")
		toolkit, _, _ := strings.Cut(pattern, ".")
		if !strings.Contains(toolkit, "*") && tools.CheckPatterns([]string{toolkit + ".*"}) != nil &&
			!tools.LooksMisspelt(toolkit) {
			continue
		}
		if err := tools.CheckPatterns([]string{pattern}); err != nil {
			return regie.Errorf(regie.CodeBadRequest, "the agent %s: %v", name, err)
		}
	}
	return nil
}

// CurrentAgent returns an agent by its present definition, for the engine: its scopes, its level of
// the approval hierarchy, its rules and its budget hold for all its rounds. Where it is gone, those
// of the version hold that its session names (decision 36).
func CurrentAgent(ctx context.Context, s *Service, root, name string, version int) (config.Agent, error) {
	if name == "" { // a query outside of a session, which is a person's
		return config.Agent{}, nil
	}
	now, err := s.Agents.findAgent(ctx, root, name, 0)
	if regie.CodeOf(err) == regie.CodeNotFound && version > 0 {
		now, err = s.Agents.findAgent(ctx, root, name, version)
	}
	return now.Agent, err
}

// List returns the agents that a caller can use in a workspace, by name; without a root those of no
// workspace. One that cannot be used says why.
func (a *Agents) List(ctx context.Context, in dispatch.AgentFilter) (out []dispatch.AgentView, err error) {
	caller, err := a.authorize(ctx, "list_agents")
	if err == nil && in.Root != "" {
		in.Root, err = a.root(ctx, caller, in.Root)
	}
	if err != nil {
		return nil, err
	}
	for _, view := range SettingsAgents(a.Settings) {
		agent := a.Projects.Agent(in.Root, view.Name, a.Settings.File.Agents[view.Name])
		out = append(out, a.viewAgent(view, agent))
	}
	stored, err := a.Store.Agents(ctx)
	if err != nil {
		return nil, err
	}
	for i := range stored {
		view, agent := viewStored(&stored[i])
		out = append(out, a.viewAgent(view, agent))
	}
	for _, file := range a.Projects.AgentFiles(in.Root) {
		view := dispatch.AgentView{Name: file.Name, Source: dispatch.AgentOfWorkspace, Path: file.Path}
		if file.Err != nil {
			view.Problem = file.Err.Error()
		}
		out = append(out, a.viewAgent(view, file.Agent))
	}
	taken := map[string]bool{}
	for i := range out {
		if taken[out[i].Name] {
			out[i].Problem = regie.Errorf(regie.CodeConflict, "another agent has this name, and is used instead").Error()
		}
		taken[out[i].Name] = true
	}
	slices.SortStableFunc(out, func(x, y dispatch.AgentView) int { return strings.Compare(x.Name, y.Name) })
	return out, nil
}

// viewStored returns a stored version as it is shown.
func viewStored(v *store.AgentVersion) (dispatch.AgentView, config.Agent) {
	agent, err := parseStored(v)
	out := dispatch.AgentView{
		Name: v.Name, Source: dispatch.AgentOfDatabase, Version: v.Version, By: v.By, At: v.At,
	}
	if err != nil {
		out.Problem = err.Error()
	}
	return out, agent
}

// viewAgent completes a view by the agent's definition and by what answers for it.
func (c *core) viewAgent(view dispatch.AgentView, agent config.Agent) dispatch.AgentView {
	view.Description, view.Definition = agent.Description, agent.JSON()
	view.Provider, view.Model = c.Settings.AgentModel(&agent, c.Settings.Provider, c.Settings.Model)
	if view.Problem == "" {
		if err := c.Settings.CheckAgent(view.Name, &agent); err != nil {
			view.Problem = err.Error()
		}
	}
	return view
}

// SettingsAgents are the agents of settings, and the one that is always there.
func SettingsAgents(c config.Config) []dispatch.AgentView {
	names := slices.Collect(maps.Keys(c.File.Agents))
	if !slices.Contains(names, MainAgent) {
		names = append(names, MainAgent)
	}
	slices.Sort(names)
	out := []dispatch.AgentView{}
	for _, name := range names {
		agent := c.File.Agents[name]
		view := dispatch.AgentView{
			Name: name, Source: dispatch.AgentOfSettings, Description: agent.Description, Definition: agent.JSON(),
		}
		view.Provider, view.Model = c.AgentModel(&agent, c.Provider, c.Model)
		out = append(out, view)
	}
	return out
}

// Get returns an agent as it works in a workspace, or one version of one in the database.
func (a *Agents) Get(ctx context.Context, in dispatch.AgentQuery) (dispatch.AgentView, error) {
	if in.Version > 0 {
		if _, err := a.authorize(ctx, "list_agents"); err != nil {
			return dispatch.AgentView{}, err
		}
		stored, err := a.Store.Agent(ctx, in.Name, in.Version)
		if err != nil {
			return dispatch.AgentView{}, err
		}
		view, agent := viewStored(&stored)
		return a.viewAgent(view, agent), nil
	}
	all, err := a.List(ctx, dispatch.AgentFilter{Root: in.Root})
	if err != nil {
		return dispatch.AgentView{}, err
	}
	for i := range all {
		if all[i].Name == in.Name {
			return all[i], nil
		}
	}
	return dispatch.AgentView{}, regie.Errorf(regie.CodeNotFound, "there is no agent %q here: regie agents list names them",
		in.Name)
}

// Exists returns CodeNotFound for an agent that is neither in the settings nor in the database.
func (a *Agents) Exists(ctx context.Context, name string) error {
	_, err := a.authorize(ctx, "list_agents")
	if err == nil && !a.isConfigured(name) {
		_, err = a.Store.Agent(ctx, name, 0)
	}
	return err
}

// Versions returns the versions of an agent in the database, the oldest first.
func (a *Agents) Versions(ctx context.Context, name string) ([]store.AgentVersion, error) {
	if _, err := a.authorize(ctx, "list_agents"); err != nil {
		return nil, err
	}
	return a.Store.AgentVersions(ctx, name)
}

// Create stores a new agent. It returns CodeConflict for a name that is taken, and CodeBadRequest
// for a definition that cannot be used.
func (a *Agents) Create(ctx context.Context, in dispatch.NewAgent) (dispatch.AgentView, error) {
	caller, err := a.authorizeAll(ctx, "change_agents")
	if err != nil {
		return dispatch.AgentView{}, err
	}
	return a.save(ctx, caller, store.SaveAgent{Name: in.Name, Definition: in.Definition})
}

// Edit merges changes into an agent's definition (RFC 7396: null removes a key), which makes a new
// version. It returns CodeConflict where the agent has another version than the one that was
// changed.
func (a *Agents) Edit(ctx context.Context, in dispatch.AgentEdit) (dispatch.AgentView, error) {
	caller, err := a.authorizeAll(ctx, "change_agents")
	if err != nil {
		return dispatch.AgentView{}, err
	}
	now, err := a.Store.Agent(ctx, in.Name, 0)
	if err != nil {
		return dispatch.AgentView{}, a.fixedAgent(in.Name, err)
	}
	if in.Version > 0 {
		now.Version = in.Version
	}
	merged, err := mergePatch(now.Definition, in.Definition)
	if err != nil {
		return dispatch.AgentView{}, err
	}
	return a.save(ctx, caller, store.SaveAgent{Name: in.Name, Definition: merged, After: now.Version})
}

// Delete removes an agent. Its sessions keep the version that they name.
func (a *Agents) Delete(ctx context.Context, name string) error {
	caller, err := a.authorizeAll(ctx, "change_agents")
	if err != nil {
		return err
	}
	now, err := a.Store.Agent(ctx, name, 0)
	if err == nil {
		by := storable(a.author(caller, ""))
		_, err = a.Store.SaveAgent(ctx, store.SaveAgent{Name: name, After: now.Version, By: by})
	}
	return a.fixedAgent(name, err)
}

// fixedAgent says of a missing agent where it is to be changed, if it is one of the settings.
func (a *Agents) fixedAgent(name string, err error) error {
	if regie.CodeOf(err) == regie.CodeNotFound && a.isConfigured(name) {
		return regie.Errorf(regie.CodeConflict, "the agent %s is one of the settings: change it in regie.yaml, under agents.%s",
			name, name)
	}
	return err
}

// save stores a version of an agent, which can be used.
func (a *Agents) save(ctx context.Context, caller *access.Caller, in store.SaveAgent) (
	out dispatch.AgentView, err error,
) {
	if err = config.CheckAgentName(in.Name); err == nil && a.isConfigured(in.Name) {
		err = regie.Errorf(regie.CodeConflict, "the agent %s is one of the settings: choose another name", in.Name)
	}
	if err != nil {
		return out, err
	}
	if len(in.Definition) == 0 {
		in.Definition = json.RawMessage("{}")
	}
	agent, err := config.ParseAgent("the request", in.Definition)
	if err == nil {
		err = a.Settings.CheckAgent(in.Name, &agent)
	}
	if err == nil {
		err = a.checkTools(ctx, in.Name, agent.Scopes())
	}
	if err != nil {
		return out, err
	}
	in.Definition, in.By = agent.JSON(), storable(a.author(caller, ""))
	stored, err := a.Store.SaveAgent(ctx, in)
	if err != nil {
		return out, err
	}
	view, agent := viewStored(&stored)
	return a.viewAgent(view, agent), nil
}

// mergePatch merges a JSON object into another one (RFC 7396).
func mergePatch(target, patch json.RawMessage) (json.RawMessage, error) {
	var changes map[string]json.RawMessage
	if err := json.Unmarshal(patch, &changes); err != nil {
		return nil, regie.Errorf(regie.CodeBadRequest, "the definition is not a JSON object: %v", err)
	}
	var out map[string]json.RawMessage
	if json.Unmarshal(target, &out) != nil || out == nil {
		out = map[string]json.RawMessage{}
	}
	for key, change := range changes {
		switch {
		case string(change) == "null":
			delete(out, key)
		case len(change) > 0 && change[0] == '{':
			merged, err := mergePatch(out[key], change)
			if err != nil {
				return nil, err
			}
			out[key] = merged
		default:
			out[key] = change
		}
	}
	return json.Marshal(out)
}
