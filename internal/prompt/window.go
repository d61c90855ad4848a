package prompt

import (
	"fmt"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
)

// Entry is a stored message with its calls: its own, or, for a system message, those with the
// results that it brings.
type Entry struct {
	Message *regie.Message
	Calls   []regie.Call
	// Dropped is of how many of the calls, from the first one on, the result is named and not
	// shown.
	Dropped int
}

// Entries brings messages and the calls that they own together, in order.
func Entries(messages []regie.Message, owned map[regie.ID][]regie.Call) []Entry {
	byID := map[regie.ID]regie.Call{}
	out := make([]Entry, len(messages))
	for i := range messages {
		m := &messages[i]
		out[i] = Entry{Message: m, Calls: owned[m.ID]}
		for _, c := range out[i].Calls {
			byID[c.ID] = c
		}
		if m.System == nil {
			continue
		}
		out[i].Calls = make([]regie.Call, 0, len(m.System.CallIDs))
		for _, id := range m.System.CallIDs {
			out[i].Calls = append(out[i].Calls, byID[id])
		}
	}
	return out
}

// bringsResults reports whether a message belongs directly behind the one before it.
func (e *Entry) bringsResults() bool {
	return e.Message.System != nil && len(e.Message.System.CallIDs) > 0
}

// isCompaction reports whether a message only says what is left out of the prompt.
func (e *Entry) isCompaction() bool {
	return e.Message.System != nil && e.Message.System.Compaction != nil
}

// Window is the part of a thread that a model is shown (spec 3.4). The zero Window shows all of it.
// Places in the thread count its messages from 0.
type Window struct {
	Hidden   int            // the first message that is shown at its place
	After    int64          // the sequence number of the one before it
	Summary  *regie.Message // stands for what is hidden; nil where nothing is
	Requests []Request      // shown behind it, word for word

	dropped, droppedCalls int
	// gone are the messages that undos have taken out of the conversation.
	gone regie.Supersede
}

// Request is what a person asked, at its place in the thread.
type Request struct {
	Place   int
	Message *regie.Message
}

// WindowOf returns the window that the compactions and the undos of a thread leave. Of either kind
// there is nothing while a round runs but what With adds: no undo comes then (decision 16).
func WindowOf(entries []Entry) Window {
	var w Window
	for i := range entries {
		w.gone.See(entries[i].Message)
		if entries[i].isCompaction() {
			w = w.With(entries[i].Message, entries, 0)
		}
	}
	return w
}

// With returns the window that one more CONTEXT_SUMMARY leaves. entries are the messages of the
// thread from a place on, which is not behind w.Hidden.
func (w Window) With(summary *regie.Message, entries []Entry, from int) Window {
	c := summary.System.Compaction
	if c.Dropped > w.dropped || c.Dropped == w.dropped && c.DroppedCalls > w.droppedCalls {
		w.dropped, w.droppedCalls = c.Dropped, c.DroppedCalls
	}
	last := c.Hidden - 1 - from
	if c.Hidden <= w.Hidden || last < 0 || last >= len(entries) {
		return w
	}
	var requests []Request
	for _, n := range c.Requests {
		place := n - 1
		for _, r := range w.Requests {
			if r.Place == place {
				requests = append(requests, r)
			}
		}
		if place >= max(from, w.Hidden) && place-from < len(entries) {
			requests = append(requests, Request{place, entries[place-from].Message})
		}
	}
	w.Hidden, w.After, w.Summary, w.Requests = c.Hidden, entries[last].Message.Seq, summary, requests
	return w
}

// Shown gives the messages that the model is shown, in the order of the prompt, each with its
// place: the summary has -1, and so do the requests behind it. entries are the messages of the
// thread from a place on, which is not behind w.Hidden.
func (w Window) Shown(entries []Entry, from int, add func(e Entry, place int)) {
	if w.Summary != nil {
		add(Entry{Message: w.Summary}, -1)
		for _, r := range w.Requests {
			if !w.gone.Hides(r.Place+1, r.Message) {
				add(Entry{Message: r.Message}, -1)
			}
		}
	}
	partly := w.droppedCalls // of the batch at w.dropped
	if w.Hidden > w.dropped {
		partly = 0
	}
	for i := max(0, w.Hidden-from); i < len(entries); i++ {
		e, place := entries[i], from+i
		switch {
		case e.isCompaction():
			continue
		case w.gone.Hides(place+1, e.Message):
			if place >= w.dropped && e.bringsResults() { // the batch of which some results were dropped is gone
				partly = 0
			}
			continue
		case place < w.dropped:
			e.Dropped = len(e.Calls)
		default:
			e.Dropped = min(partly, len(e.Calls))
			if e.bringsResults() {
				partly = 0
			}
		}
		add(e, place)
	}
}

// placeOf returns the place of a piece in the thread, also for a request shown after the summary;
// -1 for the summary.
func (w Window) placeOf(p *Piece) int {
	for _, r := range w.Requests {
		if p.Place < 0 && r.Message == p.Message {
			return r.Place
		}
	}
	return p.Place
}

// Show renders an entry. See Turns.
func (v View) Show(e Entry) []provider.Turn {
	calls := e.Calls
	if e.Dropped > 0 {
		calls = append([]regie.Call(nil), calls...)
		for i := range calls[:e.Dropped] {
			calls[i], _ = v.dropResult(calls[i])
		}
	}
	return v.Turns(e.Message, calls)
}

// minDropped is how many bytes a result has at least that is worth dropping.
const minDropped = 300

// maxDroppedError is how many bytes are left of a dropped error's sentence: what it is about, and
// no advice.
const maxDroppedError = 80

// dropResult returns a call without its result, and whether that is shorter.
func (v View) dropResult(c regie.Call) (regie.Call, bool) {
	switch {
	case c.Error != nil && len(c.Error.Message)+len(c.Error.Hint) > minDropped:
		c.Error = &regie.CallError{Code: c.Error.Code, Message: shorten(c.Error.Message, maxDroppedError)}
	case c.Error == nil && len(c.Result) > minDropped:
		c.Result = v.droppedText(&c)
	default:
		return c, false
	}
	return c, true
}

// outcomeBytes is about what an outcome takes without its result.
const outcomeBytes = 100

// resultSize returns about how many bytes a call's result takes in a prompt.
func resultSize(c *regie.Call) int {
	if c.Error != nil {
		return len(c.Error.Message) + len(c.Error.Hint) + outcomeBytes
	}
	return len(c.Result) + outcomeBytes
}

// droppedText returns the text that replaces a dropped result.
func (v View) droppedText(c *regie.Call) string {
	name := "session.read_result"
	if v.JSON == nil {
		name = v.Names(name)
	}
	id := c.ID
	if !c.CopyOf.IsZero() { // in a fork too the model reads the same
		id = c.CopyOf
	}
	if v.French {
		return fmt.Sprintf("[ce résultat de %d octets est omis pour faire de la place ; relis-le avec %s, call_id %q]",
			len(c.Result), name, id)
	}
	return fmt.Sprintf("[this result of %d bytes is left out to make room; read it again with %s, call_id %q]",
		len(c.Result), name, id)
}
