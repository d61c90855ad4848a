package main

import (
	"github.com/spf13/cobra"

	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
)

// newCacheCommand looks at the response cache and empties it (spec 6.4).
func newCacheCommand(env *environment) *cobra.Command {
	cache := &cobra.Command{
		Use: "cache", Short: env.T("Answers that are given again without asking the model"),
		Long: env.T("Answers that are given again without asking the model. An agent's answers without tool calls are kept where its key cache is on, or where its temperature is 0.\nThe same question in the same workspace, by the same user, to the same model, after the same words, has the same answer then, until that expires."),
	}
	var all, asJSON bool
	stats := &cobra.Command{
		Use: "stats", Args: arguments(0, 0), Short: env.T("What is in the response cache of this workspace"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := readWorkspace(cmd.Context(), env, all, store.CacheStats{},
				func(conn *app.Conn, root string) (store.CacheStats, error) {
					return conn.CacheStats(cmd.Context(), root)
				})
			if err != nil || asJSON {
				return orJSON(env, s, err)
			}
			p := env.printer()
			p.textf("", "answers kept: %d, %d bytes; expired among them: %d", s.Entries, s.Bytes, s.Expired)
			p.textf("", "given again: %d times; tokens saved: about %d", s.Hits, s.Saved)
			if !s.Oldest.IsZero() {
				p.textf("", "the oldest is of %s", s.Oldest.Local().Format("2006-01-02 15:04:05"))
			}
			return p.err
		},
	}
	addViewFlags(env, stats, &all, &asJSON)
	empty := &cobra.Command{
		Use: "clear", Args: arguments(0, 0),
		Short: env.T("Forget the answers of this workspace that would be given again; sessions keep theirs"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			root, err := env.scope(cmd.Context(), all)
			if err != nil {
				return err
			}
			out, err := writeStore(cmd.Context(), env,
				func(conn *app.Conn) (dispatch.Cleared, error) {
					return conn.ClearCache(cmd.Context(), dispatch.ClearRequest{Root: root})
				})
			if err != nil {
				return err
			}
			return env.printf("answers forgotten: %d", out.Entries)
		},
	}
	addAllFlag(env, empty, &all)
	cache.AddCommand(stats, empty)
	return cache
}
