package acp

import (
	"context"
	"errors"
	"strconv"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/plain"
	"github.com/regie-run/regie/internal/store"
)

// errLater says that the person has left open what they were asked: it stays in the inbox.
var errLater = errors.New("left open")

// ask begins to put to the person what the session waits for, where nobody does so yet, and ends it
// where nothing is waited for any more: it was answered elsewhere, withdrawn, or has expired.
func (f *follower) ask(ctx context.Context) {
	waits := f.state == regie.SessionWaitingValidation || f.state == regie.SessionWaitingResponse
	switch {
	case !waits && f.asking != nil:
		f.stopAsking()
	case waits && f.asking == nil && !f.cancelled:
		inner, cancel := context.WithCancel(ctx)
		asked := make(chan error, 1)
		f.asking, f.asked = cancel, asked
		go func() { asked <- f.putAll(inner) }()
	}
}

// stopAsking takes back what the person is asked: the editor is told that it is settled.
func (f *follower) stopAsking() {
	if f.asking != nil {
		f.asking()
	}
	f.asking, f.asked = nil, nil
}

// left ends a turn whose person has left open what they were asked.
func (f *follower) left(err error) (sdk.StopReason, error) {
	if !errors.Is(err, errLater) {
		return "", err
	}
	f.say("\n\n" + f.Text.T("what was asked stays open: answer it with regie approvals, or load this session again"))
	return sdk.StopReasonEndTurn, f.err
}

// putAll puts everything that is open to the person, one thing after another.
func (f *follower) putAll(ctx context.Context) error {
	inbox, err := f.Control.Inbox(ctx, store.InboxFilter{SessionID: f.s.id})
	if err != nil {
		return err
	}
	for i := range inbox.Approvals {
		for j := range inbox.Approvals[i].Reviews {
			if review := &inbox.Approvals[i].Reviews[j]; review.Decision == nil {
				if err := f.putCall(ctx, inbox.Approvals[i].ID, review); err != nil {
					return err
				}
			}
		}
	}
	for i := range inbox.Questions {
		if err := f.putQuestion(ctx, &inbox.Questions[i]); err != nil {
			return err
		}
	}
	return nil
}

// choice is something that the person can say, and what it means.
type choice[T any] struct {
	kind     sdk.PermissionOptionKind
	id, name string
	means    T
}

// choose asks the person, and returns what they said, with the reason that the protocol has no word
// for. It returns errLater for what they leave open; what was not offered decides nothing.
func choose[T any](ctx context.Context, f *follower, call sdk.ToolCallUpdate, choices []choice[T]) (
	means T, reason string, err error,
) {
	pending := sdk.ToolCallStatusPending
	call.Status = &pending
	request := sdk.RequestPermissionRequest{SessionId: sdk.SessionId(f.s.id.String()), ToolCall: call}
	for _, c := range choices {
		request.Options = append(request.Options,
			sdk.PermissionOption{Kind: c.kind, Name: c.name, OptionId: sdk.PermissionOptionId(c.id)})
	}
	out, err := f.conn.RequestPermission(ctx, request)
	if ctx.Err() != nil {
		return means, "", context.Cause(ctx)
	}
	for _, c := range choices {
		if err == nil && out.Outcome.Selected != nil && string(out.Outcome.Selected.OptionId) == c.id {
			reason, _ = out.Meta["reason"].(string)
			return c.means, reason, nil
		}
	}
	return means, "", errLater
}

