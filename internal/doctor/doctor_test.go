package doctor

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/store/sqlite"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv("REGIE_TEST_EXAMINE"); dir != "" { // as another user
		s := subject(filepath.Join(dir, "data"), dir)
		_ = json.NewEncoder(os.Stdout).Encode(ids(Examine(context.Background(), s)))
		return
	}
	os.Exit(m.Run())
}

// subject is an examination of a data directory from a workspace, with nothing else configured.
func subject(data, dir string) Subject {
	c := config.Config{DataDir: data, Provider: config.ProviderDemo, Model: "demo", Origin: map[string]string{"data_dir": "test", "provider": "test"}}
	env := map[string]string{"HOME": "/nowhere", "LANG": "C.UTF-8"}
	return Subject{Config: c, Env: func(name string) string { return env[name] }, Dir: dir, CheckTime: time.Minute}
}

// fresh returns a data directory with a database that has a log, and a workspace.
func fresh(t *testing.T) (data, dir string) {
	t.Helper()
	base := t.TempDir()
	data, dir = filepath.Join(base, "data"), filepath.Join(base, "my work")
	store, err := sqlite.Open(t.Context(), sqlite.Config{Dir: data})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	must(t, changed(data, "INSERT INTO chains (n, kind, owner_id, head, mac, head_at) VALUES (1, 'session', randomblob(16), 0, randomblob(32), 0)",
		fmt.Sprintf("INSERT INTO events (n, chain, seq, type, at, body, mac) VALUES (1, 1, 1, 'message', %d, randomblob(32), randomblob(32))", time.Now().UnixMicro())))
	return data, dir
}

