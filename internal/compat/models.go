package compat

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
)

// model is one line of the list of models.
type model struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
}

// listModels returns the models that a client can ask for in its own format.
func (s *server) listModels(r *http.Request) ([]model, error) {
	ctx, api := r.Context(), APIChat
	if speaksMessages(r) {
		api = APIMessages
	}
	agents, err := s.Service.Agents.List(ctx, dispatch.AgentFilter{})
	if err != nil {
		return nil, err
	}
	out := []model{}
	for i := range agents {
		a := &agents[i]
		if a.Problem != "" {
			continue
		}
		out = append(out, model{ID: a.Name, Object: "model", OwnedBy: "regie"})
	}
	if s.Proxy != nil {
		for _, name := range s.Proxy.Models(ctx, api) {
			out = append(out, providerModel(name))
		}
	}
	return out, nil
}

func providerModel(name string) model {
	provider, _, _ := strings.Cut(name, "/")
	return model{ID: name, Object: "model", OwnedBy: provider}
}

func (s *server) serveModels(w http.ResponseWriter, r *http.Request) {
	list, err := s.listModels(r)
	switch {
	case err != nil:
		s.writeError(w, r, err)
	case !speaksMessages(r):
		writeJSON(w, map[string]any{"object": "list", "data": list})
	default:
		data, first, last := []any{}, any(nil), any(nil)
		for _, m := range list {
			data = append(data, anthropicModel(m))
		}
		if len(list) > 0 {
			first, last = list[0].ID, list[len(list)-1].ID
		}
		writeJSON(w, map[string]any{"data": data, "has_more": false, "first_id": first, "last_id": last})
	}
}

func (s *server) serveModel(w http.ResponseWriter, r *http.Request) {
	list, err := s.listModels(r)
	if err != nil {
		s.writeError(w, r, err)
		return
	}
	found := providerModel(r.PathValue("id"))
	at := slices.IndexFunc(list, func(m model) bool { return m.ID == found.ID })
	switch {
	case at >= 0:
		found = list[at]
	case !s.isProxied(found.ID):
		s.writeError(w, r, noModel(found.ID))
		return
	}
	if speaksMessages(r) {
		writeJSON(w, anthropicModel(found))
		return
	}
	writeJSON(w, found)
}

// anthropicModel returns a model of the list as Anthropic's clients read it: when it was made, and
// how much it takes, is the agent's own business.
func anthropicModel(m model) map[string]any {
	return map[string]any{
		"type": "model", "id": m.ID, "display_name": m.ID, "created_at": "1970-01-01T00:00:00Z",
	}
}

// checkAgent refuses a model that is no agent.
func (s *server) checkAgent(ctx context.Context, name string) error {
	err := s.Service.Agents.Exists(ctx, name)
	if regie.CodeOf(err) == regie.CodeNotFound {
		err = noModel(name)
	}
	return err
}

func noModel(name string) error {
	return &problem{code: "model_not_found", param: "model", err: regie.Errorf(regie.CodeNotFound,
		"there is no agent %q here, and no provider of that name: GET /v1/models lists what there is", truncate(name))}
}
