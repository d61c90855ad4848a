package engine

import (
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/tool"
)

// Pulse is told that a round lives (spec 5.1, the watchdog). Zero says that something has happened,
// and that nothing is under way any more which takes time of its own; more says that what is under
// way now may take so long by its own timeout. It is called from several goroutines, and must not
// block.
type Pulse func(within time.Duration)

// beat tells that the round has come to its next step.
func (r *run) beat() {
	if r.pulse != nil {
		r.pulse(0)
	}
}

// lasts tells what is under way, by its own timeout.
func (r *run) lasts(within time.Duration) {
	if r.pulse != nil && within > 0 {
		r.pulse(within)
	}
}

// lastsTool tells that a tool runs, beside others or after them.
func (r *run) lastsTool(t tool.Tool) {
	if r.pulse != nil {
		r.pulse(tool.Bound(t, r.cfg.Retry))
	}
}

// lastsModel tells that a model is at work: after each piece of its reply it has its time anew. A
// server that keeps the connection open without a piece of a reply is not at work.
func (r *run) lastsModel() { r.lasts(provider.MaxSilence) }

// Replied is a stored reply, for who counts.
type Replied struct {
	Provider, Model string
	Usage           regie.Usage
	Money           regie.Money
	// Cache is "hit" or "miss" where the response cache was asked, and empty where it was not.
	Cache string
}

// counts tells a stored reply.
func (r *run) counts(e *regie.Exchange, hit bool) {
	if r.cfg.Replied == nil {
		return
	}
	out := Replied{Provider: e.Provider, Model: e.Model, Usage: e.Usage, Money: e.Money}
	switch {
	case r.summary != nil || r.question.Key.IsZero():
	case hit:
		out.Cache = "hit"
	default:
		out.Cache = "miss"
	}
	r.cfg.Replied(out)
}
