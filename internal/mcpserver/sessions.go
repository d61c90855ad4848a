package mcpserver

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/access"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/sanitize"
	"github.com/regie-run/regie/internal/store"
)

// Limits of answers, in bytes and in sessions.
const (
	maxAnswer   = 64 << 10
	maxSessions = 100
)

// start is the input of start_session.
type start struct {
	Prompt    string `json:"prompt" jsonschema:"what the agent is to do"`
	Agent     string `json:"agent,omitempty" jsonschema:"the agent; main unless said"`
	Workspace string `json:"workspace,omitempty" jsonschema:"the workspace, by its id, name or directory as list_workspaces has them; may be left out where there is only one"`
	Wait      int    `json:"wait,omitempty" jsonschema:"how many seconds to wait for the end, 0 to 600; the run goes on either way"`
}

// message is the input of send_message.
type message struct {
	SessionID string `json:"session_id" jsonschema:"the session"`
	Text      string `json:"text" jsonschema:"what to say to the agent"`
	WhenBusy  string `json:"when_busy,omitempty" jsonschema:"what becomes of it while the agent works: queue (a new run after this one, unless said otherwise), steer (part of its next step; what it asks about is withdrawn) or reject"`
	Wait      int    `json:"wait,omitempty" jsonschema:"how many seconds to wait for the end, 0 to 600; the run goes on either way"`
}

// of is the input of a tool about one session.
type of struct {
	SessionID string `json:"session_id" jsonschema:"the session"`
}

// waiting is the input of session_status.
type waiting struct {
	SessionID string `json:"session_id" jsonschema:"the session"`
	Wait      int    `json:"wait,omitempty" jsonschema:"how many seconds to wait for the end of its run, 0 to 600"`
}

// listing is the input of list_sessions.
type listing struct {
	Workspace string `json:"workspace,omitempty" jsonschema:"the workspace, by its id, name or directory as list_workspaces has them; may be left out where there is only one"`
	Limit     int    `json:"limit,omitempty" jsonschema:"how many, at most 100; 20 unless said"`
}

// none is the input of what has no parameters.
type none struct{}

// status is the state of a session.
type status struct {
	SessionID string `json:"session_id"`
	Name      string `json:"name,omitempty"`
	Workspace string `json:"workspace,omitempty"`
	State     string `json:"state" jsonschema:"IDLE, ACTIVE, QUEUED, PAUSED, CLOSED, or what it waits for: WAITING_VALIDATION (a person's approval), WAITING_RESPONSE (a person's answer), WAITING_NETWORK, WAITING_PROVIDER (the settings of its provider), WAITING_TASK"`
	RoundID   string `json:"round_id,omitempty" jsonschema:"its newest run"`
	Ended     bool   `json:"ended" jsonschema:"whether that run has ended"`
	End       string `json:"end_reason,omitempty" jsonschema:"why: ANSWERED, COMPLETED, LIMIT, EARLY_STOP, DENIED, INTERRUPTED, STOPPED, PROVIDER_ERROR, NO_PROGRESS, WATCHDOG"`
	Note      string `json:"note,omitempty"`
	Answer    string `json:"answer,omitempty" jsonschema:"what the agent said last in that run"`
	Cut       bool   `json:"answer_shortened,omitempty"`
	Asks      []ask  `json:"waits_for,omitempty" jsonschema:"what a person is asked; regie approvals shows and decides it"`
	Cost      int64  `json:"cost_microusd" jsonschema:"what the session has cost so far, in millionths of a US dollar"`
	CostKnown bool   `json:"cost_known" jsonschema:"false where nobody knows what a model call of it has cost"`
	Pending   bool   `json:"pending,omitempty" jsonschema:"the message waits until the run before it has ended"`
}

// line is a session in a list.
type line struct {
	SessionID string    `json:"session_id"`
	Name      string    `json:"name"`
	Workspace string    `json:"workspace"`
	Agent     string    `json:"agent"`
	State     string    `json:"state"`
	Activity  time.Time `json:"last_activity"`
}

type lines struct {
	Sessions []line `json:"sessions"`
}

type place struct {
	ID   string `json:"workspace_id"`
	Name string `json:"name"`
	Root string `json:"root"`
}

type places struct {
	Workspaces []place `json:"workspaces"`
}

