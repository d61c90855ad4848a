package main

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/regie-run/regie"
)

// arguments checks the number of a command's arguments; most is negative where there is no limit.
func arguments(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch n := len(args); {
		case n >= least && (most < 0 || n <= most):
			return nil
		case most == 0:
			return unknownCommand(cmd, args[0])
		case least == most:
			return regie.Errorf(codeUsage, "the number of arguments must be %d, not %d (see --help)", least, n)
		case n < least:
			return regie.Errorf(codeUsage, "too few arguments: at least %d, not %d (see --help)", least, n)
		default:
			return regie.Errorf(codeUsage, "too many arguments: at most %d, not %d (see --help)", most, n)
		}
	}
}

// unknownCommand reports an unknown subcommand, with those that resemble it.
func unknownCommand(cmd *cobra.Command, name string) error {
	cmd.SuggestionsMinimumDistance = 2
	if like := cmd.SuggestionsFor(name); len(like) > 0 {
		return regie.Errorf(codeUsage, "there is no command %s; did you mean %s? (see --help)",
			name, strings.Join(like, ", "))
	}
	if !cmd.HasParent() {
		return regie.Errorf(codeUsage, "there is no command %s (see --help)", name)
	}
	return regie.Errorf(codeUsage, "unknown command or argument %q (see --help)", name)
}

// translateCobra translates cobra's error about flags that exclude each other.
func translateCobra(err error) error {
	_, set, ok := strings.Cut(err.Error(), " none of the others can be; [")
	if !ok {
		return err
	}
	set, _, _ = strings.Cut(set, "]")
	return regie.Errorf(codeUsage, "%s exclude each other", "--"+strings.ReplaceAll(set, " ", ", --"))
}

// flagError translates an error about a flag.
func flagError(cmd *cobra.Command, err error) error {
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		if unknown.GetSpecifiedShortnames() != "" {
			return regie.Errorf(codeUsage, "there is no flag %s here (see --help)", "-"+unknown.GetSpecifiedName())
		}
		name := "--" + unknown.GetSpecifiedName()
		if like := similarFlag(cmd, unknown.GetSpecifiedName()); like != "" {
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

// similarFlag returns the flag that resembles a name, by cobra's distance for commands; empty
// without one.
func similarFlag(cmd *cobra.Command, name string) string {
	names := &cobra.Command{SuggestionsMinimumDistance: 2}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		names.AddCommand(&cobra.Command{Use: f.Name, Hidden: f.Hidden, Run: func(*cobra.Command, []string) {}})
	})
	if like := names.SuggestionsFor(name); len(like) > 0 {
		return like[0]
	}
	return ""
}

// translateHelp translates cobra's own sentences and commands.
func translateHelp(env *environment, root *cobra.Command) {
	root.SetUsageTemplate(strings.NewReplacer(
		"Usage:", env.T("Usage:"), "Available Commands:", env.T("Commands:"), "Global Flags:",
		env.T("Flags of every command:"), "Flags:", env.T("Flags:"),
		`Use "{{.CommandPath}} [command] --help" for more information about a command.`,
		env.T("More on a command: %s", "{{.CommandPath}} [command] --help"),
	).Replace(root.UsageTemplate()))
	root.InitDefaultHelpCmd()
	visitCommands(root, func(cmd *cobra.Command) {
		// cobra shows the help of a group whatever follows its name
		if cmd != root && cmd.HasSubCommands() && !cmd.Runnable() {
			cmd.Args, cmd.RunE = arguments(0, 0), func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		}
		cmd.Flags().BoolP("help", "h", false, env.T("this help"))
		switch {
		case cmd.Name() == "help":
			cmd.Short, cmd.Long = env.T("Help on a command"),
				env.T("Help on a command: regie help runs show says what regie runs show --help says.")
			cmd.Run, cmd.RunE = nil, func(_ *cobra.Command, args []string) error {
				found, rest, err := root.Find(args)
				if err != nil || len(rest) > 0 {
					return regie.Errorf(codeUsage, "there is no command %s (see --help)", strings.Join(args, " "))
				}
				return found.Help()
			}
			cmd.PersistentPreRunE = skipConfig
		case cmd.Name() == "completion":
			cmd.Short, cmd.Long = env.T("What shells complete commands with"),
				env.T("Print what a shell completes commands with: commands, flags, and the ids of sessions, runs and approvals. It reads what is stored, asks no server and starts nothing.\n\nbash: source <(regie completion bash). zsh: regie completion zsh > ~/.zfunc/_regie, where fpath has that directory. fish: regie completion fish > ~/.config/fish/completions/regie.fish. PowerShell: regie completion powershell | Out-String | Invoke-Expression.")
		case cmd.HasParent() && cmd.Parent().Name() == "completion":
			cmd.Short, cmd.Long = env.T("What %s completes commands with", cmd.Name()), ""
			if f := cmd.Flags().Lookup("no-descriptions"); f != nil {
				f.Usage = env.T("without a few words on each")
			}
		}
	})
	root.Flags().BoolP("version", "v", false, env.T("the version of this program"))
}

// visitCommands calls fn for a command and those below it.
func visitCommands(cmd *cobra.Command, fn func(*cobra.Command)) {
	fn(cmd)
	for _, below := range cmd.Commands() {
		visitCommands(below, fn)
	}
}
