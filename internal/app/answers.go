package app

import (
	"context"
	"slices"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/engine"
	"github.com/regie-run/regie/internal/plain"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/toolkit/session"
)

// maxReason bounds what a person tells the model with a denial, in bytes.
const maxReason = 4 << 10

// Inbox implements dispatch.Control.
func (l *local) Inbox(ctx context.Context, filter store.InboxFilter) (store.Inbox, error) {
	return l.store.Inbox(ctx, filter)
}

// Decide implements dispatch.Control. What a person edited is validated and judged again before
// anything is stored. Where a call was answered while that was checked, it is checked again: the
// store refuses another answer and takes the same one.
func (l *local) Decide(ctx context.Context, in dispatch.DecideRequest) (store.Resolved, error) {
	edit, err := l.about(ctx, in)
	for err == nil {
		stored, failed := l.checkDecisions(ctx, edit, in)
		if failed == nil {
			return l.dispatcher.Decide(ctx, stored, l.storeOnly)
		}
		answered := countAnswered(edit.Approval)
		if edit, err = l.about(ctx, in); err == nil && countAnswered(edit.Approval) == answered {
			err = failed
		}
	}
	return store.Resolved{}, err
}

// countAnswered returns how many calls of an approval are answered.
func countAnswered(asked *regie.Approval) (n int) {
	for i := range asked.Reviews {
		if asked.Reviews[i].Decision != nil {
			n++
		}
	}
	return n
}

// checkDecisions completes the decisions of a request for the store.
func (l *local) checkDecisions(ctx context.Context, edit engine.Edit, in dispatch.DecideRequest) (store.Decide, error) {
	stored := store.Decide{ApprovalID: in.ApprovalID, Request: in.Request, Previews: map[regie.ID]regie.Preview{}}
	for _, decision := range in.Decisions {
		decision.By, decision.At = author(in.By), time.Now().UTC()
		means, err := l.complete(ctx, edit, decision)
		if err != nil {
			return stored, err
		}
		stored.Decisions = append(stored.Decisions, means.decision)
		if means.edited != nil {
			stored.Previews[decision.CallID] = means.edited.Preview
		}
		if means.rule != nil {
			stored.Rules = append(stored.Rules, *means.rule)
		}
	}
	for _, shown := range in.Shown {
		if preview, edited := stored.Previews[shown.CallID]; edited &&
			!sameWorld(preview.Preconditions, shown.Preconditions) {
			return stored, regie.Errorf(regie.CodeStalePreview,
				"what the edited call would do is no longer what was shown: look at it again")
		}
	}
	return stored, nil
}

// about is what a request decides on, each call once.
func (l *local) about(ctx context.Context, in dispatch.DecideRequest) (engine.Edit, error) {
	if l.readOnly && !l.storeOnly {
		return engine.Edit{}, errRunsNothing
	}
	inbox, err := l.store.Inbox(ctx, store.InboxFilter{ID: in.ApprovalID})
	switch {
	case err != nil:
		return engine.Edit{}, err
	case len(inbox.Approvals) == 0:
		return engine.Edit{}, regie.Errorf(regie.CodeNotFound, "there is no approval %s here", in.ApprovalID)
	case len(in.Decisions) == 0:
		return engine.Edit{}, regie.Errorf(regie.CodeBadRequest, "the request decides nothing")
	}
	seen := map[regie.ID]bool{}
	for i := range in.Decisions {
		call := in.Decisions[i].CallID
		if seen[call] {
			return engine.Edit{}, regie.Errorf(regie.CodeBadRequest, "the request decides call %s twice", call)
		}
		seen[call] = true
	}
	asked := &inbox.Approvals[0]
	of, workspace, err := l.store.Session(ctx, asked.SessionID)
	return engine.Edit{Session: of, Workspace: workspace, Approval: asked, Decisions: in.Decisions}, err
}

// sameWorld reports whether two previews were made from the same.
func sameWorld(a, b []regie.Precondition) bool {
	return slices.EqualFunc(a, b, func(a, b regie.Precondition) bool {
		return a.Kind == b.Kind &&
			a.Name == b.Name && a.Hash == b.Hash
	})
}

// Review implements dispatch.Control.
func (l *local) Review(ctx context.Context, in dispatch.DecideRequest) (dispatch.Reviewed, error) {
	edit, err := l.about(ctx, in)
	if err != nil {
		return dispatch.Reviewed{}, err
	}
	out := dispatch.Reviewed{Reviews: []regie.Review{}}
	for _, d := range in.Decisions {
		d.By, d.At = author(in.By), time.Now().UTC()
		means, err := l.complete(ctx, edit, d)
		switch {
		case err != nil:
			return dispatch.Reviewed{}, err
		case means.before != nil:
			return dispatch.Reviewed{}, regie.Errorf(regie.CodeConflict, "%s has answered this already: %s",
				means.before.By, string(means.before.Answer))
		case means.edited != nil:
			out.Reviews = append(out.Reviews, *means.edited)
		}
	}
	return out, nil
}

