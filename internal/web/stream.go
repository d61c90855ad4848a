package web

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/access"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/i18n"
)

const (
	// beat is how often a quiet stream shows that it is there.
	beat = 15 * time.Second
	// pause is how long news are gathered before they are sent.
	pause = 50 * time.Millisecond
	// pauseOthers is the same for what happens in other chats.
	pauseOthers = 500 * time.Millisecond
	// goneEvent says that the page shows something that was removed.
	goneEvent = "event: gone\ndata: {}\n\n"
)

// snapshot is all that a page shows and may change. Session is the one whose events it follows;
// zero: none.
type snapshot struct {
	Title          string
	Say            string // for role=status
	Seq            int64
	Items, Regions []item
	Grows          bool // with the time, without news
	Unread         bool // the person has not seen all of the session
	Session        regie.ID
	every          time.Duration // for which news of other chats are gathered; 0: pauseOthers
}

func (s *snapshot) currentSnapshot() *snapshot { return s }

// livePage is a page that its stream keeps current: each has a frame, which has a snapshot.
type livePage interface{ currentSnapshot() *snapshot }

// addPage adds a page, and the stream of its changes.
func addPage[P livePage](s *Site, path, name string, load func(context.Context, *visit) (P, error), regions ...string) {
	regions = append(regions, "nav", "tabs")
	s.mux.HandleFunc("GET "+path, s.handle(showPage(name, load)))
	s.mux.HandleFunc("GET "+path+"/stream", s.handle(func(v *visit) error {
		return v.stream(-1, regie.ID{}, func(ctx context.Context) (*snapshot, error) {
			page, err := load(ctx, v)
			if err != nil {
				return nil, err
			}
			shown := page.currentSnapshot()
			err = shown.addRegions(v, page, regions...)
			return shown, err
		})
	}))
}

func showPage[P any](name string, load func(context.Context, *visit) (P, error)) func(*visit) error {
	return func(v *visit) error {
		page, err := load(v.r.Context(), v)
		if err == nil {
			v.render(http.StatusOK, name, page)
		}
		return err
	}
}

// update is the difference of two snapshots as the page's module reads it. Items lists the ids in
// their order, HTML has those that are new or changed, regions among them.
type update struct {
	Title  string                   `json:"title"`
	Say    string                   `json:"say"`
	Unread bool                     `json:"unread"`
	Items  []string                 `json:"items"`
	HTML   map[string]template.HTML `json:"html"`
}

// live is the reply that streams in.
type live struct {
	ID     string      `json:"id"`
	Blocks []liveBlock `json:"blocks"`
}

type liveBlock struct {
	Index int           `json:"i"`
	HTML  template.HTML `json:"html"`
}

// pageStream sends what changes of a page.
type pageStream struct {
	v    *visit
	out  *http.ResponseController
	load func(context.Context) (*snapshot, error)
	// every is how long news of other chats are gathered.
	every time.Duration
	sent  map[string]template.HTML
	chat  bool // the page shows the replies of its session

	id     string // of the reply that streams in
	text   string // of it so far
	blocks []template.HTML
	pace   time.Duration // at least between two parts of it, so that rendering takes a tenth of the time
	grows  bool
}

// note is what wakes a stream: an item of the session, or the error that ends it.
type note struct {
	item dispatch.Item
	err  error
}

// streamChat streams what changes of a chat.
func streamChat(v *visit, id regie.ID) error {
	after, _ := strconv.ParseInt(v.r.URL.Query().Get("after"), 10, 64) // 0 for what is no number
	if last, err := strconv.ParseInt(v.r.Header.Get("Last-Event-ID"), 10, 64); err == nil {
		after = last
	}
	worked := false
	return v.stream(after, id, func(ctx context.Context) (*snapshot, error) {
		page, err := v.loadChat(ctx, id, "", "")
		if err != nil {
			return nil, err
		}
		shown := &page.snapshot
		if worked = worked || page.Busy; worked && !page.Busy && page.Answered {
			shown.Say = v.text.T("Answer ready")
		}
		if len(page.Needs) > 0 {
			shown.Say = v.text.T("Needs you: %s", page.Needs[0].Title)
		}
		err = shown.addRegions(v, page, "nav", "tabs", "state", "status", "facts", "modes", "send")
		return shown, err
	})
}

