package main

import (
	"github.com/spf13/cobra"

	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/store"
)

// newApprovalsCommand lists what waits for a person.
func newApprovalsCommand(env *environment) *cobra.Command {
	var all, asJSON bool
	list := &cobra.Command{
		Use: "approvals", Args: checkArgCount(0, 0), Short: env.T("List what waits for your approval or answer"),
		Long: env.T("List the approvals and questions that wait for you in this workspace, oldest first.\n\nAn ID is written as its last characters (four or more), as it is shown; last is the newest of this workspace."),
		RunE: func(cmd *cobra.Command, _ []string) error {
			inbox, err := readWorkspace(cmd.Context(), env, all, store.Inbox{},
				func(conn *app.Conn, root string) (store.Inbox, error) {
					return conn.Inbox(cmd.Context(), store.InboxFilter{Root: root, Brief: !asJSON})
				})
			return printResult(env, asJSON, inbox, err, func(p *chat.Page) { p.Everywhere = all; p.Inbox(inbox) })
		},
	}
	show := &cobra.Command{
		Use: "show ID", Args: checkArgCount(1, 1),
		Short: env.T("Show one approval with its diffs and possible scopes"),
		RunE: func(cmd *cobra.Command, args []string) error {
			inbox, err := readWorkspace(cmd.Context(), env, false, store.Inbox{},
				func(conn *app.Conn, root string) (store.Inbox, error) {
					return chat.Find(cmd.Context(), conn.Client, root, args[0])
				})
			return printResult(env, asJSON, inbox, err, func(p *chat.Page) { p.Everywhere = true; p.Show(inbox) })
		},
	}
	addAllFlag(env, list, &all)
	list.PersistentFlags().BoolVar(&asJSON, "json", false, env.T("print JSON"))
	list.AddCommand(show)
	return list
}
