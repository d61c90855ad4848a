package app_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/compat"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
)

// silentHolder is a vendor that answers nobody before the test ends, and tells when it is asked.
func silentHolder(t *testing.T) (v *vendor, asked chan struct{}) {
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
func (b *harness) cutOff(want regie.Code) {
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

// cutKilled is what a child process of TestProxyKilled is told: to ask, and to be killed when that
// stands in the log.
type cutKilled struct {
	Settings config.Config
	Root     string
}

// TestProxyKilled kills the process with SIGKILL while a provider is asked: the next one has the
// call in its log, and knows no outcome of it.
func TestProxyKilled(t *testing.T) {
	t.Parallel()
	if said := os.Getenv("REGIE_TEST_CUT"); said != "" {
		askAndDie(t, said)
		return
	}
	for name, change := range map[string]func(*config.Config){"under a cap": capped} {
		t.Run(name, func(t *testing.T) {
			v, _ := silentHolder(t)
			d := passes(t, v, change)
			d.close()
			runKilled(t, "TestProxyKilled", "REGIE_TEST_CUT", cutKilled{d.settings, d.root})
			want := regie.CodeEngineGone
			if d.settings.Database != "" { // for an hour it may be a call of another engine
				want = ""
			}
			d.cutOff(want)
		})
	}
}

func askAndDie(t *testing.T, said string) {
	t.Helper()
	var in cutKilled
	fatal(t, json.Unmarshal([]byte(said), &in))
	conn, err := app.Connect(context.Background(), app.Options{Config: in.Settings})
	fatal(t, err)
	server := httptest.NewServer(asOwner(compat.Handler(compat.Config{Service: conn.Service(), Proxy: conn.Proxy(), Workspace: func(ctx context.Context) (regie.Workspace, error) {
		return conn.Workspaces.Open(ctx, dispatch.WorkspaceRequest{Path: in.Root})
	}})))
	request, err := http.NewRequestWithContext(context.Background(), http.MethodPost, server.URL+passChat, strings.NewReader(`{"model":"far/x","messages":[]}`))
	fatal(t, err)
	go func() { _, _ = http.DefaultClient.Do(request) }() //nolint:bodyclose // it has no answer
	// between two looks
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		var calls []store.Proxied
		if calls, err = conn.ProxiedNow(context.Background()); err != nil || len(calls) == 1 {
			break
		}
	}
	fatal(t, err)
	die(t)
}
