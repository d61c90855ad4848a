package httpapi

import (
	"context"
	"net/http"

	"github.com/regie-run/regie/internal/dispatch"
)

// presenceOperations say who is there (spec 5.4).
func (s *server) presenceOperations() []operation {
	return []operation{
		op(s, http.MethodPost, "/presence", "beat",
			"A heartbeat: a person is there for some minutes. A stream is one by itself, but for those of API tokens: a program says it where a person sits before it", http.StatusOK,
			func(ctx context.Context, _ *request[none, none]) (dispatch.Presence, error) {
				return s.Service.Presence.Beat(ctx)
			}),
		everything(s, "/presence", "list_presence", "Who is there, and who was within 24 hours",
			s.Service.Presence.List),
	}
}
