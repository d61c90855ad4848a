package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
)

// cacheCommand looks at the response cache and empties it (spec 6.4).
func (c *command) cacheCommand() *cobra.Command {
	cache := &cobra.Command{
		Use: "cache", Short: c.text.T("Answers that are given again without asking the model"),
		Args: usage(cobra.NoArgs),
		Long: c.text.T("Answers that are given again without asking the model. An agent's answers without tool calls are kept where its key cache is on, or where its temperature is 0.\nThe same question in the same workspace, by the same user, to the same model, after the same words, has the same answer then, until that expires."),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	var all, asJSON bool
	stats := &cobra.Command{
		Use: "stats", Args: usage(cobra.NoArgs), Short: c.text.T("What is in the response cache of this workspace"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			root, err := c.scope(cmd.Context(), all)
			if err != nil {
				return err
			}
			found, err := look(cmd.Context(), c, store.CacheStats{},
				func(conn *app.Conn) (store.CacheStats, error) { return conn.CacheStats(cmd.Context(), root) })
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(c.stdout, found)
			}
			return c.cacheStats(&found)
		},
	}
	stats.Flags().BoolVar(&all, "all", false, c.text.T("of every workspace"))
	stats.Flags().BoolVar(&asJSON, "json", false, c.text.T("print JSON"))
	var everything bool
	empty := &cobra.Command{
		Use: "clear", Args: usage(cobra.NoArgs),
		Short: c.text.T("Forget the answers of this workspace that would be given again; sessions keep theirs"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			root, err := c.scope(cmd.Context(), everything)
			if err != nil {
				return err
			}
			return c.clearCache(cmd.Context(), root)
		},
	}
	empty.Flags().BoolVar(&everything, "all", false, c.text.T("of every workspace"))
	cache.AddCommand(stats, empty)
	return cache
}

func (c *command) cacheStats(s *store.CacheStats) error {
	p := &printer{w: c.stdout}
	p.line("%s", c.text.T("answers kept: %d, %d bytes; expired among them: %d", s.Entries, s.Bytes, s.Expired))
	p.line("%s", c.text.T("given again: %d times; tokens saved: about %d", s.Hits, s.Saved))
	if !s.Oldest.IsZero() {
		p.line("%s", c.text.T("the oldest is of %s", s.Oldest.Local().Format("2006-01-02 15:04:05")))
	}
	return p.err
}

// clearCache empties the cache; where no other regie runs, this one only stores it.
func (c *command) clearCache(ctx context.Context, root string) error {
	conn, err := c.connect(ctx, app.Options{StoreOnly: true})
	if err != nil {
		return err
	}
	out, err := conn.ClearCache(ctx, dispatch.ClearRequest{Root: root})
	if closing := conn.Close(); err == nil {
		err = closing
	}
	if err == nil {
		_, err = fmt.Fprintln(c.stdout, c.text.T("answers forgotten: %d", out.Entries))
	}
	return err
}
