package invariant

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// tally recounts a round's exchanges from its log, independently of its counters.
type tally struct {
	replies, queries, retries, formatErrors int
	// spent says that a limit was reached: the round ends with the stored messages, and reads no
	// further reply.
	spent bool
}

// checkLimits asserts invariant 10 on the log: neither the counters of a round nor what happened in
// it passes its limits (spec 3.2, decision 41).
func (c *check) checkLimits() {
	tallies := map[regie.ID]*tally{}
	views := map[regie.ID]*store.RoundView{}
	for i := range c.views {
		views[c.views[i].Round.ID] = &c.views[i]
		tallies[c.views[i].Round.ID] = &tally{}
		c.checkCounters(&c.views[i].Round)
	}
	for i := range c.events {
		var m regie.Message
		if c.events[i].Type != regie.EventMessage || json.Unmarshal(c.events[i].Body, &m) != nil {
			continue
		}
		view, t := views[m.RoundID], tallies[m.RoundID]
		if view == nil {
			continue
		}
		switch {
		case m.AI != nil:
			if t.replies++; t.spent {
				c.Fail("round %d read a reply after it had met a limit (invariant 10)", view.Round.Number)
			}
			c.checkTally(t, &view.Round, false)
		case m.Enriching(): // what a person had read counts for no limit (decision 46)
		case m.System != nil:
			calls := exchangeOf(view, m.Exchange)
			if m.System.Type != regie.SystemDataAdded || !final(calls, view.Round.Dialect) { // the model need not read those
				t.settled(m.System.Type, calls)
			}
			c.checkTally(t, &view.Round, slices.ContainsFunc(calls, asks))
		}
	}
}

// settled counts a batch by the message that closed it.
func (t *tally) settled(kind regie.SystemType, calls []regie.Call) {
	switch kind {
	case regie.SystemDataAdded:
		t.queries++
		t.retries, t.formatErrors = 0, 0
		if answered(calls) { // a person's word begins both anew (spec 3.1)
			t.queries = 0
		}
	case regie.SystemActionsExecuted:
		t.queries, t.formatErrors = 0, 0
		t.retries++
		if succeeded(calls) {
			t.retries = 0
		}
	case regie.SystemValidationCancelled, regie.SystemCommunicationCancelled, regie.SystemCompleteRefused:
		t.queries, t.formatErrors = 0, 0
		t.retries++
	case regie.SystemFormatError:
		t.formatErrors++
	}
}

// asks reports whether a call is a question: ask_user, or a plan to approve (decision 68).
func asks(c regie.Call) bool {
	var plan struct {
		Approve bool `json:"approve"`
	}
	return strings.HasSuffix(c.Tool, ".ask_user") ||
		strings.HasSuffix(c.Tool, ".update_plan") && json.Unmarshal([]byte(c.Arguments), &plan) == nil && plan.Approve
}

// final reports whether a reply ends the run, or in the JSON dialect is an answer, and brings
// nothing with it but perhaps the plan.
func final(calls []regie.Call, dialect regie.Dialect) bool {
	ends := dialect == regie.DialectJSON
	for i := range calls {
		complete := strings.HasSuffix(calls[i].Tool, ".complete")
		if !complete && (asks(calls[i]) || !strings.HasSuffix(calls[i].Tool, ".update_plan")) {
			return false
		}
		ends = ends || complete
	}
	return ends && len(calls) > 0
}

func answered(calls []regie.Call) bool {
	return slices.ContainsFunc(calls, func(c regie.Call) bool { return asks(c) && c.State == regie.CallSucceeded })
}

func succeeded(calls []regie.Call) bool {
	for i := range calls {
		if calls[i].Kind == regie.KindAction && calls[i].State != regie.CallSucceeded &&
			calls[i].NotRun != regie.NotRunDuplicateInBatch {
			return false
		}
	}
	return true
}

func exchangeOf(view *store.RoundView, number int) []regie.Call {
	for i := range view.Exchanges {
		if view.Exchanges[i].Number == number {
			return view.Exchanges[i].Calls
		}
	}
	return nil
}

// checkTally allows one retry above its limit, because the failing batch still closes before the
// round ends early or at a person's word. It also allows one reading reply more if that asked a
// person: the answer starts a new count.
func (c *check) checkTally(t *tally, round *regie.Round, asked bool) {
	l := round.Limits
	over := 0
	if asked {
		over = 1
	}
	if t.replies > l.Total || t.queries > l.Queries+over || t.retries > l.Retries+1 ||
		t.formatErrors > l.FormatErrors+1 {
		c.Fail(
			"round %d had %d replies, %d in a row that only read, %d failures in a row, %d unreadable ones; its limits are %+v (invariant 10)",
			round.Number, t.replies, t.queries, t.retries, t.formatErrors, l)
	}
	t.spent = t.queries > l.Queries || t.retries > l.Retries || t.formatErrors > l.FormatErrors
}

// checkCounters compares the stored counters with the limits. The retry that passes its limit is
// counted, and ends the round.
func (c *check) checkCounters(round *regie.Round) {
	n, l := round.Counters, round.Limits
	over := 0
	if round.State == regie.RoundEnded {
		over = 1
	}
	if n.Total > l.Total || n.Queries > l.Queries || n.Retries > l.Retries+over ||
		n.FormatErrors > l.FormatErrors+over {
		c.Fail("round %d has the counters %+v, the limits are %+v (invariant 10)", round.Number, n, l)
	}
}
