package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
)

// newRulesCommand lists and revokes answers that hold for longer (spec 4.4).
func newRulesCommand(env *environment) *cobra.Command {
	rules := &cobra.Command{Use: "rules", Short: env.T("Manage the standing rules")}
	var filter store.RuleFilter
	var all, asJSON bool
	list := &cobra.Command{
		Use: "list", Args: checkArgCount(0, 0), Short: env.T("List the standing rules of this workspace"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			found, err := readWorkspace(cmd.Context(), env, all, store.RuleList{Rules: []store.StandingRule{}},
				func(conn *app.Conn, root string) (store.RuleList, error) {
					filter.Root = root
					return conn.Rules.List(cmd.Context(), filter)
				})
			return printResult(env, asJSON, found, err, func(p *chat.Page) { p.Everywhere = all; p.Rules(found) })
		},
	}
	addAllFlag(env, list, &all)
	list.Flags().BoolVar(&filter.Ended, "ended", false, env.T("also those that have expired or were revoked"))
	addJSONFlag(env, list, &asJSON)
	revoke := &cobra.Command{
		Use: "revoke ID…", Args: checkArgCount(1, -1),
		Short: env.T("Revoke standing rules"),
		Long:  env.T("Revoke rules, all of them or none. A run in progress asks again from its next call on.\n\nAn ID is written as its last characters (four or more), as regie rules list shows it; last is the newest of this workspace."),
		RunE: func(cmd *cobra.Command, args []string) error {
			revoked, err := revokeRules(cmd.Context(), env, args)
			for i := range revoked {
				if err == nil {
					_, err = fmt.Fprintln(env.stdout, chat.Revoked(env.text, &revoked[i]))
				}
			}
			return err
		},
	}
	rules.AddCommand(list, revoke)
	return rules
}

// revokeRules revokes the named rules.
func revokeRules(ctx context.Context, env *environment, names []string) ([]store.StandingRule, error) {
	root, err := env.commandRoot(ctx, false)
	if err != nil {
		return nil, err
	}
	return writeStore(ctx, env, func(conn *app.Conn) (found []store.StandingRule, _ error) {
		var ids []regie.ID
		for _, name := range names {
			rule, err := chat.FindRule(ctx, conn.Client, root, name)
			if err != nil {
				return nil, err
			}
			found, ids = append(found, rule), append(ids, rule.ID)
		}
		return found, conn.Rules.Revoke(ctx, dispatch.RevokeRequest{RuleIDs: ids})
	})
}
