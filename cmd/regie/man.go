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

// newManCommand writes a manual page for each command, in the user's language (spec 11.5).
func newManCommand(env *environment) *cobra.Command {
	return &cobra.Command{
		Use: "man DIR", Args: arguments(1, 1), Short: env.T("Write the manual pages into a directory"),
		PersistentPreRunE: skipConfig,
		RunE: func(cmd *cobra.Command, args []string) error {
			failed := os.MkdirAll(args[0], 0o755)
			visitCommands(cmd.Root(), func(one *cobra.Command) {
				if failed != nil || !one.IsAvailableCommand() {
					return
				}
				page, err := manualPage(env, one)
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

// manualPage returns the page of a command. It replaces cobra's English headings.
func manualPage(env *environment, cmd *cobra.Command) ([]byte, error) {
	cmd.DisableAutoGenTag = true
	cmd.Long = cmp.Or(cmd.Long, cmd.Short) + "\n\n" + manualSections(env, cmd)
	var page bytes.Buffer
	if err := doc.GenMan(cmd, &doc.GenManHeader{Source: "regie " + version, Manual: "Regie"}, &page); err != nil {
		return nil, err
	}
	out := page.Bytes()
	for english, title := range map[string]string{
		"NAME": env.T("Name"), "SYNOPSIS": env.T("Synopsis"), "DESCRIPTION": env.T("Description"),
		"OPTIONS": env.T("Options"), "SEE ALSO": env.T("See also"),
		"OPTIONS INHERITED FROM PARENT COMMANDS": env.T("Options of every command"),
	} {
		out = bytes.Replace(out, []byte(".SH "+english+"\n"), []byte(".SH "+strings.ToUpper(title)+"\n"), 1)
	}
	return out, nil
}

// manualSections returns, as Markdown, the sections that cobra does not write.
func manualSections(env *environment, cmd *cobra.Command) string {
	var b strings.Builder
	section := func(title string) { fmt.Fprintf(&b, "# %s\n", strings.ToUpper(title)) }
	entry := func(name any, says string) { fmt.Fprintf(&b, "**%v**\n\t%s\n\n", name, says) }
	if cmd.HasAvailableSubCommands() {
		section(env.T("Commands"))
	}
	for _, one := range cmd.Commands() {
		if one.IsAvailableCommand() {
			entry(one.Name(), one.Short)
		}
	}
	if cmd.HasParent() {
		return b.String()
	}
	section(env.T("Exit status"))
	entry(exitDone, env.T("done"))
	entry(exitError, env.T("an error"))
	entry(exitUsage, env.T("the command line, or the settings, cannot be meant"))
	entry(exitNoModel, env.T("no model is configured"))
	entry(exitParked, env.T("the run waits: for an approval, an answer, the network"))
	entry(exitDenied, env.T("the run ended with an action that was not allowed"))
	entry(exitLimit, env.T("a limit was reached"))
	entry(exitTimeout, env.T("the time of --timeout is over; the run is paused"))
	entry(exitInterrupted, env.T("interrupted"))
	section(env.T("Environment"))
	fmt.Fprintf(&b, "%s\n\n", strings.Join(config.Variables(), ", "))
	section(env.T("Files"))
	entry(config.SystemFile, env.T("the settings of the machine"))
	entry("~/.config/regie/regie.yaml", env.T("your settings; see regie config show --origin"))
	entry("~/.config/regie/setup.yaml", env.T("what regie setup has stored, with keys; for you alone"))
	entry(".regie/regie.yaml, .mcp.json", env.T("what a workspace says; see regie trust"))
	return b.String()
}
