package httpapi

import (
	"cmp"
	"context"
	"net/http"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/access"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
)

// MessageRequest is what a client says in a session.
type MessageRequest struct {
	// Content is the message as one text; Segments replace it where the message has enrichments.
	Content  string          `json:"content,omitempty"`
	Segments []regie.Segment `json:"segments,omitempty"`
	// ClientID makes a repeated request add nothing.
	ClientID string `json:"client_message_id,omitempty"`
	// WhenBusy says what becomes of the message while a round is open: queue (a round of its own
	// afterwards; the default), steer or reject.
	WhenBusy store.WhenBusy `json:"when_busy,omitempty"`
	// Model and Provider replace those of the session. Limits lower those of the round.
	Provider string       `json:"provider,omitempty"`
	Model    string       `json:"model,omitempty"`
	Limits   regie.Limits `json:"limits,omitzero"`
	NoCache  bool         `json:"no_cache,omitempty"`
}

// Accepted is the answer to a MessageRequest: it is stored.
type Accepted struct {
	SessionID regie.ID `json:"session_id"`
	RoundID   regie.ID `json:"round_id"`
	MessageID regie.ID `json:"message_id"`
	Seq       int64    `json:"seq"` // its place in the log; of one that is not admitted, that of its arrival
	// Admitted says that the message has its place in the thread. One that waits for the end of an
	// open round has none yet.
	Admitted  bool `json:"admitted"`
	Duplicate bool `json:"duplicate,omitempty"`
	// Answered says that the message was taken as the answer to the question that the round waited
	// for: MessageID and Seq are then those of the answer.
	Answered bool `json:"answered,omitempty"`
}

func (s *server) messageOperations() []operation {
	send := describeOperation[formatQuery, MessageRequest, Accepted](http.MethodPost, "/sessions/{id}/messages",
		"send_message",
		"Say something in a session; with Accept: text/event-stream the answer is the stream of the round",
		http.StatusAccepted)
	send.streams, send.serve = true, s.serveSend
	follow := describeOperation[eventsQuery, none, regie.Event](http.MethodGet, "/sessions/{id}/events",
		"follow_session",
		"The log of a session from a place on, and then what comes; Last-Event-ID goes before after", http.StatusOK)
	follow.streams, follow.serve = true, s.serveEvents
	watch := describeOperation[none, none, Watched](http.MethodGet, "/events", "watch_sessions",
		"What happens in all sessions from now on: what changes a list of them. One without a session says: look at all of them anew", http.StatusOK)
	watch.streams, watch.serve = true, s.serveWatch
	socket := describeOperation[none, none, none](http.MethodGet, "/ws", "open_websocket",
		`A WebSocket that follows many sessions: {"type": "subscribe", "session_id", "after"} or "unsubscribe"; "*" is what happens in all of them`, http.StatusSwitchingProtocols)
	socket.serve = s.serveWebSocket
	return []operation{
		send, watch, socket,
		newOperation(s, http.MethodGet, "/sessions/{id}/messages", "list_messages",
			"The thread of a session from a place on", http.StatusOK, s.listMessages),
		follow,
		newOperation(s, http.MethodPost, "/runs", "start_run",
			"Say something with all that a command settles; makes the session where it is new", http.StatusAccepted,
			func(ctx context.Context, in *request[none, dispatch.RunRequest]) (dispatch.Run, error) {
				in.Body.ClientID = cmp.Or(in.Body.ClientID, in.Key)
				return s.Service.Rounds.Submit(ctx, in.Body)
			}),
	}
}

func (s *server) listMessages(ctx context.Context, in *request[dispatch.MessagesRequest, none]) (
	out Page[store.MessageView], err error,
) {
	q := in.Query
	if q.After > 0 && q.Before > 0 {
		return out, regie.Errorf(regie.CodeBadRequest, "after and before exclude each other")
	}
	if q.Cursor != "" {
		if q.After, q.Before, err = parseThreadCursor(q.Cursor); err != nil {
			return out, err
		}
	}
	limit := nextPage(&q.Limit)
	q.SessionID = in.ID
	found, err := s.Service.Sessions.Messages(ctx, q)
	switch more := len(found) > limit; {
	case more && q.Before > 0:
		found = found[1:]
		out.Next = threadCursor(0, found[0].Seq)
	case more:
		found = found[:limit]
		out.Next = threadCursor(found[limit-1].Seq, 0)
	}
	out.Items = found
	return out, err
}

// serveSend stores a message; for those who want it, it goes on with the stream of the round.
func (s *server) serveSend(w http.ResponseWriter, r *http.Request) {
	in, err := readRequest[formatQuery, MessageRequest](w, r, true)
	if err != nil {
		s.writeError(w, r, err)
		return
	}
	format := in.Query.Format
	streamed := wantsStream(r) || format != ""
	if streamed && !access.From(r.Context()).Has(regie.ScopeRead) {
		s.writeError(w, r, access.MissingScope(regie.ScopeRead))
		return
	}
	in.Query.Format = "" // the same message, told in another form, is the same request
	o := operation{id: "send_message", status: http.StatusAccepted}
	if !streamed {
		serveWrite(s, w, r, &o, in, s.sendMessage)
		return
	}
	accepted, _, replayed, err := performWrite(s, r, &o, in, true, s.sendMessage)
	if err != nil {
		s.writeError(w, r, err)
		return
	}
	if replayed {
		w.Header().Set("Idempotent-Replayed", "true")
	}
	s.streamRound(w, r, accepted, format)
}

// sendMessage stores a message.
func (s *server) sendMessage(ctx context.Context, in *request[formatQuery, MessageRequest]) (Accepted, error) {
	m := &in.Body
	asked := dispatch.RunRequest{
		ClientID: cmp.Or(m.ClientID, in.Key, regie.NewID().String()), SessionID: in.ID, Text: m.Content,
		Segments: m.Segments,
		Provider: m.Provider, Model: m.Model,
		Limits: m.Limits, WhenBusy: m.WhenBusy, NoCache: m.NoCache,
	}
	asked.Policy.OnApproval, asked.Policy.Questions = "park", true // whoever speaks here can answer here
	if err := s.checkSession(ctx, asked.SessionID); err != nil {
		return Accepted{}, err
	}
	run, err := s.Service.Rounds.Submit(ctx, asked)
	if err != nil {
		return Accepted{}, err
	}
	return Accepted{
		SessionID: run.SessionID, RoundID: run.RoundID, MessageID: run.MessageID, Seq: run.Seq, Admitted: !run.Pending,
		Duplicate: run.Duplicate, Answered: run.Answered,
	}, nil
}

// wantsStream reports whether a client accepts server-sent events and no JSON.
func wantsStream(r *http.Request) bool {
	accepted := strings.Join(r.Header.Values("Accept"), ",")
	return strings.Contains(accepted, "text/event-stream") && !strings.Contains(accepted, "application/json")
}

type formatQuery struct {
	Format string `query:"format" enum:"openai" doc:"openai: lines of data: {\"content\"}, and data: [DONE] at the end."`
}

type eventsQuery struct {
	After int64 `query:"after" doc:"The sequence number behind which to begin."`
}
