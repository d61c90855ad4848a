package compat

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/access"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
)

// submitted is a message on its way: who asked, and where the answer stands.
type submitted struct {
	dispatch.Run
	summary store.SessionSummary
	// keyed says that it came with a key, again that it came before with it, results that it
	// brought those of calls.
	keyed, again, results bool
	// ignored are the messages that were not taken, and language is that of what is said to its
	// client.
	ignored  []string
	language string
}

// submit stores what a request says and starts its round.
func (s *server) submit(r *http.Request, a *agentRequest) (submitted, error) {
	ctx := r.Context()
	if err := s.checkAgent(ctx, a.model); err != nil {
		return submitted{}, err
	}
	place, err := s.Workspace(ctx)
	if err != nil {
		return submitted{}, err
	}
	key, err := keyOf(r)
	if err != nil {
		return submitted{}, err
	}
	again, after, err := s.beginKeyed(ctx, place, key, a.raw)
	if err != nil {
		return submitted{}, err
	}
	out, err := s.place(ctx, a, place, key)
	after(err)
	out.keyed, out.again = key != "", again || err == nil && key != "" && out.Duplicate
	if err != nil && problemOf(err).begun {
		err = begunSafely(&out, err)
	}
	out.language = language(r)
	return out, err
}

// runRequest is what is asked of an agent in a workspace, without a session and what it says.
func (s *server) runRequest(ctx context.Context, a *agentRequest, place *regie.Workspace) dispatch.RunRequest {
	return dispatch.RunRequest{
		Agent: a.model, WorkspaceID: place.ID,
		Policy: approval.Policy{
			OnApproval: approval.OnApproval(s.policy(ctx)), OneCall: a.oneCall,
			ReasoningEffort: a.effort, ClientTools: a.tools,
		},
	}
}

// newSession adds to a request that it begins a session of its own.
func newSession(in *dispatch.RunRequest, place *regie.Workspace) {
	in.SessionID, in.Origin = regie.NewID(), regie.OriginAPISession
	in.Root, in.FoundBy = place.Root, place.FoundBy
}

// place puts what a request says where it belongs: into the session that it names, into the one
// whose calls it answers, or into one of its own.
func (s *server) place(ctx context.Context, a *agentRequest, place regie.Workspace, key string) (submitted, error) {
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
	newSession(&in, &place)
	in.ClientID, in.History, in.Text = regie.NewID().String(), history, text
	if key != "" {
		in.SessionID, in.ClientID = idOf("session", place.ID.String(), key), a.clientID(key)
	}
	return s.send(ctx, in)
}

// clientID is that of a message that came with a key: the same each time.
func (a *agentRequest) clientID(key string) string {
	return idOf("request", key, string(a.raw)).String()
}

// continueSession adds what a request has last to a session that is there.
func (s *server) continueSession(ctx context.Context, a *agentRequest, place regie.Workspace,
	key string,
) (submitted, error) {
	summary, err := s.session(ctx, a.session, place, regie.ScopeChat)
	if err != nil {
		return submitted{}, err
	}
	if a.moved == nil && a.number > 0 {
		a.moved = &problem{param: "previous_response_id", err: regie.Errorf(regie.CodeConflict,
			"the response is not the last one of its session, which has gone on since: continue from the last one; or, to go on from this one, "+
				"fork the session up to it with POST /api/v1/sessions/%s/fork and {\"round_id\":\"%s\"}, and name the fork with the header %s", a.session, a.round, HeaderSession)}
	}
	if a.model != summary.Agent {
		return submitted{}, refused("model", "the session %s is one of the agent %q", a.session, summary.Agent)
	}
	text, results, ignored, err := a.addition()
	if err != nil {
		return submitted{}, err
	}
	in := s.runRequest(ctx, a, &place)
	in.SessionID, in.Text, in.Results = a.session, text, results
	in.ClientID, in.WhenBusy, in.LeavesApprovals = regie.NewID().String(), store.Steer, true
	if len(results) > 0 { // the same results again are the same request, whatever the client calls it
		words := []string{"results", text}
		for _, r := range results {
			words = append(words, r.CallID.String(), r.Content)
		}
		in.ClientID, in.WhenBusy, in.LeavesApprovals = idOf(words...).String(), store.Reject, false
	} else if key != "" {
		in.ClientID = a.clientID(key)
	}
	if a.number > 0 && summary.Rounds != a.number {
		err = s.takeBackRefused(ctx, a, in.ClientID, len(results) > 0)
	}
	var out submitted
	if err == nil {
		out, err = s.steer(ctx, in)
	}
	out.ignored, out.results = ignored, len(results) > 0
	return out, err
}

