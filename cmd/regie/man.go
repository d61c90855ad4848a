package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/config"
)

// manCommand writes manual pages: one for each command, in the language of who asks (spec 11.5).
// They are made of the same sentences as --help.
func (c *command) manCommand() *cobra.Command {
	return &cobra.Command{
		Use: "man DIR", Args: usage(cobra.ExactArgs(1)), Short: c.text.T("Write the manual pages into a directory"),
		PersistentPreRunE: func(*cobra.Command, []string) error { return nil },
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return regie.Errorf(regie.CodeNoPermission, "%s cannot be written: %v", args[0], err)
			}
			var failed error
			each(cmd.Root(), func(one *cobra.Command) {
				if failed != nil || one.Hidden || strings.HasPrefix(one.Name(), "__") {
					return
				}
				name := filepath.Join(args[0], pageName(one)+".1")
				if err := os.WriteFile(name, []byte(c.manual(one)), 0o644); err != nil {
					failed = regie.Errorf(regie.CodeNoPermission, "%s cannot be written: %v", name, err)
				}
			})
			return failed
		},
	}
}

func pageName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// roff makes text of ours what roff shows as it is.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "^", `\(ha`, "~", `\(ti`, "`", `\(ga`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}

// manual is the page of a command.
func (c *command) manual(cmd *cobra.Command) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	section := func(title string) { line(`.SH "%s"`, strings.ToUpper(roff(title))) }
	paragraphs := func(text string) {
		for i, paragraph := range strings.Split(strings.TrimSpace(text), "\n\n") {
			if i > 0 {
				line(".PP")
			}
			line("%s", roff(paragraph))
		}
	}
	line(`.TH "%s" "1" "" "regie %s" "Regie"`, strings.ToUpper(roff(pageName(cmd))), roff(version))
	line(".nh")
	section(c.text.T("Name"))
	line(`%s \- %s`, roff(pageName(cmd)), roff(cmd.Short))
	section(c.text.T("Synopsis"))
	line(`\fB%s\fR`, roff(cmd.UseLine()))
	section(c.text.T("Description"))
	if cmd.Long != "" {
		paragraphs(cmd.Long)
	} else {
		paragraphs(cmd.Short)
	}
	if below := visible(cmd); len(below) > 0 {
		section(c.text.T("Commands"))
		for _, one := range below {
			line(".TP\n\\fB%s\\fR\n%s", roff(one.Name()), roff(one.Short))
		}
	}
	options := func(title string, set *pflag.FlagSet) {
		if !set.HasAvailableFlags() {
			return
		}
		section(title)
		set.VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				line(".TP\n%s\n%s", manFlag(f), roff(f.Usage))
			}
		})
	}
	options(c.text.T("Options"), cmd.NonInheritedFlags())
	options(c.text.T("Options of every command"), cmd.InheritedFlags())
	c.manualEnd(cmd, line, section)
	return b.String()
}

// manFlag is a flag as the page shows it.
func manFlag(f *pflag.Flag) string {
	out := `\fB` + roff("--"+f.Name) + `\fR`
	if f.Shorthand != "" {
		out = `\fB` + roff("-"+f.Shorthand) + `\fR, ` + out
	}
	if kind, _ := pflag.UnquoteUsage(f); kind != "" {
		out += ` \fI` + roff(kind) + `\fR`
	}
	return out
}

// manualEnd is what all pages end with.
func (c *command) manualEnd(cmd *cobra.Command, line func(string, ...any), section func(string)) {
	if cmd == cmd.Root() {
		section(c.text.T("Exit status"))
		for _, one := range []struct {
			code int
			says string
		}{
			{exitDone, c.text.T("done")},
			{exitError, c.text.T("an error")},
			{exitUsage, c.text.T("the command line, or the settings, cannot be meant")},
			{exitNoModel, c.text.T("no model is configured")},
			{exitParked, c.text.T("the run waits: for an approval, an answer, the network")},
			{exitDenied, c.text.T("the run ended with an action that was not allowed")},
			{exitLimit, c.text.T("a limit was reached")},
			{exitTimeout, c.text.T("the time of --timeout is over; the run is paused")},
			{exitInterrupted, c.text.T("interrupted")},
		} {
			line(".TP\n\\fB%d\\fR\n%s", one.code, roff(one.says))
		}
		section(c.text.T("Environment"))
		for i, name := range config.Variables() {
			if i > 0 {
				line(".br")
			}
			line(`\fB%s\fR`, name)
		}
		section(c.text.T("Files"))
		for _, one := range [][2]string{
			{config.SystemFile, c.text.T("the settings of the machine")},
			{"~/.config/regie/regie.yaml", c.text.T("your settings; see regie config show --origin")},
			{"~/.config/regie/setup.yaml", c.text.T("what regie setup has stored, with keys; for you alone")},
			{".regie/regie.yaml, .mcp.json", c.text.T("what a workspace says; see regie trust")},
		} {
			line(".TP\n\\fI%s\\fR\n%s", roff(one[0]), roff(one[1]))
		}
	}
	var also []string
	if cmd.HasParent() {
		also = append(also, `\fB`+roff(pageName(cmd.Parent()))+`\fR(1)`)
	}
	for _, one := range visible(cmd) {
		also = append(also, `\fB`+roff(pageName(one))+`\fR(1)`)
	}
	if len(also) > 0 {
		section(c.text.T("See also"))
		line("%s", strings.Join(also, ",\n"))
	}
}

// visible are the commands below one that people are shown.
func visible(cmd *cobra.Command) (out []*cobra.Command) {
	for _, one := range cmd.Commands() {
		if !one.Hidden && !strings.HasPrefix(one.Name(), "__") {
			out = append(out, one)
		}
	}
	return out
}
