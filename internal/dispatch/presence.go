package dispatch

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// Presence is what is known of a user being there. It is kept for 24 hours after the last heartbeat
// (decision 39).
type Presence struct {
	UserID regie.ID   `json:"user_id"`
	User   string     `json:"user"` // the name
	Mode   store.Mode `json:"mode"`
	// Since is the first heartbeat of those that followed on one another; zero where there was
	// none.
	Since time.Time `json:"since,omitzero"`
	// LastSeen is the last heartbeat, which of other engines, or after a crash, is up to half of
	// the time of presence old; zero where there was none.
	LastSeen time.Time `json:"last_seen,omitzero"`
	// Streams are those that are open here: each of them is a heartbeat all the time.
	Streams int `json:"streams,omitempty"`
}

// UnattendedHeader marks a stream that no person reads: it does not make its user present.
const UnattendedHeader = "Regie-Unattended"

type unattendedKey struct{}

// WithUnattended marks what is followed under a context as read by no person.
func WithUnattended(ctx context.Context) context.Context {
	return context.WithValue(ctx, unattendedKey{}, true)
}

// IsUnattended reports whether a context is marked by WithUnattended.
func IsUnattended(ctx context.Context) bool { return ctx.Value(unattendedKey{}) != nil }

// presenceStore is what presence needs of a store.
type presenceStore interface {
	Present(ctx context.Context, marks []store.PresenceMark) error
	Presences(ctx context.Context, since time.Time) ([]store.PresenceMark, error)
}

// Present knows which users are there. Heartbeats are counted in memory; a row is written when a
// user comes, and at most twice in the time of presence after that, so that other engines and the
// next process know. It has no goroutine: one timer, while there is something to write. Its methods
// may be called from any goroutine.
type Present struct {
	store  presenceStore
	place  string
	window time.Duration
	log    *slog.Logger

	mu     sync.Mutex
	users  map[regie.ID]*attendance
	timer  *time.Timer // nil while nothing is to be written
	closed bool
}

type attendance struct {
	streams              int
	since, seen, written time.Time
}

// NewPresent returns an empty one. place names this engine; a user counts as present for window
// after a heartbeat.
func NewPresent(s presenceStore, place string, window time.Duration, log *slog.Logger) *Present {
	return &Present{store: s, place: place, window: window, log: log, users: map[regie.ID]*attendance{}}
}

// Enter counts a stream of a user in: as long as it is open, the user is there.
func (p *Present) Enter(ctx context.Context, user regie.ID) { p.addPresence(ctx, user, 1) }

// Beat is a heartbeat of a user.
func (p *Present) Beat(ctx context.Context, user regie.ID) { p.addPresence(ctx, user, 0) }

func (p *Present) addPresence(ctx context.Context, user regie.ID, streams int) {
	now := time.Now()
	p.mu.Lock()
	a := p.users[user]
	if a == nil {
		a = &attendance{}
		p.users[user] = a
	}
	if !p.isHere(a, now) {
		a.since = now
	}
	a.seen = now
	a.streams += streams
	var marks []store.PresenceMark
	if now.Sub(a.written) >= p.window/2 || a.written.Before(a.since) { // the others are to know at once who comes
		marks = p.addMark(nil, user, a, now)
	}
	p.armTimer()
	p.mu.Unlock()
	p.storeMarks(ctx, marks)
}

// Leave counts a stream of a user out.
func (p *Present) Leave(user regie.ID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if a := p.users[user]; a != nil {
		a.streams--
		a.seen = time.Now()
	}
}

// isHere reports whether a user is there. The lock is held.
func (p *Present) isHere(a *attendance, now time.Time) bool {
	return a.streams > 0 || !a.seen.IsZero() && now.Sub(a.seen) < p.window
}

// addMark adds what is to be written of a user. The lock is held.
func (p *Present) addMark(to []store.PresenceMark, user regie.ID, a *attendance, now time.Time) []store.PresenceMark {
	a.written = now
	return append(to, store.PresenceMark{UserID: user, Place: p.place, Since: a.since.UTC(), Seen: a.seen.UTC()})
}

