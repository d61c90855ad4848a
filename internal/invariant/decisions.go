package invariant

import (
	"context"
	"database/sql"
	"encoding/json"
	"reflect"
	"strings"
	"time"

	"github.com/regie-run/regie"
)

// storedReview is the database's record of a person's decision on a call.
type storedReview struct {
	answer, edited, request, by sql.NullString
	state                       string // of its approval
}

// reviews reads the requested decisions and their answers, by approval and call.
func (c *check) reviews() map[[2]regie.ID]storedReview {
	rows, err := c.DB.QueryContext(context.Background(), `SELECT a.id, v.call_id, v.answer, v.edited, v.request, v.decided_by, a.state
		FROM reviews v JOIN approvals a ON a.id = v.approval_id JOIN sessions s ON s.n = a.session WHERE s.id = ?`, c.Session)
	if err != nil {
		c.Fail("the reviews cannot be read: %v", err)
		return nil
	}
	defer rows.Close()
	out := map[[2]regie.ID]storedReview{}
	for rows.Next() {
		var key [2]regie.ID
		var v storedReview
		if err := rows.Scan(&key[0], &key[1], &v.answer, &v.edited, &v.request, &v.by, &v.state); err != nil {
			c.Fail("a review cannot be read: %v", err)
		}
		out[key] = v
	}
	if err := rows.Err(); err != nil {
		c.Fail("the reviews cannot be read: %v", err)
	}
	return out
}

// checkDecisions compares the person's decisions with the stored ones (invariants 3 and 7). Every
// acknowledged decision is stored once and unchanged, and every stored one was sent. Every effect
// was allowed by a decision, by a rule from one, or by the policy.
func (c *check) checkDecisions() {
	reviews := c.reviews()
	acks, asked := map[string]bool{}, map[string]bool{}
	var rules []rule
	for _, e := range c.Told {
		if e.Revoke && e.Stage == Acked {
			revoked(rules, e.At)
		}
		if e.Stage == Sent {
			rules = append(rules, standing(e)...)
			if asked[e.Key] && e.Decide != nil {
				c.saw("decision repeated")
			}
			asked[e.Key] = true
			continue
		}
		if e.Stage == Refused && acks[e.Key] {
			c.Fail("%s was accepted, and refused with %s when it was said again (invariant 7)", e.Key, e.Code)
		}
		acks[e.Key] = acks[e.Key] || e.Stage == Acked
		switch {
		case e.Answer != nil:
			c.saw("answer " + e.Stage)
		case e.Decide != nil:
			c.saw("decision " + e.Stage)
			for _, d := range e.Decide.Decisions {
				if e.Stage == Acked {
					c.checkDecision(e, d, reviews[[2]regie.ID{e.Decide.ApprovalID, d.CallID}])
				}
			}
		}
	}
	c.checkSaid(reviews)
	c.checkHappened(reviews, rules)
}

// checkDecision asserts that an acknowledged decision is stored unchanged.
func (c *check) checkDecision(e Entry, d regie.Decision, v storedReview) {
	if v.answer.String != string(d.Answer) || v.request.String != e.Decide.Request || v.by.String != e.Decide.By ||
		!sameArguments(v.edited.String, d.Arguments) {
		c.Fail("%s decided %s %s on call %s and was acknowledged; stored is %s %s of %s by %s (invariant 7)",
			e.Key, d.Answer, d.Arguments, d.CallID, v.answer.String, v.edited.String, v.request.String, v.by.String)
	}
	if len(d.Arguments) > 0 {
		c.saw("decision edited")
	}
	c.saw("decision " + string(d.Answer))
}

func sameArguments(stored string, said json.RawMessage) bool {
	if len(said) == 0 || stored == "" {
		return len(said) == 0 && stored == ""
	}
	var a, b any
	return json.Unmarshal([]byte(stored), &a) == nil && json.Unmarshal(said, &b) == nil && reflect.DeepEqual(a, b)
}

// checkSaid asserts that every stored decision was sent by the person.
func (c *check) checkSaid(reviews map[[2]regie.ID]storedReview) {
	for key, v := range reviews {
		if !v.answer.Valid {
			continue
		}
		said := false
		for _, e := range c.Told {
			if e.Decide == nil || e.Decide.ApprovalID != key[0] || e.Decide.Request != v.request.String {
				continue
			}
			for _, d := range e.Decide.Decisions {
				said = said || d.CallID == key[1] && string(d.Answer) == v.answer.String &&
					sameArguments(v.edited.String, d.Arguments)
			}
		}
		if !said {
			c.Fail("the decision %s on call %s was never said (invariant 3)", v.answer.String, key[1])
		}
	}
}

// rule is a longer permission from the person, with the earliest start, and its end if it has one.
type rule struct {
	scope        regie.Scope
	since, until time.Time
}

