package engine

import (
	"context"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// Replay compares what a round would ask of its model again with what it asked (invariant 17).
type Replay struct {
	RoundID   regie.ID     `json:"round_id"`
	Steps     []ReplayStep `json:"steps"`
	Identical int          `json:"identical"` // how many requests are what was sent
	// Difference is the number of the first exchange with a different request; 0 without one.
	Difference int `json:"difference,omitempty"`
}

// ReplayStep is one model call of a Replay.
type ReplayStep struct {
	Exchange int        `json:"exchange"`
	Recorded regie.Hash `json:"recorded"` // of what was sent
	Rebuilt  regie.Hash `json:"rebuilt"`
	Bytes    int        `json:"bytes"` // of the rebuilt request
	Calls    int        `json:"calls"` // of the reply
	// Cached says that nothing was sent: the reply came from the response cache (spec 6.4).
	Cached bool `json:"cached,omitempty"`
	// FirstSeq and LastSeq are what the request holds of the thread, as recorded.
	FirstSeq int64 `json:"first_seq"`
	LastSeq  int64 `json:"last_seq"`
}

// Replay rebuilds the requests of a stored round, exchange by exchange, from its thread alone, with
// the stored replies and results. It sends nothing and runs no tool. It omits model calls without a
// reply. A provider that cannot open a conversation is an error.
func (e *Engine) Replay(ctx context.Context, view store.RoundView, thread store.Thread) (Replay, error) {
	out := Replay{RoundID: view.Round.ID, Steps: []ReplayStep{}}
	for i := range view.Exchanges {
		x := &view.Exchanges[i]
		if x.State != regie.ExchangeReplied || x.Request.IsZero() {
			continue
		}
		s, err := e.rebuild(ctx, view, thread, x.Number)
		if err != nil {
			return Replay{}, err
		}
		out.Steps = append(out.Steps, ReplayStep{
			Exchange: x.Number, Recorded: x.Request, Rebuilt: s.out.Request, Bytes: s.bytes, Calls: len(x.Calls),
			Cached: !s.out.Cached.IsZero(), FirstSeq: x.FirstSeq, LastSeq: x.LastSeq,
		})
		switch {
		case s.out.Exact():
			out.Identical++
		case out.Difference == 0:
			out.Difference = x.Number
		}
	}
	return out, nil
}
