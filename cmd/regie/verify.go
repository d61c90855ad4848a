package main

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/store"
)

// newVerifyCommand checks logs (decision 15).
func newVerifyCommand(env *environment) *cobra.Command {
	var all, asJSON bool
	cmd := &cobra.Command{
		Use: "verify [SESSION]", Args: checkArgCount(0, 1),
		Short: env.T("Verify the audit logs"),
		Long:  env.T("Verify that each log is complete and unaltered and that the stored records agree with it: for one session, for this workspace with its rules, or for all. Removed sessions are verified too.\n\nExit codes: 0 everything verifies, 1 something was altered."),
		RunE: func(cmd *cobra.Command, args []string) error {
			if all && len(args) > 0 {
				return regie.Errorf(codeUsage, "--all and a session exclude each other")
			}
			root, err := env.commandRoot(cmd.Context(), all)
			if err != nil {
				return err
			}
			// without a store nothing was verified, and that is an error
			reports, err := readStore(cmd.Context(), env,
				func(conn *app.Conn) ([]store.LogReport, error) { return verifyLogs(cmd.Context(), conn, root, args) })
			err = printResult(env, asJSON, reports, err, func(p *chat.Page) { p.Logs(reports) })
			if err == nil && slices.ContainsFunc(reports, func(r store.LogReport) bool { return r.Error != "" }) {
				return exit{exitError}
			}
			return err
		},
	}
	addViewFlags(env, cmd, &all, &asJSON)
	return cmd
}

// verifyLogs verifies the logs of a workspace, or of one session. A removed session is found by a
// part of its own id only.
func verifyLogs(ctx context.Context, conn *app.Conn, root string, args []string) ([]store.LogReport, error) {
	filter := store.LogFilter{Root: root}
	if len(args) == 0 {
		return conn.Verify(ctx, filter)
	}
	found, missing := chat.FindSession(ctx, conn.Client, root, args[0])
	switch {
	case missing == nil:
		filter.ID = found.ID
	case regie.CodeOf(missing) != regie.CodeNotFound || args[0] == "last":
		return nil, missing
	default:
		filter.Short = strings.ReplaceAll(args[0], "-", "")
	}
	reports, err := conn.Verify(ctx, filter)
	if err == nil && len(reports) == 0 {
		err = missing // there is no such session, removed or not
	}
	return reports, err
}
