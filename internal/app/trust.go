package app

import (
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/i18n"
	"github.com/regie-run/regie/internal/prompt"
	"github.com/regie-run/regie/internal/skill"
	"github.com/regie-run/regie/internal/trust"
	"github.com/regie-run/regie/internal/workspace"
)

// What a surface shows of skills.
type (
	// Skill is an agent skill.
	Skill = skill.Skill
	// SkillSet are skills with what is odd about any.
	SkillSet = skill.Set
	// SkillNotice is something odd about a skill.
	SkillNotice = skill.Notice
)

// SkillOfUser is the origin of a user's own skill.
const SkillOfUser = skill.OfUser

// Project shows a workspace's content for agents and its trust: exactly what regie trust decides
// about.
type Project struct {
	Root string `json:"root"`
	// State is untrusted, trusted, changed (since it was trusted) or other_directory (than the one
	// that was trusted at this path).
	State     string         `json:"state"`
	TrustedAt time.Time      `json:"trusted_at,omitzero"`
	TrustedBy string         `json:"trusted_by,omitempty"`
	Changes   []trust.Change `json:"changes,omitempty"`
	SHA256    regie.Hash     `json:"sha256"`
	Files     []trust.File   `json:"files"`
	// Odd are what lies there and is not read, with the code of why.
	Odd map[string]regie.Code `json:"not_read,omitempty"`
	// Keys are what its file of settings says, with what becomes of each.
	Keys []config.ProjectKey `json:"settings,omitempty"`
	// Allowing is how many of its rules would allow something, which none can.
	Allowing int           `json:"allowing_rules,omitempty"`
	Skills   []skill.Skill `json:"skills,omitempty"`
	// Commands are its slash commands.
	Commands []skill.Command `json:"commands,omitempty"`
	// Servers are the MCP servers that its .mcp.json names, with why one cannot be used, or is not.
	Servers []ProjectServer `json:"mcp_servers,omitempty"`
	// Notices are what is odd about its skills.
	Notices []skill.Notice `json:"-"`
	// Broken is why the file of settings does not fit, which keeps runs from starting; Unread is
	// why nothing of all this can be trusted; Damaged is why a decision that is there does not
	// count.
	Broken, Unread, Damaged error `json:"-"`
	// ServersBroken is why .mcp.json names no servers.
	ServersBroken error `json:"-"`
	// Instructions says that the workspace has an AGENTS.md, which each run sends, trusted or not.
	Instructions bool `json:"agents_md,omitempty"`
	// Apart says that a file of settings was named, so that the workspace's does not count.
	Apart bool `json:"settings_not_read,omitempty"`

	content trust.Content
}

// Trusted reports whether the current content of the workspace is trusted.
func (p *Project) Trusted() bool { return p.State == string(trust.Trusted) }

// ProjectServer is an MCP server that a workspace names.
type ProjectServer struct {
	config.MCPFileServer
	// Yours says that the user's settings name one so, which goes before it.
	Yours bool `json:"yours,omitempty"`
	// Why is why it cannot be used as things are; empty where it can.
	Why error `json:"-"`
}

// projectServers returns the servers of a .mcp.json as they would be started.
func projectServers(c config.Config, root string, data []byte) (out []ProjectServer, err error) {
	found, err := config.ParseMCPFile(data)
	for i := range found {
		s := ProjectServer{MCPFileServer: found[i]}
		_, s.Yours = c.File.MCPServers[s.Name]
		server, err := s.Server(root, os.Getenv)
		if err == nil {
			err = mcpConfig(s.Name, server, nil).Validate()
		}
		s.Why = err
		out = append(out, s)
	}
	return out, err
}

// Dormant are how many skills, settings and servers are there that count once a person trusts them.
func (p *Project) Dormant() (skills, settings, servers int) {
	if p.Trusted() {
		return 0, 0, 0
	}
	for i := range p.Servers {
		if s := &p.Servers[i]; !s.Yours && !s.Disabled {
			servers++
		}
	}
	for _, k := range p.Keys {
		if k.Use == config.UseTrusted && !p.Apart {
			settings++
		}
	}
	return len(p.Skills), settings, servers
}

