package engine

import (
	"context"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// Rebuilt is a request as it would be made now of what was stored when it was sent.
type Rebuilt struct {
	Exchange, Attempt int // Attempt is 0 for the one that brought the reply
	Hash              regie.Hash
	Bytes             int
}

// Replay makes the requests of a stored round anew, exchange by exchange, from its thread alone:
// the replies and the results are the stored ones. Nothing is sent and no tool runs (invariant 17).
// It returns a request for each model call that has a recorded one, in their order, but for
// summaries that did not come. A provider whose conversations cannot be opened is an error.
func (e *Engine) Replay(ctx context.Context, view store.RoundView, thread store.Thread) ([]Rebuilt, error) {
	var out []Rebuilt
	add := func(exchange, attempt int) error {
		s, err := e.rebuild(ctx, view, thread, exchange, attempt)
		if err == nil {
			out = append(out, Rebuilt{exchange, attempt, s.out.Request, s.bytes})
		}
		return err
	}
	for i := range view.Exchanges {
		x := &view.Exchanges[i]
		for j := range x.Attempts {
			if !Rebuilds(&x.Attempts[j]) {
				continue
			}
			if err := add(x.Number, x.Attempts[j].Number); err != nil {
				return nil, err
			}
		}
		if x.State == regie.ExchangeReplied && !x.Request.IsZero() {
			if err := add(x.Number, 0); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// Rebuilds reports whether what a failed attempt was sent can be made anew.
func Rebuilds(a *regie.Attempt) bool {
	return !a.Request.IsZero() && a.Purpose != regie.PurposeSummary
}
