package files

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/tool"
)

func TestWrite(t *testing.T) {
	d := newDesk(t)
	d.file("lf.txt", "one\ntwo\n")
	d.file("crlf.txt", "one\r\ntwo\r\n")
	d.file("mixed.txt", "one\r\ntwo\n")
	d.file("run.sh", "old")
	d.must(os.Chmod(d.abs("run.sh"), 0o750))
	d.file("open.txt", "one")
	d.file("open-crlf.txt", "one\r\ntwo")
	d.file("marked.txt", "\ufeffone\n")
	d.file("latin.txt", "caf\xe9\n")
	d.file("bytes.bin", "\x00\x01\x02")
	d.file("linked.txt", "old")
	d.must(os.Link(d.abs("linked.txt"), d.abs("other.txt")))
	for _, row := range []struct {
		path, content, mode string
		says, holds         string
	}{
		{"notes/deep/a.md", "one\ntwo", "create", "created notes/deep/a.md, 2 lines, 7 bytes; made the directory notes/deep", "one\ntwo"},
		{"b.md", "one\n", "", "created b.md, 1 line, 4 bytes", "one\n"},
		{"empty", "", "create", "created empty, 0 lines, 0 bytes", ""},
		{"c.md", "x", "overwrite", "created c.md, 1 line, 1 bytes", "x"},
		{"d.md", "x\r\n", "append", "created d.md, 1 line, 3 bytes", "x\r\n"},
		{"./notes//deep/../e.md", "x", "create", "created notes/e.md, 1 line, 1 bytes", "x"},
		{d.abs("f.md"), "x", "create", "created f.md, 1 line, 1 bytes", "x"},
		{"b.md", "two\nthree\n", "append", "appended 2 lines to b.md, now 3 lines, 14 bytes", "one\ntwo\nthree\n"},
		{"open.txt", "two", "append", "appended 1 line to open.txt, now 2 lines, 7 bytes", "one\ntwo"},
		{"open-crlf.txt", "three\n", "append", "appended 1 line to open-crlf.txt, now 3 lines, 17 bytes; line ends written as CRLF like the rest of the file", "one\r\ntwo\r\nthree\r\n"},
		{"new-marked.txt", "\ufeffx\n", "create", "created new-marked.txt, 1 line, 5 bytes", "\ufeffx\n"},
		{"run.sh", "new", "overwrite", "replaced run.sh, 1 line, 3 bytes", "new"},
		{"run.sh", "new", "overwrite", "replaced run.sh, 1 line, 3 bytes; that is what it held before", "new"},
		{"crlf.txt", "a\nb\n", "overwrite", "replaced crlf.txt, 2 lines, 6 bytes; line ends written as CRLF like the rest of the file", "a\r\nb\r\n"},
		{"crlf.txt", "c\r\nd\n", "append", "appended 2 lines to crlf.txt, now 4 lines, 12 bytes; line ends written as CRLF like the rest of the file", "a\r\nb\r\nc\r\nd\r\n"},
		{"lf.txt", "a\r\nb\r\n", "overwrite", "replaced lf.txt, 2 lines, 4 bytes; line ends written as LF like the rest of the file", "a\nb\n"},
		{"mixed.txt", "a\r\nb\n", "overwrite", "replaced mixed.txt, 2 lines, 5 bytes", "a\r\nb\n"},
		{"linked.txt", "new", "overwrite", "replaced linked.txt, 1 line, 3 bytes; the file had 2 names (hard links), the others keep the old content", "new"},
	} {
		out := d.do("write_file", object{"path": row.path, "content": row.content, "mode": defaulted(row.mode)})
		name := strings.TrimPrefix(row.path, d.dir+"/")
		if out.State != regie.CallSucceeded || out.Result != row.says || d.content(name) != row.holds {
			t.Errorf("%s %s: %q holding %q, %+v", row.mode, row.path, out.Result, d.content(name), out.Error)
		}
	}
	if info, err := os.Stat(d.abs("run.sh")); err != nil || info.Mode() != 0o750 {
		t.Errorf("run.sh is %v, %v", info.Mode(), err)
	}
	if d.content("other.txt") != "old" {
		t.Errorf("the other name holds %q", d.content("other.txt"))
	}
	if slices.ContainsFunc(d.all(), func(name string) bool { return strings.Contains(name, ".tmp") }) {
		t.Errorf("temporary files stayed: %v", d.all())
	}
}

