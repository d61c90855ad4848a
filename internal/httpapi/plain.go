package httpapi

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
)

// plainStream tells only what a round's replies say, for clients of ten lines (spec 10.2): lines of
// data: {"content"}. What came in no deltas, because the client or the model's server was slow or
// the reply was in a cache, is told when its message is stored.
type plainStream struct {
	tells func(round regie.ID) bool // which rounds it is about
	told  strings.Builder           // of the reply that is being told
	// holds reports whose waits keep the stream's rounds from going on: those of the round that a
	// message waits behind, too.
	holds func(round regie.ID) bool
	said  bool // there was a reply before
	over  bool // the round waits for a person
	// the model's stream broke off, and the reply is said again: what goes on from what was told
	// is, once it is whole
	anew bool

	after int64 // what stands up to here is not told
	upTo  int64 // what stands before it is history: a wait there ends the stream only if it is still one here
	asks  plainLine
	pause bool

	ended   int64    // ends of rounds in front of it are history, and not told
	message regie.ID // whose answer it is; zero: all
	words   func(regie.Sentence) string
}

// plainLine is one line. Waiting says that the stream ends before its round does, which waits for
// an answer; End how a round ended otherwise than with its answer, and Detail why; Withdrawn that
// nobody will answer the message.
type plainLine struct {
	Content   string         `json:"content,omitempty"`
	Waiting   bool           `json:"waiting,omitempty"`
	Approval  regie.ID       `json:"approval_id,omitzero"`
	Question  regie.ID       `json:"question_id,omitzero"`
	End       regie.RoundEnd `json:"end_reason,omitempty"`
	Detail    string         `json:"detail,omitempty"`
	Withdrawn bool           `json:"withdrawn,omitempty"`
}

// words returns sentences in the language of a request.
func (s *server) words(r *http.Request) func(regie.Sentence) string {
	language := r.Header.Get("Accept-Language")
	return func(said regie.Sentence) string {
		if said.IsZero() {
			return ""
		}
		return s.Translate(language, regie.ErrorOf(regie.CodeInternal, said))
	}
}

func (p *plainStream) frames(item dispatch.Item) ([]byte, error) {
	if item.Delta != nil {
		if p.anew || !p.tells(item.Delta.RoundID) {
			return nil, nil
		}
		return p.line(plainLine{Content: p.next(item.Delta.Content)})
	}
	var body struct {
		AI       *regie.AIReply `json:"ai_message_json"`
		Approval regie.ID       `json:"approval_id"`
		Question regie.ID       `json:"question_id"`
		State    string         `json:"state"`
		Round    regie.ID       `json:"round_id"`
		Message  regie.ID       `json:"message_id"`
		End      regie.RoundEnd `json:"end_reason"`
		Note     regie.Sentence `json:"end_note"`
	}
	_ = json.Unmarshal(item.Event.Body, &body) // of an erased body it says nothing
	var text plainLine
	switch item.Event.Type {
	case regie.EventMessage:
		if body.AI != nil && p.tells(body.Round) && item.Event.Seq > p.after {
			text.Content = p.rest(body.AI.Text())
		}
	case regie.EventMessageWithdrawn:
		text.Withdrawn = !p.message.IsZero() && body.Message == p.message
	case regie.EventStreamReset:
		p.anew = p.told.Len() > 0
	case regie.EventApproval, regie.EventQuestion:
		line := plainLine{Waiting: true, Approval: body.Approval, Question: body.Question}
		if p.holds(body.Round) && body.State == string(regie.WaitOpen) {
			p.asks = line
		} else if p.asks == line {
			p.asks = plainLine{}
		}
	case regie.EventSessionState:
		p.pause = body.State == string(regie.SessionPaused)
	case regie.EventRound:
		if body.State == string(regie.RoundEnded) {
			p.asks, p.pause = plainLine{}, false
			p.broken(p.tells(body.Round))
			if item.Event.Seq >= p.ended && p.tells(body.Round) && body.End != regie.EndAnswered &&
				body.End != regie.EndCompleted {
				text.End, text.Detail = body.End, p.words(body.Note)
			}
		}
	default:
	}
	out, err := p.line(text)
	if waits := p.asks.Waiting || p.pause; err == nil && waits && item.Event.Seq >= p.upTo {
		p.over, p.asks.Waiting = true, true
		var more []byte
		more, err = p.line(p.asks)
		out = append(out, more...)
	}
	return out, err
}

// rest is what was not told yet of a whole reply.
func (p *plainStream) rest(said string) string {
	p.anew = false
	rest, all := strings.CutPrefix(said, p.told.String())
	if !all { // it was begun anew
		p.told.Reset()
		p.said, rest = true, said
	}
	rest = p.next(rest)
	p.said = p.said || p.told.Len() > 0
	p.told.Reset()
	return rest
}

// broken is the end of a reply that never became whole: the next one stands apart from it.
func (p *plainStream) broken(own bool) {
	if own && p.told.Len() > 0 {
		p.said, p.anew = true, false
		p.told.Reset()
	}
}

// next is what is told of a piece of a reply: replies stand apart from each other.
func (p *plainStream) next(piece string) string {
	begins := p.said && p.told.Len() == 0 && piece != ""
	p.told.WriteString(piece)
	if begins {
		return "\n\n" + piece
	}
	return piece
}

func (p *plainStream) line(l plainLine) ([]byte, error) {
	if l == (plainLine{}) {
		return nil, nil
	}
	return frame(nil, "", "", l)
}
