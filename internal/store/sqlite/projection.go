package sqlite

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/regie-run/regie"
)

// logRow is an event of the log that is projected.
type logRow struct {
	seq  int64
	at   time.Time
	kind regie.EventType
	body []byte
}

// columns are values of a row, by the names of its columns.
type columns map[string]any

// projection is the rows that follow from a log; verify compares them with the tables.
type projection struct {
	owner    regie.ID // the user of the session
	rows     map[string]columns
	erasures []erasure
	// thread is the messages in order, with those of undos and compactions: the superseded ones
	// follow from these alone.
	thread []regie.Message
}

// erasure is an erased event at its place in the log.
type erasure struct {
	seq  int64
	rows [][2]int64
}

// tellsErased reports whether a later row of the log says that the body of a row was erased.
func (p *projection) tellsErased(seq int64) bool {
	return slices.ContainsFunc(p.erasures, func(e erasure) bool {
		return seq < e.seq && slices.ContainsFunc(e.rows, func(rows [2]int64) bool {
			return rows[0] <= seq && seq <= rows[1]
		})
	})
}

// setColumns sets columns of a projected row.
func (p *projection) setColumns(what string, id regie.ID, values columns) {
	key := what + " " + id.String()
	if p.rows[key] == nil {
		p.rows[key] = columns{}
	}
	maps.Copy(p.rows[key], values)
}

// compareRow compares a row with the log's projection, once.
func (p *projection) compareRow(what string, id regie.ID, row columns) error {
	key := what + " " + id.String()
	told, ok := p.rows[key]
	if !ok {
		return chainBroken("the log has no %s", key)
	}
	delete(p.rows, key)
	var differ []string
	for _, column := range slices.Sorted(maps.Keys(row)) {
		if textOf(row[column]) != textOf(told[column]) {
			differ = append(differ, column)
		}
	}
	if len(differ) > 0 {
		return chainBroken("the log and the stored %s differ: %s", key, strings.Join(differ, ", "))
	}
	return nil
}

// textOf formats a value of a column and of the log alike: the zero value and an empty list are
// empty, a time is microseconds, and text is as the log can hold it.
func textOf(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case time.Time:
		if value = v.UnixMicro(); v.IsZero() {
			return ""
		}
	case *time.Time:
		if v != nil {
			return textOf(*v)
		}
	}
	v := reflect.ValueOf(value)
	switch {
	case v.IsZero(), v.Kind() == reflect.Slice && v.Len() == 0:
		return ""
	case v.Kind() == reflect.String:
		return string([]rune(v.String()))
	}
	data, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// applyEvent projects one event.
func (p *projection) applyEvent(row logRow) error {
	switch row.kind {
	case regie.EventSession:
		return applyBody(row, p.applySession)
	case regie.EventMessage, regie.EventMessagePending:
		return applyBody(row, p.applyMessage)
	case regie.EventMessageWithdrawn:
		return applyBody(row, func(row logRow, e *withdrawnEvent) {
			p.setColumns("message", e.MessageID, columns{"withdrawn_at": row.at, "taken_back": e.TakenBack})
		})
	case regie.EventErased:
		return applyBody(row, func(row logRow, e *erasedEvent) {
			p.erasures = append(p.erasures, erasure{row.seq, e.Rows})
		})
	case regie.EventToolCall, regie.EventToolResult:
		return applyBody(row, p.applyCall)
	case regie.EventUndo:
		return applyBody(row, p.applyUndo)
	case regie.EventApproval:
		return applyBody(row, p.applyApproval)
	case regie.EventQuestion:
		return applyBody(row, p.applyQuestion)
	case regie.EventRule:
		return applyBody(row, p.applyRule)
	case regie.EventToken:
		return applyBody(row, p.applyToken)
	}
	return nil
}

func applyBody[T any](row logRow, fn func(logRow, *T)) error {
	var body T
	if err := json.Unmarshal(row.body, &body); err != nil {
		return err
	}
	fn(row, &body)
	return nil
}

