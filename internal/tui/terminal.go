package tui

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
)

// terminal is the program's output. Each write stays in one piece.
type terminal struct {
	*os.File
	mu sync.Mutex
	// the live part as it is to be drawn; called where the library handles what the model asked
	// for, on its goroutine
	live     func() []string
	drawn    atomic.Bool  // the live part has been
	inserted atomic.Int64 // when lines went above the live part last, in nanoseconds
}

// inserts begins what the library writes to have lines above the live part: how far down to its
// end, how many lines to make room for, and how far up again from there. It holds where the
// terminal is as wide and as high as the library believes.
var inserts = regexp.MustCompile(`^\r(?:\x1b\[(\d*)B)?(\n+)\x1b\[(\d*)A\x1b\[\d*L`)

// eraseBelow replaces ansi.EraseScreenBelow: tmux copies text erased from the screen's first line
// into the scrollback. The library erases so each time the live part changes its height, and in a
// narrowed terminal that may start at the first line.
var eraseBelow = ansi.EraseLineRight + ansi.SaveCursor + ansi.CUD1 + ansi.EraseScreenBelow + ansi.RestoreCursor

// Write implements io.Writer.
func (t *terminal) Write(data []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.drawn.Load() && bytes.Contains(data, []byte(strings.TrimSpace(promptMark))) {
		t.drawn.Store(true)
	}
	room := inserts.FindSubmatch(data)
	if room == nil {
		if _, err := t.File.Write(bytes.ReplaceAll(data, []byte(ansi.EraseScreenBelow),
			[]byte(eraseBelow))); err != nil {
			return 0, err
		}
		return len(data), nil
	}
	t.inserted.Store(time.Now().UnixNano())
	down := 0
	if room[1] != nil {
		down = cursorSteps(room[1])
	}
	rows := cursorSteps(room[3]) - len(room[2]) + 1
	if _, err := t.File.WriteString(t.insertLines(rows, rows-1-down, string(data[len(room[0]):]))); err != nil {
		return 0, err
	}
	return len(data), nil
}

// insertLines puts lines above the live part. It works in a terminal of any size, because the size
// may have changed unnoticed. The cursor goes up to the start of the live part; the lines overwrite
// it, and the live part is written again below them. Then the library redraws it (printLines).
// rows is how many rows the library has drawn: it may update some of them before the full redraw,
// and needs the room.
func (t *terminal) insertLines(rows, up int, lines string) string {
	var b strings.Builder
	b.WriteString("\r")
	if up > 0 {
		b.WriteString(ansi.CursorUp(up))
	}
	live := t.live()
	for len(live) < rows {
		live = append(slices.Clip(live), "")
	}
	b.WriteString(lines) // each erases what stood behind it
	for i, line := range live {
		if i > 0 {
			b.WriteString("\r\n")
		}
		b.WriteString(line + ansi.EraseLineRight)
	}
	b.WriteString(ansi.EraseScreenBelow + "\r") // last, because tmux keeps what is erased from a screen's first line on
	if len(live) > 1 {
		b.WriteString(ansi.CursorUp(len(live) - 1))
	}
	return b.String()
}

// cursorSteps returns the count of a movement of the cursor: one where it is left out.
func cursorSteps(digits []byte) int {
	n, _ := strconv.Atoi(cmp.Or(string(digits), "1"))
	return n
}

// WriteString implements io.StringWriter.
func (t *terminal) WriteString(s string) (int, error) { return t.Write([]byte(s)) }

// sizeDelay is how long a terminal may take to tell a new size: tmux waits for 250 ms where sizes
// follow each other.
const sizeDelay = 300 * time.Millisecond

// reflowCursor puts the cursor where the library believes it is, before it hears of a new size. A
// terminal that becomes narrower breaks the lines of the live part anew, so that it has more of
// them than were drawn; without this their upper ones would stay in the scrollback as garbage.
func reflowCursor(m *model, out *terminal) func(tea.Model, tea.Msg) tea.Msg {
	// xterm cuts lines off
	still := slices.ContainsFunc(m.config.Env, func(v string) bool { return strings.HasPrefix(v, "XTERM_VERSION=") })
	return func(_ tea.Model, msg tea.Msg) tea.Msg {
		if again, is := msg.(redraw); is && m.screen.ready {
			if again.onEmpty {
				// not by tea.Raw, which is written some time later
				_, _ = fmt.Fprint(out, strings.Repeat("\r\n", m.screen.height)+ansi.CursorHomePosition)
			}
			return m.screen.said
		}
		size, ok := msg.(tea.WindowSizeMsg)
		if ok && (size.Width <= 0 || size.Height <= 0) { // a terminal that does not know its own size
			size = tea.WindowSizeMsg{Width: 80, Height: 24}
			msg = size
		}
		if !ok || still || !m.screen.ready || size.Width >= m.screen.width || size.Width < 2 {
			return msg
		}
		// just after lines came above, the terminal may have yet another size than the one that is
		// told, and going up would have them drawn over: a copy of the live part is better
		settled := time.Since(time.Unix(0, out.inserted.Load())) > sizeDelay
		if up := m.screen.linesGrown(size.Width); up > 0 && settled {
			_, _ = fmt.Fprint(out, ansi.CursorUp(up)) // a terminal that has gone ends the program elsewhere
		}
		return msg
	}
}

// linesGrown returns how many lines lie more above the cursor when the live part is broken anew at
// a width: of what may be on the terminal the least, so that nothing above it is ever drawn over.
func (s *screen) linesGrown(width int) int {
	least := -1
	for i := range s.drawn {
		if n := s.drawn[i].linesGrown(width); least < 0 || n < least {
			least = n
		}
	}
	return max(least, 0)
}

func (d *drawn) linesGrown(width int) int {
	more := 0
	for i, line := range d.lines[:min(len(d.lines), d.cursor+1)] {
		columns := ansi.StringWidth(line)
		if i == d.cursor {
			return more + min(columns, d.column)/width
		}
		more += max(0, (columns-1)/width)
	}
	return more
}
