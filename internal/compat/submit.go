package compat

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/access"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
)

// submitted is a stored message and its session.
type submitted struct {
	dispatch.Run
	summary store.SessionSummary
	// keyed says that it came with a key, results that it brought those of calls: sent once more,
	// it is the same message.
	keyed, results bool
}

// submitRequest stores the request's message and starts its round.
func (s *server) submitRequest(r *http.Request, a *agentRequest) (submitted, error) {
	ctx := r.Context()
	if err := s.checkAgent(ctx, a.model); err != nil {
		return submitted{}, err
	}
	place, err := s.Workspace(ctx)
	if err != nil {
		return submitted{}, err
	}
	key, err := store.IdempotencyKey(r.Header.Values("Idempotency-Key"))
	if err != nil {
		return submitted{}, &problem{param: "Idempotency-Key", err: err}
	}
	if caller := access.From(ctx); key != "" && caller != nil && !caller.Token.ID.IsZero() {
		key = caller.Token.ID.String() + " " + key // each token has keys of its own
	}
	out, err := s.placeRequest(ctx, a, place, key)
	out.keyed = key != ""
	return out, err
}

// runRequest returns the request to an agent in a workspace, without session and message.
func (s *server) runRequest(ctx context.Context, a *agentRequest, place *regie.Workspace) dispatch.RunRequest {
	return dispatch.RunRequest{
		Agent: a.model, WorkspaceID: place.ID,
		Policy: approval.Policy{
			OnApproval: s.approvalPolicy(ctx), OneCall: a.oneCall,
			ReasoningEffort: a.effort, ClientTools: a.tools,
			Restitution: approval.RestitutionUnchecked, // such a client cannot take back a draft that it streams
		},
	}
}

// placeRequest places a request: in the session that it names, in the one that its results belong
// to, or in a new one. With a key the ids are the same each time, so the store recognises a
// repeated request.
func (s *server) placeRequest(ctx context.Context, a *agentRequest, place regie.Workspace, key string) (submitted,
	error,
) {
	if !a.session.IsZero() {
		return s.continueSession(ctx, a, place, key)
	}
	if session, ok := answeredSession(a.messages); ok {
		named := *a
		named.session = session
		out, err := s.continueSession(ctx, &named, place, key)
		switch regie.CodeOf(err) {
		case regie.CodeNotFound, regie.CodeConflict, regie.CodeBadRequest:
			// the client goes on from an older place: its history says all
		default:
			return out, err
		}
	}
	history, text, err := importHistory(a.messages)
	if err != nil {
		return submitted{}, err
	}
	in := s.runRequest(ctx, a, &place)
	in.SessionID, in.Origin, in.Root, in.FoundBy = regie.NewID(), regie.OriginAPISession, place.Root, place.FoundBy
	in.ClientID, in.History, in.Text = regie.NewID().String(), history, text
	if key != "" {
		in.SessionID, in.ClientID = idOf("session", place.ID.String(), key), a.clientID(key)
	}
	return s.sendRun(ctx, in)
}

// clientID returns that of a message that came with a key: the same each time.
func (a *agentRequest) clientID(key string) string {
	return idOf("request", key, string(a.raw)).String()
}

