package main

import (
	"context"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/regie-run/regie/internal/acp"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/dispatch"
)

// acpCommand is Regie as an agent of an editor (spec 10.1).
func (c *command) acpCommand() *cobra.Command {
	var agent string
	var here bool
	cmd := &cobra.Command{
		Use: "acp", Args: usage(cobra.NoArgs),
		Short: c.text.T("Be the agent of an editor that speaks the Agent Client Protocol"),
		Long:  c.text.T("Speak the Agent Client Protocol on standard input and output, for an editor that starts this program: chat, plans, calls with their diffs, and the dialogue in which you allow or reject them.\n\nThe workspace is that of the directory which the editor opens. An editor that goes away stops nothing: what runs goes on with the next regie, and the editor finds it when it loads the session."),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.stdio(cmd.Context(), func(ctx context.Context, conn *app.Conn, log *slog.Logger) error {
				return acp.Serve(ctx, acp.Config{
					Control: conn, Text: c.text, Version: version, Log: log,
					Look: app.Look,
					Request: func(dir string) (dispatch.RunRequest, error) {
						root, foundBy, err := c.placeOf(ctx, dir, here)
						if err != nil {
							return dispatch.RunRequest{}, err
						}
						request := c.template(root, foundBy, agent)
						request.Policy.Questions, request.Here = true, here
						return request, nil
					},
				}, c.stdin, c.stdout)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&agent, "agent", "main", c.text.T("the agent"))
	flags.BoolVar(&here, "here", false,
		c.text.T("allow the home directory, / or a directory of the system as the workspace"))
	c.modelFlags(cmd)
	return cmd
}
