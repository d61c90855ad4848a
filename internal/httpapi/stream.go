package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/access"
	"github.com/regie-run/regie/internal/dispatch"
)

const (
	// beat is how often a stream without news shows that it is there.
	beat = 15 * time.Second
	// patienceWithReaders is how long a write to a stream may take: who reads nothing for that long
	// is cut off, and may come back.
	patienceWithReaders = 30 * time.Second
)

// errStreamEnd ends a stream that has told all it was to tell.
var errStreamEnd = errors.New("the stream has told all")

// stream writes what a session's stream gives as server-sent events (spec 10.2), durable ones with
// their sequence number as id.
type stream struct {
	w   http.ResponseWriter
	out *http.ResponseController
	// conn is the connection of a stream that has left net/http, and header what it begins with; w
	// and out are nil then.
	conn   net.Conn
	header http.Header
	cut    bool

	plain *plainStream // nil: all of it
	// ends reports whether an event is the last one; nil: none is.
	ends func(*regie.Event) bool

	mu     sync.Mutex
	closed bool
	beat   *time.Timer

	replies replies
}

// speaking is which reply deltas belong to.
type speaking struct {
	RoundID  regie.ID `json:"round_id"`
	Exchange int      `json:"exchange"`
}

// serveEvents streams a session's log.
func (s *server) serveEvents(w http.ResponseWriter, r *http.Request) {
	in, err := readRequest[eventsQuery, none](w, r, false)
	after := int64(0)
	if err == nil {
		after, err = lastEvent(r, in.Query.After)
	}
	if err != nil {
		s.writeError(w, r, err)
		return
	}
	out := newStream(w)
	out.ends = (*regie.Event).Removes
	s.streamEvents(r, out, in.ID, after)
}

// lastEvent returns the sequence number at which a reconnecting client resumes: Last-Event-ID goes
// before the query, because the client's address stays the same.
func lastEvent(r *http.Request, after int64) (int64, error) {
	text := r.Header.Get("Last-Event-ID")
	if text == "" {
		return after, nil
	}
	seq, err := strconv.ParseInt(text, 10, 64)
	if err != nil || seq < 0 || len(r.Header.Values("Last-Event-ID")) > 1 {
		return 0, regie.Errorf(regie.CodeBadRequest, "Last-Event-ID must be a sequence number")
	}
	return seq, nil
}

func newStream(w http.ResponseWriter) *stream {
	return &stream{w: w, out: http.NewResponseController(w)}
}

// streamEvents gives a session's events to out until its client leaves, its end comes or the engine
// ends.
func (s *server) streamEvents(r *http.Request, out *stream, session regie.ID, after int64) {
	if err := s.checkPlace(r.Context(), session, after); err != nil {
		s.writeError(out.w, r, err)
		return
	}
	s.serveStream(r, out, func(ctx context.Context) error {
		return s.Service.Events.Follow(ctx, session, after, out.writeItem)
	})
}

// serveWatch streams what happens in all sessions.
func (s *server) serveWatch(w http.ResponseWriter, r *http.Request) {
	_, err := readRequest[none, none](w, r, false)
	if err == nil && r.Header.Get("Last-Event-ID") != "" { // browsers send one by themselves only where events have ids
		err = regie.Errorf(regie.CodeBadRequest,
			"events of all sessions are sent from now on and cannot be resumed: leave %s out",
			"Last-Event-ID")
	}
	if err != nil {
		s.writeError(w, r, err)
		return
	}
	out := newStream(w)
	s.serveStream(r, out, func(ctx context.Context) error { return s.Service.Events.Watch(ctx, out.writeWatched) })
}

// Watched reports an event of one of all sessions. Without seq and time the event is unknown: the
// client reloads its session, or without session_id all of them.
type Watched struct {
	SessionID regie.ID        `json:"session_id,omitzero"`
	Seq       int64           `json:"seq,omitempty"` // of its session's log
	Type      regie.EventType `json:"type"`
	Time      time.Time       `json:"time,omitzero"`
	Body      json.RawMessage `json:"data,omitempty"`
}

