package httpapi

import (
	"context"
	"net/http"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
)

func (s *server) roundOperations() []operation {
	return []operation{
		getByQuery(s, "/rounds", "list_rounds", "The rounds, the newest first", s.listRounds),
		newOperation(s, http.MethodGet, "/sessions/{id}/rounds", "list_rounds_of_session",
			"The rounds of a session, the newest first", http.StatusOK,
			func(ctx context.Context, in *request[store.RoundFilter, none]) (Page[store.RoundSummary], error) {
				if err := s.checkSession(ctx, in.ID); err != nil {
					return Page[store.RoundSummary]{}, err
				}
				in.Query.SessionID = in.ID
				return s.listRounds(ctx, in.Query)
			}),
		getByID(s, http.MethodGet, "/rounds/{id}", "show_round",
			"A round with its exchanges, calls, tokens, cost and durations", s.Service.Rounds.Get),
		getByID(s, http.MethodGet, "/rounds/{id}/replay", "replay_round",
			"Run a stored round once more from the store alone, and compare", s.Service.Rounds.Replay),
		actionByID(s, "/rounds/{id}/interrupt", "interrupt_round", "End a round at its current exchange",
			s.Service.Rounds.Interrupt),
		actionByID(s, "/rounds/{id}/pause", "pause_round", "Start nothing new of a round", s.Service.Rounds.Pause),
		actionByID(s, "/rounds/{id}/resume", "resume_round", "Go on with a paused round, or with one that nobody holds",
			s.Service.Rounds.Resume),
		newAddressed(s, http.MethodPost, "/rounds/{id}/provider", "change_provider",
			"Give a round that waits or is paused another provider; resume it then",
			func(in *dispatch.ProviderRequest, _ string) *regie.ID { return &in.RoundID },
			withoutAnswer(s.Service.Rounds.ChangeProvider)),
	}
}

func (s *server) listRounds(ctx context.Context, filter store.RoundFilter) (Page[store.RoundSummary], error) {
	limit := nextPage(&filter.Limit)
	rounds, err := s.Service.Rounds.List(ctx, filter)
	return cutPage("rounds", rounds, limit, func(line *store.RoundSummary) store.Mark {
		return store.Mark{At: line.Round.StartedAt, ID: line.Round.ID}
	}), err
}

// checkPlace returns CodeNotFound for an unknown session, and CodeConflict for a sequence number
// beyond the end of its log: that client knows another log, as of before a restore, and would never
// receive anything.
func (s *server) checkPlace(ctx context.Context, session regie.ID, after int64) error {
	found, err := s.Service.Sessions.List(ctx, store.SessionFilter{ID: session, Limit: 1})
	switch {
	case err != nil:
		return err
	case len(found) == 0 || found[0].ID != session:
		return regie.Errorf(regie.CodeNotFound, "there is no session %s here", session)
	case after > found[0].Head:
		return regie.Errorf(regie.CodeConflict, "the log of this session ends at %d, before %d: read it again from the start",
			found[0].Head, after)
	}
	return nil
}

// checkSession returns CodeNotFound for a session that is not there.
func (s *server) checkSession(ctx context.Context, session regie.ID) error {
	return s.checkPlace(ctx, session, 0)
}
