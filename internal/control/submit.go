package control

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/access"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
)

// maxText bounds a message in bytes (spec 11.3).
const maxText = 4 << 20

// maxClientID bounds a client's id of a message in bytes, as an Idempotency-Key, which is taken for
// one.
const maxClientID = 200

// Submit stores a message and starts its round. What a run allows beforehand is an approval, a
// message that is taken as the answer to a question is an answer, and a directory that is no
// workspace yet is the admin's to name.
func (r *Rounds) Submit(ctx context.Context, in dispatch.RunRequest) (dispatch.Run, error) {
	caller, err := r.authorize(ctx, "send_message")
	if err == nil {
		err = r.confine(ctx, caller, &in)
	}
	if err != nil {
		return dispatch.Run{}, err
	}
	return r.submit(ctx, in)
}

// confine settles what the message of a caller may say and where.
func (r *Rounds) confine(ctx context.Context, caller *access.Caller, in *dispatch.RunRequest) error {
	if len(in.Policy.Allow) > 0 && !caller.Has(regie.ScopeApprove) {
		return access.MissingScope(regie.ScopeApprove)
	}
	if err := checkMode(caller, in.ApprovalMode); err != nil {
		return err
	}
	in.By, in.TokenID = caller.By(""), caller.Token.ID
	in.LeavesWaits = in.LeavesWaits || !caller.Has(regie.ScopeApprove)
	if !caller.Restricted() && (in.Root == "" || caller.Has(regie.ScopeAdmin)) {
		return nil
	}
	if !caller.Sees(in.WorkspaceID) && !in.WorkspaceID.IsZero() {
		return notFound(in.WorkspaceID)
	}
	places, err := r.visible(ctx, caller)
	_, there := placeAt(places, in.Root)
	switch {
	case err != nil:
		return err
	case in.Root != "" && !there && caller.Restricted():
		return regie.Errorf(regie.CodeNotFound, "there is no workspace at %s here", in.Root)
	case in.Root != "" && !there:
		return noNewWorkspace(in.Root)
	}
	return r.ownsOrNew(ctx, caller, in.SessionID)
}

func (r *Rounds) submit(ctx context.Context, in dispatch.RunRequest) (dispatch.Run, error) {
	agent, unnamed, err := r.fillRequest(ctx, &in)
	if err == nil {
		err = r.validateRequest(&in)
	}
	if err == nil {
		err = r.checkTools(ctx, in.Agent, agent.Scopes())
	}
	if err != nil {
		return dispatch.Run{}, err
	}
	owner, workspace, err := r.ensureWorkspace(ctx, in.Root, in.FoundBy, in.Here)
	if err != nil {
		return dispatch.Run{}, err
	}
	kind, asks, err := r.Store.Standing(ctx, in.SessionID)
	if err != nil {
		return dispatch.Run{}, err
	}
	reason, err := startOf(&in, kind)
	if err == nil {
		err = ofPerson(&in, asks)
	}
	if err != nil {
		return dispatch.Run{}, err
	}
	if err := cmp.Or(r.checkAllowed(ctx, &in), r.takeUploads(ctx, &in)); err != nil {
		return dispatch.Run{}, err
	}
	agreed, err := r.settleTerms(ctx, &in, &agent)
	if err != nil {
		return dispatch.Run{}, err
	}
	if asks {
		if run, answered, err := r.answerByMessage(ctx, &in); answered || err != nil {
			return run, err
		}
	}
	if kind != "" {
		if err := r.applyMode(ctx, &in); err != nil {
			return dispatch.Run{}, err
		}
	}
	var accepted store.Accepted
	submission := r.submission(&in, owner, workspace, reason, &agreed)
	err = r.whileNotUndoing(ctx, in.SessionID, func() (err error) {
		accepted, err = r.Dispatcher.Submit(ctx, submission)
		return err
	})
	if err == nil && unnamed {
		err = r.Store.Rename(ctx, in.SessionID, title(&in)) // one that was made before its first message
	}
	return dispatch.Run{
		SessionID: in.SessionID, RoundID: accepted.RoundID, MessageID: accepted.Message.ID, Seq: accepted.Message.Seq,
		Duplicate: accepted.Duplicate,
		Pending:   accepted.Pending, Position: accepted.Position,
	}, err
}

