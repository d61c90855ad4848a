package httpapi

import (
	"context"
	"net/http"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
)

func (s *server) sessionOperations() []operation {
	return []operation{
		newOperation(s, http.MethodPost, "/sessions", "create_session", "Make a session", http.StatusCreated,
			func(ctx context.Context, in *request[none, dispatch.SessionRequest]) (regie.Session, error) {
				if in.Key != "" {
					in.Key += " " + in.Body.WorkspaceID.String()
				}
				setKeyedID(in.Key, &in.Body.SessionID)
				return s.Service.Sessions.New(ctx, in.Body)
			}),
		getByQuery(s, "/sessions", "list_sessions", "The sessions, the one where something happened last first", s.listSessions),
		getByID(s, http.MethodGet, "/sessions/{id}", "show_session", "A session with its thread",
			s.Service.Sessions.Get),
		newAddressed(s, http.MethodPatch, "/sessions/{id}", "change_session",
			"Give a session another name or mode, or close it",
			func(b *dispatch.SessionChange, _ string) *regie.ID { return &b.SessionID },
			withoutAnswer(s.changeSession)),
		newOperation(s, http.MethodDelete, "/sessions/{id}", "remove_session",
			"Erase what a session held; its log's chain stays", http.StatusOK,
			func(ctx context.Context, in *request[dispatch.RemoveRequest, none]) (store.Removed, error) {
				in.Query.SessionID = in.ID
				return s.Service.Sessions.Remove(ctx, in.Query)
			}),
		newOperation(s, http.MethodPost, "/sessions/{id}/fork", "fork_session",
			"Copy a session's thread up to a point into a new session; files are not forked", http.StatusCreated,
			func(ctx context.Context, in *request[none, dispatch.ForkRequest]) (store.Forked, error) {
				setKeyedID(in.Key, &in.Body.SessionID)
				in.Body.From = in.ID
				return s.Service.Sessions.Fork(ctx, in.Body)
			}),
		newAddressed(s, http.MethodPut, "/sessions/{id}/read", "mark_session_read", "Say how far you have read",
			func(b *dispatch.ReadRequest, _ string) *regie.ID { return &b.SessionID },
			withoutAnswer(s.Service.Sessions.MarkRead)),
		getByID(s, http.MethodGet, "/sessions/{id}/export", "export_session", "All that can be checked of a session",
			s.Service.Sessions.Export),
		newOperation(s, http.MethodPost, "/sessions/{id}/control", "request_control",
			"What a run that the session started now would get; a free slot is reserved for 30 seconds, or until the first message",
			http.StatusOK,
			func(ctx context.Context, in *request[dispatch.ControlRequest, none]) (store.Controlled, error) {
				in.Query.SessionID = in.ID
				return s.Service.Sessions.RequestControl(ctx, in.Query)
			}),
		getByID(s, http.MethodDelete, "/sessions/{id}/control", "release_control", "Give back what was reserved",
			withoutAnswer(s.Service.Sessions.ReleaseControl)),
		actionByID(s, "/sessions/{id}/interrupt", "interrupt_session",
			"End the session's round at its current exchange; the session stays usable",
			s.toRound(s.Service.Rounds.Interrupt)),
		actionByID(s, "/sessions/{id}/pause", "pause_session", "Start nothing new until the session is resumed",
			s.toRound(s.Service.Rounds.Pause)),
		actionByID(s, "/sessions/{id}/resume", "resume_session", "Go on with a paused round",
			s.toRound(s.Service.Rounds.Resume)),
		getByID(s, http.MethodPost, "/sessions/{id}/stop", "stop_session",
			"End whatever runs in a session and close it as cancelled", s.Service.Sessions.Stop),
		newAddressed(s, http.MethodPost, "/sessions/{id}/take-back", "take_back_message",
			"Take a message back that waits for its turn; 409 where the agent has it already",
			func(b *dispatch.TakeBackRequest, _ string) *regie.ID { return &b.SessionID },
			s.Service.Sessions.TakeBack),
		actionByID(s, "/sessions/{id}/close", "close_session", "Close an idle chat, which a message opens again",
			s.Service.Sessions.Close),
	}
}

func (s *server) listSessions(ctx context.Context, filter store.SessionFilter) (Page[store.SessionSummary], error) {
	limit := nextPage(&filter.Limit)
	out, err := s.Service.Sessions.List(ctx, filter)
	return cutPage("sessions", out, limit, func(line *store.SessionSummary) store.Mark {
		return store.Mark{At: line.LastActivity, ID: line.ID}
	}), err
}

func (s *server) changeSession(ctx context.Context, b dispatch.SessionChange) error {
	switch {
	case b.State != "" && b.State != regie.SessionClosed:
		return regie.Errorf(regie.CodeBadRequest,
			"%s is not a state that can be set: use CLOSED to close a session; pause, resume and stop have their own paths", string(b.State))
	case b.State != "" && b.Name != "", b.ApprovalMode != "" && (b.Name != "" || b.State != ""):
		return regie.Errorf(regie.CodeBadRequest, "one request changes one thing: the name, the mode or the state")
	case b.ApprovalMode != "":
		return s.Service.Sessions.SetMode(ctx, b)
	case b.State != "":
		return s.Service.Sessions.Close(ctx, b.SessionID)
	default:
		return s.Service.Sessions.Rename(ctx, b)
	}
}

// toRound says a word to the newest round of a session: to the one that has not ended, where there
// is one. A session without any needs none of them.
func (s *server) toRound(say func(context.Context, regie.ID) error) func(context.Context, regie.ID) error {
	return func(ctx context.Context, session regie.ID) error {
		rounds, err := s.Service.Rounds.List(ctx, store.RoundFilter{SessionID: session, Limit: 1})
		if err == nil && len(rounds) == 0 {
			return s.checkSession(ctx, session)
		}
		if err == nil {
			err = say(ctx, rounds[0].Round.ID)
		}
		return err
	}
}
