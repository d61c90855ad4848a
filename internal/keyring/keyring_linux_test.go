package keyring

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/keyring/keyringtest"
)

// TestKeyring keeps keys in a real keyring. The library keeps one connection for the process, so
// all that needs a bus stands in this test.
func TestKeyring(t *testing.T) {
	bus := keyringtest.Start(t)
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", bus.Address)
	if !Answers() {
		t.Fatal("the keyring does not answer")
	}
	if _, err := Get("groq"); regie.CodeOf(err) != regie.CodeNotFound {
		t.Errorf("a key that is not there: %v", err)
	}
	for _, key := range []string{"sk-one-canary", "sk-two-canary-" + strings.Repeat("x", 4000)} {
		if err := Set("groq", key); err != nil {
			t.Fatal(err)
		}
		if got, err := Get("groq"); err != nil || got != key {
			t.Errorf("got %q, %v", got, err)
		}
	}
	if _, err := Get("anthropic"); regie.CodeOf(err) != regie.CodeNotFound {
		t.Errorf("another key: %v", err)
	}
	bus.Stop()
	if _, err := Get("groq"); regie.CodeOf(err) != regie.CodeNoPermission && regie.CodeOf(err) != regie.CodeNotFound {
		t.Errorf("without its service: %v", err)
	}
}

// TestNoKeyring finds out in a moment that there is none.
func TestNoKeyring(t *testing.T) {
	dir, err := os.MkdirTemp("", "mute") //nolint:usetesting // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	mute, err := net.Listen("unix", filepath.Join(dir, "bus")) // it takes connections and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer mute.Close()
	t.Setenv("PATH", dir) // dbus-launch would be started by its name
	launched := filepath.Join(dir, "launched")
	if err := os.WriteFile(filepath.Join(dir, "dbus-launch"), []byte("#!/bin/sh\n: > "+launched+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, address := range []string{"", "autolaunch:", "unix:path=" + filepath.Join(dir, "none"), "nonsense", "unix:path=" + filepath.Join(dir, "bus")} {
		t.Setenv("DBUS_SESSION_BUS_ADDRESS", address)
		began := time.Now()
		if Answers() {
			t.Errorf("%q: a keyring answers", address)
		}
		if took := time.Since(began); took > 3*knock {
			t.Errorf("%q: it took %s", address, took)
		}
	}
	if _, err := os.Stat(launched); err == nil {
		t.Error("a bus was started")
	}
}