// changed writes into a database behind the store's back.
func changed(data string, statements ...string) error {
	db, err := sql.Open("sqlite", filepath.Join(data, sqlite.FileName))
	if err != nil {
		return err
	}
	defer db.Close()
	for _, statement := range statements {
		if _, err := db.ExecContext(context.Background(), statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return nil
}

func ids(r Report) (out []string) {
	for i := range r {
		if r[i].Status == Failed {
			out = append(out, r[i].ID)
		}
	}
	return out
}

// finding returns the finding of an id with a status.
func finding(r Report, id string, status Status) *Finding {
	for i := range r {
		if r[i].ID == id && r[i].Status == status {
			return &r[i]
		}
	}
	return nil
}

// traces is all that a directory holds, so that a look that leaves traces shows.
func traces(t *testing.T, dir string) string {
	t.Helper()
	var out strings.Builder
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := os.Lstat(path)
		if err != nil || strings.HasSuffix(path, "-shm") { // SQLite's, for reading what a death has left
			return err
		}
		if info.IsDir() {
			fmt.Fprintln(&out, path, info.Mode())
			return nil
		}
		fmt.Fprint(&out, path, info.Mode(), info.Size(), info.ModTime().UnixNano())
		if info.Mode().IsRegular() {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			fmt.Fprintf(&out, "%x", sha256.Sum256(data))
		}
		out.WriteByte('\n')
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func write(path, text string, mode fs.FileMode) error {
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		return err
	}
	return os.Chmod(path, mode)
}

// TestFailures produces each failure, and, where the fix is a command, runs it and looks again.
func TestFailures(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(data string, s *Subject) error
		id    string
		code  regie.Code
		fix   string // a part of the fix
		run   bool   // the first fix is a command that mends it
	}{
		{"data directory is a file", func(data string, _ *Subject) error {
			return errors.Join(os.RemoveAll(data), write(data, "x", 0o600))
		}, "data.directory", regie.CodeBadRequest, "mv ", true},
		{"below a file", func(data string, s *Subject) error {
			s.Config.DataDir = data + ".txt/below/it"
			return write(data+".txt", "x", 0o600)
		}, "data.directory", regie.CodeBadRequest, "REGIE_DATA_DIR", false},
		{"nowhere", func(_ string, s *Subject) error { s.Config.DataDir = ""; return nil }, "data.directory", "", "set HOME", false},
		{"directory of all", func(data string, _ *Subject) error { return os.Chmod(data, 0o777) }, "data.private", "", "chmod 700", true},
		{"key of all", func(data string, _ *Subject) error {
			return os.Chmod(filepath.Join(data, "audit.key"), 0o644)
		}, "data.file", "", "chmod 600", true},
		{"no database at all", func(data string, _ *Subject) error {
			return write(filepath.Join(data, "regie.db"), strings.Repeat("garbage ", 1000), 0o600)
		}, "database.file", regie.CodeCorrupt, "there is no backup beside it", false},
		{"begun anew", func(data string, _ *Subject) error {
			return write(filepath.Join(data, "regie.db"), "too short", 0o600)
		}, "database.file", regie.CodeCorrupt, "start over and keep the old one: mv ", false},
		{"with a backup", func(data string, _ *Subject) error {
			path := filepath.Join(data, "regie.db")
			whole, err := os.ReadFile(path)
			return errors.Join(err, write(path+".before-2.20250101T000000.000000000", "an old one", 0o600), write(path+".before-7.20260101T000000.000000000", string(whole), 0o600),
				write(path+".before-8.20270101T000000.000000000.unfinished", "cut", 0o600), write(path, strings.Repeat("x", 9000), 0o600), write(path+"-wal", "", 0o600))
		}, "database.file", regie.CodeCorrupt, "put the newest backup in its place: mkdir ", true},
		{"a directory for a database", func(data string, _ *Subject) error {
			return errors.Join(os.Remove(filepath.Join(data, "regie.db")), os.Mkdir(filepath.Join(data, "regie.db"), 0o700))
		}, "database.file", regie.CodeCorrupt, "mv ", false},
		{"damaged page", func(data string, _ *Subject) error {
			path := filepath.Join(data, "regie.db")
			all, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			copy(all[3*4096:], strings.Repeat("\xff\x07", 2048))
			copy(all[8*4096:], strings.Repeat("\xff\x07", 2048))
			return write(path, string(all), 0o600)
		}, "database.check", regie.CodeCorrupt, "mv ", false},
		{"newer schema", func(data string, _ *Subject) error {
			return changed(data, "INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, 1)")
		}, "database.schema", regie.CodeNewerSchema, "install the regie", false},
		{"schema of before", func(data string, _ *Subject) error {
			return changed(data, "UPDATE goose_db_version SET version_id = 28")
		}, "database.schema", regie.CodeSchemaTooOld, "install the regie", false},
		{"no audit key", func(data string, _ *Subject) error { return os.Remove(filepath.Join(data, "audit.key")) }, "database.key", regie.CodeCorrupt, "restore audit.key", false},
		{"wrong audit key", func(data string, _ *Subject) error {
			return write(filepath.Join(data, "audit.key"), strings.Repeat("k", 32), 0o600)
		}, "database.key", regie.CodeCorrupt, "restore audit.key", false},
		{"configuration", func(_ string, s *Subject) error {
			s.ConfigFlag, s.ConfigError = "/x/regie.yaml", regie.Errorf(regie.CodeBadRequest, "the configuration %s is not valid: %s", "/x/regie.yaml", "line 2: no")
			return nil
		}, "configuration.valid", regie.CodeBadRequest, "correct /x/regie.yaml", false},
		{"a variable", func(_ string, s *Subject) error {
			s.ConfigError = regie.Errorf(regie.CodeBadRequest, "there is no provider %q (from %s): use %s", "x", "REGIE_PROVIDER", "openai")
			return nil
		}, "configuration.valid", regie.CodeBadRequest, "change or remove the setting named above", false},
		{"settings that all write", func(data string, s *Subject) error {
			s.ConfigFlag = filepath.Join(filepath.Dir(data), "it's mine.yaml")
			return write(s.ConfigFlag, "", 0o666)
		}, "configuration.secrets", "", "chmod go-w", true},
		{"MCP server without its command", func(_ string, s *Subject) error {
			s.Config.File.MCPServers = map[string]config.MCPServer{"books": {Command: "no-such-command-here"}}
			return nil
		}, "configuration.mcp", "", "mcp_servers.books.command", false},
		{"workspace at home", func(_ string, s *Subject) error {
			home := s.Dir
			s.Env = func(name string) string { return map[string]string{"HOME": home, "LANG": "C.UTF-8"}[name] }
			return nil
		}, "workspace.root", regie.CodePathProtected, "mkdir work && cd work", false},
		{"workspace of all", func(_ string, s *Subject) error { s.Dir = "/"; return nil }, "workspace.root", regie.CodePathProtected, "cd work", false},
		{"workspace that is gone", func(_ string, s *Subject) error { s.Dir = ""; return nil }, "workspace.root", "", "cd", false},
		{"workspace removed", func(_ string, s *Subject) error { s.Dir += "/gone"; return nil }, "workspace.root", regie.CodeFileNotFound, "cd", false},
		{"engine that is silent", func(_ string, s *Subject) error {
			s.Engine = func(context.Context) EngineState {
				return EngineState{Running: true, PID: "1", Err: context.DeadlineExceeded}
			}
			return nil
		}, "engine.running", regie.CodeLocked, "kill 1", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			data, dir := fresh(t)
			s := subject(data, dir)
			must(t, c.spoil(data, &s))
			before := traces(t, filepath.Dir(data))
			report := Examine(t.Context(), s)
			if after := traces(t, filepath.Dir(data)); after != before {
				t.Errorf("the doctor changed something:\n%s\n%s", before, after)
			}
			f := finding(report, c.id, Failed)
			if f == nil {
				t.Fatalf("%s did not fail: %v", c.id, ids(report))
			}
			if f.Code != c.code || len(f.Fixes) == 0 || !strings.Contains(fixes(f), c.fix) {
				t.Errorf("%s %q: %s", f.Code, f.Fixes, f.Text)
			}
			if c.run {
				command := f.Fixes[0].Command + f.Fixes[0].Text.String()
				if _, after, ok := strings.Cut(command, ": "); ok {
					command = after
				}
				if out, err := exec.CommandContext(t.Context(), "sh", "-c", command).CombinedOutput(); err != nil {
					t.Fatalf("%s: %v\n%s", command, err, out)
				}
				if again := finding(Examine(t.Context(), s), c.id, Failed); again != nil {
					t.Errorf("after %s it fails still: %s %v", command, again.Text, again.Cause)
				}
			}
		})
	}
}

