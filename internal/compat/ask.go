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

// asking is a request to an agent, whichever of the formats it came in.
type asking struct {
	model    string
	messages []said
	tools    []regie.ClientTool
	oneCall  bool
	effort   string
	stream   bool
	metadata map[string]string
	ignored  []string
	// session is the one that the request names, number that of the round whose answer it goes on
	// from; zero: any.
	session, round regie.ID // the round is the one that the session is to end with
	number         int
	// previous is the answer that a thread of Anthropic's goes on from; empty: none. Moved is what
	// its client is told where the session has gone on since.
	previous string
	moved    error
	raw      []byte
}

// said is a message of a request.
type said struct {
	regie.ImportedMessage
	// results are those that a client gives of calls, by its own ids, in a message of the role
	// tool.
	results []clientResult
	param   string // where it stands
	// reference is the id of an item of an earlier response that takes the place of this message;
	// empty: none.
	reference string
}

type clientResult struct{ id, content, param string }

// roleTool is the role of a message with results, which is stored as a part of the one with the
// calls.
const roleTool regie.ImportedRole = "tool"

// named takes the session that headers or metadata name.
func (a *asking) named(r *http.Request) error {
	header, meta := r.Header.Get(HeaderSession), a.metadata["session_id"]
	if header != "" && meta != "" && header != meta {
		return refused("metadata.session_id", "the header %s names another session than metadata.session_id",
			HeaderSession)
	}
	text, param := header, HeaderSession
	if text == "" {
		text, param = meta, "metadata.session_id"
	}
	if text == "" {
		return nil
	}
	id, err := regie.ParseID(text)
	if err != nil {
		return &problem{kind: kindInvalid, param: param, err: err}
	}
	if !a.session.IsZero() && a.session != id {
		return refused("previous_response_id", "the response is of another session than %s", id)
	}
	a.session = id
	return nil
}

// threaded takes the session of the answer that a request goes on from, where it names none itself.
// Anthropic's clients send the whole conversation where they are told that it is not there, or has
// gone on.
func (s *server) threaded(ctx context.Context, a *asking) error {
	if a.previous == "" || !a.session.IsZero() {
		return nil
	}
	lost := &problem{
		status: http.StatusNotFound, kind: kindInvalid, code: "thread_not_found", param: "thread.previous_message_id",
		err: regie.Errorf(regie.CodeNotFound, "there is no answer %s here to go on from: send the whole conversation",
			clip(a.previous)),
	}
	round, err := regie.ParseID(strings.TrimPrefix(a.previous, messagePrefix))
	if err != nil {
		return lost
	}
	view, err := s.Control.Get(ctx, round)
	if err == nil {
		var place regie.Workspace
		if place, err = s.Workspace(ctx); err == nil {
			_, err = s.summary(ctx, view.Session.ID, place, regie.ScopeChat)
		}
	}
	if regie.CodeOf(err) == regie.CodeNotFound {
		return lost
	}
	if err != nil {
		return err
	}
	a.session = view.Session.ID
	if _, results := answered(a.messages); results { // the same ones again are the same request
		return nil
	}
	a.number = view.Round.Number
	a.moved = &problem{
		status: http.StatusConflict, kind: kindInvalid, code: "thread_already_continued",
		param: "thread.previous_message_id",
		err: regie.Errorf(regie.CodeConflict,
			"the session has gone on since %s: continue from its last answer, or send the whole conversation",
			clip(a.previous)),
	}
	return nil
}

// submitted is a message on its way: who asked, and where the answer stands.
type submitted struct {
	dispatch.Run
	summary store.SessionSummary
	// keyed says that it came with a key, again that it came before with it, and is told again,
	// results that it brought those of calls.
	keyed, again, results bool
	// inside says that it went into a session that was there.
	inside bool
	// tries counts how often it was submitted with its key.
	tries int
	// ignored are the messages that were not taken, and language is that of what is said to its
	// client.
	ignored  []string
	language string
}

