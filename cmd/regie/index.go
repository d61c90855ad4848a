package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/sanitize"
)

// newIndexCommand brings the index of a workspace up to date (spec 8.3).
func newIndexCommand(env *environment) *cobra.Command {
	var here, rebuild, asJSON bool
	cmd := &cobra.Command{
		Use: "index", Args: checkArgCount(0, 0),
		Short: env.T("Update the search index of this workspace"),
		Long:  env.T("Update the search index of this workspace. Only new and changed files are read. Each search updates the index first, so you need this only for large workspaces, or to see what is not in the index.\n\nIgnored files, possible secrets, binary files and very large files are left out. The index is in the data directory and can be deleted at any time."),
		RunE: func(cmd *cobra.Command, _ []string) error {
			root, err := env.localWorkspace(here)
			if err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), endSignals()...)
			defer stop()
			done, embedded, err := updateIndex(ctx, env, root, rebuild)
			if errors.Is(err, context.Canceled) { // the next time goes on from here
				return exit{exitInterrupted}
			}
			return printLines(env, asJSON, struct {
				Root string `json:"root"`
				app.IndexSummary
				Embedded app.IndexEmbedded `json:"embedded,omitzero"`
			}{root, done, embedded}, err, func(p *printer) {
				printIndexed(p, root, &done)
				printEmbedded(p, &embedded)
			})
		},
	}
	cmd.Flags().BoolVar(&rebuild, "rebuild", false, env.T("delete the index and build it again"))
	addHereFlag(env, cmd, &here)
	addJSONFlag(env, cmd, &asJSON)
	return cmd
}

// updateIndex updates or rebuilds the index of a workspace, and embeds new chunks.
func updateIndex(ctx context.Context, env *environment, root string, rebuild bool) (
	done app.IndexSummary, embedded app.IndexEmbedded, err error,
) {
	x, err := app.OpenIndex(ctx, env.config, root)
	if err != nil {
		return done, embedded, err
	}
	show, cleared := newProgress(env)
	update := x.Update
	if rebuild {
		update = x.Rebuild
	}
	if done, err = update(ctx, show); err == nil {
		embedded, err = x.Embed(ctx, show)
	}
	cleared()
	return done, embedded, errors.Join(err, x.Close())
}

// printEmbedded prints the result of embedding, where an embedder is configured.
func printEmbedded(p *printer, e *app.IndexEmbedded) {
	if e.Model != "" {
		cost := p.text.T("of unknown price")
		if e.Priced {
			cost = p.text.T("$%s", regie.Dollars(e.Cost))
		}
		p.printText("", "embedded with %s: %d texts  tokens: %d  cost: %s", e.Model, e.Made, e.Tokens, cost)
	}
	if e.Cut+e.Refused > 0 {
		p.printText("", "too long for the model: %d embedded by their beginning, %d found by their words alone", e.Cut, e.Refused)
	}
	if !e.Reason.IsZero() {
		p.printText("", "not embedded yet, found by their words alone: %d (%s)", e.Missing, p.text.Sentence(e.Reason))
	}
}

// printIndexed prints what an update read, and how much is not in the index, by its reason.
func printIndexed(p *printer, root string, s *app.IndexSummary) {
	p.printText("", "index of %s", root)
	p.printText("", "files: %d  chunks: %d", s.Files, s.Chunks)
	p.printText("", "read: %d  changed: %d  removed: %d  time: %s", s.Read, s.Changed, s.Removed,
		s.Took.Round(time.Millisecond))
	for _, why := range slices.Sorted(maps.Keys(s.Skipped)) {
		if n := s.Skipped[why]; n > 0 {
			p.printText("", "not in the index (%s): %d", string(why), n)
		}
	}
}

// newProgress returns a function that shows the progress of an index on a terminal, and one that
// clears it.
func newProgress(env *environment) (show func(app.IndexProgress), cleared func()) {
	if !isTerminal(env.stderr) || os.Getenv("TERM") == "dumb" {
		return func(app.IndexProgress) {}, func() {}
	}
	return func(p app.IndexProgress) {
		line := env.T("%d of %d files", p.Done, p.Total)
		if p.Embedding {
			line = env.T("%d of %d texts embedded", p.Done, p.Total)
		}
		fmt.Fprint(env.stderr, "\r\x1b[K"+sanitize.Strip(line))
	}, func() { fmt.Fprint(env.stderr, "\r\x1b[K") }
}
