package files

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/regie-run/regie"
)

func TestList(t *testing.T) {
	d := newDesk(t)
	for _, name := range []string{
		"b.md", "a.md", "src/main.go", "src/deep/x.go", "src/deep/y.md", "docs/one.md", "docs/two.txt", ".git/config", "sub/.git/HEAD", ".hidden",
		"vault/.ssh/id",
		"new\nline", "bad\xffname", "[ok].md",
	} {
		d.file(name, "12345")
	}
	d.must(os.Mkdir(d.abs("none"), 0o755))
	d.must(os.Symlink("src", d.abs("to-src")))
	d.must(os.Symlink("/etc/passwd", d.abs("out")))
	d.fifo("fifo")
	file := func(names ...string) string {
		var out []string
		for _, name := range names {
			switch {
			case strings.HasSuffix(name, "/"), strings.Contains(name, "\t"):
				out = append(out, name)
			default:
				out = append(out, name+"\t5 bytes")
			}
		}
		return strings.Join(out, "\n")
	}
	for _, row := range []struct {
		args object
		want string
	}{
		{object{}, file(".hidden", "[ok].md", "a.md", "b.md", `"bad\xffname"`, "fifo\tspecial", `"new\nline"`, "out\tlink to /etc/passwd", "to-src\tlink to src", "docs/", "none/", "src/", "sub/", "vault/")},
		{object{"path": "src"}, file("src/main.go", "src/deep/")},
		{object{"path": "./src/"}, file("src/main.go", "src/deep/")},
		{object{"path": "src", "recursive": true}, file("src/main.go", "src/deep/", "src/deep/x.go", "src/deep/y.md")},
		{object{"path": "to-src"}, file("src/main.go", "src/deep/")},
		{object{"path": ".git"}, file(".git/config")},
		{object{"pattern": "*.md"}, file("[ok].md", "a.md", "b.md")},
		{object{"pattern": "*.md", "recursive": true}, file("[ok].md", "a.md", "b.md", "docs/one.md", "src/deep/y.md") + "\n[1 not looked into: vault/.ssh]"},
		{object{"pattern": "**/*.go"}, file("src/main.go", "src/deep/x.go") + "\n[1 not looked into: vault/.ssh]"},
		{object{"pattern": "src/**/*.{go,md}"}, file("src/main.go", "src/deep/x.go", "src/deep/y.md") + "\n[1 not looked into: vault/.ssh]"},
		{object{"path": "src", "pattern": "**/*.go"}, file("src/main.go", "src/deep/x.go")},
		{object{"pattern": "docs/*"}, file("docs/one.md", "docs/two.txt")},
		{object{"pattern": "./docs/one.md"}, file("docs/one.md")},
		{object{"pattern": "{docs,src}/*.{md,go}"}, file("docs/one.md", "src/main.go") + "\n[1 not looked into: vault/.ssh]"},
		{object{"pattern": "[[]ok].md"}, file("[ok].md")},
		{object{"path": "none"}, "none is empty"},
		{object{"pattern": "*.rs"}, `nothing in . matches "*.rs"`},
	} {
		if out := d.do("list_files", row.args); out.State != regie.CallSucceeded || out.Result != row.want {
			t.Errorf("%v:\n%s\n%+v\nwant\n%s", row.args, out.Result, out.Error, row.want)
		}
	}
}

func TestListRefuses(t *testing.T) {
	d := newDesk(t)
	d.file("a.md", "")
	for _, row := range []struct {
		args  object
		code  regie.Code
		param string
	}{
		{object{"path": "a.md"}, regie.CodeNotADirectory, "path"},
		{object{"path": "none"}, regie.CodeFileNotFound, "path"},
		{object{"pattern": "["}, regie.CodeBadPattern, "pattern"},
		{object{"pattern": "{a,b"}, regie.CodeBadPattern, "pattern"},
		{object{"pattern": "a]}"}, regie.CodeBadPattern, "pattern"},
		{object{"pattern": "../*"}, regie.CodeBadPattern, "pattern"},
		{object{"pattern": "a/../../*"}, regie.CodeBadPattern, "pattern"},
		{object{"pattern": "/etc/*"}, regie.CodeBadPattern, "pattern"},
		{object{"pattern": `a\*`}, regie.CodeBadPattern, "pattern"},
		{object{"pattern": "a\x00"}, regie.CodeBadPattern, "pattern"},
		{object{"pattern": strings.Repeat("**/", 20) + "x"}, regie.CodeBadPattern, "pattern"},
		{object{"pattern": strings.Repeat("{a,b}", 10)}, regie.CodeBadPattern, "pattern"},
		{object{"pattern": "{" + strings.Repeat("a,{b,", 40) + strings.Repeat("}", 41)}, regie.CodeBadPattern, "pattern"},
		{object{"pattern": strings.Repeat("a", 257)}, regie.CodeBadPattern, "pattern"},
	} {
		if out := d.do("list_files", row.args); codeOf(out) != row.code || out.Error.Param != row.param {
			t.Errorf("%v: %s %+v", row.args, out.State, out.Error)
		}
	}
}

