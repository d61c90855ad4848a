package httpapi

import (
	"encoding/json"
	"net/http"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/access"
	"github.com/regie-run/regie/internal/dispatch"
)

// private is what a stream tells of a session to who may not read it: what came of one message. It
// tells what others said there neither while that waits for its turn nor where the same round
// answers it.
type private struct {
	message regie.ID
	others  map[regie.ID]bool // calls that read what others named
}

// privately returns what a caller is told of what follows a message of theirs, nil where that is
// all.
func privately(r *http.Request, message regie.ID) *private {
	if caller := access.From(r.Context()); caller == nil || caller.Has(regie.ScopeRead) {
		return nil
	}
	return &private{message: message, others: map[regie.ID]bool{}}
}

// tells reports whether an item came of the message; round is the one that answers it, zero while
// none does.
func (p *private) tells(item dispatch.Item, round regie.ID) bool {
	if item.Delta != nil {
		return !round.IsZero() && item.Delta.RoundID == round
	}
	var body struct {
		ID        regie.ID             `json:"id"`
		MessageID regie.ID             `json:"message_id"`
		CallID    regie.ID             `json:"call_id"`
		RoundID   regie.ID             `json:"round_id"`
		Sender    regie.Sender         `json:"sender"`
		System    *regie.SystemContent `json:"system_message"`
	}
	_ = json.Unmarshal(item.Event.Body, &body) // of an erased body it says nothing
	switch item.Event.Type {
	case regie.EventErased:
		return true
	case regie.EventMessagePending:
		return body.ID == p.message
	case regie.EventMessageWithdrawn:
		return body.MessageID == p.message
	case regie.EventMessage:
		if body.ID == p.message {
			return true
		}
		if s := body.System; s != nil && !s.Enriches.IsZero() && s.Enriches != p.message {
			for _, id := range s.CallIDs {
				p.others[id] = true
			}
			return false
		}
		if body.Sender == regie.SenderUser {
			return false
		}
	default:
	}
	return !round.IsZero() && !p.others[body.CallID] && (body.RoundID.IsZero() || body.RoundID == round)
}