func fixes(f *Finding) string {
	var out []string
	for _, fix := range f.Fixes {
		out = append(out, fix.Command+fix.Text.String())
	}
	return strings.Join(out, "\n")
}

// killed leaves what a dead process leaves: a WAL, and no -shm once the machine went too.
func killed(data string) error {
	path := filepath.Join(data, sqlite.FileName)
	db, err := sql.Open("sqlite", path)
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(1)
	_, err = db.ExecContext(context.Background(), "UPDATE chains SET head_at = 1")
	main, mainErr := os.ReadFile(path)
	wal, walErr := os.ReadFile(path + "-wal")
	return errors.Join(err, mainErr, walErr, db.Close(), write(path, string(main), 0o600), write(path+"-wal", string(wal), 0o600))
}

// TestWell: a healthy data directory, one that is not there yet, and one that a death has left are
// nothing to mend, and stay as they are.
func TestWell(t *testing.T) {
	for name, prepare := range map[string]func(data string) error{
		"closed": func(string) error { return nil },
		"absent": os.RemoveAll,
		"empty":  func(data string) error { return write(filepath.Join(data, "regie.db"), "", 0o600) },
		"killed": killed,
	} {
		t.Run(name, func(t *testing.T) {
			data, dir := fresh(t)
			must(t, prepare(data))
			before := traces(t, filepath.Dir(data))
			report := Examine(t.Context(), subject(data, dir))
			if failed := ids(report); len(failed) > 0 {
				t.Errorf("failed: %v", failed)
			}
			if after := traces(t, filepath.Dir(data)); after != before {
				t.Errorf("the doctor changed something:\n%s\n%s", before, after)
			}
			if f := finding(report, "database.check", Fine); (f == nil) != (name == "absent" || name == "empty") {
				t.Errorf("the check: %v", f)
			}
		})
	}
}