// steer sends a message that answers a question, or becomes part of a round that works. A round
// that waits for an approval keeps waiting: its client was never told that a message withdraws the
// approval (decision 10).
func (s *server) steer(ctx context.Context, in dispatch.RunRequest) (submitted, error) {
	for try := 1; ; try++ {
		out, err := s.send(ctx, in)
		if !errors.Is(err, store.ErrLeavesWaits) {
			return out, err
		}
		inbox, failed := s.Service.Approvals.Inbox(ctx, store.InboxFilter{SessionID: in.SessionID})
		switch {
		case failed != nil:
			return submitted{}, failed
		case len(inbox.Approvals) > 0:
			return submitted{}, &problem{code: "approval_pending", err: regie.Errorf(regie.CodeConflict,
				"the session waits for the approval %s, and nothing of this message was stored: decide it first, or begin another session",
				inbox.Approvals[0].ID.String())}
		case !mayDecide(ctx) || try == 3:
			return submitted{}, err
		}
		// somebody has decided it meanwhile
	}
}

// mayDecide reports whether the caller may decide what waits for people.
func mayDecide(ctx context.Context) bool {
	caller := access.From(ctx)
	return caller == nil || caller.Has(regie.ScopeApprove)
}

func (s *server) send(ctx context.Context, in dispatch.RunRequest) (submitted, error) {
	run, err := s.Service.Rounds.Submit(ctx, in)
	if regie.CodeOf(err) == regie.CodeEngineGone { // the message may be stored
		return submitted{Run: dispatch.Run{SessionID: in.SessionID}}, err
	}
	if err != nil {
		return submitted{}, withCallIDs(&in, err)
	}
	out := submitted{Run: run}
	list, err := s.Service.Sessions.List(ctx, store.SessionFilter{ID: run.SessionID, Limit: 1})
	if err == nil && len(list) == 1 {
		out.summary = list[0]
	}
	if err != nil {
		err = begun(err)
	}
	return out, err
}

// withCallIDs is an error about a client's results with its calls under the ids that the client has
// of them.
func withCallIDs(in *dispatch.RunRequest, err error) error {
	coded, is := errors.AsType[*regie.Error](err)
	if !is || coded.Code != regie.CodeBadRequest || len(in.Results) == 0 {
		return err
	}
	out := *coded
	out.Args = slices.Clone(coded.Args)
	for i, arg := range out.Args {
		if call, is := arg.(regie.ID); is {
			out.Args[i] = callID(in.SessionID, call)
		}
	}
	return &out
}

