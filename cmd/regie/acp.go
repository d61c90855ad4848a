package main

import (
	"context"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/regie-run/regie/internal/acp"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/dispatch"
)

// newACPCommand returns an ACP agent on standard input and output (spec 10.1).
func newACPCommand(env *environment) *cobra.Command {
	var agent string
	var here bool
	cmd := &cobra.Command{
		Use: "acp", Args: checkArgCount(0, 0),
		Short: env.T("Run an ACP agent for an editor on standard input and output"),
		Long:  env.T("Run an Agent Client Protocol server on standard input and output, for an editor that starts this program: chat, plans, calls with their diffs, and the dialog in which you allow or reject them.\n\nThe workspace is the directory that the editor opens. Closing the editor stops nothing: runs continue with the next regie process, and the editor finds them when it loads the session."),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return serveStdio(cmd.Context(), env, func(ctx context.Context, conn *app.Conn, _ *slog.Logger) error {
				return acp.Serve(ctx, acp.Config{
					Control: conn.Client, Text: env.text, Version: version, Look: app.Look,
					Request: func(dir string) (dispatch.RunRequest, error) {
						return newRequest(ctx, env, dir, here, agent, approval.Policy{
							OnApproval: approval.Park, Questions: true,
						})
					},
				}, env.stdin, env.stdout)
			})
		},
	}
	addAgentFlag(env, cmd, &agent)
	addHereFlag(env, cmd, &here)
	addModelFlags(env, cmd)
	return cmd
}
