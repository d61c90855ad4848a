package workspace_test

import (
	"os"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/workspace"
)

// swaps are what an attacker puts into a name's place while it is used, by turns.
func swaps(p *place) []string {
	p.must(os.MkdirAll(p.abs("good/sub"), 0o755))
	p.file("good/sub/x", "inside")
	p.file("good/sub/.git/x", "git's own")
	p.file("../outside/sub/x", "CANARY outside")
	p.file("vault/.ssh/sub/x", "CANARY of ssh")
	p.file("guarded/.git/sub/x", "git's own")
	p.link("../outside", "link-out")
	p.link(p.outside, "link-absolute")
	p.link("vault/.ssh", "link-secret")
	p.link("guarded/.git", "link-git")
	p.fifo("fifo")
	return []string{"good", "link-out", "good", "link-absolute", "good", "link-secret", "good", "link-git", "good", "fifo"}
}

// swapping puts each of the names into a place in turn, in one step each and as fast as can be,
// until it is stopped. It leaves all names as they were.
func (p *place) swapping(at string, names []string) (stop func()) {
	swap := func(name string) error {
		return unix.Renameat2(unix.AT_FDCWD, p.abs(at), unix.AT_FDCWD, p.abs(name), unix.RENAME_EXCHANGE)
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
			for range 2 { // there and back
				if err := swap(names[i%len(names)]); err != nil {
					p.t.Errorf("exchanging %s: %v", names[i%len(names)], err)
					return
				}
			}
		}
	})
	return func() { close(done); group.Wait() }
}

// Somebody exchanges a directory on the way for links and a FIFO, as fast as can be, while it is
// read, listed and written through. What lies outside or is protected is never read and never
// changed.
func TestSwapRace(t *testing.T) {
	p := newPlace(t)
	names := swaps(p)
	p.must(os.Mkdir(p.abs("way"), 0o755)) // where things are exchanged; "good" itself starts elsewhere
	stop := p.swapping("way", names)
	const rounds = 3000
	read, written, listed, refused := 0, 0, 0, 0
	for i := range rounds {
		got, err := p.read("way/sub/x")
		switch {
		case strings.Contains(got, "CANARY"):
			t.Fatalf("round %d read %q", i, got)
		case err == nil:
			read++
		default:
			refused++
		}
		all := func(string) bool { return true }
		if d, err := p.root.List(t.Context(), "way/sub", workspace.Listing{Wanted: all, Holds: all, Show: func(*workspace.SurveyEntry) bool { return true }}); err == nil {
			if d.Path != "way/sub" && d.Path != "guarded/.git/sub" { // git's files may be read
				t.Fatalf("round %d listed %s", i, d.Path)
			}
			listed++
		}
		if i%10 == 0 { // each costs several synced writes
			if _, err := p.write("way/sub/y", "ATTACK"); err == nil {
				written++
			}
		}
	}
	stop()
	for _, dir := range []string{"good/sub/.git", "../outside/sub", "vault/.ssh/sub", "guarded/.git/sub"} {
		entries, err := os.ReadDir(p.abs(dir))
		p.must(err)
		if len(entries) != 1 || strings.Contains(p.content(dir+"/x"), "ATTACK") {
			t.Errorf("%s was written to: %v", dir, entries)
		}
	}
	t.Logf("%d rounds: %d read, %d refused, %d listed, %d written", rounds, read, refused, listed, written)
}

// The same with the last name of the path.
func TestSwapRaceOfFile(t *testing.T) {
	p := newPlace(t)
	p.file("good", "inside")
	p.file("../outside/x", "CANARY outside")
	p.file(".env", "CANARY of env")
	p.link("../outside/x", "link-out")
	p.link(".env", "link-secret")
	p.fifo("fifo")
	p.file("x", "")
	stop := p.swapping("x", []string{"good", "link-out", "good", "link-secret", "good", "fifo"})
	codes := map[regie.Code]int{}
	for i := range 5000 {
		got, err := p.read("x")
		if strings.Contains(got, "CANARY") {
			t.Fatalf("round %d read %q", i, got)
		}
		codes[regie.CodeOf(err)]++
	}
	for range 200 {
		_, err := p.write("x", "ATTACK")
		codes["write "+regie.CodeOf(err)]++
	}
	stop()
	if p.content(".env") != "CANARY of env" || p.content("../outside/x") != "CANARY outside" {
		t.Error("what is protected was written to")
	}
	// what is always there is found
	for _, code := range []regie.Code{regie.CodeToolError, regie.CodePathInvalid, regie.CodeFileNotFound} {
		if codes[code]+codes["write "+code] > 0 {
			t.Errorf("%d times %s", codes[code]+codes["write "+code], code)
		}
	}
	t.Logf("%v", codes)
}
