package sqlite

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"time"

	"github.com/regie-run/regie"
)

// logEvent is an event on its way into the log. The caller encodes its body, outside the writer. A
// failed encoding fails the transition.
type logEvent struct {
	kind regie.EventType
	body string
	hash regie.Hash
	news news
	err  error
}

func newEvent(kind regie.EventType, body any) logEvent {
	data, err := json.Marshal(body)
	if err != nil {
		err = regie.Errorf(regie.CodeInternal, "an event could not be encoded: %v", err)
	}
	return logEvent{kind: kind, body: string(data), hash: regie.HashOf(data), news: newsOf(body), err: err}
}

// appendEvents writes events to a session's chain with rising sequence numbers, moves the head, and
// returns the first number.
func (t *tx) appendEvents(session regie.ID, chain int64, at time.Time, events ...logEvent) (first int64) {
	h, err := t.readHead(chain)
	if t.fail(err) || t.err != nil {
		return 0
	}
	first = h.seq + 1
	for i := range events {
		event := &events[i]
		if t.fail(event.err) {
			return 0
		}
		h.seq++
		n := t.nextEvent(chain, h.seq)
		h.mac = t.w.key.linkMAC(h.mac, h.seq, at, event.kind, event.hash)
		t.notices[session] = append(t.notices[session], regie.Event{
			SessionID: session, Seq: h.seq, Type: event.kind, Time: fromMicros(at.UnixMicro()),
			Body: json.RawMessage(event.body),
		})
		t.exec("INSERT INTO events (n, chain, seq, type, at, body, mac) VALUES (?, ?, ?, ?, ?, ?, ?)",
			n, chain, h.seq, string(event.kind), at.UnixMicro(), event.hash[:], h.mac[:])
		t.exec("INSERT INTO event_bodies (n, body) VALUES (?, ?)", n, event.body)
		t.notify(chain, event.news, at)
	}
	t.one(errNoChain, "UPDATE chains SET head = ?, mac = ?, head_at = ? WHERE n = ?", h.seq, h.mac[:],
		at.UnixMicro(), chain)
	if t.other != nil {
		t.other.Wrote(chain, h.seq, h.mac[:])
	}
	t.heads[chain] = h
	return first
}

// nextEvent returns the key of the next log row. SQLite counts the rows of all logs. On a database
// with several writers the key follows from the row's log and sequence number.
func (t *tx) nextEvent(chain, seq int64) int64 {
	if t.other != nil {
		return chain<<32 | seq
	}
	t.lastEvent++
	return t.lastEvent
}

// appendEvent writes one event.
func (t *tx) appendEvent(owner regie.ID, chain int64, at time.Time, kind regie.EventType, body any) (seq int64) {
	return t.appendEvents(owner, chain, at, newEvent(kind, body))
}

var errNoChain = regie.Errorf(regie.CodeNotFound, "the session is gone")

// readHead returns the end of a chain: from this transaction, or from its row.
func (t *tx) readHead(chain int64) (h head, err error) {
	if h, ok := t.heads[chain]; ok {
		return h, nil
	}
	var mac []byte
	if t.other != nil {
		h.seq, mac, err = t.other.Held(chain)
	} else {
		err = t.row("SELECT head, mac FROM chains WHERE n = ?", chain).Scan(&h.seq, &mac)
	}
	copy(h.mac[:], mac)
	return h, err
}

// auditMAC is the audit key, which binds the rows of the logs.
type auditMAC []byte

// linkMAC computes a row's MAC over the MAC before it and the row (decision 15).
func (k auditMAC) linkMAC(previous [32]byte, seq int64, at time.Time, kind regie.EventType,
	body regie.Hash,
) (mac [32]byte) {
	row := binary.BigEndian.AppendUint64(previous[:], uint64(seq))
	row = binary.BigEndian.AppendUint64(row, uint64(at.UnixMicro()))
	return k.sumMAC(append(append(row, body[:]...), kind...))
}

// genesisMAC returns the MAC before the first row: it binds a chain to its session.
func (k auditMAC) genesisMAC(owner regie.ID) (mac [32]byte) {
	return k.sumMAC(append([]byte("regie chain of "), owner[:]...))
}

func (k auditMAC) sumMAC(text []byte) (mac [32]byte) {
	h := hmac.New(sha256.New, k)
	_, _ = h.Write(text) // a hash takes everything
	h.Sum(mac[:0])
	return mac
}
