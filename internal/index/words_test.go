package index

import (
	"database/sql"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/regie-run/regie/internal/index/posting"
)

// spelling is a chunk as its text and its place say that it has to be found.
type spelling struct {
	Path   string
	Length int
	Terms  map[string]int
}

// spellings are those of all chunks of a file.
func spellings(t *testing.T, tx *sql.Tx) map[int64]*spelling {
	t.Helper()
	rows, err := tx.QueryContext(t.Context(), "SELECT c.id, f.path, c.symbol, c.text FROM chunks c JOIN files f ON f.id = c.file")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	out, splitter := map[int64]*spelling{}, newSplitter()
	for rows.Next() {
		var id int64
		var path, symbol, text string
		if err := rows.Scan(&id, &path, &symbol, &text); err != nil {
			t.Fatal(err)
		}
		s := &spelling{Path: path, Terms: map[string]int{}}
		terms, length := splitter.chunk(path, symbol, text)
		for _, term := range terms {
			if s.Terms[term.Text] != 0 {
				t.Errorf("%s has %s twice", path, term.Text)
			}
			s.Terms[term.Text] = term.Weight
		}
		s.Length = length
		out[id] = s
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// checkTerms holds what the segments say against the chunks that there are.
func checkTerms(t *testing.T, file string) {
	t.Helper()
	pool, err := openPool(file, 1) // of whatever version
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	db := &database{read: pool}
	if err := db.prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	tx, err := db.read.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }() // it was only read
	view, err := new(words).view(t.Context(), tx, db)
	if err != nil {
		t.Fatal(err)
	}
	got := map[int64]*spelling{}
	view.Each(func(id int64, path string, length int) { got[id] = &spelling{path, length, map[string]int{}} })
	err = view.EachTerm(func(pages []posting.Page, each func(posting.Page, []byte) error) error {
		return fetchPages(t.Context(), tx, db, pages, each)
	}, func(id int64, term string, weight int) { got[id].Terms[term] += weight })
	if err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(spellings(t, tx), got); diff != "" {
		t.Errorf("the terms are not those of the chunks (-want +got):\n%.3000s", diff)
	}
}

// somewhere is a file's text, of words of which some are in most files.
func somewhere(dice *rand.Rand, name string) string {
	var out strings.Builder
	fmt.Fprintf(&out, "# %s\n\n", name)
	for range 1 + dice.IntN(12) {
		for range 3 + dice.IntN(9) {
			fmt.Fprintf(&out, "word%d ", dice.IntN(1+dice.IntN(60)))
		}
		out.WriteString("\n")
	}
	return out.String()
}

// TestFollows edits, removes and renames files at random over many updates, so that segments come,
// go and are merged. What is found then is what an index that is made from nothing finds, with the
// same scores.
func TestFollows(t *testing.T) {
	root, dir, file := place(t, nil)
	x := open(t, root, file)
	dice := rand.New(rand.NewPCG(1, 9))
	files := map[string]string{}
	for round := range 60 {
		most := 4
		if round%20 == 0 {
			most = 60
		}
		for range 1 + dice.IntN(most) {
			name := fmt.Sprintf("d%d/f%d.md", dice.IntN(3), dice.IntN(40))
			switch {
			case files[name] != "" && dice.IntN(4) == 0:
				if err := os.Remove(filepath.Join(dir, name)); err != nil {
					t.Fatal(err)
				}
				delete(files, name)
			default:
				files[name] = somewhere(dice, fmt.Sprintf("%s of round %d", name, round))
				put(t, dir, name, files[name])
			}
		}
		refresh(t, x)
		if round%6 != 5 {
			continue
		}
		check(t, file)
		other := open(t, root, filepath.Join(t.TempDir(), "index.db"))
		if s := refresh(t, other); s.Files != int64(len(files)) {
			t.Fatalf("%d files of %d", s.Files, len(files))
		}
		for _, text := range []string{"word0", "word1 word2 word3", "word17 word40 word59", "round 30", "f7 md", "d1 d2 word5 nowhere"} {
			for _, under := range []string{"", "d1", "d2/f7.md"} {
				got, want := find(t, x, Query{Text: text, Limit: 100, Under: under}), find(t, other, Query{Text: text, Limit: 100, Under: under})
				if diff := cmp.Diff(scored(want), scored(got)); diff != "" {
					t.Fatalf("round %d, %q under %q (-fresh +followed):\n%s", round, text, under, diff)
				}
			}
		}
		if err := other.Close(); err != nil {
			t.Fatal(err)
		}
	}
	var segments, merged int
	if err := x.db.read.QueryRowContext(t.Context(), "SELECT count(*), (SELECT seq FROM sqlite_sequence WHERE name = 'segments') FROM segments").Scan(&segments, &merged); err != nil {
		t.Fatal(err)
	}
	if segments > 30 || merged <= 60 {
		t.Errorf("%d segments are left of %d: nothing was merged", segments, merged)
	}
}

// scored are hits without what the order of their coming decides: that of such as have the same
// score.
func scored(a Answer) (out []string) {
	for _, h := range a.Hits {
		out = append(out, fmt.Sprintf("%.9f %s:%d-%d", h.Score, h.Path, h.Start, h.End))
	}
	slices.Sort(out)
	return out
}

// TestSearchesMeanwhile searches one index from several goroutines while it is updated: each answer
// is that of one moment, in which what is found has what was asked for.
func TestSearchesMeanwhile(t *testing.T) {
	root, dir, file := place(t, many(120))
	x := open(t, root, file)
	refresh(t, x)
	stop := make(chan struct{})
	var group sync.WaitGroup
	for g := range 3 {
		group.Go(func() {
			for i := g; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				asked := fmt.Sprintf("number%d", i%120)
				a, err := x.Search(t.Context(), Query{Text: asked + " common", Limit: 1})
				if err != nil || len(a.Hits) != 1 || !strings.HasSuffix(a.Hits[0].Text, asked) {
					t.Errorf("%s: %+v, %v", asked, a.Hits, err)
					return
				}
			}
		})
	}
	for round := range 80 {
		for i := range 1 + round%5 {
			n := (round*7 + i) % 120
			put(t, dir, fmt.Sprintf("f%d.txt", n), fmt.Sprintf("common round%d number%d\n", round, n))
		}
		refresh(t, x)
	}
	close(stop)
	group.Wait()
	check(t, file)
}