// armTimer has what is known now written later. The lock is held.
func (p *Present) armTimer() {
	if p.timer == nil && !p.closed {
		p.timer = time.AfterFunc(p.window/2, p.writePresence)
	}
}

// writePresence runs on the timer: it stores who is present, as long as there is anyone.
func (p *Present) writePresence() {
	p.mu.Lock()
	p.timer = nil
	marks, stay := p.dueMarks(time.Now())
	if stay {
		p.armTimer()
	}
	p.mu.Unlock()
	p.storeMarks(context.Background(), marks)
}

// dueMarks returns the marks to store, and whether any user remains. It forgets users who left 24
// hours ago. The lock is held.
func (p *Present) dueMarks(now time.Time) (marks []store.PresenceMark, stay bool) {
	for user, a := range p.users {
		if a.streams > 0 {
			a.seen, stay = now, true
		}
		switch {
		case a.seen.After(a.written):
			marks = p.addMark(marks, user, a, now)
		case now.Sub(a.seen) > store.PresenceKept:
			delete(p.users, user)
		}
	}
	return marks, stay
}

// patienceWithPresence bounds a write in the background.
const patienceWithPresence = 10 * time.Second

func (p *Present) storeMarks(ctx context.Context, marks []store.PresenceMark) {
	if len(marks) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patienceWithPresence)
	defer cancel()
	if err := p.store.Present(ctx, marks); err != nil {
		p.log.Warn("who is there could not be written down", "code", string(regie.CodeOf(err)), "error", err)
	}
}

// Close writes what is known for the last time.
func (p *Present) Close() {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return
	}
	p.closed = true
	if p.timer != nil {
		p.timer.Stop()
	}
	marks, _ := p.dueMarks(time.Now())
	p.mu.Unlock()
	p.storeMarks(context.Background(), marks)
}

// Connected is how many users are there by what this engine knows, and how many streams they have
// open here.
func (p *Present) Connected() (users, streams int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	for _, a := range p.users {
		if p.isHere(a, now) {
			users++
		}
		streams += a.streams
	}
	return users, streams
}

// All returns who is there and who was, the last seen first, by what any engine knows. Names are
// left to who asks.
func (p *Present) All(ctx context.Context) ([]Presence, error) {
	now := time.Now()
	stored, err := p.store.Presences(ctx, now.Add(-store.PresenceKept))
	if err != nil {
		return nil, err
	}
	known := map[regie.ID]*Presence{}
	add := func(user regie.ID, since, seen time.Time, streams int) {
		one := known[user]
		if one == nil {
			one = &Presence{UserID: user, Mode: store.ModeBackend}
			known[user] = one
		}
		here := streams > 0 || now.Sub(seen) < p.window
		switch {
		case here && (one.Mode == store.ModeBackend || since.Before(one.Since)):
			one.Since = since
		case !here && one.Mode == store.ModeBackend && seen.After(one.LastSeen):
			one.Since = since
		}
		if here {
			one.Mode = store.ModeUI
		}
		if seen.After(one.LastSeen) {
			one.LastSeen = seen
		}
		one.Streams += streams
	}
	p.mu.Lock()
	for user, a := range p.users {
		if a.streams > 0 {
			a.seen = now
		}
		add(user, a.since.UTC(), a.seen.UTC(), a.streams)
	}
	for _, m := range stored {
		if m.Place != p.place || p.users[m.UserID] == nil {
			add(m.UserID, m.Since, m.Seen, 0)
		}
	}
	p.mu.Unlock()
	out := make([]Presence, 0, len(known))
	for _, one := range known {
		out = append(out, *one)
	}
	slices.SortFunc(out, func(a, b Presence) int {
		return cmp.Or(b.LastSeen.Compare(a.LastSeen), cmp.Compare(a.UserID.String(), b.UserID.String()))
	})
	return out, nil
}

// Of returns what is known of one user.
func (p *Present) Of(ctx context.Context, user regie.ID) (Presence, error) {
	all, err := p.All(ctx)
	for i := range all {
		if all[i].UserID == user {
			return all[i], err
		}
	}
	return Presence{UserID: user, Mode: store.ModeBackend}, err
}