// applyMode gives the session of a message the mode that the request names, or takes the session's.
func (r *Rounds) applyMode(ctx context.Context, in *dispatch.RunRequest) (err error) {
	if in.ApprovalMode != "" {
		return r.Store.SetMode(ctx, in.SessionID, in.ApprovalMode, cmp.Or(in.By, r.UserName))
	}
	in.ApprovalMode, err = r.Store.Mode(ctx, in.SessionID)
	return err
}

// submission is what a request stores.
func (r *Rounds) submission(in *dispatch.RunRequest, owner regie.User, workspace regie.Workspace, reason regie.Reason,
	terms *terms,
) store.Submission {
	trace := regie.NewID()
	out := store.Submission{
		SessionID: in.SessionID, WhenBusy: in.WhenBusy, LeavesWaits: in.LeavesWaits,
		LeavesApprovals: in.LeavesApprovals,
		Command:         in.Command != "", History: imported(in), Results: in.Results,
		New: &regie.Session{
			ID: in.SessionID, WorkspaceID: workspace.ID, UserID: owner.ID, Agent: in.Agent, AgentVersion: terms.version,
			Name: cmp.Or(in.Name, title(in)), Type: in.Type,
			Provider: in.Provider, Model: in.Model, RequireValidation: in.RequireValidation,
			ApprovalMode: in.ApprovalMode, Origin: in.Origin, TokenID: in.TokenID,
			Tainted: in.Visitor != "" || in.Tainted, // strangers write what a visitor says (decision 34)
		},
		Workspace: workspace,
		Message: regie.Message{
			ID: regie.NewID(), Sender: regie.SenderUser, Author: regie.Author{
				Kind: regie.AuthorUser,
				ID:   owner.ID.String(), TokenID: in.TokenID,
			}, ClientID: in.ClientID,
			Text: typed(in), Rich: in.Segments,
			Opening: &regie.Opening{
				Zone: r.Projects.Zone(in.Root), User: cmp.Or(in.Visitor, owner.Name),
				DayOnly: in.Policy.Cache, ScheduledFor: dueAt(in),
				French: in.Policy.French, Plan: in.ApprovalMode == regie.ModePlan,
			},
		},
		Round: regie.Round{
			ID: regie.NewID(), SessionID: in.SessionID, Reason: reason, Limits: terms.limits,
			Agent: in.Agent, Provider: in.Provider, Model: in.Model, Dialect: terms.dialect, Pin: in.Settings,
			TraceID: hex.EncodeToString(trace[:]), Policy: terms.policy, Level1: terms.level1, Level2: terms.level2,
		},
	}
	if in.Fire != nil {
		out.Fire = &store.StartFire{Fire: *in.Fire, Ask: askFor(in.Fire.Trigger), Joined: in.Joined}
	}
	ofClient(in, &out)
	return out
}

// dueAt is when a scheduled run was due.
func dueAt(in *dispatch.RunRequest) time.Time {
	if in.Fire == nil || in.Fire.Trigger != regie.TriggerScheduled {
		return time.Time{}
	}
	return in.Fire.NominalAt
}

