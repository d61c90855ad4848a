package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/regie-run/regie/internal/keyring/keyringtest"
)

// TestSetupKeyring keeps a pasted key in a real keyring: no file has it, nothing shows it, and
// where the keyring is gone that is said.
func TestSetupKeyring(t *testing.T) {
	t.Parallel()
	const key = "sk-right-canary-0123"
	bus := keyringtest.Start(t)
	address := keyed(t)
	term := newNewcomer(t, "sh", "export REGIE_LANG=en PS1='$ ' DBUS_SESSION_BUS_ADDRESS="+bus.Address)
	ran := 0
	run := func(line string) string {
		t.Helper()
		ran++
		term.until("the prompt", func() bool { return strings.HasSuffix(strings.TrimSpace(term.joined()), "$") })
		term.enter("echo begin" + fmt.Sprint(ran) + "; " + line + "; echo ended=$? run=" + fmt.Sprint(ran))
		end := fmt.Sprintf("run=%d\n", ran)
		term.until("the end of "+line, func() bool { return strings.Count(term.joined(), end) == 2 })
		_, screen, _ := strings.Cut(term.joined(), fmt.Sprintf("\nbegin%d\n", ran))
		if strings.Contains(screen, "canary") {
			t.Errorf("%s shows the key:\n%s", line, screen)
		}
		return screen
	}
	term.enter("regie setup")
	term.shows("Which? (Enter for 1):")
	term.enter("2")
	term.shows("http://127.0.0.1:8000/v1):")
	term.enter(address)
	term.shows("empty for none):")
	term.enter(key)
	term.shows("Enter for large-1):")
	term.enter("1")
	term.shows("(Enter for 1):")
	term.sees("1. in the keyring of this system", "2. in setup.yaml, readable by you alone")
	term.enter("")
	term.sees("✓ the key is in the keyring of this system, as server of regie; no file has it", "✓ server with large-1 answers from now on")
	if s := term.stored(); strings.Contains(s, "canary") || !strings.Contains(s, "api_key: keyring:server") {
		t.Errorf("stored: %s", s)
	}
	if screen := run("regie models --json >/dev/null; regie models"); !strings.Contains(screen, "small-1") {
		t.Errorf("the key is not sent:\n%s", screen)
	}
	if screen := run("regie config show --origin | grep key"); !strings.Contains(screen, "# keyring server") || !strings.Contains(screen, "providers.server.api_key: keyring:server") {
		t.Errorf("where the key is does not show:\n%s", screen)
	}
	bus.Stop()
	if screen := run("regie doctor | grep -A1 key"); !strings.Contains(screen, "the provider server has no usable key") {
		t.Errorf("doctor does not say that it cannot be read:\n%s", screen)
	}
	if screen := run("regie run hello"); !strings.Contains(screen, "is in the keyring, which does not return it") || !strings.Contains(screen, "ended=1") {
		t.Errorf("a run does not say why:\n%s", screen)
	}
	if screen := run("DBUS_SESSION_BUS_ADDRESS= regie run hello"); !strings.Contains(screen, "DBUS_SESSION_BUS_ADDRESS is not set") {
		t.Errorf("a run without a bus does not say why:\n%s", screen)
	}
	if screen := run("echo " + strings.Replace(key, "canary", "other", 1) + " | DBUS_SESSION_BUS_ADDRESS= regie setup --base-url " + address + " --model m --key-stdin --keyring"); !strings.Contains(screen, "ended=1") {
		t.Errorf("a wrong key, and no keyring:\n%s", screen)
	}
	if _, err := os.Stat(term.home); err != nil {
		t.Error(err)
	}
}
