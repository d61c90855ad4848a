// Package slot decides which rounds may run: the table of spec 5.1 with decisions 21 and 43, as
// pure functions. The store reads their rows, and stores their decisions in its transitions.
package slot

import (
	"cmp"
	"slices"
	"time"

	"github.com/regie-run/regie"
)

// Kind is the kind of a slot. Each (user, workspace) has some of each kind (decision 21).
type Kind string

// The kinds. A session that has none (a template, a sub-agent) needs no slot.
const (
	None       Kind = ""
	Chat       Kind = "chat"
	Automation Kind = "automation"
	API        Kind = "api"
)

// KindOf returns the kind of slot of a session's rounds (decisions 21 and 22).
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

// Capacity is how many rounds of a kind run at once for one user in one workspace (decision 52, key
// slots). Zero is unlimited.
type Capacity struct {
	Chat       int
	Automation int
	API        int
	// Exclusive makes chats and automations share one slot.
	Exclusive bool
}

// Default is decision 21's.
var Default = Capacity{Chat: 4, Automation: 1, API: 64}

// Of returns how many slots a kind has, together with the kind that shares them; 0 is unlimited.
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

// State is a session's state at the slots.
type State string

// The states.
const (
	Held     State = "HELD"     // its round runs
	Queued   State = "QUEUED"   // its round runs as soon as it can
	Reserved State = "RESERVED" // its next round has a slot, until a moment (decision 43)
)

// The ranks of the queue: a lower rank starts first, and within a rank the earlier arrival.
const (
	// RankPlaced is the one queued CHAT that the table allows: the latest one.
	RankPlaced = iota
	// RankGoesOn is a round that has run already (decision 21, WAKE), and a chat that lost its
	// place to another: none of these preempts.
	RankGoesOn
	// RankNew is an automation that has not begun.
	RankNew
)

// Entry is one session's slot, reservation or place in the queue of a (user, workspace).
type Entry struct {
	Session int64 // the store's own key
	Kind    Kind
	State   State
	Rank    int       // of a queued entry
	Place   int64     // arrival order in the queue, or at the slot
	Until   time.Time // of a reservation
}

// Ask is the reason for requesting a slot: the rows of the table.
type Ask string

// The rows of the table of 5.1, and decision 21's WAKE.
const (
	AskChat      Ask = "CHAT"
	AskManual    Ask = "MANUAL"
	AskScheduled Ask = "SCHEDULED"
	AskEvent     Ask = "EVENT"
	AskWake      Ask = "WAKE"
)

// Outcome is the result of an Ask.
type Outcome string

// The outcomes.
const (
	Activate Outcome = "ACTIVATE" // the slot is the session's
	Already  Outcome = "ALREADY"  // it was
	Queue    Outcome = "QUEUE"    // it is queued, at Position
	Switch   Outcome = "SWITCH"   // it is queued first, and Yields releases its slot at the end of its step
	Refuse   Outcome = "REFUSE"   // it is never queued: the caller asks again when slot and queue are free
)

// Decision is the answer to an Ask.
type Decision struct {
	Outcome  Outcome
	Rank     int
	Position int   // in the queue, from 1
	Yields   int64 // the session that has to yield, with Switch
	// Replaced is the queued chat that loses its place, and nothing else (decision 43); 0 for none.
	Replaced int64
}

// Decide decides about a session that wants to run, by the table of spec 5.1: within a full kind,
// and over chats and automations together where they share one slot.
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
		if reserved && (size == 0 || taken(group) < size) { // else the session that yields still has the slot
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

// rankOf returns the rank at which an ask queues. API sessions are served in arrival order: a
// person does not watch any of them just now.
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

// victim returns the chat that has run longest, which yields to another one; 0 where none runs. An
// automation may finish (decision 43), even where it shares the slot with chats. Where it does not,
// no chat waits for its slot.
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

// Next is the possible moves of the queue of a (user, workspace).
type Next struct {
	Start []int64 // the sessions that can start their round, in order
	Yield []int64 // the sessions that release their slot at the end of their step, because a chat takes it
}

// Look returns the possible moves of a queue.
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
		// A session that requested control by a switch has a reservation beyond the capacity:
		// another session yields its slot for it.
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

// Lost returns the latest reservation that still waits for another session to yield, because a new
// switch takes it over; 0 for none.
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

// Position returns a session's place in its queue, from 1; 0 where it is not queued.
func Position(c Capacity, all []Entry, session int64, now time.Time) int {
	i := slices.IndexFunc(all, func(e Entry) bool { return e.Session == session })
	if i < 0 {
		return 0
	}
	return 1 + slices.IndexFunc(queue(c.group(all, all[i].Kind, now)),
		func(e Entry) bool { return e.Session == session })
}

// Overfull reports whether more sessions hold slots of a kind than exist, and this one is not among
// the first. That happens when the capacity was lowered since.
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

// group returns the entries that share a kind's slots, without expired reservations.
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

// queue returns the queued entries, in order.
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
