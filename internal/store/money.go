package store

import (
	"time"

	"github.com/regie-run/regie"
)

// Reservation is the highest cost of a model call, in millionths of a US dollar, and the caps that
// limit it (decision 29).
type Reservation struct {
	// Prompt is the price of the prompt, Reply that of the longest reply, Least that of the
	// shortest useful reply.
	Prompt, Reply, Least int64
	Caps                 regie.Caps
}

// Grant returns the granted part of a reservation, where left remains under a cap: all of it, or
// left where that pays for the prompt and the least reply, or nothing.
func (r Reservation) Grant(left int64) (granted int64, ok bool) {
	switch whole := r.Prompt + r.Reply; {
	case left >= whole:
		return whole, true
	case left >= r.Prompt+r.Least:
		return left, true
	default:
		return 0, false
	}
}

// OverCap is a cap that leaves too little for a model call.
type OverCap struct {
	Scope regie.CapScope
	// Cap is the cap, Used the amount spent or reserved under it, both in millionths of a US
	// dollar.
	Cap, Used int64
}

// Granted is the answer to a Reservation: the reserved amount, or the cap that refused it.
type Granted struct {
	Reserved int64
	Refused  *OverCap
}

// Halt is the transition that pauses a round at a cap, until a person resumes it (decision 44).
type Halt struct{ Notice regie.Notice }

// Spent is the spending of a day, in one workspace and in all of them.
type Spent struct {
	Day       time.Time      `json:"day"`
	Workspace regie.Spending `json:"workspace"`
	All       regie.Spending `json:"all"`
	Caps      regie.Caps     `json:"caps"`
}