// continueSession adds the new part of a request to an existing session.
func (s *server) continueSession(ctx context.Context, a *agentRequest, place regie.Workspace,
	key string,
) (submitted, error) {
	summary, err := s.findSession(ctx, a.session, place, regie.ScopeChat)
	if err != nil {
		return submitted{}, err
	}
	if a.model != summary.Agent {
		return submitted{}, badParameter("model", "the session %s is one of the agent %q", a.session, summary.Agent)
	}
	text, results, err := a.newInput()
	if err != nil {
		return submitted{}, err
	}
	in := s.runRequest(ctx, a, &place)
	in.SessionID, in.Text, in.Results = a.session, text, results
	in.ClientID, in.WhenBusy, in.LeavesApprovals = regie.NewID().String(), store.Steer, true
	if len(results) > 0 { // the same results are the same request, under any key
		words := []string{"results", text}
		for _, r := range results {
			words = append(words, r.CallID.String(), r.Content)
		}
		in.ClientID, in.WhenBusy, in.LeavesApprovals = idOf(words...).String(), store.Reject, false
	} else if key != "" {
		in.ClientID = a.clientID(key)
	}
	if err := s.checkLast(ctx, a, in.ClientID); err != nil {
		return submitted{}, err
	}
	out, err := s.sendRun(ctx, in)
	// a round that waits for an approval keeps waiting: its client was never told that a message
	// withdraws the approval (decision 10)
	if errors.Is(err, store.ErrLeavesWaits) {
		err = &problem{code: "approval_pending", err: regie.Errorf(regie.CodeConflict,
			"the session waits for an approval, and this message was not stored: decide it first (regie approvals), or start another session")}
	}
	out.results = len(results) > 0
	return out, err
}

// checkLast refuses a message that continues an answer other than the session's last one. It
// ignores rounds that their provider refused, and accepts a message that is stored already; client
// is the message's id at its client.
func (s *server) checkLast(ctx context.Context, a *agentRequest, client string) error {
	if a.round.IsZero() {
		return nil
	}
	view, err := s.Service.Sessions.Get(ctx, a.session)
	if err != nil {
		return err
	}
	for _, m := range slices.Concat(view.Thread, view.Pending) {
		if m.Message.ClientID == client {
			return nil
		}
	}
	for _, round := range slices.Backward(view.History) {
		switch {
		case round.ID == a.round:
			return nil
		case round.End != regie.EndProviderError:
			return &problem{param: "previous_response_id", err: regie.Errorf(regie.CodeConflict,
				"the response is not the last one of its session: continue from the last one; or, to continue from this one, fork the session with POST /api/v1/sessions/%s/fork and {\"round_id\":\"%s\"}, and name the fork with the header %s", a.session, a.round, HeaderSession)}
		}
	}
	return nil
}

func (s *server) sendRun(ctx context.Context, in dispatch.RunRequest) (submitted, error) {
	run, err := s.Service.Rounds.Submit(ctx, in)
	if regie.CodeOf(err) == regie.CodeEngineGone { // the message may be stored
		return submitted{Run: dispatch.Run{SessionID: in.SessionID}}, err
	}
	if err != nil {
		return submitted{}, err
	}
	out := submitted{Run: run}
	list, err := s.Service.Sessions.List(ctx, store.SessionFilter{ID: run.SessionID, Limit: 1})
	if err == nil && len(list) == 1 {
		out.summary = list[0]
	}
	if err != nil {
		err = markBegun(&out, err)
	}
	return out, err
}

// findSession returns a session of the workspace. One of another workspace, or of another token
// where the caller lacks the scope, is NOT_FOUND.
func (s *server) findSession(ctx context.Context, session regie.ID, place regie.Workspace,
	scope regie.TokenScope,
) (store.SessionSummary, error) {
	list, err := s.Service.Sessions.List(ctx, store.SessionFilter{ID: session, Limit: 1})
	if err != nil {
		return store.SessionSummary{}, err
	}
	caller := access.From(ctx)
	if len(list) != 1 || list[0].ID != session || list[0].WorkspaceID != place.ID ||
		caller != nil && !caller.Has(scope) && !caller.Began(&list[0].Session) {
		return store.SessionSummary{}, regie.Errorf(regie.CodeNotFound, "there is no session %s here", session)
	}
	return list[0], nil
}

// findRound returns a round in a session that the caller may read, else unknown.
func (s *server) findRound(ctx context.Context, round regie.ID, scope regie.TokenScope, unknown error) (store.RoundView,
	error,
) {
	view, err := s.Service.Rounds.Get(ctx, round)
	if err == nil {
		var place regie.Workspace
		if place, err = s.Workspace(ctx); err == nil {
			_, err = s.findSession(ctx, view.Session.ID, place, scope)
		}
	}
	if regie.CodeOf(err) == regie.CodeNotFound {
		err = unknown
	}
	return view, err
}
