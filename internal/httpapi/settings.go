package httpapi

import (
	"context"
	"net/http"

	"github.com/regie-run/regie/internal/dispatch"
)

// settingOperations settle what files leave open (decision 52).
func (s *server) settingOperations() []operation {
	return []operation{
		op(s, http.MethodGet, "/settings/limits", "show_limits",
			"The limits that the next round of a chat and of an automation gets, each with where it comes from",
			http.StatusOK,
			func(ctx context.Context, _ *request[none, none]) (dispatch.LimitSettings, error) {
				return s.Service.Limits.Get(ctx)
			}),
		op(s, http.MethodPatch, "/settings/limits", "change_limits",
			"Store limits, effective from the next round; 0 takes back what was stored. What a file fixes cannot be changed here",
			http.StatusOK, func(ctx context.Context, in *request[none, dispatch.LimitChanges]) (
				dispatch.LimitSettings, error,
			) {
				return s.Service.Limits.Set(ctx, in.Body)
			}),
	}
}
