package doctor

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/regie-run/regie"
)

func TestModel(t *testing.T) {
	for _, c := range []struct {
		name   string
		server Server
		model  string
		id     string
		status Status
		fix    string
	}{
		{"answers", Server{Asked: true, Models: []string{"a"}, ToolModels: []string{"a"}}, "a", "model.tools", Fine, ""},
		{"latest", Server{Asked: true, Models: []string{"a:latest"}, ToolModels: []string{"a:latest"}}, "a", "model.tools", Fine, ""},
		{"no tools", Server{Asked: true, Models: []string{"a"}}, "a", "model.tools", Warning, "regie models"},
		{"no such model", Server{Asked: true, Models: []string{"a", "b"}}, "c", "model.known", Failed, "choose one that it has (a, b)"},
		{"not pulled", Server{Asked: true, Type: "ollama", Models: []string{"a"}}, "c", "model.known", Failed, "ollama pull c"},
		{"no key", Server{}, "a", "model.key", Failed, "regie setup"},
		{"wrong key", Server{Asked: true, Code: regie.CodeProviderAuth}, "a", "model.answers", Failed, "regie setup"},
		{"no credit", Server{Asked: true, Code: regie.CodeProviderQuota}, "a", "model.answers", Failed, "credit"},
		{"offline", Server{Asked: true, Code: regie.CodeProviderOffline}, "a", "model.answers", Failed, "network"},
		{"Ollama not running", Server{Asked: true, Type: "ollama", Local: true, Code: regie.CodeProviderOffline}, "a", "model.answers", Failed, "ollama serve"},
		{"local server not running", Server{Asked: true, Local: true, Code: regie.CodeProviderOffline}, "a", "model.answers", Failed, "start the server"},
		{"busy", Server{Asked: true, Code: regie.CodeProviderBusy}, "a", "model.answers", Warning, "wait"},
		{"no list", Server{Asked: true, Code: regie.CodeProviderRejected}, "a", "model.answers", Warning, "regie run hello"},
	} {
		s := subject("", "")
		s.Config.Provider, s.Config.Model = "lab", c.model
		c.server.Name, c.server.Chosen = "lab", true
		s.Servers = func(context.Context) []Server { return []Server{c.server} }
		report := Examine(t.Context(), s)
		if f := finding(report, c.id, c.status); f == nil || !strings.Contains(fixes(f), c.fix) {
			t.Errorf("%s: %+v in %+v", c.name, f, report[:5])
		}
	}
	s := subject("", "")
	s.Config.Provider = ""
	if f := finding(Examine(t.Context(), s), "model.chosen", Failed); f == nil || fixes(f) != "regie setup" {
		t.Errorf("no model: %+v", f)
	}
	s.Config.Provider, s.Config.Model = "lab", ""
	if f := finding(Examine(t.Context(), s), "model.chosen", Failed); f == nil || f.Code != regie.CodeNoModel {
		t.Errorf("a server without a model: %+v", f)
	}
}

// TestSpace: bounds that no test can produce on a real disk.
func TestSpace(t *testing.T) {
	for _, c := range []struct {
		free, files, left uint64
		status            Status
		text              string
	}{
		{0, 0, 0, Failed, "only 0 B are free"},
		{spaceNeeded - 1, 10, 1000, Failed, "only 64 MiB are free"},
		{1 << 40, 1000, 3, Failed, "takes no more files"},
		{1 << 40, 0, 0, Fine, "1 TiB are free"}, // a file system that makes its inodes as it needs them
		{spaceNeeded, 1000, 1000, Warning, "64 MiB are free"},
		{3 << 29, 1000, 1000, Fine, "1.5 GiB are free"},
	} {
		x := &exam{}
		x.space("/my data", c.free, c.files, c.left)
		if f := x.report[0]; f.Status != c.status || !strings.HasPrefix(f.Text.String(), c.text) && !strings.Contains(f.Text.String(), c.text) || c.status == Failed && (f.Code != regie.CodeDiskFull || len(f.Fixes) == 0) {
			t.Errorf("%+v: %s %s", c, f.Status, f.Text)
		}
	}
	if saturated(uint64(1<<40), uint64(1<<40)) != 1<<64-1 || saturated(int64(-1), uint64(8)) != 0 || saturated(uint64(3), uint64(4)) != 12 {
		t.Error("saturated")
	}
}

