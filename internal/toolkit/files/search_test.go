package files

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/regie-run/regie"
)

func TestSearch(t *testing.T) {
	d := newDesk(t, func(b *bounds) { b.matches, b.around, b.shown = 5, 40, 400 })
	d.file("a.md", "Hello\nworld\nhello again\r\n")
	d.file("b/c.go", "package c\n// HELLO\n")
	d.file("b/ignored.log", "hello\n")
	d.file(".gitignore", "*.log\nbuild/\n")
	d.file("build/out.txt", "hello\n")
	d.file(".git/config", "hello\n")
	d.file("bytes", "hello\x00")
	d.file("wide.txt", "x\nHÉLLO hello\n")
	d.file("b/many", strings.Repeat("needle\n", 20))
	d.file("long", strings.Repeat("x", 100)+"é needle "+strings.Repeat("y", 100)+"\n")
	d.file("acts", "needle\x1b[2J\n")
	for _, row := range []struct {
		args object
		want string
	}{
		{object{"query": "hello"}, "a.md:1: Hello\na.md:3: hello again\nwide.txt:2: HÉLLO hello\nb/c.go:2: // HELLO\n[4 matches in 3 files]\n[2 named by ignore files, not searched]\n[1 not searched because they are no text]"},
		{object{"query": "hello", "case_sensitive": true, "path": "a.md"}, "a.md:3: hello again\n[1 match in 1 file]"},
		{object{"query": "héllo", "path": "."}, "wide.txt:2: HÉLLO hello\n[1 match in 1 file]\n[2 named by ignore files, not searched]\n[1 not searched because they are no text]"},
		{object{"query": "hello", "path": "build"}, "build/out.txt:1: hello\n[1 match in 1 file]"},
		{object{"query": "hello", "path": "b/ignored.log"}, "b/ignored.log:1: hello\n[1 match in 1 file]"},
		{object{"query": "hello", "pattern": "*.go"}, "b/c.go:2: // HELLO\n[1 match in 1 file]\n[1 named by ignore files, not searched]"},
		{object{"query": "hello", "pattern": "b/**"}, "b/c.go:2: // HELLO\n[1 match in 1 file]\n[1 named by ignore files, not searched]"},
		{object{"query": `^h.*\bagain$`, "regex": true, "path": "a.md"}, "a.md:3: hello again\n[1 match in 1 file]"},
		{object{"query": "h.l+o$", "regex": true, "case_sensitive": true, "path": "b"}, "[no matches in 2 files]\n[1 named by ignore files, not searched]"},
		{object{"query": "no such text", "path": "a.md"}, "[no matches in 1 file]"},
		{object{"query": "needle", "path": "b"}, strings.Join(numberedNeedles(1, 5), "") + "[5 matches in 1 file, and there are more: look for less, or in a deeper path]"},
		{object{"query": "needle", "path": "long"}, "long:1: …" + strings.Repeat("x", 7) + "é needle " + strings.Repeat("y", 23) + "…\n[1 match in 1 file]"},
		{object{"query": "needle", "path": "acts"}, "acts:1: needle␛[2J\n[1 match in 1 file]"},
	} {
		out := d.do("search_text", row.args)
		if out.State != regie.CallSucceeded || out.Result != row.want {
			t.Errorf("%v:\n%s\n%+v\nwant\n%s", row.args, out.Result, out.Error, row.want)
		}
	}
	for _, row := range []struct {
		args  object
		code  regie.Code
		param string
	}{
		{object{"query": "x", "path": "none"}, regie.CodeFileNotFound, "path"},
		{object{"query": "x", "path": ".."}, regie.CodePathOutside, "path"},
		{object{"query": ""}, regie.CodeBadPattern, "query"},
		{object{"query": "a\nb"}, regie.CodeBadPattern, "query"},
		{object{"query": "(", "regex": true}, regie.CodeBadPattern, "query"},
		{object{"query": "(?=x)", "regex": true}, regie.CodeBadPattern, "query"},
		{object{"query": "((a{1,30}){1,30}){1,30}", "regex": true}, regie.CodeBadPattern, "query"},
		{object{"query": strings.Repeat("x", 1001)}, regie.CodeBadPattern, "query"},
		{object{"query": "x", "pattern": "[a"}, regie.CodeBadPattern, "pattern"},
	} {
		out := d.do("search_text", row.args)
		if out.State != regie.CallFailed || codeOf(out) != row.code || out.Error.Param != row.param {
			t.Errorf("%.60v: %+v", row.args, out.Error)
		}
	}
}

func numberedNeedles(from, to int) (out []string) {
	for i := from; i <= to; i++ {
		out = append(out, fmt.Sprintf("b/many:%d: needle\n", i))
	}
	return out
}

// A costly expression over much text ends in time, and says that it did not look at everything.
func TestSearchEnds(t *testing.T) {
	d := newDesk(t, func(b *bounds) { b.seeking = 300 * time.Millisecond })
	random := rand.New(rand.NewPCG(1, 1)) // so that what stands before a place is never the same
	text := make([]byte, 2_000_000)
	for i := range text {
		text[i] = "ab"[random.IntN(2)]
	}
	d.file("one-line", string(text))
	for i := range text {
		if i%40_000 == 0 {
			text[i] = '\n'
		}
	}
	for i := range 10 {
		d.file(fmt.Sprintf("f%d", i), string(text))
	}
	started := time.Now()
	out := d.do("search_text", object{"query": "a[ab]{900}[cd]", "regex": true})
	if took := time.Since(started); took > 10*time.Second || !strings.Contains(out.Result, "[stopped after 300ms") {
		t.Errorf("after %s: %.300q %+v", took, out.Result, out.Error)
	}
	// A sparse file of many gigabytes is searched to the bound.
	f, err := os.Create(d.abs("sparse.log"))
	d.must(err)
	_, err = f.WriteString(strings.Repeat("a line\n", 200_000))
	d.must(err)
	d.must(f.Truncate(10 << 30))
	d.must(f.Close())
	d.kit.bounds.scanned, d.kit.bounds.seeking = 8<<20, 30*time.Second
	if out := d.do("search_text", object{"query": "nothing like it", "path": "sparse.log"}); out.Result != "[no matches in 0 files]\n[1 not searched because they are no text]" {
		t.Errorf("%q %+v", out.Result, out.Error)
	}
}
