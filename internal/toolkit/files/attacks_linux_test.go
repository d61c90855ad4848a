package files

import (
	"flag"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/tool"
)

// raceTime is how long paths are exchanged under each tool's hands: make swap takes 10 s.
var raceTime = flag.Duration("race-time", time.Second, "how long links are swapped while the tools run")

// canary stands in what no tool may show or change: outside of the workspace, in secrets, in what
// belongs to git and regie.
const canary = "CANARY-5d1c"

// hostile is a workspace that somebody has prepared, with a directory outside of it.
type hostile struct {
	*desk
	outside string
}

func newHostile(tb testing.TB) *hostile {
	tb.Helper()
	h := &hostile{desk: newDesk(tb)}
	h.outside = filepath.Join(filepath.Dir(h.dir), "outside")
	h.must(os.MkdirAll(filepath.Join(h.outside, "deep"), 0o755))
	for _, name := range []string{"secret.txt", "deep/x", "empty-not"} {
		h.must(os.WriteFile(filepath.Join(h.outside, name), []byte(canary+" outside\n"), 0o644))
	}
	h.must(os.WriteFile(filepath.Join(h.outside, "shared"), []byte("shared by a hard link\n"), 0o644))
	for _, name := range []string{".env", ".ENV.local", "sub/.env", "id_rsa", "key.pem", ".ssh/id_ed25519", ".aws/credentials", "sub/.npmrc", ".git-credentials"} {
		h.file(name, canary+" secret\n")
	}
	for _, name := range []string{
		".git/config", ".git/hooks/pre-commit", ".regie/regie.yaml", "sub/.git/config",
		"bare/x.git/HEAD", "bare/x.git/config", "bare/x.git/objects/a", "bare/x.git/refs/a", "bare/x.git/hooks/update", "bare/shared/HEAD", "bare/shared/commondir", "bare/shared/config",
	} {
		h.file(name, canary+" internal\n")
	}
	for _, name := range []string{ // what would be a repository with one file more, and can be read until then
		"bare/noHead/objects/a", "bare/noHead/refs/a", "bare/noHead/config", "bare/noRefs/HEAD", "bare/noRefs/objects/a", "bare/noRefs/config", "bare/noObjects/HEAD", "bare/noObjects/refs/a",
	} {
		h.file(name, "half\n")
	}
	h.file("plain", "x\n")
	h.file("dir/x", "x\n")
	for link, aim := range map[string]string{
		"to-file": "../outside/secret.txt", "to-dir": "../outside", "to-abs": h.outside, "to-abs-file": h.outside + "/secret.txt", "to-etc": "/etc", "to-root": "/", "to-proc": "/proc/self",
		"to-env": ".env", "to-ssh": ".ssh", "to-git": ".git", "to-hook": ".git/hooks/pre-commit", "chain1": "chain2", "chain2": "to-dir", "loop1": "loop2", "loop2": "loop1", "self": "self",
		"dir/up": "../..", "dir/up-and-in": "../../outside/secret.txt", "dangling": "../outside/new", "dangling-in": "nowhere/new", "dir/env": "../.env", "dots": "dir/../../outside",
		"trailing": "../outside/", "dot": "../outside/.", "deep": "dir/up/outside/deep", "to-key": "key.pem", "to-fd": "/proc/self/fd/0", "to-mem": "/proc/self/mem", "to-null": "/dev/null",
		"to-cwd": "/proc/self/cwd", "to-rootdir": "/proc/self/root", "to-bare": "bare/x.git", "to-bare-hooks": "bare/x.git/hooks",
	} {
		h.must(os.Symlink(aim, h.abs(link)))
	}
	h.must(os.Link(filepath.Join(h.outside, "shared"), h.abs("hard")))
	h.fifo("fifo")
	h.must(syscall.Mkfifo(h.abs("dir/fifo"), 0o644))
	h.socket("socket")
	return h
}

// socket binds a socket by a short path, because those of sockets are bounded.
func (h *hostile) socket(name string) {
	h.t.Helper()
	short, err := os.MkdirTemp("", "s")
	h.must(err)
	h.t.Cleanup(func() { h.must(os.RemoveAll(short)) })
	listener, err := net.Listen("unix", filepath.Join(short, "s"))
	h.must(err)
	h.t.Cleanup(func() { _ = listener.Close() })
	h.must(os.Rename(filepath.Join(short, "s"), h.abs(name)))
}

