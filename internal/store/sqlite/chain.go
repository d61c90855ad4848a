package sqlite

import (
	"encoding/binary"
	"encoding/json"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// logEvent is an event on its way into the log; its body is encoded by the caller, outside the
// writer.
type logEvent struct {
	kind regie.EventType
	body string
	hash regie.Hash
}

func newEvent(kind regie.EventType, body any) (logEvent, error) {
	data, err := json.Marshal(body)
	if err != nil {
		return logEvent{}, regie.Errorf(regie.CodeInternal, "an event could not be encoded: %v", err)
	}
	return logEvent{kind: kind, body: string(data), hash: regie.HashOf(data)}, nil
}

// appendEvents writes events to a session's chain with rising sequence numbers, moves the head, and
// returns the first number.
func (t *tx) appendEvents(session regie.ID, chain int64, at time.Time, events []logEvent) (first int64) {
	h, err := t.head(chain)
	if t.fail(err) || t.err != nil {
		return 0
	}
	first = h.seq + 1
	added := t.notices[session]
	if added == nil {
		added = new(store.Appended)
		t.notices[session] = added
	}
	mac := t.w.scratch[:] // what is bound is copied by the driver
	for i := range events {
		event := &events[i]
		h.seq++
		n := t.eventNumber(chain, h.seq)
		h.mac = t.w.link(h.mac, h.seq, at, event.kind, event.hash)
		copy(mac, h.mac[:])
		added.Add(h.seq, event.kind, at, event.body)
		t.exec("INSERT INTO events (n, chain, seq, type, at, body, mac) VALUES (?, ?, ?, ?, ?, ?, ?)",
			n, chain, h.seq, string(event.kind), at.UnixMicro(), event.hash[:], mac)
		t.exec("INSERT INTO event_bodies (n, body) VALUES (?, ?)", n, event.body)
	}
	copy(mac, h.mac[:])
	t.one(errNoChain, "UPDATE chains SET head = ?, mac = ?, head_at = ? WHERE n = ?", h.seq, mac,
		at.UnixMicro(), chain)
	if t.other != nil {
		t.other.Wrote(chain, h.seq, mac)
	}
	t.heads[chain] = h
	return first
}

// tell writes one event.
func (t *tx) tell(owner regie.ID, chain int64, at time.Time, kind regie.EventType, body any) (seq int64) {
	event, err := newEvent(kind, body)
	if t.fail(err) {
		return 0
	}
	return t.appendEvents(owner, chain, at, []logEvent{event})
}

var errNoChain = regie.Errorf(regie.CodeNotFound, "the session is gone")

// head returns the end of a chain: from this transaction, from the cache, or from its row.
func (t *tx) head(chain int64) (head, error) {
	if h, ok := t.heads[chain]; ok {
		return h, nil
	}
	if h, ok := t.w.heads[chain]; ok {
		return h, nil
	}
	if t.other != nil {
		return t.heldHead(chain)
	}
	var h head
	var mac []byte
	if err := t.row("SELECT head, mac FROM chains WHERE n = ?", chain).Scan(&h.seq, &mac); err != nil {
		return head{}, err
	}
	copy(h.mac[:], mac)
	return h, nil
}

// link computes a row's MAC over the MAC before it and the row (decision 15).
func (w *writer) link(previous [32]byte, seq int64, at time.Time, kind regie.EventType,
	body regie.Hash,
) (mac [32]byte) {
	var fixed [16]byte
	binary.BigEndian.PutUint64(fixed[:8], uint64(seq))
	binary.BigEndian.PutUint64(fixed[8:], uint64(at.UnixMicro()))
	row := w.row[:0]
	row = append(append(append(append(row, previous[:]...), fixed[:]...), body[:]...), kind...)
	w.mac.Reset()
	w.mac.Write(row)
	w.row = w.mac.Sum(row[:0])
	copy(mac[:], w.row)
	return mac
}

// genesis is the MAC before the first row: it binds a chain to its session.
func (w *writer) genesis(owner regie.ID) (mac [32]byte) {
	w.mac.Reset()
	w.mac.Write([]byte("regie chain of "))
	w.mac.Write(owner[:])
	w.mac.Sum(mac[:0])
	return mac
}
