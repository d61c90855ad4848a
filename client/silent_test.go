package client_test

import (
	"context"
	"net"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/client"
	"github.com/regie-run/regie/internal/store"
)

// silentClient is a client of what listens on a socket of its own, and impatient.
func silentClient(t *testing.T) (net.Listener, *client.Client) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	client := client.Local(func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", path)
	}, "en")
	client.Patience = 50 * time.Millisecond
	t.Cleanup(client.Close)
	return listener, client
}

// TestSilentEngine asks an engine that was stopped: the kernel takes the connections, and nobody
// answers.
func TestSilentEngine(t *testing.T) {
	_, client := silentClient(t)
	if err := client.Alive(t.Context()); regie.CodeOf(err) != regie.CodeLocked {
		t.Errorf("alive: %v", err)
	}
	if _, err := client.Get(t.Context(), regie.NewID()); regie.CodeOf(err) != regie.CodeLocked {
		t.Errorf("get: %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	mine := regie.Errorf(regie.CodeBadRequest, "enough")
	cancel(mine)
	if err := client.Pause(ctx, regie.NewID()); regie.CodeOf(err) != regie.CodeBadRequest {
		t.Errorf("a request that its caller gave up: %v", err)
	}
}

// TestSlowEngine has an engine take its time over an answer, and be alive: it is waited for.
func TestSlowEngine(t *testing.T) {
	listener, client := silentClient(t)
	asked := make(chan struct{}, 1000)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/healthz" {
			asked <- struct{}{}
			w.WriteHeader(http.StatusNoContent)
			return
		}
		for range 3 {
			<-asked
		}
		_, _ = w.Write([]byte(`{"items":[]}`))
	})}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	if rounds, err := client.List(t.Context(), store.RoundFilter{Limit: 1}); err != nil || len(rounds) != 0 {
		t.Errorf("%v, %v", rounds, err)
	}
}
