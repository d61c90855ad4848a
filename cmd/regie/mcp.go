package main

import (
	"context"
	"log/slog"
	"os/signal"
	"sync/atomic"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/mcpserver"
)

// newMCPCommand returns an MCP server on standard input and output (spec 10.1, 10.2).
func newMCPCommand(env *environment) *cobra.Command {
	var dir, agent string
	var approvals, here bool
	cmd := &cobra.Command{
		Use: "mcp", Args: checkArgCount(0, 0),
		Short: env.T("Serve this workspace to an MCP client on standard input and output"),
		Long:  env.T("Run a Model Context Protocol server on standard input and output, for a program that starts this one: it can read and search the workspace's files as agents do, give an agent a job, see its progress, and stop it.\n\nAn agent's requests go to the person at the client where the client supports that (elicitation); otherwise they wait for regie approvals. The client, which may be a model, decides nothing by itself unless you set --allow-approvals. The program ends with its standard input; runs continue with the next regie process."),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return serveStdio(cmd.Context(), env, func(ctx context.Context, conn *app.Conn, log *slog.Logger) error {
				request, err := newRequest(ctx, env, dir, here, agent, approval.Policy{OnApproval: approval.Park})
				if err != nil {
					return err
				}
				return mcpserver.Serve(ctx, mcpserver.Config{
					Control: conn.ForMCP(), Text: env.text, Version: version, Log: log, Request: request, Here: here,
					Elicit: true, AllowApprovals: approvals || env.config.File.MCP.AllowApprovals,
				}, env.stdin, env.stdout)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&dir, "workspace", "", env.T("the workspace: a directory; by default, the current one"))
	flags.BoolVar(&approvals, "allow-approvals", false,
		env.T("let the client decide approvals and answer questions by itself (mcp.allow_approvals)"))
	addAgentFlag(env, cmd, &agent)
	addHereFlag(env, cmd, &here)
	addModelFlags(env, cmd)
	return cmd
}

// serveStdio attaches to an engine, or becomes one, and speaks a protocol on standard input and
// output until that ends or a signal comes. Everything else goes to standard error.
func serveStdio(ctx context.Context, env *environment,
	speak func(ctx context.Context, conn *app.Conn, log *slog.Logger) error,
) error {
	// a reader that has gone ends the protocol, and not the process in the middle of something
	signal.Ignore(syscall.SIGPIPE)
	signals := catchSignals()
	defer signals.stop()
	options := env.connOptions(app.Options{Resumed: env.tellResumed(regie.ID{})})
	conn, err := env.connect(ctx, options)
	if err != nil {
		return err
	}
	speaking, stop := context.WithCancel(ctx)
	defer stop()
	var signalled atomic.Bool
	go func() { // it ends with speaking
		select {
		case <-signals.first:
			signalled.Store(true)
			stop()
		case <-speaking.Done():
		}
	}()
	err = speak(speaking, conn, options.Log)
	stop()
	env.drainCalls(ctx, conn, signals.first, signals.ending.Load())
	if closing := conn.Close(); err == nil {
		err = closing
	}
	if err == nil && signalled.Load() {
		return exit{exitInterrupted}
	}
	return err
}
