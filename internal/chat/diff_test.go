package chat

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/i18n"
)

// TestPageBoundsDiffs shows the beginning and the end of a long diff, and warns of what is missing
// between them; lines that repeat are shown once.
func TestPageBoundsDiffs(t *testing.T) {
	numbered := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "+x%d\n", i)
		}
		return b.String()
	}
	for _, row := range []struct {
		name, diff string
		more       bool
		lines      int
		holds      []string
		ends       string
	}{
		{"short", "+a\n+b\n+c\n", false, 3, nil, "│ +c"},
		{"three are not folded", "+a\n+a\n+a\n", false, 3, nil, "│ +a"},
		{"as long as may be", numbered(shownLines), false, shownLines, nil, "│ +x199"},
		{
			"long", numbered(shownLines + 3), true, shownLines + 2,
			[]string{"│ +x0\n", "│ +x99\n     … 3 more lines\n     │ +x103\n", "│ +x202\n"},
			"! 3 lines are not shown above: look at them before you answer",
		},
		{
			"padded", "$ ls" + strings.Repeat("\n", 50) + strings.Repeat(" \n", 50) + strings.Repeat("  #a\n", 200) + "  rm -rf secret\n" + strings.Repeat("  #b\n", 200), true, 8,
			[]string{"│ $ ls\n", "… the same line, 98 more times\n", "│   rm -rf secret\n     │   #b\n"},
			"… the same line, 199 more times",
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			var out bytes.Buffer
			page := &Page{W: &out, Text: i18n.New("en"), Now: time.Now}
			review := &regie.Review{Preview: regie.Preview{Diff: row.diff}}
			more := page.Diff(review, shownLines)
			if more != row.more || strings.Count(out.String(), "\n") != row.lines || !strings.HasSuffix(out.String(), row.ends+"\n") {
				t.Errorf("more %v, %d lines:\n%s", more, strings.Count(out.String(), "\n"), out.String())
			}
			for _, want := range row.holds {
				if !strings.Contains(out.String(), want) {
					t.Errorf("%q is not in\n%s", want, out.String())
				}
			}
			out.Reset()
			if page.Diff(review, 0) || strings.Count(out.String(), "\n") != strings.Count(strings.TrimRight(row.diff, "\n"), "\n")+1 {
				t.Errorf("all of it is:\n%s", out.String())
			}
		})
	}
}
