package files

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/index"
	"github.com/regie-run/regie/internal/tool"
	"github.com/regie-run/regie/internal/workspace"
)

// shelf is the index of a desk, as an engine would have it.
type shelf struct {
	path string
	root *workspace.Root
	x    *index.Index
	asks bool
}

func (s *shelf) Asks() bool { return s.asks }

func (s *shelf) Index(ctx context.Context, dir string) (*index.Index, func(), error) {
	if s.x == nil {
		var err error
		if s.root, err = workspace.Open(dir); err != nil {
			return nil, nil, err
		}
		if s.x, err = index.Open(ctx, s.root, index.Config{Path: s.path}); err != nil {
			return nil, nil, err
		}
	}
	return s.x, func() {}, nil
}

// newIndexed is a desk with an index.
func newIndexed(tb testing.TB, change ...func(*bounds)) (*desk, *shelf) {
	tb.Helper()
	d := newDesk(tb, change...)
	s := &shelf{path: filepath.Join(tb.TempDir(), "data", "index.db")}
	d.kit.indexes = s
	made, err := d.kit.allTools()
	d.must(err)
	d.tools, err = tool.NewRegistry(made...)
	d.must(err)
	tb.Cleanup(func() {
		if s.x != nil {
			d.must(s.x.Close())
			d.must(s.root.Close())
		}
	})
	return d, s
}

func (d *desk) semantic(args object) string {
	d.t.Helper()
	out := d.do("search_semantic", args)
	if out.State != regie.CallSucceeded {
		d.t.Fatalf("%v: %s %+v", args, out.State, out.Error)
	}
	return out.Result
}

const plainly = "lexical: by words and their stems, because no embedder is configured"

func TestSemantic(t *testing.T) {
	d, _ := newIndexed(t)
	d.file("docs/house.md", "# House\n\nAbout the house.\n\n## Heating\n\nThe boiler is serviced\nin March.\n")
	d.file("src/pay.go", "package pay\n\n// parseInvoice reads an invoice.\nfunc parseInvoice(text string) error {\n\treturn nil\n}\n")
	d.file("src/other.go", "package pay\n\nfunc other() {}\n")
	want := "src/pay.go:1-6  package pay, parseInvoice\n     1\tpackage pay\n     2\t\n     3\t// parseInvoice reads an invoice.\n     4\tfunc parseInvoice(text string) error {\n" +
		"     5\t\treturn nil\n     6\t}\n\n[1 part (" + plainly + ")]"
	if got := d.semantic(object{"query": "where are invoices parsed?", "top_k": 1}); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := d.semantic(object{"query": "when are boilers serviced"}); !strings.HasPrefix(got, "docs/house.md:5-8  House > Heating\n     5\t## Heating\n") {
		t.Errorf("got\n%s", got)
	}
	// What changes is found by the next search, what goes is not.
	d.file("src/new.go", "package pay\n\n// refund gives money back.\nfunc refund() {}\n")
	d.must(os.Remove(d.abs("docs/house.md")))
	if got := d.semantic(object{"query": "refunding"}); !strings.HasPrefix(got, "src/new.go:1-4") {
		t.Errorf("got\n%s", got)
	}
	nothing := "[nothing found (" + plainly + "): try other words, or search_text for an exact text]"
	for _, args := range []object{{"query": "boiler"}, {"query": "?!"}, {"query": "refund", "path": "docs"}, {"query": "refund", "path": "src/pay.go"}} {
		if got := d.semantic(args); got != nothing {
			t.Errorf("%v: got\n%s", args, got)
		}
	}
	for _, path := range []string{"src", "./src/", "src/new.go", d.abs("src/new.go"), ""} {
		if got := d.semantic(object{"query": "refund", "path": path}); !strings.HasPrefix(got, "src/new.go:1-4") {
			t.Errorf("in %q: got\n%s", path, got)
		}
	}
}

func TestSemanticRefuses(t *testing.T) {
	d, _ := newIndexed(t)
	d.file("a.md", "needle\n")
	d.file(".env", "needle\n")
	d.file(".ssh/id", "needle\n")
	d.must(os.Symlink("..", d.abs("up")))
	d.must(os.Symlink(".env", d.abs("innocent")))
	d.fifo("fifo")
	for _, row := range []struct {
		args  object
		code  regie.Code
		param string
	}{
		{object{"query": ""}, regie.CodeBadArguments, "query"},
		{object{"query": " \n"}, regie.CodeBadArguments, "query"},
		{object{"query": strings.Repeat("x", maxAsked+1)}, regie.CodeBadArguments, "query"},
		{object{"query": "needle", "top_k": -1}, regie.CodeBadArguments, "top_k"},
		{object{"query": "needle", "top_k": maxTop + 1}, regie.CodeBadArguments, "top_k"},
		{object{"query": "needle", "path": "../x"}, regie.CodePathOutside, "path"},
		{object{"query": "needle", "path": "up"}, regie.CodePathOutside, "path"},
		{object{"query": "needle", "path": "/etc/passwd"}, regie.CodePathOutside, "path"},
		{object{"query": "needle", "path": ".env"}, regie.CodePathProtected, "path"},
		{object{"query": "needle", "path": "innocent"}, regie.CodePathProtected, "path"},
		{object{"query": "needle", "path": ".ssh"}, regie.CodePathProtected, "path"},
		{object{"query": "needle", "path": "nowhere"}, regie.CodeFileNotFound, "path"},
		{object{"query": "needle", "path": "fifo"}, regie.CodeSpecialFile, "path"},
		{object{"query": "needle", "path": "a\x00"}, regie.CodePathInvalid, "path"},
	} {
		out := d.do("search_semantic", row.args)
		if codeOf(out) != row.code || out.Error.Param != row.param {
			t.Errorf("%v: %s %+v", row.args, out.State, out.Error)
		}
	}
}

