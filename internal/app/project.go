package app

import (
	"context"
	"encoding/json"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/control"
	"github.com/regie-run/regie/internal/engine"
	"github.com/regie-run/regie/internal/prompt"
	"github.com/regie-run/regie/internal/skill"
	"github.com/regie-run/regie/internal/tool"
	"github.com/regie-run/regie/internal/toolkit/mcp"
	"github.com/regie-run/regie/internal/toolkit/skills"
	"github.com/regie-run/regie/internal/trust"
	"github.com/regie-run/regie/internal/workspace"
)

// projects reads what workspaces hold for agents, and what people have decided about it. Each
// method looks anew: what was pulled or revoked a moment ago counts. Its methods may be called from
// any goroutine.
type projects struct {
	config config.Config
	store  *trust.Store
	// servers are those that workspaces name; nil where nothing runs.
	servers *servers
	// mask masks what of a workspace is sent; nil where nothing is.
	mask func(root string) *tool.Mask

	mu     sync.Mutex
	scoped [2]*tool.Registry // the last registry that was given, and that with the skills' tool
}

func newProjects(c config.Config) *projects {
	return &projects{config: c, store: trust.NewStore(c.DataDir)}
}

// project is what a workspace holds, at one moment.
type project struct {
	content  trust.Content
	standing trust.Standing
}

func (p *projects) readProject(root string) (project, error) {
	at, err := workspace.Open(root)
	if err != nil {
		return project{}, err
	}
	defer func() { _ = at.Close() }() // it was only read
	out := project{content: trust.Look(at)}
	out.standing = p.store.Standing(root, &out.content)
	return out, nil
}

// trustedContent returns what a workspace holds where a person has trusted exactly that.
func (p *projects) trustedContent(root string) (trust.Content, bool) {
	if !hasContent(root) {
		return trust.Content{}, false
	}
	seen, err := p.readProject(root)
	return seen.content, err == nil && seen.standing.State == trust.Trusted
}

// isTrusted reports whether a person vouches for the files of a workspace.
func (p *projects) isTrusted(root string) bool {
	if p.store.Standing(root, &trust.Content{}).State == trust.Untrusted { // no person has decided
		return false
	}
	seen, err := p.readProject(root)
	return err == nil && seen.standing.State == trust.Trusted
}

// hasContent reports whether a workspace holds anything for agents: most hold nothing, and each
// step of a run asks.
func hasContent(root string) bool {
	for _, dir := range []string{trust.Dir, path.Dir(trust.SharedSkillsDir), trust.ServersFile} {
		if _, err := os.Lstat(filepath.Join(root, dir)); err == nil {
			return true
		}
	}
	return false
}

// Settings returns a workspace's own file. A link or a FIFO counts as no file; an unreadable or
// invalid file is an error, because it may hold rules that a person relies on.
func (p *projects) Settings(root string) (config.Project, error) {
	if p.config.Apart {
		return config.Project{}, nil
	}
	if _, err := os.Lstat(filepath.Join(root, trust.Dir)); err != nil {
		return config.Project{}, nil
	}
	at, err := workspace.Open(root)
	if err != nil {
		return config.Project{}, err
	}
	defer func() { _ = at.Close() }() // it was only read
	data, err := at.ReadPlain(trust.ConfigFile, config.MaxProject)
	return parseProject(root, data, err)
}

// parseProject makes settings of what was read.
func parseProject(root string, data []byte, err error) (config.Project, error) {
	name := filepath.Join(root, trust.ConfigFile)
	switch regie.CodeOf(err) {
	case "":
		return config.ParseProject(name, data)
	case regie.CodeFileNotFound, regie.CodePathOutside, regie.CodeNotADirectory,
		regie.CodeNotAFile, regie.CodeSpecialFile:
		return config.Project{}, nil
	case regie.CodeFileTooLarge:
		return config.Project{}, regie.Errorf(regie.CodeBadRequest,
			"the configuration %s has more than %d bytes", name, config.MaxProject)
	default:
		return config.Project{}, regie.Errorf(regie.CodeBadRequest,
			"the configuration %s cannot be read: %v", name, err)
	}
}

// Agent returns an agent as it works in a workspace: with the restrictions of the workspace's file,
// and with its instructions where a person trusts it.
func (p *projects) Agent(root, name string, agent config.Agent) config.Agent {
	if root == "" {
		return agent
	}
	if own, err := p.Settings(root); err == nil { // else no run begins here
		agent = own.Narrowed(name, agent)
	}
	own := p.projectFile(root)
	return own.Instructed(name, agent)
}

