package main

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/regie-run/regie"
)

// Bounds of what a search prints.
const (
	hitsShown    = 10
	matchesShown = 1000
	maxHits      = 100
	maxMatches   = 1_000_000
	linesOfHit   = 4
	searchTime   = time.Minute // for a search for lines: some expressions are slow on some files
	lineShown    = 240         // bytes
	fileSearched = 256 << 20   // bytes, as files.search_text
)

type searchFlags struct {
	limit                    int
	exact, regex, fold, json bool
	here                     bool
	timeout                  time.Duration // of a search for lines
}

// searchCommand looks for something in the workspace's files (spec 8.3, 10.1).
func (c *command) searchCommand() *cobra.Command {
	var f searchFlags
	cmd := &cobra.Command{
		Use: "search QUERY [PATH]", Args: usage(cobra.RangeArgs(1, 2)),
		Short: c.text.T("Find what the workspace's files say about something"),
		Long:  c.text.T("Find the parts of the workspace's files that are about something, the best first: by the words of the query and their stems, and the parts of names in code; by meaning too where an embedder is configured. The index of the workspace is made, or brought up to date, first.\n\n--exact finds every line that holds a text, --regex every line that an expression of RE2 matches; they need no index. PATH is a directory or a file to look in.\nWhat ignore files name, .git, and what may hold a secret is left out. The exit code is 1 where nothing was found."),
		RunE: func(cmd *cobra.Command, args []string) error {
			in := ""
			if len(args) > 1 {
				in = args[1]
			}
			if cmd.Flags().Changed("limit") && f.limit == 0 {
				f.limit = -1
			}
			return c.search(cmd.Context(), args[0], in, &f)
		},
	}
	flags := cmd.Flags()
	flags.IntVarP(&f.limit, "limit", "n", 0,
		c.text.T("how many parts of files to show, 10 unless said; with --exact and --regex how many lines, 1000"))
	flags.BoolVarP(&f.exact, "exact", "e", false, c.text.T("find lines that hold this very text"))
	flags.BoolVarP(&f.regex, "regex", "E", false, c.text.T("find lines that a regular expression matches"))
	flags.BoolVarP(&f.fold, "ignore-case", "i", false,
		c.text.T("with --exact and --regex: take capitals and small letters for the same"))
	flags.DurationVar(&f.timeout, "timeout", 0,
		c.text.T("with --exact and --regex: end the search after this long, 1m unless said (exit code 7)"))
	flags.BoolVar(&f.json, "json", false, c.text.T("print JSON"))
	flags.BoolVar(&f.here, "here", false,
		c.text.T("allow the home directory, / or a directory of the system as the workspace"))
	return cmd
}

// check refuses what would be ignored, and completes the limit.
func (f *searchFlags) check() error {
	lines := f.exact || f.regex
	usual, most := hitsShown, maxHits
	if lines {
		usual, most = matchesShown, maxMatches
	}
	switch {
	case f.exact && f.regex:
		return regie.Errorf(codeUsage, "--exact and --regex exclude each other")
	case f.fold && !lines:
		return regie.Errorf(codeUsage, "--ignore-case needs --exact or --regex: without them capitals never count")
	case f.timeout < 0 || f.timeout > 0 && !lines:
		return regie.Errorf(codeUsage, "--timeout is a time such as 30s, for --exact and --regex")
	case f.limit == 0:
		f.limit = usual
	case f.limit < 0 || f.limit > most:
		return regie.Errorf(codeUsage, "--limit must be a number from 1 to %d", most)
	}
	return nil
}

func (c *command) search(ctx context.Context, query, in string, f *searchFlags) error {
	if err := f.check(); err != nil {
		return err
	}
	if strings.TrimSpace(query) == "" && !f.exact && !f.regex {
		return regie.Errorf(codeUsage, "there is nothing to look for: the query is empty")
	}
	if c.config.Server != "" {
		if f.timeout > 0 {
			return regie.Errorf(codeUsage, "--timeout does not go with --server: a server bounds its searches itself")
		}
		return c.searchServed(ctx, query, in, f)
	}
	root, err := c.directory(f.here)
	if err != nil {
		return err
	}
	at, err := os.Getwd()
	if err == nil {
		at, err = filepath.EvalSymlinks(at)
	}
	if err != nil {
		return regie.Errorf(regie.CodeFileNotFound, "the current directory cannot be read: %v", err)
	}
	s := searching{command: c, flags: f, query: query, root: root, at: at, in: ".", colour: coloured(c.stdout)}
	if in != "" {
		if s.in = in; !filepath.IsAbs(in) {
			s.in = filepath.Join(at, in)
		}
	}
	signals := c.signals()
	defer signals.stop()
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	var interrupted atomic.Bool
	ended := inner.Done()
	go func() { // it ends with inner
		select {
		case <-signals.first:
			interrupted.Store(true)
			cancel()
		case <-ended:
		}
	}()
	look := s.parts
	if f.exact || f.regex {
		look = s.exactly
		var over context.CancelFunc
		inner, over = context.WithTimeout(inner, cmp.Or(f.timeout, searchTime))
		defer over()
	}
	found, err := look(inner)
	switch {
	case interrupted.Load():
		return exit{exitInterrupted}
	case err != nil:
		return err
	case s.stopped:
		return exit{exitTimeout}
	case !found:
		return exit{exitError}
	}
	return nil
}
