package mcpserver

import (
	"context"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/i18n"
	"github.com/regie-run/regie/internal/sanitize"
	"github.com/regie-run/regie/internal/store"
)

// maxDiff limits the diff shown for a call, in bytes.
const maxDiff = 16 << 10

// ask is an approval or a question for a person.
type ask struct {
	Kind string `json:"kind" jsonschema:"approval or question"`
	ID   string `json:"id" jsonschema:"of the approval or the question"`
	// Calls lists the undecided calls of an approval.
	Calls    []asked  `json:"calls,omitempty"`
	Question string   `json:"question,omitempty"`
	Options  []string `json:"options,omitempty"`
	Yes      bool     `json:"yes_or_no,omitempty"`
	FreeText bool     `json:"free_text,omitempty"`
	Multiple bool     `json:"multiple,omitempty"`
}

// asked is one call.
type asked struct {
	CallID   string   `json:"call_id"`
	Tool     string   `json:"tool"`
	Sentence string   `json:"sentence" jsonschema:"what it would do"`
	Diff     string   `json:"diff,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
	Reasons  []string `json:"reasons,omitempty" jsonschema:"why it is asked about"`
}

// listAsks returns the open approvals and questions of a session.
func (s *server) listAsks(ctx context.Context, session regie.ID) ([]ask, error) {
	inbox, err := s.Control.Inbox(ctx, store.InboxFilter{SessionID: session})
	if err != nil {
		return nil, err
	}
	var out []ask
	for i := range inbox.Approvals {
		a := ask{Kind: "approval", ID: inbox.Approvals[i].ID.String()}
		for j := range inbox.Approvals[i].Reviews {
			if review := &inbox.Approvals[i].Reviews[j]; review.Decision == nil {
				a.Calls = append(a.Calls, showCall(english, review))
			}
		}
		out = append(out, a)
	}
	for i := range inbox.Questions {
		q := &inbox.Questions[i]
		a := ask{
			Kind: "question", ID: q.ID.String(), Question: sanitize.Strip(q.Module.Text),
			Yes:      q.Module.Kind == regie.ModuleValidation,
			FreeText: q.Module.AllowFreeText, Multiple: q.Module.AllowMultiple,
		}
		for _, option := range q.Module.Options {
			a.Options = append(a.Options, sanitize.Strip(option))
		}
		out = append(out, a)
	}
	return out, nil
}

// english is the language of model input.
var english = i18n.New("en")

// showCall returns a call as who decides on it has to see it: nothing in it acts or hides.
func showCall(t *i18n.Printer, review *regie.Review) asked {
	out := asked{
		CallID: review.CallID.String(), Tool: sanitize.Line(review.Tool),
		Sentence: sanitize.Visible(t.Sentence(review.Preview.Sentence)),
		Diff:     truncateText(sanitize.Visible(review.Preview.Diff), maxDiff),
	}
	for _, warning := range review.Preview.Warnings {
		out.Warnings = append(out.Warnings, sanitize.Visible(t.Sentence(warning)))
	}
	for i := range review.Grounds {
		out.Reasons = append(out.Reasons, sanitize.Visible(t.Sentence(review.Grounds[i].Sentence)))
	}
	return out
}

func (a *asked) describeAsked(t *i18n.Printer) string {
	out := []string{t.T("%s (call %s): %s", a.Tool, a.CallID, a.Sentence)}
	for _, why := range a.Reasons {
		out = append(out, "  "+t.T("why: %s", why))
	}
	for _, warning := range a.Warnings {
		out = append(out, "  "+t.T("warning: %s", warning))
	}
	if a.Diff != "" {
		out = append(out, a.Diff)
	}
	return strings.Join(out, "\n")
}

// decision is the input of answer_approval.
type decision struct {
	ApprovalID string    `json:"approval_id" jsonschema:"the approval, as session_status has it"`
	Decisions  []verdict `json:"decisions" jsonschema:"one for each call that is decided"`
}

type verdict struct {
	CallID   string `json:"call_id"`
	Decision string `json:"decision" jsonschema:"allow (once) or deny"`
	Reason   string `json:"reason,omitempty" jsonschema:"why it is denied, for the agent"`
}

// reply is the input of answer_question.
type reply struct {
	QuestionID string   `json:"question_id" jsonschema:"the question, as session_status has it"`
	Choices    []string `json:"choices,omitempty" jsonschema:"chosen options, word for word"`
	Text       string   `json:"text,omitempty" jsonschema:"an answer in one's own words, where the question allows that"`
	Yes        *bool    `json:"yes,omitempty" jsonschema:"the answer to a yes or no question"`
}

// addApprovals adds the tools that decide approvals and answer questions, if the owner has enabled
// them for the client. They allow only once: a standing answer needs a person, on a surface that
// shows its scope.
func (s *server) addApprovals(to *mcp.Server) {
	if !s.AllowApprovals {
		return
	}
	yes := true
	acts := &mcp.ToolAnnotations{DestructiveHint: &yes, OpenWorldHint: &yes}
	mcp.AddTool(to, &mcp.Tool{
		Name: "answer_approval", Annotations: acts,
		Description: "Decide calls that an agent has proposed: allow each once, or deny it with a reason. Each is decided once.",
	}, newTool(s, s.decideApproval))
	mcp.AddTool(to, &mcp.Tool{Name: "answer_question", Annotations: acts, Description: "Answer what an agent asks."},
		newTool(s, s.answerQuestion))
}

// findWait finds what waits for a person in a session of this server, by the id that the client
// names.
func (s *server) findWait(ctx context.Context, text string) (id, session regie.ID, err error) {
	if id, err = regie.ParseID(text); err != nil {
		return id, session, err
	}
	inbox, err := s.Control.Inbox(ctx, store.InboxFilter{ID: id})
	switch {
	case err != nil:
		return id, session, err
	case len(inbox.Approvals) > 0:
		session = inbox.Approvals[0].SessionID
	case len(inbox.Questions) > 0:
		session = inbox.Questions[0].SessionID
	default:
		return id, session, regie.Errorf(regie.CodeNotFound, "no open approval or question has the id %s here", id)
	}
	_, err = s.findSession(ctx, session.String(), regie.ScopeApprove) // of this workspace
	return id, session, err
}

func (s *server) decideApproval(ctx context.Context, request *mcp.CallToolRequest, in decision) (status, error) {
	id, session, err := s.findWait(ctx, in.ApprovalID)
	if err != nil {
		return status{}, err
	}
	out := dispatch.DecideRequest{ApprovalID: id, Request: regie.NewID().String(), By: decidedBy(request)}
	for _, v := range in.Decisions {
		call, err := regie.ParseID(v.CallID)
		if err != nil {
			return status{}, err
		}
		answer := regie.Answer(v.Decision)
		if answer != regie.AnswerAllow && answer != regie.AnswerDeny {
			return status{}, regie.Errorf(regie.CodeBadRequest, "%q is not a decision: use allow or deny",
				sanitize.Line(truncateText(v.Decision, 40)))
		}
		out.Decisions = append(out.Decisions, regie.Decision{CallID: call, Answer: answer, Reason: v.Reason})
	}
	if _, err := s.Control.Decide(ctx, out); err != nil {
		return status{}, err
	}
	return s.describeSession(ctx, session)
}

func (s *server) answerQuestion(ctx context.Context, request *mcp.CallToolRequest, in reply) (status, error) {
	id, session, err := s.findWait(ctx, in.QuestionID)
	if err == nil {
		_, err = s.Control.Answer(ctx, dispatch.AnswerRequest{
			QuestionID: id, Request: regie.NewID().String(), By: decidedBy(request),
			Reply: regie.QuestionReply{Choices: in.Choices, Text: in.Text, Yes: in.Yes},
		})
	}
	if err != nil {
		return status{}, err
	}
	return s.describeSession(ctx, session)
}

// decidedBy names who decided: the audit says that it came through an MCP client, and which one
// that says it is.
func decidedBy(request *mcp.CallToolRequest) string {
	name := "client"
	if info := request.ClientInfo(); info != nil && info.Name != "" {
		name = sanitize.Line(truncateText(info.Name, 60))
	}
	return "mcp:" + name
}

// canElicit reports whether what people decide is put to the person at the client's end.
func (s *server) canElicit(request *mcp.CallToolRequest) bool {
	if !s.Elicit || request == nil || request.ProtocolVersion() >= withoutRequests {
		return false
	}
	can := request.ClientCapabilities()
	return can != nil && can.Elicitation != nil && (can.Elicitation.Form != nil || can.Elicitation.URL == nil)
}

// withoutRequests is the first version of the protocol without unsolicited requests from server to
// client.
const withoutRequests = "2026-07-28"

// put asks the person at the client about the approvals of a session, one call after another, and
// reports whether any was decided. Undecided calls stay in the inbox.
func (s *server) put(ctx context.Context, request *mcp.CallToolRequest, session regie.ID) (decided bool, err error) {
	inbox, err := s.Control.Inbox(ctx, store.InboxFilter{SessionID: session})
	if err != nil {
		return false, err
	}
	for i := range inbox.Approvals {
		for j := range inbox.Approvals[i].Reviews {
			if inbox.Approvals[i].Reviews[j].Decision != nil {
				continue
			}
			done, err := s.putCall(ctx, request, &inbox.Approvals[i], &inbox.Approvals[i].Reviews[j])
			if decided = decided || done; err != nil || !done {
				return decided, err
			}
		}
	}
	return decided, nil
}

func (s *server) putCall(ctx context.Context, request *mcp.CallToolRequest, approval *regie.Approval,
	review *regie.Review,
) (bool, error) {
	t := s.Text
	call := showCall(t, review)
	message := t.T("The agent %s asks for your approval.", sanitize.Line(approval.Agent)) + "\n" + call.describeAsked(t)
	said, err := request.Session.Elicit(ctx, &mcp.ElicitParams{
		Message: message,
		RequestedSchema: map[string]any{
			"type": "object", "required": []string{"decision"}, "properties": map[string]any{
				"decision": map[string]any{
					"type": "string", "title": t.T("Decision"), "enum": []string{"allow", "deny"},
					"enumNames": []string{t.T("Allow once"), t.T("Deny")},
				},
				"reason": map[string]any{
					"type": "string", "title": t.T("Reason"),
					"description": t.T("why not, for the agent"), "maxLength": 4000,
				},
			},
		},
	})
	if err != nil || said.Action != "accept" {
		return false, ignore(ctx, err)
	}
	answer, _ := said.Content["decision"].(string)
	d := regie.Decision{CallID: review.CallID, Answer: regie.Answer(answer)}
	if d.Answer != regie.AnswerAllow && d.Answer != regie.AnswerDeny {
		return false, nil
	}
	if d.Answer == regie.AnswerDeny {
		d.Reason, _ = said.Content["reason"].(string)
	}
	_, err = s.Control.Decide(ctx, dispatch.DecideRequest{
		ApprovalID: approval.ID, Request: regie.NewID().String(),
		Decisions: []regie.Decision{d}, By: decidedBy(request),
	})
	return err == nil, overtaken(err)
}

// ignore drops the error of a client that could not ask: the request stays open.
func ignore(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil {
		return nil
	}
	return context.Cause(ctx)
}

// overtaken drops the errors of an answer that came behind another one, or that does not fit: what
// is open stays open.
func overtaken(err error) error {
	switch regie.CodeOf(err) {
	case regie.CodeConflict, regie.CodeExpired, regie.CodeNotFound, regie.CodeBadRequest:
		return nil
	}
	return err
}
