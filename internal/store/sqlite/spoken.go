package sqlite

import (
	"encoding/json"
	"time"

	"github.com/regie-run/regie"
)

// logRow is a row of a log whose body is there.
type logRow struct {
	seq, at int64
	kind    regie.EventType
	body    []byte
}

// spokenLog is what a log says of the rows beside it, for verify to compare.
type spokenLog struct {
	owner     regie.ID // of the session
	forked    *regie.ForkPoint
	erasures  []erasure
	calls     map[regie.ID]*spokenCall
	messages  map[regie.ID]*spokenMessage
	approvals map[regie.ID]*spokenApproval
	questions map[regie.ID]*spokenQuestion
	rules     map[regie.ID]*spokenRule
	undos     map[regie.ID]*spokenUndo
	tokens    map[regie.ID]*spokenToken
	// what has a place in the thread, in order: of each what says which messages are superseded
	thread []regie.Message
}

func newSpokenLog() *spokenLog {
	return &spokenLog{
		calls: map[regie.ID]*spokenCall{}, messages: map[regie.ID]*spokenMessage{},
		approvals: map[regie.ID]*spokenApproval{}, questions: map[regie.ID]*spokenQuestion{},
		rules: map[regie.ID]*spokenRule{},
		undos: map[regie.ID]*spokenUndo{}, tokens: map[regie.ID]*spokenToken{},
	}
}

// spokenCall is what the log says of a call.
type spokenCall struct {
	tool      string
	arguments regie.Hash
	state     regie.CallState
	code      regie.NotRunCode
	problem   regie.Code
	result    regie.Hash
	executed  regie.Hash // what a person's edit made of the arguments
	intent    regie.Hash
	changed   regie.Hash
	resolved  *regie.Resolution
	copyOf    regie.ID
}

// compare returns the first column of a call that the log has otherwise, "" for none. Where bodies
// were erased, the one that resolved it may be among them.
func (log *spokenCall) compare(c *regie.Call, erased bool) string {
	var d differs
	d.in("tool", log.tool != "" && c.Tool != log.tool)
	problem := regie.Code("")
	if c.Error != nil {
		problem = c.Error.Code
	}
	d.in("error", c.State.Settled() && problem != log.problem && !erased)
	d.in("copy_of", c.CopyOf != log.copyOf && !erased)
	if log.resolved == nil {
		d.in("resolved_as", c.Resolution != nil && !erased)
		return d.column
	}
	was := regie.Resolution{}
	if c.Resolution != nil {
		was = *c.Resolution
	}
	d.in("resolved_as", was.As != log.resolved.As)
	d.in("resolved_by", asLogged(was.By) != log.resolved.By)
	d.in("resolve_note", asLogged(was.Note) != log.resolved.Note)
	d.in("resolved_at", !was.At.Equal(log.resolved.At))
	return d.column
}

// spokenMessage is where the log has a message, 0 where it does not.
type spokenMessage struct {
	seq, pending, withdrawnAt int64
	takenBack                 bool
}

// spokenApproval is what the log says of an approval.
type spokenApproval struct {
	seq, askedAt int64 // 0 where the body of the event that asked was erased
	asked        approvalEvent
	state        regie.ApprovalState
	closedAt     int64 // 0 while it is open
	lastBy       string
	decided      map[regie.ID]spokenDecision
}

// spokenDecision is a person's word on a call, as the log has it.
type spokenDecision struct {
	reviewEvent
	at int64
}

// spokenQuestion is what the log says of a question.
type spokenQuestion struct {
	askedAt  int64 // 0 where the body of the event that asked was erased
	asked    questionEvent
	closed   questionEvent
	closedAt int64 // 0 while it is open
}

// spokenRule is what the log says of a rule.
type spokenRule struct {
	made      *regie.Rule // nil where the body of the event was erased
	revokedBy string
	revokedAt int64 // 0 while it is not
}

// remember notes what a row of the log says.
func (l *spokenLog) remember(row logRow) error {
	switch row.kind {
	case regie.EventSession:
		var event regie.Session
		if err := json.Unmarshal(row.body, &event); err != nil {
			return err
		}
		l.owner = event.UserID
		if event.ForkedFrom != nil {
			l.forked = event.ForkedFrom
		}
	case regie.EventMessage, regie.EventMessagePending:
		var m regie.Message
		if err := json.Unmarshal(row.body, &m); err != nil {
			return err
		}
		l.message(row, &m)
	case regie.EventMessageWithdrawn:
		var event withdrawnEvent
		if err := json.Unmarshal(row.body, &event); err != nil {
			return err
		}
		said := find(l.messages, event.MessageID)
		said.withdrawnAt, said.takenBack = row.at, event.TakenBack
	case regie.EventErased:
		var event erasedEvent
		if err := json.Unmarshal(row.body, &event); err != nil {
			return err
		}
		l.erasures = append(l.erasures, erasure{row.seq, event.Rows})
	case regie.EventToolCall, regie.EventToolResult:
		var event callEvent
		if err := json.Unmarshal(row.body, &event); err != nil {
			return err
		}
		l.call(row, &event)
	default:
		return l.rememberAsked(row)
	}
	return nil
}