func TestMounts(t *testing.T) {
	const table = "22 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n" +
		"30 22 0:26 / /mnt/my\\040nas rw shared:1 - nfs4 server:/export rw\n" +
		"31 22 0:27 / /run rw - tmpfs tmpfs rw\nnonsense\n - x y\n" +
		"32 22 0:28 / /mnt rw - ext4 /dev/b rw\n33 22 0:29 / /mnt rw - fuse.sshfs me@host: rw\n"
	for dir, want := range map[string]string{"/": "ext4", "/home/x": "ext4", "/mnt/my nas/a": "nfs4", "/mnt/my nasty": "fuse.sshfs", "/mnt": "fuse.sshfs", "/run/user/1": "tmpfs", "/running": "ext4"} {
		if m, ok := mountAt(table, dir); !ok || m.kind != want {
			t.Errorf("%s: %+v, want %s", dir, m, want)
		}
	}
	if _, ok := mountAt("", "/x"); ok {
		t.Error("a mount in an empty table")
	}
	for kind, status := range map[string]Status{
		"ext4": Fine, "btrfs": Fine, "fuse.sshfs": Failed, "fuseblk": Fine, "sshfs": Fine, "nfs4": Failed, "9p": Failed, "cifs": Failed, "tmpfs": Warning, "overlay": Warning, "fuse.ext2": Fine,
	} {
		x := &exam{}
		x.fileSystem("/x", mount{kind: kind})
		if f := x.report[0]; f.Status != status || status != Fine && len(f.Fixes) == 0 {
			t.Errorf("%s: %s %s", kind, f.Status, f.Text)
		}
	}
}

func FuzzTables(f *testing.F) {
	f.Add("22 1 254:0 / / rw - ext4 /dev/vda rw\n", "/x", uint64(5))
	f.Add("1: POSIX  ADVISORY  WRITE 4711 fe:00:5 1073741826 EOF\n", "/", uint64(5))
	f.Add("22 1 0:0 / /\\04 rw - a \\999", "/\x04", uint64(0))
	f.Fuzz(func(t *testing.T, table, dir string, inode uint64) {
		if m, ok := mountAt(table, dir); ok && m.kind == "" {
			t.Errorf("a mount of no kind in %q", table)
		}
		for _, h := range lockedBy(table, inode) {
			if h.pid <= 0 {
				t.Errorf("a holder %d in %q", h.pid, table)
			}
		}
	})
}