func defaulted(mode string) string {
	if mode == "" {
		return modeCreate
	}
	return mode
}

func TestWriteRefuses(t *testing.T) {
	d := newDesk(t, func(b *bounds) { b.changed = 100 })
	d.file("a.md", "one\n")
	d.file("big", strings.Repeat("x", 101))
	d.file("latin", "caf\xe9\n")
	d.file(".git/config", "git's own")
	d.must(os.Symlink("a.md", d.abs("link")))
	d.fifo("fifo")
	d.file("frozen", "x")
	d.must(os.Chmod(d.abs("frozen"), 0o444))
	before := d.all()
	for _, row := range []struct {
		args  object
		code  regie.Code
		state regie.CallState
		param string
	}{
		{object{"path": "a.md", "content": "x"}, regie.CodeFileExists, regie.CallFailed, "mode"},
		{object{"path": "a.md", "content": "x", "mode": "create"}, regie.CodeFileExists, regie.CallFailed, "mode"},
		{object{"path": "a.md", "content": "x", "mode": "truncate"}, regie.CodeBadArguments, regie.CallNotRun, "mode"},
		{object{"path": "a.md"}, regie.CodeBadArguments, regie.CallNotRun, "content"},
		{object{"path": ".", "content": "x"}, regie.CodeNotAFile, regie.CallFailed, "path"},
		{object{"path": "new/", "content": "x"}, regie.CodeNotAFile, regie.CallFailed, "path"},
		{object{"path": "a.md/b", "content": "x"}, regie.CodeNotADirectory, regie.CallFailed, "path"},
		{object{"path": "link", "content": "x", "mode": "overwrite"}, regie.CodeNotAFile, regie.CallFailed, "path"},
		{object{"path": "latin", "content": "é", "mode": "append"}, regie.CodeBadArguments, regie.CallFailed, "path"},
		{object{"path": "fifo", "content": "x", "mode": "append"}, regie.CodeSpecialFile, regie.CallFailed, "path"},
		{object{"path": ".git/hooks/pre-commit", "content": "x"}, regie.CodePathProtected, regie.CallFailed, "path"},
		{object{"path": ".Regie/config.yaml", "content": "x"}, regie.CodePathProtected, regie.CallFailed, "path"},
		{object{"path": "sub/.env", "content": "x"}, regie.CodePathProtected, regie.CallFailed, "path"},
		{object{"path": "frozen", "content": "x", "mode": "overwrite"}, regie.CodeReadOnly, regie.CallFailed, "path"},
		{object{"path": "big", "content": "", "mode": "append"}, regie.CodeFileTooLarge, regie.CallFailed, "path"},
		{object{"path": "new", "content": strings.Repeat("x", 101)}, regie.CodeFileTooLarge, regie.CallFailed, "content"},
		{object{"path": "a.md", "content": strings.Repeat("x", 98), "mode": "append"}, regie.CodeFileTooLarge, regie.CallFailed, "content"},
	} {
		out := d.do("write_file", row.args)
		if out.State != row.state || codeOf(out) != row.code || out.Error.Param != row.param {
			t.Errorf("%v: %s %+v", row.args, out.State, out.Error)
		}
	}
	if after := d.all(); !slices.Equal(after, before) || d.content("a.md") != "one\n" {
		t.Errorf("something was done: %v", after)
	}
}

// ready makes a write up to the moment in which its intent is stored.
func ready(t *testing.T, d *desk, args object) call {
	t.Helper()
	c, problem := d.check("write_file", args)
	if problem == nil {
		problem = c.prepare(t)
	}
	if problem != nil {
		t.Fatalf("%+v", problem)
	}
	return c
}