// writeWatched writes an event of all sessions: its number is that of its own session's log, so it
// is no id here.
func (o *stream) writeWatched(e regie.Event) error {
	frames, err := appendFrame(nil, "", string(e.Type), Watched(e))
	if err != nil {
		return err
	}
	return o.writeData(frames)
}

// serveStream runs tell until its client leaves, its end comes or the engine ends. Where the server
// bounds its lifetime, the stream leaves net/http, whose goroutine and buffers a quiet stream does
// not need: ten thousand of them then cost only some memory (P5).
func (s *server) serveStream(r *http.Request, out *stream, tell func(context.Context) error) {
	language := r.Header.Get("Accept-Language")
	if r.Method == http.MethodHead { // it has none to tell
		return
	}
	base := s.Base
	if r.ProtoMajor > 1 { // other requests have the same connection
		base = nil
	}
	ctx, done, err := access.Stay(r.Context(), base)
	if err != nil {
		s.refuseRequest(out.w, r, "limit", err)
		return
	}
	if r.Header.Get(dispatch.UnattendedHeader) != "" {
		ctx = dispatch.WithUnattended(ctx)
	}
	if base == nil {
		defer done()
		s.runStream(ctx, language, out, tell)
		return
	}
	if !out.hijack() {
		done()
		return
	}
	s.Going.Go(func() {
		defer out.conn.Close()
		defer done()
		if !out.cut {
			s.runStream(ctx, language, out, tell)
		}
	})
}

// hijack takes the connection out of net/http, and reports whether it could. Who has said more than
// its request is cut off: a stream is the last answer on its connection.
func (o *stream) hijack() bool {
	conn, buffered, err := o.out.Hijack()
	if err != nil {
		return false
	}
	o.conn, o.header, o.cut = conn, o.w.Header(), buffered.Reader.Buffered() > 0
	o.w, o.out = nil, nil
	return true
}

// runStream has tell write to a stream.
func (s *server) runStream(base context.Context, language string, out *stream, tell func(context.Context) error) {
	ctx, cancel := context.WithCancelCause(base)
	defer cancel(nil)
	s.Open(1)
	defer s.Open(-1)
	if err := out.writeHead(); err != nil {
		return
	}
	out.keepAlive(cancel)
	defer out.stopTimer()
	s.reportEnd(ctx, language, out, tell(ctx))
}

// reportEnd tells a client that has not left why its stream ends.
func (s *server) reportEnd(ctx context.Context, language string, out *stream, err error) {
	switch {
	case errors.Is(context.Cause(ctx), access.ErrEnded): // who comes back with it is told the same
		err = access.ErrEnded
	case err == nil, errors.Is(err, errStreamEnd), ctx.Err() != nil, regie.CodeOf(err) == regie.CodeEngineGone:
		return // who comes back after the engine has gone finds the next one, and misses nothing
	}
	_ = out.writeProblem(s.describeProblem(language, err)) // the client has gone if this fails
}

// writeHead tells the client that the stream is there, before there is anything to tell.
func (o *stream) writeHead() error {
	header := o.header
	if o.conn == nil {
		header = o.w.Header()
	}
	header.Set("Content-Type", "text/event-stream")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Accel-Buffering", "no") // a proxy in front is not to gather it
	var head bytes.Buffer
	if o.conn != nil { // its end is that of the connection
		header.Set("Connection", "close")
		header.Set("Date", time.Now().UTC().Format(http.TimeFormat))
		head.WriteString("HTTP/1.1 200 OK\r\n")
		_ = header.Write(&head) // a buffer takes everything
		head.WriteString("\r\n")
		o.header = nil
	}
	head.WriteString(": a stream of Regie\n\n")
	return o.writeData(head.Bytes())
}

