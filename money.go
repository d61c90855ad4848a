package regie

import (
	"cmp"
	"strconv"
	"strings"
)

// Money is what a model call reserves and costs, in millionths of a US dollar (decision 29).
type Money struct {
	Reserved int64 `json:"reserved_microusd"`
	// Cost is the booked price; it means nothing unless Known: an unknown price is shown as
	// unknown, never as 0 (spec 6.3).
	Cost    int64 `json:"cost_microusd"`
	Overrun int64 `json:"overrun_microusd,omitempty"` // what the usage cost above the reservation
	Known   bool  `json:"cost_known"`
	// Estimated says that Cost is an estimate: the call was cut, and its vendor never said what it
	// used.
	Estimated bool `json:"cost_estimated,omitempty"`
}

// Booked is the amount of a finished call under a cap: its cost, or the reserved amount where the
// cost is unknown.
func (m Money) Booked() int64 {
	if m.Known {
		return m.Cost
	}
	return m.Reserved
}

// Spending is what model calls have cost together, in millionths of a US dollar.
type Spending struct {
	// Cost is the sum of the known costs. Known says that it is complete.
	Cost  int64 `json:"cost_microusd"`
	Known bool  `json:"cost_known"`
	// Due is the amount reserved for calls with an unknown cost: it may be due in addition to Cost.
	Due int64 `json:"possibly_due_microusd,omitempty"`
	// Estimated is the part of Cost that is estimated: that of calls which were cut.
	Estimated int64 `json:"estimated_microusd,omitempty"`
}

// Caps bound what model calls may cost (spec 3.2, 13), in millionths of a US dollar; a zero field
// bounds nothing.
type Caps struct {
	Round   int64 `json:"round_microusd,omitempty"`
	Session int64 `json:"session_microusd,omitempty"`
	// Workspace bounds what all sessions of a workspace spend in a day, Day what all workspaces do.
	Workspace int64 `json:"workspace_day_microusd,omitempty"`
	Day       int64 `json:"day_microusd,omitempty"`
	// Widget bounds what all sessions of a widget spend in a day.
	Widget int64 `json:"widget_day_microusd,omitempty"`
}

// IsZero reports whether nothing is bounded.
func (c Caps) IsZero() bool { return c == Caps{} }

// Lower takes of each cap the lower one that is set.
func (c Caps) Lower(other Caps) Caps {
	lower := func(a, b int64) int64 {
		if a == 0 || b == 0 {
			return cmp.Or(a, b)
		}
		return min(a, b)
	}
	return Caps{
		Round: lower(c.Round, other.Round), Session: lower(c.Session, other.Session),
		Workspace: lower(c.Workspace, other.Workspace), Day: lower(c.Day, other.Day),
		Widget: lower(c.Widget, other.Widget),
	}
}

// CapScope names what a cap bounds.
type CapScope string

// The scopes of caps.
const (
	CapRound     CapScope = "round"
	CapSession   CapScope = "session"
	CapWorkspace CapScope = "workspace" // in a day
	CapDay       CapScope = "day"
	CapWidget    CapScope = "widget" // in a day
)

// Key is where regie.yaml has the cap of a scope.
func (s CapScope) Key() string {
	switch s {
	case CapRound:
		return "budget.usd_per_round"
	case CapSession:
		return "budget.usd_per_session"
	case CapWorkspace:
		return "budget.usd_per_workspace_day"
	case CapWidget:
		return "widgets.NAME.usd_per_day"
	default:
		return "budget.usd_per_day"
	}
}

// Dollars writes millionths of a US dollar as dollars, exactly, with at least two digits behind the
// point: 1.00, 0.0042, 12.345678.
func Dollars(amount int64) string {
	sign := ""
	if amount < 0 {
		sign, amount = "-", -amount
	}
	digits := strconv.FormatInt(amount, 10)
	if len(digits) < 7 {
		digits = strings.Repeat("0", 7-len(digits)) + digits
	}
	part := strings.TrimRight(digits[len(digits)-6:], "0")
	return sign + digits[:len(digits)-6] + "." + part + strings.Repeat("0", max(0, 2-len(part)))
}
