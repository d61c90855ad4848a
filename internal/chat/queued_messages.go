package chat

import (
	"slices"
	"strconv"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/i18n"
	"github.com/regie-run/regie/internal/sanitize"
)

// QueuedLine says that a run waits for a slot, and at which place, from 1 (spec 5.1).
func QueuedLine(t *i18n.Printer, place int) string {
	return t.T("no slot is free: queued at place %d, the run starts automatically", max(place, 1))
}

// Queued is a message that waits for its turn (decision 10).
type Queued struct {
	ID   regie.ID
	Text string
}

func (s *Stream) addQueued(id regie.ID, said string) {
	s.removeQueued(id)
	s.waiting = append(s.waiting, Queued{id, said})
}

// removeQueued forgets a message that no longer waits, and returns its text, "" if it did not wait.
func (s *Stream) removeQueued(id regie.ID) (said string) {
	s.waiting = slices.DeleteFunc(slices.Clone(s.waiting), func(q Queued) bool {
		if q.ID == id {
			said = q.Text
		}
		return q.ID == id
	})
	return said
}

// showWithdrawn shows a message that the agent does not read: a person took it back, or a stop did.
func (s *Stream) showWithdrawn(said string, takenBack bool) {
	switch {
	case said == "":
		return
	case takenBack:
		s.Note(s.Text.T("withdrawn, the agent does not read it:"))
	default:
		s.Note(s.Text.T("not sent, the agent never read it:"))
	}
	s.writeQuote(said)
}

// editQueue lists what waits for its turn, or takes one of it back (decision 10).
func editQueue(c *Conversation, rest string) {
	word, number, _ := strings.Cut(rest, " ")
	queue := c.Queue()
	switch n, err := strconv.Atoi(strings.TrimSpace(number)); {
	case word != "rm" && word != "edit" && len(queue) == 0:
		c.Note(c.Text.T("no message is queued"))
	case word != "rm" && word != "edit":
		c.Note(c.Text.T("queued messages; /queue rm N withdraws one:"))
		for i, q := range queue {
			c.Note("  " + strconv.Itoa(i+1) + "  " + sanitize.Line(q.Text))
		}
	case err != nil, n < 1, n > len(queue):
		c.Note(c.Text.T("there is no such message in the queue: /queue lists them"))
	default:
		c.TakeBack(queue[n-1], word == "edit")
	}
}
