package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/spf13/cobra"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/plain"
	"github.com/regie-run/regie/internal/tui"
)

type chatFlags struct {
	last   bool
	resume string
	agent  string
	allow  []string
	here   bool
	budget int
	loop   loopFlags
	plain  bool
	bell   string
}

func (c *command) chatCommand() *cobra.Command {
	var f chatFlags
	cmd := &cobra.Command{
		Use: "chat", Args: usage(cobra.NoArgs), Short: c.text.T("Talk with an agent in this directory"),
		Long: c.text.T("Talk with an agent in this directory. What needs your approval is asked here, with a diff; /help lists what you can type.\n\nWhere standard input is no terminal, each line of it is a message, the answers go to standard output, and what waits for an approval ends the chat with exit code 4."),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.last && cmd.Flags().Changed("resume") {
				return regie.Errorf(codeUsage, "--continue and --resume exclude each other")
			}
			if f.last {
				f.resume = "last"
			} else if cmd.Flags().Changed("resume") && f.resume == "" {
				return regie.Errorf(codeUsage, "--resume needs the id of a chat: see regie sessions list")
			}
			if cmd.Flags().Changed("context-tokens") && f.budget < 1000 {
				return regie.Errorf(codeUsage, "--context-tokens must be at least 1000")
			}
			return c.chat(cmd.Context(), f)
		},
	}
	flags := cmd.Flags()
	flags.BoolVarP(&f.last, "continue", "c", false, c.text.T("go on with the newest chat of this workspace"))
	flags.StringVarP(&f.resume, "resume", "r", "",
		c.text.T("go on with this chat: its id, that of a run of it, or the end of one"))
	flags.BoolVar(&f.plain, "plain", false,
		c.text.T("plain lines without drawing, for screen readers (so where TERM is dumb)"))
	flags.StringVar(&f.bell, "bell", os.Getenv("REGIE_BELL"),
		c.text.T(
			"when to call you, by bell and notification: auto (when you look elsewhere), always, off (REGIE_BELL)"))
	flags.StringVar(&f.agent, "agent", "main", c.text.T("the agent"))
	flags.StringSliceVar(&f.allow, "allow", nil,
		c.text.T("actions that need no approval in this chat: files.write_file, files.*"))
	flags.BoolVar(&f.here, "here", false,
		c.text.T("allow the home directory, / or a directory of the system as the workspace"))
	flags.IntVar(&f.budget, "context-tokens", 0,
		c.text.T("lower the budget of a prompt, in tokens: above it older messages are summarised"))
	c.loopFlags(cmd, &f.loop)
	c.modelFlags(cmd)
	return cmd
}

func (c *command) chat(ctx context.Context, f chatFlags) error {
	if err := c.orSetup(ctx); err != nil {
		return err
	}
	terminal := attended(c.stdin, c.stderr)
	request, err := c.start(ctx, f.here, f.agent, approval.Policy{
		Allow:      f.allow,
		OnApproval: approval.Park, Questions: terminal,
	})
	if err != nil {
		return err
	}
	request.Limits.ContextTokens = f.budget
	if err := f.loop.into(&request); err != nil {
		return err
	}
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, endings()...)
	defer signal.Stop(signals)
	bell, err := tui.ParseBell(f.bell)
	if err != nil {
		return err
	}
	drawn := terminal && !f.plain && isTerminal(c.stdout) && tui.Fits(os.Environ())
	var aside *tui.Aside
	if drawn { // nobody else writes to the terminal then
		aside = tui.NewAside()
		c.stderr = aside
		defer c.rejoin(aside)
	}
	engine, end := chatStays(signals)
	conn, err := c.connect(ctx, app.Options{
		Engine: engine,
		Resumed: func(rounds []regie.ID) {
			for _, id := range rounds {
				fmt.Fprintln(c.stderr, c.text.T("resuming the interrupted run %s", id))
			}
		},
		Away: c.away,
	})
	if err != nil {
		return err
	}
	leave := func() {}
	if terminal {
		leave = attend(ctx, conn.Presence.Beat)
	}
	var result chat.Result
	common := chat.Config{
		Control: conn, Text: c.text, Editor: chat.Command(chat.EditorLine(os.Getenv)), Signals: signals,
		Request: request, Look: app.Look(request.Root), Skills: c.skillNotes(request.Root),
		Settings: c.config.FingerprintOf, Continue: f.resume,
	}
	if drawn {
		result, err = tui.Run(ctx, tui.Config{
			Config: common, In: c.stdin, Out: os.Stdout, IsEngine: conn.IsEngine, Env: os.Environ(), Bell: bell, Aside: aside,
		})
		c.rejoin(aside)
	} else {
		result, err = c.plainChat(ctx, common, terminal)
	}
	leave()
	end()
	code := exitDone
	switch {
	case err != nil:
	case result.Signalled:
		code = exitInterrupted
	case !terminal:
		code, err = c.outcomes(ctx, conn, &result)
	}
	c.drain(ctx, conn, signals, result.Signalled)
	if closing := conn.Close(); err == nil {
		err = closing
	}
	if err == nil && code != exitDone {
		return exit{code}
	}
	return err
}

// away says that no engine answers a chat, or that one does again.
func (c *command) away(away bool) {
	if away {
		fmt.Fprintln(c.stderr, c.text.T("… the engine does not answer; the chat goes on when it does"))
	} else {
		fmt.Fprintln(c.stderr, c.text.T("the engine answers again"))
	}
}

// rejoin has this command write to standard error again, and what nobody has shown of what it wrote
// aside.
func (c *command) rejoin(aside *tui.Aside) {
	c.stderr = os.Stderr
	for _, line := range aside.Take() {
		fmt.Fprintln(c.stderr, plain.Strip(line))
	}
}

// plainChat is the chat in plain lines: for screen readers, for terminals that know no cursor, and
// for what is no terminal.
func (c *command) plainChat(ctx context.Context, common chat.Config, terminal bool) (chat.Result, error) {
	input, err := chat.NewInput(c.stdin, terminal)
	if err != nil {
		return chat.Result{}, err
	}
	defer input.Close()
	return chat.New(ctx, chat.PlainConfig{
		Config: common, Input: input, Out: c.stdout, Err: c.stderr, Terminal: terminal,
	}).Run()
}

// outcomes is the exit code of a chat that nobody attends: of the first of its rounds that did not
// do its job, whatever came after it. Each of them says why.
func (c *command) outcomes(ctx context.Context, conn *app.Conn, result *chat.Result) (int, error) {
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
		code, why := verdict(c.text, view, false)
		if why != "" {
			fmt.Fprintln(c.stderr, why)
		}
		if out == exitDone {
			out = code
		}
	}
	return out, nil
}
