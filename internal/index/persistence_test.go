package index

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"testing"

	"github.com/regie-run/regie/internal/provider/providertest"
)

// TestKeeps: what was embedded, and what that has cost, outlives a rebuild and another version of
// the index; what is damaged is let go.
func TestKeeps(t *testing.T) {
	for _, c := range []struct {
		what string
		do   func(t *testing.T, x *Index, file string)
		made int64 // texts that are embedded anew
	}{
		{"a rebuild", func(*testing.T, *Index, string) {}, 0},
		{"an older version", func(t *testing.T, _ *Index, file string) { t.Helper(); change(t, file, "PRAGMA user_version = 3") }, 0},
		{"another program's file", func(t *testing.T, _ *Index, file string) { t.Helper(); change(t, file, "PRAGMA application_id = 7") }, 3},
		{"garbage", func(t *testing.T, x *Index, file string) {
			t.Helper()
			if err := errors.Join(x.Close(), removeFile(file)); err != nil {
				t.Fatal(err)
			}
			put(t, filepath.Dir(file), filepath.Base(file), "no database")
		}, 3},
		{"vectors of a model that answers otherwise now", func(t *testing.T, x *Index, _ string) {
			t.Helper()
			e := &embedding{index: x, embedder: x.config.Embedder}
			three := &sent{vectors: [][]float32{{1, 0, 0}}}
			b := &batch{space: space{dimensions: 8}, texts: []pending{{hash: []byte("h"), text: "t"}}}
			if err := e.storeBatch(t.Context(), b, three); !isEmbedders(err) {
				t.Fatalf("%v", err)
			}
		}, 3},
	} {
		t.Run(c.what, func(t *testing.T) {
			s := providertest.NewEmbedServer(t, format())
			root, _, file := place(t, animals)
			x := openWith(t, root, file, s.URL, Money{Known: true})
			if e := embed(t, x); e.Made != 3 {
				t.Fatalf("%+v", e)
			}
			if _, err := x.db.write.ExecContext(t.Context(), "INSERT INTO embedding_costs (day, microusd) VALUES ('2026-01-02', 42)"); err != nil {
				t.Fatal(err)
			}
			c.do(t, x, file)
			if err := x.Close(); err != nil {
				t.Fatal(err)
			}
			x = openWith(t, root, file, s.URL, Money{Known: true})
			if c.what == "a rebuild" || c.made == 3 {
				if _, err := x.Rebuild(t.Context(), nil); err != nil {
					t.Fatal(err)
				}
			}
			if e := embed(t, x); e.Made != c.made || e.Missing != 0 || !e.Reason.IsZero() {
				t.Errorf("%+v", e)
			}
			if a := find(t, x, Query{Text: "cat sleeps on the sofa"}); a.Mode != Hybrid || a.Hits[0].Path != "cat.md" {
				t.Errorf("%+v", a)
			}
			var costs int
			if err := x.db.read.QueryRowContext(t.Context(), "SELECT coalesce(sum(microusd), 0) FROM embedding_costs").Scan(&costs); err != nil || (costs == 42) != (c.made == 0 || c.what[0] == 'v') {
				t.Errorf("costs of %d are known: %v", costs, err)
			}
			check(t, file)
		})
	}
}

// TestRebuiltMeanwhile: in an index that is made anew while texts are embedded other chunks have
// their numbers, and those are embedded too.
func TestRebuiltMeanwhile(t *testing.T) {
	s := providertest.NewEmbedServer(t, format())
	root, dir, file := place(t, animals)
	x, other := openWith(t, root, file, s.URL, Money{Known: true}), open(t, root, file)
	var once sync.Once
	s.Meaning = func(text string) []float32 {
		once.Do(func() {
			for path := range animals {
				put(t, dir, path, "# Plant\n\nNo animal is in "+path+".\n")
			}
			if _, err := other.Rebuild(context.Background(), nil); err != nil {
				t.Error(err)
			}
		})
		return providertest.Meaning(text)
	}
	if e := embed(t, x); e.Made != 6 || e.Missing != 0 || !e.Reason.IsZero() {
		t.Errorf("%+v", e)
	}
	var without int
	if err := other.useDatabase(t.Context(), false, func(db *database) error {
		return db.read.QueryRowContext(t.Context(), "SELECT count(*) FROM chunks WHERE hash NOT IN (SELECT hash FROM embeddings)").Scan(&without)
	}); err != nil || without != 0 {
		t.Errorf("%d chunks have no vector, %v", without, err)
	}
}