// guarded is all that must stay as it is, with its content: what lies outside, what is internal,
// what is secret.
func (h *hostile) guarded() string {
	h.t.Helper()
	var out []string
	for _, top := range []string{h.outside, h.abs(".git"), h.abs(".regie"), h.abs(".ssh"), h.abs(".aws"), h.abs("sub"), h.abs("bare"), h.abs(".env"), h.abs(".ENV.local"), h.abs("id_rsa"), h.abs("key.pem"), h.abs(".git-credentials")} {
		h.must(filepath.WalkDir(top, func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				out = append(out, name+"/")
				return err
			}
			data, err := os.ReadFile(name)
			out = append(out, name+"="+string(data))
			return err
		}))
	}
	return strings.Join(out, "\n")
}

// operations are calls of every tool about a path.
func operations(path string) map[string]object {
	return map[string]object{
		"read_file": {"path": path}, "list_files": {"path": path, "recursive": true}, "search_text": {"query": "a|e|i|o|u|5", "regex": true, "path": path},
		"write_file": {"path": path, "content": "ATTACK", "mode": "overwrite"}, "edit_file": {"path": path, "edits": []object{{"old": "e", "new": "ATTACK", "all": true}}},
		"delete_file": {"path": path},
	}
}

// attempt makes a call as the engine does with nobody's word for it, with a preview too, and
// returns all that anybody would read of it.
func (h *hostile) attempt(operation string, args object) (tool.Outcome, string) {
	c, problem := h.check(operation, args)
	if problem != nil {
		return tool.Outcome{State: regie.CallNotRun, Error: problem}, problem.Message + problem.Hint
	}
	shown, _ := tool.DescribeCall(h.t.Context(), c.tool, c.inv)
	asks := fmt.Sprint(tool.MustAsk(h.t.Context(), c.tool, c.inv), tool.Foresee(h.t.Context(), c.tool, c.inv) != nil)
	text := fmt.Sprint(shown.Sentence.String(), shown.Warnings, shown.Diff, asks)
	if problem := c.prepare(h.t); problem != nil {
		return tool.Outcome{State: regie.CallFailed, Error: problem}, text + fmt.Sprintf("%+v", problem)
	}
	out := c.run(h.t)
	_, probed := c.probe(h.t)
	return out, text + fmt.Sprintf("%s %+v %s", out.Result, out.Error, probed.Result)
}

