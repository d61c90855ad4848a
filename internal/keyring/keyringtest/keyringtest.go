// Package keyringtest starts a session bus with a real Secret Service for tests: dbus-daemon and
// gnome-keyring-daemon, with a home of their own.
package keyringtest

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// Bus is a session bus with an unlocked keyring on it.
type Bus struct {
	// Address is what DBUS_SESSION_BUS_ADDRESS is to say.
	Address string
	ring    *exec.Cmd
}

// Start starts a bus and an unlocked keyring, which end with the test. Without the programs it
// skips the test; with REGIE_CI it fails.
func Start(t *testing.T) *Bus {
	t.Helper()
	for _, program := range []string{"dbus-daemon", "dbus-send", "gnome-keyring-daemon"} {
		if _, err := exec.LookPath(program); err == nil {
			continue
		}
		if os.Getenv("REGIE_CI") != "" {
			t.Fatal("a keyring is needed here (Debian packages dbus and gnome-keyring)")
		}
		t.Skip("without dbus-daemon and gnome-keyring-daemon there is no keyring to try")
	}
	home, err := os.MkdirTemp("", "ring") //nolint:usetesting // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	env := []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + home, "XDG_RUNTIME_DIR=" + home,
		"XDG_DATA_HOME=" + filepath.Join(home, "data"),
	}
	socket := "--address=unix:path=" + filepath.Join(home, "bus")
	bus := exec.CommandContext(t.Context(), "dbus-daemon", "--session", "--nofork",
		"--nosyslog", "--print-address", socket)
	bus.Env = env
	out, err := bus.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	run(t, bus)
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the bus says nothing: %v", err)
	}
	b := &Bus{Address: strings.TrimSpace(line)}
	b.ring = exec.CommandContext(t.Context(), "gnome-keyring-daemon", "--foreground",
		"--unlock", "--components=secrets")
	b.ring.Env, b.ring.Stdin = slices.Concat(env, []string{"DBUS_SESSION_BUS_ADDRESS=" + b.Address}),
		strings.NewReader("a password")
	run(t, b.ring)
	// between two looks
	for deadline := time.Now().Add(20 * time.Second); !b.owned(t, env); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the keyring does not come")
		}
	}
	return b
}

// owned reports whether the Secret Service is on the bus.
func (b *Bus) owned(t *testing.T, env []string) bool {
	t.Helper()
	ask := exec.CommandContext(t.Context(), "dbus-send", "--print-reply", "--dest=org.freedesktop.DBus",
		"/org/freedesktop/DBus", "org.freedesktop.DBus.NameHasOwner",
		"string:org.freedesktop.secrets")
	ask.Env = slices.Concat(env, []string{"DBUS_SESSION_BUS_ADDRESS=" + b.Address})
	said, err := ask.Output()
	return err == nil && strings.Contains(string(said), "true")
}

// Stop ends the keyring; the bus stays.
func (b *Bus) Stop() {
	_ = b.ring.Process.Kill()
	_ = b.ring.Wait() // it was killed
}

// run starts a program that ends with the test.
func run(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	})
}
