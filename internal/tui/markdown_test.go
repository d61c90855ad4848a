package tui

import (
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/charmbracelet/x/ansi"
)

// written is Markdown as it stands in the scrollback when it came in pieces of some bytes.
func written(source string, piece, width int) []string {
	r := markdown{parser: newParser(), width: width}
	var out []string
	put := func(lines [][]span) {
		for _, line := range lines {
			out = append(out, paintLine(trimRight(line), false))
		}
	}
	for rest := source; rest != ""; {
		n := min(piece, len(rest))
		put(r.addPiece(rest[:n]))
		rest = rest[n:]
	}
	put(r.finishReply())
	return out
}

const sample = "# Title\n\nSome **bold** and *it* `code` [link](http://x.y) text that is quite long and should wrap.\nnext\n\n- a\n- b **x**\n  - c\n\n  para\n- d\n\n3. three\n4. four\n\n" +
	"```go\nfunc main() {\n\tfmt.Println(\"hi\") // c\n\n}\n```\nafter\n\n| a | b |\n|---|--:|\n| 1 | 22 |\n| long cell text here | 日本語 |\n\n> quote\n> more\n\n---\nend &amp; é ~~no~~\n\n" +
	"1. item\n   ```sh\n   ls\n\n   pwd\n   ```\n2. next\n"

func TestMarkdown(t *testing.T) {
	want := strings.Split(`Title

Some bold and it code link
(http://x.y) text that is
quite long and should wrap.
next

• a
• b x
  • c

  para
• d

3. three
4. four

  func main() {
      fmt.Println("hi") // c

  }
after

a                   │ b
────────────────────┼───────
1                   │ 22
long cell text here │ 日本語

│ quote
│ more

──────────────────────────────
end & é no

1. item

     ls

     pwd
2. next`, "\n")
	for _, piece := range []int{1, 2, 7, 64, len(sample)} {
		var got []string
		for _, line := range written(sample, piece, 30) {
			got = append(got, ansi.Strip(line))
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("in pieces of %d bytes:\n%s", piece, strings.Join(got, "\n"))
		}
	}
}

// What a reference link leads to is shown: behind the link where it is known by then, and by itself
// where it comes later.
func TestReferences(t *testing.T) {
	source := "See [the site][a] and [b].\n\n[a]: http://a.example \"A title\"\n[b]: <http://b.example>\n\nAgain [the site][A], [^1] and [c][none].\n\n- [x] done\n- [ ] open\n\n[^1]: a note\n"
	want := strings.Split(`See [the site][a] and [b].

[a]: http://a.example "A title"
[b]: http://b.example

Again the site (http://a.example), [^1] and [c][none].

• ☑ done
• ☐ open

[^1]: a note`, "\n")
	for _, piece := range []int{1, 5, len(source)} {
		var got []string
		for _, line := range written(source, piece, 60) {
			got = append(got, ansi.Strip(line))
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("in pieces of %d bytes:\n%s", piece, strings.Join(got, "\n"))
		}
	}
}

// FuzzMarkdown holds that no line is wider than the terminal, that nothing in it acts on that, and
// that the pieces in which a source comes make no difference to what is said.
func FuzzMarkdown(f *testing.F) {
	for _, s := range []string{sample, "\x1b[2J&#27;[31m", "|a|\n|-|\n|\x07|", "```\n\u202e", "- \n-\n  ```\n", "&#x202e;", "[a](\x1b]8;;x)", "1) a\n\n    b", "~~~~\n```\n~~~", "👩‍🔬é|日本", "[a][b]\n\n[b]: http://\x1b]8;;x \"\x9b2J\"\n\n[a][b] - [x] y"} {
		f.Add(s, 3, 20)
	}
	f.Fuzz(func(t *testing.T, source string, piece, width int) {
		if len(source) > 2000 {
			return
		}
		piece, width = 1+abs(piece)%50, 8+abs(width)%200
		whole := written(source, len(source)+1, width)
		for _, line := range whole {
			if got := ansi.StringWidth(line); got > width {
				t.Errorf("%d columns of %d: %q", got, width, line)
			}
			for _, r := range ansi.Strip(line) {
				if unicode.IsControl(r) || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 {
					t.Errorf("%q holds %U", line, r)
				}
			}
			if strings.Count(line, "\x1b") != strings.Count(line, "\x1b[") {
				t.Errorf("%q holds a sequence that is not ours", line)
			}
		}
		if got := written(source, piece, width); strings.Join(got, "\n") != strings.Join(whole, "\n") {
			t.Errorf("in pieces of %d:\n%q\nat once:\n%q", piece, got, whole)
		}
	})
}

func abs(n int) int {
	if n < 0 {
		return -(n + 1)
	}
	return n
}

// What goes on for long is handed over in pieces, so that what is open stays small, nothing of it
// is lost, and the highlighting of code knows what stands before.
func TestLongBlocks(t *testing.T) {
	defer func(d time.Duration) { patienceWithCode = d }(patienceWithCode)
	patienceWithCode = time.Minute // a busy machine is none of this test's business
	for start, word := range map[string]string{"": "été日本 word ", "```\n": "one more\n", "- ": "été日本 word ", "```python\ns = \"\"\"a\n": "a text\n", "|a|\n|-|\n": "|a cell|\n"} {
		r := markdown{parser: newParser(), width: 60}
		var said strings.Builder
		put := func(lines [][]span) {
			for _, line := range lines {
				if len(line) == 2 && line[1].text == "a text" && said.Len() < maxOpen/10 && line[1].style.fg != green {
					t.Fatalf("a line of a text is %+v", line)
				}
				said.WriteString(paintLine(line, false) + " ")
			}
		}
		put(r.addPiece(start))
		for range 1300 {
			if put(r.addPiece(word)); len(r.open)+len(r.partial) > 2*maxOpen {
				t.Fatalf("%q: %d bytes are open", start, len(r.open))
			}
		}
		put(r.finishReply())
		text := strings.Join(strings.Fields(ansi.Strip(said.String())), " ")
		if n := strings.Count(text, strings.Trim(word, "| \n")); n != 1300 {
			t.Errorf("%q: %d of 1300 are there", start, n)
		}
	}
}
