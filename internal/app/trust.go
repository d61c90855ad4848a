package app

import (
	"cmp"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/control"
	"github.com/regie-run/regie/internal/doctor"
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

// Project is the content of a workspace for agents and its trust: exactly what regie trust decides
// about.
type Project = control.WorkspaceTrust

// projectServers returns the servers of a .mcp.json as they would be started.
func projectServers(c config.Config, root string, data []byte) (out []control.ProjectServer, err error) {
	found, err := config.ParseMCPFile(data)
	for i := range found {
		s := control.ProjectServer{MCPFileServer: found[i], Starts: found[i].URL}
		if s.Command != "" {
			s.Starts = doctor.QuoteAll(append([]string{s.Command}, s.Args...))
		}
		_, s.Yours = c.File.MCPServers[s.Name]
		server, err := s.Server(root, os.Getenv)
		if err == nil {
			err = mcpConfig(s.Name, server, nil).Validate()
		}
		if s.Why = err; err != nil {
			s.Problem = err.Error()
		}
		out = append(out, s)
	}
	return out, err
}

// LookProject looks at what a workspace holds for agents. Nothing is changed. It returns the codes
// of workspace.Open.
func LookProject(c config.Config, root string) (Project, error) { return newProjects(c).Look(root) }

// Look looks at the content of a workspace for agents, and at the decision about it. Nothing is
// changed. It returns the codes of workspace.Open.
func (p *projects) Look(root string) (control.WorkspaceTrust, error) {
	out := control.WorkspaceTrust{Root: root, Apart: p.config.Apart, State: trust.Untrusted}
	seen, err := p.readProject(root)
	if err != nil {
		return out, err
	}
	out.Content, out.Unread, out.Damaged = seen.content, seen.content.Err, seen.standing.Err
	out.State, out.Changes, out.Files, out.Odd, out.SHA256 = seen.standing.State, seen.standing.Changes,
		seen.content.Files, seen.content.Odd, seen.content.Hash()
	if r := seen.standing.Record; r != nil {
		out.TrustedAt, out.TrustedBy = r.At, r.By
	}
	if data, there := seen.content.Data(trust.ConfigFile); there {
		own, err := parseProject(root, data, nil)
		out.Keys, out.Allowing, out.Broken = own.Keys, own.Allowing(), err
	}
	if data, there := seen.content.Data(trust.ServersFile); there && !out.Apart {
		out.Servers, out.ServersBroken = projectServers(p.config, root, data)
	}
	out.Commands = commandsOf(&seen.content)
	_, err = os.Lstat(filepath.Join(root, prompt.AgentsFile))
	out.Instructions = err == nil
	set := skill.Load(ofWorkspace(&seen.content))
	out.Skills, out.Notices = set.Skills, set.Notices
	for _, err := range out.Errors() {
		out.Problems = append(out.Problems, err.Error())
	}
	return out, nil
}

// TrustProject stores a person's decision about exactly what was looked at. It returns the codes of
// control.Workspaces.Trust.
func TrustProject(c config.Config, seen *Project) error {
	return newProjects(c).Trust(seen.Root, seen.SHA256, userName())
}

// Trust stores a person's decision about the content with the hash that was shown. It returns the
// codes of control.Workspaces.Trust.
func (p *projects) Trust(root string, shown regie.Hash, by string) error {
	seen, err := p.Look(root)
	if err = cmp.Or(err, seen.Unread, seen.Broken); err != nil {
		return err
	}
	if seen.SHA256 != shown {
		return regie.Errorf(regie.CodeStalePreview,
			"the content of %s has changed since it was shown, and is not trusted: look at it again", root)
	}
	return p.store.Trust(root, &seen.Content, by, time.Now())
}

// Distrust withdraws a decision. It returns CodeNotFound without one.
func (p *projects) Distrust(root string) error { return p.store.Revoke(root) }

// Distrust withdraws a decision. It returns CodeNotFound without one.
func Distrust(c config.Config, root string) error { return newProjects(c).Distrust(root) }

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

// StateChanged is the state of a Project that has changed since it was trusted.
const StateChanged = trust.Outdated

// Workspace finds the workspace of a directory, as workspace.Detect.
func Workspace(dir, home string, here bool) (root, foundBy string, err error) {
	return workspace.Detect(dir, home, here)
}
