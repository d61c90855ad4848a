package sqlite

import (
	"context"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

const selectAgent = "SELECT name, version, definition, by, at FROM agents a"

func scanAgent(row scanner, v *store.AgentVersion) error {
	var definition string
	err := row.Scan(&v.Name, &v.Version, &definition, &v.By, &v.At)
	if definition != "" {
		v.Definition = []byte(definition)
	}
	return err
}

func noAgent(name string) error {
	return regie.Errorf(regie.CodeNotFound, "there is no agent %q here: regie agents list names them", name)
}

// SaveAgent stores a new version of an agent; see store.SaveAgent for its errors.
func (s agentStore) SaveAgent(ctx context.Context, in store.SaveAgent) (store.AgentVersion, error) {
	out := store.AgentVersion{Name: in.Name, Definition: in.Definition, By: in.By, At: time.Now().UTC()}
	err := s.writer.do(ctx, func(t *tx) error {
		newest, there := 0, false
		if err := t.row(`SELECT coalesce(max(version), 0), coalesce(max(CASE WHEN definition <> '' THEN version END), 0) = coalesce(max(version), -1)
			FROM agents WHERE name = ?`, in.Name).Scan(&newest, &there); err != nil {
			return err
		}
		switch {
		case in.After > 0 && !there:
			return noAgent(in.Name)
		case in.After == 0 && there:
			return regie.Errorf(regie.CodeConflict, "there is an agent %q already: edit it, or choose another name", in.Name)
		case in.After > 0 && in.After != newest:
			return regie.Errorf(regie.CodeConflict,
				"the agent %q has version %d, not %d: look at it as it is now, and change it again", in.Name, newest, in.After)
		}
		out.Version = newest + 1
		t.exec("INSERT INTO agents (name, version, definition, by, at) VALUES (?, ?, ?, ?, ?)", in.Name, out.Version,
			string(in.Definition), in.By, out.At.UnixMicro())
		return nil
	})
	return out, err
}

// Agent returns a version of an agent, 0 for the newest. It returns CodeNotFound for one that was
// never stored, and for the newest one of a deleted agent.
func (s agentStore) Agent(ctx context.Context, name string, version int) (store.AgentVersion, error) {
	all, err := s.AgentVersions(ctx, name)
	if err != nil {
		return store.AgentVersion{}, err
	}
	if version == 0 && len(all) > 0 {
		version = all[len(all)-1].Version
	}
	for _, v := range all {
		if v.Version == version && v.Definition != nil {
			return v, nil
		}
	}
	return store.AgentVersion{}, noAgent(name)
}

// Agents returns the newest versions of all agents that are not deleted, by name.
func (s agentStore) Agents(ctx context.Context) ([]store.AgentVersion, error) {
	return queryAll(ctx, s.read, scanAgent, selectAgent+
		" WHERE definition <> '' AND version = (SELECT max(version) FROM agents l WHERE l.name = a.name) ORDER BY name")
}

// AgentVersions returns all versions of an agent, the oldest first.
func (s agentStore) AgentVersions(ctx context.Context, name string) ([]store.AgentVersion, error) {
	return queryAll(ctx, s.read, scanAgent, selectAgent+" WHERE name = ? ORDER BY version", name)
}
