package main

import (
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

type trustFlags struct {
	list, revoke, show, yes, asJSON bool
}

// trustCommand is how a person decides about what a workspace holds for agents (decision 32).
func (c *command) trustCommand() *cobra.Command {
	var f trustFlags
	cmd := &cobra.Command{
		Use: "trust [DIR]", Args: usage(cobra.MaximumNArgs(1)),
		Short: c.text.T("Decide whether what a workspace's files say to agents counts"),
		Long:  c.text.T("Show what the files of a workspace would say to agents: the settings in .regie/regie.yaml, the skills in .regie/skills and .agents/skills, and the MCP servers in .mcp.json. Once you trust them they count, exactly as they are: any change makes them inert again, until you have looked at it. Rules that forbid or ask, and limits that lower, count without that.\n\nOf a workspace that was moved, or another one at the same path, nothing is trusted."),
		RunE: func(_ *cobra.Command, args []string) error {
			if f.list && (f.revoke || f.show || f.yes || len(args) > 0) || f.revoke &&
				(f.show || f.yes) || f.show && f.yes {
				return regie.Errorf(codeUsage,
					"--list, --revoke, --show and --yes exclude each other, and --list takes no directory")
			}
			switch {
			case f.list:
				return c.listTrust(f.asJSON)
			case f.revoke:
				return c.revokeTrust(args)
			default:
				return c.trust(args, f)
			}
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.list, "list", false, c.text.T("the workspaces that are trusted"))
	flags.BoolVar(&f.revoke, "revoke", false, c.text.T("take it back: from the next step on nothing of it counts"))
	flags.BoolVar(&f.show, "show", false, c.text.T("only show it"))
	flags.BoolVarP(&f.yes, "yes", "y", false, c.text.T("do not ask"))
	flags.BoolVar(&f.asJSON, "json", false, c.text.T("print JSON"))
	return cmd
}

// workspaceOf is the workspace of a directory that was named, or of the current one.
func (c *command) workspaceOf(args []string) (string, error) {
	if len(args) > 0 {
		root, _, err := app.Workspace(args[0], os.Getenv("HOME"), true)
		return root, err
	}
	root, err := c.directory(true)
	return root, err
}

func (c *command) trust(args []string, f trustFlags) error {
	root, err := c.workspaceOf(args)
	if err != nil {
		return err
	}
	seen, err := app.LookProject(c.config, root)
	if err != nil {
		return err
	}
	switch {
	case f.asJSON:
		err = writeJSON(c.stdout, seen)
	default:
		err = c.showProject(&seen)
	}
	switch {
	case err != nil || f.show || seen.Trusted():
		return err
	case seen.Unread != nil:
		return seen.Unread
	case seen.Broken != nil:
		return seen.Broken
	case len(seen.Files) == 0: // there is nothing to decide about
		return nil
	}
	if !f.yes {
		if err := c.agreed(c.text.T("Trust exactly this? [y/N] "), c.text.T("not trusted")); err != nil {
			return err
		}
	}
	if err := seen.Trust(c.config); err != nil {
		return err
	}
	_, err = fmt.Fprintln(c.stderr, plain.Strip(
		c.text.T("%s is trusted as it is now; regie trust --revoke takes that back", root)))
	return err
}

// showProject prints what a workspace holds for agents, and how it stands.
func (c *command) showProject(seen *app.Project) error {
	p := &printer{w: c.stdout}
	nothing := len(seen.Files) == 0 && len(seen.Odd) == 0 && seen.Unread == nil
	standing := c.standing(seen)
	if nothing && seen.TrustedAt.IsZero() { // then there is nothing that could be trusted or not
		standing = c.text.T("nothing is there that would say anything to agents")
	}
	p.line("%s", c.pair(plain.Line(seen.Root), standing))
	if seen.Damaged != nil {
		p.line("! %s", c.text.Error(seen.Damaged))
	}
	if nothing && !seen.TrustedAt.IsZero() {
		p.line("%s", c.text.T("nothing is there that would say anything to agents"))
		c.showChanges(p, seen)
	}
	if nothing {
		return p.err
	}
	c.showKeys(p, seen)
	c.showServers(p, seen)
	if len(seen.Skills)+len(seen.Notices) > 0 {
		p.line("")
		p.line("%s", c.text.T("Skills, which an agent reads when a task is about what they say:"))
	}
	for i := range seen.Skills {
		s := &seen.Skills[i]
		p.line("  %s", c.pair(s.Name+" ("+plain.Line(s.Dir)+")", s.Description))
	}
	for i := range seen.Notices {
		c.notice(p, &seen.Notices[i])
	}
	if len(seen.Odd) > 0 {
		p.line("")
		p.line("%s", c.text.T("Not read:"))
	}
	for _, name := range slices.Sorted(maps.Keys(seen.Odd)) {
		p.line("  %s", c.pair(plain.Line(name), c.odd(seen.Odd[name])))
	}
	if seen.Unread != nil {
		return p.err
	}
	c.showFiles(p, seen)
	return p.err
}

// pair puts what is said of something behind it.
func (c *command) pair(about, said string) string { return c.text.T("%s: %s", about, said) }

// standing says how a workspace stands.
func (c *command) standing(seen *app.Project) string {
	switch seen.State {
	case app.StateTrusted:
		return c.text.T("trusted since %s", seen.TrustedAt.Local().Format("2006-01-02 15:04"))
	case app.StateChanged:
		return c.text.T("not trusted: it has changed since %s", seen.TrustedAt.Local().Format("2006-01-02 15:04"))
	case app.StateElsewhere:
		return c.text.T("not trusted: another directory stands here than the one that was trusted")
	default:
		return c.text.T("not trusted")
	}
}

// showKeys prints what the file of settings says, with what becomes of it.
func (c *command) showKeys(p *printer, seen *app.Project) {
	if seen.Broken == nil && len(seen.Keys) == 0 {
		return
	}
	p.line("")
	p.line("%s", c.text.T("Settings in %s:", ".regie/regie.yaml"))
	switch {
	case seen.Broken != nil:
		p.line("  ✗ %s", c.text.Error(seen.Broken))
	case seen.Apart:
		p.line("  ! %s", c.text.T("they are not read: another file is named with --config or REGIE_CONFIG"))
	}
	for _, k := range seen.Keys {
		about := plain.Line(k.Key) + " (" + c.text.T("line %d", k.Line) + ")"
		if !seen.Apart {
			about = c.pair(about, c.use(k, seen.Trusted()))
		}
		p.line("  %s", about)
		if k.Use != config.UseNever {
			for line := range strings.Lines(k.Text) {
				p.line("      │ %s", plain.Line(strings.TrimRight(line, "\n")))
			}
		}
	}
	if seen.Allowing > 0 && !seen.Apart {
		p.line("  ! %s",
			c.text.T(
				"rules that allow are not taken from a workspace's file: %d; an answer \"always\" makes one, or your own regie.yaml", seen.Allowing))
	}
}

// showServers prints the MCP servers that a workspace names, with what would run.
func (c *command) showServers(p *printer, seen *app.Project) {
	if len(seen.Servers) == 0 && len(seen.ServersIgnored) == 0 && seen.ServersBroken == nil {
		return
	}
	p.line("")
	if seen.Trusted() {
		p.line("%s", c.text.T("MCP servers in %s, which start with a run, as you and unconfined:", ".mcp.json"))
	} else {
		p.line("%s", c.text.T("MCP servers in %s, which start with a run once it is trusted, as you and unconfined:",
			".mcp.json"))
	}
	if len(seen.Servers) == 0 && seen.ServersBroken == nil {
		p.line("  %s", c.text.T("none: they stand below mcpServers"))
	}
	if len(seen.ServersIgnored) > 0 {
		p.line("  %s", plain.Line(c.text.T("means nothing here: %s", strings.Join(seen.ServersIgnored, ", "))))
	}
	if seen.ServersBroken != nil {
		p.line("  ✗ %s", plain.Line(c.text.Error(seen.ServersBroken)))
	}
	for i := range seen.Servers {
		s := &seen.Servers[i]
		what := s.URL
		if s.Command != "" {
			what = shellWords(append([]string{s.Command}, s.Args...))
		}
		p.line("  %s", plain.Line(c.pair(s.Name, what)))
		if s.Dir != "" {
			p.line("      %s", plain.Line(c.text.T("in %s", s.Dir)))
		}
		if len(s.Variables) > 0 {
			p.line("      %s", plain.Line(c.text.T("gets from your environment: %s", strings.Join(s.Variables, ", "))))
		}
		if len(s.Ignored) > 0 {
			p.line("      %s", plain.Line(c.text.T("means nothing here: %s", strings.Join(s.Ignored, ", "))))
		}
		switch {
		case s.Yours:
			p.line("      %s", c.text.T("is not used: your own settings name a server so"))
		case s.Disabled:
			p.line("      %s", c.text.T("is turned off by the file"))
		case s.Why != nil:
			p.line("      ✗ %s", plain.Line(c.text.Error(s.Why)))
		}
	}
}

// shellWords shows a command with its arguments told apart.
func shellWords(words []string) string {
	out := make([]string, len(words))
	for i, word := range words {
		if out[i] = word; word == "" || strings.ContainsAny(word, " \t\n\"'\\$`;&|<>(){}*?#~") {
			out[i] = strconv.Quote(word)
		}
	}
	return strings.Join(out, " ")
}

// use says what becomes of a key of a workspace's file.
func (c *command) use(k config.ProjectKey, trusted bool) string {
	switch {
	case k.Use == config.UseTrusted && trusted:
		return c.text.T("counts, because it is trusted")
	case k.Use == config.UseNarrows:
		return c.text.T("counts as it stands, because it can only forbid, ask or lower")
	case k.Use == config.UseTrusted:
		return c.text.T("counts once it is trusted")
	case k.Why == config.BelongsAnswer:
		return c.text.T("is not taken from a workspace's file: it would allow something; an answer \"always\" does that, or your own regie.yaml")
	case k.Why == config.BelongsLower:
		return c.text.T(
			"is not taken from a workspace's file: it would lower what is asked about; put it into your own regie.yaml")
	default:
		file, _ := config.Paths(os.Getenv, "")
		return c.text.T("is not taken from a workspace's file: put it into %s", file)
	}
}

// odd says why something is not read.
func (c *command) odd(why regie.Code) string {
	switch why {
	case regie.CodePathOutside:
		return c.text.T("a link, and links are not followed here")
	case regie.CodeSpecialFile:
		return c.text.T("not a regular file")
	case regie.CodePathProtected:
		return c.text.T("it may hold a secret")
	case regie.CodeNoPermission:
		return c.text.T("this program may not read it")
	default:
		return c.text.T("it cannot be read")
	}
}

// showFiles prints what is decided about, file by file; against an earlier decision the difference.
func (c *command) showFiles(p *printer, seen *app.Project) {
	var size int64
	sizes := map[string]int64{}
	for _, f := range seen.Files {
		size += f.Size
		sizes[f.Path] = f.Size
	}
	c.showChanges(p, seen)
	if len(seen.Files) == 0 {
		return
	}
	p.line("")
	p.line("%s", c.text.T("Files: %d, %d bytes, SHA-256 %s", len(seen.Files), size, seen.SHA256.String()))
	for _, f := range seen.Files {
		p.line("  %s  %9d  %s", f.SHA256.String()[:12], f.Size, plain.Line(f.Path))
	}
	if !seen.Trusted() && len(seen.Skills) > 0 {
		p.line("%s", c.text.T("Read what the skills say before you trust them: an agent follows it."))
	}
}

// showChanges prints how a workspace differs from what was trusted.
func (c *command) showChanges(p *printer, seen *app.Project) {
	if seen.State != app.StateChanged {
		return
	}
	p.line("")
	p.line("%s", c.text.T("What has changed since it was trusted (+ new, ~ changed, - gone):"))
	for _, change := range seen.Changes {
		p.line("  %s %s", change.What.Mark(), plain.Line(change.Path))
	}
}

func (c *command) listTrust(asJSON bool) error {
	records, damaged, err := app.TrustList(c.config)
	if err != nil {
		return err
	}
	if asJSON {
		if records == nil {
			records = []app.TrustRecord{}
		}
		return writeJSON(c.stdout, records)
	}
	p := &printer{w: c.stdout}
	if len(records) == 0 {
		p.line("%s", c.text.T("no workspace is trusted"))
	}
	for i := range records {
		r := &records[i]
		state := c.text.T("the directory is gone")
		if seen, err := app.LookProject(c.config, r.Root); err == nil {
			state = c.standing(&seen)
		}
		p.line("%s  %s (%s, %s)", plain.Line(r.Root), state, c.text.T("files: %d", len(r.Files)), plain.Line(r.By))
	}
	if damaged > 0 {
		p.line("! %s", c.text.T("decisions that are damaged, and do not count: %d", damaged))
	}
	return p.err
}

// revokeTrust takes a decision back, also of a directory that is gone.
func (c *command) revokeTrust(args []string) error {
	root, err := c.workspaceOf(args)
	if regie.CodeOf(err) == regie.CodeFileNotFound && len(args) > 0 {
		root, err = filepath.Abs(args[0])
	}
	if err != nil {
		return err
	}
	if err := app.Distrust(c.config, root); err != nil {
		return err
	}
	_, err = fmt.Fprintln(c.stdout, plain.Strip(c.text.T("%s is not trusted any more", root)))
	return err
}

// tellProject says once, when a command begins, what of a workspace does not count, and why.
func (c *command) tellProject(root string) {
	seen, err := app.LookProject(c.config, root)
	if err != nil { // who works there says so
		return
	}
	tell := func(text string) { fmt.Fprintln(c.stderr, plain.Strip("! "+text)) }
	if seen.Damaged != nil {
		tell(c.text.Error(seen.Damaged))
	}
	skills, settings, servers := seen.Dormant()
	switch {
	case seen.Unread != nil && !errors.Is(seen.Unread, fs.ErrNotExist):
		tell(c.text.T("what this workspace holds for agents is not trusted and does not count: %s",
			c.text.Error(seen.Unread)))
	case skills+settings+servers == 0:
	case seen.State == app.StateChanged:
		tell(c.text.T(
			"what this workspace holds for agents has changed since it was trusted, and does not count until you look at it with regie trust: %s", changes(&seen)))
	case seen.State == app.StateElsewhere:
		tell(c.text.T("another directory stands here than the one that was trusted: what it holds for agents does not count until you look at it with regie trust"))
	case servers > 0:
		tell(c.text.T(
			"this workspace holds skills (%d), settings (%d) and MCP servers (%d) for agents, which do not count until you trust them: regie trust shows them, with what they would run", skills, settings, servers))
	default:
		tell(c.text.T(
			"this workspace holds skills (%d) and settings (%d) for agents, which do not count until you trust them: regie trust shows them", skills, settings))
	}
	var refused []string
	for _, k := range seen.Refused() {
		refused = append(refused, k.Key)
	}
	if len(refused) > 0 && !seen.Apart {
		tell(c.text.T("not taken from .regie/regie.yaml: %s; regie trust --show says where it belongs",
			plain.Line(strings.Join(refused, ", "))))
	}
	if seen.Allowing > 0 && !slices.Contains(refused, "approvals.rules") && !seen.Apart {
		tell(c.text.T(
			"rules that allow are not taken from a workspace's file: %d; an answer \"always\" makes one, or your own regie.yaml", seen.Allowing))
	}
}

// changes names a few of the differences.
func changes(seen *app.Project) string {
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
