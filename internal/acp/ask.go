package acp

import (
	"context"
	"errors"
	"strconv"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/sanitize"
	"github.com/regie-run/regie/internal/store"
)

// errLater says that the person left a request open: it stays in the inbox.
var errLater = errors.New("left open")

// askPending starts asking the person when the session waits for them, unless that is under way. It
// stops asking when the session no longer waits: the request was answered elsewhere, withdrawn, or
// has expired.
func (f *follower) askPending(ctx context.Context) {
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

// stopAsking withdraws the open request from the editor.
func (f *follower) stopAsking() {
	if f.asking != nil {
		f.asking()
	}
	f.asking, f.asked = nil, nil
}

// endLeft ends a turn after the person left a request open.
func (f *follower) endLeft(err error) (sdk.StopReason, error) {
	if !errors.Is(err, errLater) {
		return "", err
	}
	f.sendText("\n\n" + f.Text.T("the request stays open: answer it with regie approvals, or load this session again"))
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

// choices are the possible answers of the person, with the meaning of each.
type choices[T any] struct {
	options []sdk.PermissionOption
	means   map[sdk.PermissionOptionId]T
}

func (c *choices[T]) addChoice(kind sdk.PermissionOptionKind, id sdk.PermissionOptionId, name string, means T) {
	c.options = append(c.options, sdk.PermissionOption{Kind: kind, Name: name, OptionId: id})
	if c.means == nil {
		c.means = map[sdk.PermissionOptionId]T{}
	}
	c.means[id] = means
}

// askPerson asks the person, and returns what they said, with the reason that the protocol has no
// word for. It returns errLater for what they leave open; what was not offered decides nothing.
func (c *choices[T]) askPerson(ctx context.Context, f *follower, call sdk.ToolCallUpdate) (means T, reason string,
	err error,
) {
	pending := sdk.ToolCallStatusPending
	call.Status = &pending
	out, err := f.conn.RequestPermission(ctx, sdk.RequestPermissionRequest{
		SessionId: sdk.SessionId(f.s.id.String()), ToolCall: call, Options: c.options,
	})
	if ctx.Err() != nil {
		return means, "", context.Cause(ctx)
	}
	if err != nil || out.Outcome.Selected == nil {
		return means, "", errLater
	}
	means, offered := c.means[out.Outcome.Selected.OptionId]
	if !offered {
		return means, "", errLater
	}
	reason, _ = out.Meta["reason"].(string)
	return means, reason, nil
}

// putCall puts one call to the person and stores what they say: once, for longer with what that
// covers in words, no.
func (f *follower) putCall(ctx context.Context, approval regie.ID, review *regie.Review) error {
	t := f.Text
	d := f.s.drawCall(review.Tool, string(review.Arguments))
	title := sanitize.Visible(t.Sentence(review.Preview.Sentence))
	var why []string
	for i := range review.Grounds {
		why = append(why, sanitize.Visible(t.Sentence(review.Grounds[i].Sentence)))
	}
	for _, warning := range review.Preview.Warnings {
		why = append(why, "! "+sanitize.Visible(t.Sentence(warning)))
	}
	if diff := review.Preview.Diff; diff != "" {
		why = append(why, "```diff\n"+sanitize.Visible(diff)+"\n```")
	}
	if len(why) > 0 {
		d.content = append([]sdk.ToolCallContent{sdk.ToolContent(sdk.TextBlock(strings.Join(why, "\n")))}, d.content...)
	}
	var said choices[regie.Decision]
	said.addChoice(sdk.PermissionOptionKindAllowOnce, "once", t.T("Allow once"),
		regie.Decision{Answer: regie.AnswerAllow})
	for i := range review.Preview.Scopes {
		scope, n := &review.Preview.Scopes[i], sdk.PermissionOptionId(strconv.Itoa(i))
		covers := sanitize.Line(t.Sentence(scope.Sentence))
		said.addChoice(sdk.PermissionOptionKindAllowAlways, "session:"+n, t.T("Allow in this session: %s", covers),
			regie.Decision{Answer: regie.AnswerSession, Scope: scope})
		said.addChoice(sdk.PermissionOptionKindAllowAlways, "always:"+n,
			t.T("Always allow in this workspace: %s", covers),
			regie.Decision{Answer: regie.AnswerAlways, Scope: scope})
	}
	said.addChoice(sdk.PermissionOptionKindRejectOnce, "reject", t.T("Reject"),
		regie.Decision{Answer: regie.AnswerDeny})
	decision, reason, err := said.askPerson(ctx, f, sdk.ToolCallUpdate{
		ToolCallId: sdk.ToolCallId(review.CallID.String()), Title: &title, Kind: &d.kind,
		Locations: d.locations, Content: d.content,
	})
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
	return dropOvertaken(err)
}

// putQuestion puts a question to the person as a choice: of its options, or of yes and no. The
// person writes a free answer as the next message.
func (f *follower) putQuestion(ctx context.Context, q *regie.Question) error {
	var said choices[regie.QuestionReply]
	if q.Module.Kind == regie.ModuleValidation {
		said.addChoice(sdk.PermissionOptionKindAllowOnce, "yes", f.Text.T("Yes"), chat.YesNo(true))
		said.addChoice(sdk.PermissionOptionKindRejectOnce, "no", f.Text.T("No"), chat.YesNo(false))
	}
	for i, name := range q.Module.Options {
		said.addChoice(sdk.PermissionOptionKindAllowOnce, sdk.PermissionOptionId("choice:"+strconv.Itoa(i)),
			sanitize.Line(name),
			regie.QuestionReply{Choices: []string{name}})
	}
	if q.Module.AllowFreeText {
		said.addChoice(sdk.PermissionOptionKindRejectOnce, "write", f.Text.T("Answer in my next message"),
			regie.QuestionReply{})
	}
	title, kind := sanitize.Visible(q.Module.Text), sdk.ToolKindOther
	reply, _, err := said.askPerson(ctx, f, sdk.ToolCallUpdate{
		ToolCallId: sdk.ToolCallId(q.CallID.String()), Title: &title, Kind: &kind,
	})
	switch {
	case err != nil:
		return err
	case reply.Yes == nil && len(reply.Choices) == 0:
		return errLater
	}
	_, err = f.Control.Answer(ctx, dispatch.AnswerRequest{
		QuestionID: q.ID, Request: regie.NewID().String(), Reply: reply,
	})
	return dropOvertaken(err)
}

// dropOvertaken drops the errors of an answer that came behind another one: the events tell what
// became of it.
func dropOvertaken(err error) error {
	switch regie.CodeOf(err) {
	case regie.CodeConflict, regie.CodeExpired, regie.CodeNotFound:
		return nil
	}
	return err
}
