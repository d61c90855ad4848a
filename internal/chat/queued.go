package chat

import (
	"slices"
	"strconv"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/plain"
	"github.com/regie-run/regie/internal/text"
)

// QueuedLine says that a run waits for a slot, and at which place, from 1 (spec 5.1); 0 where it
// goes on after it had let another one go first.
func QueuedLine(t *text.Printer, place int) string {
	if place > 0 {
		return t.T("no slot is free: queued at place %d, the run starts by itself", place)
	}
	return t.T("other runs go first: the run is queued and goes on by itself")
}

// Queued is a message that waits for its turn (decision 10).
type Queued struct {
	ID   regie.ID
	Text string
}

// Queue are the messages that wait for their turn, in their order.
func (s *Stream) Queue() []Queued { return s.waiting }

func (s *Stream) queue(id regie.ID, said string) {
	s.unqueue(id)
	s.waiting = append(s.waiting, Queued{id, said})
}

// unqueue forgets a message that waits no more, and returns what it says, "" where it did not wait.
func (s *Stream) unqueue(id regie.ID) (said string) {
	s.waiting = slices.DeleteFunc(slices.Clone(s.waiting), func(q Queued) bool {
		if q.ID == id {
			said = q.Text
		}
		return q.ID == id
	})
	return said
}

// Taking notes that a message is being taken back here, which tells what became of it itself; not,
// that it was not.
func (s *Stream) Taking(message regie.ID, is bool) {
	if s.given == nil {
		s.given = map[regie.ID]bool{}
	}
	s.given[message] = is
}

// TakenBack shows a message that was taken back, unless it stands elsewhere, in the prompt for
// example.
func (s *Stream) TakenBack(message regie.ID, said string, elsewhere bool) {
	s.unqueue(message)
	if elsewhere || said == "" {
		return
	}
	s.Note(s.Text.T("taken back, the agent does not read it:"))
	s.Note("› " + strings.ReplaceAll(said, "\n", "\n  "))
}

// QueueLines lists what waits, a line each, with the numbers that /queue takes.
func QueueLines(t *text.Printer, queue []Queued) []string {
	if len(queue) == 0 {
		return []string{t.T("no message waits for its turn")}
	}
	out := []string{t.T("these wait for their turn; /queue rm N takes one back:")}
	for i, q := range queue {
		out = append(out, "  "+strconv.Itoa(i+1)+"  "+plain.Line(strings.Join(strings.Fields(q.Text), " ")))
	}
	return out
}

// FindQueued finds the message that a person means: a number of QueueLines, or none for the last
// one.
func FindQueued(queue []Queued, number string) (Queued, bool) {
	n := len(queue)
	if number != "" {
		var err error
		if n, err = strconv.Atoi(strings.Trim(number, "[].")); err != nil {
			return Queued{}, false
		}
	}
	if n < 1 || n > len(queue) {
		return Queued{}, false
	}
	return queue[n-1], true
}