func author(by string) string {
	if by == "" {
		return userName()
	}
	return by
}

// completed is a decision with all that it means.
type completed struct {
	decision regie.Decision
	before   *regie.Decision // what the call was answered before; the rest is not looked at then
	edited   *regie.Review   // of the arguments that the person wrote
	rule     *regie.Rule
}

// complete checks one decision and adds what it means: the scope, the rule, the preview of edited
// arguments.
func (l *local) complete(ctx context.Context, edit engine.Edit, d regie.Decision) (out completed, err error) {
	asked, of := edit.Approval, edit.Session
	review := reviewOf(asked, d.CallID)
	if review == nil {
		return out, regie.Errorf(regie.CodeNotFound, "the approval %s does not ask about call %s", asked.ID, d.CallID)
	}
	if err := approval.CheckAnswer(d.Answer); err != nil {
		return out, err
	}
	d.Reason = plain.Strip(d.Reason) // first of all: what is said again is compared with what was stored
	// said again, or too late: the store knows which, and the world has moved on since the preview
	if review.Decision != nil {
		return completed{decision: d, before: review.Decision}, nil
	}
	if err := approval.CheckExpiry(d.Answer, d.At, d.ExpiresAt); err != nil {
		return out, err
	}
	if !d.ExpiresAt.IsZero() {
		d.ExpiresAt = d.ExpiresAt.UTC().Truncate(time.Microsecond) // as the store keeps it
	}
	switch {
	case len(d.Reason) > maxReason:
		return out, regie.Errorf(regie.CodeBadRequest, "the reason has more than %d bytes", maxReason)
	case d.Answer == regie.AnswerDeny && len(d.Arguments) > 0:
		return out, regie.Errorf(regie.CodeBadRequest, "a denied call has no arguments to edit")
	}
	if len(d.Arguments) > 0 {
		edit.CallID, edit.Arguments = d.CallID, d.Arguments
		edited, err := l.engine.Edited(ctx, edit)
		if err != nil {
			return out, err
		}
		d.Arguments, out.edited, review = edited.Arguments, &edited, &edited
	}
	scope, err := approval.ScopeFor(d.Answer, review.Preview.Scopes, d.Scope)
	if err != nil {
		return out, err
	}
	if d.Answer == regie.AnswerSession || d.Answer == regie.AnswerAlways {
		d.Scope = &scope
		rule, err := approval.RuleFrom(regie.NewID(), of.WorkspaceID, of.ID, d.At, *review, d)
		if err != nil {
			return out, err
		}
		out.rule = &rule
	}
	out.decision = d
	return out, nil
}

func reviewOf(asked *regie.Approval, call regie.ID) *regie.Review {
	for i := range asked.Reviews {
		if asked.Reviews[i].CallID == call {
			return &asked.Reviews[i]
		}
	}
	return nil
}

// Answer implements dispatch.Control.
func (l *local) Answer(ctx context.Context, in dispatch.AnswerRequest) (store.Resolved, error) {
	return l.answer(ctx, in, "")
}

// answer stores an answer; clientID is that of the message which it came as, so that the message is
// known when it is repeated.
func (l *local) answer(ctx context.Context, in dispatch.AnswerRequest, clientID string) (store.Resolved, error) {
	if l.readOnly && !l.storeOnly {
		return store.Resolved{}, errRunsNothing
	}
	inbox, err := l.store.Inbox(ctx, store.InboxFilter{ID: in.QuestionID})
	if err != nil {
		return store.Resolved{}, err
	}
	if len(inbox.Questions) == 0 {
		return store.Resolved{}, regie.Errorf(regie.CodeNotFound, "there is no question %s here", in.QuestionID)
	}
	question := &inbox.Questions[0]
	reply, err := session.CheckReply(question.Module, in.Reply)
	if err != nil {
		return store.Resolved{}, err
	}
	reply.By, reply.At = author(in.By), time.Now().UTC()
	text := session.ReplyText(question.Module, reply)
	said := text
	if reply.Text != "" && len(reply.Choices) == 0 {
		said = reply.Text // people see their own words
	}
	return l.dispatcher.Answer(ctx, store.AnswerQuestion{
		QuestionID: in.QuestionID, Request: in.Request, Reply: reply, Result: text,
		Message: regie.Message{
			ID: regie.NewID(), Sender: regie.SenderUser, Author: regie.Author{Kind: regie.AuthorUser, ID: reply.By},
			ClientID: clientID, Text: said,
			ExcludeFromPrompt: true,
		},
	}, l.storeOnly)
}

