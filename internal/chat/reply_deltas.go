package chat

import (
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/sanitize"
)

// Replies turns deltas and events into the pieces of replies to show, each once. Deltas overtake
// events, because they are not stored. Replies holds back a delta until the event before it has
// come, and drops deltas after their message, which contains them. The zero value is ready.
type Replies struct {
	open     replyPlace // the reply that is being shown
	shown    string     // what has come of it
	whole    replyPlace // the last one that was shown whole
	batch    replyPlace // one with calls that lack results
	running  regie.ID
	held     []*dispatch.Delta
	content  sanitize.Stream
	thinking sanitize.Stream
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
		r.content, r.thinking = sanitize.Stream{}, sanitize.Stream{}
	}
	r.open, r.shown = at, r.shown+d.Content
	return r.content.Add(d.Content), r.thinking.Add(d.Thinking)
}

// Release returns the deltas that were held back, after an event has come; the caller adds each
// once more.
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
		r.content, thinking = sanitize.Stream{}, Thoughts(m.AI)
	}
	again = !is && r.Telling()
	content = r.content.Add(content) + r.content.Rest()
	r.whole, r.open, r.shown = at, replyPlace{}, ""
	if len(m.CallIDs()) > 0 && m.Copied == nil {
		r.batch = at
	}
	return content, thinking, again
}

// Thoughts returns the thinking of a reply.
func Thoughts(reply *regie.AIReply) (out string) {
	for i := range reply.Parts {
		if reply.Parts[i].Type == regie.PartThinking {
			out += sanitize.Strip(reply.Parts[i].Text)
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

// Reset discards a reply that the model starts again, and reports whether any of it was shown.
func (r *Replies) Reset() (told bool) {
	told = r.Telling()
	r.open, r.shown = replyPlace{}, ""
	return told
}
