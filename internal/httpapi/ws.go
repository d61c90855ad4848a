package httpapi

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/access"
	"github.com/regie-run/regie/internal/dispatch"
)

const (
	// maxSubscriptions bounds how many sessions one WebSocket follows.
	maxSubscriptions = 256
	// maxWord bounds what a client says at once on one.
	maxWord = 4 << 10
	// parting is how long a client may take to confirm the close.
	parting = 500 * time.Millisecond
	// everySession is the name of what happens in all sessions.
	everySession = "*"
)

// word is what a client says on a WebSocket: subscribe or unsubscribe, to a session from a place of
// its log on, or to "*".
type word struct {
	Type    string `json:"type"`
	Session string `json:"session_id"`
	After   int64  `json:"after,omitempty"`
}

// news is a message to a client: an event or a delta, in the form of server-sent events, or an
// answer to a command.
type news struct {
	Type    string `json:"type"` // as event: of server-sent events; subscribed, unsubscribed, error
	Session string `json:"session_id,omitempty"`
	ID      int64  `json:"id,omitempty"` // the sequence number of a durable event
	Data    any    `json:"data,omitempty"`
}

// socket is one WebSocket: one goroutine reads commands, one per subscription writes, and a timer
// sends heartbeats.
type socket struct {
	server   *server
	conn     *websocket.Conn
	wire     net.Conn // below conn
	language string

	mu      sync.Mutex // of follows
	follows map[string]*subscription
	group   sync.WaitGroup
}

type subscription struct {
	cancel context.CancelFunc
	over   chan struct{} // closed once nothing more of it is told
}

// serveWebSocket follows many sessions at once (spec 10.2).
func (s *server) serveWebSocket(w http.ResponseWriter, r *http.Request) {
	if _, err := readRequest[none, none](w, r, false); err != nil {
		s.writeError(w, r, err)
		return
	}
	stays, done, err := access.Stay(r.Context(), s.Base)
	if err != nil {
		s.refuseRequest(w, r, "limit", err)
		return
	}
	// The Guard has checked the origin already, for the whole server.
	taken := &hijacker{ResponseWriter: w}
	conn, err := websocket.Accept(taken, r, &websocket.AcceptOptions{
		InsecureSkipVerify: true,
		CompressionMode:    websocket.CompressionDisabled,
	})
	if err != nil {
		done()
		return // the library has answered
	}
	conn.SetReadLimit(maxWord)
	k := &socket{
		server: s, conn: conn, wire: taken.wire, language: r.Header.Get("Accept-Language"),
		follows: map[string]*subscription{},
	}
	if s.Base == nil {
		defer done()
		k.serveSocket(stays)
		return
	}
	// It leaves net/http like a stream: a quiet socket does not need that goroutine.
	s.Going.Go(func() {
		defer done()
		k.serveSocket(stays)
	})
}

// hijacker notes the connection that the library takes over.
type hijacker struct {
	http.ResponseWriter
	wire net.Conn
}

// Hijack implements http.Hijacker.
func (w *hijacker) Hijack() (conn net.Conn, buffered *bufio.ReadWriter, err error) {
	w.wire, buffered, err = http.NewResponseController(w.ResponseWriter).Hijack()
	return w.wire, buffered, err
}

// serveSocket is the whole life of a WebSocket, as long as base.
func (k *socket) serveSocket(base context.Context) {
	k.server.Open(1)
	defer k.server.Open(-1)
	// with the server's end the library would cut the connection, without a word
	ctx, cancel := context.WithCancel(context.WithoutCancel(base))
	unbound := context.AfterFunc(base, func() { k.closeForRestart(context.Cause(base)) })
	k.sendHeartbeats(ctx)
	err := k.readCommands(ctx)
	unbound()
	cancel()
	k.group.Wait()
	if websocket.CloseStatus(err) == -1 { // it was not the client who closed it
		_ = k.conn.CloseNow()
	}
}

// sendHeartbeats pings the client from time to time until ctx ends.
func (k *socket) sendHeartbeats(ctx context.Context) {
	time.AfterFunc(beat, func() {
		if ctx.Err() != nil {
			return
		}
		alive, cancel := context.WithTimeout(ctx, patienceWithReaders)
		defer cancel()
		if k.conn.Ping(alive) != nil {
			_ = k.wire.Close() // nobody is there
			return
		}
		k.sendHeartbeats(ctx)
	})
}

// readCommands handles a client's commands until it leaves or sends an invalid one.
func (k *socket) readCommands(ctx context.Context) error {
	for {
		said, err := k.readCommand(ctx)
		var bad *regie.Error
		if err != nil && !errors.As(err, &bad) {
			return err
		}
		if err == nil {
			err = k.handleCommand(ctx, said)
		}
		if err != nil {
			err = k.writeNews(ctx, news{
				Type: "error", Session: said.Session,
				Data: k.server.describeProblem(k.language, err),
			})
		}
		if err != nil {
			return err
		}
	}
}

// readCommand reads the next command. It returns a coded error for an invalid one, and any other
// where the client has left.
func (k *socket) readCommand(ctx context.Context) (said word, err error) {
	kind, data, err := k.conn.Read(ctx)
	switch {
	case err != nil:
		return said, err
	case kind != websocket.MessageText:
		return said, regie.Errorf(regie.CodeBadRequest, "messages on a WebSocket must be text")
	}
	err = decodeStrict(data, &said)
	return said, err
}

