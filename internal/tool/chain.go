package tool

import (
	"context"
	"slices"

	"github.com/regie-run/regie"
)

// State is what a call is going to make of something that previews are made from. Calls of one
// reply are put to a person together and run one after another: a preview that shows the world as
// the calls before it will have left it shows what really happens, and its preconditions hold when
// its turn comes (decision 20).
type State struct {
	Kind   regie.PreconditionKind
	Name   string // as in a Precondition
	Exists bool
	Data   []byte
}

// Hash is what a precondition about this state holds.
func (s State) Hash() regie.Hash {
	if !s.Exists {
		return regie.Hash{}
	}
	return regie.HashOf(s.Data)
}

// Foresee returns what a call is going to leave behind, on top of what its invocation assumes;
// nothing where its tool cannot say that, or would refuse the call.
func Foresee(ctx context.Context, t Tool, inv *Invocation) []State {
	foresee := SidesOf(t).Foresee
	if foresee == nil {
		return nil
	}
	a := runAttempt(ctx, min(previewTimeout, timeoutOf(t)), func(ctx context.Context) ([]State, error) {
		return foresee(ctx, inv)
	})
	if a.err != nil {
		return nil
	}
	return a.value
}

// Assumes returns what a preview is to take for the state of something, where a call before it
// changes that.
func (inv *Invocation) Assumes(kind regie.PreconditionKind, name string) (State, bool) {
	for _, s := range slices.Backward(inv.Assumed) {
		if s.Kind == kind && s.Name == name {
			return s, true
		}
	}
	return State{}, false
}

// warnChained tells the person which previews count on a call before them.
func warnChained(inv *Invocation, p *regie.Preview) {
	if slices.ContainsFunc(p.Preconditions, func(c regie.Precondition) bool {
		s, ok := inv.Assumes(c.Kind, c.Name)
		return ok && s.Hash() == c.Hash
	}) {
		p.Warnings = append(p.Warnings,
			regie.Say("shown as it will be after the calls before it in this reply: if those turn out otherwise, it is not run"))
	}
}