// addRegions renders the parts of a page that are no list: templates by their names.
func (s *snapshot) addRegions(v *visit, page any, names ...string) error {
	b := &thread{v: v}
	for _, name := range names {
		b.add(name, "region-"+name, page)
	}
	s.Regions = b.items
	return b.err
}

// stream sends changes until the client leaves or the server stops. after is the last event that
// the client shows: if nothing came since, only later changes are sent. session is that of a chat.
func (v *visit) stream(after int64, session regie.ID, load func(context.Context) (*snapshot, error)) error {
	stays, done, err := access.Stay(v.r.Context(), nil)
	if err != nil {
		return err
	}
	defer done()
	ctx, cancel := context.WithCancel(stays)
	defer cancel()
	p := &pageStream{
		v: v, out: http.NewResponseController(v.w), load: load, sent: map[string]template.HTML{},
		chat: !session.IsZero(),
	}
	first, err := load(ctx)
	if regie.CodeOf(err) == regie.CodeNotFound {
		startStream(v.w)
		_ = p.write(goneEvent) // the client has gone if this fails
		return nil
	}
	if err != nil {
		return err
	}
	if after == first.Seq { // the page shows it
		shown := *first
		if v.r.URL.Query().Get("again") != "" { // but not what happened elsewhere since
			shown.Regions = nil
		}
		p.remember(&shown)
	}
	p.every, session = cmp.Or(first.every, pauseOthers), cmp.Or(session, first.Session)
	startStream(v.w)
	v.site.Open(1)
	defer v.site.Open(-1)
	notes, others := make(chan note), make(chan struct{}, 1)
	var feeds sync.WaitGroup
	feeds.Go(func() { v.follow(ctx, session, first.Seq, notes) })
	feeds.Go(func() { v.watch(ctx, others) })
	defer func() { cancel(); feeds.Wait() }()
	if err := p.sendChanges(first); err != nil {
		return nil // the client has gone
	}
	p.run(ctx, notes, others)
	return nil
}

