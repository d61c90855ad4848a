package access

import (
	"context"
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
		if err != nil {
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