func (p *projection) applySession(_ logRow, e *regie.Session) {
	p.owner = e.UserID
	if e.ForkedFrom == nil {
		e.ForkedFrom = new(regie.ForkPoint)
	}
	p.setColumns("session", e.ID, columns{
		"forked_from": e.ForkedFrom.SessionID, "forked_at_seq": e.ForkedFrom.Seq, "approval_mode": e.ApprovalMode,
	})
}

func (p *projection) applyMessage(row logRow, m *regie.Message) {
	if row.kind == regie.EventMessagePending {
		p.setColumns("message", m.ID, columns{"pending_seq": row.seq})
	} else {
		p.setColumns("message", m.ID, columns{"seq": row.seq})
		place := regie.Message{ID: m.ID}
		if m.System != nil && (m.System.Compaction != nil || m.System.Undone != nil) {
			place.System = m.System
		}
		p.thread = append(p.thread, place)
	}
	for _, part := range m.CallParts() {
		if part.Type == regie.PartCall {
			p.setColumns("call", part.CallID, columns{"tool": part.Tool, "arguments": part.Arguments, "state": regie.CallProposed})
		}
	}
}

// applySuperseded sets the messages of the thread that an undo superseded.
func (p *projection) applySuperseded() {
	var gone regie.Supersede
	for i := range p.thread {
		gone.See(&p.thread[i])
	}
	for i := range p.thread {
		if m := &p.thread[i]; gone.Hides(i+1, m) {
			p.setColumns("message", m.ID, columns{"superseded": true})
		}
	}
}

func (p *projection) applyCall(row logRow, e *callEvent) {
	told := columns{"state": e.State, "code": e.Code}
	if e.ResolvedAs != "" {
		told["resolved_as"], told["resolved_by"], told["resolve_note"] = e.ResolvedAs, e.ResolvedBy, e.Note
		if told["resolved_at"] = row.at; e.ResolvedAt != nil {
			told["resolved_at"] = *e.ResolvedAt
		}
	}
	if e.ResolvedAs == "" || !e.CopyOf.IsZero() { // a resolution leaves the error as it was
		told["error"] = e.Error
	}
	for column, hash := range map[string]regie.Hash{
		"result": e.Result, "executed": e.Executed, "intent": e.Intent, "changed": e.Changed,
	} {
		if !hash.IsZero() {
			told[column] = hash
		}
	}
	if !e.CopyOf.IsZero() {
		told["copy_of"] = e.CopyOf
	}
	p.setColumns("call", e.CallID, told)
}

func (p *projection) applyUndo(row logRow, u *regie.Undo) {
	told := undoColumnsOf(u)
	if delete(told, "seq"); u.State == regie.UndoIntended {
		told["seq"] = row.seq
	}
	p.setColumns("undo", u.ID, told)
}

func (p *projection) applyApproval(row logRow, e *approvalEvent) {
	wait := columns{"state": map[regie.ApprovalState]regie.WaitState{
		regie.ApprovalOpen: regie.WaitOpen, regie.ApprovalDecided: regie.WaitResolved,
		regie.ApprovalExpired: regie.WaitExpired, regie.ApprovalWithdrawn: regie.WaitWithdrawn,
	}[e.State]}
	told := columns{"state": e.State}
	if e.State != regie.ApprovalOpen {
		told["closed_at"], wait["resolved_at"] = row.at, row.at
	}
	if e.ExpiresAt != nil { // an open approval
		maps.Copy(told, columns{
			"round_id": e.RoundID, "exchange": e.Exchange, "created_at": row.at, "expires_at": e.ExpiresAt, "seq": row.seq,
		})
		maps.Copy(wait, columns{
			"round_id": e.RoundID, "object_id": e.ApprovalID, "created_at": row.at, "deadline": e.ExpiresAt,
			"owner_id": p.owner,
		})
	}
	if e.ExtendedTo != nil {
		told["expires_at"], wait["deadline"] = e.ExtendedTo, e.ExtendedTo
	}
	for i, call := range e.Calls {
		review := "what approval " + e.ApprovalID.String() + " asks about call"
		if e.ExpiresAt != nil {
			p.setColumns(review, call.CallID, columns{"ordinal": i, "what was shown": call.Review})
		}
		if call.Answer == "" {
			continue
		}
		if e.State == regie.ApprovalDecided {
			wait["resolved_by"] = call.By
		}
		p.setColumns(review, call.CallID, columns{
			"answer": call.Answer, "edited": call.Edited, "edited_preview": call.EditedPreview, "reason": call.Reason,
			"scope": call.Scope, "request": call.Request, "decided_by": call.By, "decided_at": row.at,
			"expires_at": call.RuleExpires,
		})
	}
	p.setColumns("approval", e.ApprovalID, told)
	p.setColumns("wait for", e.ApprovalID, wait)
}