// follow tells what happens in a session; without one it returns at once.
func (v *visit) follow(ctx context.Context, session regie.ID, after int64, notes chan<- note) {
	if session.IsZero() {
		return
	}
	send := func(n note) error {
		select {
		case notes <- n:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	sink := func(i dispatch.Item) error { return send(note{item: i}) }
	var err error
	if access.From(ctx).Visitor != nil {
		err = v.site.Service.Visits.Follow(ctx, after, sink)
	} else {
		err = v.site.Service.Events.Follow(ctx, session, after, sink)
	}
	_ = send(note{err: err}) // the client has gone if this fails
}

// watch tells that something happened in any session.
func (v *visit) watch(ctx context.Context, others chan<- struct{}) {
	_ = v.site.Service.Events.Watch(ctx, func(regie.Event) error { // the stream ends with its session's
		select {
		case others <- struct{}{}:
		default:
		}
		return nil
	})
}

// run sends news, gathered for a moment, until the stream ends.
func (p *pageStream) run(ctx context.Context, notes <-chan note, others <-chan struct{}) {
	stale, fresh := true, false // what the page shows; of the reply that streams in
	timer, heart := time.NewTimer(beat), time.NewTicker(beat)
	defer timer.Stop()
	defer heart.Stop()
	due := time.Time{}
	wake := func(in time.Duration) {
		if at := time.Now().Add(in); due.IsZero() || at.Before(due) {
			due = at
			timer.Reset(in)
		}
	}
	wake(p.every) // for what came between the first reading and the watching
	for {
		var err error
		select {
		case <-ctx.Done():
			return
		case <-p.v.site.stop:
			return
		case <-heart.C:
			err = p.write(":\n\n")
		case <-others:
			stale = true
			wake(p.every)
		case n := <-notes:
			if n.err != nil || n.item.Event != nil && n.item.Event.Removes() {
				_ = p.write(goneEvent) // the client has gone if this fails
				return
			}
			stale = p.take(n.item) || stale
			fresh = true
			wake(max(pause, p.pace))
		case <-timer.C:
			due = time.Time{}
			if stale {
				err = p.sync(ctx)
			}
			if err == nil && fresh {
				err = p.sendLive()
			}
			if stale, fresh = p.grows, false; stale {
				wake(time.Second)
			}
		}
		if err != nil {
			return
		}
	}
}

// take takes an item in, and reports whether the page has changed otherwise than by the reply that
// streams in.
func (p *pageStream) take(i dispatch.Item) bool {
	waited := p.v.retry
	p.v.retry = waitForModel(p.v.text, &i)
	if d := i.Delta; d != nil {
		if p.chat && d.CallID.IsZero() && d.Content != "" {
			if id := "live-" + d.RoundID.String() + "-" + strconv.Itoa(d.Exchange); id != p.id {
				p.id, p.text, p.blocks = id, "", nil
			}
			p.text += d.Content
		}
		return waited != p.v.retry
	}
	switch i.Event.Type {
	case regie.EventMessage, regie.EventRound, regie.EventStreamReset:
		p.id, p.text, p.blocks = "", "", nil
	}
	return true
}

// waitForModel says that a model call is retried later, or that the model is silent.
func waitForModel(t *i18n.Printer, i *dispatch.Item) statusLine {
	var reset struct {
		Code regie.Code `json:"code"`
		Wait int64      `json:"wait_ms"`
	}
	switch {
	case i.Delta != nil && i.Delta.Silent > 0:
		silent := t.T("The model has sent nothing for %s s.", strconv.Itoa(i.Delta.Silent))
		return statusLine{"work", "clock", t.T("Working"), silent}
	case i.Event != nil && i.Event.Type == regie.EventStreamReset && json.Unmarshal(i.Event.Body, &reset) == nil:
		at := i.Event.Time.Add(time.Duration(reset.Wait) * time.Millisecond).Local().Format(time.TimeOnly)
		return statusLine{"work", "clock", t.T("Asks the model again at %s", at), string(reset.Code)}
	}
	return statusLine{}
}

// sync sends what the store says otherwise than the page.
func (p *pageStream) sync(ctx context.Context) error {
	now, err := p.load(ctx)
	if regie.CodeOf(err) == regie.CodeNotFound {
		_ = p.write(goneEvent) // the stream ends anyway
	}
	if err != nil {
		return err
	}
	return p.sendChanges(now)
}

func (p *pageStream) remember(s *snapshot) {
	for _, list := range [][]item{s.Items, s.Regions} {
		for _, one := range list {
			p.sent[one.ID] = one.HTML
		}
	}
}

func (p *pageStream) sendChanges(now *snapshot) error {
	out := update{
		Title: now.Title, Say: now.Say, Unread: now.Unread, Items: []string{}, HTML: map[string]template.HTML{},
	}
	for n, list := range [][]item{now.Items, now.Regions} {
		for _, one := range list {
			if n == 0 {
				out.Items = append(out.Items, one.ID)
			}
			if before, known := p.sent[one.ID]; !known || before != one.HTML {
				out.HTML[one.ID] = one.HTML
			}
		}
	}
	p.sent, p.grows = map[string]template.HTML{}, now.Grows
	p.remember(now)
	if p.id != "" {
		at := slices.IndexFunc(out.Items, func(id string) bool { return strings.HasPrefix(id, "p-") })
		if at < 0 { // no message waits behind it
			at = len(out.Items)
		}
		out.Items = slices.Insert(out.Items, at, p.id)
	}
	return p.send("sync\nid: "+strconv.FormatInt(now.Seq, 10), out)
}

// sendLive sends the blocks of the reply that are new or changed: all but the last one are
// finished.
func (p *pageStream) sendLive() error {
	if p.id == "" {
		return nil
	}
	from := max(0, len(p.blocks)-1)
	out, began := live{ID: p.id}, time.Now()
	blocks := renderBlocks(p.text, from)
	p.pace = 10 * time.Since(began)
	for i, html := range blocks {
		if n := from + i; n == len(p.blocks) || p.blocks[n] != html {
			out.Blocks = append(out.Blocks, liveBlock{n, html})
			p.blocks = append(p.blocks[:n], html)
		}
	}
	if len(out.Blocks) == 0 {
		return nil
	}
	return p.send("live", out)
}

// send sends an event: its name, and its id where it has one.
func (p *pageStream) send(event string, data any) error {
	body, err := json.Marshal(data)
	if err != nil {
		return err
	}
	return p.write(fmt.Sprintf("event: %s\ndata: %s\n\n", event, body))
}

func (p *pageStream) write(text string) error {
	_, err := p.v.w.Write([]byte(text))
	return errors.Join(err, p.out.Flush())
}
