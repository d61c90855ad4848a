package dispatch

import (
	"encoding/json"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
)

// maxPartial bounds what is kept of a reply for who joins in its middle, in bytes; of a longer one
// they get the rest, and the message at its end.
const maxPartial = 1 << 20

// partial is what a model has said so far in the reply that streams in.
type partial struct {
	round             regie.ID
	exchange          int
	thinking, content strings.Builder
}

// keepPartial adds a piece to what a session's model has said so far. The lock is held.
func (h *Hub) keepPartial(session, round regie.ID, exchange int, d provider.Delta) {
	p := h.partials[session]
	if p == nil || p.round != round || p.exchange != exchange {
		p = &partial{round: round, exchange: exchange}
		h.partials[session] = p
	}
	if p.thinking.Len()+p.content.Len()+len(d.Text)+len(d.Thinking) > maxPartial {
		return
	}
	p.thinking.WriteString(d.Thinking)
	p.content.WriteString(d.Text)
}

// dropPartial forgets the partial reply once the log has it, or when it never will. It also forgets
// it where the commit is unknown: a late text is better than a doubled one. The lock is held.
func (h *Hub) dropPartial(session regie.ID, events []regie.Event) {
	if h.partials[session] == nil {
		return
	}
	for i := range events {
		if !endsReply(&events[i]) {
			continue
		}
		delete(h.partials, session)
		return
	}
	if len(events) == 0 {
		delete(h.partials, session)
	}
}

// endsReply reports whether an event ends the reply that streams in: it is stored, cut, or its
// round is over.
func endsReply(e *regie.Event) bool {
	var body struct {
		Sender regie.Sender     `json:"sender"`
		State  regie.RoundState `json:"state"`
	}
	switch e.Type {
	case regie.EventStreamReset:
		return true
	case regie.EventMessage, regie.EventRound:
		return json.Unmarshal(e.Body, &body) != nil || body.Sender == regie.SenderAI || body.State == regie.RoundEnded
	}
	return false
}

// partialDeltas returns what was said so far, for who joins now.
func (p *partial) partialDeltas() (out []Delta) {
	if p == nil {
		return nil
	}
	if p.thinking.Len() > 0 {
		out = append(out, Delta{RoundID: p.round, Exchange: p.exchange, Thinking: p.thinking.String()})
	}
	if p.content.Len() > 0 {
		out = append(out, Delta{RoundID: p.round, Exchange: p.exchange, Content: p.content.String()})
	}
	return out
}
