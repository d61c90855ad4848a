package dispatch

import (
	"encoding/json"
	"errors"
	"time"
)

// AgentSource says where an agent is defined (decision 66).
type AgentSource string

// The sources of agents: of several agents with one name the first of these is used.
const (
	AgentOfSettings  AgentSource = "settings"
	AgentOfDatabase  AgentSource = "database"
	AgentOfWorkspace AgentSource = "workspace"
)

// AgentView is an agent as it answers now.
type AgentView struct {
	Name        string      `json:"name"`
	Description string      `json:"description,omitempty"`
	Source      AgentSource `json:"source"`
	Path        string      `json:"path,omitempty"`        // of its file in the workspace
	Version     int         `json:"version,omitempty"`     // of one in the database
	Provider    string      `json:"provider_id,omitempty"` // empty where none is configured
	Model       string      `json:"model,omitempty"`
	// Definition is what is written of it, as under agents.NAME in regie.yaml.
	Definition json.RawMessage `json:"definition,omitempty"`
	By         string          `json:"created_by,omitempty"`
	At         time.Time       `json:"created_at,omitzero"`
	Problem    string          `json:"problem,omitempty"` // why it cannot be used
}

// AgentFilter selects agents.
type AgentFilter struct {
	Root string `query:"root" doc:"The directory of a workspace, whose own agents are listed too."`
}

// AgentQuery names an agent.
type AgentQuery struct {
	Name    string `json:"-"`
	Root    string `query:"root" doc:"The directory of a workspace, for an agent of its own."`
	Version int    `query:"version" min:"1" doc:"A version of an agent in the database; the newest where it is left out."`
}

// NewAgent asks for an agent in the database.
type NewAgent struct {
	Name string `json:"name" required:"true"`
	// Definition is as under agents.NAME in regie.yaml.
	Definition json.RawMessage `json:"definition,omitempty"`
}

// AgentEdit changes an agent in the database.
type AgentEdit struct {
	Name string `json:"-"`
	// Definition has the keys that change; null removes one.
	Definition json.RawMessage `json:"definition" required:"true"`
	// Version is the one that was changed; another one is refused. Zero is the newest.
	Version int `json:"version,omitempty"`
}

// PatchTo returns the merge patch (RFC 7396) that makes one definition of another, for AgentEdit.
func PatchTo(before, after json.RawMessage) (json.RawMessage, error) {
	var from, to map[string]any
	if err := errors.Join(json.Unmarshal(before, &from), json.Unmarshal(after, &to)); err != nil {
		return nil, err
	}
	if to == nil { // null
		to = map[string]any{}
	}
	removeMissing(from, to)
	return json.Marshal(to)
}

// removeMissing sets the keys to null that are no longer there.
func removeMissing(from, to map[string]any) {
	for key, old := range from {
		now, stays := to[key]
		if !stays {
			to[key] = nil
		}
		before, nested := old.(map[string]any)
		if after, both := now.(map[string]any); nested && both {
			removeMissing(before, after)
		}
	}
}
