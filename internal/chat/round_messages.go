package chat

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
)

// spoken are the messages of a round in their order, those that were not written yet.
type spoken struct{ left []*regie.Message }

// saidIn are the messages of a round: its replies, which say where the others stood, what people
// said, and what was said once the actions had succeeded.
func saidIn(thread []store.MessageView, round regie.ID) (out spoken) {
	for i := range thread {
		if m := &thread[i].Message; m.RoundID == round && m.Copied == nil && m.System == nil {
			out.left = append(out.left, m)
		}
	}
	return out
}

// without forgets a message that is written elsewhere.
func (s *spoken) without(id regie.ID) {
	s.left = slices.DeleteFunc(s.left, func(m *regie.Message) bool { return m.ID == id })
}

// before takes what stands before a reply, and the reply itself.
func (s *spoken) before(reply regie.ID) (out []*regie.Message) {
	n := slices.IndexFunc(s.left, func(m *regie.Message) bool { return m.ID == reply })
	if n < 0 {
		return nil
	}
	out, s.left = s.left[:n], s.left[n+1:]
	return out
}

// all takes what is left.
func (s *spoken) all() (out []*regie.Message) {
	out, s.left = s.left, nil
	return out
}

// spoken writes messages that are no replies, as they were shown when they came.
func (s *Stream) spoken(messages []*regie.Message) {
	for _, m := range messages {
		switch {
		case m.AI != nil:
		case m.Sender == regie.SenderAI && m.Text != "":
			s.write(m.Text)
			s.fresh()
		case m.Sender == regie.SenderUser && !m.ExcludeFromPrompt && m.LinearText() != "":
			s.Note("› " + strings.ReplaceAll(m.LinearText(), "\n", "\n  "))
		}
	}
}

// logWithin is how long it may take to read in the log what a stop gave back. Without that the chat
// is there all the same.
const logWithin = 5 * time.Second

var errRead = errors.New("the log is read as far as it is wanted")

// givenBack finds what the stops of rounds gave back, which the log alone knows: it has no place in
// the thread.
func givenBack(ctx context.Context, control Control, past *Past) (map[regie.ID][]Queued, error) {
	var from int64 = -1
	for i := range past.Rounds {
		if round := &past.Rounds[i].Round; round.End == regie.EndStopped && from < 0 {
			from = begun(past.View.Thread, round.ID)
		}
	}
	if from < 0 {
		return nil, nil
	}
	reading, cancel := context.WithTimeout(ctx, logWithin)
	defer cancel()
	back, waiting := map[regie.ID][]Queued{}, map[regie.ID]string{}
	var round regie.ID
	err := control.Events(reading, past.View.ID, from-1, func(item dispatch.Item) error {
		if item.Event == nil {
			return nil
		}
		switch event := item.Event; event.Type {
		case regie.EventMessage:
			var m regie.Message
			if json.Unmarshal(event.Body, &m) == nil && !m.RoundID.IsZero() {
				round = m.RoundID
			}
		case regie.EventMessagePending:
			var m regie.Message
			if json.Unmarshal(event.Body, &m) == nil {
				waiting[m.ID] = m.LinearText()
			}
		case regie.EventMessageWithdrawn:
			var body struct {
				MessageID regie.ID `json:"message_id"`
				TakenBack bool     `json:"taken_back"`
			}
			if json.Unmarshal(event.Body, &body) == nil && !body.TakenBack {
				back[round] = append(back[round], Queued{body.MessageID, waiting[body.MessageID]})
			}
		}
		if item.Event.Seq >= past.View.Head {
			return errRead
		}
		return nil
	})
	if errors.Is(err, errRead) || ctx.Err() == nil {
		err = nil
	}
	return back, err
}

// begun is the place in the log of the first message of a round, -1 where the thread has none.
func begun(thread []store.MessageView, round regie.ID) int64 {
	for i := range thread {
		if thread[i].Message.RoundID == round && thread[i].Message.Copied == nil {
			return thread[i].Seq
		}
	}
	return -1
}
