package cache

import (
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
)

// entry is an answer in memory.
type entry struct {
	key     regie.Hash
	answer  provider.Answer
	expires time.Time
	size    int64 // bytes, about
	uses    int64
	worth   float64 // the least goes first
}

// memory is the first level: bounded in bytes, and aware of what an answer costs. What goes first
// is what saves least for the room that it takes: the tokens of its model call, times how often it
// was used, by its bytes, and the longer ago that was the less (greedy dual by size and frequency).
// The zero memory holds nothing.
type memory struct {
	most  int64
	bytes int64
	at    map[regie.Hash]*entry
	clock float64 // the worth of what went last: what is used now is worth more than anything that was not used since
}

// overhead is about what an entry takes beside its texts, in bytes.
const overhead = 400

func sizeOf(reply *provider.Reply) int64 {
	size := overhead + len(reply.StopReason)
	for i := range reply.Parts {
		size += len(reply.Parts[i].Text) + len(reply.Parts[i].Opaque) + 100
	}
	return int64(size)
}

// get returns the answer under a key and counts its use, or nil. One that has expired goes.
func (m *memory) get(key regie.Hash, now time.Time) *entry {
	e := m.at[key]
	if e == nil {
		return nil
	}
	if !now.Before(e.expires) {
		m.remove(e)
		return nil
	}
	e.uses++
	m.weigh(e)
	return e
}

// put holds an answer. One that would take an eighth of the room is not worth it.
func (m *memory) put(e *entry) {
	if old := m.at[e.key]; old != nil {
		m.remove(old)
	}
	if e.size > m.most/8 {
		return
	}
	if m.at == nil {
		m.at = map[regie.Hash]*entry{}
	}
	e.uses = 1
	m.weigh(e)
	m.at[e.key] = e
	for m.bytes += e.size; m.bytes > m.most; {
		least := e
		for _, other := range m.at { // a few thousand at most, beside a model call
			if other.worth < least.worth {
				least = other
			}
		}
		m.clock = least.worth
		m.remove(least)
	}
}

func (m *memory) weigh(e *entry) {
	e.worth = m.clock + float64(e.uses)*float64(1+e.answer.Cost)/float64(e.size)
}

func (m *memory) remove(e *entry) {
	delete(m.at, e.key)
	m.bytes -= e.size
}

// drop removes what which says.
func (m *memory) drop(which func(*entry) bool) {
	for _, e := range m.at {
		if which(e) {
			m.remove(e)
		}
	}
}
