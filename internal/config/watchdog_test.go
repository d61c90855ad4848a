package config

import (
	"cmp"
	"testing"
	"time"
)

// TestWatchdog reads how long a run may stand still.
func TestWatchdog(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"": 10 * time.Minute, "automation: {watchdog: 3m}": 3 * time.Minute, "automation: {watchdog: never}": 0, "automation: {watchdog: 1m}": time.Minute,
	} {
		c, err := load(t, text, nil)
		if got := c.File.Automation.Watchdog.Or(10 * time.Minute); err != nil || got != want {
			t.Errorf("%q is %s, %v; it should be %s", text, got, err, want)
		}
	}
	for _, text := range []string{"automation: {watchdog: 59s}", "automation: {watchdog: 0}", "automation: {watchdog: -1m}", "automation: {watchdog: soon}"} {
		if c, err := load(t, text, nil); err == nil {
			t.Errorf("%q is taken as %s", text, c.File.Automation.Watchdog.Or(10*time.Minute))
		}
	}
}

// TestPresence reads for how long somebody is there.
func TestPresence(t *testing.T) {
	for text, want := range map[string]time.Duration{"": 5 * time.Minute, "presence: 90s": 90 * time.Second, "presence: 24h": 24 * time.Hour} {
		c, err := load(t, text, nil)
		if got := cmp.Or(c.File.Presence, 5*time.Minute); err != nil || got != want {
			t.Errorf("%q is %s, %v; it should be %s", text, got, err, want)
		}
	}
	for _, text := range []string{"presence: 29s", "presence: 25h", "presence: never", "presence: [5m]"} {
		if _, err := load(t, text, nil); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}