// Patterns that are allowed do not explode, whatever the names are.
func TestPatternsAreCheap(t *testing.T) {
	name := strings.Repeat(strings.Repeat("a", 20)+"/", 190) + "b"
	for _, pattern := range []string{
		strings.Repeat("*a", 24) + "c", strings.Repeat("**/a*/", 8) + "c", strings.Repeat("**/", 12) + "c", "**/" + strings.Repeat("*a", 22) + "c",
		strings.Repeat("{a,*}", 3) + "**/c", "{" + strings.Repeat("**/*a,", 7) + "c}",
	} {
		g, err := compileGlob(pattern)
		if err != nil {
			t.Errorf("%s: %v", pattern, err)
			continue
		}
		began := time.Now()
		for range 10 {
			g.matchesPath(name)
			g.mayHold(name)
		}
		if took := time.Since(began) / 10; took > 500*time.Millisecond { // measured: below 3 ms under the race detector
			t.Errorf("%s takes %s a name", pattern, took)
		}
	}
}

func TestListBounds(t *testing.T) {
	d := newDesk(t, func(b *bounds) { b.listed = 5; b.visited = 300; b.depth = 3 })
	for i := range 50 {
		d.file(fmt.Sprintf("many/f%02d", i), "")
	}
	for i := range 400 {
		d.file(fmt.Sprintf("crowd/f%03d", i), "")
	}
	d.file("deep/1/2/3/4/5/x", "")
	first := "many/f00\t0 bytes\nmany/f01\t0 bytes\nmany/f02\t0 bytes\nmany/f03\t0 bytes\nmany/f04\t0 bytes\n"
	for _, row := range []struct {
		args object
		want string
	}{
		{object{"path": "many"}, first + "[5 of 50 entries: name a pattern]"},
		{object{"path": "many", "recursive": true}, first + "[only the first 5 entries: name a deeper path or a pattern]"},
		{object{"path": "many", "pattern": "*9"}, "many/f09\t0 bytes\nmany/f19\t0 bytes\nmany/f29\t0 bytes\nmany/f39\t0 bytes\nmany/f49\t0 bytes"},
		{object{"path": "crowd", "pattern": "z*"}, "nothing in crowd matches \"z*\"\n[1 not looked into: crowd]"},
		{object{"path": "deep", "pattern": "**/x"}, "nothing in deep matches \"**/x\"\n[1 not looked into: deep/1/2/3]"},
	} {
		if out := d.do("list_files", row.args); out.State != regie.CallSucceeded || out.Result != row.want {
			t.Errorf("%v:\n%s\n%+v", row.args, out.Result, out.Error)
		}
	}
}

func FuzzPattern(f *testing.F) {
	for _, seed := range []string{"*.go", "**/*.{a,b}", "[a-z]", "{{a,b},c}", "a/**", "{[,]}", "[]", "{,}", "**"} {
		f.Add(seed, "a/b.go")
	}
	f.Fuzz(func(t *testing.T, pattern, name string) {
		g, err := compileGlob(pattern)
		if err != nil {
			if regie.CodeOf(err) != regie.CodeBadPattern {
				t.Fatalf("%q: %v", pattern, err)
			}
			return
		}
		// What a directory may not hold is not found in it.
		if dir, _, ok := cutLast(name); ok && g.matchesPath(name) && !g.mayHold(dir) {
			t.Fatalf("%q matches %q, but is not looked for in %q", pattern, name, dir)
		}
	})
}

func cutLast(name string) (dir, base string, ok bool) {
	at := strings.LastIndexByte(name, '/')
	if at <= 0 || strings.HasPrefix(name, "/") || strings.Contains(name, "//") {
		return "", "", false
	}
	return name[:at], name[at+1:], name[at+1:] != ""
}
