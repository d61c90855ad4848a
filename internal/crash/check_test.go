//go:build faults

package crash

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/store/sqlite"
)

// outcomes are what a long run must have seen, else it shows less than it says.
var outcomes = []string{
	"call SUCCEEDED", "call FAILED", "call UNKNOWN", "call NOT_RUN DENIED", "call NOT_RUN EXPIRED", "call NOT_RUN SUPERSEDED", "call NOT_RUN INTERRUPTED",
	"round ANSWERED", "round DENIED", "round INTERRUPTED", "round STOPPED", "round waits",
	"decision acked", "decision refused", "decision repeated", "decision edited", "decision allow_session", "effect under a rule", "answer acked",
	"note admitted", "note withdrawn", "note waits", "note repeated", "word PAUSE", "word RESUME", "word INTERRUPT", "word STOP",
}

// checks are the findings on what is left of one session.
type checks struct {
	h       *harness
	p       plan
	session regie.ID
	store   *sqlite.Store
	events  []regie.Event
	views   []store.RoundView
	told    []entry
	effects []effect
	closed  bool // at some time
}

func (c *checks) fail(format string, args ...any) {
	c.h.world.violate("seed %d (%s): "+format, append([]any{c.p.seed, c.p.kind}, args...)...)
}

// check asserts the invariants of spec 12.1 on what is left of a session.
func (h *harness) check(session regie.ID, p plan) {
	c := &checks{h: h, p: p, session: session}
	if err := c.open(); err != nil {
		c.fail("what is left cannot be read: %v", err)
		return
	}
	defer c.store.Close()
	c.checkRounds()
	c.checkOrder()
	c.checkDecisions()
	c.checkNotes()
	c.checkKnown()
	for i := range c.views {
		c.checkCalls(&c.views[i])
		c.checkFiles(&c.views[i])
	}
	left, err := filepath.Glob(filepath.Join(h.dir, "work", fmt.Sprintf("s%d", p.seed), ".regie-*"))
	if err != nil || len(left) > 0 {
		c.fail("crashed writes left %v behind", left)
	}
}

// open reads the session, its log and the journal; on the way it asserts invariants 6, 7 and 17 on the log.
func (c *checks) open() (err error) {
	ctx := context.Background()
	if c.store, err = sqlite.Open(ctx, sqlite.Config{Dir: filepath.Join(c.h.dir, "data")}); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = c.store.Close()
		}
	}()
	report, err := c.store.Verify(ctx, c.session)
	if err != nil {
		return fmt.Errorf("the chain does not verify (invariants 6, 17): %w", err)
	}
	if report.Events < c.h.acked {
		c.fail("event %d was acknowledged, the log ends at %d (invariant 7)", c.h.acked, report.Events)
	}
	if c.events, err = c.store.Events(ctx, c.session, 0, int(report.Events)+1); err != nil {
		return err
	}
	for i := range c.events {
		if c.events[i].Seq != int64(i+1) {
			c.fail("row %d of the log has number %d (invariant 6)", i+1, c.events[i].Seq)
		}
	}
	rounds, err := c.store.Rounds(ctx, "", 10_000)
	if err != nil {
		return err
	}
	for _, round := range slices.Backward(rounds) { // oldest first
		if round.Session.ID == c.session {
			view, err := c.store.RoundView(ctx, round.Round.ID)
			if err != nil {
				return err
			}
			c.views = append(c.views, view)
		}
	}
	c.told, err = readJournal(c.h.journal(c.p))
	c.h.world.mu.Lock()
	defer c.h.world.mu.Unlock()
	for _, e := range c.h.world.effects {
		if strings.HasPrefix(e.Name, fmt.Sprintf("s%d/", c.p.seed)) {
			c.effects = append(c.effects, e)
		}
	}
	return err
}

// checkRounds asserts that every round has ended with a reason, or waits with an owner and a deadline (invariants 10 and 11), and that
// nothing is stuck.
func (c *checks) checkRounds() {
	if len(c.views) == 0 {
		c.fail("the run is not there")
	}
	for i := range c.views {
		round := &c.views[i].Round
		if round.Counters.Total > round.Limits.Total {
			c.fail("%d replies, the limit is %d (invariant 10)", round.Counters.Total, round.Limits.Total)
		}
		switch round.State {
		case regie.RoundEnded:
			c.h.seen["round "+string(round.End)]++
			if round.End == "" {
				c.fail("round %d ended without a reason (invariant 11)", round.Number)
			}
		case regie.RoundWaiting:
			c.h.seen["round waits"]++
			c.checkWaits(round)
		default:
			c.fail("round %d is %s, session %s, stop %q, and nothing goes on with it (invariant 11)", round.Number, round.State, c.views[i].Session.State, round.Stop)
		}
		if c.views[i].Session.State == regie.SessionPaused {
			c.fail("the session is still paused")
		}
	}
}