func (s *server) addSessions(to *mcp.Server) {
	no, yes := false, true
	acts := &mcp.ToolAnnotations{DestructiveHint: &yes, OpenWorldHint: &yes}
	mcp.AddTool(to, &mcp.Tool{
		Name: "start_session", Annotations: acts,
		Description: "Give an agent a job in a new session. Its actions are approved by a person as everywhere else: until then the session waits (WAITING_VALIDATION). " +
			"Answers with the session, and with the answer where that comes within wait.",
	}, newTool(s, s.startRun))
	mcp.AddTool(to, &mcp.Tool{
		Name: "send_message", Annotations: acts,
		Description: "Say something more in a session: a new run begins, or what is said waits for the end of the one that runs.",
	}, newTool(s, s.sendMessage))
	mcp.AddTool(to, &mcp.Tool{
		Name: "session_status", Annotations: reads(),
		Description: "How a session stands: its state, the last answer, what it waits for, what it has cost.",
	}, newTool(s, s.sessionStatus))
	mcp.AddTool(to, &mcp.Tool{
		Name: "list_sessions", Annotations: reads(),
		Description: "The sessions of a workspace, the one where something happened last first.",
	}, newTool(s, s.listSessions))
	mcp.AddTool(to, &mcp.Tool{
		Name: "stop_session", Annotations: &mcp.ToolAnnotations{
			IdempotentHint:  true,
			DestructiveHint: &yes, OpenWorldHint: &no,
		},
		Description: "End whatever runs in a session, and close it. What was done stays done.",
	}, newTool(s, s.stopSession))
	if s.Request.Root == "" {
		mcp.AddTool(to, &mcp.Tool{
			Name: "list_workspaces", Annotations: reads(),
			Description: "The workspaces that are known here.",
		}, newTool(s, s.listWorkspaces))
	}
}

// surfacePolicy returns the policy of runs started here: only settings and standing rules allow
// calls (spec 4.4). Questions need a client that can answer them.
func (s *server) surfacePolicy() approval.Policy {
	return approval.Policy{OnApproval: approval.Park, Questions: s.AllowApprovals}
}

func (s *server) startRun(ctx context.Context, request *mcp.CallToolRequest, in start) (status, error) {
	if s.Request.Root != "" && in.Workspace != "" {
		return status{}, regie.Errorf(regie.CodeBadRequest, "this server serves one workspace: leave %q out",
			paramWorkspace)
	}
	at, err := s.callWorkspace(ctx, in.Workspace)
	if err != nil {
		return status{}, err
	}
	run := s.Request
	run.Root, run.FoundBy, run.Agent = at.Root, at.FoundBy, cmp.Or(in.Agent, run.Agent)
	run.ClientID, run.SessionID, run.Text, run.Policy = regie.NewID().String(),
		regie.NewID(), in.Prompt, s.surfacePolicy()
	return s.submitMessage(ctx, request, run, in.Wait)
}

func (s *server) sendMessage(ctx context.Context, request *mcp.CallToolRequest, in message) (status, error) {
	found, err := s.findSession(ctx, in.SessionID, regie.ScopeChat)
	if err != nil {
		return status{}, err
	}
	return s.submitMessage(ctx, request, dispatch.RunRequest{
		ClientID: regie.NewID().String(), SessionID: found.ID, Root: found.Root, Agent: found.Agent, Text: in.Text,
		WhenBusy: store.WhenBusy(in.WhenBusy), Policy: s.surfacePolicy(),
		LeavesWaits:    !s.AllowApprovals && store.WhenBusy(in.WhenBusy) != store.Steer,
		AnswersNothing: !s.AllowApprovals, // steering withdraws an open question
	}, in.Wait)
}

// submitMessage stores a message and waits for the result. If the client disconnects, the run
// continues.
func (s *server) submitMessage(ctx context.Context, request *mcp.CallToolRequest, run dispatch.RunRequest,
	seconds int,
) (status, error) {
	accepted, err := s.Control.Submit(ctx, run)
	if err == nil {
		err = s.await(ctx, request, accepted.SessionID, seconds)
	}
	if err != nil {
		return status{}, err
	}
	out, err := s.describeSession(ctx, accepted.SessionID)
	out.Pending = accepted.Pending && out.RoundID == accepted.RoundID.String() && !out.Ended
	return out, err
}

// isVisible reports whether the caller sees a session: their token started it or has the scope.
func isVisible(ctx context.Context, session *regie.Session, scope regie.TokenScope) bool {
	caller := access.From(ctx)
	return caller == nil || caller.Has(scope) || caller.Began(session)
}

// findSession returns a session of this server that the caller may use with a scope. It also
// returns CodeNotFound for a session of another workspace (spec 2.1).
func (s *server) findSession(ctx context.Context, text string, scope regie.TokenScope) (store.SessionSummary, error) {
	id, err := regie.ParseID(text)
	if err != nil {
		return store.SessionSummary{}, err
	}
	found, err := s.Control.Sessions(ctx, store.SessionFilter{ID: id, Root: s.Request.Root, Limit: 1})
	if err == nil && (len(found) == 0 || found[0].ID != id || !isVisible(ctx, &found[0].Session, scope)) {
		err = regie.Errorf(regie.CodeNotFound, "there is no session %s here", id)
	}
	if err != nil {
		return store.SessionSummary{}, err
	}
	return found[0], nil
}