func standing(e Entry) (rules []rule) {
	if e.Decide == nil {
		return nil
	}
	for _, d := range e.Decide.Decisions {
		if d.Scope != nil {
			rules = append(rules, rule{*d.Scope, e.At, d.ExpiresAt})
		}
	}
	return rules
}

// revoked ends the rules that stand.
func revoked(rules []rule, at time.Time) {
	for i := range rules {
		if rules[i].until.IsZero() || rules[i].until.After(at) {
			rules[i].until = at
		}
	}
}

// covers reports whether the rule allows a call that was started at that time.
func (r rule) covers(call *regie.Call, e Effect) bool {
	return !r.since.After(call.StartedAt.Add(time.Microsecond)) &&
		(r.until.IsZero() || !call.StartedAt.After(r.until)) &&
		r.scope.Matches("ledger."+string(e.Class), call.Signature, map[string]any{"name": e.Name})
}

// checkHappened asserts invariant 3 on the ledger: each action has the person's decision on exactly
// that call. If they were not asked, the policy or an earlier rule allowed it.
func (c *check) checkHappened(reviews map[[2]regie.ID]storedReview, rules []rule) {
	calls := c.calls()
	for _, e := range c.Effects {
		if e.Class == regie.ClassRead || c.Allows != nil && c.Allows("ledger."+string(e.Class)) {
			continue
		}
		asked, allowed := false, false
		for key, v := range reviews {
			if key[1] != e.Key {
				continue
			}
			var args named
			asked = true
			if strings.HasPrefix(v.answer.String, "allow") && (!v.edited.Valid ||
				json.Unmarshal([]byte(v.edited.String), &args) == nil && args.Name == e.Name) {
				allowed = true
			}
		}
		for _, r := range rules {
			if call := calls[e.Key]; call != nil && !asked && r.covers(call, e) {
				allowed = true
				c.saw("effect under a rule")
			}
		}
		if !allowed {
			c.Fail("%s happened, asked: %v, and nobody allowed it (invariant 3)", e.Name, asked)
		}
	}
}

// checkNotes asserts that every acknowledged message is there once (invariant 7): in the thread,
// waiting for its place, or withdrawn and in no prompt.
func (c *check) checkNotes() {
	thread, err := c.Store.Thread(context.Background(), c.Session, 0)
	if err != nil {
		c.Fail("the thread cannot be read: %v", err)
		return
	}
	for _, n := range c.Notes {
		inThread, sent, fresh, accepted, answered := 0, 0, 0, false, false
		for i := range thread.Messages {
			// As an answer it is followed by later notes.
			if m := &thread.Messages[i]; m.Sender == regie.SenderUser &&
				(m.LinearText() == n.Text || n.Follows && strings.HasPrefix(m.LinearText(), n.Text)) {
				inThread++
			}
		}
		for _, e := range c.Told {
			if e.Key != n.ID || e.Note == nil {
				continue
			}
			sent++
			// as an answer it is known by its id, and stored once
			if e.Stage == Acked && !e.Note.Duplicate && !e.Note.Answered {
				if fresh++; fresh > 1 {
					c.Fail("the message %q was accepted twice (invariant 7)", n.Text)
				}
			}
			accepted, answered = accepted || e.Stage == Acked, answered || e.Note.Answered
		}
		if sent > 1 {
			c.saw("note repeated")
		}
		c.checkNote(n, inThread, accepted, answered)
	}
}

func (c *check) checkNote(n Note, inThread int, accepted, answered bool) {
	var rows, withdrawn, waiting int
	err := c.DB.QueryRowContext(context.Background(), `SELECT count(*), count(m.withdrawn_at), count(p.n) FROM messages m JOIN sessions s ON s.n = m.session
		LEFT JOIN pending p ON p.message_id = m.id WHERE s.id = ? AND m.client_id = ?`, c.Session, n.ID).Scan(&rows, &withdrawn, &waiting)
	shown := c.Shown[n.Text]
	switch {
	case err != nil:
		c.Fail("the message %q cannot be read: %v", n.Text, err)
	case inThread > 1:
		c.Fail("the message %q stands %d times in the thread (invariant 7)", n.Text, inThread)
	case answered && inThread == 1:
		c.saw("note answers")
	case rows > 1 || accepted && rows != 1:
		c.Fail("the message %q was acknowledged and is there %d times (invariant 7)", n.Text, rows)
	case rows == 0:
	case withdrawn == 1:
		c.saw("note withdrawn")
		if inThread > 0 || shown {
			c.Fail("the message %q was withdrawn and is in the thread %d times, in a prompt: %v (invariant 7)", n.Text,
				inThread, shown)
		}
	case waiting == 1:
		c.saw("note waits")
		if !c.MayWait || inThread > 0 || shown {
			c.Fail("the message %q still waits, is in the thread %d times, in a prompt: %v", n.Text, inThread, shown)
		}
	case inThread == 1:
		c.saw("note admitted")
	default:
		c.Fail("the message %q is neither in the thread nor waiting nor withdrawn (invariant 7)", n.Text)
	}
}