// Between intent and effect the world may change; then nothing is done.
func TestWriteNoticesChanges(t *testing.T) {
	for name, row := range map[string]struct {
		args   object
		meddle func(d *desk)
		code   regie.Code
	}{
		"created meanwhile": {object{"path": "new", "content": "x"}, func(d *desk) { d.file("new", "theirs") }, regie.CodeFileChanged},
		"edited meanwhile":  {object{"path": "a", "content": "x", "mode": "overwrite"}, func(d *desk) { d.file("a", "theirs") }, regie.CodeFileChanged},
		"appended meanwhile": {
			object{"path": "a", "content": "x", "mode": "append"},
			func(d *desk) { d.file("a", "one\ntheirs\n") },
			regie.CodeFileChanged,
		},
		"gone meanwhile": {
			object{"path": "a", "content": "x", "mode": "overwrite"},
			func(d *desk) { d.must(os.Remove(d.abs("a"))) },
			regie.CodeFileChanged,
		},
		"closed meanwhile": {
			object{"path": "a", "content": "x", "mode": "overwrite"},
			func(d *desk) { d.must(os.Chmod(d.abs("a"), 0o600)) },
			regie.CodeFileChanged,
		},
		"a link meanwhile": {object{"path": "a", "content": "x", "mode": "overwrite"}, func(d *desk) {
			d.must(os.Remove(d.abs("a")))
			d.must(os.Symlink("b", d.abs("a")))
		}, regie.CodeNotAFile},
		"directory moved": {object{"path": "dir/c", "content": "x", "mode": "overwrite"}, func(d *desk) {
			d.must(os.Rename(d.abs("dir"), d.abs("elsewhere")))
			d.must(os.Symlink("elsewhere", d.abs("dir")))
		}, regie.CodeFileChanged},
		"workspace gone": {
			object{"path": "a", "content": "x", "mode": "overwrite"},
			func(d *desk) { d.must(os.Rename(d.dir, d.dir+"2")); d.must(os.Mkdir(d.dir, 0o755)) }, regie.CodeFileChanged,
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			d.file("a", "one\n")
			d.file("b", "two\n")
			d.file("dir/c", "three\n")
			c := ready(t, d, row.args)
			row.meddle(d)
			before := d.all()
			out := c.run(t)
			if out.State != regie.CallFailed || codeOf(out) != row.code {
				t.Errorf("%s %+v", out.State, out.Error)
			}
			if !slices.Equal(d.all(), before) {
				t.Errorf("now there is %v", d.all())
			}
			for _, name := range before {
				if data, err := os.ReadFile(d.abs(name)); err == nil && strings.Contains(string(data), "x") {
					t.Errorf("%s holds %q", name, data)
				}
			}
		})
	}
}

// What a process that died at any moment leaves is recognised, and the repetition comes to the same
// result.
func TestWriteAfterCrash(t *testing.T) {
	for _, args := range []object{
		{"path": "notes/new", "content": "x\ny\n"},
		{"path": "a", "content": "x\ny\n", "mode": "overwrite"},
		{"path": "a", "content": "x\ny\n", "mode": "append"},
		{"path": "crlf", "content": "x\ny\n", "mode": "append"},
		{"path": "same", "content": "x\ny\n", "mode": "overwrite"},
	} {
		clean := newDesk(t)
		seed := func(d *desk) {
			d.file("a", "one\n")
			d.file("crlf", "one\r\n")
			d.file("same", "x\ny\n")
		}
		seed(clean)
		want := ready(t, clean, args).run(t)
		path, _ := args["path"].(string)
		dir := strings.TrimSuffix(path, "new")
		if dir == path {
			dir = ""
		}
		for name, crash := range map[string]struct {
			left   func(d *desk, c call)
			finds  tool.Evidence
			repeat bool
		}{
			"before anything": {func(*desk, call) {}, tool.NotHappened, true},
			"half written":    {func(d *desk, c call) { d.file(dir+".regie-"+c.inv.CallID.String()+".tmp", "x\n") }, tool.NotHappened, true},
			"after the effect": {func(_ *desk, c call) {
				if out := c.run(t); out.State != regie.CallSucceeded {
					t.Fatalf("%+v", out.Error)
				}
			}, tool.Happened, false},
			"linked, not tidied up": {func(d *desk, c call) {
				c.run(t)
				d.must(os.Link(d.abs(path), d.abs(dir+".regie-"+c.inv.CallID.String()+".tmp")))
			}, tool.Happened, false},
		} {
			t.Run(path+"/"+defaulted(toString(args["mode"]))+"/"+name, func(t *testing.T) {
				d := newDesk(t)
				seed(d)
				c := ready(t, d, args)
				crash.left(d, c)
				finds, out := c.probe(t)
				if path == "same" {
					crash.finds, crash.repeat = tool.Happened, false // it makes no difference, so it need not be done
				}
				if finds != crash.finds {
					t.Fatalf("the probe finds %s", finds)
				}
				if crash.repeat {
					out = c.run(t)
				}
				if out.State != regie.CallSucceeded || out.Result != want.Result || d.content(path) != clean.content(path) {
					t.Errorf("%q, %+v holding %q; without a crash %q", out.Result, out.Error, d.content(path), want.Result)
				}
				if !slices.Equal(d.all(), clean.all()) {
					t.Errorf("there is %v, without a crash %v", d.all(), clean.all())
				}
			})
		}
	}
}

