package chat

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
)

const (
	// shownRounds is how many messages with their answers are shown before one goes on.
	shownRounds = 3
	// maxPast bounds the events that are shown of a past.
	maxPast = 500
	// pastWithin is how long it may take to read them. Without them the chat is there all the same.
	pastWithin = 5 * time.Second
)

// Past is the state of a chat that a person resumes.
type Past struct {
	View store.SessionView
	// Events are its last ones: they are shown as they were when they came.
	Events []*regie.Event
	// Rounds holds the one that has not ended, where there is one.
	Rounds []store.RoundView
	// Last is the newest round, Running the unfinished one; zero if there is no such round.
	Last, Running regie.ID
}

// Open finds the chat that a person names, as FindSession does, with "last" for the last chat, and
// reads its last events. It returns CodeNotFound for other sessions.
func Open(ctx context.Context, control Control, root, name string, most int) (past Past, err error) {
	found, err := findSession(ctx, control, root, name, regie.SessionChat)
	if err == nil && found.Type != regie.SessionChat {
		err = regie.Errorf(regie.CodeNotFound, "there is no chat %s in this workspace: see regie sessions list", name)
	}
	if err == nil {
		past.View, err = control.Session(ctx, found.ID)
	}
	if err != nil {
		return past, err
	}
	if n := len(past.View.History); n > 0 {
		past.Last = past.View.History[n-1].ID
		if past.View.History[n-1].State != regie.RoundEnded {
			past.Running, past.Rounds = past.Last, make([]store.RoundView, 1)
			past.Rounds[0], err = control.Get(ctx, past.Last)
		}
	}
	if err == nil {
		err = past.readEvents(ctx, control, most)
	}
	return past, err
}

var errRead = errors.New("the log is read as far as it is wanted")

// readEvents reads the events from one of the last messages of the person on.
func (past *Past) readEvents(ctx context.Context, control Control, most int) error {
	after := int64(0)
	for i, asked := len(past.View.Thread)-1, 0; i >= 0 && asked < most; i-- {
		if m := &past.View.Thread[i]; m.Message.Sender == regie.SenderUser {
			asked++
			after = m.Seq - 1
		}
	}
	after = max(after, past.View.Head-maxPast)
	if after >= past.View.Head {
		return nil
	}
	reading, cancel := context.WithTimeout(ctx, pastWithin)
	defer cancel()
	err := control.Events(reading, past.View.ID, after, func(item dispatch.Item) error {
		if item.Event == nil {
			return nil
		}
		if past.Events = append(past.Events, item.Event); item.Event.Seq >= past.View.Head {
			return errRead
		}
		return nil
	})
	if errors.Is(err, errRead) || ctx.Err() == nil {
		return nil
	}
	return err
}

// findCall returns a call of the past; nil where it has none with that id.
func (past *Past) findCall(id regie.ID) *regie.Call {
	for i := range past.View.Thread {
		calls := past.View.Thread[i].Calls
		if at := slices.IndexFunc(calls, func(c regie.Call) bool { return c.ID == id }); at >= 0 {
			return &calls[at]
		}
	}
	return nil
}
