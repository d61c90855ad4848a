package httpapi

import (
	"cmp"
	"context"
	"mime"
	"net/http"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
)

// MessageRequest is what a client says in a session.
type MessageRequest struct {
	// Content is what is said as one text; Segments are the same with enrichments, in its place.
	Content  string          `json:"content,omitempty"`
	Segments []regie.Segment `json:"segments,omitempty"`
	// ClientID makes a repeated request add nothing.
	ClientID string `json:"client_message_id,omitempty"`
	// WhenBusy says what becomes of the message while a round is open: queue (a round of its own afterwards; the default), steer or reject.
	WhenBusy store.WhenBusy `json:"when_busy,omitempty"`
	// Model and Provider answer in place of those of the session. Limits lower those of the round.
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
	// Admitted says that the message has its place in the thread. One that waits for the end of an open round has none yet.
	Admitted  bool `json:"admitted"`
	Duplicate bool `json:"duplicate,omitempty"`
	// Answered says that the message was taken as the answer to the question that the round waited for.
	Answered bool `json:"answered,omitempty"`
}

func (s *server) messageOperations() []operation {
	send := described[formatQuery, MessageRequest, Accepted](http.MethodPost, "/sessions/{id}/messages", "send_message",
		"Say something in a session; with Accept: text/event-stream the answer is the stream of the round", http.StatusAccepted)
	send.streams, send.serve = true, s.send
	follow := described[eventsQuery, none, regie.Event](http.MethodGet, "/sessions/{id}/events", "follow_session",
		"The log of a session from a place on, and then what comes; Last-Event-ID goes before after", http.StatusOK)
	follow.streams, follow.serve = true, s.follow
	watch := described[none, none, regie.Event](http.MethodGet, "/events", "watch_sessions",
		"What happens in all sessions from now on: what changes a list of them. One without a session says: look at all of them anew", http.StatusOK)
	watch.streams, watch.serve = true, s.watch
	socket := described[none, none, none](http.MethodGet, "/ws", "open_websocket",
		`A WebSocket that follows many sessions: {"type": "subscribe", "session_id", "after"} or "unsubscribe"; "*" is what happens in all of them`, http.StatusSwitchingProtocols)
	socket.serve = s.ws
	return []operation{
		send, watch, socket,
		op(s, http.MethodGet, "/sessions/{id}/messages", "list_messages", "The thread of a session from a place on", http.StatusOK,
			func(ctx context.Context, in *request[messagesQuery, none]) (Page[store.MessageView], error) {
				limit := cmp.Or(in.Query.Limit, defaultPage)
				messages, err := s.Control.Messages(ctx, dispatch.MessagesRequest{SessionID: in.ID, After: in.Query.After, Limit: limit})
				return Page[store.MessageView]{Items: messages}, err
			}),
		follow,
		op(s, http.MethodPost, "/runs", "start_run", "Say something with all that a command settles; makes the session where it is new", http.StatusAccepted,
			func(ctx context.Context, in *request[none, dispatch.RunRequest]) (dispatch.Run, error) {
				in.Body.ClientID = cmp.Or(in.Body.ClientID, in.Key)
				return s.Control.Submit(ctx, in.Body)
			}),
	}
}

type messagesQuery struct {
	After int64 `query:"after" doc:"The sequence number behind which to begin."`
	Limit int   `query:"limit" min:"1" max:"1000" doc:"How many at most; 50 where it is left out."`
}

// send stores a message; for those who want it, it goes on with the stream of the round.
func (s *server) send(w http.ResponseWriter, r *http.Request) {
	in, err := read[formatQuery, MessageRequest](w, r, true)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	streamed := wantsStream(r) || in.Query.Format != ""
	if in.Key != "" {
		in.Key = "send_message " + in.ID.String() + " " + in.Key
	}
	m := &in.Body
	asked := dispatch.RunRequest{
		ClientID: cmp.Or(m.ClientID, in.Key, regie.NewID().String()), SessionID: in.ID, Text: m.Content, Segments: m.Segments, Provider: m.Provider, Model: m.Model,
		Limits: m.Limits, WhenBusy: m.WhenBusy, NoCache: m.NoCache,
	}
	asked.Policy.OnApproval, asked.Policy.Questions = "park", true // whoever speaks here can answer here
	if err := s.known(r.Context(), in.ID); err != nil {
		s.fail(w, r, err)
		return
	}
	run, err := s.Control.Submit(r.Context(), asked)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	accepted := Accepted{
		SessionID: run.SessionID, RoundID: run.RoundID, MessageID: run.MessageID, Seq: run.Seq, Admitted: !run.Pending, Duplicate: run.Duplicate, Answered: run.Answered,
	}
	if !streamed {
		s.answer(w, r, http.StatusAccepted, accepted, nil)
		return
	}
	s.streamRound(w, r, accepted, in.Query.Format)
}

// wantsStream reports whether a client accepts nothing sooner than server-sent events.
func wantsStream(r *http.Request) bool {
	for accepted := range strings.SplitSeq(strings.Join(r.Header.Values("Accept"), ","), ",") {
		switch kind, _, _ := mime.ParseMediaType(accepted); kind {
		case "text/event-stream":
			return true
		case "application/json", "*/*", "application/*":
			return false
		}
	}
	return false
}

type formatQuery struct {
	Format string `query:"format" enum:"openai" doc:"openai: lines of data: {\"content\"}, and data: [DONE] at the end."`
}

type eventsQuery struct {
	After  int64  `query:"after" doc:"The sequence number behind which to begin."`
	Format string `query:"format" enum:"openai" doc:"openai: lines of data: {\"content\"}, and data: [DONE] at the end of the round."`
}
