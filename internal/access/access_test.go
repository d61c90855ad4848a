package access

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/regie-run/regie"
)

// TestSecrets: a secret is whole or it is none, and no two are alike.
func TestSecrets(t *testing.T) {
	seen := map[string]bool{}
	for range 200 {
		s := NewSecret()
		if !Whole(s) || !Looks(s) || !Looks("x="+s+"&y") || len(s) != len(prefix)+random+check || seen[s] {
			t.Fatalf("%q", s)
		}
		seen[s] = true
		for i := range s {
			if i < len(prefix) {
				continue
			}
			other := byte('a')
			if s[i] == 'a' {
				other = 'b'
			}
			if Whole(s[:i] + string(other) + s[i+1:]) {
				t.Fatalf("%q is whole with another character at %d", s, i)
			}
		}
	}
	for _, s := range []string{"", "regie_", strings.Repeat("a", 55), "regie_" + strings.Repeat("-", 49), "REGIE_" + NewSecret()[6:], NewSecret() + "\n"} {
		if Whole(s) {
			t.Errorf("%q is whole", s)
		}
	}
}

// FuzzWhole: whatever is shown, nothing but what NewSecret has made is whole, within what a
// checksum can tell.
func FuzzWhole(f *testing.F) {
	f.Add(NewSecret())
	f.Add("regie_")
	f.Fuzz(func(t *testing.T, text string) {
		if Whole(text) && (len(text) != len(prefix)+random+check || !Looks(text) || strings.Trim(text[len(prefix):], alphabet) != "" && checksum(text[len(prefix):][:random]) != text[len(prefix)+random:]) {
			t.Errorf("%q is whole", text)
		}
	})
}

// TestSlow: an address that tries again and again waits, another one does not; where many wait, the
// next is sent away; and time forgets.
func TestSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s Slow
		took := func(address string) time.Duration {
			begun := time.Now()
			if !s.Wait(t.Context(), address) {
				t.Fatalf("%s is sent away", address)
			}
			return time.Since(begun)
		}
		for i := range freeTries {
			if d := took("192.0.2.1:" + strconv.Itoa(1000+i)); d != 0 {
				t.Fatalf("try %d waits %s", i, d)
			}
		}
		last := time.Duration(0)
		for range 30 {
			d := took("192.0.2.1:1")
			if d < last && d < slowMost/2 || d > slowMost {
				t.Fatalf("it waits %s after %s", d, last)
			}
			last = d
		}
		// Of 1,024 places two addresses can share one; three do not share the first one's.
		if took("[2001:db8::1]:1") != 0 && took("[2001:db8:1::1]:1") != 0 && took("192.0.2.2:1") != 0 {
			t.Error("other addresses wait")
		}
		for range maxWaiting {
			go s.Wait(t.Context(), "192.0.2.1:1")
		}
		synctest.Wait()
		if s.Wait(t.Context(), "192.0.2.1:1") {
			t.Error("there is no end of those who wait")
		}
		time.Sleep(time.Hour) // of the bubble
		if d := took("192.0.2.1:1"); d != 0 {
			t.Errorf("an hour later it waits %s", d)
		}
	})
	if network("[2001:db8::1]:5") != network("[2001:db8::ffff]:6") || network("[2001:db8::1]:5") == network("[2001:db8:0:1::1]:5") || network("192.0.2.1:1") == network("192.0.2.2:1") {
		t.Error("what counts as one address")
	}
}

// TestLimits: what a token may ask flows back with time, and what it has open comes back with its
// end, once.
func TestLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &Gate{Limits: Limits{PerMinute: 60, Requests: 2, Streams: 1}}
		caller := &Caller{Token: regie.Token{ID: regie.NewID(), Name: "x"}}
		enter := func() (context.Context, func(), time.Duration) {
			ctx, done, again, err := g.Enter(t.Context(), caller)
			if err != nil && regie.CodeOf(err) != regie.CodeTooManyRequests {
				t.Fatal(err)
			}
			return ctx, done, again
		}
		for range 60 { // a minute's at once
			_, done, _ := enter()
			done()
			done()
		}
		if _, done, again := enter(); done != nil || again != time.Second {
			t.Errorf("a sixty-first comes in, or after %s", again)
		}
		time.Sleep(5 * time.Second)
		one, endOne, _ := enter()
		_, endTwo, _ := enter()
		if _, done, _ := enter(); done != nil {
			t.Error("a third is answered beside two")
		}
		stays, endStream, err := Stay(one, nil)
		if err != nil || Room(one) == nil {
			t.Errorf("a stream: %v", err)
		}
		if _, _, err := Stay(one, nil); regie.CodeOf(err) != regie.CodeTooManyRequests {
			t.Errorf("a second stream: %v", err)
		}
		_, endThree, _ := enter() // the stream is no request any more
		if endThree == nil {
			t.Fatal("the stream counts as a request")
		}
		for _, end := range []func(){endOne, endTwo, endThree, endStream, endStream} {
			end()
		}
		if stays.Err() == nil || g.loads[caller.Token.ID].requests != 0 || g.loads[caller.Token.ID].streams != 0 || len(g.open) != 0 {
			t.Errorf("left open: %+v, %d", g.loads[caller.Token.ID], len(g.open))
		}
		time.Sleep(time.Minute)
		if g.tidy(time.Now()); len(g.loads) != 0 {
			t.Error("what is not used is remembered")
		}
		owner := &Caller{}
		for range 1000 {
			if _, _, _, err := g.Enter(t.Context(), owner); err != nil {
				t.Fatal(err)
			}
		}
	})
}
