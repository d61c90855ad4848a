package engine

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/regie-run/regie"
)

// loop is the round (spec 3.1): one step after another, each ending in a stored state.
func (r *run) loop(ctx context.Context) error {
	if r.round.Counters.Resumes > maxResumes {
		if err := r.endEarly(regie.EndNoProgress, "the run was taken up several times without getting anywhere"); regie.CodeOf(err) != regie.CodeStopRequested {
			return err
		}
		if err := r.readStop(); err != nil { // the word wins here too
			return err
		}
	}
	for r.round.Phase != regie.PhaseEnd && !r.parked {
		if err := r.step(ctx); err != nil {
			if regie.CodeOf(err) != regie.CodeStopRequested {
				return err
			}
			// The store refused a step because a stopping word came first: the word wins (decision 6).
			if err := r.readStop(); err != nil {
				return err
			}
		}
	}
	return nil
}

// handOver stores what is done and gives the round back in good order. Where that fails the round is as if its process had died.
func (r *run) handOver() {
	if r.save() == nil && r.letGo() == nil {
		_ = r.cfg.Store.Release(r.commit, r.fence)
	}
}

func (r *run) step(ctx context.Context) error {
	if word, err := r.stopWord(ctx); err != nil || word != "" {
		if err != nil {
			return err
		}
		return r.obey(word)
	}
	switch r.round.Phase {
	case regie.PhaseModel:
		return r.callModel(ctx)
	case regie.PhaseCalls:
		return r.runCalls(ctx)
	default:
		return regie.Errorf(regie.CodeCorrupt, "the round is in phase %q, which is none", string(r.round.Phase))
	}
}

// stopWord returns the strongest stopping word that is known here, or, where there is none, the cause of a cancelled context.
func (r *run) stopWord(ctx context.Context) (regie.StopRequest, error) {
	word, cause := r.round.Stop, error(nil)
	for _, signal := range []context.Context{ctx, r.work} {
		if signal.Err() == nil {
			continue
		}
		cause = context.Cause(signal)
		if stopped, ok := errors.AsType[Stopped](cause); ok && stopped.Word.Stronger(word) {
			word = stopped.Word
		}
	}
	if word != "" {
		return word, nil
	}
	return "", cause
}

// readStop takes the word that the store knows already: it may be a stronger one than that which cancelled the context.
func (r *run) readStop() error {
	stored, err := r.cfg.Store.Round(r.commit, r.fence.RoundID)
	if err == nil {
		r.round.Stop = stored.Stop
	}
	return err
}

func (r *run) readPolicy() error {
	if len(r.round.Policy) == 0 {
		return nil
	}
	if err := json.Unmarshal(r.round.Policy, &r.policy); err != nil {
		return regie.Errorf(regie.CodeCorrupt, "the policy of round %s cannot be read: %v", r.round.ID, err)
	}
	return nil
}
