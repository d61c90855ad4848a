package control

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/access"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/sanitize"
	"github.com/regie-run/regie/internal/slot"
	"github.com/regie-run/regie/internal/store"
)

// Sessions are the stored sessions. Nothing here calls a model or a tool (invariant 17).
type Sessions struct{ *core }

// maxName bounds a session's name in characters.
const maxName = 200

// List lists sessions, the one where something happened last first. The read marks are those of the
// person who runs this process (spec 11.2).
func (s *Sessions) List(ctx context.Context, filter store.SessionFilter) ([]store.SessionSummary, error) {
	_, err := s.authorizeIn(ctx, "list_sessions", &filter.Root, filter.ID)
	if err == nil {
		filter.UserID, err = s.Store.UserNamed(ctx, s.UserName)
	}
	if err != nil {
		return nil, err
	}
	return s.Store.Sessions(ctx, filter)
}

// Get returns a session with its thread. Its log is verified on the way.
func (s *Sessions) Get(ctx context.Context, session regie.ID) (store.SessionView, error) {
	if _, err := s.authorize(ctx, "show_session", session); err != nil {
		return store.SessionView{}, err
	}
	var view store.SessionView
	user, err := s.Store.UserNamed(ctx, s.UserName)
	if err == nil {
		view, err = s.Store.SessionView(ctx, session, user)
	}
	if err == nil && s.Present != nil {
		var there dispatch.Presence
		there, err = s.Present.Of(ctx, view.UserID)
		view.Mode = there.Mode
	}
	if err != nil {
		return view, err
	}
	report, err := s.Store.Verify(ctx, session)
	if regie.CodeOf(err) == regie.CodeChainBroken {
		view.AuditError = err.Error()
		return view, nil
	}
	view.Audit = &report
	return view, err
}

// Messages returns a part of a session's thread, in its order.
func (s *Sessions) Messages(ctx context.Context, in dispatch.MessagesRequest) ([]store.MessageView, error) {
	if _, err := s.authorize(ctx, "list_messages", in.SessionID); err != nil {
		return nil, err
	}
	if _, _, err := s.Store.Session(ctx, in.SessionID); err != nil {
		return nil, err
	}
	thread, err := s.Store.Thread(ctx, in.SessionID, in.After)
	out := []store.MessageView{}
	messages, limit := thread.Messages, cmp.Or(in.Limit, 1000)
	if in.Before > 0 {
		at, _ := slices.BinarySearchFunc(messages, in.Before, func(m regie.Message, seq int64) int {
			return cmp.Compare(m.Seq, seq)
		})
		messages = messages[max(0, at-limit):at]
	}
	for i := range messages[:min(limit, len(messages))] {
		m := &messages[i]
		out = append(out, store.MessageView{
			Seq: m.Seq, Time: m.Time, Message: *m,
			Calls: thread.Calls[m.ID], Superseded: m.Superseded,
		})
	}
	return out, err
}

// New makes a session without a message. The session's id makes a repeated request change nothing.
func (s *Sessions) New(ctx context.Context, in dispatch.SessionRequest) (regie.Session, error) {
	caller, err := s.authorize(ctx, "create_session")
	if err == nil {
		err = s.ownsOrNew(ctx, caller, in.SessionID)
	}
	if err == nil && !in.WorkspaceID.IsZero() && !caller.Sees(in.WorkspaceID) {
		err = notFound(in.WorkspaceID)
	}
	if err != nil {
		return regie.Session{}, err
	}
	made, err := s.create(ctx, caller, in)
	// another token's, which this one may not read
	if err == nil && made.TokenID != caller.Token.ID && !caller.Has(regie.ScopeRead) {
		return regie.Session{}, regie.Errorf(regie.CodeConflict, "the session id %s is taken", in.SessionID)
	}
	return made, err
}

