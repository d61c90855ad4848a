package main

import (
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/regie-run/regie"
)

// checkArgCount checks the number of a command's arguments; most is negative where there is no
// limit.
func checkArgCount(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch n := len(args); {
		case n >= least && (most < 0 || n <= most):
			return nil
		case most == 0:
			return unknownCommand(cmd, args[0])
		default:
			return regie.Errorf(codeUsage, "too few or too many arguments: %d (see --help)", n)
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
	return regie.Errorf(codeUsage, "unknown command or argument %q (see --help)", name)
}

// translateCobra translates cobra's error about flags that exclude each other.
func translateCobra(err error) error {
	_, set, ok := strings.Cut(err.Error(), " none of the others can be; [")
	if !ok {
		return err
	}
	set, _, _ = strings.Cut(set, "]")
	return regie.Errorf(codeUsage, "%s cannot be used together", "--"+strings.ReplaceAll(set, " ", ", --"))
}

// flagError translates an error about a flag.
func flagError(_ *cobra.Command, err error) error {
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		name := "--" + unknown.GetSpecifiedName()
		if unknown.GetSpecifiedShortnames() != "" {
			name = name[1:]
		}
		return regie.Errorf(codeUsage, "there is no flag %s here (see --help)", name)
	}
	if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		return regie.Errorf(codeUsage, "%q is not a value for %s, which takes a %s (see --help)", invalid.GetValue(),
			"--"+invalid.GetFlag().Name, invalid.GetFlag().Value.Type())
	}
	return regie.Errorf(codeUsage, "%v (see --help)", err)
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
	root.InitDefaultCompletionCmd()
	takesFiles := []string{"trust", "validate", "man"}
	visitCommands(root, func(cmd *cobra.Command) {
		// cobra shows the help of a group for any argument
		if cmd != root && cmd.HasSubCommands() && !cmd.Runnable() {
			cmd.Args, cmd.RunE = checkArgCount(0, 0), func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		}
		if cmd.Args != nil && cmd.ValidArgsFunction == nil && !slices.Contains(takesFiles, cmd.Name()) {
			cmd.ValidArgsFunction = cobra.NoFileCompletions
		}
		cmd.Flags().BoolP("help", "h", false, env.T("this help"))
		switch cmd.Name() {
		case "help":
			cmd.Short, cmd.Long = env.T("Help on a command"), ""
			cmd.PersistentPreRunE = skipConfig
		case "completion":
			cmd.Short, cmd.Long = env.T("Print a shell completion script"),
				env.T("Print a script that completes commands and flags in your shell.\n\nbash: source <(regie completion bash). zsh: regie completion zsh > ~/.zfunc/_regie, where fpath has that directory. fish: regie completion fish > ~/.config/fish/completions/regie.fish. PowerShell: regie completion powershell | Out-String | Invoke-Expression.")
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
