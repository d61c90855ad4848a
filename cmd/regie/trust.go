package main

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/sanitize"
)

// newTrustCommand decides about what a workspace holds for agents (decision 32).
func newTrustCommand(env *environment) *cobra.Command {
	var revoke, show, yes, asJSON bool
	cmd := &cobra.Command{
		Use: "trust [DIR]", Args: checkArgCount(0, 1),
		Short: env.T("Trust or distrust a workspace's instructions to agents"),
		Long:  env.T("Show what the files of a workspace give to agents: the settings in .regie/regie.yaml, the skills in .regie/skills and .agents/skills, the slash commands in .regie/commands, and the MCP servers in .mcp.json. AGENTS.md is sent to the model in any case. Once you trust them they are in force, exactly as they are: any change disables them until you have reviewed it. Rules that forbid or ask, and limits that lower, need no trust.\n\nTrust does not carry over to a moved workspace, or to another one at the same path."),
		RunE: func(_ *cobra.Command, args []string) error {
			if revoke {
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
			err = printLines(env, asJSON, seen, nil, func(p *printer) { showProject(env, p, &seen) })
			if err != nil || show || seen.Trusted() {
				return err
			}
			return trustProject(env, &seen, yes)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&revoke, "revoke", false, env.T("revoke it: it has no effect from the next step on"))
	flags.BoolVar(&show, "show", false, env.T("only show it"))
	flags.BoolVarP(&yes, "yes", "y", false, env.T("do not ask"))
	cmd.MarkFlagsMutuallyExclusive("revoke", "show", "yes")
	addJSONFlag(env, cmd, &asJSON)
	return cmd
}

// trustRoot returns the workspace of a named directory, or of the current one.
func trustRoot(env *environment, args []string) (string, error) {
	if len(args) == 0 {
		return env.localWorkspace(true)
	}
	root, _, err := app.Workspace(args[0], os.Getenv("HOME"), true)
	return root, err
}

// trustProject asks, and stores that a workspace is trusted as it is now.
func trustProject(env *environment, seen *app.Project, yes bool) error {
	if err := cmp.Or(seen.Unread, seen.Broken); err != nil || len(seen.Files) == 0 && !yes {
		return err // --yes vouches for the files of a workspace with nothing for agents
	}
	if !yes {
		if err := env.askConfirmation(env.T("Trust exactly this? [y/N] "), env.T("not trusted")); err != nil {
			return err
		}
	}
	if err := app.TrustProject(env.config, seen); err != nil {
		return err
	}
	env.notef("%s is trusted as it is now; regie trust --revoke withdraws that", seen.Root)
	return nil
}

// showProject prints what a workspace holds for agents, and whether it is trusted.
func showProject(env *environment, p *printer, seen *app.Project) {
	p.printLine("%s", env.joinPair(sanitize.Line(seen.Root), env.text.Sentence(seen.Standing())))
	switch {
	case seen.Instructions:
		p.printText("  ! ", "AGENTS.md is sent to the model with every run, whether you trust this workspace or not")
	case len(seen.Files)+len(seen.Odd) == 0:
		p.printText("", "this workspace has nothing for agents: no settings, skills, commands or MCP servers")
	}
	for _, err := range seen.Errors() {
		p.printLine("✗ %s", sanitize.Line(env.text.Error(err)))
	}
	showKeys(env, p, seen)
	showServers(env, p, seen)
	if len(seen.Commands) > 0 {
		p.printText("\n", "Slash commands, which send these messages for you:")
	}
	for i := range seen.Commands {
		c := &seen.Commands[i]
		p.printLine("  %s", env.joinPair("/"+c.Name, sanitize.Line(cmp.Or(c.Description, sanitize.Clip(c.Body, 200)))))
	}
	if len(seen.Skills)+len(seen.Notices) > 0 {
		p.printText("\n", "Skills, which an agent reads when a task is about what they say:")
	}
	for i := range seen.Skills {
		s := &seen.Skills[i]
		p.printLine("  %s", env.joinPair(s.Name+" ("+sanitize.Line(s.Dir)+")", s.Description))
	}
	for i := range seen.Notices {
		p.printLine("%s", noticeLine(env, &seen.Notices[i]))
	}
	showFiles(p, seen)
}

// showKeys prints the settings of the workspace's file, and whether each counts.
func showKeys(env *environment, p *printer, seen *app.Project) {
	if len(seen.Keys) > 0 {
		p.printText("\n", "Settings in %s:", ".regie/regie.yaml")
	}
	if seen.Apart && len(seen.Keys) > 0 {
		p.printText("  ! ", "they are not read: --config or REGIE_CONFIG names another file")
	}
	for _, k := range seen.Keys {
		about := sanitize.Line(k.Key) + " (" + env.T("line %d", k.Line) + ")"
		if !seen.Apart {
			about = env.joinPair(about, env.text.Sentence(k.Effect(seen.Trusted())))
		}
		p.printLine("  %s", about)
		if k.Use != config.UseNever {
			for line := range strings.Lines(k.Text) {
				p.printLine("      │ %s", sanitize.Line(strings.TrimRight(line, "\n")))
			}
		}
	}
	if seen.Allowing > 0 && !seen.Apart {
		p.printText("  ! ", "rules that allow are ignored in a workspace's file: %d; answer \"always\", or write them into your own regie.yaml", seen.Allowing)
	}
}

// showServers prints the MCP servers that a workspace names, and what each would run.
func showServers(env *environment, p *printer, seen *app.Project) {
	if len(seen.Servers) > 0 {
		p.printText("\n", "MCP servers in %s, which start with a run once it is trusted, as you and unconfined:", ".mcp.json")
	}
	if seen.ServersBroken != nil {
		p.printLine("  ✗ %s", sanitize.Line(env.text.Error(seen.ServersBroken)))
	}
	for i := range seen.Servers {
		s := &seen.Servers[i]
		p.printLine("  %s", sanitize.Line(env.joinPair(s.Name, s.Starts)))
		if s.Dir != "" {
			p.printText("      ", "in %s", sanitize.Line(s.Dir))
		}
		if len(s.Variables) > 0 {
			p.printText("      ", "gets from your environment: %s", sanitize.Line(strings.Join(s.Variables, ", ")))
		}
		if s.Yours || s.Disabled {
			p.printText("      ", "ignored: the file disables it, or your own settings have a server of this name")
		} else if s.Why != nil {
			p.printLine("      ✗ %s", sanitize.Line(env.text.Error(s.Why)))
		}
	}
}

// showFiles prints the files to be trusted; against an earlier decision the difference.
func showFiles(p *printer, seen *app.Project) {
	if seen.State == app.StateChanged {
		p.printText("\n", "What has changed since it was trusted (+ new, ~ changed, - gone):")
		for _, change := range seen.Changes {
			p.printLine("  %s %s", change.What.Mark(), sanitize.Line(change.Path))
		}
	}
	if len(seen.Files) == 0 || seen.Unread != nil {
		return
	}
	p.printText("\n", "Files: %d, SHA-256 %s", len(seen.Files), seen.SHA256.String())
	for _, f := range seen.Files {
		p.printLine("  %s  %9d  %s", f.SHA256.String()[:12], f.Size, sanitize.Line(f.Path))
	}
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

// tellProject warns, when a command begins, of what in a workspace does not count.
func tellProject(env *environment, root string) {
	seen, err := app.LookProject(env.config, root)
	if err != nil { // the run reports it
		return
	}
	for _, err := range []error{seen.Damaged, seen.Unread} {
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			env.notef("! the skills, settings and MCP servers of this workspace are not trusted and are ignored: %s", env.text.Error(err))
		}
	}
	if skills, settings, servers := seen.Dormant(); skills+settings+servers > 0 && seen.Unread == nil {
		env.notef("! this workspace has skills (%d), settings (%d) and MCP servers (%d) for agents; %s; they are ignored until you review them with regie trust",
			skills, settings, servers, env.text.Sentence(seen.Standing()))
	}
	if len(seen.Commands) > 0 && !seen.Trusted() && seen.Unread == nil {
		env.notef("! slash commands of this workspace that do not count until you trust them: %d; regie trust shows them",
			len(seen.Commands))
	}
	if refused := seen.Refused(); len(refused)+seen.Allowing > 0 && !seen.Apart {
		env.notef("! some settings in .regie/regie.yaml are ignored in a workspace's file: regie trust --show says where they belong")
	}
}