// submit stores what a request says and starts its round.
func (s *server) submit(r *http.Request, a *asking) (submitted, error) {
	ctx := r.Context()
	if err := s.agent(ctx, a.model); err != nil {
		return submitted{}, err
	}
	place, err := s.Workspace(ctx)
	if err != nil {
		return submitted{}, err
	}
	in := s.request(ctx, a)
	key, err := keyOf(r)
	if err != nil {
		return submitted{}, err
	}
	again, after, err := s.keyed(ctx, place, key, a.raw)
	if err != nil {
		return submitted{}, err
	}
	out, err := s.place(ctx, a, in, place, key)
	after(err)
	out.keyed = key != ""
	if work, is := errors.AsType[begun](err); is {
		err = begun{safely(&out, work.error)}
	}
	if out.tries == 1 || out.Duplicate {
		out.again = again || err == nil && key != "" && out.Duplicate // of two that come together, one is stored
	}
	out.language = language(r)
	return out, err
}

// request is what is asked of an agent, without its place and what it says.
func (s *server) request(ctx context.Context, a *asking) dispatch.RunRequest {
	return dispatch.RunRequest{
		Agent: a.model,
		Policy: approval.Policy{
			OnApproval: approval.OnApproval(s.policy(ctx)), OneCall: a.oneCall,
			ReasoningEffort: a.effort, ClientTools: a.tools,
		},
	}
}

// place puts what a request says where it belongs: into the session that it names, into the one
// whose calls it answers, or into one of its own.
func (s *server) place(ctx context.Context, a *asking, in dispatch.RunRequest, place regie.Workspace,
	key string,
) (submitted, error) {
	if !a.session.IsZero() {
		return s.goOn(ctx, a, in, place, key)
	}
	if session, ok := answered(a.messages); ok {
		named := *a
		named.session = session
		out, err := s.goOn(ctx, &named, in, place, key)
		switch regie.CodeOf(err) {
		case regie.CodeNotFound, regie.CodeConflict, regie.CodeBadRequest:
			// the client goes on from an older place: its history says all
		default:
			return out, err
		}
	}
	return s.begin(ctx, a, in, place, key)
}

// begin makes a session of what a request says.
func (s *server) begin(ctx context.Context, a *asking, in dispatch.RunRequest, place regie.Workspace,
	key string,
) (submitted, error) {
	history, text, err := imports(a.messages)
	if err != nil {
		return submitted{}, err
	}
	in.SessionID, in.ClientID = regie.NewID(), regie.NewID().String()
	in.WorkspaceID, in.Root, in.FoundBy = place.ID, place.Root, place.FoundBy
	in.Origin, in.History, in.Text = regie.OriginAPISession, history, text
	if key == "" {
		return s.send(ctx, in)
	}
	return s.tried(ctx, func(try int, _ regie.ID) (submitted, error) {
		in.SessionID = idOf(nth(try, "session", place.ID.String(), key)...)
		in.ClientID = idOf(nth(try, "request", key, string(a.raw))...).String()
		out, err := s.send(ctx, in)
		out.keyed = true
		return out, err
	})
}

// goOn adds what a request has last to a session that is there.
func (s *server) goOn(ctx context.Context, a *asking, in dispatch.RunRequest, place regie.Workspace,
	key string,
) (submitted, error) {
	summary, err := s.summary(ctx, a.session, place, regie.ScopeChat)
	if err != nil {
		return submitted{}, err
	}
	if a.moved == nil && a.number > 0 {
		a.moved = &problem{
			status: http.StatusConflict, kind: kindInvalid, param: "previous_response_id",
			err: regie.Errorf(regie.CodeConflict,
				"the response is not the last one of its session, which has gone on since: continue from the last one; or, to go on from this one, "+
					"fork the session up to it with POST /api/v1/sessions/%s/fork and {\"round_id\":\"%s\"}, and name the fork with the header %s", a.session, a.round, HeaderSession),
		}
	}
	if a.model != summary.Agent {
		return submitted{}, refused("model", "the session %s is one of the agent %q", a.session, summary.Agent)
	}
	text, results, ignored, err := continues(a)
	if err != nil {
		return submitted{}, err
	}
	in.SessionID, in.WorkspaceID, in.Text, in.Results = a.session, place.ID, text, results
	in.ClientID, in.WhenBusy = regie.NewID().String(), store.Steer
	if len(results) > 0 { // the same results again are the same request, whatever the client calls it
		words := []string{"results", text}
		for _, r := range results {
			words = append(words, r.CallID.String(), r.Content)
		}
		in.ClientID, in.WhenBusy = idOf(words...).String(), store.Reject
	}
	submit := func(try int, before regie.ID) (submitted, error) {
		if key != "" {
			in.ClientID = idOf(nth(try, "request", key, string(a.raw))...).String()
		}
		if summary.Rounds != a.number || try > 1 {
			if err := s.clear(ctx, a, in.ClientID, before); err != nil {
				return submitted{}, err
			}
		}
		out, err := s.steer(ctx, in)
		out.keyed, out.inside = key != "", true
		return out, err
	}
	var out submitted
	switch {
	case len(results) > 0:
		if err = s.counted(ctx, a, &summary, in.ClientID); err == nil {
			out, err = s.send(ctx, in)
		}
	case key == "":
		out, err = submit(1, regie.ID{})
	default:
		out, err = s.tried(ctx, submit)
	}
	out.ignored, out.results, out.inside = ignored, len(results) > 0, true
	return out, err
}

