package httpapi

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
)

// streamRound streams what follows a message that was accepted, to the end of the round that
// answers it: to who may not read the session, only what came of the message.
func (s *server) streamRound(w http.ResponseWriter, r *http.Request, sent Accepted, format string) {
	out := newStream(w)
	round, admitted := sent.RoundID, sent.Admitted
	out.ends = func(e *regie.Event) bool {
		if e.Type == regie.EventMessage && !admitted {
			var m struct {
				ID      regie.ID `json:"id"`
				RoundID regie.ID `json:"round_id"`
			}
			if json.Unmarshal(e.Body, &m) == nil && m.ID == sent.MessageID {
				round, admitted = m.RoundID, true
			}
		}
		if e.Type == regie.EventMessageWithdrawn || e.Removes() { // nobody will answer it
			var gone struct {
				ID regie.ID `json:"message_id"`
			}
			_ = json.Unmarshal(e.Body, &gone) // of an erased body it says nothing
			return gone.ID == sent.MessageID || e.Removes()
		}
		ended := roundOf(e)
		return admitted && ended.State == regie.RoundEnded && ended.RoundID == round
	}
	asks, err := s.holding(r.Context(), sent)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	own := privately(r, sent.MessageID)
	if own != nil && asks.Waiting { // what else is in the session is not told, its approvals among it
		asks = plainLine{Waiting: true}
	}
	if format != "" {
		head, err := s.head(r.Context(), sent.SessionID, 0) // of what was said before, some is history
		if err != nil {
			s.fail(w, r, err)
			return
		}
		if own != nil && asks.Waiting {
			head = sent.Seq
		}
		out.plain = &plainStream{
			tells: func(of regie.ID) bool { return admitted && of == round },
			holds: func(of regie.ID) bool { return !admitted || of == round },
			upTo:  head, asks: asks, message: sent.MessageID, words: s.words(r),
		}
	} else if asks.Waiting { // its event may be far behind
		out.first, _ = frame(nil, "", "waiting", asks) // it can be written
	}
	if own != nil {
		out.tells = func(item dispatch.Item) bool {
			if !admitted {
				return own.tells(item, regie.ID{})
			}
			return own.tells(item, round)
		}
	}
	after := max(0, sent.Seq-1)
	w.Header().Set("X-Regie-Session", sent.SessionID.String())
	w.Header().Set("X-Regie-Round", sent.RoundID.String())
	s.stream(r, out, sent.SessionID, after)
}

// holding is the approval that a message waits behind, of the round that was there before it.
func (s *server) holding(ctx context.Context, sent Accepted) (plainLine, error) {
	if sent.Admitted {
		return plainLine{}, nil
	}
	inbox, err := s.Service.Approvals.Inbox(ctx, store.InboxFilter{SessionID: sent.SessionID, Brief: true})
	if err != nil || len(inbox.Approvals) == 0 {
		return plainLine{}, err
	}
	return plainLine{Waiting: true, Approval: inbox.Approvals[0].ID}, nil
}
