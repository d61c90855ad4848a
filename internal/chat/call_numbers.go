package chat

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/sanitize"
	"github.com/regie-run/regie/internal/store"
)

// Calls are the calls of a chat that can be unfolded, each by its number. The zero value is ready.
type Calls struct{ done []doneCall }

// doneCall is a call that can be unfolded.
type doneCall struct{ id, round regie.ID }

// numberOf returns a call's number, from 1; 0 where it has none.
func (c *Calls) numberOf(call regie.ID) int {
	return 1 + slices.IndexFunc(c.done, func(d doneCall) bool { return d.id == call })
}

// Number gives a call of a round its number, once.
func (c *Calls) Number(call, round regie.ID) {
	if c.numberOf(call) == 0 && !round.IsZero() {
		c.done = append(c.done, doneCall{call, round})
	}
}

// Mark returns the number that unfolds a call's result; it follows the result line.
func (c *Calls) Mark(call regie.ID) string {
	n := c.numberOf(call)
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("  [%d]", n)
}

// findCall returns the call that a person means, with its number: by that, by the end of its id, or
// without a word the newest one. It returns CodeNotFound where there is no such call.
func (c *Calls) findCall(word string) (one *doneCall, n int, err error) {
	if n = len(c.done); word != "" {
		n, _ = strconv.Atoi(strings.Trim(word, "[]"))
	}
	if len(word) >= shortDigits {
		n = 1 + slices.IndexFunc(c.done, func(d doneCall) bool { return hasPart(d.id, strings.ToLower(word)) })
	}
	if n < 1 || n > len(c.done) {
		return nil, 0, errNoCall()
	}
	return &c.done[n-1], n, nil
}

// readCall reads the current state of the call.
func (c *doneCall) readCall(ctx context.Context, control Control) (*regie.Call, error) {
	view, err := control.Get(ctx, c.round)
	if err != nil {
		return nil, err
	}
	calls := CallsOf(&view)
	if at := slices.IndexFunc(calls, func(call regie.Call) bool { return call.ID == c.id }); at >= 0 {
		return &calls[at], nil
	}
	return nil, errNoCall()
}

// CallsOf are the calls of a round.
func CallsOf(view *store.RoundView) (calls []regie.Call) {
	for i := range view.Enrichments {
		calls = append(calls, view.Enrichments[i].Calls...)
	}
	for i := range view.Exchanges {
		calls = append(calls, view.Exchanges[i].Calls...)
	}
	return calls
}

func errNoCall() error {
	return regie.Errorf(regie.CodeNotFound, "there is no such call: the numbers are after the calls")
}

// maxShown is how many lines of a result are written when it is unfolded.
const maxShown = 400

// showCall writes the arguments and the result of a call.
func (c *Conversation) showCall(call *regie.Call, number int) {
	c.Note(fmt.Sprintf("→ [%d] %s", number, sanitize.Line(call.Tool)))
	arguments := []byte(call.Arguments)
	if len(call.Executed) > 0 {
		arguments = call.Executed
	}
	c.Stream.writeNotes(firstAndLast(c.Text, string(Pretty(arguments)), maxShown, 0))
	outcome := call.Result
	if call.Error != nil {
		outcome = string(call.Error.Code) + ": " + call.Error.Message
	}
	c.Note("  " + c.Text.T("result") + ": " + string(call.State) + " " + string(call.NotRun))
	c.Stream.writeNotes(firstAndLast(c.Text, outcome, maxShown, 0))
}
