package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
)

// The types of agents, for programs outside of this module (see types.go).
type (
	// AgentView is an agent as it answers now.
	AgentView = dispatch.AgentView
	// AgentFilter selects agents.
	AgentFilter = dispatch.AgentFilter
	// AgentQuery names an agent.
	AgentQuery = dispatch.AgentQuery
	// NewAgent asks for an agent.
	NewAgent = dispatch.NewAgent
	// AgentEdit changes an agent.
	AgentEdit = dispatch.AgentEdit
	// AgentVersion is a version of an agent.
	AgentVersion = store.AgentVersion
)

// Agents are the agents of settings, database and workspaces, as control.Agents.
type Agents struct{ client *Client }

// List returns the agents that can be used in a workspace, by name.
func (a *Agents) List(ctx context.Context, filter dispatch.AgentFilter) ([]dispatch.AgentView, error) {
	return all[dispatch.AgentView](ctx, a.client, "/api/v1/agents?"+queryOf(filter))
}

// Get returns an agent, or one version of it.
func (a *Agents) Get(ctx context.Context, in dispatch.AgentQuery) (dispatch.AgentView, error) {
	return ask[dispatch.AgentView](ctx, a.client, http.MethodGet, agentPath(in.Name)+"?"+queryOf(in), nil)
}

// Versions returns the versions of an agent in the database, the oldest first.
func (a *Agents) Versions(ctx context.Context, name string) ([]store.AgentVersion, error) {
	return all[store.AgentVersion](ctx, a.client, agentPath(name)+"/versions")
}

// Create stores a new agent. It returns CodeConflict for a name that is taken.
func (a *Agents) Create(ctx context.Context, in dispatch.NewAgent) (dispatch.AgentView, error) {
	return ask[dispatch.AgentView](ctx, a.client, http.MethodPost, "/api/v1/agents", in)
}

// Edit merges changes into an agent's definition, which makes a new version.
func (a *Agents) Edit(ctx context.Context, in dispatch.AgentEdit) (dispatch.AgentView, error) {
	return ask[dispatch.AgentView](ctx, a.client, http.MethodPatch, agentPath(in.Name), in)
}

// Delete removes an agent; its sessions keep the version that they name.
func (a *Agents) Delete(ctx context.Context, name string) error {
	_, err := ask[struct{}](ctx, a.client, http.MethodDelete, agentPath(name), nil)
	return err
}

func agentPath(name string) string { return "/api/v1/agents/" + url.PathEscape(name) }