// Resolve implements dispatch.Control.
func (l *local) Resolve(ctx context.Context, in dispatch.ResolveRequest) error {
	switch {
	case l.readOnly && !l.storeOnly:
		return errRunsNothing
	case in.As != regie.ResolvedHappened && in.As != regie.ResolvedDidNotHappen:
		return regie.Errorf(regie.CodeBadRequest,
			"%q does not say what became of the call: use happened or did_not_happen", string(in.As))
	case len(in.Note) > maxReason:
		return regie.Errorf(regie.CodeBadRequest, "the note has more than %d bytes", maxReason)
	}
	return l.store.ResolveCall(ctx, in.CallID, in.As, plain.Strip(in.Note), author(in.By))
}

// answerByMessage takes a message that comes while the round waits for an answer (decision 10): as
// the answer where a free text is one, else it cancels the question, as a message that steers. Who
// may do neither is told so; a question that opens later meets the store's own word on it.
func (l *local) answerByMessage(ctx context.Context, in *dispatch.RunRequest) (dispatch.Run, bool, error) {
	if in.WhenBusy == store.Reject {
		return dispatch.Run{}, false, nil
	}
	inbox, err := l.store.Inbox(ctx, store.InboxFilter{SessionID: in.SessionID})
	if err != nil || len(inbox.Questions) == 0 {
		return dispatch.Run{}, false, err
	}
	// A message that is there already is not said to this question: it is being repeated.
	if known, err := l.store.Known(ctx, in.SessionID, in.ClientID); known || err != nil {
		return dispatch.Run{}, false, err
	}
	if in.LeavesWaits || in.LeavesApprovals && len(inbox.Approvals) > 0 {
		return dispatch.Run{}, false, store.ErrLeavesWaits
	}
	question := &inbox.Questions[0]
	if !question.Module.AllowFreeText || in.AnswersNothing && in.WhenBusy == store.Steer {
		in.WhenBusy = store.Steer
		return dispatch.Run{}, false, nil
	}
	out, err := l.answer(ctx, dispatch.AnswerRequest{
		QuestionID: question.ID, Request: in.ClientID,
		Reply: regie.QuestionReply{Text: said(in)}, By: in.By,
	}, in.ClientID)
	switch regie.CodeOf(err) {
	case regie.CodeConflict, regie.CodeExpired: // somebody else was faster: it is a message like any other
		return dispatch.Run{}, false, nil
	case regie.CodeBadRequest: // it is no answer, so it is something else that the person wants
		in.WhenBusy = store.Steer
		return dispatch.Run{}, false, nil
	}
	if err == nil && out.Seq == 0 { // the same message was faster: it is being repeated
		return dispatch.Run{}, false, nil
	}
	return dispatch.Run{
		SessionID: in.SessionID, RoundID: out.RoundID, MessageID: out.MessageID, Seq: out.Seq,
		Answered: true,
	}, err == nil, err
}

// Stop implements dispatch.Control: whatever runs ends, and the session closes as cancelled
// (decision 6).
func (l *local) Stop(ctx context.Context, session regie.ID) (dispatch.Stopped, error) {
	if err := l.stop(ctx, session); err != nil {
		return dispatch.Stopped{}, err
	}
	withdrawn, err := l.store.Withdrawn(ctx, session)
	return dispatch.Stopped{Withdrawn: append([]regie.Message{}, withdrawn...)}, err // a list that is never null
}

func (l *local) stop(ctx context.Context, session regie.ID) error {
	for {
		round, err := l.store.OpenRound(ctx, session)
		if err != nil {
			return err
		}
		if round.IsZero() {
			if err := l.store.CloseSession(ctx, session, regie.SessionCancelled); regie.CodeOf(
				err) != regie.CodeRoundInProgress {
				return err
			}
			continue // a message came in between
		}
		if err := l.dispatcher.Stop(ctx, round); err != nil {
			return err
		}
		// A round that ended before it heard the word may have made room for the next one, which is
		// to stop too.
		if now, err := l.store.Round(ctx, round); err != nil || now.Stop == regie.StopStop {
			return err
		}
	}
}

// TakeBack implements dispatch.Control.
func (l *local) TakeBack(ctx context.Context, in dispatch.TakeBackRequest) (regie.Message, error) {
	return l.store.TakeBack(ctx, in.SessionID, in.MessageID, in.TokenID)
}

// CloseSession implements dispatch.Control.
func (l *local) CloseSession(ctx context.Context, session regie.ID) error {
	return l.store.CloseSession(ctx, session, "")
}
