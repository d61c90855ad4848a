package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/chat"
)

type chatFlags struct {
	last   bool
	resume string
	agent  string
	allow  []string
	here   bool
	budget int
	loop   loopFlags
}

func (c *command) chatCommand() *cobra.Command {
	var f chatFlags
	cmd := &cobra.Command{
		Use: "chat", Args: usage(cobra.NoArgs), Short: c.text.T("Talk with an agent in this directory"),
		Long: c.text.T("Talk with an agent in this directory, in plain lines. What needs your approval is asked here, with a diff; /help lists what you can type.\n\nWhere standard input is no terminal, each line of it is a message, the answers go to standard output, and what waits for an approval ends the chat with exit code 4."),
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
	flags.StringVarP(&f.resume, "resume", "r", "", c.text.T("go on with this chat: its id, that of a run of it, or the end of one"))
	flags.StringVar(&f.agent, "agent", "main", c.text.T("the agent"))
	flags.StringSliceVar(&f.allow, "allow", nil, c.text.T("actions that need no approval in this chat: files.write_file, files.*"))
	flags.BoolVar(&f.here, "here", false, c.text.T("allow the home directory or / as the workspace"))
	flags.IntVar(&f.budget, "context-tokens", 0, c.text.T("lower the budget of a prompt, in tokens: above it older messages are summarised"))
	c.loopFlags(cmd, &f.loop)
	c.modelFlags(cmd)
	return cmd
}

func (c *command) chat(ctx context.Context, f chatFlags) error {
	if err := c.orSetup(ctx); err != nil {
		return err
	}
	terminal := attended(c.stdin, c.stderr)
	request, err := c.start(ctx, f.here, f.agent, approval.Policy{Allow: f.allow, OnApproval: approval.Park, Questions: terminal})
	if err != nil {
		return err
	}
	request.Limits.ContextTokens = f.budget
	if err := f.loop.into(&request); err != nil {
		return err
	}
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	input, err := chat.NewInput(c.stdin, terminal)
	if err != nil {
		return err
	}
	defer input.Close()
	conn, err := c.connect(ctx, app.Options{Resumed: func(rounds []regie.ID) {
		for _, id := range rounds {
			fmt.Fprintln(c.stderr, c.text.T("resuming the interrupted run %s", id))
		}
	}})
	if err != nil {
		return err
	}
	talk := chat.New(chat.Config{
		Control: conn, Text: c.text, Input: input, Out: c.stdout, Err: c.stderr, Terminal: terminal,
		Editor: chat.Command(chat.EditorLine(os.Getenv)), Signals: signals, Request: request, Look: app.Look(request.Root), Continue: f.resume,
		Skills: c.skillNotes(request.Root),
	})
	result, err := talk.Run(ctx)
	code, why := exitDone, ""
	if err == nil && !terminal && !result.Last.IsZero() {
		code, why, err = c.outcome(ctx, conn, result.Last)
	}
	c.drain(ctx, conn, signals, result.Signalled)
	if closing := conn.Close(); err == nil {
		err = closing
	}
	if why != "" {
		fmt.Fprintln(c.stderr, why)
	}
	if err == nil && code != exitDone {
		return exit{code}
	}
	return err
}

// outcome is the exit code of a round.
func (c *command) outcome(ctx context.Context, conn *app.Conn, round regie.ID) (code int, why string, err error) {
	view, err := conn.Get(ctx, round)
	if err != nil {
		return exitError, "", err
	}
	code, why = verdict(c.text, view, false)
	return code, why, nil
}
