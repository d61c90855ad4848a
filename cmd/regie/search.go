package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/plain"
)

// Bounds of a search.
const (
	hitsShown    = 10
	matchesShown = 1000
	maxHits      = 100
	maxMatches   = 1_000_000
	searchTime   = time.Minute // for a search for lines: some expressions are slow on some files
	fileSearched = 256 << 20   // bytes, as files.search_text
	// embedTime bounds the wait for new chunks to be embedded. Later ones are found by their words.
	embedTime = 30 * time.Second
)

type searchFlags struct {
	limit                    int
	exact, regex, fold, json bool
	here                     bool
	timeout                  time.Duration // of a search for lines
}

// newSearchCommand searches the workspace's files (spec 8.3, 10.1).
func newSearchCommand(env *environment) *cobra.Command {
	var f searchFlags
	cmd := &cobra.Command{
		Use: "search QUERY [PATH]", Args: arguments(1, 2),
		Short: env.T("Find what the workspace's files say about something"),
		Long:  env.T("Find the parts of the workspace's files that are about something, the best first: by the words of the query and their stems, and the parts of names in code; by meaning too where an embedder is configured. The index of the workspace is made, or brought up to date, first.\n\n--exact finds every line that holds a text, --regex every line that an expression of RE2 matches; they need no index. PATH is a directory or a file to look in.\nWhat ignore files name, .git, and what may hold a secret is left out. The exit code is 1 where nothing was found."),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(cmd.Flags().Changed("limit")); err != nil {
				return err
			}
			if strings.TrimSpace(args[0]) == "" && !f.exact && !f.regex {
				return regie.Errorf(codeUsage, "there is nothing to look for: the query is empty")
			}
			s := &searching{environment: env, flags: &f, query: args[0], colour: hasColour(env.stdout)}
			if len(args) > 1 {
				s.in = args[1]
			}
			if env.config.Server != "" {
				return s.askServer(cmd.Context())
			}
			return s.searchHere(cmd.Context())
		},
	}
	flags := cmd.Flags()
	flags.IntVarP(&f.limit, "limit", "n", 0,
		env.T("how many parts of files to show, 10 unless said; with --exact and --regex how many lines, 1000"))
	flags.BoolVarP(&f.exact, "exact", "e", false, env.T("find lines that hold this very text"))
	flags.BoolVarP(&f.regex, "regex", "E", false, env.T("find lines that a regular expression matches"))
	flags.BoolVarP(&f.fold, "ignore-case", "i", false,
		env.T("with --exact and --regex: take capitals and small letters for the same"))
	flags.DurationVar(&f.timeout, "timeout", 0,
		env.T("with --exact and --regex: end the search after this long, 1m unless said (exit code 7)"))
	cmd.MarkFlagsMutuallyExclusive("exact", "regex")
	addJSONFlag(env, cmd, &f.json)
	addHereFlag(env, cmd, &f.here)
	return cmd
}

// check refuses flags that would be ignored, and completes the limit.
func (f *searchFlags) check(limited bool) error {
	lines := f.exact || f.regex
	usual, most := hitsShown, maxHits
	if lines {
		usual, most = matchesShown, maxMatches
	}
	switch {
	case f.fold && !lines:
		return regie.Errorf(codeUsage, "--ignore-case needs --exact or --regex: without them capitals never count")
	case f.timeout < 0 || f.timeout > 0 && !lines:
		return regie.Errorf(codeUsage, "--timeout is a time such as 30s, for --exact and --regex")
	case !limited:
		f.limit = usual
	case f.limit < 1 || f.limit > most:
		return regie.Errorf(codeUsage, "--limit must be a number from 1 to %d", most)
	}
	return nil
}

// searching is one search.
type searching struct {
	*environment
	flags  *searchFlags
	query  string
	root   string // of the workspace
	at     string // the current directory, without links
	in     string // the directory or file to search in; empty for the current directory
	colour bool
}

