package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/regie-run/regie/internal/workspace"
)

// sought is what P9 looks for in the Go sources: the default of search_text, where capitals count
// for nothing, and expressions.
var sought = []struct {
	what  string
	query workspace.Query
	goal  string
}{
	{"a rare word", workspace.Query{Text: "ErrDeadlineExceeded"}, "≤ 1.5"},
	{"a frequent word", workspace.Query{Text: "todo"}, "≤ 1.5"},
	{"a word of every tenth line", workspace.Query{Text: "return"}, "≤ 1.5"},
	{"a word that is not there", workspace.Query{Text: "no such word"}, "≤ 1.5"},
	{"an expression with a word", workspace.Query{Text: `func \w+Deadline`, Regex: true}, "≤ 4"},
	{"an expression without one", workspace.Query{Text: `\w+\s*:=\s*\d+`, Regex: true}, "≤ 12"},
}

// searching measures P9: search_text's engine on the Go source tree against ripgrep, each finding
// every line, in turn.
func (s *session) searching() error {
	tree, err := goSources()
	if err != nil {
		return err
	}
	rg, missing := exec.LookPath("rg")
	root, err := workspace.Open(tree)
	if err != nil {
		return err
	}
	defer root.Close()
	var firsts []float64
	for _, q := range sought {
		var ours, theirs, ratios []float64
		for round := range s.rounds + 1 {
			mine, first, lines, err := search(root, q.query)
			if err != nil {
				return err
			}
			if round == 0 { // it warms the file cache
				continue
			}
			ours = append(ours, mine)
			if q.what == "a frequent word" {
				firsts = append(firsts, first)
			}
			if missing != nil {
				continue
			}
			other, found, err := ripgrep(rg, tree, q.query)
			if err != nil {
				return err
			}
			if lines > found+found/100 || found > lines+lines/100 { // secrets and the like are searched by one alone
				return fmt.Errorf("P9: %q stands in %d lines, and in %d for ripgrep", q.query.Text, lines, found)
			}
			theirs, ratios = append(theirs, other), append(ratios, mine/other)
		}
		if missing != nil {
			fmt.Printf("| P9 search_text, ms, %s | %.0f | | | %s |\n", q.what, median(ours), q.goal)
			continue
		}
		row("P9 search_text, ms, %s (ripgrep)", q.what)(median(ours), median(theirs), median(ratios), q.goal, "%.0f")
	}
	fmt.Printf("| P9 first hit of a frequent word, ms | %.1f | | | ≤ 50 |\n", median(firsts))
	if missing != nil {
		fmt.Println("\nripgrep is not there (Debian's package ripgrep): P9 has no ratio")
	}
	return nil
}

// goSources returns the tree of the Go sources.
func goSources() (string, error) {
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("P9 needs the Go sources: %w", err)
	}
	return filepath.EvalSymlinks(filepath.Join(strings.TrimSpace(string(out)), "src"))
}

// search finds every line, and returns the milliseconds of all and of the first hit.
func search(root *workspace.Root, q workspace.Query) (all, first float64, lines int, err error) {
	q.Path, q.Most, q.Clip = ".", 1<<30, 300
	started := time.Now()
	since := func() float64 { return float64(time.Since(started).Microseconds()) / 1000 }
	_, err = root.Search(context.Background(), q, func(workspace.Match) bool {
		if lines++; lines == 1 {
			first = since()
		}
		return true
	})
	return since(), first, lines, err
}

// ripgrep does the same with rg as a separate process.
func ripgrep(rg, tree string, q workspace.Query) (ms float64, lines int, err error) {
	args := []string{"--no-config", "--line-number", "--no-heading", "--hidden", "--ignore-case"}
	if !q.Regex {
		args = append(args, "--fixed-strings")
	}
	started := time.Now()
	out, err := exec.Command(rg, append(args, "--", q.Text, tree)...).Output()
	ms = float64(time.Since(started).Microseconds()) / 1000
	if exit, ok := err.(*exec.ExitError); ok && exit.ExitCode() == 1 { //nolint:errorlint // it is what Output returns
		err = nil // it found nothing
	}
	return ms, strings.Count(string(out), "\n"), err
}
