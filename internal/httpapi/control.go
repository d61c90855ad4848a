package httpapi

import (
	"context"
	"net/http"

	"github.com/regie-run/regie"
)

// controlOperations are requestSessionControl and its end (spec 5.1, decision 43).
func (s *server) controlOperations() []operation {
	return []operation{
		about(s, http.MethodPost, "/sessions/{id}/control", "request_control",
			"What a run that the session started now would get; a free slot is reserved for 30 seconds, or until the first message", s.Service.Sessions.RequestControl),
		about(s, http.MethodDelete, "/sessions/{id}/control", "release_control", "Give back what was reserved",
			func(ctx context.Context, id regie.ID) (none, error) {
				return none{}, s.Service.Sessions.ReleaseControl(ctx, id)
			}),
	}
}