// rememberAsked notes what a row says of approvals, questions and rules.
func (l *spokenLog) rememberAsked(row logRow) error {
	switch row.kind {
	case regie.EventUndo:
		var event regie.Undo
		if err := json.Unmarshal(row.body, &event); err != nil {
			return err
		}
		u := find(l.undos, event.ID)
		u.last = event
		if event.State == regie.UndoIntended {
			u.seq = row.seq
		}
	case regie.EventApproval:
		var event approvalEvent
		if err := json.Unmarshal(row.body, &event); err != nil {
			return err
		}
		l.approval(row, event)
	case regie.EventQuestion:
		var event questionEvent
		if err := json.Unmarshal(row.body, &event); err != nil {
			return err
		}
		q := find(l.questions, event.QuestionID)
		if event.State == regie.WaitOpen {
			q.asked, q.askedAt = event, row.at
		} else {
			q.closed, q.closedAt = event, row.at
		}
	case regie.EventRule:
		var event ruleEvent
		if err := json.Unmarshal(row.body, &event); err != nil {
			return err
		}
		rule := find(l.rules, event.RuleID)
		if event.State == regie.RuleRevoked {
			rule.revokedBy, rule.revokedAt = event.By, row.at
		} else {
			rule.made = event.Rule
		}
	case regie.EventToken:
		return l.token(row)
	}
	return nil
}

// find returns what was said of a thing before, or a place for it.
func find[T any](said map[regie.ID]*T, id regie.ID) *T {
	if said[id] == nil {
		said[id] = new(T)
	}
	return said[id]
}

func (l *spokenLog) message(row logRow, m *regie.Message) {
	said := find(l.messages, m.ID)
	if row.kind == regie.EventMessagePending {
		said.pending = row.seq
	} else {
		said.seq = row.seq
		place := regie.Message{ID: m.ID}
		if m.System != nil && (m.System.Compaction != nil || m.System.Undone != nil) {
			place.System = m.System
		}
		l.thread = append(l.thread, place)
	}
	for _, part := range m.CallParts() {
		if part.Type == regie.PartCall {
			l.calls[part.CallID] = &spokenCall{tool: part.Tool, arguments: part.Arguments, state: regie.CallProposed}
		}
	}
}

func (l *spokenLog) call(row logRow, event *callEvent) {
	call := find(l.calls, event.CallID) // a new one where its message was erased
	call.state, call.code, call.result = event.State, event.Code, event.Result
	if event.ResolvedAs != "" {
		call.resolved = &regie.Resolution{
			As: event.ResolvedAs, By: event.ResolvedBy,
			Note: event.Note, At: time.UnixMicro(row.at),
		}
	}
	if event.ResolvedAs == "" || !event.CopyOf.IsZero() { // a resolution leaves the error as it was
		call.problem = event.Error
	}
	if !event.CopyOf.IsZero() {
		call.copyOf = event.CopyOf
		if call.resolved != nil && event.ResolvedAt != nil {
			call.resolved.At = *event.ResolvedAt
		}
	}
	if !event.Executed.IsZero() {
		call.executed = event.Executed
	}
	if !event.Intent.IsZero() {
		call.intent = event.Intent
	}
	if !event.Changed.IsZero() {
		call.changed = event.Changed
	}
}

func (l *spokenLog) approval(row logRow, event approvalEvent) {
	a := find(l.approvals, event.ApprovalID)
	if event.ExpiresAt != nil {
		a.asked, a.seq, a.askedAt = event, row.seq, row.at
	}
	a.state = event.State
	if event.State != regie.ApprovalOpen {
		a.closedAt = row.at
	}
	for _, call := range event.Calls {
		if call.Answer == "" {
			continue
		}
		if a.decided == nil {
			a.decided = map[regie.ID]spokenDecision{}
		}
		a.decided[call.CallID], a.lastBy = spokenDecision{call, row.at}, call.By
	}
}
