package httpapi

import (
	"cmp"
	"context"
	"net/http"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
)

type inboxQuery struct {
	Root    string   `query:"root" doc:"The directory of a workspace; all of them where it is left out."`
	Session regie.ID `query:"session" doc:"Of one session."`
	ID      regie.ID `query:"id" doc:"One approval or question, in whatever state."`
	Short   string   `query:"short" doc:"The end of an id, or its beginning from eight digits on, in whatever state."`
	Brief   bool     `query:"brief" doc:"Without diffs and arguments."`
}

type approvalsQuery struct {
	State   string   `query:"state" enum:"pending all" doc:"pending: what is open (the default); all: what is closed too."`
	Root    string   `query:"root" doc:"The directory of a workspace; all of them where it is left out."`
	Session regie.ID `query:"session" doc:"Of one session."`
	Brief   bool     `query:"brief" doc:"Without diffs and arguments."`
}

// filter is what an approvalsQuery selects.
func (q *approvalsQuery) filter() store.InboxFilter {
	return store.InboxFilter{Root: q.Root, SessionID: q.Session, Brief: q.Brief, Closed: q.State == "all"}
}

func (s *server) approvalOperations() []operation {
	return []operation{
		op(s, http.MethodGet, "/inbox", "show_inbox", "What waits for people: approvals and questions", http.StatusOK,
			func(ctx context.Context, in *request[inboxQuery, none]) (store.Inbox, error) {
				q := &in.Query
				return s.Control.Inbox(ctx, store.InboxFilter{Root: q.Root, SessionID: q.Session, ID: q.ID, Short: q.Short, Brief: q.Brief})
			}),
		op(s, http.MethodGet, "/approvals", "list_approvals", "Approvals that wait for somebody", http.StatusOK,
			func(ctx context.Context, in *request[approvalsQuery, none]) (Page[regie.Approval], error) {
				inbox, err := s.Control.Inbox(ctx, in.Query.filter())
				return Page[regie.Approval]{Items: some(inbox.Approvals)}, err
			}),
		about(s, http.MethodGet, "/approvals/{id}", "show_approval", "An approval with what its calls would do", s.approval),
		op(s, http.MethodPost, "/approvals/{id}", "decide", "Allow or deny calls of an approval, each once", http.StatusOK,
			func(ctx context.Context, in *request[none, dispatch.DecideRequest]) (store.Resolved, error) {
				in.Body.Request = cmp.Or(in.Body.Request, in.Key)
				if err := addressed(in.ID, &in.Body.ApprovalID); err != nil {
					return store.Resolved{}, err
				}
				return s.Control.Decide(ctx, in.Body)
			}),
		op(s, http.MethodGet, "/questions", "list_questions", "Questions that wait for somebody", http.StatusOK,
			func(ctx context.Context, in *request[approvalsQuery, none]) (Page[regie.Question], error) {
				inbox, err := s.Control.Inbox(ctx, in.Query.filter())
				return Page[regie.Question]{Items: some(inbox.Questions)}, err
			}),
		op(s, http.MethodPost, "/questions/{id}", "answer_question", "Answer a question, once", http.StatusOK,
			func(ctx context.Context, in *request[none, dispatch.AnswerRequest]) (store.Resolved, error) {
				in.Body.Request = cmp.Or(in.Body.Request, in.Key)
				if err := addressed(in.ID, &in.Body.QuestionID); err != nil {
					return store.Resolved{}, err
				}
				return s.Control.Answer(ctx, in.Body)
			}),
		op(s, http.MethodPost, "/sessions/{id}/responses", "respond", "Answer the question that a session waits with", http.StatusOK, s.respond),
		op(s, http.MethodPost, "/calls/{id}/resolve", "resolve_call", "Say what became of a call whose outcome nobody knew", http.StatusOK,
			func(ctx context.Context, in *request[none, dispatch.ResolveRequest]) (none, error) {
				err := addressed(in.ID, &in.Body.CallID)
				if err == nil {
					err = s.Control.Resolve(ctx, in.Body)
				}
				return none{}, err
			}),
	}
}

// some is a list that is never null.
func some[T any](items []T) []T {
	if items == nil {
		return []T{}
	}
	return items
}

func (s *server) approval(ctx context.Context, id regie.ID) (regie.Approval, error) {
	inbox, err := s.Control.Inbox(ctx, store.InboxFilter{ID: id})
	if err == nil && len(inbox.Approvals) == 0 {
		err = regie.Errorf(regie.CodeNotFound, "there is no approval %s here", id)
	}
	if err != nil {
		return regie.Approval{}, err
	}
	return inbox.Approvals[0], nil
}

// Response answers the question that a session waits with.
type Response struct {
	// QuestionID names the question; left out, it is the one that the session waits with.
	QuestionID regie.ID `json:"question_id,omitzero"`
	// Choices are those of the question; Text is free text where that allows it; Yes answers a validation.
	Choices []string `json:"choices,omitempty"`
	Text    string   `json:"text,omitempty"`
	Yes     *bool    `json:"yes,omitempty"`
	// Request is the answer's own id: saying it again adds nothing.
	Request string `json:"request_id,omitempty"`
}

func (s *server) respond(ctx context.Context, in *request[none, Response]) (store.Resolved, error) {
	if err := s.known(ctx, in.ID); err != nil {
		return store.Resolved{}, err
	}
	// A question that is named is looked for in whatever state: what was answered may be said again.
	inbox, err := s.Control.Inbox(ctx, store.InboxFilter{SessionID: in.ID, ID: in.Body.QuestionID})
	switch {
	case err != nil:
		return store.Resolved{}, err
	case len(inbox.Questions) == 0 && in.Body.QuestionID.IsZero():
		return store.Resolved{}, regie.Errorf(regie.CodeConflict, "the session %s waits for no answer", in.ID)
	case len(inbox.Questions) == 0 || inbox.Questions[0].SessionID != in.ID:
		return store.Resolved{}, regie.Errorf(regie.CodeNotFound, "there is no question %s in this session", in.Body.QuestionID)
	}
	return s.Control.Answer(ctx, dispatch.AnswerRequest{
		QuestionID: inbox.Questions[0].ID, Request: cmp.Or(in.Body.Request, in.Key),
		Reply: regie.QuestionReply{Choices: in.Body.Choices, Text: in.Body.Text, Yes: in.Body.Yes},
	})
}
