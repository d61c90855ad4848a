package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/index"
)

// questions is the data of the retrieval benchmark; the file says what its lines mean.
//
//go:embed testdata/retrieval.txt
var questions string

// questionsFile is its path in the repository: it is excluded, because it would be the best hit of
// each question.
const questionsFile = "internal/bench/testdata/retrieval.txt"

// question is one that people would ask of this repository, with what answers it.
type question struct {
	about    string // code or prose
	language string // en or fr
	fresh    bool   // it was asked when the ranking was settled
	text     string
	answers  []passage
}

// passage is a file that answers, or the lines of one that hold its words.
type passage struct {
	path, words string
	lines       []int // from 1; none: any of the file
}

// hit is a search result: lines of a file.
type hit struct {
	path       string
	start, end int
}

// readQuestions reads the data.
func readQuestions(data string) (out []question, err error) {
	for n, line := range strings.Split(data, "\n") {
		head, text, isQuestion := strings.Cut(line, ": ")
		head, fresh := strings.CutSuffix(head, " fresh")
		about, language, _ := strings.Cut(head, " ")
		switch answer, isAnswer := strings.CutPrefix(line, "= "); {
		case line == "", strings.HasPrefix(line, "#"):
		case isAnswer && len(out) > 0:
			path, words, _ := strings.Cut(answer, " | ")
			last := &out[len(out)-1]
			last.answers = append(last.answers, passage{path: path, words: words})
		case isQuestion && (about == "code" || about == "prose") && (language == "en" || language == "fr"):
			out = append(out, question{about: about, language: language, fresh: fresh, text: text})
		default:
			return nil, fmt.Errorf("line %d is neither a question nor an answer: %q", n+1, line)
		}
	}
	return out, nil
}

// locate finds the lines of the answers in a repository. Its error names every answer that is not
// there any more.
func locate(repository string, asked []question) error {
	var missing []error
	for _, q := range asked {
		for i := range q.answers {
			a := &q.answers[i]
			data, err := os.ReadFile(filepath.Join(repository, a.path))
			if err != nil {
				missing = append(missing, fmt.Errorf("%q: %w", q.text, err))
				continue
			}
			if a.words == "" {
				continue
			}
			a.lines = nil
			for n, line := range strings.Split(string(data), "\n") {
				if strings.Contains(line, a.words) {
					a.lines = append(a.lines, n+1)
				}
			}
			if a.lines == nil {
				missing = append(missing, fmt.Errorf("%q: no line of %s holds %q", q.text, a.path, a.words))
			}
		}
	}
	return errors.Join(missing...)
}

// ranks returns the ranks, from 1, of the first hit in a right file and of the first with the
// answer; 0 if none is.
func (q *question) ranks(hits []hit) (file, inside int) {
	for i, h := range hits {
		for _, a := range q.answers {
			if a.path != h.path {
				continue
			}
			if file == 0 {
				file = i + 1
			}
			holds := len(a.lines) == 0 || slices.ContainsFunc(a.lines,
				func(line int) bool { return h.start <= line && line <= h.end })
			if inside == 0 && holds {
				inside = i + 1
			}
		}
	}
	return file, inside
}

// score sums up the ranks of several questions.
type score struct {
	asked, first5, first10, inside10 int
	reciprocal                       float64
}

func (s *score) add(file, inside int) {
	s.asked++
	if file == 0 || file > retrieved {
		return
	}
	if file <= 5 {
		s.first5++
	}
	s.first10++
	s.reciprocal += 1 / float64(file)
	if inside != 0 && inside <= retrieved {
		s.inside10++
	}
}

// retrieved is how many hits are looked at.
const retrieved = 10

// row is the score as a line of a table.
func (s *score) row(what string) string {
	part := func(n int) float64 { return float64(n) / float64(max(1, s.asked)) }
	return fmt.Sprintf("| %s | %d | %.2f | %.2f | %.2f | %.2f |", what, s.asked, part(s.first5), part(s.first10),
		s.reciprocal/float64(max(1, s.asked)), part(s.inside10))
}

