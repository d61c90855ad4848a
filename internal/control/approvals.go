package control

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/engine"
	"github.com/regie-run/regie/internal/sanitize"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/toolkit/session"
)

// Approvals are what waits for people: approvals and questions (spec 4.4, 4.5).
type Approvals struct{ *core }

// maxReason bounds what a person tells the model with a denial, in bytes.
const maxReason = 4 << 10

// maxOpen bounds how far a person extends a deadline.
const maxOpen = 90 * 24 * time.Hour

// Inbox returns what waits for people, the oldest first.
func (a *Approvals) Inbox(ctx context.Context, filter store.InboxFilter) (store.Inbox, error) {
	_, err := a.authorizeIn(ctx, "show_inbox", &filter.Root, filter.SessionID, filter.ID)
	if err == nil {
		filter.UserID, err = a.Store.UserNamed(ctx, a.UserName)
	}
	if err != nil {
		return store.Inbox{}, err
	}
	return a.Store.Inbox(ctx, filter)
}

// SetAside hides an item of the inbox from its reader until a time. Its deadline stays.
func (a *Approvals) SetAside(ctx context.Context, in dispatch.SetAsideRequest) error {
	if _, err := a.authorize(ctx, "set_aside", in.ItemID); err != nil {
		return err
	}
	user, err := a.Owner(ctx)
	if err != nil {
		return err
	}
	return a.Store.SetItemAside(ctx, store.Aside{UserID: user.ID, ItemID: in.ItemID, Until: in.Until})
}

// Extend keeps an approval or a question open until a later time, at most 90 days from now.
func (a *Approvals) Extend(ctx context.Context, in dispatch.ExtendRequest) error {
	caller, err := a.authorize(ctx, "extend_deadline", in.ItemID)
	if err != nil {
		return err
	}
	if left := time.Until(in.Until); left <= 0 || left > maxOpen {
		return regie.Errorf(regie.CodeBadRequest, "a deadline must be in the future, and at most 90 days from now")
	}
	return a.Store.ExtendDeadline(ctx, store.Extension{ItemID: in.ItemID, Until: in.Until, By: a.author(caller, in.By)})
}

// Decide stores a person's decisions, each accepted once, and goes on with the round. What a person
// edited is validated and judged again before anything is stored.
func (a *Approvals) Decide(ctx context.Context, in dispatch.DecideRequest) (store.Resolved, error) {
	caller, err := a.authorize(ctx, "decide", in.ApprovalID)
	if err != nil {
		return store.Resolved{}, err
	}
	in.By = a.author(caller, in.By)
	edit, err := a.findApproval(ctx, in)
	if err != nil {
		return store.Resolved{}, err
	}
	stored, err := a.checkDecisions(ctx, edit, in)
	if err != nil {
		// The same request may have been accepted since the approval was read, and carried out: an
		// edit that is repeated then meets its own effect.
		now, failed := a.findApproval(ctx, in)
		if failed != nil || countDecided(now.Approval) == countDecided(edit.Approval) {
			return store.Resolved{}, err
		}
		if stored, err = a.checkDecisions(ctx, now, in); err != nil {
			return store.Resolved{}, err
		}
	}
	return a.Dispatcher.Resolve(ctx, a.StoreOnly, func(ctx context.Context) (store.Resolved, error) {
		return a.Store.Decide(ctx, stored)
	})
}

func countDecided(a *regie.Approval) (n int) {
	for i := range a.Reviews {
		if a.Reviews[i].Decision != nil {
			n++
		}
	}
	return n
}

// checkDecisions completes the decisions of a request for the store.
func (a *Approvals) checkDecisions(ctx context.Context, edit engine.Edit, in dispatch.DecideRequest) (
	store.Decide, error,
) {
	stored := store.Decide{ApprovalID: in.ApprovalID, Request: in.Request, Previews: map[regie.ID]regie.Preview{}}
	for _, decision := range in.Decisions {
		decision.By, decision.At = in.By, time.Now().UTC()
		means, err := a.completeDecision(ctx, edit, decision)
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
				"the effect of the edited call has changed since it was shown: look at it again")
		}
	}
	return stored, nil
}

// findApproval returns what a request decides on, each call once.
func (a *Approvals) findApproval(ctx context.Context, in dispatch.DecideRequest) (engine.Edit, error) {
	inbox, err := a.Store.Inbox(ctx, store.InboxFilter{ID: in.ApprovalID})
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
	of, workspace, err := a.Store.Session(ctx, asked.SessionID)
	return engine.Edit{Session: of, Workspace: workspace, Approval: asked, Decisions: in.Decisions}, err
}

// sameWorld reports whether two previews were made from the same.
func sameWorld(a, b []regie.Precondition) bool {
	return slices.EqualFunc(a, b, func(a, b regie.Precondition) bool {
		return a.Kind == b.Kind &&
			a.Name == b.Name && a.Hash == b.Hash
	})
}

