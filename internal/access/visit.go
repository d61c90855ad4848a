package access

import (
	"cmp"
	"context"
	"time"

	"golang.org/x/time/rate"

	"github.com/regie-run/regie"
)

// Limits are what one token may ask of one server; zero fields mean the defaults. The token of the
// data directory has none: it is its owner's.
type Limits struct {
	// PerMinute is how many requests a minute may have, Requests how many are answered at once, and
	// Streams how many streams are open.
	PerMinute, Requests, Streams int
}

// The defaults of Limits.
const (
	DefaultPerMinute = 1200
	DefaultRequests  = 64
	DefaultStreams   = 1000
)

// load is what a token has open, and how much it may still ask.
type load struct {
	rate     *rate.Limiter
	requests int
	streams  int
}

// visitorLimits are those of a visitor of a widget, who sees one page.
var visitorLimits = Limits{PerMinute: 120, Requests: 8, Streams: 4}

// limitsOf returns the limits of a caller.
func (g *Gate) limitsOf(caller *Caller) Limits {
	if caller.Visitor != nil {
		return visitorLimits
	}
	return g.Limits
}

// newLoad returns the load of a token that asked nothing yet. It may ask a whole minute's requests
// at once, as a page that shows hundreds of things does.
func (l Limits) newLoad() *load {
	perMinute := cmp.Or(l.PerMinute, DefaultPerMinute)
	return &load{rate: rate.NewLimiter(rate.Limit(perMinute)/60, max(1, perMinute))}
}

// visit is a request of a token from its beginning to its end, or a stream.
type visit struct {
	gate   *Gate
	caller *Caller
	cancel context.CancelCauseFunc
	stream bool // counts as one
}

type visitKey struct{}

// Enter lets a caller's request in: its context ends, with ErrEnded, once the caller's token is
// revoked or has expired. done is to be called when it was answered. It returns CodeTooManyRequests
// where the token has had its share, and after how long to ask again.
func (g *Gate) Enter(ctx context.Context,
	caller *Caller,
) (in context.Context, done func(), again time.Duration, err error) {
	ctx = With(ctx, caller)
	if caller.IsOwner() {
		return ctx, func() {}, 0, nil
	}
	now, limits := time.Now(), g.limitsOf(caller)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.loads == nil {
		g.loads, g.open = map[regie.ID]*load{}, map[*visit]struct{}{}
	}
	l := g.loads[caller.Token.ID]
	if l == nil {
		l = limits.newLoad()
		g.loads[caller.Token.ID] = l
	}
	if most := cmp.Or(limits.Requests, DefaultRequests); l.requests >= most {
		return ctx, nil, time.Second, regie.Errorf(regie.CodeTooManyRequests,
			"the token %s has %d requests in progress: wait until one ends", caller.Token.Name, most)
	}
	ask := l.rate.ReserveN(now, 1)
	if again = ask.DelayFrom(now); again > 0 {
		ask.CancelAt(now)
		return ctx, nil, again, regie.Errorf(regie.CodeTooManyRequests,
			"the token %s makes too many requests: at most %d a minute on average", caller.Token.Name,
			cmp.Or(limits.PerMinute, DefaultPerMinute))
	}
	l.requests++
	v := &visit{gate: g, caller: caller}
	in, v.cancel = context.WithCancelCause(ctx)
	g.open[v] = struct{}{}
	return context.WithValue(in, visitKey{}, v), func() { v.leave() }, 0, nil
}

// leave ends a visit, once.
func (v *visit) leave() {
	g := v.gate
	g.mu.Lock()
	if _, there := g.open[v]; there {
		delete(g.open, v)
		l := g.loads[v.caller.Token.ID]
		if v.stream {
			l.streams--
		} else {
			l.requests--
		}
	}
	g.mu.Unlock()
	v.cancel(nil)
}

// Stay turns a request into a stream, which no longer counts as a short request. With a base that
// is not nil the stream outlives its request and ends with base; the returned context carries the
// caller. It returns CodeTooManyRequests where the token has too many streams.
func Stay(ctx, base context.Context) (stays context.Context, done func(), err error) {
	v, _ := ctx.Value(visitKey{}).(*visit)
	if base == nil {
		base = ctx
	} else if caller := From(ctx); caller != nil {
		base = With(base, caller)
	}
	if v == nil {
		return base, func() {}, nil
	}
	g := v.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	l := g.loads[v.caller.Token.ID]
	if most := cmp.Or(g.limitsOf(v.caller).Streams, DefaultStreams); l.streams >= most {
		return nil, nil, regie.Errorf(regie.CodeTooManyRequests, "the token %s has %d streams open: end one of them",
			v.caller.Token.Name, most)
	}
	l.streams++
	stream := &visit{gate: g, caller: v.caller, stream: true}
	stays, stream.cancel = context.WithCancelCause(base)
	g.open[stream] = struct{}{}
	if _, there := g.open[v]; there { // the request itself waits for the stream's end, or has given its place away
		delete(g.open, v)
		l.requests--
	}
	return stays, stream.leave, nil
}

// tidy forgets tokens that have nothing open and all of their share.
func (g *Gate) tidy(now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for id, l := range g.loads {
		if l.requests == 0 && l.streams == 0 && l.rate.TokensAt(now) >= float64(l.rate.Burst()) {
			delete(g.loads, id)
		}
	}
}
