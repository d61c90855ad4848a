package app_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/config"
)

// silent is a vendor that answers nobody before the test ends, and tells when it is asked.
func silent(t *testing.T) (v *vendor, asked chan struct{}) {
	t.Helper()
	asked = make(chan struct{}, 1)
	free := make(chan struct{})
	v = newVendor(t, func(http.ResponseWriter, *http.Request) {
		asked <- struct{}{}
		<-free
	})
	t.Cleanup(func() { close(free) }) // before the vendor closes
	return v, asked
}

// cutOff asks for what the last call of a log was, of an engine that is opened anew.
func (b *bed) cutOff(want regie.Code) {
	b.t.Helper()
	conn := b.connect()
	calls, err := conn.ProxiedNow(b.t.Context())
	if err != nil || len(calls) != 1 || calls[0].Code != want || calls[0].Money.Known || calls[0].Model != "x" || calls[0].Provider != "far" {
		b.t.Fatalf("%+v (%v), want %s", calls, err, want)
	}
}

// capped has what a day may cost be bounded, so that what a call may cost is reserved.
func capped(c *config.Config) {
	c.File.Budget = config.Budget{USDPerDay: 10_000_000}
}

// TestProxyCutOff: a call that is with its provider when the engine ends is in the log of what was
// passed on, with what was reserved for it as perhaps due.
func TestProxyCutOff(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*config.Config){"under a cap": capped} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v, asked := silent(t)
			d := passes(t, v, change)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, d.server.URL+passChat, strings.NewReader(`{"model":"far/x","messages":[]}`))
			fatal(t, err)
			answered := make(chan error, 1)
			go func() {
				response, err := http.DefaultClient.Do(r)
				if err == nil {
					_ = response.Body.Close()
				}
				answered <- err
			}()
			<-asked
			fatal(t, d.conn.Close())
			d.cutOff(regie.CodeEngineGone)
			cancel()
			if err := <-answered; err == nil {
				t.Error("it was answered")
			}
			d.server.Close()
			d.closed = true
		})
	}
}
