package main

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/config"
)

// manCommand writes one manual page for each command, in the user's language (spec 11.5).
func (c *command) manCommand() *cobra.Command {
	return &cobra.Command{
		Use: "man DIR", Args: usage(cobra.ExactArgs(1)), Short: c.text.T("Write the manual pages into a directory"),
		PersistentPreRunE: func(*cobra.Command, []string) error { return nil },
		RunE: func(cmd *cobra.Command, args []string) error {
			failed := os.MkdirAll(args[0], 0o755)
			each(cmd.Root(), func(one *cobra.Command) {
				if failed != nil || !one.IsAvailableCommand() {
					return
				}
				page, err := c.manualPage(one)
				if failed = err; failed == nil {
					name := strings.ReplaceAll(one.CommandPath(), " ", "-") + ".1"
					failed = os.WriteFile(filepath.Join(args[0], name), page, 0o644)
				}
			})
			if failed != nil {
				return regie.Errorf(regie.CodeNoPermission, "%s cannot be written: %v", args[0], failed)
			}
			return nil
		},
	}
}

// manualPage returns the page of a command. Cobra's headings are English; they are replaced.
func (c *command) manualPage(cmd *cobra.Command) ([]byte, error) {
	cmd.DisableAutoGenTag = true
	cmd.Long = cmp.Or(cmd.Long, cmd.Short) + "\n\n" + c.manualSections(cmd)
	var page bytes.Buffer
	if err := doc.GenMan(cmd, &doc.GenManHeader{Source: "regie " + version, Manual: "Regie"}, &page); err != nil {
		return nil, err
	}
	out := page.Bytes()
	for english, title := range map[string]string{
		"NAME": c.text.T("Name"), "SYNOPSIS": c.text.T("Synopsis"), "DESCRIPTION": c.text.T("Description"),
		"OPTIONS": c.text.T("Options"), "SEE ALSO": c.text.T("See also"),
		"OPTIONS INHERITED FROM PARENT COMMANDS": c.text.T("Options of every command"),
	} {
		out = bytes.Replace(out, []byte(".SH "+english+"\n"), []byte(".SH "+strings.ToUpper(title)+"\n"), 1)
	}
	return out, nil
}

// manualSections returns, as Markdown, what a page has beside cobra's own sections.
func (c *command) manualSections(cmd *cobra.Command) string {
	var b strings.Builder
	section := func(title string) { fmt.Fprintf(&b, "# %s\n", strings.ToUpper(title)) }
	entry := func(name any, says string) { fmt.Fprintf(&b, "**%v**\n\t%s\n\n", name, says) }
	if cmd.HasAvailableSubCommands() {
		section(c.text.T("Commands"))
	}
	for _, one := range cmd.Commands() {
		if one.IsAvailableCommand() {
			entry(one.Name(), one.Short)
		}
	}
	if cmd.HasParent() {
		return b.String()
	}
	section(c.text.T("Exit status"))
	entry(exitDone, c.text.T("done"))
	entry(exitError, c.text.T("an error"))
	entry(exitUsage, c.text.T("the command line, or the settings, cannot be meant"))
	entry(exitNoModel, c.text.T("no model is configured"))
	entry(exitParked, c.text.T("the run waits: for an approval, an answer, the network"))
	entry(exitDenied, c.text.T("the run ended with an action that was not allowed"))
	entry(exitLimit, c.text.T("a limit was reached"))
	entry(exitTimeout, c.text.T("the time of --timeout is over; the run is paused"))
	entry(exitInterrupted, c.text.T("interrupted"))
	section(c.text.T("Environment"))
	fmt.Fprintf(&b, "%s\n\n", strings.Join(config.Variables(), ", "))
	section(c.text.T("Files"))
	entry(config.SystemFile, c.text.T("the settings of the machine"))
	entry("~/.config/regie/regie.yaml", c.text.T("your settings; see regie config show --origin"))
	entry("~/.config/regie/setup.yaml", c.text.T("what regie setup has stored, with keys; for you alone"))
	entry(".regie/regie.yaml, .mcp.json", c.text.T("what a workspace says; see regie trust"))
	return b.String()
}
