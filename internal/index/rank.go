package index

import (
	"cmp"
	"math"
	"path"
	"slices"
	"strings"
)

// How words rank (measured on the questions of internal/bench/testdata/retrieval.txt).
const (
	// candidates are the chunks, best by BM25, that are ranked anew.
	candidates = 200

	// A chunk is worth more where the chunks around it speak of the same: support is the share of
	// the other candidates of its file that is added, of the best so many, each counting less than
	// the one before.
	support      = 0.3
	supporters   = 6
	supportDecay = 0.7

	// repeated is the weight of a further chunk of one file relative to the one before: a person
	// wants several places to look at.
	repeated = 0.8

	// Tests and data repeat the words of their subject but seldom are the answer, unless the
	// question mentions them.
	testShare = 0.7
	dataShare = 0.5
)

// candidate is a chunk that holds words of a question.
type candidate struct {
	ranked
	path string
}

// rankCandidates puts candidates, which come best first by BM25, into the order of an answer. terms
// are those of the question.
func rankCandidates(found []candidate, terms []string) []ranked {
	total, taken := map[string]float64{}, map[string]int{}
	for _, c := range found {
		if n := taken[c.path]; n < supporters {
			total[c.path] += c.score * math.Pow(supportDecay, float64(n))
		}
		taken[c.path]++
	}
	for i := range found {
		c := &found[i]
		c.score = (c.score + support*(total[c.path]-c.score)) * fileWeight(c.path, terms)
	}
	best := func(a, b candidate) int { return cmp.Compare(b.score, a.score) }
	slices.SortStableFunc(found, best)
	clear(taken)
	for i := range found {
		c := &found[i]
		c.score *= math.Pow(repeated, float64(taken[c.path]))
		taken[c.path]++
	}
	slices.SortStableFunc(found, best)
	out := make([]ranked, len(found))
	for i := range found {
		out[i] = found[i].ranked
	}
	return out
}

// dataEnds are the ends of the names of files that are made by programs or hold nothing but data.
var dataEnds = map[string]bool{
	".json": true, ".jsonl": true, ".sum": true, ".lock": true, ".csv": true, ".tsv": true, ".svg": true, ".xml": true,
	".snap": true, ".golden": true, ".map": true,
}

// fileWeight returns the weight of a file by its kind.
func fileWeight(name string, terms []string) float64 {
	base, end := strings.ToLower(path.Base(name)), strings.ToLower(path.Ext(name))
	switch {
	case dataEnds[end] && !slices.Contains(terms, strings.TrimPrefix(end, ".")):
		return dataShare
	case isTest(strings.ToLower(name), base) && !slices.Contains(terms, "test"):
		return testShare
	default:
		return 1
	}
}

// isTest reports whether a file belongs to tests, by its path and its name in small letters.
func isTest(name, base string) bool {
	stem, _, _ := strings.Cut(base, ".")
	if strings.HasSuffix(stem, "_test") || strings.HasPrefix(stem, "test_") || strings.HasSuffix(stem, "_spec") ||
		strings.Contains(base, ".test.") ||
		strings.Contains(base, ".spec.") {
		return true
	}
	for dir := range strings.SplitSeq(path.Dir(name), "/") {
		switch dir {
		case "testdata", "test", "tests", "__tests__", "spec", "fixtures":
			return true
		}
	}
	return false
}
