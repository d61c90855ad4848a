package prompt

import (
	"fmt"
	"slices"

	"github.com/regie-run/regie"
)

// What a model sees again of calls that were over the limit of calls in one reply (spec 3.2): a
// model that makes ten thousand calls would else fill each prompt behind them.
const (
	maxShown          = maxBatch // calls of a reply, where more are over the limit
	maxShownArguments = 32 << 10 // bytes of the arguments of those over the limit
)

// shownCalls leaves out of a batch what is over the limit of calls and too much to be shown again:
// the call and its result alike, so that what is shown stays legal for each vendor. All of them
// stay in the store, with a result each, and the first one that is over the limit, which is always
// shown, says how many are left out.
func shownCalls(calls []regie.Call) []regie.Call {
	first, arguments := -1, 0
	var out []regie.Call // nil while nothing is left out
	for i := range calls {
		c := &calls[i]
		over := c.NotRun == regie.NotRunOverLimit
		if over {
			arguments += len(c.Arguments)
		}
		kept := i
		if out != nil {
			kept = len(out)
		}
		switch {
		case over && first >= 0 && (kept >= maxShown || arguments > maxShownArguments):
			if out == nil {
				out = slices.Clone(calls[:i])
			}
			continue
		case over && first < 0:
			first = kept
		}
		if out != nil {
			out = append(out, *c)
		}
	}
	if out == nil {
		return calls
	}
	problem := regie.CallError{Code: regie.Code(regie.NotRunOverLimit)}
	if e := out[first].Error; e != nil {
		problem = *e
	}
	problem.Message += fmt.Sprintf("; %d more calls of this reply were not executed either, and are not shown",
		len(calls)-len(out))
	out[first].Error = &problem
	return out
}

// isShown tells which calls of a batch are among those that are shown.
func isShown(all, shown []regie.Call) func(regie.ID) bool {
	if len(all) == len(shown) {
		return func(regie.ID) bool { return true }
	}
	stays := make(map[regie.ID]bool, len(shown))
	for i := range shown {
		stays[shown[i].ID] = true
	}
	return func(id regie.ID) bool { return stays[id] }
}
