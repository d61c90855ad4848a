//go:build faults

package crash

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/fault"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/store/sqlite"
	"github.com/regie-run/regie/internal/store/storetest"
)

// notifier is an engine that delivers what is in the outbox, until its standard input ends.
func notifier(ctx context.Context) error {
	settings, err := config.Load(os.Getenv, config.Flags{})
	if err != nil {
		return err
	}
	engine, err := app.OpenEngine(ctx, app.Options{Config: settings, Alone: true})
	if err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	return engine.Close()
}

// TestNotification_KilledAfterSend: an engine that dies between a webhook and its commit leaves the
// delivery to the next one, which sends it again under the same id.
func TestNotification_KilledAfterSend(t *testing.T) {
	dir, sent := t.TempDir(), make(chan string, 10)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { sent <- r.Header.Get("Webhook-Id") }))
	defer receiver.Close()
	settings := fmt.Sprintf("notifications: {hook: {type: webhook, url: %q, secret_env: HOOK}}\n", receiver.URL)
	if err := os.WriteFile(filepath.Join(dir, "regie.yaml"), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	// visit opens the store between the engines.
	visit := func(do func(*storetest.World)) {
		t.Helper()
		s, err := sqlite.Open(t.Context(), sqlite.Config{Dir: filepath.Join(dir, "data")})
		if err != nil {
			t.Fatal(err)
		}
		s.SetChannels([]store.Channel{{Name: "hook", Kinds: regie.NotificationKinds()}})
		do(storetest.NewWorld(t, s))
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	// outbox returns the deliveries of two failed rounds, the first one first.
	outbox := func(w *storetest.World) [2]store.Delivery {
		all, err := w.Store.Deliveries(w.Ctx, store.DeliveryFilter{})
		if err != nil || len(all) != 2 {
			t.Fatal(all, err)
		}
		return [2]store.Delivery{all[1], all[0]}
	}
	var id, next string
	visit(func(w *storetest.World) {
		for range 2 {
			fence := w.Start()
			if err := w.FailAttempt(fence, store.Failure{
				Attempt: regie.Attempt{RoundID: fence.RoundID, Exchange: 1, Number: 1, Code: regie.CodeProviderOffline, Error: "x"},
				Advance: &store.Advance{Phase: regie.PhaseEnd, End: &store.End{Reason: regie.EndProviderError}},
			}); err != nil {
				t.Fatal(err)
			}
		}
		both := outbox(w)
		id, next = both[0].ID.String(), both[1].ID.String()
	})

	first, _ := startNotifier(t, dir, fault.NotifyAfter+":1")
	if got := <-sent; got != id {
		t.Fatalf("sent was %s, want %s", got, id)
	}
	err := first.Wait()
	if status, ok := first.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
		t.Fatalf("the engine did not die at the point: %v\n%s", err, first.Stderr)
	}
	visit(func(w *storetest.World) {
		d := outbox(w)[0]
		if d.State != store.DeliveryPending || d.Attempts != 1 || !d.NextAt.After(time.Now()) {
			t.Errorf("the dead engine left %+v", d)
		}
		d.NextAt = d.CreatedAt // its lease ends
		if _, err := w.Store.UpdateDelivery(w.Ctx, &d, 1); err != nil {
			t.Fatal(err)
		}
	})
	second, end := startNotifier(t, dir, "")
	for _, want := range []string{id, next} { // which comes once the first one is stored
		select {
		case got := <-sent:
			if got != want {
				t.Errorf("sent was %s, want %s", got, want)
			}
		case <-time.After(time.Minute):
			t.Fatalf("nothing was sent\n%s", second.Stderr)
		}
	}
	_ = end.Close()
	if err := second.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, second.Stderr)
	}
	visit(func(w *storetest.World) {
		if d := outbox(w)[0]; d.State != store.DeliverySent || d.Attempts != 2 {
			t.Errorf("the second engine left %+v", d)
		}
	})
}

// startNotifier starts an engine that dies at a point; it ends once the result is closed.
func startNotifier(t *testing.T, dir, point string) (*exec.Cmd, io.Closer) {
	t.Helper()
	c := exec.CommandContext(t.Context(), os.Args[0])
	c.Env = []string{
		"REGIE_CRASH_CHILD=notify", "HOME=" + dir, "REGIE_DATA_DIR=" + filepath.Join(dir, "data"), "REGIE_CONFIG=" + filepath.Join(dir, "regie.yaml"),
		"HOOK=whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "REGIE_FAULT=" + point, "PATH=" + os.Getenv("PATH"),
	}
	c.Stderr = &bytes.Buffer{}
	end, err := c.StdinPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	return c, end
}
