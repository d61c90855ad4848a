package main

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/sanitize"
)

// newWorkspacesCommand shows the directories that agents have worked in (spec 8.1).
func newWorkspacesCommand(env *environment) *cobra.Command {
	workspaces := &cobra.Command{Use: "workspaces", Short: env.T("List and show the directories that agents worked in")}
	var asJSON bool
	list := &cobra.Command{
		Use: "list", Args: checkArgCount(0, 0), Short: env.T("List the workspaces, the last active one first"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			found, err := listWorkspaces(cmd.Context(), env)
			return printLines(env, asJSON, found, err, func(p *printer) {
				if len(found) == 0 {
					p.printText("", "no workspaces yet")
				}
				for i := range found {
					p.printLine("%s  %s", lastActive(&found[i]), sanitize.Line(found[i].Root))
				}
			})
		},
	}
	show := &cobra.Command{
		Use: "show [DIR]", Args: checkArgCount(0, 1), Short: env.T("Show the workspace of a directory, or of this one"),
		RunE: func(cmd *cobra.Command, args []string) error {
			root, _, err := env.findWorkspace(cmd.Context(), append(args, "")[0], true)
			if err != nil {
				return err
			}
			found, err := listWorkspaces(cmd.Context(), env)
			at := slices.IndexFunc(found, func(w regie.Workspace) bool { return w.Root == root })
			if err == nil && at < 0 {
				err = regie.Errorf(regie.CodeNotFound, "no agent has worked in %s yet: regie workspaces list shows where any has",
					root)
			}
			if err != nil {
				return err
			}
			return printLines(env, asJSON, found[at], nil, func(p *printer) {
				w := &found[at]
				p.printLine("%s", sanitize.Line(w.Root))
				p.printText("  ", "id %s, found by %s, since %s, last active %s", w.ID.String(), w.FoundBy,
					w.CreatedAt.Local().Format("2006-01-02 15:04"), lastActive(w))
				if seen, err := app.LookProject(env.config, w.Root); err == nil && env.config.Server == "" {
					p.printLine("  %s", env.text.Sentence(seen.Standing()))
				}
			})
		},
	}
	for _, cmd := range []*cobra.Command{list, show} {
		addJSONFlag(env, cmd, &asJSON)
	}
	workspaces.AddCommand(list, show)
	return workspaces
}

func listWorkspaces(ctx context.Context, env *environment) ([]regie.Workspace, error) {
	found, err := readStoreOr(ctx, env, []regie.Workspace{},
		func(conn *app.Conn) ([]regie.Workspace, error) { return conn.Workspaces.List(ctx) })
	slices.SortStableFunc(found, func(a, b regie.Workspace) int { return b.LastActive.Compare(a.LastActive) })
	return found, err
}

// lastActive says when a workspace was last active.
func lastActive(w *regie.Workspace) string {
	if w.LastActive.IsZero() {
		return "-               "
	}
	return w.LastActive.Local().Format("2006-01-02 15:04")
}