func (r *Rounds) validateRequest(in *dispatch.RunRequest) error {
	if err := validCommand(in); err != nil {
		return err
	}
	switch size := len(said(in)); {
	case in.Text != "" && len(in.Segments) > 0:
		return regie.Errorf(regie.CodeBadRequest, "the message has a text and segments: send only one of them")
	case strings.TrimSpace(said(in)) == "" && !answersCalls(in):
		return regie.Errorf(regie.CodeBadRequest, "the message is empty: say what is to be done")
	case size > maxText:
		return regie.Errorf(regie.CodeBadRequest,
			"the message has %d bytes, at most %d are allowed: put it into a file and name the file", size, maxText)
	case len(in.ClientID) > maxClientID:
		return regie.Errorf(regie.CodeBadRequest, "a client_message_id is a text of at most %d bytes", maxClientID)
	case storable(in.ClientID) != in.ClientID:
		return regie.Errorf(regie.CodeBadRequest, "a client_message_id is a text without NUL, in UTF-8")
	case in.SessionID.IsZero():
		return regie.Errorf(regie.CodeBadRequest, "the request names no session")
	case in.Limits.Negative() != "":
		return regie.Errorf(regie.CodeBadRequest,
			"the limit %s is negative: leave it out, or use a number from 1 up", in.Limits.Negative())
	case !filepath.IsAbs(in.Root):
		return regie.Errorf(regie.CodePathInvalid, "the workspace %q is not an absolute path", in.Root)
	case r.ReadOnly:
		return errRunsNothing
	case !slices.Contains([]store.WhenBusy{"", store.Queue, store.Steer, store.Reject}, in.WhenBusy):
		return regie.Errorf(regie.CodeBadRequest,
			"%q is not a way to treat a message in a busy session: use queue, steer or reject",
			string(in.WhenBusy))
	case !slices.Contains([]regie.SessionType{"", regie.SessionChat, regie.SessionAutomation}, in.Type):
		return regie.Errorf(regie.CodeBadRequest, "a message cannot start a session of type %q: use CHAT or AUTOMATION",
			string(in.Type))
	case !slices.Contains([]regie.Dialect{"", regie.DialectNative, regie.DialectJSON}, in.Dialect):
		return regie.Errorf(regie.CodeBadRequest, "%q is not a dialect: use native or json", string(in.Dialect))
	}
	// What is stored must be what any database and any API takes.
	in.Text = storable(in.Text)
	in.Segments = slices.Clone(in.Segments)
	for i := range in.Segments {
		in.Segments[i].Text = storable(in.Segments[i].Text)
	}
	if err := regie.ValidateSegments(in.Segments); err != nil {
		return err
	}
	if err := r.validateClient(in); err != nil {
		return err
	}
	return in.Policy.Validate()
}

// checkAllowed returns CodeBadPattern where a run would allow tools that it does not have. It waits
// for no server: one that is not there yet may have any tool.
func (r *Rounds) checkAllowed(ctx context.Context, in *dispatch.RunRequest) error {
	if len(in.Policy.Allow) == 0 {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	tools := r.Tools(ctx)
	if tools.CheckPatterns(in.Policy.Allow) == nil {
		return nil
	}
	return r.Projects.ToolsIn(ctx, in.Root, tools).CheckPatterns(in.Policy.Allow)
}

func storable(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
}

// said is what a message says, as one text.
func said(in *dispatch.RunRequest) string {
	if len(in.Segments) > 0 {
		return regie.LinearText(in.Segments)
	}
	return typed(in)
}

// whileNotUndoing runs what starts a round of a session when no undo of it is under way, and again
// where one came first.
func (r *Rounds) whileNotUndoing(ctx context.Context, session regie.ID, fn func() error) error {
	const tries = 3
	for try := 1; ; try++ {
		if err := r.Undoer.Idle(ctx, session); err != nil {
			return err
		}
		err := fn()
		if !errors.Is(err, store.ErrUndoing) || try == tries {
			return err
		}
		if err := r.Undoer.Settle(ctx, session); err != nil {
			return err
		}
	}
}

// answerByMessage handles a message that arrives while the round waits for an answer (decision 10):
// it answers a free-text question, else it cancels the question as a steering message. It returns
// an error to a caller who may do neither; the store decides about a question that opens later.
func (r *Rounds) answerByMessage(ctx context.Context, in *dispatch.RunRequest) (dispatch.Run, bool, error) {
	if in.WhenBusy == store.Reject {
		return dispatch.Run{}, false, nil
	}
	inbox, err := r.Store.Inbox(ctx, store.InboxFilter{SessionID: in.SessionID})
	if err != nil || len(inbox.Questions) == 0 {
		return dispatch.Run{}, false, err
	}
	// A message that is there already is not said to this question: it is being repeated.
	if known, err := r.Store.Known(ctx, in.SessionID, in.ClientID); known || err != nil {
		return dispatch.Run{}, false, err
	}
	if in.LeavesWaits || in.LeavesApprovals && len(inbox.Approvals) > 0 {
		return dispatch.Run{}, false, store.ErrLeavesWaits
	}
	question := &inbox.Questions[0]
	if !question.Module.AllowFreeText || hasImages(in) || in.AnswersNothing && in.WhenBusy == store.Steer {
		in.WhenBusy = store.Steer
		return dispatch.Run{}, false, nil
	}
	out, err := r.storeAnswer(ctx, dispatch.AnswerRequest{
		QuestionID: question.ID, Request: in.ClientID,
		Reply: regie.QuestionReply{Text: said(in)}, By: in.By,
	}, in.ClientID)
	switch regie.CodeOf(err) {
	case regie.CodeConflict, regie.CodeExpired: // another answer was faster: it is a message like any other
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