// handleCommand begins or ends a subscription.
func (k *socket) handleCommand(ctx context.Context, said word) error {
	switch said.Type {
	case "subscribe":
		return k.addSubscription(ctx, said)
	case "unsubscribe":
		k.mu.Lock()
		follows := k.follows[said.Session]
		delete(k.follows, said.Session)
		k.mu.Unlock()
		if follows == nil {
			return regie.Errorf(regie.CodeNotFound, "this WebSocket does not follow %q", said.Session)
		}
		follows.cancel()
		<-follows.over // behind the answer nothing of it comes
		return k.writeNews(ctx, news{Type: "unsubscribed", Session: said.Session})
	default:
		return regie.Errorf(regie.CodeBadRequest, "%q is not a kind of message here: use subscribe or unsubscribe", said.Type)
	}
}

func (k *socket) addSubscription(ctx context.Context, said word) error {
	var session regie.ID
	if said.Session != everySession {
		var err error
		if session, err = regie.ParseID(said.Session); err == nil {
			err = k.server.checkPlace(ctx, session, said.After)
		}
		if err != nil {
			return err
		}
	}
	switch {
	case said.Session == everySession && said.After != 0:
		return regie.Errorf(regie.CodeBadRequest,
			"events of all sessions are sent from now on and cannot be resumed: leave %s out", "after")
	case said.After < 0:
		return regie.Errorf(regie.CodeBadRequest, "%s must be a number from %d to %d", "after", 0, int64(1)<<53)
	}
	following, cancel := context.WithCancel(ctx)
	mine := &subscription{cancel, make(chan struct{})}
	k.mu.Lock()
	_, there := k.follows[said.Session]
	full := len(k.follows) >= maxSubscriptions
	if !there && !full {
		k.follows[said.Session] = mine
	}
	k.mu.Unlock()
	switch {
	case there:
		cancel()
		return regie.Errorf(regie.CodeConflict, "this WebSocket follows %s already", said.Session)
	case full:
		cancel()
		return regie.Errorf(regie.CodeConflict, "a WebSocket follows at most %d sessions: open another one",
			maxSubscriptions)
	}
	if err := k.writeNews(ctx, news{Type: "subscribed", Session: said.Session}); err != nil {
		cancel()
		return err
	}
	k.group.Go(func() {
		defer cancel()
		defer close(mine.over)
		k.endSubscription(ctx, said.Session, mine, k.followSession(following, ctx, &said, session), following.Err())
	})
	return nil
}

// endSubscription is the end of a subscription: why, and whether it was asked for.
func (k *socket) endSubscription(ctx context.Context, session string, mine *subscription, err, asked error) {
	k.mu.Lock()
	if k.follows[session] == mine {
		delete(k.follows, session)
	}
	k.mu.Unlock()
	switch {
	case asked != nil:
	case regie.CodeOf(err) == regie.CodeEngineGone:
		k.closeForRestart(err)
	case err != nil:
		// the client has gone if this fails
		_ = k.writeNews(ctx, news{Type: "error", Session: session, Data: k.server.describeProblem(k.language, err)})
	}
}

// closeForRestart closes the connection because the engine ends, or who has it may not any more;
// what is read of it ends with that.
func (k *socket) closeForRestart(why error) {
	if errors.Is(why, access.ErrEnded) {
		closeWithReason(k.conn, k.wire, websocket.StatusPolicyViolation, string(regie.CodeTokenEnded)+
			": the token was revoked, or has expired")
		return
	}
	closeWithReason(k.conn, k.wire, websocket.StatusServiceRestart, "the engine ends: come back, and go on behind the last id")
}

// closeWithReason closes a connection with a reason. The library waits seconds for a client's own
// word on it, and a server that stops for the library: the wire ends before.
func closeWithReason(conn *websocket.Conn, wire net.Conn, status websocket.StatusCode, why string) {
	defer time.AfterFunc(parting, func() { _ = wire.Close() }).Stop()
	_ = conn.Close(status, why) // the client has gone if this fails
}

// followSession sends the events of a session, in the frames of a stream, until following ends. A
// write in progress is completed: with a cancelled context the library would close the connection,
// which carries other subscriptions.
func (k *socket) followSession(following, ctx context.Context, said *word, session regie.ID) error {
	tell := func(n news) error {
		if following.Err() != nil {
			return context.Cause(following)
		}
		return k.writeNews(ctx, n)
	}
	if said.Session == everySession {
		return k.server.Service.Events.Watch(following, func(e regie.Event) error {
			return tell(news{Type: string(e.Type), Session: everySession, Data: Watched(e)})
		})
	}
	var reply replies
	send := func(event, id string, data any) error {
		seq, _ := strconv.ParseInt(id, 10, 64) // ours, or none
		return tell(news{Type: event, Session: said.Session, ID: seq, Data: data})
	}
	return k.server.Service.Events.Follow(following, session, said.After,
		func(item dispatch.Item) error { return reply.sendFrames(item, send) })
}

// writeNews writes news. The library takes one at a time.
func (k *socket) writeNews(ctx context.Context, n news) error {
	data, err := json.Marshal(n)
	if err != nil {
		return err
	}
	writing, cancel := context.WithTimeout(ctx, patienceWithReaders)
	defer cancel()
	err = k.conn.Write(writing, websocket.MessageText, data)
	if errors.Is(err, context.DeadlineExceeded) {
		_ = k.conn.CloseNow() // who reads nothing is cut off
	}
	return err
}
