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
func (f *follower) left(ctx context.Context, err error) (sdk.StopReason, error) {
	if !errors.Is(err, errLater) {
		return "", f.refused(err)
	}
	if err := f.say(ctx, "\n\n"+f.Text.T(
		"what was asked stays open: answer it with regie approvals, or load this session again")); err != nil {
		return "", err
	}
	return sdk.StopReasonEndTurn, nil
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

// The ids of the options of a permission.
const (
	optionOnce    = "once"
	optionSession = "session:"
	optionAlways  = "always:"
	optionReject  = "reject"
	optionYes     = "yes"
	optionNo      = "no"
	optionChoice  = "choice:"
	optionWrite   = "write"
)

// options are what the person can say to a call: once, for longer with what that covers in words,
// no.
func (f *follower) options(review *regie.Review) []sdk.PermissionOption {
	t := f.Text
	out := []sdk.PermissionOption{{
		Kind: sdk.PermissionOptionKindAllowOnce,
		Name: t.T("Allow once"), OptionId: optionOnce,
	}}
	for i := range review.Preview.Scopes {
		covers := plain.Line(t.Sentence(review.Preview.Scopes[i].Sentence))
		session, always := sdk.PermissionOptionId(optionSession+strconv.Itoa(i)),
			sdk.PermissionOptionId(optionAlways+strconv.Itoa(i))
		out = append(out,
			sdk.PermissionOption{
				Kind: sdk.PermissionOptionKindAllowAlways,
				Name: t.T("Allow in this session: %s", covers), OptionId: session,
			},
			sdk.PermissionOption{
				Kind: sdk.PermissionOptionKindAllowAlways,
				Name: t.T("Always allow in this workspace: %s", covers), OptionId: always,
			})
	}
	return append(out, sdk.PermissionOption{
		Kind: sdk.PermissionOptionKindRejectOnce,
		Name: t.T("Reject"), OptionId: optionReject,
	})
}

// putCall puts one call to the person and stores what they say.
func (f *follower) putCall(ctx context.Context, approval regie.ID, review *regie.Review) error {
	d := f.s.draw(review.Tool, string(review.Arguments))
	title := plain.Visible(f.Text.Sentence(review.Preview.Sentence))
	var why []string
	for i := range review.Grounds {
		why = append(why, plain.Visible(f.Text.Sentence(review.Grounds[i].Sentence)))
	}
	for _, warning := range review.Preview.Warnings {
		why = append(why, "! "+plain.Visible(f.Text.Sentence(warning)))
	}
	at := f.s.request.Root
	if len(d.locations) > 0 {
		at = d.locations[0].Path
	}
	content := hunks(at, review.Preview.Diff)
	if len(why) > 0 {
		content = append([]sdk.ToolCallContent{sdk.ToolContent(sdk.TextBlock(strings.Join(why, "\n")))}, content...)
	}
	pending := sdk.ToolCallStatusPending
	out, err := f.permission(ctx, sdk.ToolCallUpdate{
		ToolCallId: sdk.ToolCallId(review.CallID.String()), Title: &title, Kind: &d.kind, Status: &pending,
		Locations: d.locations, Content: content, RawInput: d.input,
	}, f.options(review))
	if err != nil {
		return err
	}
	decision, err := decided(review, string(out.Outcome.Selected.OptionId))
	if err != nil {
		return err
	}
	if decision.Answer == regie.AnswerDeny { // the protocol has no word for why
		decision.Reason, _ = out.Meta["reason"].(string)
	}
	_, err = f.Control.Decide(ctx, dispatch.DecideRequest{
		ApprovalID: approval, Request: regie.NewID().String(),
		Decisions: []regie.Decision{decision},
	})
	return overtaken(err)
}

// permission asks the person; errLater is what they leave open.
func (f *follower) permission(ctx context.Context, call sdk.ToolCallUpdate,
	options []sdk.PermissionOption,
) (sdk.RequestPermissionResponse, error) {
	out, err := f.conn.RequestPermission(ctx, sdk.RequestPermissionRequest{
		SessionId: sdk.SessionId(f.s.id.String()),
		ToolCall:  call, Options: options,
	})
	switch {
	case ctx.Err() != nil:
		return out, context.Cause(ctx)
	case err != nil || out.Outcome.Selected == nil:
		return out, errLater
	}
	return out, nil
}

// decided reads the option that the person chose; one that was not offered decides nothing.
func decided(review *regie.Review, option string) (regie.Decision, error) {
	d := regie.Decision{CallID: review.CallID}
	for prefix, answer := range map[string]regie.Answer{
		optionSession: regie.AnswerSession,
		optionAlways:  regie.AnswerAlways,
	} {
		number, ok := strings.CutPrefix(option, prefix)
		if !ok {
			continue
		}
		n, err := strconv.Atoi(number)
		if err != nil || n < 0 || n >= len(review.Preview.Scopes) {
			return d, errLater
		}
		d.Answer, d.Scope = answer, &review.Preview.Scopes[n]
		return d, nil
	}
	switch option {
	case optionOnce:
		d.Answer = regie.AnswerAllow
	case optionReject:
		d.Answer = regie.AnswerDeny
	default:
		return d, errLater
	}
	return d, nil
}

// putQuestion puts a question to the person as a choice: of its options, or of yes and no. What is
// to be written is written as the next message.
func (f *follower) putQuestion(ctx context.Context, q *regie.Question) error {
	t := f.Text
	var options []sdk.PermissionOption
	option := func(kind sdk.PermissionOptionKind, name, id string) {
		options = append(options, sdk.PermissionOption{Kind: kind, Name: name, OptionId: sdk.PermissionOptionId(id)})
	}
	if q.Module.Kind == regie.ModuleValidation {
		option(sdk.PermissionOptionKindAllowOnce, t.T("Yes"), optionYes)
		option(sdk.PermissionOptionKindRejectOnce, t.T("No"), optionNo)
	}
	for i, choice := range q.Module.Options {
		option(sdk.PermissionOptionKindAllowOnce, plain.Line(choice), optionChoice+strconv.Itoa(i))
	}
	if q.Module.AllowFreeText {
		option(sdk.PermissionOptionKindRejectOnce, t.T("Answer in my next message"), optionWrite)
	}
	title, kind, pending := plain.Visible(q.Module.Text), sdk.ToolKindOther, sdk.ToolCallStatusPending
	out, err := f.permission(ctx, sdk.ToolCallUpdate{
		ToolCallId: sdk.ToolCallId(q.CallID.String()), Title: &title,
		Kind: &kind, Status: &pending,
	}, options)
	if err != nil {
		return err
	}
	var reply regie.QuestionReply
	switch chosen := string(out.Outcome.Selected.OptionId); chosen {
	case optionYes, optionNo:
		yes := chosen == optionYes
		reply.Yes = &yes
	default:
		number, _ := strings.CutPrefix(chosen, optionChoice)
		n, err := strconv.Atoi(number)
		if err != nil || n < 0 || n >= len(q.Module.Options) {
			return errLater
		}
		reply.Choices = []string{q.Module.Options[n]}
	}
	_, err = f.Control.Answer(ctx, dispatch.AnswerRequest{
		QuestionID: q.ID,
		Request:    regie.NewID().String(), Reply: reply,
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
