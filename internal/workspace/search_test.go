package workspace_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/workspace"
)

// lines searches a place and gives the lines that match, by path and number.
func (p *place) lines(q workspace.Query) (out []string, seen workspace.Searched) {
	p.t.Helper()
	if q.Most == 0 {
		q.Most = 1 << 20
	}
	if q.Path == "" {
		q.Path = "."
	}
	seen, err := p.root.Search(p.t.Context(), q, func(m workspace.Match) bool {
		out = append(out, fmt.Sprintf("%s:%d", m.Path, m.Line))
		return true
	})
	p.must(err)
	return out, seen
}

func TestSearchOrder(t *testing.T) {
	p := newPlace(t)
	for i := range 100 {
		p.file(fmt.Sprintf("d%02d/f", i%7), "")
		p.file(fmt.Sprintf("d%02d/e%d/needle%d", i%7, i%3, i), "a\nneedle\n")
	}
	p.file("z", "needle\nneedle")
	p.link("z", "link")
	p.fifo("fifo")
	all, seen := p.lines(workspace.Query{Text: "needle"})
	if len(all) != 102 || all[0] != "z:1" || all[1] != "z:2" || !slices.IsSortedFunc(all[2:], func(a, b string) int {
		return strings.Compare(strings.TrimSuffix(a, ":2"), strings.TrimSuffix(b, ":2"))
	}) || seen.Files != 108 || seen.More {
		t.Errorf("%d: %v %+v", len(all), all[:4], seen)
	}
	for _, most := range []int{1, 5, 101, 102, 200} {
		got, seen := p.lines(workspace.Query{Text: "needle", Most: most})
		if !slices.Equal(got, all[:min(most, len(all))]) || seen.More != (most < len(all)) {
			t.Errorf("%d: %v, more %v", most, got, seen.More)
		}
	}
	// Whoever has enough says so; whoever has no time gets what there is.
	n := 0
	_, err := p.root.Search(t.Context(), workspace.Query{Text: "needle", Path: ".", Most: 1000}, func(workspace.Match) bool { n++; return n < 3 })
	if err != nil || n != 3 {
		t.Errorf("%d, %v", n, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if seen, err := p.root.Search(ctx, workspace.Query{Text: "needle", Path: ".", Most: 1000}, func(workspace.Match) bool { return true }); err != nil || !seen.Stopped {
		t.Errorf("%+v %v", seen, err)
	}
}

// Large files and lines are searched whole.
func TestSearchLong(t *testing.T) {
	p := newPlace(t)
	filler := strings.Repeat("x", 100)
	for name, text := range map[string]string{
		"at-256k": strings.Repeat("y\n", 128<<10-2) + "needle\nnext needle\n",
		// 600 KB
		"long": strings.Repeat(filler, 6000) + "needle\nneedle\n",
		// 6 MB in one line
		"huge":     "first\n" + strings.Repeat(filler, 30_000) + "needle" + strings.Repeat(filler, 30_000) + "needle\nlast\nneedle here",
		"at-piece": strings.Repeat("z", 1<<20-3) + "needle" + strings.Repeat("z", 100) + "\nneedle\n",
		"many":     strings.Repeat(filler+"\n", 50_000) + "needle\n",
	} {
		p.file(name, text)
	}
	want := []string{"at-256k:131071", "at-256k:131072", "at-piece:1", "at-piece:2", "huge:2", "huge:4", "long:1", "long:2", "many:50001"}
	for _, q := range []workspace.Query{{Text: "needle"}, {Text: "NEEDLE"}, {Text: "needle", CaseSensitive: true}, {Text: "n[e]+dle", Regex: true}, {Text: "(?:needle|nothing)", Regex: true}, {Text: `[n]e\wd[l]e`, Regex: true}} {
		if got, _ := p.lines(q); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", q.Text, got, want)
		}
	}
}

// naive is what a search must find in a file, said as simply as can be.
func naive(text string, q workspace.Query) (out []int) {
	flags := ""
	if !q.CaseSensitive {
		flags = "(?i)"
	}
	if !q.Regex {
		q.Text = regexp.QuoteMeta(q.Text)
	}
	wanted := regexp.MustCompile(flags + q.Text)
	for i, line := range strings.Split(strings.TrimPrefix(text, "\uFEFF"), "\n") {
		if i == strings.Count(text, "\n") && line == "" {
			break
		}
		if wanted.MatchString(strings.TrimSuffix(line, "\r")) {
			out = append(out, i+1)
		}
	}
	return out
}

// compareNaive searches a text in a file and compares.
func compareNaive(tb testing.TB, p *place, text string, q workspace.Query) {
	tb.Helper()
	p.file("f", text)
	q.Path, q.Most = "f", 1<<20
	var got []int
	_, err := p.root.Search(tb.Context(), q, func(m workspace.Match) bool { got = append(got, m.Line); return true })
	if regie.CodeOf(err) == regie.CodeBadPattern {
		return
	}
	if want := naive(text, q); err != nil || !slices.Equal(got, want) {
		tb.Errorf("%q in %q (%+v): %v, want %v, %v", q.Text, text, q, got, want, err)
	}
}

func TestSearchAsNaive(t *testing.T) {
	p := newPlace(t)
	random := rand.New(rand.NewPCG(3, 3))
	letters := []string{"a", "A", "b", "k", "K", "\u212A", "s", "ſ", "é", "É", "e", " ", "\n", "\r\n", "\n\n", "ß", "x", "1", "\uFEFF", "\xff", "ǅ", "ǆ"}
	queries := []string{"a", "k", "s", "ks", "é", "ab", "ka", "sk", "É1", "e s", "ß", "x", "aa", "ǅ", "éé"}
	expressions := []string{"^a", "a$", "^$", "k+", "[ab]k", "a|é", "a.k", `\bx\b`, "(a|b)+s", "^.*$", "a*", `\s`, "[^a]", `\Aa`, `a\z`, "(?s)a.b", "x{2,3}", `(?-i)K`, "ks|sk|aa", "e(k|s)?x", `\d`, "$", `a\s*b`, "(?m)^b", "[[:upper:]]", "é$"}
	for i := range 3000 {
		text := ""
		for range random.IntN(40) {
			text += letters[random.IntN(len(letters))]
		}
		q := workspace.Query{CaseSensitive: random.IntN(2) == 0, Regex: i%2 == 0}
		if q.Regex {
			q.Text = expressions[random.IntN(len(expressions))]
		} else {
			q.Text = queries[random.IntN(len(queries))]
		}
		compareNaive(t, p, text, q)
		if t.Failed() {
			return
		}
	}
}

func FuzzSearch(f *testing.F) {
	f.Add("one\ntwo\r\nThree", "t", false, false)
	f.Add("aKb\nk\n", "k+$", true, false)
	f.Add("éa\nÉ", "é", false, true)
	p := newPlace(f)
	f.Fuzz(func(t *testing.T, text, query string, regex, sensitive bool) {
		if strings.IndexByte(text, 0) >= 0 || len(query) > 100 {
			return
		}
		if regex {
			if _, err := regexp.Compile(query); err != nil {
				return
			}
		}
		p.t = t
		compareNaive(t, p, text, workspace.Query{Text: query, Regex: regex, CaseSensitive: sensitive})
	})
}

// A part of the search that panics ends the search with an error.
func TestSearchBreaks(t *testing.T) {
	p := newPlace(t)
	p.file("a/x", "needle\n")
	for name, q := range map[string]workspace.Query{
		"the walk": {Text: "needle", Path: ".", Most: 9, Wanted: func(string) bool { panic("no") }},
	} {
		if _, err := p.root.Search(t.Context(), q, func(workspace.Match) bool { return true }); regie.CodeOf(err) != regie.CodeToolError {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// missing skips a test for what a machine lacks, and fails it where all that the tests need must be
// there.
func missing(tb testing.TB, what string) {
	tb.Helper()
	if os.Getenv("REGIE_CI") == "1" {
		tb.Fatal(what)
	}
	tb.Skip(what)
}

// The tree of the Go sources, searched by us and by ripgrep, where that is there: the same lines.
func TestSearchAsRipgrep(t *testing.T) {
	rg, err := exec.LookPath("rg")
	if err != nil {
		missing(t, "ripgrep is not there")
	}
	goroot, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		missing(t, "go is not there")
	}
	dir := filepath.Join(strings.TrimSpace(string(goroot)), "src", "net")
	root, err := workspace.Open(dir)
	if err != nil {
		missing(t, "the Go sources are not there")
	}
	defer root.Close()
	for _, q := range []workspace.Query{{Text: "deadline"}, {Text: "Deadline", CaseSensitive: true}, {Text: `func \(\w+ \*?Conn\)`, Regex: true}, {Text: `\bTODO\b`, Regex: true}} {
		var got []string
		q.Path, q.Most = ".", 1<<20
		_, err := root.Search(t.Context(), q, func(m workspace.Match) bool { got = append(got, fmt.Sprintf("%s:%d", m.Path, m.Line)); return true })
		if err != nil {
			t.Fatal(err)
		}
		args := []string{"--no-heading", "--with-filename", "--line-number", "--no-ignore-global", "--no-ignore-parent"}
		if !q.CaseSensitive {
			args = append(args, "-i")
		}
		if !q.Regex {
			args = append(args, "-F")
		}
		cmd := exec.CommandContext(t.Context(), rg, append(args, "--", q.Text, ".")...)
		cmd.Dir = dir
		out, _ := cmd.Output() // 1 where there is nothing
		var want []string
		for line := range strings.Lines(string(out)) {
			parts := strings.SplitN(line, ":", 3)
			want = append(want, path.Clean(parts[0])+":"+parts[1])
		}
		slices.Sort(got)
		slices.Sort(want)
		if len(want) == 0 || !slices.Equal(got, want) {
			t.Errorf("%s: %d lines, ripgrep has %d", q.Text, len(got), len(want))
		}
	}
}

// A directory that is full of hostile things, while it is searched, ends in time.
func TestSearchHostile(t *testing.T) {
	p := newPlace(t)
	deep := ""
	for range 150 {
		deep = path.Join(deep, "d")
	}
	p.file(deep+"/x", "needle\n")
	p.link("..", "d/up")
	p.link(".", "here")
	p.file("unreadable", "needle\n")
	p.must(os.Chmod(p.abs("unreadable"), 0))
	started := time.Now()
	got, seen := p.lines(workspace.Query{Text: "needle"})
	if !seen.TooMany || time.Since(started) > 10*time.Second || len(got) > 1 {
		t.Errorf("%v %+v", got, seen)
	}
}
