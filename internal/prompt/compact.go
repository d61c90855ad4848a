package prompt

import (
	"slices"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
)

// Piece is a message that the model is shown, with its weight in tokens.
type Piece struct {
	Entry
	Place  int // in the thread; -1 for the summary and the requests behind it
	Tokens int
	// Free is what dropping the result of each call would free; only of messages that bring
	// results.
	Free []int
}

// mayCutBefore reports whether a thread may be cut before this piece: never between a reply and its
// results, nor between anything and the notice that is about it.
func (p *Piece) mayCutBefore() bool { return p.Message.System == nil }

// Pieces weighs what a window shows of a thread, so that all of it together has the given number of
// tokens. entries are those of Window.Shown.
func (v View) Pieces(w Window, entries []Entry, from, tokens int) []Piece {
	var out []Piece
	var sizes [][]int
	total := 0
	w.Shown(entries, from, func(e Entry, place int) {
		size := Size(v.Show(e))
		if size == 0 {
			return
		}
		total += size
		out, sizes = append(out, Piece{Entry: e, Place: place, Tokens: size}), append(sizes, v.droppableBytes(e))
	})
	for i := range out {
		out[i].Tokens = out[i].Tokens * tokens / max(1, total)
		for _, bytes := range sizes[i] {
			out[i].Free = append(out[i].Free, bytes*tokens/max(1, total))
		}
	}
	return out
}

// droppableBytes returns how many bytes dropping the result of each call would free.
func (v View) droppableBytes(e Entry) []int {
	if !e.bringsResults() {
		return nil
	}
	free := make([]int, len(e.Calls))
	for i := e.Dropped; i < len(e.Calls); i++ {
		before := e.Calls[i]
		if after, ok := v.dropResult(before); ok {
			free[i] = max(0, resultSize(&before)-resultSize(&after))
		}
	}
	return free
}

// newestStart returns where begins what is never hidden: what the model has not answered yet. That
// is the last reply of the newest round that made calls, with all behind it, or what was said since
// its last answer, or all of the round.
func newestStart(pieces []Piece) int {
	first, last := headLength(pieces), len(pieces)-1
	start := last
	for i := last; i >= first; i-- {
		m := pieces[i].Message
		if m.RoundID != pieces[last].Message.RoundID {
			break
		}
		if pieces[i].mayCutBefore() {
			start = i
		}
		if m.AI == nil && m.Sender != regie.SenderAI {
			continue
		}
		if next := slices.IndexFunc(pieces[i+1:], func(p Piece) bool { return p.mayCutBefore() }); next >= 0 &&
			len(pieces[i].Calls) == 0 {
			return i + 1 + next
		}
		return i
	}
	for start > first && !pieces[start].mayCutBefore() { // a notice stays with what it is about
		start--
	}
	return max(start, first)
}

// headLength returns how many pieces stand before the thread itself: an earlier summary with its
// requests.
func headLength(pieces []Piece) int {
	n := slices.IndexFunc(pieces, func(p Piece) bool { return p.Place >= 0 })
	if n < 0 {
		return len(pieces)
	}
	return n
}

func countTokens(pieces []Piece) int {
	sum := 0
	for i := range pieces {
		sum += pieces[i].Tokens
	}
	return sum
}

// Cut says where to cut a thread that is over its budget: how many pieces a summary is to stand
// for. The others stay, as many as are worth keeping. bound is how many tokens the summarised
// pieces may have, because the model must read them; 0 does not bound them. It returns 0 where
// there is nothing that is worth a summary: what the prompt is full of is then too new, or is
// fixed.
func Cut(pieces []Piece, room Room, bound int) int {
	first, last := headLength(pieces), newestStart(pieces)
	cut, before, all := 0, countTokens(pieces[:min(first+1, len(pieces))]), countTokens(pieces)
	for i := first + 1; i <= last && (bound == 0 || before <= bound); i++ {
		if pieces[i].mayCutBefore() {
			cut = i
			if all-before <= room.keptTokens() && (room.Messages == 0 || len(pieces)-i <= room.Messages/2) {
				break
			}
		}
		before += pieces[i].Tokens
	}
	least := room.leastKept()
	if room.isCrowded(countTokens(pieces[last:])) {
		least = room.leastGain()
	}
	if cut == 0 || countTokens(pieces[first:cut]) < least &&
		(room.Messages == 0 || len(pieces)-first <= room.Messages) {
		return 0
	}
	return cut
}

