package config

import (
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/regie-run/regie"
)

// Presence is for how long after a heartbeat a user is there (spec 5.4, decision 52). Zero means
// the default.
type Presence time.Duration

const (
	defaultPresence = 5 * time.Minute
	// The shortest is longer than two heartbeats of a stream, the longest what is kept of presence.
	minPresence, maxPresence = 30 * time.Second, 24 * time.Hour
)

// UnmarshalYAML implements yaml.Unmarshaler.
func (p *Presence) UnmarshalYAML(node *yaml.Node) error {
	d, err := time.ParseDuration(node.Value)
	if err != nil || d < minPresence || d > maxPresence {
		return regie.Errorf(regie.CodeBadRequest,
			"line %d: %q is no time of presence: write a duration from %s to %s, such as 5m", node.Line,
			node.Value, minPresence, maxPresence)
	}
	*p = Presence(d)
	return nil
}

// Window is the time.
func (p Presence) Window() time.Duration {
	if p == 0 {
		return defaultPresence
	}
	return time.Duration(p)
}
