package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/i18n"
	"github.com/regie-run/regie/internal/sanitize"
)

// version is set by the linker, and systemFile where the machine's settings are not in /etc.
var (
	version    = "dev"
	systemFile = ""
)

// The exit codes of spec 10.1.
const (
	exitDone        = 0
	exitError       = 1
	exitUsage       = 2
	exitNoModel     = 3
	exitParked      = 4
	exitDenied      = 5
	exitLimit       = 6
	exitTimeout     = 7
	exitInterrupted = 130
)

// exit carries an exit code through cobra; its error, if any, was shown already.
type exit struct{ code int }

// Error implements error.
func (e exit) Error() string { return fmt.Sprintf("exit %d", e.code) }

// Main runs the program and returns its exit code.
func Main(args []string) int {
	if code, ours := app.Helper(os.Args); ours {
		return code
	}
	lang := cmp.Or(os.Getenv("REGIE_LANG"), os.Getenv("LC_ALL"), os.Getenv("LC_MESSAGES"), os.Getenv("LANG"))
	out := &output{file: os.Stdout}
	env := &environment{
		flags: config.Flags{System: systemFile}, level: new(slog.LevelVar),
		text: i18n.New(lang), stdin: os.Stdin, stdout: out, stderr: os.Stderr,
	}
	env.level.Set(slog.LevelWarn)
	root := newRootCommand(env)
	root.SetArgs(args)
	err := root.ExecuteContext(context.Background())
	if err == nil {
		err = out.failed
	}
	var code exit
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &code):
		return code.code
	default:
		return env.showError(err)
	}
}

func newRootCommand(env *environment) *cobra.Command {
	root := &cobra.Command{
		Use: "regie", Short: env.T("A self-hosted runtime for AI agents with controlled autonomy"),
		SilenceUsage: true, SilenceErrors: true, Version: version, Args: checkArgCount(0, 0),
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if isCompletion(cmd) { // a shell completes with broken settings too
				return nil
			}
			err := loadConfig(env, cmd)
			if err == nil && env.flags.Workspace != "" && env.config.Server == "" {
				err = regie.Errorf(codeUsage,
					"--workspace goes with --server: here a workspace is the directory that you are in")
			}
			return err
		},
	}
	flags := root.PersistentFlags()
	flags.StringVar(&env.flags.DataDir, "data-dir", "", env.T("where sessions are kept (REGIE_DATA_DIR)"))
	flags.StringVar(&env.flags.Database, "database", "",
		env.T("postgres://… in place of the data directory's own store (REGIE_DATABASE)"))
	flags.StringVar(&env.flags.Config, "config", "",
		env.T("read this regie.yaml instead of the user's (REGIE_CONFIG)"))
	flags.StringVar(&env.flags.Server, "server", "",
		env.T("ask the Regie that serves at this address, such as http://127.0.0.1:7333 (REGIE_SERVER; its token in REGIE_TOKEN, or that of the data directory)"))
	flags.StringVar(&env.flags.Workspace, "workspace", "",
		env.T("with --server: a directory of the server's machine in place of this one"))
	flags.StringVar(&env.logLevel, "log-level", "",
		env.T("what is logged on standard error: debug, info (a line for each run that ends; the default of serve), warn (the default elsewhere), error"))
	root.SetOut(env.stdout)
	root.SetErr(env.stderr)
	root.SetFlagErrorFunc(flagError)
	chat := newChatCommand(env)
	root.AddCommand(
		newRunCommand(env), chat, newApprovalsCommand(env), newApproveCommand(env), newDenyCommand(env),
		newAnswerCommand(env), newRulesCommand(env), newSessionsCommand(env), newRunsCommand(env),
		newAutomationsCommand(env), newPromptCommand(env), newStatsCommand(env), newUndoCommand(env),
		newVerifyCommand(env), newDemoCommand(env), newAgentsCommand(env), newToolsCommand(env),
		newModelsCommand(env), newSetupCommand(env), newNotifyCommand(env), newDoctorCommand(env),
		newTrustCommand(env), newSkillsCommand(env), newWorkspacesCommand(env), newIndexCommand(env),
		newSearchCommand(env), newServeCommand(env), newWebCommand(env), newTokenCommand(env), newMCPCommand(env),
		newACPCommand(env), newConfigCommand(env), newManCommand(env), newVersionCommand(env),
	)
	root.RunE = chat.RunE // regie alone is regie chat, with its flags
	root.Flags().AddFlagSet(chat.Flags())
	translateHelp(env, root)
	return root
}

// isCompletion reports whether shells call a command to complete.
func isCompletion(cmd *cobra.Command) bool {
	return strings.HasPrefix(cmd.Name(), cobra.ShellCompRequestCmd) || cmd.HasParent() &&
		cmd.Parent().Name() == "completion"
}

// skipConfig is the PersistentPreRunE of commands that work with broken settings.
func skipConfig(*cobra.Command, []string) error { return nil }

// localOnly marks commands that ask no server.
const localOnly = "of this machine"

// loadConfig loads the settings of a command. A local command ignores REGIE_SERVER.
func loadConfig(env *environment, cmd *cobra.Command) (err error) {
	if cmd.Annotations[localOnly] != "" {
		if env.flags.Server != "" {
			return regie.Errorf(codeUsage, "regie %s is about this machine: leave --server out", cmd.Name())
		}
		if err := os.Unsetenv("REGIE_SERVER"); err != nil {
			return err
		}
	}
	if env.logLevel != "" && env.level.UnmarshalText([]byte(env.logLevel)) != nil {
		return regie.Errorf(codeUsage, "%q is not a log level: use debug, info, warn or error", env.logLevel)
	}
	env.config, err = config.Load(os.Getenv, env.flags)
	return err
}

// codeUsage marks an error of the command line.
const codeUsage regie.Code = "USAGE"

// showError shows an error and returns its exit code.
func (env *environment) showError(err error) int {
	if _, ours := errors.AsType[*regie.Error](err); !ours {
		err = translateCobra(err)
	}
	code := regie.CodeOf(err)
	// whole, because it may say what to type; before the screen of choices it is folded
	if said := "regie: " + sanitize.Strip(env.text.Error(err)); code == regie.CodeNoModel {
		env.printWrapped(said)
	} else {
		fmt.Fprintln(env.stderr, said)
	}
	switch code {
	case codeUsage, regie.CodeBadRequest, regie.CodeBadPattern, regie.CodeBadID:
		return exitUsage
	case regie.CodeNoModel:
		if env.config.Provider == "" {
			env.showModelChoices()
		}
		return exitNoModel
	default:
		return exitError
	}
}

func main() {
	os.Exit(Main(os.Args[1:]))
}

// newVersionCommand prints the version of this program, with broken settings too.
func newVersionCommand(env *environment) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "version", Args: checkArgCount(0, 0), PersistentPreRunE: skipConfig,
		Short: env.T("Print the version"),
		RunE: func(*cobra.Command, []string) error {
			out := map[string]string{
				"version": version, "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH,
			}
			return printLines(env, asJSON, out, nil, func(p *printer) {
				p.printLine("regie %s (%s, %s/%s)", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			})
		},
	}
	addJSONFlag(env, cmd, &asJSON)
	return cmd
}