// Review returns what the edited calls of a request would do and stores nothing: a person sees it
// before allowing them (decision 20).
func (a *Approvals) Review(ctx context.Context, in dispatch.DecideRequest) (dispatch.Reviewed, error) {
	if _, err := a.authorize(ctx, "review_edit", in.ApprovalID); err != nil {
		return dispatch.Reviewed{}, err
	}
	edit, err := a.findApproval(ctx, in)
	if err != nil {
		return dispatch.Reviewed{}, err
	}
	out := dispatch.Reviewed{Reviews: []regie.Review{}}
	for _, d := range in.Decisions {
		d.By, d.At = cmp.Or(in.By, a.UserName), time.Now().UTC()
		means, err := a.completeDecision(ctx, edit, d)
		switch {
		case err != nil:
			return dispatch.Reviewed{}, err
		case means.before != nil:
			return dispatch.Reviewed{}, regie.Errorf(regie.CodeConflict, "%s has already answered this: %s",
				means.before.By, string(means.before.Answer))
		case means.edited != nil:
			out.Reviews = append(out.Reviews, *means.edited)
		}
	}
	return out, nil
}

// completed is a decision with all that it means.
type completed struct {
	decision regie.Decision
	before   *regie.Decision // what the call was answered before; the rest is not looked at then
	edited   *regie.Review   // of the arguments that the person wrote
	rule     *regie.Rule
}

// completeDecision checks one decision and adds what it means: the scope, the rule, the preview of
// edited arguments.
func (a *Approvals) completeDecision(ctx context.Context, edit engine.Edit, d regie.Decision) (
	out completed, err error,
) {
	asked, of := edit.Approval, edit.Session
	review := reviewOf(asked, d.CallID)
	if review == nil {
		return out, regie.Errorf(regie.CodeNotFound, "the approval %s does not ask about call %s", asked.ID, d.CallID)
	}
	if err := approval.CheckAnswer(d.Answer); err != nil {
		return out, err
	}
	d.Reason = sanitize.Strip(d.Reason) // first of all: what is said again is compared with what was stored
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
		edited, err := a.Engine.Edited(ctx, edit)
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

// Answer stores a person's answer to a question, once, and goes on with the round.
func (a *Approvals) Answer(ctx context.Context, in dispatch.AnswerRequest) (store.Resolved, error) {
	caller, err := a.authorize(ctx, "answer_question", in.QuestionID)
	if err != nil {
		return store.Resolved{}, err
	}
	in.By = a.author(caller, in.By)
	return a.storeAnswer(ctx, in, "")
}

// storeAnswer stores an answer; clientID is that of the message which it came as, so that the
// message is known when it is repeated.
func (c *core) storeAnswer(ctx context.Context, in dispatch.AnswerRequest, clientID string) (store.Resolved, error) {
	inbox, err := c.Store.Inbox(ctx, store.InboxFilter{ID: in.QuestionID})
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
	reply.By, reply.At = cmp.Or(in.By, c.UserName), time.Now().UTC()
	text := session.ReplyText(question.Module, reply)
	said := text
	if reply.Text != "" && len(reply.Choices) == 0 {
		said = reply.Text // people see their own words
	}
	answer := store.AnswerQuestion{
		QuestionID: in.QuestionID, Request: in.Request, Reply: reply, Result: text,
		Mode: session.ApprovedMode(question.Module, reply),
		Message: regie.Message{
			ID: regie.NewID(), Sender: regie.SenderUser, Author: regie.Author{Kind: regie.AuthorUser, ID: reply.By},
			ClientID: clientID, Text: said,
			ExcludeFromPrompt: true,
		},
	}
	return c.Dispatcher.Resolve(ctx, c.StoreOnly, func(ctx context.Context) (store.Resolved, error) {
		return c.Store.Answer(ctx, answer)
	})
}

// Resolve stores a person's finding about a call with an unknown outcome (decision 5).
func (a *Approvals) Resolve(ctx context.Context, in dispatch.ResolveRequest) error {
	caller, err := a.authorize(ctx, "resolve_call", in.CallID)
	if err != nil {
		return err
	}
	switch {
	case in.As != regie.ResolvedHappened && in.As != regie.ResolvedDidNotHappen:
		return regie.Errorf(regie.CodeBadRequest,
			"%q is not an outcome of a call: use happened or did_not_happen", string(in.As))
	case len(in.Note) > maxReason:
		return regie.Errorf(regie.CodeBadRequest, "the note has more than %d bytes", maxReason)
	}
	return a.Store.ResolveCall(ctx, in.CallID, in.As, sanitize.Strip(in.Note), a.author(caller, in.By))
}