func (c *checks) checkWaits(round *regie.Round) {
	rows, err := c.h.world.db.QueryContext(context.Background(), "SELECT hex(owner_id), deadline FROM waits WHERE round_id = ? AND state = 'OPEN'", round.ID)
	if err != nil {
		c.fail("the waits cannot be read: %v", err)
		return
	}
	defer rows.Close()
	n := 0
	for ; rows.Next(); n++ {
		var owner string
		var deadline sql.NullInt64
		if err := rows.Scan(&owner, &deadline); err != nil || len(owner) != 32 || !deadline.Valid {
			c.fail("a wait of round %d has owner %q and deadline %v (invariant 11): %v", round.Number, owner, deadline, err)
		}
	}
	if err := rows.Err(); err != nil || n == 0 || c.p.kind != "left" {
		c.fail("round %d waits for %d things (invariant 11): %v", round.Number, n, err)
	}
}

// checkOrder reads the log in its order: after a stopping word nothing of the round starts, after a pause nothing until it is taken
// back (invariant 12); a call is started only once, and has one result in one message (invariant 4).
func (c *checks) checkOrder() {
	stopped, rounds := map[regie.ID]regie.StopRequest{}, map[regie.ID]regie.ID{}
	for i := range c.views {
		for _, exchange := range c.views[i].Exchanges {
			for k := range exchange.Calls {
				rounds[exchange.Calls[k].ID] = c.views[i].Round.ID
			}
		}
	}
	started, results := map[regie.ID]int{}, map[regie.ID]int{}
	for i := range c.events {
		var body struct {
			RoundID regie.ID           `json:"round_id"`
			CallID  regie.ID           `json:"call_id"`
			State   string             `json:"state"`
			Stop    regie.StopRequest  `json:"stop_request"`
			End     regie.RoundEnd     `json:"end_reason"`
			Session regie.SessionState `json:"session_state"`
			System  *struct {
				CallIDs []regie.ID `json:"call_ids"`
			} `json:"system"`
		}
		if err := json.Unmarshal(c.events[i].Body, &body); err != nil {
			c.fail("row %d of the log cannot be read: %v", i+1, err)
			continue
		}
		switch c.events[i].Type {
		case regie.EventRound:
			if body.Stop != "" {
				stopped[body.RoundID] = body.Stop
			}
			// The word wins over whatever comes later, also over an answer (decision 6).
			if word := stopped[body.RoundID]; body.State == string(regie.RoundEnded) && (word == regie.StopStop && body.End != regie.EndStopped ||
				word == regie.StopInterrupt && body.End != regie.EndInterrupted) {
				c.fail("a round ended %s after the word %s (decision 6)", body.End, word)
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
				c.fail("call %s was started twice", body.CallID)
			}
			if word := stopped[rounds[body.CallID]]; word != "" {
				c.fail("call %s was started after the word %s (invariant 12)", body.CallID, word)
			}
		case regie.EventToolResult:
			if results[body.CallID]++; results[body.CallID] > 1 {
				c.fail("call %s has two results in the log (invariant 4)", body.CallID)
			}
		}
	}
	c.checkStopped(stopped)
}

// checkStopped compares the ledger with the words that were acknowledged (invariant 12): what happens afterwards was begun before by the
// process that was alive then.
func (c *checks) checkStopped(stopped map[regie.ID]regie.StopRequest) {
	rounds, pids := map[regie.ID]regie.ID{}, map[regie.ID]int{}
	for i := range c.views {
		for _, exchange := range c.views[i].Exchanges {
			for k := range exchange.Calls {
				rounds[exchange.Calls[k].ID] = c.views[i].Round.ID
			}
		}
	}
	for _, e := range c.effects {
		if e.Class == regie.ClassRead {
			continue
		}
		if pid, again := pids[e.Key]; again && pid != e.PID {
			for _, said := range c.told {
				if said.Word != nil && said.Stage == acked && said.Word.Round == rounds[e.Key] && stopped[said.Word.Round] == said.Word.Word && e.At.After(said.At) {
					c.fail("%s happened again after the acknowledged word %s (invariant 12)", e.Name, said.Word.Word)
				}
			}
		}
		pids[e.Key] = e.PID
	}
	for _, said := range c.told {
		switch {
		case said.Word == nil || said.Stage == sent:
		case said.Stage == refused:
			c.fail("the word %s was refused with %s (decision 6)", said.Word.Word, said.Code)
		default:
			c.h.seen["word "+string(said.Word.Word)]++
			if said.Word.Word == regie.StopStop && !c.closed {
				c.fail("the word STOP was acknowledged and the session never closed (decision 6)")
			}
		}
	}
}

