package snapshot

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/workspace"
)

// goTree is a copy of the sources of Go, which are a real tree of some 11,500 files.
func goTree(b *testing.B) regie.Workspace {
	b.Helper()
	root := filepath.Join(b.TempDir(), "src")
	if err := os.CopyFS(root, os.DirFS(filepath.Join(runtime.GOROOT(), "src"))); err != nil { //nolint:staticcheck // that of the program that tests
		b.Skip(err)
	}
	return regie.Workspace{ID: regie.NewID(), Root: root}
}

func taken(b *testing.B, s *Store, at regie.Workspace) Secured {
	b.Helper()
	said, err := s.Take(context.Background(), at, regie.NewID())
	if err != nil {
		b.Fatal(err)
	}
	return said
}

// BenchmarkSurvey is the directory scan alone, which nothing is cheaper than.
func BenchmarkSurvey(b *testing.B) {
	at := goTree(b)
	root, err := workspace.Open(at.Root)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = root.Close() }() // it was only read
	for b.Loop() {
		if _, err := root.Survey(b.Context(), workspace.Surveying{}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCold secures a tree that nothing is kept of.
func BenchmarkCold(b *testing.B) {
	at := goTree(b)
	for b.Loop() {
		dir := b.TempDir()
		said := taken(b, New(dir, "", DefaultBounds()), at)
		bytes, _ := usage(dir)
		b.ReportMetric(float64(said.Files), "files")
		b.ReportMetric(float64(bytes)/(1<<20), "MiB-kept")
	}
}

// BenchmarkWarm secures a tree of which nothing has moved.
func BenchmarkWarm(b *testing.B) {
	at := goTree(b)
	s := New(b.TempDir(), "", DefaultBounds())
	taken(b, s, at)
	settle(s, at)
	for b.Loop() {
		taken(b, s, at)
	}
}

// BenchmarkCommand is what a command that changes one file costs besides itself: the snapshot
// before it and the comparison after it.
func BenchmarkCommand(b *testing.B) {
	at := goTree(b)
	s := New(b.TempDir(), "", DefaultBounds())
	taken(b, s, at)
	settle(s, at)
	for n := 0; b.Loop(); n++ {
		call := regie.NewID()
		said, err := s.Take(b.Context(), at, call)
		if err == nil {
			err = os.WriteFile(filepath.Join(at.Root, "changed.txt"), []byte{byte(n), byte(n >> 8)}, 0o600)
		}
		if err != nil {
			b.Fatal(err)
		}
		c, err := s.Compare(b.Context(), at, Comparison{Call: call, Tree: said.Tree})
		if err != nil || len(c.Files) != 1 {
			b.Fatalf("%+v, %v", c, err)
		}
	}
}

// settle makes a tree look as if it had been read a while after it was written.
func settle(s *Store, at regie.Workspace) {
	for i := range s.places[at.ID].latest.nodes {
		s.places[at.ID].latest.nodes[i].Read += int64(10e9)
	}
}