// searchHere searches the files of this machine. A signal ends it.
func (s *searching) searchHere(ctx context.Context) (err error) {
	if s.root, err = s.localWorkspace(s.flags.here); err != nil {
		return err
	}
	at, err := s.directory()
	if err == nil {
		s.at, err = filepath.EvalSymlinks(at)
	}
	if err != nil {
		return err
	}
	if s.in == "" {
		s.in = "."
	} else if !filepath.IsAbs(s.in) {
		s.in = filepath.Join(s.at, s.in)
	}
	ctx, stop := signal.NotifyContext(ctx, endSignals()...)
	defer stop()
	var found int
	var stopped bool
	if s.flags.exact || s.flags.regex {
		bounded, over := context.WithTimeout(ctx, cmp.Or(s.flags.timeout, searchTime))
		defer over()
		found, stopped, err = s.searchLines(bounded)
	} else {
		found, err = s.searchIndex(ctx)
	}
	switch {
	case ctx.Err() != nil:
		return exit{exitInterrupted}
	case err != nil:
		return err
	case stopped:
		return exit{exitTimeout}
	case found == 0:
		return exit{exitError}
	}
	return nil
}

// searchIndex prints the parts of files about something, and returns their number.
func (s *searching) searchIndex(ctx context.Context) (int, error) {
	x, err := app.OpenIndex(ctx, s.config, s.root)
	if err != nil {
		return 0, err
	}
	defer func() { _ = x.Close() }() // its content is on the disk
	under, err := x.Under(s.in)
	if err != nil {
		return 0, err
	}
	if err := s.updateIndex(ctx, x); err != nil {
		return 0, err
	}
	answer, err := x.Search(ctx, app.IndexQuery{Text: s.query, Limit: s.flags.limit, Under: under})
	if err != nil || s.flags.json {
		return len(answer.Hits), orJSON(s.environment, answer, err)
	}
	return len(answer.Hits), s.printParts(&answer)
}

// updateIndex brings the index up to date, and shows the progress to a person who waits.
func (s *searching) updateIndex(ctx context.Context, x *app.Index) error {
	bar := newIndexBar(s.environment)
	began := time.Now()
	show := func(p app.IndexProgress) {
		if time.Since(began) > time.Second/2 {
			bar.show(p)
		}
	}
	summary, err := x.Update(ctx, show)
	if err == nil && x.Ask(ctx, s.query).IsZero() {
		bounded, cancel := context.WithTimeout(ctx, embedTime)
		defer cancel()
		x.EmbedNew(bounded, show)
	}
	bar.clear()
	if err == nil && summary.Changed > 0 && summary.Changed == summary.Files { // a new index
		s.notef("indexed %d files", summary.Files)
	}
	return err
}

// matches is what --json prints of lines.
type matches struct {
	Mode    string  `json:"mode"` // exact or regex
	Matches []match `json:"matches"`
	More    bool    `json:"more"` // there are more than were asked for
	Files   int64   `json:"files"`
	Stopped bool    `json:"stopped,omitempty"` // not all was searched: its time was over, or it was interrupted
}

type match struct {
	Path string `json:"path"`
	Line int    `json:"line"`
	Text string `json:"text"` // or the part of it around the match
}

// searchLines prints the lines that hold a text, as they are found. It returns their number, and
// whether it was stopped.
func (s *searching) searchLines(ctx context.Context) (found int, stopped bool, err error) {
	out := matches{Mode: "exact", Matches: []match{}}
	if s.flags.regex {
		out.Mode = "regex"
	}
	p, highlight := s.painter(), s.highlighter()
	seen, err := app.SearchText(ctx, s.root, app.TextQuery{
		Text: s.query, Regex: s.flags.regex, CaseSensitive: !s.flags.fold, Path: s.in, Most: s.flags.limit,
		Clip: lineShown, MaxFile: fileSearched,
	}, func(m app.TextMatch) bool {
		found++
		if s.flags.json {
			out.Matches = append(out.Matches, match{m.Path, m.Line, strings.ToValidUTF8(m.Text, "\uFFFD")})
			return true
		}
		s.printMatch(p, highlight, &m)
		return p.err == nil
	})
	if err == nil {
		err = p.err
	}
	switch {
	case err != nil:
	case s.flags.json:
		out.More, out.Files, out.Stopped = seen.More || seen.Stopped, seen.Files, seen.Stopped
		err = writeJSON(s.stdout, out)
	default:
		s.printSearched(found, &seen)
	}
	return found, seen.Stopped, err
}

const (
	linesOfHit = 4
	lineShown  = 240 // bytes
)

