package config

import (
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/regie-run/regie"
)

// Watchdog is the time after which a run in which nothing happens is stopped (spec 5.1). Zero means
// the default.
type Watchdog time.Duration

const (
	defaultWatchdog = 10 * time.Minute
	// minWatchdog is the shortest one: below it a slow disk would be taken for a run that stands
	// still.
	minWatchdog = time.Minute
	noWatchdog  = Watchdog(-1)
)

// UnmarshalYAML implements yaml.Unmarshaler.
func (w *Watchdog) UnmarshalYAML(node *yaml.Node) error {
	if node.Value == "never" {
		*w = noWatchdog
		return nil
	}
	d, err := time.ParseDuration(node.Value)
	if err != nil || d < minWatchdog {
		return regie.Errorf(regie.CodeBadRequest,
			"line %d: %q is no time for the watchdog: write never, or a duration from %s on, such as 10m",
			node.Line, node.Value, minWatchdog)
	}
	*w = Watchdog(d)
	return nil
}

// After is the time; zero means that nothing is stopped.
func (w Watchdog) After() time.Duration {
	switch {
	case w == 0:
		return defaultWatchdog
	case w < 0:
		return 0
	default:
		return time.Duration(w)
	}
}