// checkKnown asserts that nothing happened that the store knows nothing of (invariant 2), and that no process acted any more once another
// one had (invariant 8).
func (c *checks) checkKnown() {
	var holder int
	former := map[int]bool{}
	for _, e := range c.effects {
		if e.PID != holder {
			former[holder], holder = true, e.PID
		}
		if former[e.PID] {
			c.fail("%s happened in process %d, of which another one had taken over (invariant 8)", e.Name, e.PID)
		}
	}
	known := map[regie.ID]bool{}
	for i := range c.views {
		for _, exchange := range c.views[i].Exchanges {
			for k := range exchange.Calls {
				known[exchange.Calls[k].ID] = true
			}
		}
	}
	for _, e := range c.effects {
		if !known[e.Key] && e.Class != regie.ClassRead {
			c.fail("%s happened and its call %s is not there (invariant 2)", e.Name, e.Key)
		}
	}
}

// checkCalls compares each call with the ledger.
func (c *checks) checkCalls(view *store.RoundView) {
	byName, byKey := map[string]map[regie.ID]bool{}, map[regie.ID][]effect{}
	for _, e := range c.effects {
		if byName[e.Name] == nil {
			byName[e.Name] = map[regie.ID]bool{}
		}
		byName[e.Name][e.Key] = true
		byKey[e.Key] = append(byKey[e.Key], e)
	}
	for _, exchange := range view.Exchanges {
		if exchange.Reply != nil && len(exchange.Reply.CallIDs()) != len(exchange.Calls) {
			c.fail("the reply of exchange %d names %d calls, %d are stored", exchange.Number, len(exchange.Reply.CallIDs()), len(exchange.Calls))
		}
		for i := range exchange.Calls {
			call := &exchange.Calls[i]
			c.h.seen[strings.TrimSpace("call "+string(call.State)+" "+string(call.NotRun))]++
			if !call.State.Settled() && view.Round.State == regie.RoundEnded {
				c.fail("call %s is %s after the end (invariant 4)", call.ID, call.State)
			}
			if name, ok := effectName(call); ok && call.Kind == regie.KindAction {
				if len(byName[name]) > 1 {
					c.fail("%s happened under %d keys (invariant 1)", name, len(byName[name]))
				}
				c.checkEffects(call, name, byKey[call.ID])
			}
		}
	}
}

// effectName is the effect that a call stands for: what the person made of it, else what the model proposed.
func effectName(call *regie.Call) (string, bool) {
	arguments := call.Executed
	if len(arguments) == 0 {
		arguments = json.RawMessage(call.Arguments)
	}
	var args effectArgs
	err := json.Unmarshal(arguments, &args)
	return args.Name, err == nil && args.Name != ""
}

func (c *checks) checkEffects(call *regie.Call, name string, effects []effect) {
	for _, e := range effects {
		if e.Name != name {
			c.fail("%s happened where %s was to happen (invariant 3)", e.Name, name)
		}
	}
	switch {
	case call.Class != regie.ClassKeyed && len(effects) > 1:
		c.fail("%s of class %s happened %d times (invariant 1)", name, call.Class, len(effects))
	case call.State == regie.CallSucceeded && len(effects) == 0:
		c.fail("%s SUCCEEDED and never happened (invariant 5)", name)
	case (call.State == regie.CallNotRun || call.State == regie.CallFailed) && len(effects) > 0:
		c.fail("%s is %s %s and happened (invariants 3, 5)", name, call.State, call.NotRun)
	case !call.State.Settled() && call.State != regie.CallStarted && len(effects) > 0:
		c.fail("%s is %s and happened (invariant 2)", name, call.State)
	}
}

// checkFiles compares the files with the calls that wrote them.
func (c *checks) checkFiles(view *store.RoundView) {
	for _, exchange := range view.Exchanges {
		for i := range exchange.Calls {
			call := &exchange.Calls[i]
			if call.Tool != "files.write_file" {
				continue
			}
			arguments := []byte(call.Arguments)
			if len(call.Executed) > 0 {
				arguments = call.Executed
			}
			var args struct{ Path, Content string }
			if err := json.Unmarshal(arguments, &args); err != nil {
				c.fail("the arguments %s cannot be read: %v", arguments, err)
				continue
			}
			file, _ := os.ReadFile(filepath.Join(c.h.dir, "work", args.Path)) // a missing one holds nothing
			count := strings.Count("\n"+string(file), "\n"+args.Content)
			if call.State == regie.CallSucceeded && count != 1 || call.State != regie.CallUnknown && call.State != regie.CallSucceeded && count != 0 || count > 1 {
				c.fail("the write of %q is %s and stands %d times in the file (invariant 1)", args.Content, call.State, count)
			}
		}
	}
}