func TestLocks(t *testing.T) {
	const table = "1: POSIX  ADVISORY  WRITE 100 fe:00:77 1073741824 1073742335\n" +
		"2: POSIX  ADVISORY  READ 200 fe:00:77 1073741826 1073742335\n" +
		"2: -> POSIX  ADVISORY  WRITE 300 fe:00:77 1073741824 1073741824\n" +
		"3: FLOCK  ADVISORY  WRITE 400 fe:00:77 0 EOF\n4: POSIX  ADVISORY  WRITE 500 fe:00:78 0 EOF\n" +
		"5: OFDLCK ADVISORY  READ -1 fe:00:77 0 EOF\n6: POSIX  ADVISORY  WRITE 600 fe:00:77 0 EOF\n7: POSIX ADVISORY WRITE 700 fe:00:77 0 5\n"
	got := lockedBy(table, 77)
	want := []lockHolder{{pid: 100, exclusive: true}, {pid: 200}, {pid: 600, exclusive: true}}
	if !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestStopped(t *testing.T) {
	child := exec.CommandContext(t.Context(), "sleep", "60")
	must(t, child.Start())
	pid := fmt.Sprint(child.Process.Pid)
	if stopped(pid) {
		t.Error("a process that sleeps is not stopped")
	}
	must(t, child.Process.Signal(syscall.SIGSTOP))
	for deadline := time.Now().Add(5 * time.Second); !stopped(pid) && time.Now().Before(deadline); {
		_, _ = syscall.Getpgid(child.Process.Pid) // the signal is on its way
	}
	if !stopped(pid) {
		t.Error("a stopped process is stopped")
	}
	must(t, child.Process.Kill())
	_ = child.Wait()
}

// TestWarnings: what is worth a look and needs nothing.
func TestWarnings(t *testing.T) {
	data, dir := fresh(t)
	s := subject(data, dir)
	s.Environ = []string{"REGIE_PROVIDR=x", "REGIE_ZZZZZZZZZZZZZZZZZZZ=1", "REGIE_LANG=en", "REGIE_FAULT=x", "PATH=/"}
	s.Env = func(name string) string {
		return map[string]string{"LANG": "de_DE.ISO-8859-1", "TZ": "Mars/Olympus", "HOME": "/nowhere"}[name]
	}
	must(t, os.MkdirAll(filepath.Join(dir, ".regie"), 0o700), write(filepath.Join(dir, ".regie", "regie.yaml"), "", 0o600), os.Chmod(data, 0o750))
	s.Project = func(root string) Project {
		return Project{File: filepath.Join(root, ".regie", "regie.yaml"), Stale: true, Skills: 2, Refused: []string{"providers"}, Bad: []string{".regie/skills/x"}}
	}
	report := Examine(t.Context(), s)
	for id, fix := range map[string]string{
		"configuration.variables": "perhaps REGIE_PROVIDER is meant", "workspace.trust": "regie trust", "workspace.project": "regie trust --show", "workspace.skills": "regie skills", "data.private": "chmod 700",
		"clock.zone": "unset TZ", "terminal.encoding": "LC_ALL", "model.chosen": "regie setup",
	} {
		if f := finding(report, id, Warning); f == nil || !strings.Contains(fixes(f), fix) {
			t.Errorf("%s: %+v", id, f)
		}
	}
	n := 0
	for _, f := range report {
		if f.ID == "configuration.variables" {
			n++
		}
	}
	if n != 2 {
		t.Errorf("%d variables are named, want 2", n)
	}
	if failed := ids(report); len(failed) > 0 {
		t.Errorf("failed: %v", failed)
	}
}

// TestProject is how what a workspace says to agents stands.
func TestProject(t *testing.T) {
	data, dir := fresh(t)
	for _, row := range []struct {
		name    string
		project Project
		id      string
		status  Status
		says    string
	}{
		{"trusted", Project{Trusted: true, Skills: 1, Settings: 2}, "workspace.trust", Fine, "because you trust it"},
		{"not trusted", Project{Settings: 2}, "workspace.trust", Warning, "until you trust it"},
		{"changed", Project{Stale: true, Skills: 1}, "workspace.trust", Warning, "has changed"},
		{"too much", Project{Unread: regie.Errorf(regie.CodeFileTooLarge, "much")}, "workspace.trust", Failed, ""},
		{"broken", Project{Broken: regie.Errorf(regie.CodeBadRequest, "no"), File: "f"}, "workspace.project", Failed, ""},
	} {
		s := subject(data, dir)
		s.Project = func(string) Project { return row.project }
		f := finding(Examine(t.Context(), s), row.id, row.status)
		if f == nil || !strings.Contains(f.Text.String(), row.says) || row.status != Fine && len(f.Fixes) == 0 {
			t.Errorf("%s: %+v", row.name, f)
		}
	}
	s := subject(data, dir)
	s.Project = func(string) Project { return Project{} }
	if f := finding(Examine(t.Context(), s), "workspace.trust", Fine); f != nil {
		t.Errorf("a workspace that says nothing: %+v", f)
	}
}
