package httpapi

import (
	"context"
	"net/http"

	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
)

func agentOperations(s *server) []operation {
	agents := s.Service.Agents
	return []operation{
		getByQuery(s, "/agents", "list_agents", "The agents, with what they answer with", onePage(agents.List)),
		newOperation(s, http.MethodPost, "/agents", "create_agent",
			"Make an agent in the database; its definition is as under agents.NAME in regie.yaml", http.StatusCreated,
			func(ctx context.Context, in *request[none, dispatch.NewAgent]) (dispatch.AgentView, error) {
				return agents.Create(ctx, in.Body)
			}),
		newOperation(s, http.MethodGet, "/agents/{name}", "show_agent", "An agent, or one version of it", http.StatusOK,
			func(ctx context.Context, in *request[dispatch.AgentQuery, none]) (dispatch.AgentView, error) {
				in.Query.Name = in.Name
				return agents.Get(ctx, in.Query)
			}),
		newOperation(s, http.MethodGet, "/agents/{name}/versions", "list_agent_versions",
			"The versions of an agent in the database, the oldest first", http.StatusOK,
			func(ctx context.Context, in *request[none, none]) (Page[store.AgentVersion], error) {
				return onePage(agents.Versions)(ctx, in.Name)
			}),
		newOperation(s, http.MethodPatch, "/agents/{name}", "change_agent",
			"Merge changes into the definition of an agent in the database, which makes a new version", http.StatusOK,
			func(ctx context.Context, in *request[none, dispatch.AgentEdit]) (dispatch.AgentView, error) {
				in.Body.Name = in.Name
				return agents.Edit(ctx, in.Body)
			}),
		newOperation(s, http.MethodDelete, "/agents/{name}", "remove_agent",
			"Remove an agent from the database; its sessions keep the version that they name", http.StatusOK,
			func(ctx context.Context, in *request[none, none]) (none, error) {
				return none{}, agents.Delete(ctx, in.Name)
			}),
	}
}
