package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
)

// rulesCommand lists and revokes what answers for longer left behind (spec 4.4).
func (c *command) rulesCommand() *cobra.Command {
	rules := &cobra.Command{
		Use: "rules", Short: c.text.T("What is allowed without asking"), Args: usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	var filter store.RuleFilter
	var all, asJSON bool
	list := &cobra.Command{
		Use: "list", Args: usage(cobra.NoArgs), Short: c.text.T("The answers for longer that hold in this workspace"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if !all {
				if filter.Root, _, err = c.workspace(cmd.Context(), true); err != nil {
					return err
				}
			}
			found, err := look(cmd.Context(), c, store.RuleList{Rules: []store.StandingRule{}},
				func(conn *app.Conn) (store.RuleList, error) {
					return conn.Rules(cmd.Context(), filter)
				})
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(c.stdout, found)
			}
			page := &chat.Page{W: c.stdout, Text: c.text, Now: time.Now, Everywhere: all}
			page.Rules(found)
			return page.Err()
		},
	}
	list.Flags().BoolVar(&all, "all", false, c.text.T("of every workspace"))
	list.Flags().BoolVar(&filter.Ended, "ended", false, c.text.T("also those that have expired or were revoked"))
	list.Flags().BoolVar(&asJSON, "json", false, c.text.T("print JSON"))
	revoke := &cobra.Command{
		Use: "revoke ID…", Args: usage(cobra.MinimumNArgs(1)),
		Short: c.text.T("Take rules back: what they allowed is asked about again"),
		Long:  c.text.T("Take rules back, all of them or none. A run that goes on asks again from its next call on.\n\nAn ID is written as its last characters (four or more), as regie rules list shows it; last is the newest of this workspace."),
		RunE:  func(cmd *cobra.Command, args []string) error { return c.revoke(cmd.Context(), args) },
	}
	rules.AddCommand(list, revoke)
	return rules
}

// revoke takes the named rules back; where no other regie runs, this one only stores it.
func (c *command) revoke(ctx context.Context, names []string) error {
	root, _, err := c.workspace(ctx, true)
	if err != nil {
		return err
	}
	conn, err := c.connect(ctx, app.Options{StoreOnly: true})
	if err != nil {
		return err
	}
	found, err := func() ([]store.StandingRule, error) {
		var found []store.StandingRule
		var ids []regie.ID
		for _, name := range names {
			rule, err := chat.FindRule(ctx, conn, root, name)
			if err != nil {
				return nil, err
			}
			found, ids = append(found, rule), append(ids, rule.ID)
		}
		return found, conn.Revoke(ctx, dispatch.RevokeRequest{RuleIDs: ids})
	}()
	if closing := conn.Close(); err == nil {
		err = closing
	}
	for i := range found {
		if err == nil {
			_, err = fmt.Fprintln(c.stdout, chat.Revoked(c.text, &found[i]))
		}
	}
	return err
}
