package main

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/index"
	"github.com/regie-run/regie/internal/index/vector"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/workspace"
)

// topics is an embedder without a model: the vectors of real ones lie in groups, and those of its
// texts do too. What takes time in a search is the same as with any other one, but for asking it.
type topics struct {
	dimensions int
	centres    [][]float32
}

const topicCount = 500

func newTopics(dimensions int) *topics {
	t := &topics{dimensions: dimensions}
	for i := range topicCount {
		t.centres = append(t.centres, noise(uint64(i), dimensions))
	}
	return t
}

func noise(seed uint64, dimensions int) []float32 {
	dice := rand.New(rand.NewPCG(seed, 11))
	out := make([]float32, dimensions)
	for i := range out {
		out[i] = float32(dice.NormFloat64())
	}
	return out
}

func (t *topics) Name() string      { return "bench" }
func (t *topics) Model() string     { return "topics" }
func (t *topics) Space() string     { return fmt.Sprintf("bench topics %d", t.dimensions) }
func (t *topics) Batch() (int, int) { return 256, 512 << 10 }
func (t *topics) Free() bool        { return true }
func (t *topics) of(text string) []float32 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text))
	seed := h.Sum64()
	out := noise(seed, t.dimensions)
	sum := 0.0
	for i, x := range t.centres[seed%topicCount] {
		out[i] += x
		sum += float64(out[i]) * float64(out[i])
	}
	for i := range out {
		out[i] /= float32(math.Sqrt(sum))
	}
	return out
}

// Embed implements provider.Embedder.
func (t *topics) Embed(_ context.Context, _ provider.Purpose, texts []string) (*provider.Embedding, error) {
	out := &provider.Embedding{Usage: regie.Usage{Input: int64(len(texts))}}
	for _, text := range texts {
		out.Vectors = append(out.Vectors, t.of(text))
	}
	return out, nil
}

// nearing measures P10: search_semantic by words and vectors, in an index of as many chunks,
// against comparing all vectors one after the other.
func (s *session) nearing() error {
	asked, err := readQuestions(questions)
	if err != nil {
		return err
	}
	for _, size := range []struct {
		chunks int
		goal   string
	}{{20_000, "≤ 20"}, {200_000, "≤ 120"}} {
		if err := s.nearingAt(size.chunks, size.goal, asked); err != nil {
			return err
		}
	}
	return nil
}

func (s *session) nearingAt(chunks int, goal string, asked []question) error {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "regie-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }() // a scratch copy
	tree := filepath.Join(dir, "tree")
	if err := manyChunks(tree, chunks); err != nil {
		return err
	}
	root, err := workspace.Open(tree)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, dimensions := range []int{384, 768} {
		if err := s.nearingWith(ctx, root, filepath.Join(dir, "index", "index.db"),
			newTopics(dimensions), goal, asked); err != nil {
			return err
		}
	}
	return nil
}

