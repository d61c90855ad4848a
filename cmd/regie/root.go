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

// version is set by the linker.
var version = "dev"

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
}

// Main runs the program and returns its exit code.
func Main(args []string) int {
	c := &command{text: text.New(firstOf("REGIE_LANG", "LC_ALL", "LC_MESSAGES", "LANG")), stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, level: new(slog.LevelVar)}
	c.level.Set(slog.LevelWarn)
	root := c.root()
	root.SetArgs(args)
	err := root.ExecuteContext(context.Background())
	var code exit
	switch {
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
		PersistentPreRunE: func(*cobra.Command, []string) (err error) {
			c.config, err = config.Load(os.Getenv, c.flags)
			return err
		},
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	flags := root.PersistentFlags()
	flags.StringVar(&c.flags.DataDir, "data-dir", "", c.text.T("where sessions are kept (REGIE_DATA_DIR)"))
	flags.StringVar(&c.flags.Config, "config", "", c.text.T("read this regie.yaml instead of the user's (REGIE_CONFIG)"))
	root.SetOut(c.stdout)
	root.SetErr(c.stderr)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		return regie.Errorf(codeUsage, "%v (see --help)", err)
	})
	root.AddCommand(c.runCommand(), c.chatCommand(), c.approvalsCommand(), c.approveCommand(), c.denyCommand(), c.answerCommand(), c.runsCommand(), c.demoCommand())
	return root
}

// codeUsage marks an error of the command line.
const codeUsage regie.Code = "USAGE"

// fail shows an error, once, at the top, and returns the exit code that it means.
func (c *command) fail(err error) int {
	code := regie.CodeOf(err)
	fmt.Fprintf(c.stderr, "regie: %s\n", plain.Strip(c.text.Error(err)))
	switch {
	case code == codeUsage, code == regie.CodeBadRequest, code == regie.CodeBadPattern, code == regie.CodeBadID, strings.HasPrefix(err.Error(), "unknown command"):
		return exitUsage
	case code == regie.CodeNoModel:
		return exitNoModel
	default:
		return exitError
	}
}

// usage turns cobra's checks of arguments into errors of the command line.
func usage(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return regie.Errorf(codeUsage, "%v (see --help)", err)
		}
		return nil
	}
}

func (c *command) connect(ctx context.Context, o app.Options) (*app.Conn, error) {
	o.Config = c.config
	o.Log = slog.New(slog.NewTextHandler(c.stderr, &slog.HandlerOptions{Level: c.level}))
	return app.Connect(ctx, o)
}
