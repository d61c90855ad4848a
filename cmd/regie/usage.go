package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/regie-run/regie"
)

// usage turns cobra's checks of arguments into errors of the command line, in words of the
// catalogue.
func usage(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return badArguments(cmd, err, args)
		}
		return nil
	}
}

// badArguments says what cobra found wrong with the arguments, which it says in English only.
func badArguments(cmd *cobra.Command, err error, args []string) error {
	var want int
	said := err.Error()
	switch {
	case strings.HasPrefix(said, "unknown command") && len(args) > 0:
		cmd.SuggestionsMinimumDistance = 2 // which cobra sets for the root alone
		if like := cmd.SuggestionsFor(args[0]); len(like) > 0 {
			return regie.Errorf(codeUsage, "there is no command %s; did you mean %s? (see --help)",
				args[0], strings.Join(like, ", "))
		}
		return regie.Errorf(codeUsage, "unknown command or argument %q (see --help)", args[0])
	case scanned(said, "accepts at most %d arg(s)", &want):
		return regie.Errorf(codeUsage, "too many arguments: at most %d, not %d (see --help)", want, len(args))
	case scanned(said, "requires at least %d arg(s)", &want):
		return regie.Errorf(codeUsage, "too few arguments: at least %d, not %d (see --help)", want, len(args))
	case scanned(said, "accepts %d arg(s)", &want):
		return regie.Errorf(codeUsage, "the number of arguments must be %d, not %d (see --help)", want, len(args))
	}
	return regie.Errorf(codeUsage, "%v (see --help)", err)
}

// badCommand says that there is no such command, and which are like it; said is what cobra says of
// that, from the name on.
func badCommand(said string) error {
	name, rest, _ := strings.Cut(said, " for ")
	if unquoted, err := strconv.Unquote(name); err == nil {
		name = unquoted
	}
	_, rest, _ = strings.Cut(rest, "\n\n")
	_, like, _ := strings.Cut(rest, "\n")
	if like := strings.Fields(like); len(like) > 0 {
		return regie.Errorf(codeUsage, "there is no command %s; did you mean %s? (see --help)",
			name, strings.Join(like, ", "))
	}
	return regie.Errorf(codeUsage, "there is no command %s (see --help)", name)
}

func scanned(said, format string, into *int) bool {
	_, err := fmt.Sscanf(said, format, into)
	return err == nil
}

// badFlag says what is wrong with a flag.
func badFlag(cmd *cobra.Command, err error) error {
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		name := "--" + unknown.GetSpecifiedName()
		if unknown.GetSpecifiedShortnames() != "" {
			name = "-" + unknown.GetSpecifiedName()
		}
		if like := flagLike(cmd, unknown.GetSpecifiedName()); like != "" && unknown.GetSpecifiedShortnames() == "" {
			return regie.Errorf(codeUsage, "there is no flag %s here; did you mean --%s? (see --help)", name, like)
		}
		return regie.Errorf(codeUsage, "there is no flag %s here (see --help)", name)
	}
	if empty, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		return regie.Errorf(codeUsage, "the flag %s needs a value (see --help)", "--"+empty.GetFlag().Name)
	}
	if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		return regie.Errorf(codeUsage, "%q is no value for %s, which takes a %s (see --help)", invalid.GetValue(),
			"--"+invalid.GetFlag().Name, invalid.GetFlag().Value.Type())
	}
	return regie.Errorf(codeUsage, "%v (see --help)", err)
}

// flagLike is the flag of a command that somebody may have meant, as cobra finds commands; empty
// where none is like it.
func flagLike(cmd *cobra.Command, name string) string {
	names := &cobra.Command{SuggestionsMinimumDistance: 2}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		names.AddCommand(&cobra.Command{Use: f.Name, Hidden: f.Hidden, Run: func(*cobra.Command, []string) {}})
	})
	like := names.SuggestionsFor(name)
	if len(like) == 0 {
		return ""
	}
	return like[0]
}

// speak puts what cobra says of its own into the words of the catalogue.
func (c *command) speak(root *cobra.Command) {
	t := c.text
	root.SetUsageTemplate(strings.NewReplacer(
		"Usage:", t.T("Usage:"), "Available Commands:", t.T("Commands:"), "Global Flags:",
		t.T("Flags of every command:"), "Flags:", t.T("Flags:"),
		`Use "{{.CommandPath}} [command] --help" for more information about a command.`,
		t.T("More on a command: %s", "{{.CommandPath}} [command] --help"),
	).Replace(root.UsageTemplate()))
	root.InitDefaultHelpCmd()
	each(root, func(cmd *cobra.Command) {
		// cobra shows its help whatever follows, and calls that done
		if cmd != root && cmd.HasSubCommands() && !cmd.Runnable() {
			cmd.Args, cmd.RunE = usage(cobra.NoArgs), func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		}
		cmd.Flags().BoolP("help", "h", false, t.T("this help"))
		switch {
		case cmd.Name() == "help":
			cmd.Short, cmd.Long = t.T("Help on a command"),
				t.T("Help on a command: regie help runs show says what regie runs show --help says.")
			// cobra's takes what it does not know for done
			cmd.Run, cmd.RunE = nil, func(_ *cobra.Command, args []string) error {
				found, rest, err := root.Find(args)
				if err != nil || len(rest) > 0 {
					return regie.Errorf(codeUsage, "there is no command %s (see --help)", strings.Join(args, " "))
				}
				return found.Help()
			}
			// help is there where settings are broken
			cmd.PersistentPreRunE = func(*cobra.Command, []string) error { return nil }
		case cmd.Name() == "completion":
			cmd.Short, cmd.Long = t.T("What shells complete commands with"),
				t.T("Print what a shell completes commands with: commands, flags, and the ids of sessions, runs and approvals. It reads what is stored, asks no server and starts nothing.\n\nbash: source <(regie completion bash). zsh: regie completion zsh > ~/.zfunc/_regie, where fpath has that directory. fish: regie completion fish > ~/.config/fish/completions/regie.fish. PowerShell: regie completion powershell | Out-String | Invoke-Expression.")
		case cmd.HasParent() && cmd.Parent().Name() == "completion":
			cmd.Short = t.T("What %s completes commands with", cmd.Name())
			cmd.Long = ""
			if f := cmd.Flags().Lookup("no-descriptions"); f != nil {
				f.Usage = t.T("without a few words on each")
			}
		}
	})
	root.Flags().BoolP("version", "v", false, t.T("the version of this program"))
}

// each visits a command and those below it.
func each(cmd *cobra.Command, fn func(*cobra.Command)) {
	fn(cmd)
	for _, below := range cmd.Commands() {
		each(below, fn)
	}
}
