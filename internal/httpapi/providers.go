package httpapi

import (
	"context"
	"net/http"

	"github.com/regie-run/regie/internal/dispatch"
)

func providerOperations(s *server) []operation {
	catalog := s.Service.Catalog
	return []operation{
		listAll(s, "/providers", "list_providers", "What can answer; keys are never shown", catalog.Providers),
		newOperation(s, http.MethodPost, "/providers", "create_provider",
			"Try a provider and store it as regie setup does; the server uses it from its next start on", http.StatusCreated,
			func(ctx context.Context, in *request[none, dispatch.NewProvider]) (dispatch.ProviderView, error) {
				return catalog.AddProvider(ctx, in.Body)
			}),
		newOperation(s, http.MethodPatch, "/providers/{name}", "edit_provider",
			"Try a stored provider with changes and store it; the server uses them from its next start on", http.StatusOK,
			func(ctx context.Context, in *request[none, dispatch.ProviderEdit]) (dispatch.ProviderView, error) {
				in.Body.Name = in.Name
				return catalog.ChangeProvider(ctx, in.Body)
			}),
		newOperation(s, http.MethodDelete, "/providers/{name}", "remove_provider",
			"Remove a stored provider; the server uses it until it is restarted", http.StatusOK,
			func(ctx context.Context, in *request[none, none]) (none, error) {
				return none{}, catalog.RemoveProvider(ctx, in.Name)
			}),
	}
}