func toString(v any) string { s, _ := v.(string); return s }

func TestProbeIsUnsure(t *testing.T) {
	for name, meddle := range map[string]func(d *desk, c call){
		"a third content":   func(d *desk, _ call) { d.file("a", "theirs") },
		"gone":              func(d *desk, _ call) { d.must(os.Remove(d.abs("a"))) },
		"a directory":       func(d *desk, _ call) { d.must(os.Remove(d.abs("a"))); d.must(os.Mkdir(d.abs("a"), 0o755)) },
		"no intent":         func(_ *desk, c call) { c.inv.Intent = nil },
		"an intent of old":  func(_ *desk, c call) { c.inv.Intent = json.RawMessage(`{}`) },
		"no workspace":      func(_ *desk, c call) { c.inv.Workspace.Root += "x" },
		"another workspace": func(d *desk, c call) { other := newDesk(d.t); c.inv.Workspace.Root = other.dir },
	} {
		d := newDesk(t)
		d.file("a", "one\n")
		c := ready(t, d, object{"path": "a", "content": "x", "mode": "overwrite"})
		meddle(d, c)
		if finds, _ := c.probe(t); finds != tool.Unsure {
			t.Errorf("%s: the probe finds %s", name, finds)
		}
		if out := c.run(t); out.State != regie.CallFailed {
			t.Errorf("%s: it was run: %+v", name, out)
		}
	}
}

// Writers of one process wait for each other: of many prepared on the same state one succeeds, the
// others do nothing.
func TestWritersTakeTurns(t *testing.T) {
	d := newDesk(t)
	d.file("a", "one\n")
	const writers = 8
	var calls []call
	for i := range writers {
		calls = append(calls, ready(t, d, object{"path": "a", "content": strings.Repeat("x", i+1), "mode": "append"}))
	}
	outcomes := make([]tool.Outcome, writers)
	var group sync.WaitGroup
	for i := range calls {
		group.Go(func() { outcomes[i] = calls[i].run(t) })
	}
	group.Wait()
	done := 0
	for i, out := range outcomes {
		switch {
		case out.State == regie.CallSucceeded:
			done++
			if want := "one\n" + strings.Repeat("x", i+1); d.content("a") != want {
				t.Errorf("it holds %q, not %q", d.content("a"), want)
			}
		case out.State != regie.CallFailed, codeOf(out) != regie.CodeFileChanged:
			t.Errorf("writer %d: %s %+v", i, out.State, out.Error)
		}
	}
	if done != 1 || len(d.all()) != 1 {
		t.Errorf("%d writers were done, leaving %v", done, d.all())
	}
}

// A write that waits for another one does not wait longer than its time, and has done nothing then.
func TestWriterGivesUpWaiting(t *testing.T) {
	d := newDesk(t)
	c := ready(t, d, object{"path": "a", "content": "x"})
	k := newToolkit(defaultBounds())
	for _, place := range k.writing {
		place <- struct{}{}
	}
	busy, err := k.writeTool()
	d.must(err)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(regie.Errorf(regie.CodeTimeout, "its time was over"))
	_, err = busy.Run(ctx, c.inv)
	if notDone := (tool.NotDone{}); regie.CodeOf(err) != regie.CodeTimeout || !errors.As(err, &notDone) || len(d.all()) != 0 {
		t.Errorf("got %v, leaving %v", err, d.all())
	}
}
