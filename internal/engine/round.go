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
		return r.endEarly(ctx, regie.EndNoProgress, "the run was taken up several times without getting anywhere")
	}
	for r.round.Phase != regie.PhaseEnd && !r.parked {
		if err := r.step(ctx); err != nil {
			if regie.CodeOf(err) != regie.CodeStopRequested {
				return err
			}
			// The store refused a step because a stopping word came first: the word wins (decision 6).
			if err := r.awaitStop(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *run) step(ctx context.Context) error {
	if word, err := r.stopWord(ctx); err != nil || word != "" {
		if err != nil {
			return err
		}
		return r.obey(ctx, word)
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

// stopWord returns the stopping word that the round is to obey, or the cause of a cancelled context that is none.
func (r *run) stopWord(ctx context.Context) (regie.StopRequest, error) {
	if ctx.Err() == nil {
		return r.round.Stop, nil
	}
	var stopped Stopped
	if cause := context.Cause(ctx); !errors.As(cause, &stopped) {
		return "", cause
	}
	return stopped.Word, nil
}

// awaitStop waits until the holder of the round learns of the word that the store knows already.
func (r *run) awaitStop(ctx context.Context) error {
	<-ctx.Done()
	_, err := r.stopWord(ctx)
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
