package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/coder/websocket"
	jsonv2 "github.com/go-json-experiment/json"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
)

const (
	// maxSubscriptions bounds how many sessions one WebSocket follows.
	maxSubscriptions = 256
	// maxWord bounds what a client says at once on one.
	maxWord = 4 << 10
	// everySession is the name of what happens in all sessions.
	everySession = "*"
)

// word is what a client says on a WebSocket: subscribe or unsubscribe, to a session from a place of its log on, or to "*".
type word struct {
	Type    string `json:"type"`
	Session string `json:"session_id"`
	After   int64  `json:"after,omitempty"`
}

// news is what a client is told: an event or a piece of one, in the words of server-sent events, or an answer to its word.
type news struct {
	Type    string `json:"type"` // as event: of server-sent events; subscribed, unsubscribed, error
	Session string `json:"session_id,omitempty"`
	ID      int64  `json:"id,omitempty"` // the sequence number of a durable event
	Data    any    `json:"data,omitempty"`
}

// socket is one WebSocket: the goroutine of its request reads words, and each subscription has one that writes what it is told.
type socket struct {
	server *server
	conn   *websocket.Conn
	r      *http.Request

	mu      sync.Mutex // of follows
	follows map[string]*subscription
	group   sync.WaitGroup
}

type subscription struct{ cancel context.CancelFunc }

// ws follows many sessions at once (spec 10.2).
func (s *server) ws(w http.ResponseWriter, r *http.Request) {
	if _, err := read[none, none](w, r, false); err != nil {
		s.fail(w, r, err)
		return
	}
	// Whose pages may come is settled in front of this, for all of the server (Guard).
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true, CompressionMode: websocket.CompressionDisabled})
	if err != nil {
		return // the library has answered
	}
	s.opened(1)
	defer s.opened(-1)
	conn.SetReadLimit(maxWord)
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context())) // with its end the library would cut the connection, without a word
	k := &socket{server: s, conn: conn, r: r, follows: map[string]*subscription{}}
	err = k.listen(ctx)
	cancel()
	k.group.Wait()
	if websocket.CloseStatus(err) == -1 { // it was not the client who closed it
		_ = conn.CloseNow()
	}
}

// listen obeys a client's words until it leaves or says what is none.
func (k *socket) listen(ctx context.Context) error {
	beats := time.NewTicker(beat)
	defer beats.Stop()
	k.group.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-k.r.Context().Done():
				k.restart()
				return
			case <-beats.C:
				alive, cancel := context.WithTimeout(ctx, patienceWithReaders)
				err := k.conn.Ping(alive)
				cancel()
				if err != nil {
					_ = k.conn.CloseNow() // nobody is there
					return
				}
			}
		}
	})
	for {
		kind, data, err := k.conn.Read(ctx)
		if err != nil {
			return err
		}
		var said word
		if kind != websocket.MessageText {
			err = regie.Errorf(regie.CodeBadRequest, "words on a WebSocket are text")
		} else if err = jsonv2.Unmarshal(data, &said, jsonv2.RejectUnknownMembers(true)); err != nil {
			err = regie.Errorf(regie.CodeBadRequest, "the request is not what is expected here: %v", err)
		}
		if err == nil {
			err = k.obey(ctx, said)
		}
		if err != nil {
			err = k.tell(ctx, news{Type: "error", Session: said.Session, Data: k.server.problem(k.r.Header.Get("Accept-Language"), err)})
		}
		if err != nil {
			return err
		}
	}
}

// obey begins or ends a subscription.
func (k *socket) obey(ctx context.Context, said word) error {
	switch said.Type {
	case "subscribe":
		return k.subscribe(ctx, said)
	case "unsubscribe":
		k.mu.Lock()
		if follows := k.follows[said.Session]; follows != nil {
			follows.cancel()
			delete(k.follows, said.Session)
		}
		k.mu.Unlock()
		return k.tell(ctx, news{Type: "unsubscribed", Session: said.Session})
	default:
		return regie.Errorf(regie.CodeBadRequest, "%q is no word here: use subscribe or unsubscribe", said.Type)
	}
}

func (k *socket) subscribe(ctx context.Context, said word) error {
	var session regie.ID
	if said.Session != everySession {
		var err error
		if session, err = regie.ParseID(said.Session); err == nil {
			err = k.server.reaches(ctx, session, said.After)
		}
		if err != nil {
			return err
		}
	}
	if said.After < 0 {
		return regie.Errorf(regie.CodeBadRequest, "%s must be a number from %d to %d", "after", 0, int64(1)<<53)
	}
	following, cancel := context.WithCancel(ctx)
	mine := &subscription{cancel}
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
		return regie.Errorf(regie.CodeConflict, "a WebSocket follows at most %d sessions: open another one", maxSubscriptions)
	}
	if err := k.tell(ctx, news{Type: "subscribed", Session: said.Session}); err != nil {
		cancel()
		return err
	}
	k.group.Go(func() {
		defer cancel()
		err := k.follow(following, said, session)
		k.mu.Lock()
		if k.follows[said.Session] == mine {
			delete(k.follows, said.Session)
		}
		k.mu.Unlock()
		switch {
		case following.Err() != nil:
		case regie.CodeOf(err) == regie.CodeEngineGone:
			k.restart()
		case err != nil:
			_ = k.tell(ctx, news{Type: "error", Session: said.Session, Data: k.server.problem(k.r.Header.Get("Accept-Language"), err)}) // the client has gone if this fails
		}
	})
	return nil
}

// restart closes the connection because the engine ends; what is read of it ends with that.
func (k *socket) restart() {
	_ = k.conn.Close(websocket.StatusServiceRestart, "the engine ends: come back, and go on behind the last id") // the client has gone if this fails
}

// follow tells what is followed, in the frames of a stream.
func (k *socket) follow(ctx context.Context, said word, session regie.ID) error {
	if said.Session == everySession {
		return k.server.Control.Watch(ctx, func(e regie.Event) error {
			return k.tell(ctx, news{Type: string(e.Type), Session: everySession, Data: e})
		})
	}
	var reply replies
	send := func(event, id string, data any) error {
		seq, _ := strconv.ParseInt(id, 10, 64) // ours, or none
		return k.tell(ctx, news{Type: event, Session: said.Session, ID: seq, Data: data})
	}
	return k.server.Control.Events(ctx, session, said.After, func(item dispatch.Item) error { return reply.tell(item, send) })
}

// tell writes news. The library takes one at a time.
func (k *socket) tell(ctx context.Context, n news) error {
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
