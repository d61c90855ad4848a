package httpapi

import (
	"cmp"
	"context"
	"net/http"
	"slices"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
)

// InboxPage is a part of what waits for people: of approvals and questions together, the oldest
// first.
type InboxPage struct {
	store.Inbox
	// Next is the cursor of the part behind it, empty at the end.
	Next string `json:"next_cursor,omitempty"`
}

func (s *server) listInbox(ctx context.Context, filter store.InboxFilter) (InboxPage, error) {
	limit := nextPage(&filter.Limit)
	found, err := s.Service.Approvals.Inbox(ctx, filter)
	return inboxPage(found, limit), err
}

// inboxPage cuts a page off two lists as if they were one. Each list has one item more than the
// limit.
func inboxPage(found store.Inbox, limit int) InboxPage {
	out := InboxPage{Inbox: found}
	out.Approvals, out.Questions = []regie.Approval{}, []regie.Question{}
	var last store.Mark
	for range limit {
		a, q := found.Approvals, found.Questions
		switch {
		case len(a) == 0 && len(q) == 0:
			return out
		case len(q) == 0 || len(a) > 0 && cmp.Or(a[0].CreatedAt.Compare(q[0].CreatedAt),
			slices.Compare(a[0].ID[:], q[0].ID[:])) < 0:
			last = store.Mark{At: a[0].CreatedAt, ID: a[0].ID}
			out.Approvals, found.Approvals = append(out.Approvals, a[0]), a[1:]
		default:
			last = store.Mark{At: q[0].CreatedAt, ID: q[0].ID}
			out.Questions, found.Questions = append(out.Questions, q[0]), q[1:]
		}
	}
	if len(found.Approvals)+len(found.Questions) > 0 {
		out.Next = store.Cursor("inbox", last)
	}
	return out
}

func (s *server) listApprovals(ctx context.Context, filter store.InboxFilter) (Page[regie.Approval], error) {
	limit := nextPage(&filter.Limit)
	inbox, err := s.Service.Approvals.Inbox(ctx, filter)
	return cutPage("inbox", inbox.Approvals, limit, func(a *regie.Approval) store.Mark {
		return store.Mark{At: a.CreatedAt, ID: a.ID}
	}), err
}

func (s *server) approvalOperations() []operation {
	return []operation{
		getByQuery(s, "/inbox", "show_inbox", "What waits for people: approvals and questions, the oldest first", s.listInbox),
		getByQuery(s, "/approvals", "list_approvals", "Approvals that wait for somebody, the oldest first", s.listApprovals),
		newAddressed(s, http.MethodPost, "/approvals/{id}", "decide", "Allow or deny calls of an approval, each once",
			func(b *dispatch.DecideRequest, key string) *regie.ID {
				b.Request = cmp.Or(b.Request, key)
				return &b.ApprovalID
			}, s.Service.Approvals.Decide),
		newAddressed(s, http.MethodPost, "/approvals/{id}/review", "review_edit",
			"What calls of an approval would do with edited arguments; nothing is stored",
			func(b *dispatch.DecideRequest, _ string) *regie.ID { return &b.ApprovalID }, s.Service.Approvals.Review),
		newAddressed(s, http.MethodPost, "/questions/{id}", "answer_question", "Answer a question, once",
			func(b *dispatch.AnswerRequest, key string) *regie.ID {
				b.Request = cmp.Or(b.Request, key)
				return &b.QuestionID
			}, s.Service.Approvals.Answer),
		newOperation(s, http.MethodPost, "/sessions/{id}/responses", "respond",
			"Answer the question that a session waits with", http.StatusOK, s.answerQuestion),
		newAddressed(s, http.MethodPost, "/calls/{id}/resolve", "resolve_call",
			"Say what became of a call whose outcome nobody knew",
			func(b *dispatch.ResolveRequest, _ string) *regie.ID { return &b.CallID },
			withoutAnswer(s.Service.Approvals.Resolve)),
		newAddressed(s, http.MethodPost, "/inbox/{id}/set-aside", "set_aside",
			"Hide an item of the inbox from yourself until a time; its deadline stays",
			func(b *dispatch.SetAsideRequest, _ string) *regie.ID { return &b.ItemID },
			withoutAnswer(s.Service.Approvals.SetAside)),
		newAddressed(s, http.MethodPost, "/inbox/{id}/extend", "extend_deadline",
			"Keep an approval or a question open until a later time",
			func(b *dispatch.ExtendRequest, _ string) *regie.ID { return &b.ItemID },
			withoutAnswer(s.Service.Approvals.Extend)),
	}
}

// Response answers the question that a session waits with.
type Response struct {
	// QuestionID names the question; left out, it is the one that the session waits with.
	QuestionID regie.ID `json:"question_id,omitzero"`
	// Choices are those of the question; Text is free text where that allows it; Yes answers a
	// validation.
	Choices []string `json:"choices,omitempty"`
	Text    string   `json:"text,omitempty"`
	Yes     *bool    `json:"yes,omitempty"`
}

func (s *server) answerQuestion(ctx context.Context, in *request[none, Response]) (store.Resolved, error) {
	if err := s.checkSession(ctx, in.ID); err != nil {
		return store.Resolved{}, err
	}
	// A named question is found in every state: an answer may be repeated.
	inbox, err := s.Service.Approvals.Inbox(ctx, store.InboxFilter{SessionID: in.ID, ID: in.Body.QuestionID})
	switch {
	case err != nil:
		return store.Resolved{}, err
	case len(inbox.Questions) == 0 && in.Body.QuestionID.IsZero():
		return store.Resolved{}, regie.Errorf(regie.CodeConflict, "the session %s waits for no answer", in.ID)
	case len(inbox.Questions) == 0 || inbox.Questions[0].SessionID != in.ID:
		return store.Resolved{}, regie.Errorf(regie.CodeNotFound,
			"there is no question %s in this session", in.Body.QuestionID)
	}
	return s.Service.Approvals.Answer(ctx, dispatch.AnswerRequest{
		QuestionID: inbox.Questions[0].ID, Request: in.Key,
		Reply: regie.QuestionReply{Choices: in.Body.Choices, Text: in.Body.Text, Yes: in.Body.Yes},
	})
}
