package gitconfig

import "testing"

// TestWritten divides what lies in a repository.
func TestWritten(t *testing.T) {
	for _, name := range []string{
		"HEAD", "HEAD.lock", "ORIG_HEAD", "FETCH_HEAD", "COMMIT_EDITMSG", "MERGE_RR", "AUTO_MERGE", "index", "index.lock", "next-index-12.lock", "packed-refs.new", "packed-refs", "objects", "refs", "logs", "rebase-merge", "sequencer",
	} {
		if !Written(name) {
			t.Errorf("%s cannot be written", name)
		}
	}
	for _, name := range append(Runs(), "CONFIG", "HOOKS", "config.lock", "description", "x", "indexes", "HEAD.x", "objects2", "INFO") {
		if Written(name) {
			t.Errorf("%s can be written", name)
		}
	}
}

// TestPlain reads configuration as git writes it, and such as runs something.
func TestPlain(t *testing.T) {
	for config, want := range map[string]bool{
		"": true, "[core]\n\tbare = false\n[remote \"o\"]\n\turl = x\n\tfetch = +a:b\n[branch \"a.b\"]\n\tremote = o\n": true,
		"[core]\n\tfsmonitor = x\n": false, "[remote \"o\"]\n\tuploadpack = x\n": false, "[core]\n\tworktree = x\n": false, "[include]\n\tpath = x\n": false, "[\"\n[alias]\na=!x": false,
	} {
		if Plain([]byte(config)) != want {
			t.Errorf("%q: %t", config, !want)
		}
	}
}

// TestRunsProgram reads the lines of a rebase.
func TestRunsProgram(t *testing.T) {
	for line, want := range map[string]bool{"exec id": true, "x id": true, "  x\tid": true, "exec\x00id": true, "pick 1 exec id": false, "# exec id": false, "execute": false, "": false, "fixup -C 1": false} {
		if RunsProgram("rebase-merge/git-rebase-todo", line) != want {
			t.Errorf("%q: %t", line, !want)
		}
	}
	if !RunsProgram("rebase-merge/strategy", "../x") || RunsProgram("rebase-merge/strategy", "ort") {
		t.Error("strategies")
	}
}