// steer sends a message that answers a question, or becomes part of a round that works. What waits
// for an approval is not withdrawn for it: nobody has told who writes that it would be (decision
// 10).
func (s *server) steer(ctx context.Context, in dispatch.RunRequest) (submitted, error) {
	in.LeavesApprovals = true
	for try := 1; ; try++ {
		out, err := s.send(ctx, in)
		if !errors.Is(err, store.ErrLeavesWaits) {
			return out, err
		}
		inbox, failed := s.Control.Inbox(ctx, store.InboxFilter{SessionID: in.SessionID})
		switch {
		case failed != nil:
			return submitted{}, failed
		case len(inbox.Approvals) > 0:
			return submitted{}, &problem{
				status: http.StatusConflict, kind: kindInvalid, code: "approval_pending",
				err: regie.Errorf(regie.CodeConflict,
					"the session waits for the approval %s, and nothing of this message was stored: decide it first, or begin another session",
					inbox.Approvals[0].ID.String()),
			}
		case !mayDecide(ctx) || try == 3:
			return submitted{}, err
		}
		// somebody has decided it meanwhile
	}
}

// mayDecide reports whether who asks may decide what waits for people.
func mayDecide(ctx context.Context) bool {
	caller := access.From(ctx)
	return caller == nil || caller.Has(regie.ScopeApprove)
}

func (s *server) send(ctx context.Context, in dispatch.RunRequest) (submitted, error) {
	run, err := s.Control.Submit(ctx, in)
	if err != nil {
		return submitted{}, inCallIDs(&in, err)
	}
	out := submitted{Run: run, tries: 1}
	list, err := s.Control.Sessions(ctx, store.SessionFilter{ID: run.SessionID, Limit: 1})
	if err == nil && len(list) == 1 {
		out.summary = list[0]
	}
	if err != nil {
		err = begun{err}
	}
	return out, err
}

// inCallIDs is an error about a client's results with its calls under the ids that the client has
// of them.
func inCallIDs(in *dispatch.RunRequest, err error) error {
	coded, is := errors.AsType[*regie.Error](err)
	if !is || coded.Code != regie.CodeBadRequest || len(in.Results) == 0 {
		return err
	}
	told := &regie.Error{Code: coded.Code, Format: coded.Format, Args: slices.Clone(coded.Args), Err: coded.Err}
	for i, arg := range told.Args {
		if call, is := arg.(regie.ID); is {
			told.Args[i] = callID(in.SessionID, call)
		}
	}
	return told
}

// summary is a session of the workspace; one of another, or of another token's, is as unknown as
// one that is nowhere. Scope is what opens those of others.
func (s *server) summary(ctx context.Context, session regie.ID, place regie.Workspace,
	scope regie.TokenScope,
) (store.SessionSummary, error) {
	list, err := s.Control.Sessions(ctx, store.SessionFilter{ID: session, Limit: 1})
	if err != nil {
		return store.SessionSummary{}, err
	}
	if len(list) != 1 || list[0].ID != session || list[0].WorkspaceID != place.ID ||
		!opens(ctx, &list[0].Session, scope) {
		return store.SessionSummary{}, &problem{
			status: http.StatusNotFound, kind: kindInvalid,
			err: regie.Errorf(regie.CodeNotFound, "there is no session %s here", session),
		}
	}
	return list[0], nil
}

