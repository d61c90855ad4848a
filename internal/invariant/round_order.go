package invariant

import (
	"context"
	"database/sql"
	"encoding/json"

	"github.com/regie-run/regie"
)

// checkRounds asserts that every round has ended with a reason, or waits with an owner and a
// deadline (invariant 11), and that nothing is stuck.
func (c *check) checkRounds() {
	if len(c.views) == 0 {
		c.Fail("the run is not there")
	}
	for i := range c.views {
		round := &c.views[i].Round
		for k := range c.views[i].Exchanges {
			c.saw("exchange " + string(c.views[i].Exchanges[k].Reason))
		}
		if i == len(c.views)-1 && c.views[i].Session.Type == regie.SessionAutomation &&
			round.State == regie.RoundEnded {
			c.checkAutomation(&c.views[i].Session, round)
		}
		switch round.State {
		case regie.RoundEnded:
			c.saw("round " + string(round.End))
			if round.End == "" {
				c.Fail("round %d ended without a reason (invariant 11)", round.Number)
			}
		case regie.RoundWaiting:
			c.saw("round waits")
			c.checkWaits(round)
		default:
			c.Fail("round %d is %s, session %s, stop %q, and nothing goes on with it (invariant 11)", round.Number,
				round.State, c.views[i].Session.State, round.Stop)
		}
		if c.views[i].Session.State == regie.SessionPaused {
			c.Fail("the session is still paused")
		}
	}
}

// closes are the reasons with which the end of an automation's last round closes its session
// (decision 44).
var closes = map[regie.RoundEnd]regie.SessionEnd{
	regie.EndCompleted: regie.SessionCompleted, regie.EndStopped: regie.SessionCancelled,
	regie.EndAnswered: regie.SessionTimeout, regie.EndLimit: regie.SessionTimeout,
	regie.EndEarlyStop: regie.SessionTimeout, regie.EndWatchdog: regie.SessionTimeout,
	regie.EndProviderError: regie.SessionError, regie.EndNoProgress: regie.SessionError,
	regie.EndDenied: regie.SessionError,
}

// checkAutomation asserts that an automation is closed with the reason of its end. After an
// interrupt it stays usable (decision 6) until a person stops it.
func (c *check) checkAutomation(session *regie.Session, round *regie.Round) {
	c.saw("session " + string(session.EndReason))
	right := session.State == regie.SessionClosed && session.EndReason == closes[round.End]
	if round.End == regie.EndInterrupted {
		right = session.State == regie.SessionIdle || session.State == regie.SessionClosed &&
			session.EndReason == regie.SessionCancelled
	}
	if !right {
		c.Fail("an automation's last round ended %s and its session is %s %s (decision 44)", round.End,
			session.State, session.EndReason)
	}
}

func (c *check) checkWaits(round *regie.Round) {
	rows, err := c.DB.QueryContext(context.Background(),
		"SELECT hex(owner_id), deadline FROM waits WHERE round_id = ? AND state = 'OPEN'", round.ID)
	if err != nil {
		c.Fail("the waits cannot be read: %v", err)
		return
	}
	defer rows.Close()
	n := 0
	for ; rows.Next(); n++ {
		var owner string
		var deadline sql.NullInt64
		if err := rows.Scan(&owner, &deadline); err != nil || len(owner) != 32 || !deadline.Valid {
			c.Fail("a wait of round %d has owner %q and deadline %v (invariant 11): %v",
				round.Number, owner, deadline, err)
		}
	}
	if err := rows.Err(); err != nil || n == 0 || !c.MayWait {
		c.Fail("round %d waits for %d things (invariant 11): %v", round.Number, n, err)
	}
}

// checkOrder reads the log in order. After a stop request nothing of the round starts; after a
// pause nothing starts until it ends (invariant 12). A call starts only once, and has one result in
// one message (invariant 4).
func (c *check) checkOrder() {
	stopped, rounds := map[regie.ID]regie.StopRequest{}, c.rounds()
	started, results := map[regie.ID]int{}, map[regie.ID]regie.CallState{}
	for i := range c.events {
		var body row
		if err := json.Unmarshal(c.events[i].Body, &body); err != nil {
			c.Fail("row %d of the log cannot be read: %v", i+1, err)
			continue
		}
		switch c.events[i].Type {
		case regie.EventRound:
			if body.Stop != "" {
				stopped[body.RoundID] = body.Stop
			}
			// The stop wins over everything after it, also over an answer (decision 6).
			if word := stopped[body.RoundID]; body.State == string(regie.RoundEnded) &&
				(word == regie.StopStop && body.End != regie.EndStopped ||
					word == regie.StopInterrupt && body.End != regie.EndInterrupted) {
				c.Fail("a round ended %s after the word %s (decision 6)", body.End, word)
			}
		case regie.EventSessionState:
			c.closed = c.closed || body.State == string(regie.SessionClosed)
			for id, word := range stopped {
				if word == regie.StopPause && body.State != string(regie.SessionPaused) {
					delete(stopped, id)
				}
			}
		case regie.EventToolCall:
			if body.State != string(regie.CallStarted) {
				continue
			}
			if started[body.CallID]++; started[body.CallID] > 1 {
				c.Fail("call %s was started twice", body.CallID)
			}
			if word := stopped[rounds[body.CallID]]; word != "" {
				c.Fail("call %s was started after the word %s (invariant 12)", body.CallID, word)
			}
		case regie.EventToolResult:
			c.checkResult(&body, results)
		}
	}
	c.checkStopped(stopped)
}

