package mcp

import (
	"context"
	"sync/atomic"
)

// flight is what is known of a call on its way, for the one question that its failure leaves: can
// the server have seen it?
type flight struct {
	action bool // it gets a connection of its own
	// a request carries it: the next one with the same context is another (the notice of a
	// cancellation)
	taken  atomic.Bool
	sent   atomic.Bool  // bytes of it may have left
	status atomic.Int32 // the answer's HTTP status, 0 before
}

type flightKey struct{}

func withFlight(ctx context.Context, action bool) (context.Context, *flight) {
	f := &flight{action: action}
	return context.WithValue(ctx, flightKey{}, f), f
}

// flightOf returns the flight of a call's context, and an unused one for everything else.
func flightOf(ctx context.Context) *flight {
	if f, ok := ctx.Value(flightKey{}).(*flight); ok {
		return f
	}
	return &flight{}
}