func (s *server) sessionStatus(ctx context.Context, request *mcp.CallToolRequest, in waiting) (status, error) {
	found, err := s.findSession(ctx, in.SessionID, regie.ScopeRead)
	if err == nil {
		err = s.await(ctx, request, found.ID, in.Wait)
	}
	if err != nil {
		return status{}, err
	}
	return s.describeSession(ctx, found.ID)
}

// listSessions tells the newest sessions of a workspace that are there for who asks. Of a token
// that may not read, most are others': its own are looked for among the newest 1,000.
func (s *server) listSessions(ctx context.Context, _ *mcp.CallToolRequest, in listing) (lines, error) {
	out, filter := lines{Sessions: []line{}}, store.SessionFilter{Limit: cmp.Or(in.Limit, 20)}
	if in.Limit < 0 || in.Limit > maxSessions {
		return out, regie.Errorf(regie.CodeBadRequest, "limit is a number from 1 to %d", maxSessions)
	}
	at, err := s.callWorkspace(ctx, in.Workspace)
	if err != nil {
		return out, err
	}
	if caller := access.From(ctx); caller != nil && !caller.Has(regie.ScopeRead) {
		filter.Limit = 1000
	}
	filter.Root = at.Root
	found, err := s.Control.Sessions(ctx, filter)
	for i := range found {
		f := &found[i]
		if len(out.Sessions) < cmp.Or(in.Limit, 20) && isVisible(ctx, &f.Session, regie.ScopeRead) {
			out.Sessions = append(out.Sessions, line{
				SessionID: f.ID.String(), Name: sanitize.Strip(f.Name), Workspace: sanitize.Strip(f.Workspace),
				Agent: sanitize.Strip(f.Agent), State: string(f.State), Activity: f.LastActivity,
			})
		}
	}
	return out, err
}

func (s *server) listWorkspaces(ctx context.Context, _ *mcp.CallToolRequest, _ none) (places, error) {
	out := places{Workspaces: []place{}}
	all, err := s.Control.Workspaces(ctx)
	for _, w := range all {
		out.Workspaces = append(out.Workspaces, place{w.ID.String(), sanitize.Strip(w.Name), sanitize.Strip(w.Root)})
	}
	return out, err
}

func (s *server) stopSession(ctx context.Context, _ *mcp.CallToolRequest, in of) (status, error) {
	found, err := s.findSession(ctx, in.SessionID, regie.ScopeChat)
	if err == nil {
		_, err = s.Control.Stop(ctx, found.ID)
	}
	if err != nil {
		return status{}, err
	}
	return s.describeSession(ctx, found.ID)
}

// describeSession returns the state of a session.
func (s *server) describeSession(ctx context.Context, session regie.ID) (status, error) {
	view, err := s.Control.Session(ctx, session)
	if err != nil {
		return status{}, err
	}
	out := status{
		SessionID: view.ID.String(), Workspace: sanitize.Strip(view.Workspace), State: string(view.State),
		Cost: view.Spent.Cost, CostKnown: view.Spent.Known,
	}
	reads := isVisible(ctx, &view.Session, regie.ScopeRead) // who may speak there, or decide, may not therefore read
	if reads {
		out.Name = sanitize.Strip(view.Name) // it is what was said first
	}
	if n := len(view.History); n > 0 {
		round := &view.History[n-1]
		out.RoundID, out.Ended, out.End = round.ID.String(), round.State == regie.RoundEnded, string(round.End)
		if reads {
			said := sanitize.Strip(lastAnswer(&view, round.ID))
			out.Note = sanitize.Strip(round.EndNote.String())
			out.Answer, out.Cut = truncateText(said, maxAnswer), len(said) > maxAnswer
		}
	}
	if reads || isVisible(ctx, &view.Session, regie.ScopeApprove) { // who decides sees what about
		out.Asks, err = s.listAsks(ctx, session)
	}
	return out, err
}

// lastAnswer returns the agent's last text in a round.
func lastAnswer(view *store.SessionView, round regie.ID) string {
	for i := len(view.Thread) - 1; i >= 0; i-- {
		m := &view.Thread[i].Message
		if m.RoundID != round || m.Sender != regie.SenderAI {
			continue
		}
		said := m.Text
		if m.AI != nil {
			said = m.AI.Text()
		}
		if strings.TrimSpace(said) != "" && !strings.HasPrefix(said, regie.InvalidFormat) {
			return said
		}
	}
	return ""
}
