package workspace_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/regie-run/regie/internal/workspace"
)

// Ignore files below each other hold up to a bound together; an end of the search is obeyed between
// two entries.
func TestSearchHostileIgnores(t *testing.T) {
	p := newPlace(t)
	filler := strings.Repeat("#"+strings.Repeat("x", 999)+"\n", 1000) // a million bytes that say nothing
	dir := ""
	for i := range 6 {
		dir += fmt.Sprintf("d%d/", i)
		p.file(dir+".gitignore", filler+fmt.Sprintf("ignored%d\n", i))
		p.file(dir+fmt.Sprintf("ignored%d", i), "needle\n")
	}
	got, seen := p.lines(workspace.Query{Text: "needle"})
	if fmt.Sprint(got) != "[d0/d1/d2/d3/d4/ignored4:1 d0/d1/d2/d3/d4/d5/ignored5:1]" || seen.Ignored != 4 {
		t.Errorf("%v %+v", got, seen)
	}
	for i := range 50 {
		p.file(fmt.Sprintf("many/%d", i), "needle\n")
	}
	ctx, cancel := context.WithCancel(t.Context())
	looked := 0
	seen, err := p.root.Search(ctx, workspace.Query{Text: "needle", Path: "many", Most: 9, Wanted: func(string) bool { looked++; cancel(); return true }}, func(workspace.Match) bool { return true })
	if err != nil || looked != 1 || !seen.Stopped {
		t.Errorf("%d entries were looked at: %+v %v", looked, seen, err)
	}
}
