package files

import (
	"context"
	"encoding/json"
	"os"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/tool"
	"github.com/regie-run/regie/internal/workspace"
)

// content is a file that a test makes up.
func content(text string) workspace.Content {
	return workspace.Content{Path: "f", Exists: true, Data: []byte(text), Size: int64(len(text)), Links: 1, Perm: 0o644}
}

// keeping gives a call a place for what it keeps.
func (c call) keeping() map[regie.Hash][]byte {
	kept := map[regie.Hash][]byte{}
	c.inv.Keep = func(_ context.Context, data []byte) (regie.Hash, error) {
		kept[regie.HashOf(data)] = data
		return regie.HashOf(data), nil
	}
	return kept
}

func (c call) intent(t *testing.T) (made intent) {
	t.Helper()
	if err := json.Unmarshal(c.inv.Intent, &made); err != nil {
		t.Fatal(err)
	}
	return made
}

func TestDelete(t *testing.T) {
	d := newDesk(t)
	d.file("sub/a.md", "one\ntwo\n")
	d.must(os.Chmod(d.abs("sub/a.md"), 0o750))
	c, _ := d.check("delete_file", object{"path": "./sub/a.md"})
	kept := c.keeping()
	shown, problem := tool.DescribeCall(t.Context(), c.tool, c.inv)
	if problem != nil || shown.Sentence.String() != "delete sub/a.md: 2 lines, 8 bytes" || shown.Diff != "--- sub/a.md\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-one\n-two\n" {
		t.Errorf("%+v\n%+v", shown, problem)
	}
	if problem := c.prepare(t); problem != nil {
		t.Fatal(problem)
	}
	made := c.intent(t)
	if made.Before != regie.HashOf([]byte("one\ntwo\n")) || !made.After.IsZero() || made.Kept != made.Before || made.Perm != 0o750 || string(kept[made.Kept]) != "one\ntwo\n" {
		t.Errorf("%+v", made)
	}
	if got, _ := c.probe(t); got != tool.NotHappened {
		t.Errorf("before: %s", got)
	}
	out := c.run(t)
	if out.State != regie.CallSucceeded || out.Result != "deleted sub/a.md, 8 bytes; its content is kept, and a person can undo this" || len(d.all()) != 0 {
		t.Errorf("%+v, %v", out, d.all())
	}
	if got, probed := c.probe(t); got != tool.Happened || probed.Result != out.Result {
		t.Errorf("after: %s %q", got, probed.Result)
	}
}

func TestDeleteRefuses(t *testing.T) {
	d := newDesk(t)
	d.file("dir/x", "x")
	d.file(".git/config", "x")
	d.file("frozen", "x")
	d.must(os.Chmod(d.abs("frozen"), 0o444))
	d.must(os.Mkdir(d.abs("empty"), 0o755))
	d.must(os.Symlink("dir/x", d.abs("link")))
	d.must(os.Symlink("/etc/passwd", d.abs("out")))
	d.must(os.Symlink("nowhere", d.abs("dangling")))
	d.fifo("fifo")
	before := d.all()
	for path, want := range map[string]regie.Code{
		"dir": regie.CodeNotAFile, "dir/": regie.CodeNotAFile, "empty": regie.CodeNotAFile, ".": regie.CodeNotAFile, "none": regie.CodeFileNotFound, "fifo": regie.CodeSpecialFile,
		"link": regie.CodeNotAFile, "out": regie.CodePathOutside, "dangling": regie.CodeNotAFile, ".git/config": regie.CodePathProtected, ".git": regie.CodePathProtected,
		"frozen": regie.CodeReadOnly, "dir/x/y": regie.CodeNotADirectory,
	} {
		out := d.do("delete_file", object{"path": path})
		if out.State != regie.CallFailed || codeOf(out) != want {
			t.Errorf("%s: %s %+v", path, out.State, out.Error)
		}
		c, _ := d.check("delete_file", object{"path": path})
		if _, refusal := tool.DescribeCall(t.Context(), c.tool, c.inv); refusal == nil || refusal.Code != want {
			t.Errorf("the preview of %s says %+v", path, refusal)
		}
	}
	if len(d.all()) != len(before) {
		t.Errorf("something is gone: %v", d.all())
	}
}