// putCall puts one call to the person and stores what they say: once, for longer with what that
// covers in words, no.
func (f *follower) putCall(ctx context.Context, approval regie.ID, review *regie.Review) error {
	t := f.Text
	d := f.s.draw(review.Tool, string(review.Arguments))
	title := plain.Visible(t.Sentence(review.Preview.Sentence))
	var why []string
	for i := range review.Grounds {
		why = append(why, plain.Visible(t.Sentence(review.Grounds[i].Sentence)))
	}
	for _, warning := range review.Preview.Warnings {
		why = append(why, "! "+plain.Visible(t.Sentence(warning)))
	}
	if diff := review.Preview.Diff; diff != "" {
		why = append(why, "```diff\n"+plain.Visible(diff)+"\n```")
	}
	if len(why) > 0 {
		d.content = append([]sdk.ToolCallContent{sdk.ToolContent(sdk.TextBlock(strings.Join(why, "\n")))}, d.content...)
	}
	choices := []choice[regie.Decision]{
		{sdk.PermissionOptionKindAllowOnce, "once", t.T("Allow once"), regie.Decision{Answer: regie.AnswerAllow}},
	}
	for i := range review.Preview.Scopes {
		scope, n := &review.Preview.Scopes[i], strconv.Itoa(i)
		covers := plain.Line(t.Sentence(scope.Sentence))
		choices = append(choices,
			choice[regie.Decision]{
				sdk.PermissionOptionKindAllowAlways, "session:" + n, t.T("Allow in this session: %s", covers),
				regie.Decision{Answer: regie.AnswerSession, Scope: scope},
			},
			choice[regie.Decision]{
				sdk.PermissionOptionKindAllowAlways, "always:" + n, t.T("Always allow in this workspace: %s", covers),
				regie.Decision{Answer: regie.AnswerAlways, Scope: scope},
			})
	}
	choices = append(choices, choice[regie.Decision]{
		sdk.PermissionOptionKindRejectOnce, "reject", t.T("Reject"), regie.Decision{Answer: regie.AnswerDeny},
	})
	decision, reason, err := choose(ctx, f, sdk.ToolCallUpdate{
		ToolCallId: sdk.ToolCallId(review.CallID.String()), Title: &title, Kind: &d.kind,
		Locations: d.locations, Content: d.content,
	}, choices)
	if err != nil {
		return err
	}
	decision.CallID = review.CallID
	if decision.Answer == regie.AnswerDeny {
		decision.Reason = reason
	}
	_, err = f.Control.Decide(ctx, dispatch.DecideRequest{
		ApprovalID: approval, Request: regie.NewID().String(), Decisions: []regie.Decision{decision},
	})
	return overtaken(err)
}

// putQuestion puts a question to the person as a choice: of its options, or of yes and no. What is
// to be written is written as the next message.
func (f *follower) putQuestion(ctx context.Context, q *regie.Question) error {
	yes, no := true, false
	var choices []choice[regie.QuestionReply]
	option := func(kind sdk.PermissionOptionKind, id, name string, reply regie.QuestionReply) {
		choices = append(choices, choice[regie.QuestionReply]{kind, id, name, reply})
	}
	if q.Module.Kind == regie.ModuleValidation {
		option(sdk.PermissionOptionKindAllowOnce, "yes", f.Text.T("Yes"), regie.QuestionReply{Yes: &yes})
		option(sdk.PermissionOptionKindRejectOnce, "no", f.Text.T("No"), regie.QuestionReply{Yes: &no})
	}
	for i, name := range q.Module.Options {
		reply := regie.QuestionReply{Choices: []string{name}}
		option(sdk.PermissionOptionKindAllowOnce, "choice:"+strconv.Itoa(i), plain.Line(name), reply)
	}
	if q.Module.AllowFreeText {
		option(sdk.PermissionOptionKindRejectOnce, "write", f.Text.T("Answer in my next message"),
			regie.QuestionReply{})
	}
	title, kind := plain.Visible(q.Module.Text), sdk.ToolKindOther
	reply, _, err := choose(ctx, f, sdk.ToolCallUpdate{
		ToolCallId: sdk.ToolCallId(q.CallID.String()), Title: &title, Kind: &kind,
	}, choices)
	switch {
	case err != nil:
		return err
	case reply.Yes == nil && len(reply.Choices) == 0:
		return errLater
	}
	_, err = f.Control.Answer(ctx, dispatch.AnswerRequest{
		QuestionID: q.ID, Request: regie.NewID().String(), Reply: reply,
	})
	return overtaken(err)
}

// overtaken drops the errors of an answer that came behind another one: the events tell what became
// of it.
func overtaken(err error) error {
	switch regie.CodeOf(err) {
	case regie.CodeConflict, regie.CodeExpired, regie.CodeNotFound:
		return nil
	}
	return err
}
