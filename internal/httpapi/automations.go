package httpapi

import (
	"context"
	"net/http"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/access"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/httpread"
	"github.com/regie-run/regie/internal/store"
)

// hooksPath is where webhooks of automations are, outside of base: their tokens are in the address.
const hooksPath = "/hooks/"

func automationOperations(s *server) []operation {
	all := s.Service.Automations
	list := func(ctx context.Context, filter store.AutomationFilter) (Page[dispatch.AutomationView], error) {
		limit := nextPage(&filter.Limit)
		found, err := all.List(ctx, filter)
		return cutPage("automations", found, limit, func(a *dispatch.AutomationView) store.Mark {
			return store.Mark{At: a.CreatedAt, ID: a.ID}
		}), err
	}
	return []operation{
		getByQuery(s, "/automations", "list_automations", "Automations with their last and next runs, the oldest first",
			list),
		newOperation(s, http.MethodPost, "/automations", "create_automation",
			"Make an automation of a text, of a chat, or of another automation", http.StatusCreated,
			func(ctx context.Context, in *request[none, dispatch.NewAutomation]) (dispatch.AutomationView, error) {
				setKeyedID(in.Key, &in.Body.ID)
				return all.Create(ctx, in.Body)
			}),
		postBody(s, "/automations/preview", "preview_schedule", "The next runs of a schedule that is not stored", all.Preview),
		getByID(s, http.MethodGet, "/automations/{id}", "show_automation", "An automation", all.Get),
		newAddressed(s, http.MethodPatch, "/automations/{id}", "edit_automation",
			"Change an automation, which makes a new version; runs keep theirs",
			func(b *dispatch.AutomationEdit, _ string) *regie.ID { return &b.ID }, all.Edit),
		actionByID(s, "/automations/{id}/remove", "remove_automation", "Remove an automation; its runs stay",
			all.Remove),
		newOperation(s, http.MethodGet, "/automations/{id}/versions", "list_automation_versions",
			"The versions of an automation, the oldest first", http.StatusOK,
			func(ctx context.Context, in *request[none, none]) (Page[store.AutomationVersion], error) {
				items, err := all.Versions(ctx, in.ID)
				return Page[store.AutomationVersion]{Items: items}, err
			}),
		newOperation(s, http.MethodGet, "/automations/{id}/runs", "list_fires",
			"What became of the times of an automation, the latest first", http.StatusOK,
			func(ctx context.Context, in *request[store.FireFilter, none]) (Page[store.FireView], error) {
				in.Query.AutomationID = in.ID
				limit := nextPage(&in.Query.Limit)
				found, err := all.Fires(ctx, in.Query)
				return cutPage("fires", found, limit, func(f *store.FireView) store.Mark {
					return store.Mark{At: f.NominalAt, ID: f.ID}
				}), err
			}),
		newAddressed(s, http.MethodPost, "/automations/{id}/execute", "run_automation",
			"Start a run now, or have it wait for the end of an earlier one",
			func(b *dispatch.AutomationStart, key string) *regie.ID {
				if b.Request == "" {
					b.Request = key
				}
				return &b.ID
			}, all.Run),
		getByID(s, http.MethodPost, "/automations/{id}/enable", "enable_automation",
			"Have an automation run by its schedule and triggers",
			func(ctx context.Context, id regie.ID) (dispatch.AutomationView, error) {
				return all.Enable(ctx, id, true)
			}),
		getByID(s, http.MethodPost, "/automations/{id}/disable", "disable_automation",
			"Have an automation run no more by itself",
			func(ctx context.Context, id regie.ID) (dispatch.AutomationView, error) {
				return all.Enable(ctx, id, false)
			}),
		newAddressed(s, http.MethodPost, "/automations/{id}/pause", "pause_automation",
			"Pause an automation with its open runs, until a time or until it is resumed",
			func(b *dispatch.AutomationPause, _ string) *regie.ID { return &b.ID }, all.Pause),
		getByID(s, http.MethodPost, "/automations/{id}/resume", "resume_automation",
			"End the pause of an automation and of its runs", all.Resume),
		getByID(s, http.MethodPost, "/automations/{id}/stop", "stop_automation",
			"Stop the open runs of an automation; its schedule goes on", all.Stop),
		getByID(s, http.MethodPost, "/automations/{id}/token", "rotate_hook",
			"Give the webhook of an automation a new token, which ends the present one", all.Rotate),
	}
}

// hookAnswer is what the sender of an event reads: nothing of the automation.
type hookAnswer struct {
	ID      regie.ID          `json:"id"`
	Outcome regie.FireOutcome `json:"outcome"`
}

// serveHook takes an event of an automation: POST /hooks/{id}/{token}. The token in the address is
// the sender's whole right.
func serveHook(s *server, w http.ResponseWriter, r *http.Request) {
	id, token, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, hooksPath), "/")
	automation, err := regie.ParseID(id)
	if err != nil || r.Method != http.MethodPost {
		s.writeError(w, r, regie.Errorf(regie.CodeNotFound, "there is no such webhook here"))
		return
	}
	in := dispatch.HookRequest{ID: automation, Token: token, Key: r.Header.Get("Webhook-Id")}
	if in.Key == "" {
		in.Key = r.Header.Get("Idempotency-Key")
	}
	var answer hookAnswer
	if in.Body, err = httpread.Body(w, r, dispatch.MaxHookBody); err == nil {
		var fire regie.Fire
		fire, err = s.Service.Automations.Hook(access.AsOwner(r.Context()), in)
		answer = hookAnswer{fire.ID, fire.Outcome}
	}
	s.writeAnswer(w, r, http.StatusAccepted, answer, err)
}
