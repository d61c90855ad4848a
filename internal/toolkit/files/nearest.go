package files

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
)

// Bounds of the advice about a text that was not found.
const (
	adviceLines  = 8
	adviceLine   = 200       // bytes
	compareBytes = 200 << 10 // of the text that was looked for
)

// numberedLine matches a line as read_file shows it.
var numberedLine = regexp.MustCompile(`(?m)^ *\d+\t`)

// nearest says what to do about a text that does not stand in a file: what is like it, and in what
// it differs.
func nearest(text []byte, old string) string {
	const look = "read the file again and copy the text from there"
	if plain := numberedLine.ReplaceAllString(old, ""); plain != old && bytes.Contains(text, []byte(plain)) {
		return "leave out the line numbers that read_file puts before each line"
	}
	if len(old) > compareBytes {
		return look
	}
	have, want := strings.Split(string(text), "\n"), strings.Split(strings.Trim(old, "\r\n"), "\n")
	if at, ok := sameButSpaces(have, want); ok {
		return fmt.Sprintf("with other spaces it stands at %s:\n%s", span(at, len(want)), quoted(have, at, len(want)))
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
