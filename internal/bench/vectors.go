package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
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

// nearing measures P10: search_semantic by words and vectors, in an index of as many chunks.
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
	made, err := x.Embed(ctx, nil)
	if err != nil {
		return err
	}
	if _, err := x.Search(ctx, index.Query{Text: "the first one reads the signs"}); err != nil {
		return err
	}
	var wall, busy []float64
	for round := range s.rounds {
		for i := range asked {
			before, err := resources()
			if err != nil {
				return err
			}
			started := time.Now()
			// A new question each time, because answers are cached.
			answer, err := x.Search(ctx, index.Query{Text: fmt.Sprintf("%s zqy%dzq", asked[i].text, round)})
			if err != nil {
				return err
			}
			wall = append(wall, float64(time.Since(started).Microseconds())/1000)
			if answer.Mode != index.Hybrid {
				return fmt.Errorf("P10: the search was %s: %s", answer.Mode, answer.Reason.String())
			}
			after, err := resources()
			if err != nil {
				return err
			}
			busy = append(busy, (processor(after)-processor(before))/1000)
		}
	}
	recall, err := recallOf(t, int(made.Made))
	if err != nil {
		return err
	}
	label := fmt.Sprintf("%d chunks × %d", summary.Chunks, t.dimensions)
	fmt.Printf("| P10 search_semantic p50, ms, %s | %.2f | | | %s |\n", label, median(wall), goal)
	fmt.Printf("| P10 p99, ms; processor time p50, ms, %s | %.2f; %.2f | | | |\n", label, percentile(wall, 99), median(busy))
	fmt.Printf("| P10 recall@10 of the signs, %s | %.3f | | | ≥ 0.97 |\n", label, recall)
	return nil
}

// recallOf says how many of the ten nearest, which brute force finds, the signs find.
func recallOf(t *topics, count int) (recall float64, err error) {
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
	hits, questions := 0, 40
	for i := range questions {
		asked := t.of(fmt.Sprintf("question %d", i))
		found, err := signs.Search(asked, 10, nil, fetch)
		if err != nil {
			return 0, err
		}
		for _, id := range bruteForce(slab, asked, 10) {
			if slices.ContainsFunc(found, func(n vector.Near) bool { return n.ID == id }) {
				hits++
			}
		}
	}
	return float64(hits) / float64(10*questions), nil
}

// bruteForce compares a question with all vectors and returns the nearest.
func bruteForce(slab, asked []float32, n int) []int64 {
	scores := make([]float32, len(slab)/len(asked))
	ids := make([]int64, len(scores))
	for id := range scores {
		ids[id] = int64(id)
		for i, x := range asked {
			scores[id] += x * slab[id*len(asked)+i]
		}
	}
	slices.SortFunc(ids, func(a, b int64) int { return cmp.Compare(scores[b], scores[a]) })
	return ids[:min(n, len(ids))]
}

// manyChunks copies Go's sources until there are about that many chunks; no two copies share a
// text.
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