// attacks are paths that lead out, to what is protected, or to what is no file, by any trick. No
// tool may do anything with them but refuse; those of the second list may be read, because they lie
// inside and are no secrets.
func attacks(h *hostile) (refused, readable []string) {
	long := strings.Repeat("a", 256)
	refused = []string{
		"..", "../", "../outside/secret.txt", "../../etc/passwd", "dir/../../outside/secret.txt", "dir/../../outside", "./../outside/secret.txt", "dir/./../../outside/secret.txt", "//../outside/secret.txt",
		"..//outside/secret.txt", "dir/../dir/../../outside/secret.txt", ".../../../outside/secret.txt", "/", "/etc/passwd", "//etc/passwd", "///etc/passwd", h.outside, h.outside + "/secret.txt",
		h.dir + "/../outside/secret.txt", h.dir + "x", h.dir + "/../" + "outside", "~", "~/.ssh/id_rsa", "\\\\server\\share\\x", "//server/share/x", "C:\\Windows\\win.ini", "..\\outside\\secret.txt", "dir\\..\\..\\outside",
		"plain\x00.txt", "\x00", "..\x00/outside", "plain\n", "a\rb", "a\x1b[2Jb", "a\u202eb", "a\u2066b", "", long, strings.Repeat("a/", 3000), strings.Repeat("../", 500) + "etc/passwd", strings.Repeat("d/", 300) + "x",
		"to-file", "to-dir", "to-dir/secret.txt", "to-dir/deep/x", "to-abs", "to-abs/secret.txt", "to-abs-file", "to-etc", "to-etc/passwd", "to-root", "to-root/etc/passwd", "to-proc", "to-proc/environ", "to-proc/cwd/plain",
		"chain1", "chain1/secret.txt", "chain2/secret.txt", "loop1", "loop2/x", "self", "self/self/self", "dir/up", "dir/up/outside/secret.txt", "dir/up-and-in", "dots/secret.txt", "trailing/secret.txt", "dot/secret.txt", "deep/x",
		"dangling", "to-fd", "to-mem", "to-null", "to-cwd", "to-cwd/plain", "to-rootdir/etc/passwd", "/proc/self/environ", "/proc/self/root/etc/passwd", "/dev/zero", "/dev/stdin", "fifo", "dir/fifo", "socket",
		".env", "./.env", "dir/../.env", ".ENV.local", ".Env", ".env.", ".env ", ".env::$DATA", ".e\u200bnv", ".ENV\u200d.local", "sub/.env", "id_rsa", "ID_RSA", "key.pem", "key.PEM", "to-env", "dir/env", "to-ssh", "to-ssh/id_ed25519", "to-key",
		".ssh", ".ssh/id_ed25519", ".SSH/id_ed25519", ".aws/credentials", "sub/.npmrc", ".git-credentials", ".\uff53\uff53\uff48/id_ed25519",
	}
	readable = []string{
		".git/config", ".git/hooks/pre-commit", ".GIT/config", ".Git/hooks/pre-commit", ".git./config", ".git /config", ".git\u200c/config", ".g\u0131t/config", ".git::$INDEX_ALLOCATION/config", "git~1/config", "GIT~1/hooks/pre-commit",
		".regie/regie.yaml", ".REGIE/regie.yaml", "regie~1/regie.yaml", "sub/.git/config", "to-git/config", "to-git/hooks/pre-commit", "to-hook", "dir/../.git/config", "./.git/./hooks/../config", h.dir + "/.git/config", ".git", ".regie", ".git/hooks",
		"bare/x.git/config", "bare/x.git/HEAD", "bare/x.git/hooks/update", "bare/x.git/hooks/pre-receive", "bare/x.git/hooks", "bare/x.git/CONFIG", "bare/x.git/Hooks/update", "bare/x.git/config.worktree",
		"bare/x.git/commondir", "bare/x.git/info/attributes", "bare/x.git/objects/info/alternates", "bare/x.git/worktrees/a/gitdir", "bare/x.git/modules/m/config", "to-bare/config", "to-bare-hooks/update",
		"bare/./x.git/../x.git/config", h.dir + "/bare/x.git/config", "bare/shared/config", "bare/noHead/HEAD", "bare/noHead/head", "bare/noRefs/refs/heads/main", "bare/noRefs/commondir", "bare/noObjects/objects/a",
	}
	return refused, readable
}