// keepAlive sends heartbeats on a quiet stream and detects a client that has gone. It needs no
// goroutine.
func (o *stream) keepAlive(cancel context.CancelCauseFunc) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.beat = time.AfterFunc(beat, func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.closed {
			return
		}
		if err := o.writeLocked([]byte(":\n\n")); err != nil {
			cancel(err)
		}
	})
}

// stopTimer keeps the timer from writing to a response that is over.
func (o *stream) stopTimer() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.beat.Stop()
}

func (o *stream) writeData(data []byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.writeLocked(data)
}

// write sends bytes at once. The lock is held.
func (o *stream) writeLocked(data []byte) error {
	until := time.Now().Add(patienceWithReaders)
	if o.conn != nil {
		_ = o.conn.SetWriteDeadline(until) // what fails here fails at once below
		if _, err := o.conn.Write(data); err != nil {
			return err
		}
	} else {
		_ = o.out.SetWriteDeadline(until)          // what has no deadlines does without
		if _, err := o.w.Write(data); err != nil { //nolint:gosec // JSON in server-sent events, which no browser shows
			return err
		}
		if err := o.out.Flush(); err != nil {
			return err
		}
	}
	if o.beat != nil {
		o.beat.Reset(beat)
	}
	return nil
}

// writeItem writes one item of a stream.
func (o *stream) writeItem(item dispatch.Item) error {
	var frames []byte
	var err error
	over := item.Event != nil && o.ends != nil && o.ends(item.Event)
	if o.plain == nil {
		err = o.replies.sendFrames(item, func(event, id string, data any) (err error) {
			frames, err = appendFrame(frames, id, event, data)
			return err
		})
	} else {
		frames, err = o.plain.encodeFrames(item)
		if over = over || o.plain.over; over {
			frames = append(frames, "data: [DONE]\n\n"...)
		}
	}
	if err == nil && len(frames) > 0 {
		err = o.writeData(frames)
	}
	if err == nil && over {
		err = errStreamEnd
	}
	return err
}

// replies sets a start and an end, which are not durable, around the deltas of each reply.
type replies struct {
	spoken speaking
	open   bool // spoken is being told
}

// sendFrames gives send the frames of an item: what ends a reply comes behind the reply's end.
func (p *replies) sendFrames(item dispatch.Item, send func(event, id string, data any) error) error {
	e, d := item.Event, item.Delta
	begins := d != nil && d.CallID.IsZero() && d.Silent == 0 && (!p.open || p.spoken != speaking{d.RoundID, d.Exchange})
	ends := p.open && (begins || e != nil && (e.Type == regie.EventMessage || e.Type == regie.EventRound ||
		e.Type == regie.EventStreamReset))
	if ends {
		p.open = false
		if err := send("stream_complete", "", p.spoken); err != nil {
			return err
		}
	}
	if begins {
		p.open, p.spoken = true, speaking{d.RoundID, d.Exchange}
		if err := send("stream_start", "", p.spoken); err != nil {
			return err
		}
	}
	if d != nil {
		return send("stream_chunk", "", d)
	}
	return send(string(e.Type), strconv.FormatInt(e.Seq, 10), e)
}

// writeProblem tells a stream that has begun why it ends.
func (o *stream) writeProblem(p problem) error {
	frames, err := appendFrame(nil, "", "error", p)
	if o.plain != nil {
		frames, err = appendFrame(nil, "", "", map[string]any{"error": p})
		frames = append(frames, "data: [DONE]\n\n"...)
	}
	if err == nil {
		err = o.writeData(frames)
	}
	return err
}

// appendFrame appends a server-sent event. JSON has no raw line breaks.
func appendFrame(to []byte, id, event string, data any) ([]byte, error) {
	body, err := json.Marshal(data)
	if err != nil {
		return nil, err
	}
	if id != "" {
		to = append(append(append(to, "id: "...), id...), '\n')
	}
	if event != "" {
		to = append(append(append(to, "event: "...), event...), '\n')
	}
	to = append(append(append(to, "data: "...), body...), '\n', '\n')
	return to, nil
}
