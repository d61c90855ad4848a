package httpapi

import (
	"encoding/json"
	"net/http"

	"github.com/regie-run/regie"
)

// streamRound streams what follows a message that was accepted, to the end of the round that
// answers it.
func (s *server) streamRound(w http.ResponseWriter, r *http.Request, sent Accepted, format string) {
	out := newStream(w)
	round, admitted := sent.RoundID, sent.Admitted
	out.ends = func(e *regie.Event) bool {
		var body struct {
			ID        regie.ID         `json:"id"`
			MessageID regie.ID         `json:"message_id"`
			RoundID   regie.ID         `json:"round_id"`
			State     regie.RoundState `json:"state"`
		}
		_ = json.Unmarshal(e.Body, &body) // of an erased body it says nothing
		switch {
		case e.Type == regie.EventMessage && !admitted && body.ID == sent.MessageID:
			round, admitted = body.RoundID, true
		case e.Type == regie.EventMessageWithdrawn && body.MessageID == sent.MessageID:
			return true // nobody will answer it
		case e.Type == regie.EventRound && admitted && body.RoundID == round:
			return body.State == regie.RoundEnded
		}
		return e.Removes()
	}
	if format != "" {
		out.plain = &plainStream{tells: func(of regie.ID) bool { return admitted && of == round }}
	}
	w.Header().Set("X-Regie-Session", sent.SessionID.String())
	w.Header().Set("X-Regie-Round", sent.RoundID.String())
	s.streamEvents(r, out, sent.SessionID, max(0, sent.Seq-1))
}
