package invariant

import (
	"encoding/json"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// checkCalls compares each call with the ledger.
func (c *check) checkCalls(view *store.RoundView) {
	byName, byKey := map[string]map[regie.ID]bool{}, map[regie.ID][]Effect{}
	for _, e := range c.Effects {
		if byName[e.Name] == nil {
			byName[e.Name] = map[regie.ID]bool{}
		}
		byName[e.Name][e.Key] = true
		byKey[e.Key] = append(byKey[e.Key], e)
	}
	ran := map[string]regie.ID{} // the actions that started, by the model's id and their signature
	for _, exchange := range view.Exchanges {
		if exchange.Reply != nil && len(exchange.Reply.CallIDs()) != len(exchange.Calls) {
			c.Fail("the reply of exchange %d names %d calls, %d are stored", exchange.Number,
				len(exchange.Reply.CallIDs()), len(exchange.Calls))
		}
		for i := range exchange.Calls {
			call := &exchange.Calls[i]
			if call.Origin == regie.OriginUser {
				c.Fail("call %s of exchange %d is a person's (decision 46)", call.ID, exchange.Number)
			}
			c.saw(strings.TrimSpace("call " + string(call.State) + " " + string(call.NotRun)))
			if !call.State.Settled() && view.Round.State == regie.RoundEnded {
				c.Fail("call %s is %s after the end (invariant 4)", call.ID, call.State)
			}
			c.checkDelivered(exchange.Reply, call, ran)
			if name, ok := effectName(call); ok && call.Kind == regie.KindAction {
				if c.Unique && len(byName[name]) > 1 {
					c.Fail("%s happened under %d keys (invariant 1)", name, len(byName[name]))
				}
				c.checkEffects(call, name, byKey[call.ID])
			}
		}
	}
}

// checkDelivered fails where an action started twice under one id of the model's with the same
// arguments (decision 9).
func (c *check) checkDelivered(reply *regie.Message, call *regie.Call, ran map[string]regie.ID) {
	id := call.ProviderCallID
	if reply != nil && reply.AI != nil {
		for i := range reply.AI.Parts {
			if part := &reply.AI.Parts[i]; part.CallID == call.ID && part.ProviderCallID != "" {
				id = part.ProviderCallID
			}
		}
	}
	if id == "" || call.Kind != regie.KindAction || call.StartedAt.IsZero() {
		return
	}
	key := id + " " + call.Signature.String()
	if before, again := ran[key]; again {
		c.Fail("the action %s was run again as %s (decision 9)", before, call.ID)
	}
	ran[key] = call.ID
}

// effectName returns the name of a call's effect: from the arguments that a person edited, else
// from the model's.
func effectName(call *regie.Call) (string, bool) {
	arguments := call.Executed
	if len(arguments) == 0 {
		arguments = json.RawMessage(call.Arguments)
	}
	var args named
	err := json.Unmarshal(arguments, &args)
	return args.Name, err == nil && args.Name != ""
}

func (c *check) checkEffects(call *regie.Call, name string, effects []Effect) {
	for _, e := range effects {
		if e.Name != name {
			c.Fail("%s happened where %s was to happen (invariant 3)", e.Name, name)
		}
	}
	switch {
	case call.Class != regie.ClassKeyed && len(effects) > 1:
		c.Fail("%s of class %s happened %d times (invariant 1)", name, call.Class, len(effects))
	case call.State == regie.CallSucceeded && len(effects) == 0:
		c.Fail("%s SUCCEEDED and never happened (invariant 5)", name)
	case (call.State == regie.CallNotRun || call.State == regie.CallFailed) && len(effects) > 0:
		c.Fail("%s is %s %s and happened (invariants 3, 5)", name, call.State, call.NotRun)
	case !call.State.Settled() && call.State != regie.CallStarted && len(effects) > 0:
		c.Fail("%s is %s and happened (invariant 2)", name, call.State)
	}
}

// named are the arguments of a call that has an effect in the ledger.
type named struct {
	Name string `json:"name"`
}