// Refused are the settings that no project's file may have.
func (p *Project) Refused() (out []config.ProjectKey) {
	for _, k := range p.Keys {
		if k.Use == config.UseNever {
			out = append(out, k)
		}
	}
	return out
}

// LookProject looks at what a workspace holds for agents. Nothing is changed. It returns the codes
// of workspace.Open.
func LookProject(c config.Config, root string) (Project, error) {
	out := Project{Root: root, Apart: c.Apart, State: string(trust.Untrusted)}
	seen, err := newProjects(c).readProject(root)
	if err != nil {
		return out, err
	}
	out.content, out.Unread, out.Damaged = seen.content, seen.content.Err, seen.standing.Err
	out.State, out.Changes, out.Files, out.Odd, out.SHA256 = string(seen.standing.State), seen.standing.Changes,
		seen.content.Files, seen.content.Odd, seen.content.Hash()
	if r := seen.standing.Record; r != nil {
		out.TrustedAt, out.TrustedBy = r.At, r.By
	}
	if data, there := seen.content.Data(trust.ConfigFile); there {
		own, err := parseProject(root, data, nil)
		out.Keys, out.Allowing, out.Broken = own.Keys, own.Allowing(), err
	}
	if data, there := seen.content.Data(trust.ServersFile); there && !c.Apart {
		out.Servers, out.ServersBroken = projectServers(c, root, data)
	}
	out.Commands = commandsOf(&seen.content)
	_, err = os.Lstat(filepath.Join(root, prompt.AgentsFile))
	out.Instructions = err == nil
	set := skill.Load(ofWorkspace(&seen.content))
	out.Skills, out.Notices = set.Skills, set.Notices
	return out, nil
}

// Trust stores a person's decision about exactly what was looked at. It returns the codes of
// trust.Store.Trust.
func (p *Project) Trust(c config.Config) error {
	return trust.NewStore(c.DataDir).Trust(p.Root, &p.content, userName(), time.Now())
}

// Distrust revokes a decision. It returns CodeNotFound without one.
func Distrust(c config.Config, root string) error { return trust.NewStore(c.DataDir).Revoke(root) }

// Skills are those that an agent has in a workspace now, with what is odd about any.
func Skills(c config.Config, root string) skill.Set { return newProjects(c).skillSet(root) }

// Commands are the slash commands of a workspace that a person has trusted as it is now.
func Commands(c config.Config, root string) []skill.Command {
	content, trusted := newProjects(c).trustedContent(root)
	if !trusted {
		return nil
	}
	return commandsOf(&content)
}

// CustomCommands are the slash commands of a workspace, and the skills of an agent there.
func CustomCommands(c config.Config, t *i18n.Printer, root string) (out []chat.CustomCommand) {
	for _, one := range Commands(c, root) {
		out = append(out, chat.CustomCommand{Name: one.Name, About: one.Description, Expand: one.Expand})
	}
	for _, s := range Skills(c, root).Skills {
		out = append(out, chat.CustomCommand{Name: s.Name, About: s.Description, Expand: func(typed string) string {
			return strings.TrimSpace(t.T("Use the skill %s. %s", s.Name, typed))
		}})
	}
	return out
}

func commandsOf(content *trust.Content) (out []skill.Command) {
	files, _ := content.Below(trust.CommandsDir)
	for _, f := range files {
		data, _ := content.Data(path.Join(trust.CommandsDir, f.Path))
		if command, ok := skill.ParseCommand(f.Path, data); ok && !strings.Contains(f.Path, "/") {
			out = append(out, command)
		}
	}
	return out
}

// The states of a Project.
const (
	StateTrusted   = string(trust.Trusted)
	StateChanged   = string(trust.Outdated)
	StateElsewhere = string(trust.Elsewhere)
)

// Workspace finds the workspace of a directory, as workspace.Detect.
func Workspace(dir, home string, here bool) (root, foundBy string, err error) {
	return workspace.Detect(dir, home, here)
}
