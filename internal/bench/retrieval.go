package main

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// questions is the data of the retrieval benchmark; the file says what its lines mean.
//
//go:embed testdata/retrieval.txt
var questions string

// questionsFile is where it lies in the repository: what holds every question would be the best hit of each.
const questionsFile = "internal/bench/testdata/retrieval.txt"

// question is one that people would ask of this repository, with what answers it.
type question struct {
	about    string // code or prose
	language string // en or fr
	text     string
	answers  []passage
}

// passage is a file that answers, or the lines of one that hold its words.
type passage struct {
	path, words string
	lines       []int // from 1; none: any of the file
}

// hit is what a search gives: lines of a file.
type hit struct {
	path       string
	start, end int
}

// readQuestions reads the data.
func readQuestions(data string) (out []question, err error) {
	for n, line := range strings.Split(data, "\n") {
		head, text, isQuestion := strings.Cut(line, ": ")
		about, language, _ := strings.Cut(head, " ")
		switch answer, isAnswer := strings.CutPrefix(line, "= "); {
		case line == "", strings.HasPrefix(line, "#"):
		case isAnswer && len(out) > 0:
			path, words, _ := strings.Cut(answer, " | ")
			last := &out[len(out)-1]
			last.answers = append(last.answers, passage{path: path, words: words})
		case isQuestion && (about == "code" || about == "prose") && (language == "en" || language == "fr"):
			out = append(out, question{about: about, language: language, text: text})
		default:
			return nil, fmt.Errorf("line %d is neither a question nor an answer: %q", n+1, line)
		}
	}
	return out, nil
}

// locate finds the lines of the answers in a repository. Its error names every answer that is not there any more.
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

// ranks are the places, from 1, of the first hit in a file that answers and of the first one that holds the answer; 0 where none does.
func (q *question) ranks(hits []hit) (file, inside int) {
	for i, h := range hits {
		for _, a := range q.answers {
			if a.path != h.path {
				continue
			}
			if file == 0 {
				file = i + 1
			}
			holds := len(a.lines) == 0 || slices.ContainsFunc(a.lines, func(line int) bool { return h.start <= line && line <= h.end })
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
	return fmt.Sprintf("| %s | %d | %.2f | %.2f | %.2f | %.2f |", what, s.asked, part(s.first5), part(s.first10), s.reciprocal/float64(max(1, s.asked)), part(s.inside10))
}
