package files

import (
	"fmt"
	"regexp"
	"strings"
)

// Bounds of the advice about a text that was not found.
const (
	adviceLines  = 8
	adviceLine   = 200       // bytes
	compareLines = 200_000   // lines of a file
	compareBytes = 200 << 10 // of the text that was looked for
)

// numberedLine matches a line as read_file shows it.
var numberedLine = regexp.MustCompile(`(?m)^ *\d+\t`)

// nearest says what to do about a text that does not stand in a file: what is like it, and in what
// it differs.
func (k *toolkit) nearest(text []byte, old string) string {
	const look = "read the file again and copy the text from there"
	if plain := numberedLine.ReplaceAllString(old, ""); plain != old && len(occurrences(text, plain)) > 0 {
		return "leave out the line numbers that read_file puts before each line"
	}
	if unescaped := strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\"`, `"`).Replace(old); unescaped != old &&
		len(occurrences(text, unescaped)) > 0 {
		return "it is escaped once too often: write line feeds, tabs and quotes as themselves"
	}
	if len(old) > compareBytes {
		return look
	}
	have, want := strings.Split(string(text), "\n"), strings.Split(strings.Trim(old, "\r\n"), "\n")
	if len(have) > compareLines {
		return look
	}
	if at, ok := sameButSpaces(have, want); ok {
		return fmt.Sprintf("with other spaces it stands at %s:\n%s", span(at, len(want)), quoted(have, at, len(want)))
	}
	if at, ok := mostAlike(have, want); ok {
		return fmt.Sprintf("most like it is %s:\n%s", span(at, len(want)), quoted(have, at, len(want)))
	}
	return look
}

// span names lines by the index of the first one.
func span(at, n int) string {
	if n == 1 {
		return fmt.Sprintf("line %d", at+1)
	}
	return fmt.Sprintf("lines %d to %d", at+1, at+n)
}

// quoted shows lines as read_file does.
func quoted(have []string, at, n int) string {
	var b strings.Builder
	for i := at; i < min(at+n, len(have)); i++ {
		if i-at == adviceLines {
			b.WriteString("…\n")
			break
		}
		line := strings.TrimSuffix(have[i], "\r")
		whole := len(line) <= adviceLine
		fmt.Fprintf(&b, "%6d\t%s\n", i+1, visible([]byte(line[:min(len(line), adviceLine)]), whole))
	}
	return b.String()
}

// sameButSpaces finds lines that differ from those that were looked for in their spaces alone.
func sameButSpaces(have, want []string) (at int, ok bool) {
	squeezed := make([]string, len(want))
	for i, line := range want {
		squeezed[i] = strings.Join(strings.Fields(line), " ")
	}
	if strings.Join(squeezed, "") == "" {
		return 0, false
	}
	for at := 0; at+len(want) <= len(have); at++ {
		same := true
		for i := 0; i < len(want) && same; i++ {
			same = strings.Join(strings.Fields(have[at+i]), " ") == squeezed[i]
		}
		if same {
			return at, true
		}
	}
	return 0, false
}

// mostAlike finds the lines around the one that is most like the longest line that was looked for.
func mostAlike(have, want []string) (at int, ok bool) {
	longest := 0
	for i := range want {
		if len(want[i]) > len(want[longest]) {
			longest = i
		}
	}
	pairs := pairsOf(want[longest])
	best, found := 0.5, -1
	for i, line := range have {
		if score := alike(pairs, line); score > best {
			best, found = score, i
		}
	}
	if found < 0 {
		return 0, false
	}
	return max(0, found-longest), true
}

// pairsOf counts the neighbouring bytes of a line.
func pairsOf(line string) map[[2]byte]int {
	line = strings.TrimSpace(line)
	pairs := make(map[[2]byte]int, len(line))
	for i := 1; i < len(line); i++ {
		pairs[[2]byte{line[i-1], line[i]}]++
	}
	return pairs
}

// alike is how much of two lines is the same, from 0 to 1.
func alike(pairs map[[2]byte]int, line string) float64 {
	line = strings.TrimSpace(line)
	all := 0
	for _, n := range pairs {
		all += n
	}
	if all == 0 || len(line) < 2 || len(line) > 3*all+10 || all > 3*len(line)+10 {
		return 0
	}
	seen, both := map[[2]byte]int{}, 0
	for i := 1; i < len(line); i++ {
		pair := [2]byte{line[i-1], line[i]}
		if n := pairs[pair]; n > seen[pair] {
			seen[pair]++
			both++
		}
	}
	return 2 * float64(both) / float64(all+len(line)-1)
}
