package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/plain"
)

// searching is one search.
type searching struct {
	stopped bool // not all was searched
	*command
	flags  *searchFlags
	query  string
	root   string // of the workspace
	at     string // the current directory, without links
	in     string // where to look
	colour bool
}

// coloured reports whether colours mean something to who reads a stream (no-color.org).
func coloured(out io.Writer) bool {
	return isTerminal(out) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// The colours of a search: as grep has them.
const (
	pathColour   = "\x1b[35m"
	numberColour = "\x1b[32m"
	wordColour   = "\x1b[1;31m"
	plainColour  = "\x1b[0m"
)

// painter writes lines as they are, with their colours: what comes from files was made harmless
// before. It remembers the first failure.
type painter struct {
	w   io.Writer
	err error
}

func (p *painter) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format+"\n", args...)
	}
}

func (s *searching) tint(colour, text string) string {
	if !s.colour || text == "" {
		return text
	}
	return colour + text + plainColour
}

// parts prints the parts of files that are about something. It reports whether there are any.
func (s *searching) parts(ctx context.Context) (bool, error) {
	x, err := app.OpenIndex(ctx, s.config, s.root)
	if err != nil {
		return false, err
	}
	defer func() { _ = x.Close() }() // what it holds is on the disk
	under, err := x.Under(s.in)
	if err != nil {
		return false, err
	}
	if err := s.update(ctx, x); err != nil {
		return false, err
	}
	answer, err := x.Search(ctx, app.IndexQuery{Text: s.query, Limit: s.flags.limit, Under: under})
	if err != nil {
		return false, err
	}
	answer.Hits = oncePerLine(answer.Hits)
	if s.flags.json {
		return len(answer.Hits) > 0, writeJSON(s.stdout, answer)
	}
	p := &painter{w: s.stdout}
	marks := app.Marks(s.query)
	for i := range answer.Hits {
		if i > 0 {
			p.line("")
		}
		s.part(p, &answer.Hits[i], marks)
	}
	if p.err != nil {
		return false, p.err
	}
	s.said(&answer)
	return len(answer.Hits) > 0, nil
}

// oncePerLine leaves of the parts of one long line the best.
func oncePerLine(hits []app.IndexHit) []app.IndexHit {
	type line struct {
		path   string
		number int
	}
	seen := map[line]bool{}
	return slices.DeleteFunc(hits, func(h app.IndexHit) bool {
		at := line{h.Path, h.Start}
		again := h.Start == h.End && seen[at]
		seen[at] = seen[at] || h.Start == h.End
		return again
	})
}

// said tells how many parts were found and how, beside them.
func (s *searching) said(answer *app.IndexAnswer) {
	var how string
	switch {
	case answer.Mode == app.IndexHybrid:
		how = s.text.T("by meaning and by words")
	case !answer.Reason.IsZero():
		how = s.text.T("by words and their stems: %s", s.text.Sentence(answer.Reason))
	default:
		how = s.text.T("by words and their stems: %s", s.text.T("no embedder is configured"))
	}
	what := s.text.T("parts found: %d", len(answer.Hits))
	if len(answer.Hits) == 0 {
		what = s.text.T("nothing found")
	}
	fmt.Fprintf(s.stderr, "%s (%s, %s)\n", what, answer.Mode, plain.Strip(how))
}

// embedTime is how long a search waits for what is new to be embedded, by this process or another
// one; what is not by then is found by its words. Where not even the question can be embedded it
// does not wait.
const embedTime = 30 * time.Second