// Compact returns the compaction that hides the pieces before a cut. What the person asked in the
// round is kept word for word where it is not too long, and at least the newest request is.
func Compact(pieces []Piece, cut int, w Window, round regie.ID, room Room) *regie.Compaction {
	c := &regie.Compaction{Hidden: pieces[cut].Place}
	asked := slices.Clone(w.Requests)
	for i := range pieces[:cut] {
		if p := &pieces[i]; p.Place >= 0 && p.Message.Sender == regie.SenderUser {
			asked = append(asked, Request{p.Place, p.Message})
		}
	}
	if len(asked) == 0 {
		return c
	}
	still := slices.ContainsFunc(pieces[cut:], func(p Piece) bool { return p.Message.Sender == regie.SenderUser })
	left := room.Thread() / 4
	for i, r := range slices.Backward(asked) {
		size := (len(personText(r.Message))+len(r.Message.Attachments())*provider.ImageWeight)/4 + 1
		last := i == len(asked)-1 && !still
		if last || r.Message.RoundID == round && size <= left {
			c.Requests = append(c.Requests, r.Place+1)
			left -= size
		}
	}
	slices.Reverse(c.Requests)
	return c
}

// personText returns what a person wrote.
func personText(m *regie.Message) string { return m.LinearText() }

// Drop says which results to leave out so that some tokens become free: the oldest first, of the
// pieces before the last one. It writes the place into c and returns how many it frees.
func Drop(pieces []Piece, need int, c *regie.Compaction) (freed int) {
	for i := range pieces {
		p := &pieces[i]
		if p.Place < 0 || p.Free == nil {
			continue
		}
		for n := range p.Free {
			if freed >= need {
				return freed
			}
			if p.Free[n] > 0 {
				freed += p.Free[n]
				// its calls stand in no message before it
				if c.Dropped, c.DroppedCalls = p.Place-1, n+1; p.Message.Enriching() {
					c.Dropped = p.Place
				}
			}
		}
	}
	return freed
}

// Crowded reports whether most of a thread is its newest batch. A summary would leave as little
// room as there was, and the next batch would want another one.
func Crowded(pieces []Piece, room Room) bool {
	return room.isCrowded(countTokens(pieces[newestStart(pieces):]))
}

// WithoutModel returns the compaction of a thread when no summary could be made, and the remaining
// size. It first drops the oldest results; if that does not free enough, it hides the oldest
// messages behind a list of requests and calls; if even the newest batch exceeds the window, it
// drops results of it too. It returns nil where nothing can be left out.
func WithoutModel(pieces []Piece, room Room, w Window, round regie.ID) (c *regie.Compaction, cut, left int) {
	last := newestStart(pieces)
	total, target := countTokens(pieces), max(room.Thread()*6/10, countTokens(pieces[last:])+room.leastGain())
	if room.Most > 0 {
		target = min(target, room.Most-room.Fixed)
	}
	c = &regie.Compaction{}
	need := total - target
	if Crowded(pieces, room) { // else the next batch would need another compaction
		need = total
	}
	if freed := Drop(pieces[:last], need, c); freed > 0 && total-freed <= target &&
		(room.Messages == 0 || len(pieces) <= room.Messages) {
		return c, 0, total - freed
	}
	c = &regie.Compaction{}
	if last > headLength(pieces) {
		cut = last
		stays := countTokens(pieces[last:]) + digestTokens(room)
		for i := last - 1; i > headLength(pieces); i-- { // no more than has to be
			if stays += pieces[i].Tokens; stays > target || room.Messages > 0 && len(pieces)-i > room.Messages/2 {
				break
			}
			if pieces[i].mayCutBefore() {
				cut = i
			}
		}
		c = Compact(pieces, cut, w, round, room)
		total = countTokens(pieces[cut:]) + digestTokens(room)
		for _, n := range c.Requests {
			total += requestTokens(pieces, n-1)
		}
		if all := countTokens(pieces); total >= all { // a list can be longer than what it stands for
			c, cut, total = &regie.Compaction{}, 0, all
		}
	}
	if room.Most > 0 && total > room.Most-room.Fixed {
		total -= Drop(pieces[cut:], total-(room.Most-room.Fixed), c)
	}
	if c.Hidden == 0 && c.Dropped == 0 && c.DroppedCalls == 0 {
		return nil, 0, total
	}
	return c, cut, total
}

func requestTokens(pieces []Piece, place int) int {
	for i := range pieces {
		if pieces[i].Place == place {
			return pieces[i].Tokens
		}
	}
	return 0
}
