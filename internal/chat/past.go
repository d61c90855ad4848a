package chat

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
)

// begin takes up the session that was asked for, shows its last messages, and finds out how it stands.
func (c *Chat) begin(ctx context.Context) error {
	if c.Terminal {
		c.stream.Note(c.Text.T("%s in %s, model %s. /help lists what you can type, Ctrl-D leaves.", c.Request.Agent, c.Request.Root, c.Request.Model))
	}
	if c.Continue == "" {
		return nil
	}
	past, err := Open(ctx, c.Control, c.Request.Root, c.Continue, shownRounds)
	if err != nil {
		return err
	}
	c.session, c.Request.Agent = past.View.ID, past.View.Agent
	c.stream.Past(&past)
	c.last, c.round, c.own = past.Last, past.Running, OwnRunning(&past)
	c.become(past.View.State)
	c.seen = past.View.Head
	c.feed = Follow(ctx, c.Control, c.session, past.View.Head)
	return nil
}

// shownRounds is how many messages with their answers are shown before one goes on.
const shownRounds = 3

// Past is a chat as it stands when somebody goes on with it.
type Past struct {
	View store.SessionView
	// Rounds are its last ones, with all that happened in them; most is how many were wanted.
	Rounds []store.RoundView
	most   int
	// Last is the newest round, Running the one that has not ended; zero where there is none.
	Last, Running regie.ID
}

// Open finds the chat that a person names, as FindSession does, and reads its last rounds. It returns CodeNotFound for what is no chat.
func Open(ctx context.Context, control dispatch.Control, root, name string, most int) (Past, error) {
	found, err := FindSession(ctx, control, root, name)
	if err == nil && found.Type != regie.SessionChat {
		err = regie.Errorf(regie.CodeNotFound, "there is no chat %s in this workspace: see regie sessions list", name)
	}
	if err != nil {
		return Past{}, err
	}
	past := Past{most: most}
	if past.View, err = control.Session(ctx, found.ID); err != nil {
		return Past{}, err
	}
	rounds := past.View.History
	for _, round := range rounds[max(0, len(rounds)-most):] {
		one, err := control.Get(ctx, round.ID)
		if err != nil {
			return Past{}, err
		}
		past.Rounds = append(past.Rounds, one)
		if past.Last = round.ID; round.State != regie.RoundEnded {
			past.Running = round.ID
		}
	}
	return past, nil
}

// Past writes what was said last in a chat, of what it was forked from too.
func (s *Stream) Past(past *Past) {
	s.command = OwnRunning(past)
	if len(past.Rounds) < past.most {
		s.copies(&past.View, past.most-len(past.Rounds))
	}
	for i := range past.Rounds {
		s.past(&past.Rounds[i])
	}
	for i := range past.View.Pending {
		s.queue(past.View.Pending[i].Message.ID, past.View.Pending[i].Message.LinearText())
	}
}

// copies writes the last messages with their answers of what a fork was made from.
func (s *Stream) copies(view *store.SessionView, most int) {
	if view.ForkedFrom == nil {
		return
	}
	s.Note(s.Text.T("forked from %s at %s", Short(view.ForkedFrom.SessionID), strconv.FormatInt(view.ForkedFrom.Seq, 10)) + "; " + s.Text.T("the files of the workspace were not forked"))
	var copies []*regie.Message
	asked := 0
	for i := len(view.Thread) - 1; i >= 0 && asked < most; i-- {
		m := &view.Thread[i].Message
		if m.Copied == nil || m.System != nil {
			continue
		}
		if copies = append(copies, m); m.Sender == regie.SenderUser {
			asked++
		}
	}
	for _, m := range slices.Backward(copies) {
		switch text := Said(s.Text, m); {
		case m.Sender == regie.SenderUser:
			s.Note("› " + strings.ReplaceAll(text, "\n", "\n  "))
		case text != "":
			s.write(text)
			s.fresh()
		}
	}
}

// past writes a round as it was: the message, the calls, the answer.
func (s *Stream) past(view *store.RoundView) {
	if _, gone := regie.Standing(view.Undos, regie.ID{}); !gone.IsZero() {
		s.Note("  " + s.Text.T("(taken back: regie runs show %s)", view.Round.ID))
		return
	}
	if view.Trigger != nil && view.Trigger.LinearText() != "" {
		s.Note("› " + strings.ReplaceAll(view.Trigger.LinearText(), "\n", "\n  "))
	}
	calls := 0
	for i := range view.Exchanges {
		e := &view.Exchanges[i]
		if e.Reason == regie.ExchangeCommand {
			s.pastOwn(e.Calls)
			continue
		}
		calls += len(e.Calls)
		if e.Reply == nil || e.Reply.AI == nil || len(e.Calls) > 0 && i+1 < len(view.Exchanges) {
			continue
		}
		switch calls {
		case 0:
		case 1:
			s.Note("  " + s.Text.T("(1 call: regie runs show %s)", view.Round.ID))
		default:
			s.Note("  " + s.Text.T("(%d calls: regie runs show %s)", calls, view.Round.ID))
		}
		calls = 0
		s.write(e.Reply.AI.Text())
		s.fresh()
	}
}
