// Package slot decides who may run: the table of spec 5.1 with decisions 21 and 43, as pure
// functions. The rows that they are given are the store's, and what they decide is stored by its
// transitions.
package slot

import (
	"cmp"
	"slices"
	"time"

	"github.com/regie-run/regie"
)

// Kind is what a slot is for. Each (user, workspace) has some of each kind (decision 21).
type Kind string

// The kinds. A session that has none (a template, a sub-agent) needs no slot.
const (
	None       Kind = ""
	Chat       Kind = "chat"
	Automation Kind = "automation"
	API        Kind = "api"
)

// KindOf is the kind of slot that a session's rounds run in (decisions 21 and 22).
func KindOf(s *regie.Session) Kind {
	switch s.Type {
	case regie.SessionChat:
		if s.Origin == regie.OriginAPISession {
			return API
		}
		return Chat
	case regie.SessionAutomation:
		return Automation
	default:
		return None
	}
}

// Capacity is how many rounds of a kind run side by side for one user in one workspace (decision
// 52, key slots). Zero bounds nothing.
type Capacity struct {
	Chat       int
	Automation int
	API        int
	// Exclusive has chats and automations share one slot.
	Exclusive bool
}

// Default is decision 21's.
var Default = Capacity{Chat: 4, Automation: 1, API: 64}

// Of is how many slots a kind has together with those that share them; 0 means as many as are asked
// for.
func (c Capacity) Of(k Kind) int {
	switch {
	case k == API:
		return c.API
	case k == None:
		return 0
	case c.Exclusive:
		return 1
	case k == Chat:
		return c.Chat
	default:
		return c.Automation
	}
}

// shares reports whether two kinds have the same slots.
func (c Capacity) shares(a, b Kind) bool {
	return a == b || c.Exclusive && a != API && b != API && a != None && b != None
}

// State is what a session has.
type State string

// The states.
const (
	Held     State = "HELD"     // its round runs
	Queued   State = "QUEUED"   // its round runs as soon as it can
	Reserved State = "RESERVED" // the next round that it starts has a slot, until a moment (decision 43)
)

// The ranks of what is queued: what is lower goes first, and within a rank who came first.
const (
	// RankPlaced is the one CHAT that the table lets be in the queue: the one that was asked for
	// last.
	RankPlaced = iota
	// RankGoesOn is what has run already (decision 21, WAKE), and a chat that lost its place to
	// another: none of it preempts.
	RankGoesOn
	// RankNew is an automation that has not begun.
	RankNew
)

// Entry is what one session has of the slots of a (user, workspace).
type Entry struct {
	Session int64 // the store's own key
	Kind    Kind
	State   State
	Rank    int       // of what is queued
	Place   int64     // in which order they came: to the queue, or to the slot
	Until   time.Time // of a reservation
}

// Ask is the reason of a request for a slot: the rows of the table.
type Ask string

// The rows of the table of 5.1, and decision 21's WAKE.
const (
	AskChat      Ask = "CHAT"
	AskManual    Ask = "MANUAL"
	AskScheduled Ask = "SCHEDULED"
	AskEvent     Ask = "EVENT"
	AskWake      Ask = "WAKE"
)

// Outcome is what becomes of an Ask.
type Outcome string

// The outcomes.
const (
	Activate Outcome = "ACTIVATE" // the slot is the session's
	Already  Outcome = "ALREADY"  // it was
	Queue    Outcome = "QUEUE"    // it is queued, at Position
	Switch   Outcome = "SWITCH"   // it is queued first, and Yields lets go at the end of its step
	Refuse   Outcome = "REFUSE"   // it is never queued: whoever asks comes again when slot and queue are free
)

// Decision is the answer to an Ask.
type Decision struct {
	Outcome  Outcome
	Rank     int
	Position int   // in the queue, from 1
	Yields   int64 // the session that is to let go, with Switch
	// Replaced is the queued chat that loses its place, and nothing else (decision 43); 0 for none.
	Replaced int64
}

// Decide says what becomes of a session that wants to run, by the table of spec 5.1: within a kind
// where that is full, and over chats and automations together where they share one slot.
func Decide(c Capacity, all []Entry, session int64, kind Kind, ask Ask, now time.Time) Decision {
	size := c.Of(kind)
	group := c.group(all, kind, now)
	own := slices.IndexFunc(group, func(e Entry) bool { return e.Session == session })
	if own >= 0 && group[own].State == Held {
		return Decision{Outcome: Already}
	}
	if own >= 0 { // where it is queued already it is as if it asked anew, from no worse a place
		reserved := group[own].State == Reserved
		group = slices.Delete(slices.Clone(group), own, own+1)
		if reserved && (size == 0 || taken(group) < size) { // else whoever lets go for it has not done so yet
			return Decision{Outcome: Activate}
		}
	}
	d := Decision{Rank: rankOf(kind, ask)}
	free := size - taken(group)
	before := 0
	for _, e := range group {
		if e.State == Queued && e.Rank <= d.Rank {
			before++
		}
	}
	switch {
	case size == 0, ask != AskScheduled && free > before:
		return Decision{Outcome: Activate}
	case ask == AskScheduled && free > 0 && queued(group) == 0:
		return Decision{Outcome: Activate}
	case ask == AskScheduled:
		return Decision{Outcome: Refuse}
	}
	d.Outcome, d.Position = Queue, before+1
	if d.Rank != RankPlaced {
		return d
	}
	d.Position = 1
	if i := slices.IndexFunc(group, placed); i >= 0 {
		d.Replaced = group[i].Session
	}
	if d.Yields = victim(group); d.Yields != 0 {
		d.Outcome = Switch
	}
	return d
}

