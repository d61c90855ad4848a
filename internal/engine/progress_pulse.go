package engine

import (
	"time"

	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/tool"
)

// Pulse receives signs of life of a round (spec 5.1, the watchdog). Zero means that something has
// happened and nothing slow is under way; more is the timeout of what is under way now. Several
// goroutines call it; it must not block.
type Pulse func(within time.Duration)

// reportAlive tells that the round has come to its next step.
func (s *roundState) reportAlive() {
	if s.pulse != nil {
		s.pulse(0)
	}
}

// reportBusy tells what is under way, by its own timeout.
func (s *roundState) reportBusy(within time.Duration) {
	if s.pulse != nil && within > 0 {
		s.pulse(within)
	}
}

// reportTool reports that a tool runs, in parallel with others or after them.
func (s *roundState) reportTool(t tool.Tool) {
	if s.pulse != nil {
		s.pulse(tool.Bound(t, s.retry()))
	}
}

// reportModel tells that a model is at work: after each piece of its reply it has its time anew. A
// server that keeps the connection open without a piece of a reply is not at work.
func (s *roundState) reportModel() { s.reportBusy(provider.MaxSilence) }
