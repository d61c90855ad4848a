package index

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

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

// TestFollows edits, removes and renames files at random over many updates, so that terms come
// and go. What is found then is what an index that is made from nothing finds, with the
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
