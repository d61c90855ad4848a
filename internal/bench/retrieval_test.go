package main

import (
	"strings"
	"testing"
)

// TestQuestions holds the retrieval benchmark to the repository: every answer is there, and no
// question gives it away.
func TestQuestions(t *testing.T) {
	asked, err := readQuestions(questions)
	if err != nil {
		t.Fatal(err)
	}
	if err := locate("../..", asked); err != nil {
		t.Errorf("testdata/retrieval.txt names what is not there:\n%v", err)
	}
	count, seen := map[string]int{}, map[string]bool{}
	for _, q := range asked {
		count[q.about]++
		count[q.language]++
		if len(q.answers) == 0 || seen[q.text] {
			t.Errorf("%q has no answer, or is asked twice", q.text)
		}
		seen[q.text] = true
		for _, a := range q.answers {
			name := a.path[strings.LastIndexByte(a.path, '/')+1:]
			if strings.Contains(strings.ToLower(q.text), strings.ToLower(name)) || a.path == "CHANGELOG.md" || a.path == questionsFile {
				t.Errorf("%q: %s is no answer to it", q.text, a.path)
			}
		}
	}
	if count["code"] < 40 || count["prose"] < 40 || count["fr"] < 20 {
		t.Errorf("there are too few questions: %v", count)
	}
}

func TestReadQuestions(t *testing.T) {
	for _, bad := range []string{"= a.go", "code de: Wo?", "what: ever", "code en no colon"} {
		if got, err := readQuestions(bad); err == nil {
			t.Errorf("%q reads as %+v", bad, got)
		}
	}
	asked, err := readQuestions("# x\n\nprose fr: Où : là ?\n= a b.md | x | y\n= c.go\n")
	if err != nil || len(asked) != 1 || asked[0].text != "Où : là ?" || asked[0].answers[0].path != "a b.md" || asked[0].answers[0].words != "x | y" {
		t.Errorf("%+v %v", asked, err)
	}
	if fresh, err := readQuestions("code en fresh: Where?\n= c.go"); err != nil || len(fresh) != 1 || !fresh[0].fresh || fresh[0].language != "en" {
		t.Errorf("%+v %v", fresh, err)
	}
	if err := locate(t.TempDir(), asked); err == nil || !strings.Contains(err.Error(), "c.go") || !strings.Contains(err.Error(), "a b.md") {
		t.Errorf("what is missing is not named: %v", err)
	}
}

func TestScore(t *testing.T) {
	q := question{answers: []passage{{path: "a", lines: []int{7}}, {path: "b"}}}
	for _, row := range []struct {
		hits         []hit
		file, inside int
	}{
		{nil, 0, 0},
		{[]hit{{"c", 1, 9}}, 0, 0},
		{[]hit{{"c", 1, 9}, {"a", 1, 6}, {"a", 7, 9}}, 2, 3},
		{[]hit{{"a", 8, 9}, {"b", 1, 2}, {"a", 5, 7}}, 1, 2},
		{[]hit{{"a", 7, 7}}, 1, 1},
	} {
		if file, inside := q.ranks(row.hits); file != row.file || inside != row.inside {
			t.Errorf("%v: ranks %d and %d, want %d and %d", row.hits, file, inside, row.file, row.inside)
		}
	}
	var s score
	s.add(1, 1)
	s.add(10, 0)
	s.add(0, 0)
	s.add(4, 8)
	if got := s.row("x"); got != "| x | 4 | 0.50 | 0.75 | 0.34 | 0.50 |" {
		t.Errorf("the row is %s", got)
	}
}
