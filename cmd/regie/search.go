package main

import (
	"cmp"
	"context"
	"os/signal"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/sanitize"
)

const (
	maxHits    = 100
	linesOfHit = 4
)

type searchFlags struct {
	limit                          int
	exact, regex, fold, json, here bool
}

// newSearchCommand searches the workspace's files (spec 8.3, 10.1).
func newSearchCommand(env *environment) *cobra.Command {
	var f searchFlags
	cmd := &cobra.Command{
		Use: "search QUERY [PATH]", Args: checkArgCount(1, 2),
		Short: env.T("Search the workspace's files by meaning and words"),
		Long:  env.T("Search the workspace's files and show the best parts first: by words, their stems and the parts of identifiers, and by meaning where an embedder is configured. The index is created or updated first.\n\n--exact finds every line that contains a text, --regex every line that an RE2 expression matches; they need no index. PATH limits the search to a directory or a file.\nIgnored files, .git and possible secrets are left out. The exit code is 1 if nothing was found."),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.limit < 1 || f.limit > maxHits {
				return regie.Errorf(codeUsage, "--limit must be a number from 1 to %d", maxHits)
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), endSignals()...)
			defer stop()
			err := searchFiles(ctx, env, &f, append(args, "")[0], append(args, "")[1])
			if ctx.Err() != nil {
				return exit{exitInterrupted}
			}
			return err
		},
	}
	flags := cmd.Flags()
	flags.IntVarP(&f.limit, "limit", "n", 10, env.T("how many parts of files, or lines, to show"))
	flags.BoolVarP(&f.exact, "exact", "e", false, env.T("find lines that contain this exact text"))
	flags.BoolVarP(&f.regex, "regex", "E", false, env.T("find lines that a regular expression matches"))
	flags.BoolVarP(&f.fold, "ignore-case", "i", false,
		env.T("with --exact and --regex: ignore case"))
	cmd.MarkFlagsMutuallyExclusive("exact", "regex")
	addJSONFlag(env, cmd, &f.json)
	addHereFlag(env, cmd, &f.here)
	return cmd
}

// searchFiles searches a workspace through its engine, which brings the index up to date before.
func searchFiles(ctx context.Context, env *environment, f *searchFlags, query, under string) error {
	at, err := env.workspaceDir()
	if err != nil {
		return err
	}
	asked := dispatch.SearchRequest{
		Text: query, In: dispatch.SearchFiles, Mode: dispatch.SearchSemantic, Limit: f.limit,
		Case: !f.fold, Under: under,
	}
	switch {
	case f.exact:
		asked.Mode = dispatch.SearchExact
	case f.regex:
		asked.Mode = dispatch.SearchRegex
	}
	if env.config.Server == "" {
		if at, err = filepath.EvalSymlinks(at); err != nil {
			return err
		}
		if under != "" && !filepath.IsAbs(under) {
			asked.Under = filepath.Join(at, under)
		}
	}
	var root string
	found, err := writeStore(ctx, env, func(conn *app.Conn) (dispatch.Found, error) {
		place, err := conn.Workspaces.Open(ctx, dispatch.WorkspaceRequest{Path: at, Here: f.here})
		if err != nil {
			return dispatch.Found{}, err
		}
		root, asked.WorkspaceID = place.Root, place.ID
		return conn.Workspaces.Search(ctx, asked)
	})
	if env.config.Server != "" {
		at = root
	}
	err = printLines(env, f.json, found, err, func(p *printer) { printFound(env, p, &asked, &found, root, at) })
	if err == nil && len(found.Files) == 0 {
		return exit{exitError}
	}
	return err
}

// printFound prints what was found, each with a place that terminals and editors open: a path from
// the current directory, and a line.
func printFound(env *environment, p *printer, asked *dispatch.SearchRequest, found *dispatch.Found, root, at string) {
	mentions := app.Mentions(asked.Text)
	for i := range found.Files {
		f := &found.Files[i]
		path := filepath.Join(root, filepath.FromSlash(f.Path))
		if relative, err := filepath.Rel(at, path); err == nil {
			path = sanitize.Line(relative)
		}
		if asked.Mode != dispatch.SearchSemantic {
			p.printLine("%s:%d: %s", path, f.Start, sanitize.Visible(f.Text))
			continue
		}
		lines, best := bestLines(f, mentions)
		p.printLine("%s:%d  %s", path, f.Start+best[0], sanitize.Line(f.Symbol))
		for _, at := range best {
			p.printLine("%6d  %s", f.Start+at, oneLine(sanitize.Visible(lines[at]), 240))
		}
	}
	switch {
	case len(found.Files) == 0:
		env.notef("nothing found")
	case asked.Mode == dispatch.SearchSemantic:
		how := env.T("by meaning and by words")
		if found.Mode != string(app.IndexHybrid) {
			why := cmp.Or(env.text.Sentence(found.Reason), env.T("no embedder is configured"))
			how = env.T("by words and their stems: %s", why)
		}
		env.notef("parts found: %d (%s, %s)", len(found.Files), found.Mode, how)
	case found.More:
		env.notef("lines found: %d, and there are more (--limit)", len(found.Files))
	}
}

// bestLines returns the lines of a part, and the places of the first ones with a word of the query;
// without any those of its first lines.
func bestLines(f *dispatch.FoundFile, mentions func(string) bool) (lines []string, best []int) {
	lines = strings.Split(f.Text, "\n")
	for at, line := range lines {
		if mentions(line) {
			best = append(best, at)
		}
	}
	if len(best) == 0 {
		best = []int{0, 1, 2, 3}[:min(len(lines), linesOfHit)]
	}
	return lines, best[:min(len(best), linesOfHit)]
}
