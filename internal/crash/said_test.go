//go:build faults

package crash

import (
	"context"
	"database/sql"
	"encoding/json"
	"reflect"
	"strings"
	"time"

	"github.com/regie-run/regie"
)

// storedReview is a call that a person was asked about, as the database has it.
type storedReview struct {
	answer, edited, request, by sql.NullString
	state                       string // of its approval
}

// reviews reads what people were asked about and said, by approval and call.
func (c *checks) reviews() map[[2]regie.ID]storedReview {
	rows, err := c.h.world.db.QueryContext(context.Background(), `SELECT a.id, v.call_id, v.answer, v.edited, v.request, v.decided_by, a.state
		FROM reviews v JOIN approvals a ON a.id = v.approval_id JOIN sessions s ON s.n = a.session WHERE s.id = ?`, c.session)
	if err != nil {
		c.fail("the reviews cannot be read: %v", err)
		return nil
	}
	defer rows.Close()
	out := map[[2]regie.ID]storedReview{}
	for rows.Next() {
		var key [2]regie.ID
		var v storedReview
		if err := rows.Scan(&key[0], &key[1], &v.answer, &v.edited, &v.request, &v.by, &v.state); err != nil {
			c.fail("a review cannot be read: %v", err)
		}
		out[key] = v
	}
	if err := rows.Err(); err != nil {
		c.fail("the reviews cannot be read: %v", err)
	}
	return out
}

// checkDecisions compares what the person said with what is stored (invariants 3 and 7): every acknowledged decision is there, once, as
// it was said; every stored one was said; and what happened was allowed by one, by a rule that one made, or by the policy.
func (c *checks) checkDecisions() {
	reviews := c.reviews()
	acks, asked := map[string]bool{}, map[string]bool{}
	var rules []rule
	for _, e := range c.told {
		if e.Stage == sent {
			rules = append(rules, standing(e)...)
			if asked[e.Key] && e.Decide != nil {
				c.h.seen["decision repeated"]++
			}
			asked[e.Key] = true
			continue
		}
		if e.Stage == refused && acks[e.Key] {
			c.fail("%s was accepted, and refused with %s when it was said again (invariant 7)", e.Key, e.Code)
		}
		acks[e.Key] = acks[e.Key] || e.Stage == acked
		switch {
		case e.Answer != nil:
			c.h.seen["answer "+e.Stage]++
		case e.Decide != nil:
			c.h.seen["decision "+e.Stage]++
			for _, d := range e.Decide.Decisions {
				if e.Stage == acked {
					c.checkDecision(e, d, reviews[[2]regie.ID{e.Decide.ApprovalID, d.CallID}])
				}
			}
		}
	}
	c.checkSaid(reviews)
	c.checkHappened(reviews, rules)
}

// checkDecision asserts that an acknowledged decision is stored as it was said.
func (c *checks) checkDecision(e entry, d regie.Decision, v storedReview) {
	if v.answer.String != string(d.Answer) || v.request.String != e.Decide.Request || v.by.String != e.Decide.By || !sameArguments(v.edited.String, d.Arguments) {
		c.fail("%s decided %s %s on call %s and was acknowledged; stored is %s %s of %s by %s (invariant 7)",
			e.Key, d.Answer, d.Arguments, d.CallID, v.answer.String, v.edited.String, v.request.String, v.by.String)
	}
	if len(d.Arguments) > 0 {
		c.h.seen["decision edited"]++
	}
	c.h.seen["decision "+string(d.Answer)]++
}

func sameArguments(stored string, said json.RawMessage) bool {
	if len(said) == 0 || stored == "" {
		return len(said) == 0 && stored == ""
	}
	var a, b any
	return json.Unmarshal([]byte(stored), &a) == nil && json.Unmarshal(said, &b) == nil && reflect.DeepEqual(a, b)
}

// checkSaid asserts that nobody put words into the person's mouth.
func (c *checks) checkSaid(reviews map[[2]regie.ID]storedReview) {
	for key, v := range reviews {
		if !v.answer.Valid {
			continue
		}
		said := false
		for _, e := range c.told {
			if e.Decide == nil || e.Decide.ApprovalID != key[0] || e.Decide.Request != v.request.String {
				continue
			}
			for _, d := range e.Decide.Decisions {
				said = said || d.CallID == key[1] && string(d.Answer) == v.answer.String && sameArguments(v.edited.String, d.Arguments)
			}
		}
		if !said {
			c.fail("the decision %s on call %s was never said (invariant 3)", v.answer.String, key[1])
		}
	}
}

// rule is what the person allowed for the rest of the session, from when on at the earliest.
type rule struct {
	scope regie.Scope
	since time.Time
}

