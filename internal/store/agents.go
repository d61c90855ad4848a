package store

import (
	"encoding/json"
	"time"
)

// AgentVersion is a version of an agent that was made through the interface (decision 66).
type AgentVersion struct {
	Name       string          `json:"name"`
	Version    int             `json:"version"`    // from 1; it goes on after a deletion
	Definition json.RawMessage `json:"definition"` // as under agents.NAME in regie.yaml; empty: deleted here
	By         string          `json:"created_by"`
	At         time.Time       `json:"created_at"`
}

// SaveAgent is the transition that stores a new version of an agent.
type SaveAgent struct {
	Name       string
	Definition json.RawMessage // empty deletes the agent; its versions stay for the sessions that name them
	By         string
	// After is the version that it was made from: 0 for a new agent. Where that is not the newest
	// one the transition returns CodeConflict, and CodeNotFound where the agent is deleted or was
	// never there.
	After int
}
