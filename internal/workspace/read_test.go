package workspace_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/workspace"
)

func TestOpenRefuses(t *testing.T) {
	p := newPlace(t)
	p.file("a", "")
	p.fifo("fifo")
	for dir, want := range map[string]regie.Code{
		"": regie.CodePathInvalid, "relative": regie.CodePathInvalid, p.dir + "\x00": regie.CodePathInvalid, p.abs("none"): regie.CodeFileNotFound,
		p.abs("a"): regie.CodeNotADirectory, p.abs("fifo"): regie.CodeNotADirectory, p.abs("a/b"): regie.CodeNotADirectory,
		"/" + strings.Repeat("a", 300): regie.CodePathInvalid,
	} {
		_, err := workspace.Open(dir)
		wantCode(t, dir, err, want)
	}
}

// Every way of naming a file, and what comes of it.
func TestOpenFile(t *testing.T) {
	p := newPlace(t)
	p.file("a.md", "inside")
	p.file("dir/b.md", "deeper")
	p.file("../outside/secret.md", "CANARY")
	p.file(".env", "CANARY")
	p.file("config/plain", "CANARY")
	p.file(".git/config", "git's own")
	p.fifo("fifo")
	p.socket("socket")
	p.link("a.md", "to-file")
	p.link("dir", "to-dir")
	p.link(p.abs("a.md"), "to-absolute")
	p.link("../dir/b.md", "dir/up-and-down")
	p.link("to-file", "chain")
	p.link("none", "dangling")
	p.link("loop2", "loop1")
	p.link("loop1", "loop2")
	p.link("../outside/secret.md", "out")
	p.link("../outside", "out-dir")
	p.link(p.outside, "out-absolute")
	p.link("/dev/zero", "device")
	p.link("..", "up")
	p.link("dir/../../outside", "out-in-the-middle")
	p.link(".env", "harmless.md")
	p.link("./.env/.", "harmless2.md")
	p.link("config/plain", "key.pem")
	p.link("key.pem", "harmless3.md")
	p.link("fifo", "to-fifo")
	for name, want := range map[string]string{
		"a.md": "inside", "./dir//b.md": "deeper", "to-file": "inside", "to-dir/b.md": "deeper", "to-absolute": "inside", "dir/up-and-down": "deeper",
		"chain":       "inside",
		p.abs("a.md"): "inside", ".git/config": "git's own",
	} {
		if got, err := p.read(name); got != want || err != nil {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}
	for name, want := range map[string]regie.Code{
		"none": regie.CodeFileNotFound, "dangling": regie.CodeFileNotFound, "none/a": regie.CodeFileNotFound, "dir": regie.CodeNotAFile,
		".":     regie.CodeNotAFile,
		"a.md/": regie.CodeNotAFile, "a.md/b": regie.CodeNotADirectory, "fifo": regie.CodeSpecialFile, "to-fifo": regie.CodeSpecialFile,
		"socket": regie.CodeSpecialFile,
		"fifo/x": regie.CodeNotADirectory, "loop1": regie.CodePathInvalid, "out": regie.CodePathOutside, "out-dir/secret.md": regie.CodePathOutside,
		"out-absolute/secret.md": regie.CodePathOutside, "device": regie.CodePathOutside, "up/outside/secret.md": regie.CodePathOutside,
		"up":                          regie.CodePathOutside,
		"out-in-the-middle/secret.md": regie.CodePathOutside, "../outside/secret.md": regie.CodePathOutside, "/etc/passwd": regie.CodePathOutside,
		".env": regie.CodePathProtected, "dir/../.ENV": regie.CodePathProtected, "harmless.md": regie.CodePathProtected,
		"harmless2.md": regie.CodePathProtected,
		"key.pem":      regie.CodePathProtected, "harmless3.md": regie.CodePathProtected, ".ssh/none": regie.CodePathProtected,
		"a\x00": regie.CodePathInvalid,
	} {
		got, err := p.read(name)
		wantCode(t, name, err, want)
		if strings.Contains(got, "CANARY") || err != nil && strings.Contains(err.Error(), p.outside) {
			t.Errorf("%s: tells %q, %v", name, got, err)
		}
	}
	_, err := p.read(".env")
	if err == nil || !strings.Contains(err.Error(), "only where a person") {
		t.Errorf("the refusal of a secret says %v", err)
	}
}

func TestList(t *testing.T) {
	p := newPlace(t)
	p.file("b", "")
	p.file("a/deep/c", "")
	p.file(".ssh/config", "")
	p.link("a", "to-a")
	p.link("../outside", "out")
	all := func(string) bool { return true }
	list := func(name string) (names string, listed workspace.Listed, err error) {
		listed, err = p.root.List(t.Context(), name, workspace.Listing{Wanted: all, Holds: all, Show: func(e *workspace.SurveyEntry) bool {
			names += e.Path + " "
			return true
		}})
		return names, listed, err
	}
	names, listed, err := list("to-a/..")
	if want := "b out to-a .ssh a a/deep a/deep/c "; err != nil || names != want || listed.Path != "." || fmt.Sprint(listed.OtherNames) != "[.ssh]" {
		t.Errorf("%s %+v %v", names, listed, err)
	}
	for name, want := range map[string]regie.Code{
		"b": regie.CodeNotADirectory, "none": regie.CodeFileNotFound, "out": regie.CodePathOutside, ".ssh": regie.CodePathProtected,
		"..":        regie.CodePathOutside,
		"to-a/deep": "", "a/": "", p.dir: "",
	} {
		_, _, err := list(name)
		wantCode(t, "opening "+name, err, want)
	}
}

// The system's errors have codes, also those that a test cannot bring about.
func TestSystemErrors(t *testing.T) {
	p := newPlace(t)
	for errno, want := range map[error]regie.Code{
		syscall.ENOENT: regie.CodeFileNotFound, syscall.EEXIST: regie.CodeFileExists, syscall.ENOTDIR: regie.CodeNotADirectory,
		syscall.EISDIR:       regie.CodeNotAFile,
		syscall.ENAMETOOLONG: regie.CodePathInvalid, syscall.ELOOP: regie.CodePathInvalid, syscall.ENOSPC: regie.CodeDiskFull,
		syscall.EDQUOT: regie.CodeDiskFull,
		syscall.EFBIG:  regie.CodeFileTooLarge, syscall.EROFS: regie.CodeReadOnly, syscall.EACCES: regie.CodeNoPermission,
		syscall.EPERM: regie.CodeNoPermission,
		syscall.ENXIO: regie.CodeSpecialFile, syscall.EIO: regie.CodeToolError,
	} {
		err := p.root.Explain(&os.PathError{Op: "openat", Path: filepath.Join(p.dir, "a"), Err: errno}, "a")
		wantCode(t, errno.Error(), err, want)
		if strings.Contains(err.Error(), p.dir) {
			t.Errorf("the sentence names the workspace's place: %v", err)
		}
	}
}

func TestDetect(t *testing.T) {
	p := newPlace(t)
	home := p.abs("home/me")
	for _, dir := range []string{
		"home/me/.git", "home/me/.regie", "home/me/plain/deep", "home/me/repo/.git", "home/me/repo/src/a", "home/me/both/.regie", "home/me/both/sub/.git",
		"home/me/both/sub/a",
		"home/me/tree/src", "other/.git/x",
	} {
		p.must(os.MkdirAll(p.abs(dir), 0o755))
	}
	p.file("home/me/tree/.git", "gitdir: elsewhere")
	p.file("home/me/plain/.regie", "a file is no mark")
	p.link("home/me/repo/src", "elsewhere")
	p.fifo("fifo")
	for _, row := range []struct {
		dir     string
		here    bool
		root    string
		foundBy string
		code    regie.Code
	}{
		// the settings in the home directory do not count
		{"home/me/plain/deep", false, "home/me/plain/deep", "directory", ""},
		{"home/me/repo/src/a", false, "home/me/repo", "git", ""},
		{"home/me/both/sub/a", false, "home/me/both", "regie", ""},
		{"home/me/tree/src", false, "home/me/tree", "git", ""},
		{"elsewhere/a", false, "home/me/repo", "git", ""},
		{"other/.git/x", false, "other", "git", ""},
		{"home/me", false, "", "", regie.CodePathProtected},
		{"home/me", true, "home/me", "regie", ""},
		{"home", false, "", "", regie.CodePathProtected},
		{"home", true, "home", "directory", ""},
		{"none", false, "", "", regie.CodeFileNotFound},
		{"home/me/tree/.git", false, "", "", regie.CodeNotADirectory},
		{"fifo", false, "", "", regie.CodeNotADirectory},
	} {
		root, foundBy, err := workspace.Detect(p.abs(row.dir), home, row.here)
		wantRoot := ""
		if row.root != "" {
			wantRoot = p.abs(row.root)
		}
		if root != wantRoot || foundBy != row.foundBy || regie.CodeOf(err) != row.code {
			t.Errorf("%s (here %v): got %s, %s, %v", row.dir, row.here, root, foundBy, err)
		}
	}
	if _, _, err := workspace.Detect("/", "", false); regie.CodeOf(err) != regie.CodePathProtected {
		t.Errorf("the root of the file system: %v", err)
	}
	if root, _, err := workspace.Detect("/", "", true); root != "/" || err != nil {
		t.Errorf("the root of the file system, meant: %s, %v", root, err)
	}
}
