package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/plain"
	"github.com/regie-run/regie/internal/text"
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

// command is what every subcommand shares.
type command struct {
	flags  config.Flags
	config config.Config
	text   *text.Printer
	stdin  *os.File
	stdout io.Writer
	stderr io.Writer
	level  *slog.LevelVar
	found  *app.Found // what was looked for where no model is named; nil where nobody looked
	warned bool       // that a temperature is not sent
}

// Main runs the program and returns its exit code.
func Main(args []string) int {
	if code, ours := app.Helper(os.Args); ours {
		return code
	}
	out := &output{file: os.Stdout}
	c := &command{
		text: text.New(firstOf("REGIE_LANG", "LC_ALL", "LC_MESSAGES", "LANG")), stdin: os.Stdin, stdout: out,
		stderr: os.Stderr, level: new(slog.LevelVar),
	}
	c.level.Set(slog.LevelWarn)
	c.flags.System = systemFile
	root := c.root()
	root.SetArgs(args)
	err := root.ExecuteContext(context.Background())
	var code exit
	switch {
	case err == nil && out.failed != nil:
		return c.fail(out.failed)
	case err == nil:
		return exitDone
	case errors.As(err, &code):
		return code.code
	default:
		return c.fail(err)
	}
}

func firstOf(variables ...string) string {
	for _, variable := range variables {
		if value := os.Getenv(variable); value != "" {
			return value
		}
	}
	return ""
}

func (c *command) root() *cobra.Command {
	root := &cobra.Command{
		Use: "regie", Short: c.text.T("A self-hosted runtime for AI agents with controlled autonomy"),
		SilenceUsage: true, SilenceErrors: true, Version: version,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) (err error) {
			if completes(cmd) { // broken settings keep no shell from completing
				return nil
			}
			c.hinted()
			env, err := c.environment(cmd)
			if err != nil {
				return err
			}
			if c.config, err = config.Load(env, c.flags); err == nil &&
				c.flags.Workspace != "" && c.config.Server == "" {
				err = regie.Errorf(codeUsage,
					"--workspace goes with --server: here a workspace is the directory that you are in")
			}
			return err
		},
	}
	flags := root.PersistentFlags()
	flags.StringVar(&c.flags.DataDir, "data-dir", "", c.text.T("where sessions are kept (REGIE_DATA_DIR)"))
	flags.StringVar(&c.flags.Database, "database", "",
		c.text.T("postgres://… in place of the data directory's own store (REGIE_DATABASE)"))
	flags.StringVar(&c.flags.Config, "config", "",
		c.text.T("read this regie.yaml instead of the user's (REGIE_CONFIG)"))
	flags.StringVar(&c.flags.Server, "server", "",
		c.text.T("ask the Regie that serves at this address, such as http://127.0.0.1:7333 (REGIE_SERVER; its token in REGIE_TOKEN, or that of the data directory)"))
	flags.StringVar(&c.flags.Workspace, "workspace", "",
		c.text.T("with --server: a directory of the server's machine in place of this one"))
	root.SetOut(c.stdout)
	root.SetErr(c.stderr)
	root.SetFlagErrorFunc(badFlag)
	root.AddCommand(
		c.runCommand(), c.chatCommand(), c.approvalsCommand(), c.approveCommand(), c.denyCommand(),
		c.answerCommand(), c.rulesCommand(),
		c.sessionsCommand(), c.runsCommand(), c.promptCommand(), c.undoCommand(), c.verifyCommand(), c.demoCommand(),
		c.agentsCommand(), c.toolsCommand(), c.modelsCommand(), c.setupCommand(), c.doctorCommand(),
		c.cacheCommand(), c.trustCommand(), c.skillsCommand(), c.indexCommand(), c.searchCommand(), c.serveCommand(),
		c.tokenCommand(), c.mcpCommand(), c.acpCommand(),
		c.configCommand(), c.manCommand(), c.versionCommand(),
	)
	if chat, _, err := root.Find([]string{"chat"}); err == nil { // regie alone is regie chat, with its flags
		root.RunE = chat.RunE
		root.Flags().AddFlagSet(chat.Flags())
	}
	c.completed(root)
	c.speak(root)
	return root
}

// completes reports whether a command is one of those that shells complete with.
func completes(cmd *cobra.Command) bool {
	return strings.HasPrefix(cmd.Name(), cobra.ShellCompRequestCmd) || cmd.HasParent() &&
		cmd.Parent().Name() == "completion"
}

// ofThisMachine marks commands that ask no server, whatever the environment names.
const ofThisMachine = "of this machine"

// environment is what the settings of a command are read from: one of this machine does not look at
// REGIE_SERVER, which is for those that ask one.
func (c *command) environment(cmd *cobra.Command) (func(name string) string, error) {
	switch {
	case cmd.Annotations[ofThisMachine] == "":
		return os.Getenv, nil
	case c.flags.Server != "":
		return nil, regie.Errorf(codeUsage, "regie %s is about this machine: leave --server out", cmd.Name())
	default:
		return func(name string) string {
			if name == "REGIE_SERVER" {
				return ""
			}
			return os.Getenv(name)
		}, nil
	}
}

// codeUsage marks an error of the command line.
const codeUsage regie.Code = "USAGE"

// fail shows an error, once, at the top, and returns the exit code that it means.
func (c *command) fail(err error) int {
	if _, ours := errors.AsType[*regie.Error](err); !ours { // cobra's, in English only
		if unknown, ok := strings.CutPrefix(err.Error(), "unknown command "); ok {
			err = badCommand(unknown)
		}
	}
	code := regie.CodeOf(err)
	// it begins the screen of choices
	if said := "regie: " + plain.Strip(c.text.Error(err)); code == regie.CodeNoModel {
		c.tell(said)
	} else { // whole, because it may say what to type
		fmt.Fprintln(c.stderr, said)
	}
	switch code {
	case codeUsage, regie.CodeBadRequest, regie.CodeBadPattern, regie.CodeBadID:
		return exitUsage
	case regie.CodeNoModel:
		if c.config.Provider == "" {
			c.choices()
		}
		return exitNoModel
	default:
		return exitError
	}
}

func (c *command) connect(ctx context.Context, o app.Options) (*app.Conn, error) {
	if !o.ReadOnly && c.config.Server == "" {
		c.settle(ctx)
	}
	return c.attach(ctx, o)
}

// attach connects for what needs no model: none is looked for.
func (c *command) attach(ctx context.Context, o app.Options) (*app.Conn, error) {
	return app.Connect(ctx, c.options(o))
}