// retrieving measures what files.search_semantic finds of this repository: as it is checked out, of
// all files that git keeps.
func (s *session) retrieving() error {
	ctx := context.Background()
	asked, err := readQuestions(questions)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "regie-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }() // a scratch copy
	tree := filepath.Join(dir, "tree")
	if err := checkout(ctx, tree); err != nil {
		return err
	}
	if err := locate(tree, asked); err != nil {
		return err
	}
	settings, err := config.Load(os.Getenv, config.Flags{DataDir: filepath.Join(dir, "data")})
	if err != nil {
		return err
	}
	_, model, embeds := settings.Embedding()
	// without the user's settings
	lexical, err := config.Load(func(string) string { return "" }, config.Flags{DataDir: filepath.Join(dir, "lexical")})
	if err != nil {
		return err
	}
	fmt.Printf("\nWhat is found of %d questions about this repository; the first %d hits\n\n", len(asked), retrieved)
	fmt.Println("| mode, questions | asked | recall@5 | recall@10 | MRR | the passage, @10 |")
	fmt.Println("|---|---|---|---|---|---|")
	took, err := s.retrieve(ctx, lexical, tree, asked)
	if err != nil {
		return err
	}
	if embeds {
		if _, err := s.retrieve(ctx, settings, tree, asked); err != nil {
			return err
		}
		fmt.Printf("\nhybrid with %s", model.Model)
	}
	fmt.Printf("\na question takes %.1f ms by words (median)\n", took)
	return nil
}

// retrieve prints the search results with some settings, and returns a question's median time in
// milliseconds.
func (s *session) retrieve(ctx context.Context, settings config.Config, tree string,
	asked []question,
) (took float64, err error) {
	x, err := app.OpenIndex(ctx, settings, tree)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, x.Close()) }()
	if _, err := x.Update(ctx, nil); err != nil {
		return 0, err
	}
	done, err := x.Embed(ctx, nil)
	if err == nil && !done.Reason.IsZero() {
		err = errors.New(done.Reason.String())
	}
	if err != nil {
		return 0, err
	}
	return s.ask(ctx, x.Index, asked)
}

// ask prints the scores of one mode.
func (s *session) ask(ctx context.Context, x *index.Index, asked []question) (float64, error) {
	scores := map[string]*score{}
	var took []float64
	mode := index.Lexical
	for i := range asked {
		q := &asked[i]
		started := time.Now()
		answer, err := x.Search(ctx, index.Query{Text: q.text, Limit: retrieved})
		if err != nil {
			return 0, err
		}
		took, mode = append(took, float64(time.Since(started).Microseconds())/1000), answer.Mode
		var hits []hit
		for _, h := range answer.Hits {
			hits = append(hits, hit{h.Path, h.Start, h.End})
		}
		file, inside := q.ranks(hits)
		if s.verbose {
			fmt.Fprintf(os.Stderr, "%2d %2d  %s %s: %s\n", file, inside, q.about, q.language, q.text)
			for _, h := range answer.Hits[:min(len(answer.Hits), 5)] {
				fmt.Fprintf(os.Stderr, "          %s:%d-%d %s\n", h.Path, h.Start, h.End, h.Symbol)
			}
		}
		groups := []string{"all", q.about, q.language, q.about + ", " + q.language}
		if q.fresh { // they are no part of the others, which stay comparable
			groups = []string{"fresh " + q.about}
		}
		for _, group := range groups {
			if scores[group] == nil {
				scores[group] = &score{}
			}
			scores[group].add(file, inside)
		}
	}
	for _, group := range []string{
		"all", "code", "prose", "en", "fr", "code, en", "code, fr", "prose, en", "prose, fr",
		"fresh code", "fresh prose",
	} {
		fmt.Println(scores[group].row(string(mode) + ", " + group))
	}
	return median(took), nil
}

// checkout copies the files of the repository that holds the current directory, those that git
// keeps and as they are now, without the questions.
func checkout(ctx context.Context, to string) error {
	out, err := exec.CommandContext(ctx, "git", "rev-parse", "--show-toplevel").Output()
	if err != nil {
		return fmt.Errorf("the retrieval benchmark is about this repository: %w", err)
	}
	top := strings.TrimSuffix(string(out), "\n")
	if out, err = exec.CommandContext(ctx, "git", "-C", top, "ls-files", "-z").Output(); err != nil {
		return err
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		if name == questionsFile {
			continue
		}
		if err := copyFile(filepath.Join(top, name), filepath.Join(to, name)); err != nil &&
			!errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // it was only read
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
