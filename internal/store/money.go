package store

import (
	"time"

	"github.com/regie-run/regie"
)

// Reservation is what a model call may cost at most, in millionths of a US dollar, and the caps
// under which it is made (decision 29).
type Reservation struct {
	// Prompt is the price of the prompt, Reply that of the longest reply, Least that of the
	// shortest that is worth asking for.
	Prompt, Reply, Least int64
	Caps                 regie.Caps
}

// Grant returns what of a reservation is granted where so much is left: all of it, else as much as
// there is, else nothing, where that pays for the prompt and the least reply.
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

// OverCap is a cap that does not leave enough for a model call.
type OverCap struct {
	Scope regie.CapScope
	// Cap is the cap, Used what is spent or reserved of it, both in millionths of a US dollar.
	Cap, Used int64
}

// Granted is the answer to a Reservation: an amount, or the reason for a refusal.
type Granted struct {
	Reserved int64
	Refused  *OverCap
}

// Halt is the transition Halt: it pauses a round over a cap until a person resumes it (decision
// 44).
type Halt struct{ Notice regie.Notice }

// Spent is what has been spent in a day, in one workspace and in all of them.
type Spent struct {
	Day       time.Time      `json:"day"`
	Workspace regie.Spending `json:"workspace"`
	All       regie.Spending `json:"all"`
	Caps      regie.Caps     `json:"caps"`
}