func standing(e entry) (rules []rule) {
	if e.Decide == nil {
		return nil
	}
	for _, d := range e.Decide.Decisions {
		if d.Scope != nil {
			rules = append(rules, rule{*d.Scope, e.At})
		}
	}
	return rules
}

// checkHappened asserts invariant 3 on the ledger: no action without the person's word on exactly that call, or, where they were not asked
// about it, without the policy or what they had said about such calls before.
func (c *checks) checkHappened(reviews map[[2]regie.ID]storedReview, rules []rule) {
	for _, e := range c.effects {
		if e.Class == regie.ClassRead || len(c.p.policy.Allow) > 0 {
			continue
		}
		asked, allowed := false, false
		for key, v := range reviews {
			if key[1] != e.Key {
				continue
			}
			var args effectArgs
			asked = true
			if strings.HasPrefix(v.answer.String, "allow") && (!v.edited.Valid || json.Unmarshal([]byte(v.edited.String), &args) == nil && args.Name == e.Name) {
				allowed = true
			}
		}
		for _, r := range rules {
			if !asked && r.since.Before(e.At) && r.scope.Matches("ledger."+string(e.Class), regie.Hash{}, map[string]any{"name": e.Name}) {
				allowed = true
				c.h.seen["effect under a rule"]++
			}
		}
		if !allowed {
			c.fail("%s happened, asked: %v, and nobody allowed it (invariant 3)", e.Name, asked)
		}
	}
}

// checkNotes asserts that every acknowledged message is there once (invariant 7): in the thread, waiting for its place, or withdrawn and
// in no prompt.
func (c *checks) checkNotes() {
	thread, err := c.store.Thread(context.Background(), c.session, 0)
	if err != nil {
		c.fail("the thread cannot be read: %v", err)
		return
	}
	notes := append([]note{{id: "only", text: firstText(c.p.seed)}}, c.p.notes...)
	for _, n := range notes {
		inThread, sent, fresh, accepted, answered := 0, 0, 0, false, false
		for i := range thread.Messages {
			// As an answer it is followed by what else was said.
			if m := &thread.Messages[i]; m.Sender == regie.SenderUser && (m.Text == n.text || n.id != "only" && strings.HasPrefix(m.Text, n.text)) {
				inThread++
			}
		}
		for _, e := range c.told {
			if e.Key != n.id || e.Note == nil {
				continue
			}
			sent++
			if e.Stage == acked && !e.Note.Duplicate && !e.Note.Answered { // as an answer it is known by its id, and stored once
				if fresh++; fresh > 1 {
					c.fail("the message %q was accepted twice (invariant 7)", n.text)
				}
			}
			accepted, answered = accepted || e.Stage == acked, answered || e.Note.Answered
		}
		if sent > 1 {
			c.h.seen["note repeated"]++
		}
		c.checkNote(n, inThread, accepted, answered)
	}
}

func (c *checks) checkNote(n note, inThread int, accepted, answered bool) {
	var rows, withdrawn, waiting int
	err := c.h.world.db.QueryRowContext(context.Background(), `SELECT count(*), count(m.withdrawn_at), count(p.n) FROM messages m JOIN sessions s ON s.n = m.session
		LEFT JOIN pending p ON p.message_id = m.id WHERE s.id = ? AND m.client_id = ?`, c.session, n.id).Scan(&rows, &withdrawn, &waiting)
	c.h.world.mu.Lock()
	shown := c.h.world.shown[n.text]
	c.h.world.mu.Unlock()
	switch {
	case err != nil:
		c.fail("the message %q cannot be read: %v", n.text, err)
	case inThread > 1:
		c.fail("the message %q stands %d times in the thread (invariant 7)", n.text, inThread)
	case answered && inThread == 1:
		c.h.seen["note answers"]++
	case rows > 1 || accepted && rows != 1:
		c.fail("the message %q was acknowledged and is there %d times (invariant 7)", n.text, rows)
	case rows == 0:
	case withdrawn == 1:
		c.h.seen["note withdrawn"]++
		if inThread > 0 || shown {
			c.fail("the message %q was withdrawn and is in the thread %d times, in a prompt: %v (invariant 7)", n.text, inThread, shown)
		}
	case waiting == 1:
		c.h.seen["note waits"]++
		if c.p.kind != "left" || inThread > 0 || shown {
			c.fail("the message %q still waits, is in the thread %d times, in a prompt: %v", n.text, inThread, shown)
		}
	case inThread == 1:
		c.h.seen["note admitted"]++
	default:
		c.fail("the message %q is neither in the thread nor waiting nor withdrawn (invariant 7)", n.text)
	}
}