// nearingWith fills an index with the vectors of an embedder and measures it.
func (s *session) nearingWith(ctx context.Context, root *workspace.Root, path string, t *topics,
	goal string, asked []question,
) error {
	x, err := index.Open(ctx, root, index.Config{Path: path, Embedder: t, Money: index.Money{Known: true}})
	if err != nil {
		return err
	}
	defer func() { _ = x.Close() }() // it was only read
	summary, err := x.Update(ctx, nil)
	if err != nil {
		return err
	}
	started := time.Now()
	made, err := x.Embed(ctx, nil)
	if err != nil {
		return err
	}
	stored := time.Since(started)
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	started = time.Now()
	if _, err := x.Search(ctx, index.Query{Text: "the first one reads the signs"}); err != nil {
		return err
	}
	first := time.Since(started)
	runtime.GC()
	runtime.ReadMemStats(&after)
	ours, words, nowhere, err := s.asking(ctx, x, root, path, asked)
	if err != nil {
		return err
	}
	many, every, err := s.worst(ctx, root, path)
	if err != nil {
		return err
	}
	set, force, recall, err := s.compare(t, int(made.Made))
	if err != nil {
		return err
	}
	label := fmt.Sprintf("%d chunks × %d", summary.Chunks, t.dimensions)
	fmt.Printf("| P10 search_semantic p50, ms, %s (all vectors compared, alone) | %.2f | %.2f | %.2f | %s |\n", label,
		median(ours.wall), force, median(ours.wall)/force, goal)
	fmt.Printf("| P10 p99, ms; processor time p50, ms, %s | %.2f; %.2f | | | |\n", label,
		percentile(ours.wall, 99), median(ours.busy))
	fmt.Printf("| the same by words alone: p50, ms; processor time, ms, %s | %.2f; %.2f | | | |\n", label,
		median(words.wall), median(words.busy))
	fmt.Printf("| the same for 64 of the commonest terms: p50, ms; processor time, ms, %s | %.2f; %.2f | | | |\n",
		label, median(many.wall), median(many.busy))
	fmt.Printf("| the same for a term that all chunks have: p50, ms; processor time, ms, %s | %.2f; %.2f | | | |\n",
		label, median(every.wall), median(every.busy))
	fmt.Printf(
		"| the same for a word that is nowhere, which leaves the vectors: p50, ms; processor time, ms, %s | %.2f; %.2f | %.2f | %.2f | %s |\n", label,
		median(nowhere.wall), median(nowhere.busy), force, median(nowhere.wall)/force, goal)
	fmt.Printf(
		"| of it signs and exact rescoring, vectors in memory (the same, brute force), ms, %s | %.2f | %.2f | %.2f | |\n", label, set, force, set/force)
	fmt.Printf("| recall@10 of the signs, %s | %.3f | | | |\n", label, recall)
	fmt.Printf(
		"| first search, ms; MiB of memory that it leaves; storing the vectors, s, %s | %.0f; %.1f; %.0f | | | |\n",
		label, milliseconds(first),
		float64(int64(after.HeapAlloc)-int64(before.HeapAlloc))/(1<<20), stored.Seconds())
	return nil
}

// commonest are words that stand in very many chunks of Go's sources; a search looks up 64 terms at
// most.
const commonest = `func return err nil string int byte bool type var struct package import range case switch default error len make append new copy go test name
	value values type2 file read write get set add next first last all any out buf data size count index key map list
	node start end pos line code info field method call
	src dst arg args ok true false const uint32 uint64 int64 break continue interface unsafe runtime`

// worst has the questions asked, by words alone, that are the most work: very common words, and one
// that stands in each path.
func (s *session) worst(ctx context.Context, root *workspace.Root, path string) (many, every timed, err error) {
	x, err := index.Open(ctx, root, index.Config{Path: path})
	if err != nil {
		return many, every, err
	}
	defer func() { _ = x.Close() }() // it was only read
	for range 10 * s.rounds {
		for _, one := range []struct {
			text string
			into *timed
		}{{commonest, &many}, {"go", &every}} {
			if _, err := one.into.add(ctx, x, one.text); err != nil {
				return many, every, err
			}
		}
	}
	return many, every, nil
}

// timed are searches: how long each took, and what processor time, in milliseconds.
type timed struct{ wall, busy []float64 }

// asking has questions answered by words and vectors, by words alone, and a word that is nowhere,
// which leaves the vectors.
func (s *session) asking(ctx context.Context, x *index.Index, root *workspace.Root, path string,
	asked []question,
) (ours, words, nowhere timed, err error) {
	plain, err := index.Open(ctx, root, index.Config{Path: path})
	if err != nil {
		return ours, words, nowhere, err
	}
	defer func() { _ = plain.Close() }() // it was only read
	for round := range s.rounds {
		for i := range asked {
			// Another one each time: those that were asked are remembered.
			for _, one := range []struct {
				x    *index.Index
				text string
				into *timed
			}{
				{x, fmt.Sprintf("%s zqy%dzq", asked[i].text, round), &ours},
				{plain, asked[i].text, &words},
				{x, fmt.Sprintf("zqx%dzq%d", i, round), &nowhere},
			} {
				answer, err := one.into.add(ctx, one.x, one.text)
				if err != nil {
					return ours, words, nowhere, err
				}
				if (answer.Mode == index.Hybrid) != (one.x == x) {
					return ours, words, nowhere, fmt.Errorf("P10: the search was %s: %s",
						answer.Mode, answer.Reason.String())
				}
			}
		}
	}
	return ours, words, nowhere, nil
}