// TestDamagedTerms spoils what says which terms stand where, as a well-formed database: the index
// is made anew.
func TestDamagedTerms(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(damages)) {
		t.Run(name, func(t *testing.T) {
			root, dir, file := place(t, many(50))
			x := open(t, root, file)
			refresh(t, x)
			put(t, dir, "f7.txt", "common again number7\n")
			refresh(t, x)
			if err := x.Close(); err != nil {
				t.Fatal(err)
			}
			change(t, file, damages[name])
			x = open(t, root, file)
			if _, err := x.Search(t.Context(), Query{Text: "common number7 txt zzz"}); err != nil {
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

var damages = map[string]string{
	"no pages":           "DELETE FROM pages",
	"pages of zeros":     "UPDATE pages SET body = zeroblob(length(body))",
	"pages of ones":      "UPDATE pages SET body = unhex(replace(hex(zeroblob(length(body))), '00', 'FF'))",
	"pages cut off":      "UPDATE pages SET body = substr(body, 1, length(body) - 1)",
	"no files":           "UPDATE segments SET files = x''",
	"files of ones":      "UPDATE segments SET files = x'ffffffffffffffffffff'",
	"directory cut off":  "UPDATE segments SET directory = substr(directory, 1, length(directory) - 1)",
	"one segment twice":  "INSERT INTO segments (first, last, chunks, files, directory) SELECT first, last, chunks, files, directory FROM segments",
	"what went is there": "DELETE FROM gone",
}
