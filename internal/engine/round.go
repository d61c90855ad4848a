package engine

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/fault"
)

// loop is the round (spec 3.1): one step after another, each ending in a stored state.
func (r *run) loop(ctx context.Context) error {
	if r.round.Counters.Resumes > maxResumes {
		nowhere := regie.Say("the run was taken up several times without getting anywhere")
		if err := r.endEarly(regie.EndNoProgress, nowhere); regie.CodeOf(err) != regie.CodeStopRequested {
			return err
		}
		if err := r.readStop(); err != nil { // the word wins here too
			return err
		}
	}
	// a stopping word is obeyed below
	if err := r.tellMissing(); err != nil && regie.CodeOf(err) != regie.CodeStopRequested {
		return err
	}
	if err := r.openRound(ctx); err != nil && regie.CodeOf(err) != regie.CodeStopRequested {
		return err
	}
	for r.round.Phase != regie.PhaseEnd && !r.parked {
		if err := r.step(ctx); err != nil {
			if regie.CodeOf(err) != regie.CodeStopRequested {
				return err
			}
			// The store refused a step because a stopping word came first: the word wins (decision
			// 6).
			if err := r.readStop(); err != nil {
				return err
			}
		}
	}
	return nil
}

// giveBack stores what is done and gives the round back in good order: whoever takes it up knows
// that nothing of it is under way, so a call that has started and has no result did not run. What a
// dead process started, and nobody has looked into yet, is left as that process left it; the store
// knows it of a call that waits for its tool.
func (r *run) giveBack(by cut) error {
	if err := errors.Join(r.save(), r.letGo(by)); err != nil {
		return err
	}
	if r.resumed && slices.ContainsFunc(r.calls, func(c regie.Call) bool {
		return c.State == regie.CallStarted && !c.Recovered
	}) {
		return nil
	}
	return r.cfg.Store.Release(r.commit, r.fence)
}

// givesWay reports whether the round lets another one go first. It does so between two exchanges,
// where nothing of it is under way.
func (r *run) givesWay() bool {
	return r.round.Phase == regie.PhaseModel && len(r.unsaved) == 0 && r.cfg.Yields != nil && r.cfg.Yields(r.round.ID)
}

// giveWay gives the round back in good order: it is queued, and goes on by itself.
func (r *run) giveWay() error {
	if err := errors.Join(r.save(), r.letGo(byDeath)); err != nil {
		return err
	}
	if err := r.cfg.Store.Yield(r.commit, r.fence); err != nil {
		return err
	}
	fault.Point(fault.YieldAfter)
	r.parked = true
	return nil
}

func (r *run) step(ctx context.Context) error {
	r.beat()
	switch word, err := r.stopWord(ctx); {
	case errors.Is(err, errTimeOver):
		return r.endAtLimit(timeLimit(r.round.Limits))
	case err != nil:
		return err
	case word != "":
		return r.obey(word)
	case r.draining():
		return ErrShutdown
	case r.givesWay():
		return r.giveWay()
	}
	switch r.round.Phase {
	case regie.PhaseModel:
		if r.commanded() {
			return r.command(ctx)
		}
		return r.callModel(ctx)
	case regie.PhaseCalls:
		return r.runCalls(ctx)
	default:
		return regie.Errorf(regie.CodeCorrupt, "the round is in phase %q, which is none", string(r.round.Phase))
	}
}

// stopWord returns the strongest stopping word that is known here, or, where there is none, the
// cause of a cancelled context.
func (r *run) stopWord(ctx context.Context) (regie.StopRequest, error) {
	word, cause := r.round.Stop, error(nil)
	for _, signal := range []context.Context{ctx, r.work} {
		if signal.Err() == nil {
			continue
		}
		cause = context.Cause(signal)
		if stopped, ok := errors.AsType[Stopped](cause); ok && stopped.Word.Stronger(word) {
			word, r.quiet = stopped.Word, stopped.Quiet
		}
	}
	if word != "" {
		return word, nil
	}
	return "", cause
}

// readStop takes the word that the store knows already: it may be a stronger one than that which
// cancelled the context.
func (r *run) readStop() error {
	stored, err := r.cfg.Store.Round(r.commit, r.fence.RoundID)
	if err == nil {
		r.round.Stop = stored.Stop
	}
	return err
}

func (r *run) readPolicy() error {
	if len(r.round.Policy) > 0 {
		if err := json.Unmarshal(r.round.Policy, &r.policy); err != nil {
			return regie.Errorf(regie.CodeCorrupt, "the policy of round %s cannot be read: %v", r.round.ID, err)
		}
	}
	if r.automation() { // nobody is there to be asked, or to be told that the network is away (decisions 37 and 42)
		r.policy.Questions, r.policy.WaitNetwork = false, true
	}
	return nil
}

// automation reports whether the round runs unattended.
func (r *run) automation() bool { return r.session.Type == regie.SessionAutomation }