func (s *Sessions) create(ctx context.Context, caller *access.Caller, in dispatch.SessionRequest) (
	regie.Session, error,
) {
	in.Type = cmp.Or(in.Type, regie.SessionChat)
	switch {
	case in.Type != regie.SessionChat && in.Type != regie.SessionAutomation:
		return regie.Session{}, regie.Errorf(regie.CodeBadRequest,
			"a session of type %q cannot be created: use CHAT or AUTOMATION", string(in.Type))
	case in.WorkspaceID.IsZero():
		return regie.Session{}, regie.Errorf(regie.CodeBadRequest,
			"the request names no workspace_id: POST /api/v1/workspaces returns that of a directory")
	}
	in.Agent = cmp.Or(in.Agent, MainAgent)
	place, err := s.findWorkspace(ctx, in.WorkspaceID)
	if err == nil && in.Name != "" {
		in.Name, err = sessionName(in.Name)
	}
	if err != nil {
		return regie.Session{}, err
	}
	agent, err := s.findAgent(ctx, place.Root, in.Agent, 0)
	if err = cmp.Or(err, checkMode(caller, in.ApprovalMode)); err != nil {
		return regie.Session{}, err
	}
	provider, model := s.Settings.AgentModel(&agent.Agent, s.Settings.Provider, s.Settings.Model)
	owner, _, err := s.ensureWorkspace(ctx, place.Root, place.FoundBy, false)
	if err != nil {
		return regie.Session{}, err
	}
	if in.SessionID.IsZero() {
		in.SessionID = regie.NewID()
	}
	if _, err := s.Store.CreateSession(ctx, regie.Session{
		ID: in.SessionID, WorkspaceID: place.ID, UserID: owner.ID, Agent: in.Agent, AgentVersion: agent.version,
		Name: in.Name, Type: in.Type, Provider: provider, Model: model, RequireValidation: in.RequireValidation,
		ApprovalMode: in.ApprovalMode, TokenID: caller.Token.ID,
	}); err != nil {
		return regie.Session{}, err
	}
	made, where, err := s.Store.Session(ctx, in.SessionID) // the one that was there, where the request is said again
	if err == nil && (where.ID != place.ID || made.Type != in.Type ||
		made.Agent != in.Agent || made.RequireValidation != in.RequireValidation) {
		return regie.Session{}, regie.Errorf(regie.CodeConflict, "the session id %s is taken", in.SessionID)
	}
	return made, err
}

// Fork copies a session's thread up to a point into a new session (decision 17). Files are not
// forked.
func (s *Sessions) Fork(ctx context.Context, in dispatch.ForkRequest) (store.Forked, error) {
	caller, err := s.authorize(ctx, "fork_session", given(in.From, in.RoundID)...)
	if err == nil {
		err = s.ownsOrNew(ctx, caller, in.SessionID)
	}
	if err == nil && !caller.Has(regie.ScopeRead) {
		var from regie.Session
		if from, _, err = s.Store.Session(ctx, in.From); err == nil && !caller.Began(&from) {
			err = notFound(in.From)
		}
	}
	if err == nil && in.Name != "" {
		in.Name, err = sessionName(in.Name)
	}
	if err != nil {
		return store.Forked{}, err
	}
	out, err := s.Store.Fork(ctx, store.Fork{
		SessionID: in.SessionID, From: in.From, At: in.At, Round: in.RoundID,
		Name: in.Name, TokenID: caller.Token.ID,
	})
	// one that another token made of it
	if err == nil && out.Session.TokenID != caller.Token.ID && !caller.Has(regie.ScopeRead) {
		return store.Forked{}, regie.Errorf(regie.CodeConflict, "the session id %s is taken", in.SessionID)
	}
	return out, err
}

// Remove erases what a session held; the chain of its log stays. A session of an OpenAI-compatible
// client belongs to its token, which may remove it.
func (s *Sessions) Remove(ctx context.Context, in dispatch.RemoveRequest) (store.Removed, error) {
	caller, err := s.authorize(ctx, "remove_own_session", in.SessionID)
	if err == nil && !s.isOwnOfClient(ctx, caller, in.SessionID) {
		_, err = s.authorize(ctx, "remove_session")
	}
	if err != nil {
		return store.Removed{}, err
	}
	_, place, missing := s.Store.Session(ctx, in.SessionID) // of one that is removed already nothing is kept
	removed, err := s.Store.Remove(ctx, store.Remove{
		SessionID: in.SessionID, By: sanitize.Strip(s.author(caller, in.By)),
	})
	if err == nil {
		s.Engine.Forget(in.SessionID)
	}
	if err == nil && missing == nil {
		err = s.forgetPlace(ctx, place)
	}
	return removed, err
}

// isOwnOfClient reports whether a caller with the scope completions began a session through such a
// client's interface.
func (s *Sessions) isOwnOfClient(ctx context.Context, caller *access.Caller, session regie.ID) bool {
	if caller.Has(regie.ScopeAdmin) || !caller.Has(regie.ScopeCompletions) {
		return false
	}
	found, _, err := s.Store.Session(ctx, session)
	return err == nil && found.Origin == regie.OriginAPISession && caller.Began(&found)
}

// forgetPlace removes what is kept of a workspace for commands, where its last session is gone.
func (s *Sessions) forgetPlace(ctx context.Context, place regie.Workspace) error {
	left, err := s.Store.Sessions(ctx, store.SessionFilter{Root: place.Root, Limit: 1, API: true})
	if err != nil || len(left) > 0 {
		return err
	}
	return s.Snapshots.Forget(place.ID)
}

