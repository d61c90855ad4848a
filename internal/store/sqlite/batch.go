package sqlite

import (
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// batch collects the events of one transition, encoded before it enters the writer. The writer sets
// the sequence numbers of the messages.
type batch struct {
	fence    store.Fence
	now      time.Time
	events   []logEvent
	messages []placed
	approval int   // the index of the event that asks
	first    int64 // the number of the first event in the log, once they are stored
}

// placed is a message with the index of its event in the batch.
type placed struct {
	message *regie.Message
	index   int
}

func (b *batch) addEvent(kind regie.EventType, body any) {
	b.events = append(b.events, newEvent(kind, body))
}

// prependEvent adds an event, which is no message, in front of all others.
func (b *batch) prependEvent(kind regie.EventType, body any) {
	b.events = append([]logEvent{newEvent(kind, body)}, b.events...)
}

func (b *batch) addMessage(m *regie.Message) {
	m.SessionID, m.RoundID, m.Time = b.fence.SessionID, b.fence.RoundID, b.now
	b.messages = append(b.messages, placed{m, len(b.events)})
	b.addEvent(regie.EventMessage, m)
}

// callEvent is the body of tool_call and tool_result. It binds the call row's intent, changes and
// result by their hashes, so that verify finds an altered row (decision 15). The message that
// proposed the call binds the arguments.
type callEvent struct {
	CallID   regie.ID `json:"call_id"`
	Exchange int      `json:"exchange"`
	Tool     string   `json:"tool,omitempty"`
	// the file, the query or the command, for readers of the log
	About      string           `json:"about,omitempty"`
	Kind       regie.CallKind   `json:"kind,omitempty"`
	State      regie.CallState  `json:"state"`
	Code       regie.NotRunCode `json:"code,omitempty"`
	Intent     regie.Hash       `json:"intent,omitzero"`
	Executed   regie.Hash       `json:"executed,omitzero"` // the arguments after a person's edit
	Changed    regie.Hash       `json:"changed,omitzero"`  // its changes to files
	Result     regie.Hash       `json:"result,omitzero"`
	Bytes      int              `json:"bytes,omitempty"`
	Exit       string           `json:"exit,omitempty"` // the exit code of a command that failed
	Lost       int64            `json:"lost,omitempty"` // bytes of the whole result, which could not be stored
	Error      regie.Code       `json:"error,omitempty"`
	Recovered  bool             `json:"recovered,omitempty"`
	DurationUS int64            `json:"duration_us,omitempty"`
	Tainted    bool             `json:"tainted,omitempty"`
	Private    bool             `json:"read_private,omitempty"`
	ResolvedAs regie.ResolvedAs `json:"resolved_as,omitempty"`
	ResolvedBy string           `json:"resolved_by,omitempty"`
	Note       string           `json:"note,omitempty"`
	// CopyOf is set in a fork. Then the event has the whole call, also its resolution with the
	// time.
	CopyOf     regie.ID   `json:"copy_of,omitzero"`
	ResolvedAt *time.Time `json:"resolved_at,omitempty"`
}

// addStarted adds the event of a stored intent of an action.
func (b *batch) addStarted(c *regie.Call) {
	b.addEvent(regie.EventToolCall, callEvent{
		CallID: c.ID, Exchange: c.Exchange, Tool: c.Tool, Kind: c.Kind,
		State: regie.CallStarted, Intent: hashOrZero(c.Intent),
	})
}

// addSettled adds the event of a call's one result.
func (b *batch) addSettled(c *regie.Call) { b.addEvent(regie.EventToolResult, settledEvent(c)) }

func settledEvent(c *regie.Call) callEvent {
	event := callEvent{
		CallID: c.ID, Exchange: c.Exchange, Tool: c.Tool, About: store.About(c), State: c.State, Code: c.NotRun,
		Bytes: len(c.Result), Exit: store.ExitCode(c), Lost: c.ResultLost,
		Recovered: c.Recovered, DurationUS: c.DurationUS, Changed: hashOrZero(c.Changed),
		Tainted: c.Tainted, Private: c.ReadPrivate,
	}
	if c.Error != nil {
		event.Error = c.Error.Code
	} else {
		event.Result = regie.HashOf([]byte(c.Result))
	}
	return event
}

func (b *batch) addEnd(end *store.End) {
	if end == nil {
		return
	}
	if end.Notice != nil {
		b.addEvent(regie.EventNotice, end.Notice)
	}
	b.addEvent(regie.EventRound, roundEvent{
		RoundID: b.fence.RoundID, State: regie.RoundEnded, End: end.Reason,
		Note: end.Note, Session: regie.SessionIdle,
	})
}

// writeBatch writes the events and the rows of the messages. The rows of the calls come before.
func (b *batch) writeBatch(t *tx) {
	if len(b.events) == 0 {
		return
	}
	b.first = t.appendEvents(b.fence.SessionID, b.fence.Chain, b.now, b.events...)
	for _, p := range b.messages {
		p.message.Seq = b.first + int64(p.index)
		t.rounds.insertMessage(b.fence.Chain, p.message, false)
	}
}

// askingSeq returns the sequence number of the event that asks, once the events are stored.
func (b *batch) askingSeq() int64 { return b.first + int64(b.approval) }

func hashOrZero(data []byte) regie.Hash {
	if len(data) == 0 {
		return regie.Hash{}
	}
	return regie.HashOf(data)
}
