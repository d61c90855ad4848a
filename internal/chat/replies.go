package chat

import (
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/plain"
)

// Replies makes of deltas and events what is to be shown of replies, each piece once. Deltas
// overtake events, because they are not stored: what belongs behind an event that has not come yet
// is held back. What comes behind its message is dropped: the message has it. The zero value is
// ready.
type Replies struct {
	open     replyPlace // the reply that is being shown
	shown    string     // what has come of it
	whole    replyPlace // the last one that was shown whole
	batch    replyPlace // one whose calls have not all their results
	running  regie.ID
	held     []*dispatch.Delta
	content  plain.Stream
	thinking plain.Stream
}

// replyPlace is a reply's place: its round and exchange.
type replyPlace struct {
	round    regie.ID
	exchange int
}

// Telling reports whether a reply is being shown that is not whole.
func (r *Replies) Telling() bool { return r.shown != "" }

// Delta takes a piece, and returns what can be shown of it by now.
func (r *Replies) Delta(d *dispatch.Delta) (content, thinking string) {
	at := replyPlace{d.RoundID, d.Exchange}
	switch {
	case d.Content == "" && d.Thinking == "", at == r.whole:
		return "", ""
	case !r.running.IsZero() && r.running != at.round, r.open != replyPlace{} && r.open != at,
		r.batch != replyPlace{} && r.batch.round == at.round:
		r.held = append(r.held, d)
		return "", ""
	case r.open != at:
		r.content, r.thinking = plain.Stream{}, plain.Stream{}
	}
	r.open, r.shown = at, r.shown+d.Content
	return r.content.Add(d.Content), r.thinking.Add(d.Thinking)
}

// Release returns the held pieces for another try: an event has come.
func (r *Replies) Release() (held []*dispatch.Delta) {
	held, r.held = r.held, nil
	return held
}

// Message takes a message of the thread, and returns what of a reply was not shown yet. Where
// pieces of it got lost that is the whole of it, and again is true.
func (r *Replies) Message(m *regie.Message) (content, thinking string, again bool) {
	at := replyPlace{m.RoundID, m.Exchange}
	if m.System != nil && at == r.batch {
		r.batch = replyPlace{}
	}
	if m.AI == nil {
		return "", "", false
	}
	content = strings.TrimPrefix(m.AI.Text(), regie.InvalidFormat)
	rest, is := strings.CutPrefix(content, r.shown)
	if is = is && at == r.open; is {
		content, thinking = rest, r.thinking.Rest()
	} else {
		r.content, thinking = plain.Stream{}, Thoughts(m.AI)
	}
	again = !is && r.Telling()
	content = r.content.Add(content) + r.content.Rest()
	r.whole, r.open, r.shown = at, replyPlace{}, ""
	if len(m.CallIDs()) > 0 && m.Copied == nil {
		r.batch = at
	}
	return content, thinking, again
}

// Thoughts are what a reply thinks.
func Thoughts(reply *regie.AIReply) (out string) {
	for i := range reply.Parts {
		if reply.Parts[i].Type == regie.PartThinking {
			out += plain.Strip(reply.Parts[i].Text)
		}
	}
	return out
}

// Round takes in that a round runs, is to stop or has ended.
func (r *Replies) Round(body *Body) {
	switch {
	case body.State == string(regie.RoundEnded):
		r.open, r.shown, r.batch = replyPlace{}, "", replyPlace{}
	case body.Stop == "":
		r.running = body.RoundID
	}
}

// Reset notes that the model call is repeated, and reports whether any of its reply was shown.
func (r *Replies) Reset() (told bool) {
	told = r.Telling()
	r.open, r.shown = replyPlace{}, ""
	return told
}