// Rename gives a session the name of a change.
func (s *Sessions) Rename(ctx context.Context, in dispatch.SessionChange) error {
	if _, err := s.authorize(ctx, "change_session", in.SessionID); err != nil {
		return err
	}
	name, err := sessionName(in.Name)
	if err != nil {
		return err
	}
	return s.Store.Rename(ctx, in.SessionID, name)
}

// SetMode gives a session the mode of a change (decision 71). A round that runs judges its next
// call by it.
func (s *Sessions) SetMode(ctx context.Context, in dispatch.SessionChange) error {
	caller, err := s.authorize(ctx, "change_session", in.SessionID)
	if err == nil && in.ApprovalMode == "" {
		err = regie.Errorf(regie.CodeBadRequest, "the request names no mode")
	}
	if err == nil {
		err = checkMode(caller, in.ApprovalMode)
	}
	if err != nil {
		return err
	}
	return s.Store.SetMode(ctx, in.SessionID, in.ApprovalMode, s.author(caller, ""))
}

// checkMode returns why a caller cannot give a session a mode: it is unknown, or the caller may not
// allow calls beforehand, which leaving a mode does as well.
func checkMode(caller *access.Caller, mode regie.Mode) error {
	if mode != "" && !caller.Has(regie.ScopeApprove) {
		return access.MissingScope(regie.ScopeApprove)
	}
	return regie.CheckMode(mode)
}

// oneLine returns a text on one line that does nothing to a terminal and hides nothing.
func oneLine(text string) string {
	shown := strings.Map(func(r rune) rune {
		if sanitize.Hidden(r) && !unicode.IsSpace(r) {
			return -1
		}
		return r
	}, sanitize.Strip(text))
	return strings.Join(strings.Fields(shown), " ")
}

// sessionName validates the name of a session.
func sessionName(name string) (string, error) {
	name = oneLine(name)
	switch {
	case name == "":
		return "", regie.Errorf(regie.CodeBadRequest, "the name is empty")
	case utf8.RuneCountInString(name) > maxName:
		return "", regie.Errorf(regie.CodeBadRequest, "the name has more than %d characters", maxName)
	}
	return name, nil
}

// title names a session after its first message, in which an image is its name.
func title(in *dispatch.RunRequest) string {
	named := *in
	named.Segments = slices.Clone(in.Segments)
	for i := range named.Segments {
		if a := named.Segments[i].Attachment; a != nil {
			named.Segments[i] = regie.Segment{Text: a.Name}
		}
	}
	for line := range strings.Lines(said(&named)) {
		runes := []rune(oneLine(line[:min(len(line), maxTitled)]))
		if len(runes) > 60 {
			return string(runes[:59]) + "…"
		}
		if len(runes) > 0 {
			return string(runes)
		}
	}
	return ""
}

// maxTitled is how much of a line is looked at for a title, in bytes.
const maxTitled = 4096

// MarkRead says how far the person has read (decision 45).
func (s *Sessions) MarkRead(ctx context.Context, in dispatch.ReadRequest) error {
	if _, err := s.authorize(ctx, "mark_session_read", in.SessionID); err != nil {
		return err
	}
	if in.Seq < 0 {
		return regie.Errorf(regie.CodeBadRequest, "%s must be a number from %d to %d", "read_seq", 0, int64(1)<<53)
	}
	user, err := s.Owner(ctx)
	if err != nil {
		return err
	}
	return s.Store.MarkRead(ctx, regie.ReadMark{UserID: user.ID, SessionID: in.SessionID, Seq: in.Seq})
}

// Export returns all that a person can check of a session.
func (s *Sessions) Export(ctx context.Context, session regie.ID) (store.SessionExport, error) {
	if _, err := s.authorize(ctx, "export_session", session); err != nil {
		return store.SessionExport{}, err
	}
	return s.Store.Export(ctx, session)
}