// update brings the index up to date, and shows how far it is to a person who waits.
func (s *searching) update(ctx context.Context, x *app.Index) error {
	bar := &indexBar{w: s.stderr, text: s.text, moves: isTerminal(s.stderr) &&
		os.Getenv("TERM") != "dumb", next: time.Now().Add(barEvery)}
	began := time.Now()
	show := func(p app.IndexProgress) {
		if p.Waits || time.Since(began) > time.Second/2 { // what is done in a moment need not be watched
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
	if err == nil && summary.Changed > 0 && summary.Changed == summary.Files { // for the first time, or anew
		fmt.Fprintln(s.stderr, s.text.T("indexed %d files", summary.Files))
	}
	return err
}

// part prints the lines of a hit that hold most of what was asked for.
func (s *searching) part(p *painter, h *app.IndexHit, marks func(string) ([][2]int, []int)) {
	lines := best(h, marks)
	head := s.tint(pathColour, s.link(h.Path, lines[0].number))
	if h.Symbol != "" {
		head += "  " + plain.Line(h.Symbol)
	}
	p.line("%s", head)
	for _, l := range lines {
		p.line("%s  %s", s.tint(numberColour, fmt.Sprintf("%6d", l.number)), s.marked(l.text, l.places))
	}
}

// hitLine is one of a hit.
type hitLine struct {
	number int
	text   string
	places [][2]int
	words  int // of the query
}

// best are the lines of a hit that show why it is one, in their order: those with most words of the
// query; without any its first ones.
func best(h *app.IndexHit, marks func(string) ([][2]int, []int)) []hitLine {
	var all []hitLine
	for text := range strings.SplitSeq(h.Text, "\n") {
		l := hitLine{number: h.Start + len(all), text: strings.TrimSuffix(text, "\r")}
		var words []int
		l.places, words = marks(l.text)
		l.words = len(words)
		all = append(all, l)
	}
	ranked := slices.Clone(all)
	slices.SortStableFunc(ranked, func(a, b hitLine) int { return b.words - a.words })
	ranked = ranked[:min(len(ranked), linesOfHit)]
	if ranked[0].words > 0 {
		ranked = slices.DeleteFunc(ranked, func(l hitLine) bool { return l.words == 0 })
	}
	slices.SortFunc(ranked, func(a, b hitLine) int { return a.number - b.number })
	return ranked
}

// link is a place that terminals and editors open: a path from the current directory, and a line.
func (s *searching) link(name string, number int) string {
	path := filepath.Join(s.root, filepath.FromSlash(name))
	if relative, err := filepath.Rel(s.at, path); err == nil {
		path = relative
	}
	return fmt.Sprintf("%s:%d", plain.Line(path), number)
}

// marked is a line with its places in colour, nothing in it doing anything to a terminal. Of a long
// line it is the part around the first place.
func (s *searching) marked(text string, places [][2]int) string {
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

// matches is what --json prints of lines.
type matches struct {
	Mode    string  `json:"mode"` // exact or regex
	Matches []match `json:"matches"`
	More    bool    `json:"more"` // there are more than were asked for
	Files   int64   `json:"files"`
	Stopped bool    `json:"stopped,omitempty"` // its time was over, or it was interrupted: not all was searched
}

type match struct {
	Path string `json:"path"`
	Line int    `json:"line"`
	Text string `json:"text"` // or the part of it around the match
}

// exactly prints the lines that hold a text, as they are found. It reports whether there are any.
func (s *searching) exactly(ctx context.Context) (bool, error) {
	out := matches{Mode: "exact", Matches: []match{}}
	if s.flags.regex {
		out.Mode = "regex"
	}
	highlight := s.highlighter()
	p := &painter{w: s.stdout}
	found := 0
	seen, err := app.SearchText(ctx, s.root, app.TextQuery{
		Text: s.query, Regex: s.flags.regex, CaseSensitive: !s.flags.fold, Path: s.in, Most: s.flags.limit,
		Clip: lineShown, MaxFile: fileSearched,
	}, func(m app.TextMatch) bool {
		found++
		if s.flags.json {
			out.Matches = append(out.Matches, match{m.Path, m.Line, strings.ToValidUTF8(m.Text, "\uFFFD")})
			return true
		}
		text := s.marked(m.Text, highlight(m.Text))
		if m.Before > 0 {
			text = "…" + text
		}
		if m.After > 0 {
			text += "…"
		}
		p.line("%s: %s", s.tint(pathColour, s.link(m.Path, m.Line)), text)
		return p.err == nil
	})
	switch {
	case err != nil:
		return false, err
	case p.err != nil:
		return false, p.err
	}
	s.stopped = seen.Stopped
	if s.flags.json {
		out.More, out.Files, out.Stopped = seen.More || seen.Stopped, seen.Files, seen.Stopped
		return found > 0, writeJSON(s.stdout, out)
	}
	s.searched(found, &seen)
	return found > 0, nil
}

// searched tells what was looked at, and what was not.
func (s *searching) searched(found int, seen *app.TextSearched) {
	p := &printer{w: s.stderr}
	switch {
	case seen.Stopped:
		p.line("%s",
			s.text.T(
				"lines found: %d, in the %d files that were searched until it was stopped: name a deeper path, or give it more time (--timeout)", found, seen.Files))
	case found == 0:
		p.line("%s", s.text.T("nothing found in %d files", seen.Files))
	case seen.More:
		p.line("%s", s.text.T("lines found: %d, and there are more (--limit)", found))
	}
	if seen.TooMany {
		p.line("%s", s.text.T("there are more files than one search looks at: name a deeper path"))
	}
	if seen.Clipped > 0 {
		p.line("%s", s.text.T("%d large files were searched in part", seen.Clipped))
	}
	if seen.System > 0 {
		p.line("%s", s.text.T("directories of the system, such as /proc, that were not searched: %d", seen.System))
	}
	if seen.Unreadable > 0 {
		p.line("%s", s.text.T("%d files or directories cannot be read", seen.Unreadable))
	}
}

// highlighter finds what was looked for in a line. The search has compiled the same expression
// before it calls it.
func (s *searching) highlighter() func(string) [][2]int {
	expression, flags := s.query, "m"
	if !s.flags.regex {
		expression = regexp.QuoteMeta(expression)
	}
	if s.flags.fold {
		flags += "i"
	}
	compiled, err := regexp.Compile("(?" + flags + ":" + expression + ")")
	if err != nil || !s.colour { // the search says what is wrong with it
		return func(string) [][2]int { return nil }
	}
	return func(text string) (out [][2]int) {
		for _, at := range compiled.FindAllStringIndex(text, -1) {
			out = append(out, [2]int{at[0], at[1]})
		}
		return out
	}
}
