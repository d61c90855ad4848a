package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/charmbracelet/x/ansi"
	"golang.org/x/sys/unix"

	"github.com/regie-run/regie/internal/plain"
)

// tell writes what a person reads beside a job, with lines that end at a word where a terminal is
// narrower than they are.
func (c *command) tell(lines string) {
	fmt.Fprintln(c.stderr, fold(plain.Strip(lines), columns(c.stderr)))
}

// columns is how wide a terminal is; 0 where none is, or none says so.
func columns(stream io.Writer) int {
	file, ok := stream.(*os.File)
	if !ok {
		return 0
	}
	size, err := unix.IoctlGetWinsize(int(file.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0
	}
	return int(size.Col)
}

// fold breaks lines between words, and goes on below where their text begins. A word that is longer
// than a line stays whole, so that it can be copied.
func fold(text string, width int) string {
	if width <= 0 {
		return text
	}
	var out strings.Builder
	for i, line := range strings.Split(text, "\n") {
		if i > 0 {
			out.WriteByte('\n')
		}
		begin := len(line) - len(strings.TrimLeft(line, " "))
		if marker := strings.Index(line[begin:], ". "); marker > 0 && marker <= 2 {
			begin += marker + len(". ")
		}
		at := 0
		for j, word := range strings.Split(line, " ") {
			switch long := ansi.StringWidth(word); {
			case j > 0 && at > begin && at+1+long > width:
				out.WriteString("\n" + strings.Repeat(" ", begin) + word)
				at = begin + long
			case j > 0:
				out.WriteString(" " + word)
				at += 1 + long
			default:
				out.WriteString(word)
				at = long
			}
		}
	}
	return out.String()
}
