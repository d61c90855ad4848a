package index

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/regie-run/regie/internal/workspace"
)

// TestLost takes the file away, or spoils it, also under an open index: it is made again,
// and nobody has to do anything.
func TestLost(t *testing.T) {
	overwrite := func(text string) func(*testing.T, string) {
		return func(t *testing.T, file string) {
			t.Helper()
			put(t, filepath.Dir(file), filepath.Base(file), text)
		}
	}
	gone := func(ends ...string) func(*testing.T, string) {
		return func(t *testing.T, file string) {
			t.Helper()
			for _, end := range ends {
				if err := os.RemoveAll(file + end); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	for name, spoil := range map[string]func(*testing.T, string){
		"deleted":       gone("", "-wal", "-shm"),
		"deleted alone": gone(""),
		"log deleted":   gone("-wal"),
		"all deleted": func(t *testing.T, file string) {
			t.Helper()
			gone("")(t, filepath.Dir(file))
		},
		"empty":        overwrite(""),
		"another file": overwrite("this was never a database, and it is long enough to be looked at: " + strings.Repeat("x", 8192)),
		"cut in the middle": func(t *testing.T, file string) {
			t.Helper()
			cutFile(t, file, 2)
		},
		"page of garbage": func(t *testing.T, file string) {
			t.Helper()
			f, err := os.OpenFile(file, os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			for page := int64(1); page < 17; page++ {
				if _, err := f.WriteAt([]byte(strings.Repeat("garbage!", 512)), 4096*page); err != nil {
					t.Fatal(err)
				}
			}
		},
		"another version": func(t *testing.T, file string) {
			t.Helper()
			change(t, file, "PRAGMA user_version = 999")
		},
		"another database": func(t *testing.T, file string) {
			t.Helper()
			gone("", "-wal", "-shm")(t, file)
			change(t, file, "CREATE TABLE a (b)")
		},
	} {
		for _, how := range []string{"open", "closed"} {
			if how == "open" && name != "cut in the middle" {
				continue // it goes on with what it has open
			}
			t.Run(name+", "+how, func(t *testing.T) {
				root, _, file := place(t, many(50))
				x := open(t, root, file)
				refresh(t, x)
				if how == "closed" {
					if err := x.Close(); err != nil {
						t.Fatal(err)
					}
				}
				spoil(t, file)
				if how == "closed" {
					x = open(t, root, file)
				}
				if _, err := x.Search(context.Background(), Query{Text: "number7"}); err != nil {
					t.Errorf("search: %v", err)
				}
				if s := refresh(t, x); s.Files != 50 || s.Chunks != 50 {
					t.Errorf("it was not made again: %+v", s)
				}
				if found := paths(t, x, "number7"); len(found) == 0 || found[0] != "f7.txt" {
					t.Errorf("found %q", found)
				}
				check(t, file)
			})
		}
	}
}

// many are n files, in each a word of its own.
func many(n int) map[string]string {
	out := map[string]string{}
	for i := range n {
		out[fmt.Sprintf("f%d.txt", i)] = fmt.Sprintf("common number%d\n", i)
	}
	return out
}

func cutFile(t *testing.T, file string, part int64) {
	t.Helper()
	info, err := os.Stat(file)
	if err == nil {
		err = os.Truncate(file, info.Size()/part)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// change does something to the file with another program's means.
func change(t *testing.T, file, statement string) {
	t.Helper()
	db, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
}

// check looks through the whole file: pages, and that chunks and terms belong together.
func check(t *testing.T, file string) {
	t.Helper()
	db, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var verdict string
	if err := db.QueryRowContext(t.Context(), "PRAGMA integrity_check").Scan(&verdict); err != nil || verdict != "ok" {
		t.Errorf("integrity: %s %v", verdict, err)
	}
	var lost int
	if err := db.QueryRowContext(t.Context(), `SELECT (SELECT count(*) FROM chunks WHERE file NOT IN (SELECT id FROM files)) +
		(SELECT count(*) FROM terms WHERE rowid NOT IN (SELECT id FROM chunks)) +
		(SELECT count(*) FROM chunks WHERE id NOT IN (SELECT rowid FROM terms))`).Scan(&lost); err != nil || lost != 0 {
		t.Errorf("%d chunks without a file or terms, or terms without a chunk: %v", lost, err)
	}
	if _, err := db.ExecContext(t.Context(), "INSERT INTO terms (terms) VALUES ('integrity-check')"); err != nil {
		t.Errorf("terms: %v", err)
	}
}

// TestRacy changes a file right after it was read, to something of the same length: clocks of file
// systems are coarse, and its times may be the same.
func TestRacy(t *testing.T) {
	root, dir, file := place(t, nil)
	x := open(t, root, file)
	for i := range 20 {
		word := fmt.Sprintf("word%02d", i)
		put(t, dir, "a.txt", word)
		refresh(t, x)
		if found, err := x.Search(context.Background(), Query{Text: word}); err != nil || len(found.Hits) != 1 || found.Hits[0].Text != word {
			t.Fatalf("%s: found %+v, %v", word, found, err)
		}
	}
}

// TestUnreadable has a file that was indexed fail to open: what it held is no longer found, and it
// is read as soon as that is possible.
func TestUnreadable(t *testing.T) {
	root, dir, file := place(t, map[string]string{"a.txt": "apple\n", "b.txt": "banana\n"})
	x := open(t, root, file)
	refresh(t, x)
	if err := os.Chmod(filepath.Join(dir, "a.txt"), 0); err != nil {
		t.Fatal(err)
	}
	if f, err := os.Open(filepath.Join(dir, "a.txt")); err == nil {
		_ = f.Close()
		t.Skip("this user reads everything")
	}
	if s := refresh(t, x); s.Removed != 1 || s.Skipped[SkipUnreadable] != 1 {
		t.Errorf("%+v", s)
	}
	if found := paths(t, x, "apple"); len(found) != 0 {
		t.Errorf("found %q", found)
	}
	if err := os.Chmod(filepath.Join(dir, "a.txt"), 0o600); err != nil {
		t.Fatal(err)
	}
	if s := refresh(t, x); s.Files != 2 || s.Changed != 1 {
		t.Errorf("it is not read again: %+v", s)
	}
}

// TestUnchanged holds the rule about stamps: all must be as before, and none so young that a later
// change could have the same.
func TestUnchanged(t *testing.T) {
	const at = 1_000 * int64(time.Second)
	before := workspace.Stamp{Size: 7, Mtime: at, Ctime: at}
	for _, c := range []struct {
		what      string
		now       workspace.Stamp
		indexedAt int64
		want      bool
	}{
		{"long ago", before, at + int64(time.Minute), true},
		{"as it was read", before, at, false},
		{"within the clock's tick", before, at + int64(time.Second), false},
		{"in the future", before, at - int64(time.Hour), false},
		{"another size", workspace.Stamp{Size: 8, Mtime: at, Ctime: at}, at + int64(time.Minute), false},
		{"an older file moved there", workspace.Stamp{Size: 7, Mtime: at - 1, Ctime: at}, at + int64(time.Minute), false},
		{"its time was set back", workspace.Stamp{Size: 7, Mtime: at, Ctime: at + 1}, at + int64(time.Minute), false},
	} {
		k := known{stamp: before, indexedAt: c.indexedAt}
		if got := k.isUnchanged(c.now); got != c.want {
			t.Errorf("%s: unchanged is %v", c.what, got)
		}
	}
}

// TestCancel ends updates in the middle: what they did stays, the rest is the next one's.
func TestCancel(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	root, _, file := place(t, many(300))
	x := open(t, root, file)
	defer x.Close()
	ctx, cancel := context.WithCancel(context.Background())
	_, err := x.Update(ctx, func(Progress) { cancel() })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if _, err := x.Update(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled before: %v", err)
	}
	if s := refresh(t, x); s.Files != 300 || s.Chunks != 300 {
		t.Errorf("summary %+v", s)
	}
	check(t, file)
}

// TestHelperProcess is another process that updates an index until it is killed.
func TestHelperProcess(t *testing.T) {
	args := strings.Split(os.Getenv("INDEX_HELPER"), "\n")
	if len(args) != 3 {
		t.SkipNow() // it is no test
	}
	root, err := workspace.Open(args[0])
	if err != nil {
		t.Fatal(err)
	}
	if args[2] == "edits" {
		edits(t, root, args[0], args[1])
		return
	}
	for range 1_000_000 {
		x, err := Open(context.Background(), root, Config{Path: args[1]})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println("begin")
		s, err := x.Update(context.Background(), nil)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println("done", s.Files)
		if args[2] == "once" {
			return
		}
		if err := x.Close(); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(args[1]); err != nil { // begin from nothing
			t.Fatal(err)
		}
	}
}

// edits changes a file and updates the index, again and again: each time a segment comes, and now
// and then some are merged.
func edits(t *testing.T, root *workspace.Root, dir, file string) {
	t.Helper()
	x, err := Open(context.Background(), root, Config{Path: file})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 1_000_000 {
		put(t, dir, fmt.Sprintf("f%d.txt", i%150), fmt.Sprintf("common edit%d number%d\n", i, i%150))
		if _, err := x.Update(context.Background(), nil); err != nil {
			t.Fatal(err)
		}
		fmt.Println("edited", i)
	}
}

// TestKillMerging kills a process while it updates an index by little and little, and merges what
// it has written.
func TestKillMerging(t *testing.T) {
	root, dir, file := place(t, many(200))
	refresh(t, open(t, root, file))
	for i := range 10 {
		cmd, out := helper(t, dir, file, "edits")
		for range 5 + i {
			if _, err := out.ReadString('\n'); err != nil {
				t.Fatal(err)
			}
		}
		spin := time.Duration(i) * time.Millisecond // so that the moments differ
		for began := time.Now(); time.Since(began) < spin; {
			_, _ = os.Stat(file)
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, out)
		_ = cmd.Wait()
		x := open(t, root, file)
		if s := refresh(t, x); s.Files != 200 {
			t.Fatalf("after kill %d: %+v", i, s)
		}
		if found := paths(t, x, "number117"); len(found) == 0 || found[0] != "f117.txt" {
			t.Fatalf("after kill %d: found %q", i, found)
		}
		if err := x.Close(); err != nil {
			t.Fatal(err)
		}
		check(t, file)
	}
}

func helper(t *testing.T, dir, file, how string) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestHelperProcess$")
	cmd.Env = append(os.Environ(), "INDEX_HELPER="+dir+"\n"+file+"\n"+how)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd, bufio.NewReader(out)
}

// TestKill kills a process at many moments of making, filling and removing an index. What lies
// there then opens, and an update mends it.
func TestKill(t *testing.T) {
	root, dir, file := place(t, many(200))
	for i := range 12 {
		cmd, out := helper(t, dir, file, "again and again")
		if _, err := out.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		spin := time.Duration(i) * 3 * time.Millisecond // so that the moments differ
		for began := time.Now(); time.Since(began) < spin; {
			_, _ = os.Stat(file)
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, out)
		_ = cmd.Wait()
		x := open(t, root, file)
		if s := refresh(t, x); s.Files != 200 || s.Chunks != 200 {
			t.Fatalf("after kill %d: %+v", i, s)
		}
		if found := paths(t, x, "number117"); len(found) == 0 || found[0] != "f117.txt" {
			t.Fatalf("after kill %d: found %q", i, found)
		}
		if err := x.Close(); err != nil {
			t.Fatal(err)
		}
		check(t, file)
	}
}

// TestTogether has processes and goroutines open, fill and search one index at once, from nothing.
func TestTogether(t *testing.T) {
	root, dir, file := place(t, many(200))
	var outs []*bufio.Reader
	var cmds []*exec.Cmd
	for range 2 {
		cmd, out := helper(t, dir, file, "once")
		cmds, outs = append(cmds, cmd), append(outs, out)
	}
	var group sync.WaitGroup
	for range 3 {
		group.Go(func() {
			x, err := Open(context.Background(), root, Config{Path: file})
			if err != nil {
				t.Error(err)
				return
			}
			defer x.Close()
			for range 5 {
				if _, err := x.Search(context.Background(), Query{Text: "common"}); err != nil {
					t.Error(err)
				}
				if s, err := x.Update(context.Background(), nil); err != nil || s.Files != 200 {
					t.Errorf("%+v %v", s, err)
				}
			}
		})
	}
	group.Wait()
	for i, out := range outs {
		all, _ := io.ReadAll(out)
		if err := cmds[i].Wait(); err != nil || !strings.Contains(string(all), "done 200") {
			t.Errorf("%s %v", all, err)
		}
	}
	check(t, file)
}

// TestKeys: a private key that stands in a text is neither found nor shown, and the lines behind it
// keep their numbers.
func TestKeys(t *testing.T) {
	key := "-----BEGIN RSA PRIVATE KEY-----\n" + strings.Repeat("MIIEpAIBAAKCAQEAcanarycanarycanarycanary\n", 60) + "-----END RSA PRIVATE KEY-----\n"
	root, _, file := place(t, map[string]string{
		"notes.md": "# Keys\n\nThe old one:\n\n" + key + "\n## Rotation\n\nRotate turnips every year.\n",
		"cut.txt":  "-----BEGIN PRIVATE KEY-----\nMIIEcanarycanarycanarycanarycanary\nMIIE2",
		"talk.md":  "# Formats\n\nA file that begins with BEGIN PRIVATE KEY holds one.\n",
	})
	x := open(t, root, file)
	refresh(t, x)
	for _, question := range []string{"canarycanarycanarycanary", "MIIEpAIBAAKCAQEAcanarycanarycanarycanary", "private key", "keys rotation turnips"} {
		a, err := x.Search(t.Context(), Query{Text: question, Limit: 50})
		if err != nil {
			t.Fatal(err)
		}
		for _, hit := range a.Hits {
			if strings.Contains(hit.Text, "canary") {
				t.Errorf("%q finds a key: %s", question, hit.Path)
			}
		}
	}
	a, err := x.Search(t.Context(), Query{Text: "turnips", Limit: 1})
	if err != nil || len(a.Hits) != 1 || a.Hits[0].Start > 70 || a.Hits[0].End != 70 {
		t.Errorf("%+v, %v: the last line is 70", a.Hits, err)
	}
}
