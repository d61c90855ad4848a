package index

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// marksOf are the lines, from 1, and the symbols that a file is cut at.
func marksOf(name, text string) (out []string) {
	for _, m := range markers[strings.TrimPrefix(filepath.Ext(name), ".")](newSource(name, []byte(text))) {
		out = append(out, fmt.Sprintf("%d %s", m.line+1, m.symbol))
	}
	return out
}

func TestMarks(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"a.go": {
			"// Package a is here.\npackage a\n\nimport (\n\t\"os\"\n)\n\n// T is one.\n//\n// More of it.\ntype T[K any] struct{ f func() }\n\nconst (\n\tA = iota\n\tB\n)\n\n" +
				"// far\n\nfunc (t *T[K]) Do(x int) error {\n\tfunc() {}()\n\ttype inner int\n\treturn nil\n}\n\nvar f = func() {}\n\nfunc g() {\n",
			[]string{"1 package a", "4 ", "8 T", "13 A, B", "20 T.Do", "26 f", "28 g"},
		},
		"broken.go": {"package a\n\nfunc ok() {}\n\nfunc broken( {\n\n}}}\n\ntype After int\n", []string{"1 package a", "3 ok", "5 broken"}},
		"a.md": {
			"Title\n=====\n\ntext\n\n## One ##\n\n```sh\n# no heading\n```\n\n### Deep\n\n## Two\n\n    # code\n#tag\n",
			[]string{"1 Title", "6 Title > One", "12 Title > One > Deep", "14 Title > Two"},
		},
		"a.py": {
			"import os\n\n@decorated\nclass A(B):\n    \"\"\"def no(): is text.\n    def no_more():\n    \"\"\"\n\n    async def run(self):\n        def inner():\n            pass\n\ndef f(x):\n    return x\n",
			[]string{"3 A", "6 A.no_more", "9 A.run", "13 f"},
		},
		"a.ts": {
			"import x from 'x';\n\n// Shape is one.\nexport default class Shape<T> extends Base {\n  private area(a: number): number {\n    if (a) {\n      return call(a);\n    }\n    return 1;\n  }\n" +
				"  async draw() {\n  }\n}\n\nexport const load = async (id: string) => {\n};\n\nfunction f() { return `\n  class No {\n`; }\n\ninterface I {}\ntype U = A | B;\n",
			[]string{"3 Shape", "5 Shape.area", "11 Shape.draw", "15 load", "18 f", "19 f.No", "22 I", "23 U"},
		},
		"a.c": {
			"#include <x.h>\n\n/* Adds. */\nstatic int add(int a, int b)\n{\n\tif (a) { return call(b); }\n\treturn a + b;\n}\n\nstruct point {\n\tint x;\n};\n\nint declared(int);\nint value = call();\n",
			[]string{"3 add", "10 point"},
		},
		"a.rs": {
			"//! crate\nuse std::fmt;\n\n#[derive(Debug)]\npub struct P<'a> {\n    x: &'a str,\n}\n\nimpl<'a> fmt::Display for P<'a> {\n    fn fmt(&self) -> bool {\n        '{' == '}'\n    }\n}\n\npub(crate) async fn run() {}\n",
			[]string{"4 P", "9 fmt::Display", "10 fmt::Display.fmt", "15 run"},
		},
		"a.java": {
			"package x.y;\n\n/** A one. */\n@Deprecated\npublic final class A {\n    public A() {\n    }\n\n    @Override\n    public List<String> names(int n) throws E {\n        for (int i = 0; i < n; i++) {\n        }\n    }\n}\n",
			[]string{"1 x.y", "3 A", "6 A.A", "9 A.names"},
		},
		"a.sh":  {"set -e\n\nbuild() {\n  go build\n}\n\nfunction test {\n  go test\n}\n", []string{"3 build", "7 test"}},
		"a.rb":  {"module M\n  class C < D\n    def run!(a)\n    end\n  end\nend\n", []string{"1 M", "2 M.C", "3 M.run!"}},
		"a.sql": {"-- One.\nCREATE TABLE IF NOT EXISTS files (\n\tid INTEGER\n);\n\ncreate unique index x on files (id);\ncreate view v as select 1;\n", []string{"1 files", "7 v"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, marksOf(name, c.text)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestCut holds what every file's chunks are, over this repository's own files.
func TestCut(t *testing.T) {
	files := 0
	for _, pattern := range []string{"*.go", "../workspace/*.go", "../../*.md", "../../docs/*.md", "../../Makefile", "../store/sqlite/*.sql", "../text/fr.json"} {
		names, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			files++
			covers(t, name, string(data))
		}
	}
	if files < 50 {
		t.Errorf("only %d files were found", files)
	}
	for name, line := range map[string]string{"a.py": "@a def x\n", "a.js": "class A {\n", "a.md": "# a\n", "a.org": "* a\n", "a.go": "type (\n", "a.yaml": "a:\n b\n", "a.c": "/*\n"} {
		covers(t, name, strings.Repeat(line, 50_000)) // what is hostile takes no longer than what is not
	}
	long := strings.Repeat("a long line ", 1000)
	for _, text := range []string{"", "\n", "\n\n\n", "x", "x\n", "\r\n\r\nx\r\n", long, long + "\n" + long, strings.Repeat("é", 3000), strings.Repeat("}\n", 5000), strings.Repeat("func f() {\n", 500)} {
		for _, name := range []string{"a.go", "a.md", "a.py", "a.js", "a.txt", "a.rst", "a.toml"} {
			covers(t, name, text)
		}
	}
}

// covers asserts that chunks are bounded, in order, and hold every line that is not blank, once, as
// it stands.
func covers(t *testing.T, name, text string) {
	t.Helper()
	lines := strings.Split(text, "\n")
	next, inLine := 1, "" // of the last chunk's line, what is left
	for _, c := range cutChunks(name, []byte(text)) {
		if len(c.Text) > maxChunk || len(c.Symbol) > maxSymbol || c.Text == "" || !utf8.ValidString(c.Symbol) || utf8.ValidString(text) && !utf8.ValidString(c.Text) {
			t.Fatalf("%s: a chunk of %d bytes, symbol %q", name, len(c.Text), c.Symbol)
		}
		if inLine != "" { // a further piece of a long line
			if rest, ok := strings.CutPrefix(inLine, c.Text); !ok || c.First != next-1 {
				t.Fatalf("%s: line %d goes on with %q", name, next-1, c.Text)
			} else {
				inLine = rest
			}
			continue
		}
		for ; next < c.First; next++ {
			if strings.TrimSpace(lines[next-1]) != "" {
				t.Fatalf("%s: line %d is in no chunk", name, next)
			}
		}
		if c.First != next || c.Last < c.First || c.Last > len(lines) {
			t.Fatalf("%s: a chunk of the lines %d to %d at line %d", name, c.First, c.Last, next)
		}
		whole := strings.TrimRight(strings.Join(lines[c.First-1:c.Last], "\n"), "\r\n")
		if rest, ok := strings.CutPrefix(whole, c.Text); !ok {
			t.Fatalf("%s: lines %d to %d are not what the chunk says", name, c.First, c.Last)
		} else if inLine = rest; rest != "" && c.First != c.Last {
			t.Fatalf("%s: lines %d to %d are cut off", name, c.First, c.Last)
		}
		next = c.Last + 1
	}
	for ; next <= len(lines); next++ {
		if strings.TrimSpace(lines[next-1]) != "" {
			t.Fatalf("%s: line %d is in no chunk", name, next)
		}
	}
}

func FuzzCut(f *testing.F) {
	f.Add("a.go", "package a\n\nfunc (t *T) F() {}\n")
	f.Add("a.md", "# A\n\n```\n# b\n```\n")
	f.Add("a.py", "class A:\n    '''\n    def x():\n'''\n")
	f.Add("a.rs", "impl<'a> X for Y<'a> {\n  fn f() {'}'}\n")
	f.Add("a.rst", "==\nAé\n==\n")
	f.Add("a.toml", "[[a]]\nb:\n  c\n")
	f.Fuzz(func(t *testing.T, name, text string) {
		data, skipped := decodeText([]byte(text))
		if skipped == "" && !utf8.Valid(data) {
			t.Fatalf("decoded to what is no UTF-8: %q", data)
		}
		covers(t, name, string(data))
	})
}
