package chat

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/plain"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/text"
)

// Calls are the calls of a chat that can be unfolded, each by its number. The zero value is ready.
type Calls struct {
	done  []doneCall
	known map[regie.ID]int // numbers in done, from 1
}

// doneCall is a call that can be unfolded.
type doneCall struct {
	id, round regie.ID
	whole     *regie.Call // of a fork's copies, which no round of its own has
}

// Number gives a call of a round its number, once.
func (c *Calls) Number(call, round regie.ID) {
	if c.known[call] > 0 {
		return
	}
	if c.known == nil {
		c.known = map[regie.ID]int{}
	}
	c.done = append(c.done, doneCall{id: call, round: round})
	c.known[call] = len(c.done)
}

// Past numbers the calls of a round that is taken up, those that have their results.
func (c *Calls) Past(view *store.RoundView) {
	for call := range callsOf(view) {
		if call.State.Settled() {
			c.Number(call.ID, view.Round.ID)
		}
	}
}

// Copies numbers the calls that a chat which is taken up has of what it was forked from.
func (c *Calls) Copies(past *Past) {
	for _, one := range slices.Backward(past.copies()) {
		if one.Superseded {
			continue
		}
		calls := asTheyCame(one.Calls)
		for i := range calls {
			if calls[i].State.Settled() {
				c.Number(calls[i].ID, calls[i].RoundID)
				c.done[c.known[calls[i].ID]-1].whole = &calls[i]
			}
		}
	}
}

// callsOf are the calls of a round, those that its messages made by naming something and those of
// the model.
func callsOf(view *store.RoundView) iter.Seq[*regie.Call] {
	return func(yield func(*regie.Call) bool) {
		lists := make([][]regie.Call, 0, len(view.Enrichments)+len(view.Exchanges))
		for i := range view.Enrichments {
			lists = append(lists, asTheyCame(view.Enrichments[i].Calls))
		}
		for i := range view.Exchanges {
			lists = append(lists, asTheyCame(view.Exchanges[i].Calls))
		}
		for _, list := range lists {
			for i := range list {
				if !yield(&list[i]) {
					return
				}
			}
		}
	}
}

// asTheyCame are the calls of a batch in the order in which they had their results, which is that
// in which who was there saw them; those without one last.
func asTheyCame(calls []regie.Call) []regie.Call {
	calls = slices.Clone(calls)
	slices.SortStableFunc(calls, func(a, b regie.Call) int {
		if settled := a.State.Settled(); settled != b.State.Settled() {
			if settled {
				return -1
			}
			return 1
		}
		return a.SettledAt.Compare(b.SettledAt)
	})
	return calls
}

// Mark is what stands behind a call's result: the number under which it is unfolded.
func (c *Calls) Mark(call regie.ID) string {
	if c.known[call] == 0 {
		return ""
	}
	return fmt.Sprintf("  [%d]", c.known[call])
}

// Forget forgets all calls.
func (c *Calls) Forget() {
	c.done = nil
	clear(c.known)
}

// Find is the number of the call that a person means: a number, or none for the newest one. It
// returns CodeNotFound where there is no such call.
func (c *Calls) Find(word string) (number int, err error) {
	n := len(c.done)
	if word != "" {
		if n, err = strconv.Atoi(strings.Trim(word, "[]")); err != nil {
			n = 0
		}
	}
	if n < 1 || n > len(c.done) {
		return 0, regie.Errorf(regie.CodeNotFound, "there is no such call: the numbers stand behind the calls")
	}
	return n, nil
}

// Read returns how to read a call by its number, as Find has it: beside what goes on.
func (c *Calls) Read(number int) func(ctx context.Context, control Control) (*regie.Call, error) {
	one := c.done[number-1]
	return func(ctx context.Context, control Control) (*regie.Call, error) {
		if one.whole != nil {
			return one.whole, nil
		}
		view, err := control.Get(ctx, one.round)
		if err != nil {
			return nil, err
		}
		for call := range callsOf(&view) {
			if call.ID == one.id {
				return call, nil
			}
		}
		return nil, regie.Errorf(regie.CodeNotFound, "there is no such call: the numbers stand behind the calls")
	}
}

// maxShown is how many lines of a result are written when it is unfolded.
const maxShown = 400

// Unfold writes what a call was asked and what came of it.
func Unfold(t *text.Printer, call *regie.Call, number int, note func(line string)) {
	excerpt := func(text string) {
		for _, line := range Ends(t, text, maxShown, 0) {
			note(line)
		}
	}
	note(fmt.Sprintf("→ [%d] %s", number, plain.Line(call.Tool)))
	arguments := Pretty([]byte(call.Arguments))
	if len(call.Executed) > 0 {
		arguments = Pretty(call.Executed)
	}
	excerpt(string(arguments))
	outcome := call.Result
	if call.Error != nil {
		outcome = string(call.Error.Code) + ": " + call.Error.Message
	}
	if call.NotRun != "" {
		outcome = string(call.NotRun) + " " + outcome
	}
	note("  " + t.T("result") + ": " + string(call.State))
	excerpt(outcome)
}
