package engine

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/dialect"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/tool"
)

// roundState is a round as it is stored, with the contexts and tools of its holder. All parts of a
// run share one; each step changes the store first and this after it.
type roundState struct {
	*Engine
	fence     store.Fence
	session   regie.Session
	workspace regie.Workspace
	round     regie.Round
	exchange  regie.Exchange
	reply     *regie.Message            // of the current exchange
	reviews   map[regie.ID]regie.Review // by call: the latest
	policy    approval.Policy
	json      *dialect.JSON // of a round in that dialect
	files     FileSettings  // of the workspace, as they were when the rules were read
	// tools stay the same as long as the round is held here (decision 14); each call is compared
	// with the definition that it was judged under.
	tools *tool.Registry
	// mentionable are the tools without the agent's scopes, for what a person mentions.
	mentionable *tool.Registry
	// commit is the context of store transitions: a stop does not cut a step that is being stored.
	commit context.Context
	// work is the context of actions and of probes: only an interrupt or the end of the process
	// cuts it.
	work context.Context
	// resumed says that another process may have sent the open model call, or started the started
	// call.
	resumed bool
	used    int64 // tokens of the round, with those of the reply that is being stored
	parked  bool  // released without having ended
	next    regie.ID
	pulse   Pulse
	quiet   time.Duration // how long nothing had happened, where the watchdog ends the round
}

func (s *roundState) readPolicy() error {
	if len(s.round.Policy) > 0 {
		if err := json.Unmarshal(s.round.Policy, &s.policy); err != nil {
			return regie.Errorf(regie.CodeCorrupt, "the policy of round %s cannot be read: %v", s.round.ID, err)
		}
	}
	if s.isAutomation() { // nobody is there to be asked, or to be told that the network is away (decisions 37 and 42)
		s.policy.Questions, s.policy.WaitNetwork = false, true
	}
	return nil
}

// isAutomation reports whether the round runs unattended.
func (s *roundState) isAutomation() bool { return s.session.Type == regie.SessionAutomation }

// isCommand reports whether the present exchange is a person's own command, for which no model is
// asked (spec 10.1).
func (s *roundState) isCommand() bool { return s.exchange.Reason == regie.ExchangeCommand }

// isClientCall reports whether a call is one of a client's tool: it is not run here.
func (s *roundState) isClientCall(call *regie.Call) bool { return call.Origin == regie.OriginClient }

// roleOf returns the role of a call: that of its tool, or a question's where the call asks.
func (s *roundState) roleOf(call *regie.Call) regie.ToolRole {
	target, _, ok := s.tools.Lookup(call.Tool)
	if !ok {
		return ""
	}
	if asker, ok := target.(tool.MayAsk); ok && asker.Asks(s.tools.Executable(call.Tool, call.Arguments)) {
		return regie.RoleQuestion
	}
	return target.Definition().Role
}

// asksPeople reports whether a call that needs an approval waits for one in this run.
func (s *roundState) asksPeople() bool {
	return s.policy.OnApproval == "" || s.policy.OnApproval == approval.Park
}

// policyFails reports whether the run is to end at the first call that would need an approval: when
// it is proposed, and when that is found only as it is about to start.
func (s *roundState) policyFails(calls []regie.Call) bool {
	return s.policy.OnApproval == approval.FailRun && anyCall(calls, func(c *regie.Call) bool {
		return c.NotRun == regie.NotRunDenied && c.Error.Code == codeApprovalNeeded
	})
}

// isOpenReply reports whether a message is the reply with the open batch: no prompt includes it
// (decision 4).
func (s *roundState) isOpenReply(m *regie.Message) bool {
	return s.round.Phase == regie.PhaseCalls && s.reply != nil && m.ID == s.reply.ID
}

// stopWord returns the strongest stop request known here, or without one the cause of a cancelled
// context.
func (s *roundState) stopWord(ctx context.Context) (regie.StopRequest, error) {
	word, cause := s.round.Stop, error(nil)
	for _, signal := range []context.Context{ctx, s.work} {
		if signal.Err() == nil {
			continue
		}
		cause = context.Cause(signal)
		if stopped, ok := errors.AsType[Stopped](cause); ok && stopped.Word.Stronger(word) {
			word, s.quiet = stopped.Word, stopped.Quiet
		}
	}
	if word != "" {
		return word, nil
	}
	return "", cause
}

// readStop reads the stop request from the store: it may be stronger than the one that cancelled
// the context.
func (s *roundState) readStop() error {
	stored, err := s.cfg.Store.Round(s.commit, s.fence.RoundID)
	if err == nil {
		s.round.Stop = stored.Stop
	}
	return err
}

// stopReason returns why a round ends by a word.
func (s *roundState) stopReason(word regie.StopRequest) regie.Sentence {
	if word != regie.StopWatchdog {
		return byPerson
	}
	return regie.Say("nothing happened in it for %s", s.quiet.Round(time.Second).String())
}

// endRound advances to the end of the round.
func (s *roundState) endRound(counters regie.Counters, reason regie.RoundEnd, note regie.Sentence) store.Advance {
	end := &store.End{Reason: reason, Note: note, Close: sessionEnd(s.session.Type, reason)}
	// unattended (spec 5.1, 5.3)
	if (reason == regie.EndWatchdog || reason == regie.EndNoProgress) && s.isAutomation() {
		end.Notice = &regie.Notice{
			RoundID: s.round.ID, Kind: regie.NoticeFailed, Since: time.Now().UTC(),
			Text: note.String(), Said: []regie.Sentence{note},
		}
	}
	return store.Advance{Phase: regie.PhaseEnd, Counters: counters, End: end}
}

// quietly ends a round without a note.
var quietly regie.Sentence

// completedEnd returns how a round ends by the model's own word. To say that the work is done is a
// matter of automations (spec 2.2); in a chat it is the answer (decision 51).
func (s *roundState) completedEnd() regie.RoundEnd {
	if s.isAutomation() {
		return regie.EndCompleted
	}
	return regie.EndAnswered
}

// waitFor waits before the next try, and reports whether it was left alone.
func (s *roundState) waitFor(ctx context.Context, d time.Duration) bool {
	s.reportBusy(d)
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-s.drained:
		return false
	case <-timer.C:
		return true
	}
}
