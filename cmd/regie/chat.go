package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/spf13/cobra"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/sanitize"
	"github.com/regie-run/regie/internal/tui"
)

type chatFlags struct {
	resume, agent, bell string
	allow               []string
	here, plain         bool
	asked               dispatch.RunRequest // settings of the model calls
}

// newChatCommand talks with an agent.
func newChatCommand(env *environment) *cobra.Command {
	var f chatFlags
	var last bool
	cmd := &cobra.Command{
		Use: "chat", Args: checkArgCount(0, 0), Short: env.T("Talk with an agent in this directory"),
		Long: env.T("Chat with an agent in this directory. Approvals are asked for here, with a diff; /help lists the commands.\n\nIf standard input is not a terminal, each line of it is a message, the answers go to standard output, and an approval ends the chat with exit code 4."),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if last {
				f.resume = "last"
			} else if cmd.Flags().Changed("resume") && f.resume == "" {
				return regie.Errorf(codeUsage, "--resume needs the id of a chat: see regie sessions list")
			}
			return runChat(cmd.Context(), env, f)
		},
	}
	flags := cmd.Flags()
	flags.BoolVarP(&last, "continue", "c", false, env.T("continue the newest chat of this workspace"))
	flags.StringVarP(&f.resume, "resume", "r", "",
		env.T("continue this chat: its id, the id of one of its runs, or the last characters of either"))
	flags.BoolVar(&f.plain, "plain", false, env.T("plain lines for screen readers (the default where TERM is dumb)"))
	flags.StringVar(&f.bell, "bell", os.Getenv("REGIE_BELL"),
		env.T("when to call you, by bell and notification: auto (after 10 s of work), always, off (REGIE_BELL)"))
	addAgentFlag(env, cmd, &f.agent)
	flags.StringSliceVar(&f.allow, "allow", nil,
		env.T("actions that need no approval in this chat: files.write_file, files.*"))
	cmd.MarkFlagsMutuallyExclusive("continue", "resume")
	addHereFlag(env, cmd, &f.here)
	addLoopFlags(env, cmd, &f.asked)
	addModelFlags(env, cmd)
	return cmd
}

func runChat(ctx context.Context, env *environment, f chatFlags) error {
	if err := requireModelOrSetup(ctx, env); err != nil {
		return err
	}
	terminal := isAttended(env.stdin, env.stderr)
	request, err := newRequest(ctx, env, "", f.here, f.agent, approval.Policy{
		Allow: f.allow, OnApproval: approval.Park, Questions: terminal,
	})
	if err != nil {
		return err
	}
	request.Dialect, request.NoCache, request.ApprovalMode = f.asked.Dialect, f.asked.NoCache, f.asked.ApprovalMode
	bell, err := tui.ParseBell(f.bell)
	if err != nil {
		return err
	}
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, endSignals()...)
	defer signal.Stop(signals)
	drawn := terminal && !f.plain && isTerminal(env.stdout) && os.Getenv("TERM") != "" && os.Getenv("TERM") != "dumb"
	var aside tui.Aside
	if drawn { // only the drawn terminal writes then
		aside = tui.NewAside()
		env.stderr = aside
		defer restoreStderr(env, aside)
	}
	conn, err := env.connect(ctx, app.Options{
		Resumed: env.tellResumed(regie.ID{}),
		Away: func(away bool) {
			if away {
				env.notef("… the engine does not answer; the chat continues when it does")
			} else {
				env.notef("the engine answers again")
			}
		},
	})
	if err != nil {
		return err
	}
	leave := func() {}
	if terminal {
		leave = keepPresence(ctx, conn.Presence.Beat)
	}
	var result chat.Result
	common := chat.Config{
		Control: conn.Client, Text: env.text, Editor: chat.Command(chat.EditorLine(os.Getenv)), Signals: signals,
		Request: request, Look: app.Look(request.Root),
		ReadImage: app.ReadImage(request.Root), Skills: skillNotes(env, request.Root),
		Settings: env.config.FingerprintOf, Continue: f.resume,
		Commands:    func() []chat.CustomCommand { return app.CustomCommands(env.config, env.text, request.Root) },
		History:     chat.NewHistory(env.config.DataDir),
		NoSchedules: func() bool { return conn.IsEngine() && env.config.Database == "" },
	}
	if drawn {
		result, err = tui.Run(ctx, tui.Config{
			Config: common, In: env.stdin, Out: os.Stdout, IsEngine: conn.IsEngine, Env: os.Environ(),
			Bell: bell, Aside: aside,
		})
		restoreStderr(env, aside)
	} else {
		result, err = runPlainChat(ctx, env, common, terminal)
	}
	leave()
	code := exitDone
	switch {
	case err != nil:
	case result.Signalled:
		code = exitInterrupted
	case !terminal:
		code, err = chatExitCode(ctx, env, conn, &result)
	}
	env.drainCalls(ctx, conn, signals, result.Signalled)
	if err = errors.Join(err, conn.Close()); err == nil && code != exitDone {
		return exit{code}
	}
	return err
}

// restoreStderr writes to standard error again, first the lines that were kept aside.
func restoreStderr(env *environment, aside tui.Aside) {
	env.stderr = os.Stderr
	for len(aside) > 0 {
		fmt.Fprintln(env.stderr, sanitize.Strip(<-aside))
	}
}

// runPlainChat returns the chat in plain lines: for screen readers, for terminals without a cursor,
// and without a terminal.
func runPlainChat(ctx context.Context, env *environment, common chat.Config, terminal bool) (chat.Result, error) {
	input, err := chat.NewInput(env.stdin, terminal)
	if err != nil {
		return chat.Result{}, err
	}
	defer input.Close()
	return chat.New(ctx, chat.PlainConfig{
		Config: common, Input: input, Out: env.stdout, Err: env.stderr, Terminal: terminal,
	}).Run()
}

// chatExitCode returns the exit code of an unattended chat: that of its first round that failed.
func chatExitCode(ctx context.Context, env *environment, conn *app.Conn, result *chat.Result) (int, error) {
	rounds := result.Rounds
	if len(rounds) == 0 && !result.Last.IsZero() {
		rounds = []regie.ID{result.Last}
	}
	out := exitDone
	for _, round := range rounds {
		view, err := conn.Get(ctx, round)
		if err != nil {
			return exitError, err
		}
		code, why := exitVerdict(env.text, view, false)
		if why != "" {
			fmt.Fprintln(env.stderr, why)
		}
		if out == exitDone {
			out = code
		}
	}
	return out, nil
}

// beats is how often a chat says that a person sits before it: twice within the shortest time of
// presence.
const beats = 15 * time.Second

// keepPresence says that a person is there, until the function that it returns is called, which
// waits for the end of it (spec 5.4): the streams of an API token do not say it, a program may
// follow them.
func keepPresence(ctx context.Context, beat func(context.Context) (dispatch.Presence, error)) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(beats)
		defer ticker.Stop()
		for {
			_, _ = beat(ctx) // where that does not get through the chat goes on
			select {
			case <-ticker.C:
			case <-ctx.Done():
				return
			}
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}