// Verify checks the logs that a filter selects (spec 11.4). A broken log does not stop the check of
// the next one.
func (s *Sessions) Verify(ctx context.Context, filter store.LogFilter) ([]store.LogReport, error) {
	caller, err := s.authorizeIn(ctx, "verify_logs", &filter.Root, filter.ID)
	if err == nil && filter.ID.IsZero() && filter.Short == "" { // one session is not worth a look at the whole file
		err = s.Store.CheckIntegrity(ctx)
	}
	if err != nil {
		return nil, err
	}
	logs, err := s.Store.Logs(ctx, filter)
	if err != nil {
		return nil, err
	}
	out := []store.LogReport{}
	for _, owner := range logs {
		report, err := s.Store.Verify(ctx, owner.ID)
		line := store.LogReport{LogOwner: owner, VerifyReport: report}
		if regie.CodeOf(err) == regie.CodeChainBroken {
			line.Error = err.Error()
		} else if err != nil {
			return nil, err
		}
		out = append(out, line)
	}
	if !caller.Restricted() && filter.ID.IsZero() && filter.Short == "" {
		err = s.Store.VerifyStats(ctx)
	}
	if regie.CodeOf(err) == regie.CodeChainBroken {
		out, err = append(out, store.LogReport{LogOwner: store.LogOwner{Kind: "stats"}, Error: err.Error()}), nil
	}
	return out, err
}

// Stop ends everything that runs in a session and closes it as cancelled (decision 6). It returns
// the messages that waited; a caller without read access gets only its own.
func (s *Sessions) Stop(ctx context.Context, session regie.ID) (dispatch.Stopped, error) {
	caller, err := s.authorize(ctx, "stop_session", session)
	if err == nil {
		err = s.stopRounds(ctx, session)
	}
	if err != nil {
		return dispatch.Stopped{}, err
	}
	withdrawn, err := s.Store.Withdrawn(ctx, session)
	withdrawn = append([]regie.Message{}, withdrawn...) // a list that is never null
	if !caller.Has(regie.ScopeRead) {
		withdrawn = slices.DeleteFunc(withdrawn, func(m regie.Message) bool {
			return m.Author.TokenID != caller.Token.ID
		})
	}
	return dispatch.Stopped{Withdrawn: withdrawn}, err
}

func (s *Sessions) stopRounds(ctx context.Context, session regie.ID) error {
	for {
		round, err := s.Store.OpenRound(ctx, session)
		if err != nil {
			return err
		}
		if round.IsZero() {
			if err := s.Store.CloseSession(ctx, session, regie.SessionCancelled); regie.CodeOf(
				err) != regie.CodeRoundInProgress {
				return err
			}
			continue // a message came in between
		}
		if err := s.Dispatcher.Stop(ctx, round, regie.StopStop); err != nil {
			return err
		}
		// A round that ended before it heard the word may have made room for the next one, which is
		// to stop too.
		if now, err := s.Store.Round(ctx, round); err != nil || now.Stop == regie.StopStop {
			return err
		}
	}
}

// TakeBack takes a message back that waits for its turn, and returns it. It returns CodeConflict
// where the agent has it already (decision 10). To a caller who may not read, messages of others
// are not there.
func (s *Sessions) TakeBack(ctx context.Context, in dispatch.TakeBackRequest) (regie.Message, error) {
	caller, err := s.authorize(ctx, "take_back_message", in.SessionID)
	if err != nil {
		return regie.Message{}, err
	}
	var own regie.ID // of whose messages alone one can be taken back; zero: any
	if !caller.Has(regie.ScopeRead) {
		own = caller.Token.ID
	}
	return s.Store.TakeBack(ctx, in.SessionID, in.MessageID, own)
}

// Close closes an idle chat, which a message opens again.
func (s *Sessions) Close(ctx context.Context, session regie.ID) error {
	if _, err := s.authorize(ctx, "close_session", session); err != nil {
		return err
	}
	return s.Store.CloseSession(ctx, session, "")
}

// RequestControl answers what a run that the session started now would get, and reserves a free
// slot for it for 30 s or until the first message (spec 5.1, decision 43).
func (s *Sessions) RequestControl(ctx context.Context, in dispatch.ControlRequest) (store.Controlled, error) {
	if _, err := s.authorize(ctx, "request_control", in.SessionID); err != nil {
		return store.Controlled{}, err
	}
	found, _, err := s.Store.Session(ctx, in.SessionID)
	if err == nil && in.Trigger != "" && found.Type != regie.SessionAutomation {
		err = regie.Errorf(regie.CodeBadRequest, "only an automation's session has a trigger: leave it out")
	}
	if err != nil {
		return store.Controlled{}, err
	}
	ask := slot.AskChat
	if found.Type == regie.SessionAutomation {
		ask = askFor(in.Trigger)
	}
	return s.Dispatcher.RequestControl(ctx, in.SessionID, ask)
}

// ReleaseControl gives a reserved slot back.
func (s *Sessions) ReleaseControl(ctx context.Context, session regie.ID) error {
	if _, err := s.authorize(ctx, "release_control", session); err != nil {
		return err
	}
	return s.Dispatcher.ReleaseControl(ctx, session)
}