// TestEachFixIsThere: nothing is said to be wrong without what to do.
func TestEachFixIsThere(t *testing.T) {
	for _, code := range []regie.Code{
		"", regie.CodeProviderAuth, regie.CodeProviderQuota, regie.CodeProviderOffline, regie.CodeProviderBroken, regie.CodeProviderBusy, regie.CodeProviderRejected, regie.CodeTimeout,
	} {
		for _, local := range []bool{true, false} {
			for _, kind := range []string{config.ProviderOllama, config.ProviderOpenAI} {
				s := subject("", "/")
				s.Config.Provider, s.Config.Model = "lab", "big"
				s.Server = func(context.Context) *Server {
					return &Server{Name: "lab", Type: kind, Local: local, Asked: true, Code: code, Error: "no", Models: []string{"small", "other"}}
				}
				for _, f := range Examine(t.Context(), s) {
					if f.Status != Fine && len(f.Fixes) == 0 {
						t.Errorf("%s %s has no fix: %s", code, f.ID, f.Text)
					}
				}
			}
		}
	}
}

// TestOfAnotherUser: somebody else's data directory is of no use, and the doctor says so without
// reading it.
func TestOfAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can be somebody else")
	}
	data, _ := fresh(t)
	for at := filepath.Dir(data); at != "/" && at != os.TempDir(); at = filepath.Dir(at) {
		must(t, os.Chmod(at, 0o755))
	}
	program, err := os.ReadFile(os.Args[0])
	binary := filepath.Join(filepath.Dir(data), "examine")
	must(t, err, write(binary, string(program), 0o755))
	for name, c := range map[string]struct {
		mode fs.FileMode
		want string
	}{
		"closed":   {0o700, "data.writable"},
		"readable": {0o755, "data.writable"},
	} {
		must(t, os.Chmod(data, c.mode))
		child := exec.CommandContext(t.Context(), binary)
		child.Dir = "/"
		child.Env = []string{"REGIE_TEST_EXAMINE=" + filepath.Dir(data), "PATH=" + os.Getenv("PATH")}
		child.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		out, err := child.Output()
		if err != nil || !strings.Contains(string(out), c.want) {
			t.Errorf("%s: %v %s", name, err, out)
		}
	}
}

// TestReadableSetup: a file with keys that others can read is not read, and that is said once, with
// how to mend it.
func TestReadableSetup(t *testing.T) {
	data, dir := fresh(t)
	s := subject(data, dir)
	home := filepath.Dir(data)
	s.Env = func(name string) string { return map[string]string{"HOME": home, "LANG": "C.UTF-8"}[name] }
	path := filepath.Join(home, ".config", "regie", "setup.yaml")
	must(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), write(path, "", 0o640)))
	s.ConfigError = regie.Errorf(regie.CodeBadRequest, "%s may contain keys and can be read by others: run chmod 600 %s", path, path)
	said := 0
	for _, f := range Examine(t.Context(), s) {
		if f.Status == Failed && f.Group == "configuration" {
			said++
			if !strings.HasPrefix(fixes(&f), "chmod 600 "+path) {
				t.Errorf("%s: %s", f.ID, fixes(&f))
			}
		}
	}
	if said != 1 {
		t.Errorf("it is said %d times", said)
	}
}