// hasColour reports whether the reader of a stream sees colours (no-color.org).
func hasColour(out io.Writer) bool {
	return isTerminal(out) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// The colours of a search are those of grep.
const (
	pathColour   = "\x1b[35m"
	numberColour = "\x1b[32m"
	wordColour   = "\x1b[1;31m"
	plainColour  = "\x1b[0m"
)

// painter prints lines with their colours; the text of files is made harmless before.
func (s *searching) painter() *printer { return &printer{w: s.stdout, text: s.text, colours: true} }

func (s *searching) tint(colour, text string) string {
	if !s.colour || text == "" {
		return text
	}
	return colour + text + plainColour
}

// printParts prints the parts of an answer, and how they were found.
func (s *searching) printParts(answer *app.IndexAnswer) error {
	p, marks := s.painter(), app.Marks(s.query)
	for i := range answer.Hits {
		if i > 0 {
			p.line("")
		}
		h := &answer.Hits[i]
		lines := bestLines(h, marks)
		head := s.tint(pathColour, s.link(h.Path, lines[0].number))
		if h.Symbol != "" {
			head += "  " + plain.Line(h.Symbol)
		}
		p.line("%s", head)
		for _, l := range lines {
			p.line("%s  %s", s.tint(numberColour, fmt.Sprintf("%6d", l.number)), s.mark(l.text, l.places))
		}
	}
	if p.err != nil {
		return p.err
	}
	how := s.T("by meaning and by words")
	if answer.Mode != app.IndexHybrid {
		why := s.T("no embedder is configured")
		if !answer.Reason.IsZero() {
			why = s.text.Sentence(answer.Reason)
		}
		how = s.T("by words and their stems: %s", why)
	}
	what := s.T("parts found: %d", len(answer.Hits))
	if len(answer.Hits) == 0 {
		what = s.T("nothing found")
	}
	fmt.Fprintf(s.stderr, "%s (%s, %s)\n", what, answer.Mode, plain.Strip(how))
	return nil
}

// printMatch prints a line that holds what was searched.
func (s *searching) printMatch(p *printer, highlight func(string) [][2]int, m *app.TextMatch) {
	text := s.mark(m.Text, highlight(m.Text))
	if m.Before > 0 {
		text = "…" + text
	}
	if m.After > 0 {
		text += "…"
	}
	p.line("%s: %s", s.tint(pathColour, s.link(m.Path, m.Line)), text)
}

// hitLine is a line of a hit.
type hitLine struct {
	number int
	text   string
	places [][2]int
	words  int // of the query
}

// bestLines returns the lines of a hit with most words of the query, in their order; without any
// its first ones.
func bestLines(h *app.IndexHit, marks func(string) ([][2]int, []int)) []hitLine {
	var all []hitLine
	for text := range strings.SplitSeq(h.Text, "\n") {
		l := hitLine{number: h.Start + len(all), text: strings.TrimSuffix(text, "\r")}
		var words []int
		l.places, words = marks(l.text)
		l.words = len(words)
		all = append(all, l)
	}
	slices.SortStableFunc(all, func(a, b hitLine) int { return b.words - a.words })
	all = all[:min(len(all), linesOfHit)]
	if all[0].words > 0 {
		all = slices.DeleteFunc(all, func(l hitLine) bool { return l.words == 0 })
	}
	slices.SortFunc(all, func(a, b hitLine) int { return a.number - b.number })
	return all
}

// link is a place that terminals and editors open: a path from the current directory, and a line.
func (s *searching) link(name string, number int) string {
	path := filepath.Join(s.root, filepath.FromSlash(name))
	if relative, err := filepath.Rel(s.at, path); err == nil {
		path = relative
	}
	return fmt.Sprintf("%s:%d", plain.Line(path), number)
}

// mark colours places of a line and makes the line harmless. Of a long line it returns the part
// around the first place.
func (s *searching) mark(text string, places [][2]int) string {
	from, to := 0, len(text)
	if to > lineShown {
		if len(places) > 0 {
			from = max(0, min(places[0][0]-lineShown/4, len(text)-lineShown))
		}
		for to = from + lineShown; to < len(text) && !utf8.RuneStart(text[to]); to++ {
		}
		for ; from > 0 && from < to && !utf8.RuneStart(text[from]); from++ {
		}
	}
	var out strings.Builder
	if from > 0 {
		out.WriteString("…")
	}
	at := from
	for _, place := range places {
		begin, end := max(place[0], at), min(place[1], to)
		if begin >= end {
			continue
		}
		out.WriteString(plain.Visible(text[at:begin]))
		out.WriteString(s.tint(wordColour, plain.Visible(text[begin:end])))
		at = end
	}
	out.WriteString(plain.Visible(text[at:to]))
	if to < len(text) {
		out.WriteString("…")
	}
	return out.String()
}

// printSearched says what was not searched.
func (s *searching) printSearched(found int, seen *app.TextSearched) {
	switch {
	case seen.Stopped:
		s.notef("lines found: %d, in the %d files that were searched until it was stopped: name a deeper path, or give it more time (--timeout)", found, seen.Files)
	case found == 0:
		s.notef("nothing found in %d files", seen.Files)
	case seen.More:
		s.notef("lines found: %d, and there are more (--limit)", found)
	}
	if seen.TooMany {
		s.notef("there are more files than one search looks at: name a deeper path")
	}
	if seen.Clipped > 0 {
		s.notef("%d large files were searched in part", seen.Clipped)
	}
	if seen.System > 0 {
		s.notef("directories of the system, such as /proc, that were not searched: %d", seen.System)
	}
	if seen.Unreadable > 0 {
		s.notef("%d files or directories cannot be read", seen.Unreadable)
	}
}

// highlighter returns a function that finds the query in a line. The search reports an expression
// that does not compile.
func (s *searching) highlighter() func(string) [][2]int {
	expression, flags := s.query, "m"
	if !s.flags.regex {
		expression = regexp.QuoteMeta(expression)
	}
	if s.flags.fold {
		flags += "i"
	}
	compiled, err := regexp.Compile("(?" + flags + ":" + expression + ")")
	if err != nil || !s.colour {
		return func(string) [][2]int { return nil }
	}
	return func(text string) (out [][2]int) {
		for _, at := range compiled.FindAllStringIndex(text, -1) {
			out = append(out, [2]int{at[0], at[1]})
		}
		return out
	}
}

// mostServed is the limit of a server.
const mostServed = 100

// askServer searches a workspace of a server's machine. Paths are those of the workspace.
func (s *searching) askServer(ctx context.Context) error {
	if s.flags.timeout > 0 {
		return regie.Errorf(codeUsage, "--timeout does not go with --server: a server bounds its searches itself")
	}
	dir, err := s.directory()
	if err != nil {
		return err
	}
	asked := dispatch.SearchRequest{
		Text: s.query, In: dispatch.SearchFiles, Mode: dispatch.SearchSemantic,
		Limit: min(s.flags.limit, mostServed), Under: s.in,
	}
	if s.flags.exact {
		asked.Mode, asked.Case = dispatch.SearchExact, !s.flags.fold
	} else if s.flags.regex {
		asked.Mode, asked.Case = dispatch.SearchRegex, !s.flags.fold
	}
	found, err := readStore(ctx, s.environment, func(conn *app.Conn) (dispatch.Found, error) {
		place, err := conn.OpenWorkspace(ctx, dispatch.WorkspaceRequest{Path: dir, Here: s.flags.here})
		if err != nil {
			return dispatch.Found{}, err
		}
		s.root, s.at, asked.WorkspaceID = place.Root, place.Root, place.ID
		return conn.Search(ctx, asked)
	})
	switch {
	case err != nil:
	case s.flags.json:
		err = writeJSON(s.stdout, found)
	case s.flags.exact || s.flags.regex:
		err = s.printServedLines(found)
	default:
		answer := app.IndexAnswer{Mode: app.IndexMode(found.Mode), Reason: found.Reason}
		for i := range found.Files {
			f := &found.Files[i]
			answer.Hits = append(answer.Hits, app.IndexHit{
				Path: f.Path, Start: f.Start, End: f.End, Symbol: f.Symbol, Text: f.Text, Score: f.Score,
			})
		}
		err = s.printParts(&answer)
	}
	if err == nil && len(found.Files) == 0 {
		return exit{exitError}
	}
	return err
}

// printServedLines prints the lines that a server found.
func (s *searching) printServedLines(found dispatch.Found) error {
	p, highlight := s.painter(), s.highlighter()
	for i := range found.Files {
		f := &found.Files[i]
		s.printMatch(p, highlight, &app.TextMatch{Path: f.Path, Line: f.Start, Text: f.Text})
	}
	switch {
	case p.err != nil:
	case found.More:
		s.notef("lines found: %d, and there are more (--limit)", len(found.Files))
	case len(found.Files) == 0:
		s.notef("nothing found")
	}
	return p.err
}
