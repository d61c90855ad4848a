package workspace_test

import (
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/workspace"
)

// place is a directory with a workspace and a directory outside of it.
type place struct {
	t       testing.TB
	dir     string // of the workspace
	outside string
	root    *workspace.Root
}

func newPlace(tb testing.TB) *place {
	tb.Helper()
	base, err := filepath.EvalSymlinks(tb.TempDir())
	if err != nil {
		tb.Fatal(err)
	}
	p := &place{t: tb, dir: filepath.Join(base, "workspace"), outside: filepath.Join(base, "outside")}
	p.must(os.Mkdir(p.dir, 0o755))
	p.must(os.Mkdir(p.outside, 0o755))
	p.root, err = workspace.Open(p.dir)
	p.must(err)
	tb.Cleanup(func() { p.must(p.root.Close()) })
	return p
}

func (p *place) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *place) abs(name string) string { return filepath.Join(p.dir, filepath.FromSlash(name)) }

// file writes a file of the workspace, or outside of it by way of "../outside".
func (p *place) file(name, content string) {
	p.t.Helper()
	p.must(os.MkdirAll(filepath.Dir(p.abs(name)), 0o755))
	p.must(os.WriteFile(p.abs(name), []byte(content), 0o644))
}

func (p *place) link(aim, name string) {
	p.t.Helper()
	p.must(os.MkdirAll(filepath.Dir(p.abs(name)), 0o755))
	p.must(os.Symlink(aim, p.abs(name)))
}

func (p *place) fifo(name string) {
	p.t.Helper()
	p.must(syscall.Mkfifo(p.abs(name), 0o644))
}

// socket binds a socket by a short path, because those of sockets are bounded.
func (p *place) socket(name string) {
	p.t.Helper()
	short, err := os.MkdirTemp("", "s")
	p.must(err)
	p.t.Cleanup(func() { p.must(os.RemoveAll(short)) })
	listener, err := net.Listen("unix", filepath.Join(short, "s"))
	p.must(err)
	p.t.Cleanup(func() { _ = listener.Close() })
	p.must(os.Rename(filepath.Join(short, "s"), p.abs(name)))
}

func (p *place) content(name string) string {
	p.t.Helper()
	data, err := os.ReadFile(p.abs(name))
	p.must(err)
	return string(data)
}

// tree lists all that lies in the workspace, with what it holds.
func (p *place) tree() string {
	p.t.Helper()
	var out []string
	p.must(filepath.WalkDir(p.dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		short := strings.TrimPrefix(name, p.dir)
		if entry.Type().IsRegular() {
			data, err := os.ReadFile(name)
			out = append(out, short+"="+string(data))
			return err
		}
		out = append(out, short)
		return nil
	}))
	return strings.Join(out, "\n")
}

// read reads a file through the workspace.
func (p *place) read(name string) (string, error) {
	f, _, err := p.root.OpenFile(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	data, err := io.ReadAll(f)
	return string(data), err
}

// write changes a file through the workspace, without a person's word for a secret.
func (p *place) write(name, content string) (tried bool, err error) {
	before, err := p.root.Load(name, 1<<20)
	if err != nil {
		return false, err
	}
	if before.Secret {
		return false, regie.Errorf(regie.CodePathProtected, "%s may hold a secret", name)
	}
	return p.root.Replace(workspace.Change{Before: before, Data: []byte(content), Tag: "test"})
}

func wantCode(tb testing.TB, what string, err error, want regie.Code) {
	tb.Helper()
	if got := regie.CodeOf(err); got != want {
		tb.Errorf("%s: got %q (%v), want %q", what, got, err, want)
	}
}