func (p *projection) applyQuestion(row logRow, e *questionEvent) {
	if e.ExtendedTo != nil {
		p.setColumns("wait for", e.QuestionID, columns{"deadline": e.ExtendedTo})
		return
	}
	if e.State == regie.WaitOpen {
		p.setColumns("wait for", e.QuestionID, columns{
			"state": e.State, "round_id": e.RoundID, "object_id": e.CallID, "call_id": e.CallID, "module": e.Module,
			"created_at": row.at, "deadline": e.ExpiresAt, "owner_id": p.owner,
		})
		return
	}
	told := columns{"state": e.State, "resolution": e.Reply, "resolved_at": row.at, "request": e.Request}
	if e.Reply != nil {
		told["resolved_by"] = e.Reply.By
	}
	p.setColumns("wait for", e.QuestionID, told)
}

func (p *projection) applyRule(row logRow, e *ruleEvent) {
	if e.State == regie.RuleRevoked {
		p.setColumns("rule", e.RuleID, columns{"revoked_at": row.at, "revoked_by": e.By})
	} else if e.Rule != nil {
		p.setColumns("rule", e.RuleID, ruleColumnsOf(e.Rule, e.Rule.Scope.Tool))
	}
}

func (p *projection) applyToken(row logRow, e *tokenEvent) {
	if e.State == regie.TokenRevoked {
		p.setColumns("token", e.TokenID, columns{"revoked_at": row.at, "revoked_by": e.By})
	} else if e.Token != nil {
		p.setColumns("token", e.TokenID, tokenColumnsOf(e.Token, e.Hash))
	}
}

func undoColumnsOf(u *regie.Undo) columns {
	return columns{
		"seq": u.Seq, "round_id": u.RoundID, "undoes": u.Undoes, "state": u.State, "forced": u.Forced, "chat": u.Chat,
		"author": u.By, "makes": u.Makes, "removes": u.Removes, "effects": u.Effects, "created_at": u.CreatedAt,
		"done_at": u.DoneAt, "message_id": u.MessageID, "files": u.Files,
	}
}

func ruleColumnsOf(r *regie.Rule, tool string) columns {
	return columns{
		"session": r.SessionID, "verdict": r.Verdict, "tool": tool, "scope": r.Scope, "author": r.Author,
		"from_call": r.FromCall, "created_at": r.CreatedAt, "expires_at": r.ExpiresAt, "revoked_at": r.RevokedAt,
		"revoked_by": r.RevokedBy,
	}
}

func tokenColumnsOf(t *regie.Token, hash regie.Hash) columns {
	return columns{
		"kind": t.Kind, "name": t.Name, "hash": hash, "scopes": t.Scopes, "workspaces": t.Workspaces,
		"on_approval": t.OnApproval, "created_at": t.CreatedAt, "created_by": t.CreatedBy, "expires_at": t.ExpiresAt,
		"revoked_at": t.RevokedAt, "revoked_by": t.RevokedBy,
	}
}
