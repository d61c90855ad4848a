package access

import (
	"context"
	"hash/maphash"
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Slow has those wait who show what opens nothing, the more the more they try; who shows a right
// token never does, wherever it comes from, so that nobody is locked out by others. It remembers as
// much as its size allows, however many there are: addresses share their place with others. The
// zero value is ready.
type Slow struct {
	mu      sync.Mutex
	seed    maphash.Seed
	places  [1024]*rate.Limiter // of tries that nobody waits for; nil where nobody tried
	waiting int
}

const (
	freeTries   = 10                     // before anybody waits
	forgetTries = 0.5                    // in a second
	slowStep    = 100 * time.Millisecond // more for each try
	slowMost    = time.Second
	maxWaiting  = 128 // who come when so many wait are sent away at once
)

// Wait waits as long as a failed try from an address has to, and reports whether it is to be
// answered as what it is: where too many wait, it is to be told to come again later.
func (s *Slow) Wait(ctx context.Context, address string) bool {
	delay, ok := s.failed(address, time.Now())
	if !ok {
		return false
	}
	if delay == 0 {
		return true
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	s.mu.Lock()
	s.waiting--
	s.mu.Unlock()
	return true
}

func (s *Slow) failed(address string, now time.Time) (time.Duration, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seed == (maphash.Seed{}) {
		s.seed = maphash.MakeSeed()
	}
	place := &s.places[maphash.String(s.seed, network(address))%uint64(len(s.places))]
	if *place == nil {
		*place = rate.NewLimiter(forgetTries, freeTries)
	}
	if (*place).AllowN(now, 1) {
		return 0, true
	}
	if s.waiting >= maxWaiting {
		return 0, false
	}
	s.waiting++
	over := 1 - (*place).TokensAt(now)
	if delay := time.Duration(over * float64(slowStep)); delay < slowMost {
		(*place).ReserveN(now, 1) // one more to be forgotten
		return delay, true
	}
	return slowMost, true
}

// network is what counts as one: an address, or the 64 bits of IPv6 that its owner chooses the rest
// of.
func network(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	if at, err := netip.ParseAddr(host); err == nil && at.Is6() && !at.Is4In6() {
		if prefix, err := at.WithZone("").Prefix(64); err == nil {
			return prefix.String()
		}
	}
	return host
}
