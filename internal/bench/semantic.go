package main

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/regie-run/regie/internal/index"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/workspace"
)

// chunkBytes is about how much text of the Go sources one chunk holds.
const chunkBytes = 1250

// meaning measures P10: how long a search takes among 20,000 and 200,000 chunks of the Go sources, by words, and by vectors too. The vectors are by
// chance: they cost what real ones do, but for asking a server for that of the question.
func (s *session) meaning() error {
	sizes := []int{20_000, 200_000}
	if s.scale == 1 { // the short form
		sizes = sizes[:1]
	}
	for _, chunks := range sizes {
		if err := s.meaningOf(chunks); err != nil {
			return err
		}
	}
	return nil
}

func (s *session) meaningOf(chunks int) (err error) {
	ctx := context.Background()
	tree, err := goSources()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "regie-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	corpus := filepath.Join(dir, "tree")
	if err := gather(tree, corpus, int64(chunks)*chunkBytes); err != nil {
		return err
	}
	root, err := workspace.Open(corpus)
	if err != nil {
		return err
	}
	defer root.Close()
	asked, err := readQuestions(questions)
	if err != nil {
		return err
	}
	for _, mode := range []index.Mode{index.Lexical, index.Hybrid} {
		settings := index.Config{Path: filepath.Join(dir, "index", "index.db")}
		goal := ""
		if mode == index.Hybrid {
			settings.Embedder = chance{}
			goal = map[int]string{20_000: "≤ 3", 200_000: "≤ 10"}[chunks]
		}
		if err := timed(ctx, root, settings, mode, asked, goal); err != nil {
			return err
		}
	}
	return nil
}

// timed prints how long searches take in one mode.
func timed(ctx context.Context, root *workspace.Root, settings index.Config, mode index.Mode, asked []question, goal string) (err error) {
	x, err := index.Open(ctx, root, settings)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, x.Close()) }()
	summary, err := x.Update(ctx, nil)
	if err != nil {
		return err
	}
	if _, err := x.Embed(ctx, nil); err != nil {
		return err
	}
	var took []float64
	for round := range 3 {
		for i := range asked {
			if asked[i].language != "en" {
				continue
			}
			started := time.Now()
			answer, err := x.Search(ctx, index.Query{Text: asked[i].text, Limit: 5})
			if err != nil {
				return err
			}
			if answer.Mode != mode {
				return fmt.Errorf("P10: a search was %s: %s", answer.Mode, answer.Reason)
			}
			if round > 0 { // the first reads the index
				took = append(took, float64(time.Since(started).Microseconds())/1000)
			}
		}
	}
	fmt.Printf("| P10 search_semantic, %s, %d chunks, p50, ms | %.1f | | | %s |\n", mode, summary.Chunks, percentile(took, 50), goal)
	fmt.Printf("| the same, p99, ms | %.1f | | | |\n", percentile(took, 99))
	return nil
}

// gather copies Go files until there are so many bytes, each as often as it takes.
func gather(from, to string, bytes int64) error {
	for turn := 0; bytes > 0; turn++ {
		before := bytes
		err := filepath.WalkDir(from, func(name string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case bytes <= 0:
				return fs.SkipAll
			case !entry.Type().IsRegular() || filepath.Ext(name) != ".go" || strings.Contains(name, "testdata"):
				return nil
			}
			info, err := entry.Info()
			if err != nil || info.Size() > 1<<20 {
				return err
			}
			bytes -= info.Size()
			return copyFile(name, filepath.Join(to, fmt.Sprint(turn), strings.TrimPrefix(name, from)))
		})
		if err != nil {
			return err
		}
		if bytes == before {
			return errors.New("P10: the Go sources hold no files")
		}
	}
	return nil
}

// chance embeds texts by chance, the same text each time alike.
type chance struct{}

const chanceDimensions = 384

// Name implements provider.Embedder.
func (chance) Name() string { return "chance" }

// Model implements provider.Embedder.
func (chance) Model() string { return "chance" }

// Space implements provider.Embedder.
func (chance) Space() string { return "chance" }

// Batch implements provider.Embedder.
func (chance) Batch() (texts, bytes int) { return 512, 1 << 20 }

// Free implements provider.Embedder.
func (chance) Free() bool { return true }

// Embed implements provider.Embedder.
func (chance) Embed(_ context.Context, _ provider.Purpose, texts []string) (*provider.Embedding, error) {
	out := &provider.Embedding{}
	for _, text := range texts {
		sum := fnv.New64a()
		_, _ = sum.Write([]byte(text))                  // never fails
		random := rand.New(rand.NewPCG(sum.Sum64(), 1)) //nolint:gosec // nothing is secret
		vector, length := make([]float32, chanceDimensions), 0.0
		for i := range vector {
			vector[i] = float32(random.NormFloat64())
			length += float64(vector[i]) * float64(vector[i])
		}
		for i := range vector {
			vector[i] /= float32(math.Sqrt(length))
		}
		out.Vectors = append(out.Vectors, vector)
	}
	return out, nil
}
