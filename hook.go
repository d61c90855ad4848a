package regie

import "encoding/json"

// HookPoint is a moment at which the commands run that a person has set up as hooks (spec 13).
type HookPoint string

// The points.
const (
	HookBeforeTool  HookPoint = "before_tool"  // a call is stored, and has not its intent yet
	HookAfterTool   HookPoint = "after_tool"   // its result is stored
	HookBeforeRound HookPoint = "before_round" // before the round's first model call
	HookAfterRound  HookPoint = "after_round"  // its end is stored
)

// HookPoints are all of them, in the order of a round.
func HookPoints() []HookPoint {
	return []HookPoint{HookBeforeRound, HookBeforeTool, HookAfterTool, HookAfterRound}
}

// Before reports whether hooks of the point can refuse.
func (p HookPoint) Before() bool { return p == HookBeforeTool || p == HookBeforeRound }

// HookInput is the input of a hook, as JSON on its standard input.
type HookInput struct {
	On          HookPoint   `json:"event"`
	SessionID   ID          `json:"session_id"`
	SessionType SessionType `json:"session_type"`
	RoundID     ID          `json:"round_id"`
	WorkspaceID ID          `json:"workspace_id"`
	Workspace   string      `json:"workspace"` // its directory
	Agent       string      `json:"agent"`
	Provider    string      `json:"provider,omitempty"`
	Model       string      `json:"model,omitempty"`
	Call        *HookCall   `json:"call,omitempty"`
	// End and Note say how a round has ended.
	End  RoundEnd `json:"end_reason,omitempty"`
	Note string   `json:"end_note,omitempty"`
}

// HookCall is the call in a hook's input.
type HookCall struct {
	ID        ID              `json:"id"`
	Tool      string          `json:"tool"`
	Kind      CallKind        `json:"kind"`
	Class     EffectClass     `json:"class"`
	Arguments json.RawMessage `json:"arguments"` // those that it runs with
	// State, Result and Error are those of a call that has run. A long result is cut, and Truncated
	// says so.
	State     CallState  `json:"state,omitempty"`
	Result    string     `json:"result,omitempty"`
	Truncated bool       `json:"result_truncated,omitempty"`
	Error     *CallError `json:"error,omitempty"`
}

// HookRun is what came of one hook, for the audit.
type HookRun struct {
	On     HookPoint `json:"event"`
	Hook   string    `json:"hook"` // where it is declared
	CallID ID        `json:"call_id,omitzero"`
	Tool   string    `json:"tool,omitempty"`
	// Verdict is MUST_ASK or FORBID where it objects, else empty: nothing that a hook says makes a
	// verdict milder.
	Verdict Verdict `json:"verdict,omitempty"`
	// Reason is what it says of that, in its own words.
	Reason string `json:"reason,omitempty"`
	// Failure is why it could not be heard: it was not found, crashed, took too long, or said
	// nothing that can be read.
	Failure    Sentence `json:"failure,omitzero"`
	DurationUS int64    `json:"duration_us"`
}

// Objection is what a hook's objection says to people and to the model.
func (h *HookRun) Objection() Sentence {
	switch {
	case !h.Failure.IsZero() && h.Verdict == VerdictForbid:
		return SayOf("the hook %s failed, so the call is blocked: %s", Verbatim(h.Hook), h.Failure)
	case !h.Failure.IsZero():
		return SayOf("the hook %s failed: %s", Verbatim(h.Hook), h.Failure)
	case h.Reason == "" && h.Verdict == VerdictForbid:
		return Say("the hook %s forbids it", h.Hook)
	case h.Reason == "":
		return Say("the hook %s requires an approval", h.Hook)
	case h.Verdict == VerdictForbid:
		return Say("the hook %s forbids it: %s", h.Hook, h.Reason)
	default:
		return Say("the hook %s requires an approval: %s", h.Hook, h.Reason)
	}
}

// Strictest returns the strictest objection of hooks, the first of several; nil where none objects.
func Strictest(runs []HookRun) (worst *HookRun) {
	for i := range runs {
		if runs[i].Verdict != "" && (worst == nil || runs[i].Verdict.Stricter(worst.Verdict)) {
			worst = &runs[i]
		}
	}
	return worst
}
