package chat

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// shownRounds is how many messages with their answers are shown before one goes on.
const shownRounds = 3

// Past is a chat as it stands when somebody goes on with it.
type Past struct {
	View store.SessionView
	// Rounds are its last ones, with all that happened in them; most is how many were wanted.
	Rounds []store.RoundView
	most   int
	// back is what a stop of a round gave back: it has no place in the thread.
	back map[regie.ID][]Queued
	// Last is the newest round, Running the one that has not ended; zero where there is none.
	Last, Running regie.ID
}

// Open finds the chat that a person names, as FindSession does, where the last one is the last
// chat, and reads its last rounds. It returns CodeNotFound for what is no chat.
func Open(ctx context.Context, control Control, root, name string, most int) (Past, error) {
	found, err := findSession(ctx, control, root, name, regie.SessionChat)
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
	past.back, err = givenBack(ctx, control, &past)
	return past, err
}

// Past writes what was said last in a chat, of what it was forked from too.
func (s *Stream) Past(past *Past) {
	s.command = OwnRunning(past)
	if len(past.Rounds) < past.most {
		s.copies(past)
	}
	for i := range past.Rounds {
		round := past.Rounds[i].Round.ID
		s.past(&past.Rounds[i], saidIn(past.View.Thread, round), past.back[round])
	}
	for i := range past.View.Pending {
		s.queue(past.View.Pending[i].Message.ID, past.View.Pending[i].Message.LinearText())
	}
}

// copies are the last messages with their answers of what a fork was made from, as many as are
// shown beside its own rounds; the newest first.
func (past *Past) copies() (copies []*store.MessageView) {
	view := &past.View
	if view.ForkedFrom == nil {
		return nil
	}
	asked := 0
	for i := len(view.Thread) - 1; i >= 0 && asked < past.most-len(past.Rounds); i-- {
		m := &view.Thread[i].Message
		if m.Copied == nil || m.System != nil {
			continue
		}
		if copies = append(copies, &view.Thread[i]); m.Sender == regie.SenderUser && !view.Thread[i].Superseded {
			asked++
		}
	}
	return copies
}

// copies writes the last messages with their answers of what a fork was made from. What had been
// taken back by then counts no more, and is not repeated.
func (s *Stream) copies(past *Past) {
	view := &past.View
	if view.ForkedFrom == nil {
		return
	}
	s.Note(s.Text.T("forked from %s at %s", Short(view.ForkedFrom.SessionID),
		strconv.FormatInt(view.ForkedFrom.Seq, 10)) + "; " + s.Text.T("the files of the workspace were not forked"))
	gone := 0
	for _, one := range slices.Backward(past.copies()) {
		if one.Superseded {
			gone++
			continue
		}
		s.takenBefore(gone)
		gone = 0
		switch text := Said(s.Text, &one.Message); {
		case one.Message.Sender == regie.SenderUser:
			s.Note("› " + strings.ReplaceAll(text, "\n", "\n  "))
		case text != "":
			s.write(text)
			s.fresh()
		}
		own := one.Message.AI != nil && one.Message.Author.Kind == regie.AuthorUser
		n := max(0, len(one.Calls)-maxPastCalls)
		if n > 0 {
			s.earlier(n, one.Calls[0].RoundID)
		}
		s.pastCalls(one.Calls[n:], own)
		if own {
			s.pastOwn(one.Calls)
		}
	}
	s.takenBefore(gone)
}

// takenBefore says that messages are not shown because they were taken back before the fork.
func (s *Stream) takenBefore(messages int) {
	if messages > 0 {
		s.Note("  " + s.Text.T("(taken back before the fork: %s)", Messages(s.Text, messages)))
	}
}

// maxPastCalls is how many calls of a round are shown of a past, the last ones.
const maxPastCalls = 20

