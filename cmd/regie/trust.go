package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/plain"
)

// newTrustCommand decides about what a workspace holds for agents (decision 32).
func newTrustCommand(env *environment) *cobra.Command {
	var list, revoke, show, yes, asJSON bool
	cmd := &cobra.Command{
		Use: "trust [DIR]", Args: arguments(0, 1),
		Short: env.T("Decide whether what a workspace's files say to agents counts"),
		Long:  env.T("Show what the files of a workspace would say to agents: the settings in .regie/regie.yaml, the skills in .regie/skills and .agents/skills, and the MCP servers in .mcp.json. Once you trust them they count, exactly as they are: any change makes them inert again, until you have looked at it. Rules that forbid or ask, and limits that lower, count without that.\n\nOf a workspace that was moved, or another one at the same path, nothing is trusted."),
		RunE: func(_ *cobra.Command, args []string) error {
			switch {
			case list && len(args) > 0:
				return regie.Errorf(codeUsage, "--list takes no directory")
			case list:
				return listTrust(env, asJSON)
			case revoke:
				return revokeTrust(env, args)
			}
			root, err := trustRoot(env, args)
			if err != nil {
				return err
			}
			seen, err := app.LookProject(env.config, root)
			if err != nil {
				return err
			}
			if asJSON {
				err = writeJSON(env.stdout, seen)
			} else {
				err = showProject(env, &seen)
			}
			if err != nil || show || seen.Trusted() {
				return err
			}
			return trustProject(env, &seen, yes)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&list, "list", false, env.T("the workspaces that are trusted"))
	flags.BoolVar(&revoke, "revoke", false, env.T("take it back: from the next step on nothing of it counts"))
	flags.BoolVar(&show, "show", false, env.T("only show it"))
	flags.BoolVarP(&yes, "yes", "y", false, env.T("do not ask"))
	cmd.MarkFlagsMutuallyExclusive("list", "revoke", "show", "yes")
	addJSONFlag(env, cmd, &asJSON)
	return cmd
}

// trustRoot is the workspace of a named directory, or of the current one.
func trustRoot(env *environment, args []string) (string, error) {
	if len(args) == 0 {
		return env.localWorkspace(true)
	}
	root, _, err := app.Workspace(args[0], os.Getenv("HOME"), true)
	return root, err
}

// trustProject asks, and stores that a workspace is trusted as it is now.
func trustProject(env *environment, seen *app.Project, yes bool) error {
	switch {
	case seen.Unread != nil:
		return seen.Unread
	case seen.Broken != nil:
		return seen.Broken
	case len(seen.Files) == 0:
		return nil
	}
	if !yes {
		if err := env.confirm(env.T("Trust exactly this? [y/N] "), env.T("not trusted")); err != nil {
			return err
		}
	}
	if err := seen.Trust(env.config); err != nil {
		return err
	}
	env.notef("%s is trusted as it is now; regie trust --revoke takes that back", seen.Root)
	return nil
}

// showProject prints what a workspace holds for agents, and whether it is trusted.
func showProject(env *environment, seen *app.Project) error {
	p := env.printer()
	nothing := len(seen.Files) == 0 && len(seen.Odd) == 0 && seen.Unread == nil
	if nothing && seen.TrustedAt.IsZero() {
		p.line("%s", env.pair(plain.Line(seen.Root), env.T("nothing is there that would say anything to agents")))
	} else {
		p.line("%s", env.pair(plain.Line(seen.Root), describeTrust(env, seen)))
	}
	if seen.Damaged != nil {
		p.line("! %s", env.text.Error(seen.Damaged))
	}
	if nothing {
		if !seen.TrustedAt.IsZero() {
			p.textf("", "nothing is there that would say anything to agents")
			showChanges(p, seen)
		}
		return p.err
	}
	showKeys(env, p, seen)
	showServers(env, p, seen)
	if len(seen.Skills)+len(seen.Notices) > 0 {
		p.textf("\n", "Skills, which an agent reads when a task is about what they say:")
	}
	for i := range seen.Skills {
		s := &seen.Skills[i]
		p.line("  %s", env.pair(s.Name+" ("+plain.Line(s.Dir)+")", s.Description))
	}
	for i := range seen.Notices {
		p.line("%s", noticeLine(env, &seen.Notices[i]))
	}
	if len(seen.Odd) > 0 {
		p.textf("\n", "Not read:")
	}
	for _, name := range slices.Sorted(maps.Keys(seen.Odd)) {
		p.line("  %s", env.pair(plain.Line(name), describeUnread(env, seen.Odd[name])))
	}
	if seen.Unread == nil {
		showFiles(p, seen)
	}
	return p.err
}

// describeTrust says whether a workspace is trusted.
func describeTrust(env *environment, seen *app.Project) string {
	switch seen.State {
	case app.StateTrusted:
		return env.T("trusted since %s", seen.TrustedAt.Local().Format("2006-01-02 15:04"))
	case app.StateChanged:
		return env.T("not trusted: it has changed since %s", seen.TrustedAt.Local().Format("2006-01-02 15:04"))
	case app.StateElsewhere:
		return env.T("not trusted: another directory stands here than the one that was trusted")
	default:
		return env.T("not trusted")
	}
}

// showKeys prints the settings of the workspace's file, and whether each counts.
func showKeys(env *environment, p *printer, seen *app.Project) {
	if seen.Broken == nil && len(seen.Keys) == 0 {
		return
	}
	p.textf("\n", "Settings in %s:", ".regie/regie.yaml")
	switch {
	case seen.Broken != nil:
		p.line("  ✗ %s", env.text.Error(seen.Broken))
	case seen.Apart:
		p.textf("  ! ", "they are not read: another file is named with --config or REGIE_CONFIG")
	}
	for _, k := range seen.Keys {
		about := plain.Line(k.Key) + " (" + env.T("line %d", k.Line) + ")"
		if !seen.Apart {
			about = env.pair(about, describeUse(env, k, seen.Trusted()))
		}
		p.line("  %s", about)
		if k.Use != config.UseNever {
			for line := range strings.Lines(k.Text) {
				p.line("      │ %s", plain.Line(strings.TrimRight(line, "\n")))
			}
		}
	}
	if seen.Allowing > 0 && !seen.Apart {
		p.textf("  ! ", "rules that allow are not taken from a workspace's file: %d; an answer \"always\" makes one, or your own regie.yaml", seen.Allowing)
	}
}

// showServers prints the MCP servers that a workspace names, and what each would run.
func showServers(env *environment, p *printer, seen *app.Project) {
	if len(seen.Servers) == 0 && seen.ServersBroken == nil {
		return
	}
	if seen.Trusted() {
		p.textf("\n", "MCP servers in %s, which start with a run, as you and unconfined:", ".mcp.json")
	} else {
		p.textf("\n", "MCP servers in %s, which start with a run once it is trusted, as you and unconfined:", ".mcp.json")
	}
	if seen.ServersBroken != nil {
		p.line("  ✗ %s", plain.Line(env.text.Error(seen.ServersBroken)))
	}
	for i := range seen.Servers {
		s := &seen.Servers[i]
		what := s.URL
		if s.Command != "" {
			what = shellWords(append([]string{s.Command}, s.Args...))
		}
		p.line("  %s", plain.Line(env.pair(s.Name, what)))
		if s.Dir != "" {
			p.textf("      ", "in %s", plain.Line(s.Dir))
		}
		if len(s.Variables) > 0 {
			p.textf("      ", "gets from your environment: %s", plain.Line(strings.Join(s.Variables, ", ")))
		}
		switch {
		case s.Yours:
			p.textf("      ", "is not used: your own settings name a server so")
		case s.Disabled:
			p.textf("      ", "is turned off by the file")
		case s.Why != nil:
			p.line("      ✗ %s", plain.Line(env.text.Error(s.Why)))
		}
	}
}

// describeUse says what becomes of a key of a workspace's file.
func describeUse(env *environment, k config.ProjectKey, trusted bool) string {
	switch {
	case k.Use == config.UseTrusted && trusted:
		return env.T("counts, because it is trusted")
	case k.Use == config.UseNarrows:
		return env.T("counts as it stands, because it can only forbid, ask or lower")
	case k.Use == config.UseTrusted:
		return env.T("counts once it is trusted")
	case k.Why == config.BelongsAnswer:
		return env.T("is not taken from a workspace's file: it would allow something; an answer \"always\" does that, or your own regie.yaml")
	case k.Why == config.BelongsLower:
		return env.T(
			"is not taken from a workspace's file: it would lower what is asked about; put it into your own regie.yaml")
	default:
		file, _ := config.Paths(os.Getenv, "")
		return env.T("is not taken from a workspace's file: put it into %s", file)
	}
}

// describeUnread says why a file is not read.
func describeUnread(env *environment, why regie.Code) string {
	return cmp.Or(map[regie.Code]string{
		regie.CodePathOutside:   env.T("a link, and links are not followed here"),
		regie.CodeSpecialFile:   env.T("not a regular file"),
		regie.CodePathProtected: env.T("it may hold a secret"),
		regie.CodeNoPermission:  env.T("this program may not read it"),
	}[why], env.T("it cannot be read"))
}

// showFiles prints the files to be trusted; against an earlier decision the difference.
func showFiles(p *printer, seen *app.Project) {
	showChanges(p, seen)
	if len(seen.Files) == 0 {
		return
	}
	var size int64
	for _, f := range seen.Files {
		size += f.Size
	}
	p.textf("\n", "Files: %d, %d bytes, SHA-256 %s", len(seen.Files), size, seen.SHA256.String())
	for _, f := range seen.Files {
		p.line("  %s  %9d  %s", f.SHA256.String()[:12], f.Size, plain.Line(f.Path))
	}
	if !seen.Trusted() && len(seen.Skills) > 0 {
		p.textf("", "Read what the skills say before you trust them: an agent follows it.")
	}
}

// showChanges prints how a workspace differs from what was trusted.
func showChanges(p *printer, seen *app.Project) {
	if seen.State != app.StateChanged {
		return
	}
	p.textf("\n", "What has changed since it was trusted (+ new, ~ changed, - gone):")
	for _, change := range seen.Changes {
		p.line("  %s %s", change.What.Mark(), plain.Line(change.Path))
	}
}

func listTrust(env *environment, asJSON bool) error {
	records, damaged, err := app.TrustList(env.config)
	if err != nil || asJSON {
		return orJSON(env, append([]app.TrustRecord{}, records...), err)
	}
	p := env.printer()
	if len(records) == 0 {
		p.textf("", "no workspace is trusted")
	}
	for i := range records {
		r := &records[i]
		state := env.T("the directory is gone")
		if seen, err := app.LookProject(env.config, r.Root); err == nil {
			state = describeTrust(env, &seen)
		}
		p.line("%s  %s (%s, %s)", plain.Line(r.Root), state, env.T("files: %d", len(r.Files)), plain.Line(r.By))
	}
	if damaged > 0 {
		p.textf("! ", "decisions that are damaged, and do not count: %d", damaged)
	}
	return p.err
}

// revokeTrust takes a decision back, also of a directory that is gone.
func revokeTrust(env *environment, args []string) error {
	root, err := trustRoot(env, args)
	if regie.CodeOf(err) == regie.CodeFileNotFound && len(args) > 0 {
		root, err = filepath.Abs(args[0])
	}
	if err == nil {
		err = app.Distrust(env.config, root)
	}
	if err != nil {
		return err
	}
	return env.printf("%s is not trusted any more", root)
}

// tellProject warns, when a command begins, of what in a workspace does not count, and why.
func tellProject(env *environment, root string) {
	seen, err := app.LookProject(env.config, root)
	if err != nil { // the run reports it
		return
	}
	warn := func(text string) { fmt.Fprintln(env.stderr, plain.Strip("! "+text)) }
	if seen.Damaged != nil {
		warn(env.text.Error(seen.Damaged))
	}
	skills, settings, servers := seen.Dormant()
	switch {
	case seen.Unread != nil && !errors.Is(seen.Unread, fs.ErrNotExist):
		warn(env.T("what this workspace holds for agents is not trusted and does not count: %s", env.text.Error(seen.Unread)))
	case skills+settings+servers == 0:
	case seen.State == app.StateChanged:
		warn(env.T("what this workspace holds for agents has changed since it was trusted, and does not count until you look at it with regie trust: %s",
			someChanges(&seen)))
	case seen.State == app.StateElsewhere:
		warn(env.T("another directory stands here than the one that was trusted: what it holds for agents does not count until you look at it with regie trust"))
	case servers > 0:
		warn(env.T("this workspace holds skills (%d), settings (%d) and MCP servers (%d) for agents, which do not count until you trust them: regie trust shows them, with what they would run",
			skills, settings, servers))
	default:
		warn(env.T("this workspace holds skills (%d) and settings (%d) for agents, which do not count until you trust them: regie trust shows them",
			skills, settings))
	}
	if seen.Apart {
		return
	}
	var refused []string
	for _, k := range seen.Refused() {
		refused = append(refused, k.Key)
	}
	if len(refused) > 0 {
		warn(env.T("not taken from .regie/regie.yaml: %s; regie trust --show says where it belongs",
			plain.Line(strings.Join(refused, ", "))))
	}
	if seen.Allowing > 0 && !slices.Contains(refused, "approvals.rules") {
		warn(env.T("rules that allow are not taken from a workspace's file: %d; an answer \"always\" makes one, or your own regie.yaml",
			seen.Allowing))
	}
}

// someChanges lists the first differences.
func someChanges(seen *app.Project) string {
	const most = 5
	var out []string
	for _, change := range seen.Changes[:min(most, len(seen.Changes))] {
		out = append(out, change.What.Mark()+" "+plain.Line(change.Path))
	}
	if more := len(seen.Changes) - most; more > 0 {
		out = append(out, "… +"+strconv.Itoa(more))
	}
	return strings.Join(out, ", ")
}
