package engine

import (
	"maps"

	"github.com/regie-run/regie"
)

// wireID returns the id that the model gave a call, empty without one: the row has another where it
// repeats (decision 8).
func wireID(message *regie.Message, call *regie.Call) string {
	if message.AI != nil {
		for i := range message.AI.Parts {
			if part := &message.AI.Parts[i]; part.CallID == call.ID && part.ProviderCallID != "" {
				return part.ProviderCallID
			}
		}
	}
	if reissued(call) {
		return ""
	}
	return call.ProviderCallID
}

// forgetUndone forgets the ids of the round that a person took back: its actions may run again.
func (g *guard) forgetUndone(undone *regie.Undone) {
	maps.DeleteFunc(g.byID, func(_ callKey, entry *remembered) bool {
		return undone == nil || entry.call.RoundID == undone.RoundID
	})
}

// reissued reports whether a call's provider id was made here because the model's own repeated, or
// was none (decision 8). A copy in a fork has the provider id of the call that was made.
func reissued(call *regie.Call) bool {
	return call.ProviderCallID == "call_"+call.ID.String() || !call.CopyOf.IsZero() &&
		call.ProviderCallID == "call_"+call.CopyOf.String()
}