// past writes a round as it was while it ran: the messages, the replies with the calls, and how it
// ended where that was without an answer. said are its messages beside the one that began it, back
// are those that its stop gave back.
func (s *Stream) past(view *store.RoundView, said spoken, back []Queued) {
	if _, gone := regie.Standing(view.Undos, regie.ID{}); !gone.IsZero() {
		s.Note("  " + s.Text.T("(taken back: regie runs show %s)", view.Round.ID))
		return
	}
	if view.Trigger != nil && view.Trigger.LinearText() != "" {
		s.Note("› " + strings.ReplaceAll(view.Trigger.LinearText(), "\n", "\n  "))
		said.without(view.Trigger.ID)
	}
	for i := range view.Enrichments {
		s.fold.names(&view.Enrichments[i].Message)
		s.pastCalls(view.Enrichments[i].Calls, false)
	}
	s.exchanges(view, &said)
	s.spoken(said.all())
	for _, q := range back {
		s.GivenBack(q.ID, q.Text)
	}
	if view.Round.State == regie.RoundEnded && view.Round.End != "" {
		s.ended(view.Round.End, view.Round.EndNote)
	}
	for i := range view.Exchanges {
		if view.Exchanges[i].Reason == regie.ExchangeCommand {
			s.pastOwn(view.Exchanges[i].Calls)
		}
	}
}

// exchanges writes the replies of a round with the calls, each behind what was said before it.
func (s *Stream) exchanges(view *store.RoundView, said *spoken) {
	left := -maxPastCalls // calls that are not shown
	for i := range view.Exchanges {
		left += len(view.Exchanges[i].Calls)
	}
	told := left <= 0
	for i := range view.Exchanges {
		e := &view.Exchanges[i]
		if e.Reply != nil {
			s.spoken(said.before(e.Reply.ID))
		}
		if !told {
			s.earlier(left, view.Round.ID)
			told = true
		}
		n := max(0, min(left, len(e.Calls)))
		if left -= n; n > 0 && n == len(e.Calls) {
			continue
		}
		switch {
		case e.Reply != nil && e.Reply.AI != nil:
			s.pastReply(e.Reply)
		case e.Reply == nil && len(e.Attempts) > 0 && view.Round.State == regie.RoundEnded:
			// it was cut off in the middle of what it said
			s.write(e.Attempts[len(e.Attempts)-1].Partial)
			s.fresh()
		}
		s.pastCalls(e.Calls[n:], e.Reason == regie.ExchangeCommand)
	}
}

// pastReply writes what a model said.
func (s *Stream) pastReply(m *regie.Message) {
	said := m.AI.Text()
	if strings.HasPrefix(said, regie.InvalidFormat) {
		s.unreadable(said, place{m.RoundID, m.Exchange})
		return
	}
	s.write(said)
	s.fresh()
}

// earlier says that a run had more calls.
func (s *Stream) earlier(calls int, round regie.ID) {
	s.Note("  " + s.Text.T("(calls before these: %d; regie runs show %s)", calls, round))
}

// pastCalls writes what came of calls, as it was shown when they had their results. own are a
// person's commands.
func (s *Stream) pastCalls(calls []regie.Call, own bool) {
	calls = asTheyCame(calls)
	for i := range calls {
		call := &calls[i]
		if !call.State.Settled() {
			continue
		}
		o := callOutcome(call)
		// erased: nobody can tell any more whether it failed
		if own && !o.exited(call.Result) && call.Error == nil && call.NotRun == "" {
			s.Note("  " + s.Text.T("(1 call: regie runs show %s)", call.RoundID))
			continue
		}
		lines := s.fold.result(s.Text, &o)
		for n, line := range lines {
			if s.Mark != nil && n == len(lines)-1 {
				line += s.Mark(call.ID)
			}
			s.Note(line)
		}
	}
	for _, line := range s.fold.rest(s.Text) {
		s.Note(line)
	}
}

// pastOwn writes what the commands that the person gave put out, and why they ended.
func (s *Stream) pastOwn(calls []regie.Call) {
	for i := range calls {
		if calls[i].State.Settled() {
			OwnOutcome(s.Text, &calls[i], s.Note)
		}
	}
}
