package notify

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/fault"
	"github.com/regie-run/regie/internal/store"
)

const (
	// attemptTimeout bounds an attempt; atOnce bounds how many are made at once.
	attemptTimeout = 20 * time.Second
	atOnce         = 4
	// lease is how long an engine has a delivery for itself while it makes an attempt.
	lease = attemptTimeout + 10*time.Second
	// The pause after a failed attempt doubles from firstPause to lastPause, until giveUp after the
	// event.
	firstPause = 10 * time.Second
	lastPause  = time.Hour
	giveUp     = 24 * time.Hour
	// presencePause is how long what a person can see on the screen is held back; then the worker
	// looks again.
	presencePause = 30 * time.Second
	// poll is the pause between two looks at a channel. Other engines write to the outbox too, and
	// a look reads one row of an index.
	poll = 2 * time.Second
)

// Store holds the outbox, and what notifications with content tell.
type Store interface {
	DueDelivery(ctx context.Context, channel string, now time.Time) ([]store.Delivery, error)
	UpdateDelivery(ctx context.Context, d *store.Delivery, attempts int) (bool, error)
	Inbox(ctx context.Context, filter store.InboxFilter) (store.Inbox, error)
	Round(ctx context.Context, id regie.ID) (regie.Round, error)
	Automations(ctx context.Context, filter store.AutomationFilter) ([]store.AutomationRow, error)
}

// Config is what a Worker works with. Every field is required.
type Config struct {
	Store    Store
	Channels map[string]config.Channel
	// Present reports whether a user is there (spec 5.4).
	Present func(ctx context.Context, user regie.ID) bool
	// Translate renders a sentence in the language of this installation.
	Translate func(regie.Sentence) string
	Log       *slog.Logger
}

// Worker delivers the notifications of the configured channels.
type Worker struct {
	Config
	channels []*channel
	attempts chan struct{} // holds a token for each attempt under way
}

// channel is a configured channel.
type channel struct {
	config.Channel
	name   string
	sender sender
}

// New returns a worker that has not started.
func New(c Config) *Worker {
	w := &Worker{Config: c, attempts: make(chan struct{}, atOnce)}
	for _, name := range slices.Sorted(maps.Keys(c.Channels)) {
		settings := c.Channels[name]
		w.channels = append(w.channels, &channel{settings, name, newSender(settings)})
	}
	return w
}

// Selected returns what each channel delivers, for the store.
func (w *Worker) Selected() (out []store.Channel) {
	for _, c := range w.channels {
		out = append(out, store.Channel{Name: c.name, Root: c.Workspace, User: c.User, Kinds: c.Kinds()})
	}
	return out
}

// Run delivers until ctx ends. The next engine makes the attempts again that are under way then.
func (w *Worker) Run(ctx context.Context) {
	var group sync.WaitGroup
	for _, c := range w.channels {
		group.Go(func() { w.serveChannel(ctx, c) })
	}
	group.Wait()
	receivers.CloseIdleConnections()
}

// Test sends a notification to a channel, or to each of them for "", and returns what came of it.
// It returns CodeNotFound for an unknown channel.
func (w *Worker) Test(ctx context.Context, name string) (out []store.Delivery, err error) {
	for _, c := range w.channels {
		if name != "" && name != c.name {
			continue
		}
		d := store.Delivery{ID: regie.NewID(), Channel: c.name, Kind: regie.NotifyTest, State: store.DeliverySent}
		d.CreatedAt = time.Now().UTC()
		m := w.newMessage(c, &d)
		if err := w.send(ctx, c, &m); err != nil {
			d.State, d.Error = store.DeliveryFailed, regie.SentenceOf(err)
		}
		out = append(out, d)
	}
	if len(out) == 0 {
		err = regie.Errorf(regie.CodeNotFound, "there is no such channel: notifications in regie.yaml has the channels %q",
			strings.Join(slices.Sorted(maps.Keys(w.Channels)), ", "))
	}
	return out, err
}

// send makes one attempt.
func (w *Worker) send(ctx context.Context, c *channel, m *Message) error {
	if variable := c.SecretVariable(); variable != "" && c.Secret == "" {
		return regie.Errorf(regie.CodeNotDelivered, "the variable %s is not set: set it for the engine", variable)
	}
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	return c.sender.send(ctx, m)
}

// serveChannel delivers what a channel has, until ctx ends.
func (w *Worker) serveChannel(ctx context.Context, c *channel) {
	for ctx.Err() == nil {
		found, err := w.deliverNext(ctx, c)
		if err != nil && ctx.Err() == nil {
			w.Log.Warn("notifications could not be delivered", "channel", c.name, "error", err)
		}
		if found && err == nil {
			continue
		}
		select {
		case <-ctx.Done():
		case <-time.After(poll):
		}
	}
}

// deliverNext settles the delivery of a channel that is due first, or makes an attempt. It reports
// whether one was due.
func (w *Worker) deliverNext(ctx context.Context, c *channel) (found bool, err error) {
	now := time.Now()
	due, err := w.Store.DueDelivery(ctx, c.name, now)
	if err != nil || len(due) == 0 {
		return false, err
	}
	switch d := &due[0]; {
	case d.Moot:
		d.State = store.DeliverySkipped
	case now.Sub(d.CreatedAt) > giveUp:
		d.State = store.DeliveryFailed
	case w.isSeen(ctx, c, d):
		if d.NextAt = now.Add(presencePause); d.Kind == regie.NotifyFinished {
			d.State = store.DeliverySkipped
		}
	default:
		return true, w.attempt(ctx, c, d)
	}
	_, err = w.Store.UpdateDelivery(ctx, &due[0], due[0].Attempts)
	return true, err
}

// isSeen reports whether the owner of the session sees on the screen what waits or has finished. A
// stream in the background is no proof of that, which is what desktop notifications are for.
func (w *Worker) isSeen(ctx context.Context, c *channel, d *store.Delivery) bool {
	shown := d.Kind == regie.NotifyApproval || d.Kind == regie.NotifyQuestion || d.Kind == regie.NotifyFinished
	return shown && c.Type != config.ChannelDesktop && w.Present(ctx, d.UserID)
}

// attempt sends a notification and stores what came of it. A process that dies in between sends it
// again, under the same id.
func (w *Worker) attempt(ctx context.Context, c *channel, d *store.Delivery) error {
	w.attempts <- struct{}{}
	defer func() { <-w.attempts }()
	d.Attempts++
	d.NextAt = time.Now().Add(lease)
	if claimed, err := w.Store.UpdateDelivery(ctx, d, d.Attempts-1); err != nil || !claimed {
		return err
	}
	m, err := w.compose(ctx, c, d)
	if err == nil {
		err = w.send(ctx, c, &m)
	}
	if err == nil {
		fault.Point(fault.NotifyAfter)
		d.State, d.Error = store.DeliverySent, regie.Sentence{}
	} else {
		d.NextAt, d.Error = time.Now().Add(min(firstPause<<min(d.Attempts-1, 10), lastPause)), regie.SentenceOf(err)
		w.Log.Info("a notification was not delivered", "channel", c.name, "notification", d.ID.String(), "error", err)
	}
	_, err = w.Store.UpdateDelivery(context.WithoutCancel(ctx), d, d.Attempts)
	return err
}