// What may not be shown is not, also where the index was made when it could be: it is not asked to
// know better.
func TestSemanticGuards(t *testing.T) {
	d, s := newIndexed(t)
	for _, name := range []string{"kept.md", "ignored.md", "gone.md", "linked.md", "swapped/x.md", ".env", ".git/notes.md", ".regie/x.md"} {
		d.file(name, canary+" needle stands here\n")
	}
	d.file(".gitignore", "never.md\n")
	d.file("never.md", canary+" needle never\n")
	x, _, err := s.Index(t.Context(), d.dir)
	d.must(err)
	_, err = x.Update(t.Context(), nil)
	d.must(err)
	d.file(".gitignore", "never.md\nignored.md\n")
	d.must(os.Remove(d.abs("gone.md")))
	d.must(os.Remove(d.abs("linked.md")))
	d.must(os.Symlink(".env", d.abs("linked.md")))
	d.must(os.Rename(d.abs("swapped"), d.abs(".ssh")))
	d.must(os.Symlink(".ssh", d.abs("swapped")))
	d.kit.bounds.refreshing = 0 // so that the index stays as it was
	got := d.semantic(object{"query": "needle", "top_k": 20})
	if !strings.HasPrefix(got, "kept.md:1-1\n") || strings.Count(got, canary) != 1 || !strings.Contains(got, "[1 part (") || !strings.Contains(got, "the index is behind") {
		t.Errorf("got\n%s", got)
	}
	d.kit.bounds.refreshing = time.Minute
	if got = d.semantic(object{"query": "needle", "top_k": 20}); strings.Count(got, canary) != 1 || strings.Contains(got, "behind") {
		t.Errorf("brought up to date it gives\n%s", got)
	}
}

// A hit is bounded, and nothing in it acts on who reads it.
func TestSemanticHostileText(t *testing.T) {
	d, _ := newIndexed(t, func(b *bounds) { b.shown = 4000 })
	for i := range 10 {
		d.file(fmt.Sprintf("long%d.md", i), strings.Repeat("needle and more words\n", 60))
	}
	got := d.semantic(object{"query": "needle", "top_k": 10})
	if len(got) > 4300 || !strings.Contains(got, "2 parts of 10 ("+plainly+"); more would be too long") {
		t.Errorf("%d bytes:\n%s", len(got), got)
	}
	d.file("act.md", "haystack\x1b]0;owned\x07 \u202e\r\n")
	if got := d.semantic(object{"query": "haystack"}); strings.ContainsAny(got, "\x1b\x07\r") || !strings.Contains(got, "haystack") {
		t.Errorf("got %q", got)
	}
}

// A search needs no more than what is there: an index that cannot be brought up to date answers,
// and says so.
func TestSemanticCancelled(t *testing.T) {
	d, _ := newIndexed(t)
	d.file("a.md", "needle\n")
	d.semantic(object{"query": "needle"})
	c, problem := d.check("search_semantic", object{"query": "needle"})
	if problem != nil {
		t.Fatal(problem)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if out := tool.Run(ctx, c.tool, c.inv); out.State == regie.CallSucceeded {
		t.Errorf("cancelled it gives %q", out.Result)
	}
}

// Where a server is asked the call is nothing that lies at hand.
func TestSemanticLocal(t *testing.T) {
	for _, asks := range []bool{false, true} {
		d, s := newIndexed(t)
		s.asks = asks
		made, err := d.kit.semanticTool()
		d.must(err)
		definition := made.Definition()
		if definition.Local == asks || definition.Class != regie.ClassRead || definition.Kind != regie.KindQuery {
			t.Errorf("asking %v: %+v", asks, definition)
		}
		if _, err := newToolkit(defaultBounds()).allTools(); err != nil {
			t.Error(err)
		}
	}
	d := newDesk(t)
	if _, problem := d.check("search_semantic", object{"query": "x"}); problem == nil {
		t.Error("without an index there is a search")
	}
}