// add searches, and notes what it took.
func (t *timed) add(ctx context.Context, x *index.Index, text string) (index.Answer, error) {
	before, err := resources()
	if err != nil {
		return index.Answer{}, err
	}
	started := time.Now()
	answer, err := x.Search(ctx, index.Query{Text: text})
	took := milliseconds(time.Since(started))
	if err != nil {
		return index.Answer{}, err
	}
	after, err := resources()
	t.wall, t.busy = append(t.wall, took), append(t.busy, (processor(after)-processor(before))/1000)
	return answer, err
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// compare measures the set alone and brute force, with the same vectors and questions in turn, and
// how many of the ten nearest the set finds.
func (s *session) compare(t *topics, count int) (set, force, recall float64, err error) {
	slab := make([]float32, 0, count*t.dimensions)
	signs := vector.New(t.dimensions)
	for i := range count {
		v := t.of(fmt.Sprintf("text %d", i))
		slab = append(slab, v...)
		signs.Add(int64(i), vector.Signs(v))
	}
	fetch := func(ids []int64, each func(int64, []byte)) error {
		for _, id := range ids {
			each(id, vector.Encode(slab[int(id)*t.dimensions:][:t.dimensions]))
		}
		return nil
	}
	var sets, forces []float64
	hits, questions := 0, 40
	for i := range questions {
		asked := t.of(fmt.Sprintf("question %d", i))
		started := time.Now()
		found, failed := signs.Search(asked, 10, nil, fetch)
		sets = append(sets, milliseconds(time.Since(started)))
		err = errors.Join(err, failed)
		started = time.Now()
		all := bruteForce(slab, asked, 10)
		forces = append(forces, milliseconds(time.Since(started)))
		for _, id := range all {
			if slices.ContainsFunc(found, func(n vector.Near) bool { return n.ID == id }) {
				hits++
			}
		}
	}
	return median(sets), median(forces), float64(hits) / float64(10*questions), err
}

// bruteForce compares a question with all vectors, as plainly as it can be done, and keeps the
// best.
func bruteForce(slab, asked []float32, n int) []int64 {
	best := make([]vector.Near, 0, n+1)
	for id := range len(slab) / len(asked) {
		v := slab[id*len(asked):][:len(asked)]
		var a, b, c, d float32
		for i := 0; i+4 <= len(v); i += 4 {
			a += v[i] * asked[i]
			b += v[i+1] * asked[i+1]
			c += v[i+2] * asked[i+2]
			d += v[i+3] * asked[i+3]
		}
		score := float64(a + b + c + d)
		if len(best) == n && score <= best[n-1].Score {
			continue
		}
		at, _ := slices.BinarySearchFunc(best, score, func(have vector.Near, score float64) int {
			if have.Score >= score {
				return -1
			}
			return 1
		})
		best = slices.Insert(best, at, vector.Near{ID: int64(id), Score: score})
		best = best[:min(n, len(best))]
	}
	out := make([]int64, len(best))
	for i := range best {
		out[i] = best[i].ID
	}
	return out
}

// manyChunks writes Go's sources so often that there are about so many chunks; no two copies have a
// text in common.
func manyChunks(to string, chunks int) error {
	tree, err := goSources()
	if err != nil {
		return err
	}
	const average = 1700 // bytes of a chunk of these sources
	left := chunks * average
	for copies := 0; left > 0; copies++ {
		err := filepath.WalkDir(tree, func(path string, entry os.DirEntry, err error) error {
			if err != nil || left <= 0 || entry.IsDir() || !strings.HasSuffix(path, ".go") {
				return err
			}
			data, err := os.ReadFile(path) //nolint:gosec // Go's own sources
			if err != nil {
				return err
			}
			below, err := filepath.Rel(tree, path)
			if err != nil {
				return err
			}
			var text strings.Builder
			for i, line := range strings.SplitAfter(string(data), "\n") {
				text.WriteString(line)
				if i%6 == 5 {
					fmt.Fprintf(&text, "// copy%d\n", copies)
				}
			}
			left -= text.Len()
			file := filepath.Join(to, fmt.Sprintf("copy%d", copies), below)
			return errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text.String()), 0o600))
		})
		if err != nil {
			return err
		}
	}
	return nil
}