// rankOf returns the rank of a request in the queue. The API's own run in order of arrival: a
// person is not looking at any of them.
func rankOf(kind Kind, ask Ask) int {
	switch {
	case ask == AskWake:
		return RankGoesOn
	case ask == AskChat && kind == API:
		return RankGoesOn
	case ask == AskChat:
		return RankPlaced
	default:
		return RankNew
	}
}

// victim is the chat that has run longest, which lets go for another one; 0 where none runs. An
// automation is allowed to finish (decision 43): where it shares the slot with chats that is what
// decision 43 says, and where it does not no chat waits for its slot.
func victim(group []Entry) int64 {
	var oldest *Entry
	for i := range group {
		if e := &group[i]; e.State == Held && e.Kind == Chat && (oldest == nil || e.Place < oldest.Place) {
			oldest = e
		}
	}
	if oldest == nil {
		return 0
	}
	return oldest.Session
}

// Next is what the queue of a (user, workspace) lets happen now.
type Next struct {
	Start []int64 // the sessions whose round can start, in order
	Yield []int64 // those whose round is to let go at the end of its step, because a chat takes its place
}

// Look says what can be done about a queue.
func Look(c Capacity, all []Entry, now time.Time) (out Next) {
	for _, kind := range []Kind{Chat, Automation, API} {
		if kind == Automation && c.Exclusive {
			continue
		}
		group := c.group(all, kind, now)
		waits := queue(group)
		free := len(waits)
		if size := c.Of(kind); size > 0 {
			free = min(free, max(0, size-taken(group)))
		}
		for _, e := range waits[:free] {
			out.Start = append(out.Start, e.Session)
		}
		// A switch has reserved its place over the others': a round is stopping for it.
		over := c.Of(kind) > 0 && taken(group) > c.Of(kind) && slices.ContainsFunc(group,
			func(e Entry) bool { return e.State == Reserved })
		if rest := waits[free:]; over || len(rest) > 0 && placed(rest[0]) {
			if v := victim(group); v != 0 {
				out.Yield = append(out.Yield, v)
			}
		}
	}
	return out
}

// MayStart reports whether a queued session can start now.
func MayStart(c Capacity, all []Entry, session int64, now time.Time) bool {
	return slices.Contains(Look(c, all, now).Start, session)
}

// Lost returns the reservation that another switch takes over, where one is under way already: the
// latest one without a stopped round; 0 for none.
func Lost(c Capacity, all []Entry, session int64, kind Kind, now time.Time) int64 {
	var last *Entry
	group, others := c.group(all, kind, now), 0
	for i := range group {
		switch e := &group[i]; {
		case e.State == Queued || e.Session == session:
		case e.State == Reserved && (last == nil || e.Place > last.Place):
			last = e
			fallthrough
		default:
			others++
		}
	}
	if last == nil || others <= c.Of(kind) {
		return 0
	}
	return last.Session
}

// Position is the place of a queued session in its queue, from 1; 0 where it is not queued.
func Position(c Capacity, all []Entry, session int64, now time.Time) int {
	i := slices.IndexFunc(all, func(e Entry) bool { return e.Session == session })
	if i < 0 {
		return 0
	}
	return 1 + slices.IndexFunc(queue(c.group(all, all[i].Kind, now)),
		func(e Entry) bool { return e.Session == session })
}

// Overfull reports whether more hold slots of a kind than there are, and a session is not among the
// first: so it is where there were more slots when it got its own.
func Overfull(c Capacity, all []Entry, session int64, now time.Time) bool {
	i := slices.IndexFunc(all, func(e Entry) bool { return e.Session == session && e.State == Held })
	if i < 0 || c.Of(all[i].Kind) == 0 {
		return false
	}
	before := 0
	for _, e := range c.group(all, all[i].Kind, now) {
		if e.State == Held && e.Place < all[i].Place {
			before++
		}
	}
	return before >= c.Of(all[i].Kind)
}

// group returns the entries that share a kind's slots, without ended reservations.
func (c Capacity) group(all []Entry, kind Kind, now time.Time) []Entry {
	var out []Entry
	for _, e := range all {
		if c.shares(e.Kind, kind) && (e.State != Reserved || e.Until.After(now)) {
			out = append(out, e)
		}
	}
	return out
}

func taken(group []Entry) (n int) {
	for _, e := range group {
		if e.State != Queued {
			n++
		}
	}
	return n
}

func queued(group []Entry) int { return len(queue(group)) }

// queue is what is queued, in its order.
func queue(group []Entry) (out []Entry) {
	for _, e := range group {
		if e.State == Queued {
			out = append(out, e)
		}
	}
	slices.SortFunc(out, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(a.Rank, b.Rank),
			cmp.Compare(a.Place, b.Place))
	})
	return out
}

func placed(e Entry) bool { return e.State == Queued && e.Rank == RankPlaced }