func TestAttacks(t *testing.T) {
	h := newHostile(t)
	before := h.guarded()
	refused, readable := attacks(h)
	if len(refused)+len(readable) < 100 {
		t.Errorf("only %d attacks", len(refused)+len(readable))
	}
	calls := 0
	for _, path := range refused {
		for operation, args := range operations(path) {
			out, told := h.attempt(operation, args)
			calls++
			elsewhere := path == "" && (operation == "list_files" || operation == "search_text") // the workspace itself
			// A fullwidth name, or a file of that name that is not there, is nobody's secret: it is
			// another file of the workspace.
			own := codeOf(out) == "" && (operation == "write_file" || operation == "delete_file")
			switch {
			case strings.Contains(told, canary):
				t.Errorf("%s of %.60q tells %.300q", operation, path, told)
			case out.State == regie.CallSucceeded && !elsewhere && !own:
				t.Errorf("%s of %.60q succeeds: %.200q", operation, path, out.Result)
			case out.State == regie.CallUnknown:
				t.Errorf("%s of %.60q: %+v", operation, path, out.Error)
			case own && !strings.Contains(path, "\uff53") && !strings.HasPrefix(path, "dangling-in"):
				t.Errorf("%s of %.60q was done: %q", operation, path, out.Result)
			case strings.Contains(told, h.outside) && !strings.Contains(path, h.outside) && !elsewhere:
				// a list says what links say
				t.Errorf("%s of %.60q tells where things lie: %.300q", operation, path, told)
			}
		}
		if now := h.guarded(); now != before {
			t.Fatalf("%.60q changed\n%s\nto\n%s", path, before, now)
		}
	}
	for _, path := range readable {
		for _, operation := range []string{"write_file", "edit_file", "delete_file"} {
			calls++
			if out, _ := h.attempt(operation, operations(path)[operation]); out.State != regie.CallFailed && !strings.Contains(path, "\u0131") {
				t.Errorf("%s of %q: %s %q", operation, path, out.State, out.Result)
			}
		}
		if now := h.guarded(); now != before {
			t.Fatalf("%q changed what is guarded", path)
		}
	}
	// What nobody named is not shown by a walk either.
	for operation, args := range operations(".") {
		if out, told := h.attempt(operation, args); strings.Contains(told, canary) || operation != "list_files" && operation != "search_text" && out.State != regie.CallFailed {
			t.Errorf("%s of the workspace: %s %.500q", operation, out.State, told)
		}
	}
	// A hard link is a file like any other, and what is written is never written into the file
	// outside.
	for _, operation := range []string{"edit_file", "write_file", "delete_file"} {
		if out, _ := h.attempt(operation, operations("hard")[operation]); out.State != regie.CallSucceeded {
			t.Errorf("%s of a hard link: %+v", operation, out.Error)
		}
	}
	if now := h.guarded(); now != before {
		t.Error("a hard link was written through")
	}
	t.Logf("%d attacks, %d calls", len(refused)+len(readable), calls)
}

// Somebody exchanges a directory, and then a file, for links that lead out and to secrets, as fast
// as can be, while every tool works on it. Nothing outside, secret or internal is ever shown or
// changed.
func TestSwapRace(t *testing.T) {
	for _, race := range []struct {
		name, at, path string
		with           []string
	}{
		{"a directory on the way", "way", "way/deep/x", []string{"good", "to-dir", "good", "to-ssh", "good", "to-git", "fifo"}},
		{"the directory itself", "way", "way", []string{"good", "to-dir", "good", "to-ssh", "good", "to-abs"}},
		{"the file", "file", "file", []string{"fine", "to-file", "fine", "to-env", "fine", "to-hook", "fine", "to-abs-file", "fifo"}},
	} {
		t.Run(race.name, func(t *testing.T) {
			h := newHostile(t)
			h.file("good/deep/x", "inside\n")
			h.file("way/deep/x", "inside\n")
			h.file("fine", "inside\n")
			h.file("file", "inside\n")
			before := h.guarded()
			stop := h.swapping(race.at, race.with)
			counts := map[string]int{}
			for end := time.Now().Add(*raceTime / 3); time.Now().Before(end); {
				for operation, args := range operations(race.path) {
					out, told := h.attempt(operation, args)
					// may show git's own files
					internal := operation == "read_file" || operation == "search_text" || operation == "list_files"
					if text := strings.ReplaceAll(told, canary+" internal", ""); strings.Contains(text, canary) || !internal && strings.Contains(told, canary) {
						t.Fatalf("%s shows %.300q", operation, told)
					}
					counts[operation+" "+string(out.State)]++
				}
			}
			stop()
			if now := h.guarded(); now != before {
				t.Errorf("what is guarded was\n%s\nand is\n%s", before, now)
			}
			t.Log(counts)
		})
	}
}

// swapping puts each of the names into a place in turn, in one step each, until it is stopped. It
// leaves all names as they were.
func (h *hostile) swapping(at string, names []string) (stop func()) {
	swap := func(name string) error {
		return unix.Renameat2(unix.AT_FDCWD, h.abs(at), unix.AT_FDCWD, h.abs(name), unix.RENAME_EXCHANGE)
	}
	done := make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-done:
				return
			default:
			}
			name := names[i%len(names)]
			// a tool may have taken the file away: then there is nothing to exchange until it
			// writes it again
			if swap(name) == nil {
				_ = swap(name)
			}
		}
	})
	return func() { close(done); group.Wait() }
}
