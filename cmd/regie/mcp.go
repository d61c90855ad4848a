package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/mcpserver"
	"github.com/regie-run/regie/internal/workspace"
)

type mcpFlags struct {
	workspace, agent string
	approvals, here  bool
}

// mcpCommand is Regie as an MCP server on standard input and output (spec 10.1, 10.2).
func (c *command) mcpCommand() *cobra.Command {
	var f mcpFlags
	cmd := &cobra.Command{
		Use: "mcp", Args: usage(cobra.NoArgs),
		Short: c.text.T("Serve this workspace to an MCP client on standard input and output"),
		Long:  c.text.T("Speak the Model Context Protocol on standard input and output, for a program that starts this one: it can read and search the workspace's files as agents do, give an agent a job, see how that stands, and stop it.\n\nWhat an agent asks people is put to the person at the client's end where the client can ask them (elicitation), and waits for regie approvals where it cannot. The client decides nothing by itself unless --allow-approvals says so: it may be a model. The program ends with its standard input; what runs then goes on with the next regie."),
		RunE:  func(cmd *cobra.Command, _ []string) error { return c.serveMCP(cmd.Context(), f) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.workspace, "workspace", "",
		c.text.T("the workspace: a directory; left out, that of the current one"))
	flags.StringVar(&f.agent, "agent", "main", c.text.T("the agent"))
	flags.BoolVar(&f.approvals, "allow-approvals", false,
		c.text.T("let the client decide approvals and answer questions by itself (mcp.allow_approvals)"))
	flags.BoolVar(&f.here, "here", false,
		c.text.T("allow the home directory, / or a directory of the system as the workspace"))
	c.modelFlags(cmd)
	return cmd
}

func (c *command) serveMCP(ctx context.Context, f mcpFlags) error {
	dir := f.workspace
	if dir == "" {
		var err error
		if dir, err = os.Getwd(); err != nil {
			return regie.Errorf(regie.CodeFileNotFound, "the current directory cannot be read: %v", err)
		}
	}
	root, foundBy, err := c.placeOf(ctx, dir, f.here)
	if err != nil {
		return err
	}
	return c.stdio(ctx, func(ctx context.Context, conn *app.Conn, log *slog.Logger) error {
		request := c.template(root, foundBy, f.agent)
		request.Here = f.here
		return mcpserver.Serve(ctx, mcpserver.Config{
			Control: conn.ForMCP(), Text: c.text, Version: version, Log: log,
			Request: request, Here: f.here, Elicit: true, AllowApprovals: f.approvals ||
				c.config.File.MCP.AllowApprovals,
		}, c.stdin, c.stdout)
	})
}

// placeOf is the workspace of a directory, of this machine or of the server's.
func (c *command) placeOf(ctx context.Context, dir string, here bool) (root, foundBy string, err error) {
	if c.config.Server != "" {
		return c.served(ctx, dir, here)
	}
	return workspace.Detect(dir, os.Getenv("HOME"), here)
}

// template is what a message in a workspace is sent with by a program that speaks a protocol. Where
// no model is configured here the engine's answers, or nothing does, and the program is told so
// when it wants one.
func (c *command) template(root, foundBy, agent string) dispatch.RunRequest {
	return c.startIn(root, foundBy, agent, approval.Policy{OnApproval: approval.Park})
}

// stdio attaches to an engine, or becomes one, and speaks a protocol on standard input and output
// until that ends or a signal comes. Everything else goes to standard error.
func (c *command) stdio(ctx context.Context, speak func(ctx context.Context, conn *app.Conn,
	log *slog.Logger) error,
) error {
	// who reads has gone: that ends the speaking, and not the process in the middle of something
	signal.Ignore(syscall.SIGPIPE)
	signals := c.signals()
	defer signals.stop()
	conn, err := c.connect(ctx, app.Options{Resumed: func(rounds []regie.ID) {
		for _, id := range rounds {
			fmt.Fprintln(c.stderr, c.text.T("resuming the interrupted run %s", id))
		}
	}})
	if err != nil {
		return err
	}
	speaking, stop := context.WithCancel(ctx)
	defer stop()
	told := make(chan os.Signal, 1)
	go func() { // it ends with speaking
		select {
		case s := <-signals.first:
			told <- s
			stop()
		case <-speaking.Done():
		}
	}()
	err = speak(speaking, conn, slog.New(slog.NewTextHandler(c.stderr, &slog.HandlerOptions{Level: c.level})))
	stop()
	c.drain(ctx, conn, signals.first, signals.ended.Load())
	if closing := conn.Close(); err == nil {
		err = closing
	}
	select {
	case <-told:
		if err == nil {
			return exit{exitInterrupted}
		}
	default:
	}
	return err
}