// checkStopped compares the ledger with the words that were acknowledged (invariant 12): what
// happens afterwards was begun before by the process that was alive then.
func (c *check) checkStopped(stopped map[regie.ID]regie.StopRequest) {
	rounds, pids := c.rounds(), map[regie.ID]int{}
	for _, e := range c.Effects {
		if e.Class == regie.ClassRead {
			continue
		}
		if pid, again := pids[e.Key]; again && pid != e.Holder {
			for _, said := range c.Told {
				if said.Word != nil && said.Stage == Acked && said.Word.Round == rounds[e.Key] &&
					stopped[said.Word.Round] == said.Word.Word && e.At.After(said.At) {
					c.Fail("%s happened again after the acknowledged word %s (invariant 12)", e.Name, said.Word.Word)
				}
			}
		}
		pids[e.Key] = e.Holder
	}
	for _, said := range c.Told {
		switch {
		case said.Word == nil || said.Stage == Sent:
		case said.Stage == Refused:
			c.Fail("the word %s was refused with %s, %s (decision 6)", said.Word.Word, said.Code, said.Why)
		default:
			c.saw("word " + string(said.Word.Word))
			if said.Word.Word == regie.StopStop && !c.closed {
				c.Fail("the word STOP was acknowledged and the session never closed (decision 6)")
			}
		}
	}
}

// checkKnown asserts that every effect except reads belongs to a stored call (invariant 2), and
// that a process acts no more after another one took over (invariant 8).
func (c *check) checkKnown() {
	var holder int
	former := map[int]bool{}
	for _, e := range c.Effects {
		if e.Holder != holder {
			former[holder], holder = true, e.Holder
		}
		if former[e.Holder] && !c.Shared {
			c.Fail("%s happened in process %d, of which another one had taken over (invariant 8)", e.Name, e.Holder)
		}
	}
	known := c.rounds()
	for _, e := range c.Effects {
		if known[e.Key].IsZero() && e.Class != regie.ClassRead {
			c.Fail("%s happened and its call %s is not there (invariant 2)", e.Name, e.Key)
		}
	}
}

// row holds the fields that the checks read of a log row.
type row struct {
	RoundID  regie.ID           `json:"round_id"`
	CallID   regie.ID           `json:"call_id"`
	State    string             `json:"state"`
	Stop     regie.StopRequest  `json:"stop_request"`
	End      regie.RoundEnd     `json:"end_reason"`
	Session  regie.SessionState `json:"session_state"`
	Resolved regie.ResolvedAs   `json:"resolved_as"`
}

// checkResult asserts that a call gets one result (invariant 4), and that only a person's decision
// changes UNKNOWN (invariant 5): probes report before the result.
func (c *check) checkResult(body *row, results map[regie.ID]regie.CallState) {
	before, again := results[body.CallID]
	switch {
	case again && before != regie.CallUnknown:
		c.Fail("call %s has two results in the log (invariant 4)", body.CallID)
	case again && body.Resolved == "":
		c.Fail("call %s was UNKNOWN and is %s in the log, and nobody said so (invariant 5)", body.CallID, body.State)
	case again:
		c.saw("call resolved")
	}
	results[body.CallID] = regie.CallState(body.State)
}

// rounds are those of the session's calls.
func (c *check) rounds() map[regie.ID]regie.ID {
	out := map[regie.ID]regie.ID{}
	for i := range c.views {
		for _, exchange := range c.views[i].Exchanges {
			for k := range exchange.Calls {
				out[exchange.Calls[k].ID] = c.views[i].Round.ID
			}
		}
	}
	return out
}

// calls are the session's, by id.
func (c *check) calls() map[regie.ID]*regie.Call {
	out := map[regie.ID]*regie.Call{}
	for i := range c.views {
		for _, exchange := range c.views[i].Exchanges {
			for k := range exchange.Calls {
				out[exchange.Calls[k].ID] = &exchange.Calls[k]
			}
		}
	}
	return out
}