// session returns a session of the workspace. One of another workspace, or of another token where
// the caller lacks the scope, is NOT_FOUND.
func (s *server) session(ctx context.Context, session regie.ID, place regie.Workspace,
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

// round returns a round whose session the caller may continue, else unknown.
func (s *server) round(ctx context.Context, round regie.ID, unknown error) (store.RoundView, error) {
	view, err := s.Service.Rounds.Get(ctx, round)
	if err == nil {
		var place regie.Workspace
		if place, err = s.Workspace(ctx); err == nil {
			_, err = s.session(ctx, view.Session.ID, place, regie.ScopeChat)
		}
	}
	if regie.CodeOf(err) == regie.CodeNotFound {
		err = unknown
	}
	return view, err
}

// continueThread takes the session of the answer that a thread of Anthropic's goes on from, where
// the request names none itself. Anthropic's clients send the whole conversation where they are
// told that it is not there, or has gone on.
func (s *server) continueThread(ctx context.Context, a *agentRequest) error {
	if a.previous == "" || !a.session.IsZero() {
		return nil
	}
	const param = "thread.previous_message_id"
	lost := &problem{code: "thread_not_found", param: param, err: regie.Errorf(regie.CodeNotFound,
		"there is no answer %s here to go on from: send the whole conversation", truncate(a.previous))}
	round, err := regie.ParseID(strings.TrimPrefix(a.previous, messagePrefix))
	if err != nil {
		return lost
	}
	view, err := s.round(ctx, round, lost)
	if err != nil {
		return err
	}
	a.session = view.Session.ID
	if _, results := answeredSession(a.messages); results { // the same ones again are the same request
		return nil
	}
	a.number = view.Round.Number
	a.moved = &problem{code: "thread_already_continued", param: param, err: regie.Errorf(regie.CodeConflict,
		"the session has gone on since %s: continue from its last answer, or send the whole conversation",
		truncate(a.previous))}
	return nil
}

// takeBackRefused makes way for a message, whose id at its client is client, that goes on from an
// answer: a round behind that answer which its provider refused is no part of the conversation that
// the client sees, so it is taken back. Where any other round is there, or the message brings
// results, the session has moved on. A message that is stored already has its place.
func (s *server) takeBackRefused(ctx context.Context, a *agentRequest, client string, results bool) error {
	const tries = 3
	for try := 1; ; try++ {
		view, err := s.Service.Sessions.Get(ctx, a.session)
		stored := func(m store.MessageView) bool { return m.Message.ClientID == client }
		if err != nil || slices.ContainsFunc(view.Thread, stored) || slices.ContainsFunc(view.Pending, stored) {
			return err
		}
		refused, err := s.refusedBehind(ctx, a, &view)
		if err == nil && (results || refused == nil) {
			return a.moved
		}
		for _, round := range slices.Backward(refused) {
			if err == nil && canTakeBack(&view, round) {
				_, err = s.Service.Undos.Undo(ctx, dispatch.UndoRequest{
					UndoID: idOf("undo", round.String()), Target: round, Chat: true,
				})
			}
		}
		switch busy := regie.CodeOf(err) == regie.CodeRoundInProgress || regie.CodeOf(err) == regie.CodeConflict; {
		case !busy:
			return err
		case try == tries: // somebody else's message is being answered: nothing of this one is stored
			return &problem{again: true, err: err}
		}
	}
}

// refusedBehind returns the rounds behind the answer that a request goes on from, nil unless the
// provider refused each of them.
func (s *server) refusedBehind(ctx context.Context, a *agentRequest, view *store.SessionView) ([]regie.ID, error) {
	at := slices.IndexFunc(view.History, func(r regie.Round) bool { return r.Number == a.number })
	if at < 0 {
		return nil, nil
	}
	out := []regie.ID{}
	for i := range view.History[at+1:] {
		id := view.History[at+1+i].ID
		round, err := s.Service.Rounds.Get(ctx, id)
		if err != nil || !refusedByProvider(&round) {
			return nil, err
		}
		out = append(out, id)
	}
	return out, nil
}

// refusedByProvider reports whether a round ended because its provider took no request for now, or
// was not there, before anything came of it: nothing was said, nothing ran, and nothing can be
// charged. A reply that broke off is none of these.
func refusedByProvider(view *store.RoundView) bool {
	if view.Round.State != regie.RoundEnded || view.Round.End != regie.EndProviderError ||
		len(view.Exchanges) == 0 || len(view.Enrichments) > 0 {
		return false
	}
	return !slices.ContainsFunc(view.Exchanges, func(e store.ExchangeView) bool {
		return e.Reply != nil || e.Summary != nil || len(e.Calls) > 0 || len(e.Attempts) == 0 ||
			slices.ContainsFunc(e.Attempts, func(a regie.Attempt) bool {
				passing := a.Code == regie.CodeProviderBusy || a.Code == regie.CodeProviderOffline
				return !passing || a.Partial != "" || a.Usage != regie.Usage{}
			})
	})
}

// canTakeBack reports whether a refused round is still in the conversation and may leave it. One
// that settled calls of the client's stays: without it the prompt would have half a batch.
func canTakeBack(view *store.SessionView, round regie.ID) bool {
	there := false
	for i := range view.Thread {
		m := &view.Thread[i]
		if m.Message.RoundID != round {
			continue
		}
		if m.Message.System != nil && m.Message.System.Type == regie.SystemDataAdded {
			return false
		}
		there = there || !m.Superseded
	}
	return there
}