// AgentFiles returns the agents that a workspace defines, by name, where a person trusts its files.
func (p *projects) AgentFiles(root string) (out []control.AgentFile) {
	content, trusted := p.trustedContent(root)
	if root == "" || !trusted || p.config.Apart {
		return nil
	}
	files, _ := content.Below(trust.AgentsDir)
	for _, f := range files {
		name, is := strings.CutSuffix(f.Path, ".md")
		if !is || strings.Contains(name, "/") {
			continue
		}
		found := control.AgentFile{Name: name, Path: path.Join(trust.AgentsDir, f.Path)}
		data, _ := content.Data(found.Path)
		if found.Err = config.CheckAgentName(name); found.Err == nil {
			found.Agent, found.Err = config.ParseAgentFile(found.Path, data)
		}
		out = append(out, found)
	}
	return out
}

// Zone returns the time zone of agents in a workspace.
func (p *projects) Zone(root string) string {
	own := p.projectFile(root)
	place := own.Place(p.config.File.Workspace)
	return place.Zone()
}

// projectFile returns the file of a workspace that a person has trusted, else an empty one.
func (p *projects) projectFile(root string) config.Project {
	content, ok := p.trustedContent(root)
	if !ok || p.config.Apart {
		return config.Project{}
	}
	data, _ := content.Data(trust.ConfigFile)
	own, err := parseProject(root, data, nil)
	if err != nil { // no run begins here: settings says why
		return config.Project{}
	}
	return own
}

// fileSettings returns the rules of the settings files for an agent's calls in a workspace
// (decision 19): all of the user's, and only the restrictions of the workspace's file and of the
// agent. Where one cannot be read every call needs an approval, because its restrictions are
// unknown.
func (p *projects) fileSettings(root, name string, agent config.Agent, agentErr error) engine.FileSettings {
	var out engine.FileSettings
	for _, r := range p.config.File.Approvals.Rules {
		out.Rules = append(out.Rules, fileRule(r))
	}
	own, err := p.Settings(root)
	if err != nil {
		out.Levels = []approval.Level{{Source: regie.SourceWorkspace, RequireValidation: true}}
	}
	for _, r := range own.Narrowing() {
		out.Rules = append(out.Rules, fileRule(r))
	}
	if own.Require() != "" || own.RequiresValidation() {
		out.Levels = append(out.Levels, approval.Level{
			Source: regie.SourceWorkspace, Require: own.Require(),
			RequireValidation: own.RequiresValidation(),
		})
	}
	for _, r := range agent.Approvals.Rules {
		out.Rules = append(out.Rules, fileRule(r))
	}
	if a := agent.Approvals; a.Require != "" || a.RequireValidation || agentErr != nil {
		out.Levels = append(out.Levels, approval.Level{
			Source: regie.SourceAgent, Require: a.Require, RequireValidation: a.RequireValidation || agentErr != nil,
		})
	}
	out.Scopes = agent.Scopes()
	if p.servers != nil {
		out.Rules = append(out.Rules, p.servers.forbidUntrusted(root)...)
	}
	out.Caps = p.config.File.CapsOf(&agent).Lower(own.Caps(name))
	out.Untrusted = !p.isTrusted(root)
	out.Private = slices.Concat(p.config.File.Approvals.Private, own.Private())
	if len(out.Rules)+len(out.Levels)+len(out.Scopes)+len(out.Private) > 0 || out.Untrusted {
		// of text alone it does not fail
		told, _ := json.Marshal([]any{out.Rules, out.Levels, out.Scopes, out.Private, out.Untrusted})
		out.Hash = regie.HashOf(told)
	}
	return out
}

func fileRule(r config.Rule) approval.FileRule {
	name, below := r.Place()
	return approval.FileRule{
		Tool: r.Tool, Path: name, Below: below, Argv: r.Argv, Cwd: r.Cwd,
		Network: r.Network, URL: r.Address(), Verdict: r.Verdict(), Where: r.Where(),
	}
}

// skillSet returns those that an agent has in a workspace: its own where they are trusted, then the
// user's.
func (p *projects) skillSet(root string) skill.Set {
	var places []skill.Place
	if content, ok := p.trustedContent(root); ok {
		places = ofWorkspace(&content)
	}
	return skill.Load(append(places, p.ofUser()...))
}

// ofWorkspace returns the places of skills in a workspace.
func ofWorkspace(content *trust.Content) (out []skill.Place) {
	for _, dir := range []string{trust.SkillsDir, trust.SharedSkillsDir} {
		files, odd := content.Below(dir)
		place := skill.Place{
			Origin: skill.OfWorkspace, Dir: dir, Odd: odd,
			Read: func(name string, most int64) ([]byte, error) {
				data, ok := content.Data(path.Join(dir, name))
				switch {
				case !ok:
					return nil, regie.Errorf(regie.CodeFileNotFound, "%s does not exist", path.Join(dir, name))
				case int64(len(data)) > most:
					return nil, regie.Errorf(regie.CodeFileTooLarge, "%s has more than %d bytes", path.Join(dir, name),
						most)
				}
				return data, nil
			},
		}
		for _, f := range files {
			place.Files = append(place.Files, skill.BundledFile{Path: f.Path, Size: f.Size})
		}
		out = append(out, place)
	}
	return out
}

