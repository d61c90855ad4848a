package httpapi

import (
	"encoding/json"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
)

// plainStream sends only the text of a round's replies, for clients of ten lines (spec 10.2): lines
// of data: {"content"}. Text that came in no deltas, because the client or the model's server was
// slow or the reply was cached, follows when its message is stored.
type plainStream struct {
	tells func(round regie.ID) bool // which round it is about
	told  strings.Builder           // of the reply that is being told
	said  bool                      // there was a reply before
	over  bool                      // the round waits for a person
	anew  bool                      // the model's stream broke off: the whole reply is waited for
}

// plainLine is one line. Waiting says that the stream ends before its round does, which waits for a
// person; End how a round ended otherwise than with its answer.
type plainLine struct {
	Content  string         `json:"content,omitempty"`
	Waiting  bool           `json:"waiting,omitempty"`
	Approval regie.ID       `json:"approval_id,omitzero"`
	Question regie.ID       `json:"question_id,omitzero"`
	End      regie.RoundEnd `json:"end_reason,omitempty"`
}

func (p *plainStream) encodeFrames(item dispatch.Item) ([]byte, error) {
	var out plainLine
	if item.Delta != nil {
		if !p.anew && p.tells(item.Delta.RoundID) {
			out.Content = p.separateReplies(item.Delta.Content)
		}
		return lineFrame(out)
	}
	var body struct {
		AI       *regie.AIReply `json:"ai_message_json"`
		Approval regie.ID       `json:"approval_id"`
		Question regie.ID       `json:"question_id"`
		State    string         `json:"state"`
		Round    regie.ID       `json:"round_id"`
		End      regie.RoundEnd `json:"end_reason"`
	}
	_ = json.Unmarshal(item.Event.Body, &body) // of an erased body it says nothing
	switch own := p.tells(body.Round); item.Event.Type {
	case regie.EventMessage:
		if own && body.AI != nil {
			out.Content = p.missingText(body.AI.Text())
		}
	case regie.EventStreamReset:
		p.anew = p.told.Len() > 0
	case regie.EventApproval, regie.EventQuestion:
		if own && body.State == string(regie.WaitOpen) {
			p.over, out = true, plainLine{Waiting: true, Approval: body.Approval, Question: body.Question}
		}
	case regie.EventSessionState:
		p.over = body.State == string(regie.SessionPaused)
		out.Waiting = p.over
	case regie.EventRound:
		if own && body.State == string(regie.RoundEnded) && body.End != regie.EndAnswered &&
			body.End != regie.EndCompleted {
			out.End = body.End
		}
	default:
	}
	return lineFrame(out)
}

// missingText returns what was not told yet of a whole reply.
func (p *plainStream) missingText(said string) string {
	rest, all := strings.CutPrefix(said, p.told.String())
	if !all { // it was begun anew
		p.told.Reset()
		p.said, rest = true, said
	}
	rest = p.separateReplies(rest)
	p.said, p.anew = p.said || p.told.Len() > 0, false
	p.told.Reset()
	return rest
}

// separateReplies returns a piece of a reply, with a gap in front where a new reply begins.
func (p *plainStream) separateReplies(piece string) string {
	begins := p.said && p.told.Len() == 0 && piece != ""
	p.told.WriteString(piece)
	if begins {
		return "\n\n" + piece
	}
	return piece
}

func lineFrame(l plainLine) ([]byte, error) {
	if l == (plainLine{}) {
		return nil, nil
	}
	return appendFrame(nil, "", "", l)
}