// tail is what stands behind the last reply of a request's messages.
func tail(messages []said) []said {
	for i := range slices.Backward(messages) {
		if messages[i].Role == regie.ImportedAssistant {
			return messages[i+1:]
		}
	}
	return messages
}

// answered finds the session whose calls the last messages of a request answer; ok is false where
// they answer none of ours.
func answered(messages []said) (session regie.ID, ok bool) {
	for _, m := range tail(messages) {
		for _, result := range m.results {
			of, _, ours := parseCallID(result.id)
			if !ours || ok && of != session {
				return regie.ID{}, false
			}
			session, ok = of, true
		}
	}
	return session, ok
}

// continues takes what a request adds to a session: the results of its calls, and what the user
// says behind the last reply. What stands before is there already. Where a session is only named,
// its client may send anything before its last message, which alone is taken (decision 35): ignored
// names the others.
func continues(a *asking) (text string, results []regie.ClientResult, ignored []string, err error) {
	last := tail(a.messages)
	if len(last) == 0 {
		return "", nil, nil, refused("messages",
			"the last message is the assistant's: send one of the user, or the results of its calls")
	}
	if final := last[len(last)-1]; final.Role != regie.ImportedUser && final.Role != roleTool {
		return "", nil, nil, refused(final.param, "the last message is neither the user's nor a result of a call")
	}
	for _, m := range last {
		for _, result := range m.results {
			of, call, ours := parseCallID(result.id)
			if !ours || of != a.session {
				return "", nil, nil, refused(result.param, "no call %s of the session %s waits for a result",
					clip(result.id), a.session)
			}
			results = append(results, regie.ClientResult{CallID: call, Content: result.content})
		}
	}
	var said []string
	all := len(results) > 0 || a.number > 0 || a.previous != ""
	for i, m := range last {
		switch {
		case m.Role == roleTool:
		case m.Role == regie.ImportedUser && (all || i == len(last)-1):
			said = append(said, m.Text)
		case !slices.Contains(a.ignored, m.param) && len(ignored) < maxIgnored:
			ignored = append(ignored, m.param)
		}
	}
	return strings.Join(said, "\n\n"), results, ignored, nil
}

// maxIgnored bounds how many messages a header names as ignored.
const maxIgnored = 16

// imports makes a history of a request's messages, and the text that the round begins with. It is
// empty where the history ends with results.
func imports(messages []said) (history []regie.ImportedMessage, text string, err error) {
	if len(messages) == 0 {
		return nil, "", refused("messages", "there is no message")
	}
	var open []int // the calls of the last reply that have no result yet
	for i := range messages {
		m := &messages[i]
		if m.Role == roleTool {
			for _, result := range m.results {
				if len(history) == 0 {
					return nil, "", refused(result.param, "no message before it has a call %s", clip(result.id))
				}
				reply := &history[len(history)-1]
				at := slices.IndexFunc(open, func(n int) bool { return reply.Calls[n].ID == result.id })
				if at < 0 {
					return nil, "", refused(result.param, "the reply before it has no call %s that is without a result",
						clip(result.id))
				}
				reply.Calls[open[at]].Result = result.content
				open = slices.Delete(open, at, at+1)
			}
			continue
		}
		if len(open) > 0 {
			reply := &history[len(history)-1]
			return nil, "",
				refused(m.param,
					"the call %s before it has no result: each call of a reply has one, directly behind it",
					clip(reply.Calls[open[0]].ID))
		}
		seen := map[string]bool{}
		for n, call := range m.Calls {
			if seen[call.ID] || call.ID == "" {
				return nil, "", refused(m.param, "the calls of one reply have different ids, and %q is none",
					clip(call.ID))
			}
			seen[call.ID] = true
			open = append(open, n)
		}
		if m.Role != regie.ImportedUser && strings.TrimSpace(m.Text) == "" && len(m.Calls) == 0 {
			continue // it says nothing
		}
		history = append(history, m.ImportedMessage)
	}
	last := messages[len(messages)-1]
	switch {
	case len(open) > 0:
		return nil, "", refused("messages", "the call %s has no result",
			clip(history[len(history)-1].Calls[open[0]].ID))
	case last.Role == roleTool:
		return history, "", nil
	case last.Role != regie.ImportedUser:
		return nil, "", refused(last.param, "the last message is neither the user's nor a result of a call")
	}
	return history[:len(history)-1], last.Text, nil
}