// userBounds bound what is looked at for a user's skills.
var userBounds = workspace.TreeBounds{Entries: 50_000, Depth: 12}

// ofUser returns the places of the user's skills. A directory of skills may be a link: it is the
// person's own to lay out. Below it no link is followed.
func (p *projects) ofUser() (out []skill.Place) {
	for _, dir := range p.config.Skills {
		if resolved, err := filepath.EvalSymlinks(dir); err == nil { // most have none
			out = append(out, userPlace(dir, resolved))
		}
	}
	return out
}

func userPlace(dir, resolved string) skill.Place {
	place := skill.Place{Origin: skill.OfUser, Dir: dir, Odd: map[string]regie.Code{}}
	root, err := workspace.Open(resolved)
	if err != nil {
		place.Err = err
		return place
	}
	defer func() { _ = root.Close() }() // it was only read
	entries, err := root.Tree(".", userBounds)
	place.Err = err
	for _, e := range entries {
		if e.Why != "" {
			place.Odd[e.Path] = e.Why
		} else {
			place.Files = append(place.Files, skill.BundledFile{Path: e.Path, Size: e.Size})
		}
	}
	place.Read = func(name string, most int64) ([]byte, error) {
		root, err := workspace.Open(resolved)
		if err != nil {
			return nil, err
		}
		defer func() { _ = root.Close() }() // it was only read
		return root.ReadPlain(name, most)
	}
	return place
}

// ToolsIn adds what only a workspace has: the tools of its MCP servers, and the skills' tool. Where
// nothing runs its servers are named as away.
func (p *projects) ToolsIn(ctx context.Context, root string, base *tool.Registry) *tool.Registry {
	if p.servers != nil {
		return p.Scope(root, p.servers.addTools(ctx, root, base))
	}
	found, _ := p.namedServers(root)
	for i := range found {
		if with, err := withUnstarted(base, found[i].Name); err == nil && mcp.ValidName(found[i].Name) {
			base = with
		}
	}
	return p.Scope(root, base)
}

// Scope adds the skills' tool for a round with skills of its workspace or user. Rounds that begin
// with the same registry share the result.
func (p *projects) Scope(root string, base *tool.Registry) *tool.Registry {
	if set := p.skillSet(root); len(set.Skills) == 0 {
		return base
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.scoped[0] == base {
		return p.scoped[1]
	}
	made, err := skills.Tools(p.skillSet)
	if err != nil {
		return base
	}
	with, err := base.With(skills.Toolkit, made, nil)
	if err != nil { // another tool has the name
		return base
	}
	p.scoped = [2]*tool.Registry{base, with}
	return with
}

// userData returns level 2 of a workspace (spec 6.1). Of a directory that cannot be opened nothing
// is known here: the tools say what is wrong with it.
func (p *projects) userData(dir string, limits regie.Limits, french bool) (said string, known bool) {
	said, _, err := p.Level2(dir, limits, french)
	return said, err == nil
}

// Level2 returns the level 2 of a new run, and a message for people where its document was not read
// in full.
func (p *projects) Level2(dir string, limits regie.Limits, french bool) (string, regie.Sentence, error) {
	root, err := workspace.Open(dir)
	if err != nil {
		return "", regie.Sentence{}, err
	}
	defer func() { _ = root.Close() }() // it was only read
	most := prompt.Level2Bytes(limits)
	var named []prompt.Skill
	for _, s := range p.skillSet(dir).Skills {
		named = append(named, prompt.Skill{Name: s.Name, Description: s.Description})
	}
	list := prompt.SkillList(named, prompt.SkillBytes(most), french)
	document, err := root.Document(prompt.AgentsFile, most-int64(len(list)))
	if p.mask != nil {
		document.Text = []byte(p.mask(dir).Text(string(document.Text)))
	}
	data := prompt.UserData{
		Skills: list, Agents: document.Text, More: document.More,
		Repaired: document.Repaired, French: french,
	}
	var notice regie.Sentence
	switch {
	case err != nil:
		if data.Unread = regie.CodeOf(err); data.Unread == "" {
			data.Unread = regie.CodeToolError
		}
		notice = regie.SayOf("AGENTS.md was not read: %s", prompt.Unread(data.Unread))
	case document.Repaired:
		notice = regie.Say("AGENTS.md is not UTF-8: parts of it could not be read")
	}
	return prompt.Level2(data), notice, nil
}
