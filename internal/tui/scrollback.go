package tui

import (
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"

	"github.com/regie-run/regie/internal/sanitize"
)

// screen is the known state of the terminal.
type screen struct {
	width, height int
	ready         bool // the terminal has said its size
	said          tea.WindowSizeMsg
	colours       bool
	small         bool // the dialog does not fit: no key decides
	// another program has the terminal. The live part is one empty line: the library loses its
	// place where what it draws afterwards has fewer lines.
	lent   bool
	drawn  []drawn
	stands func() bool // whether the live part has been drawn; nil: there is no live part
}

// isDrawn reports whether the live part has been drawn. Before that the library assumes that it
// fills the terminal, and lines printed above it would overwrite the output of other programs.
func (s *screen) isDrawn() bool { return s.stands == nil || s.stands() }

// drawn is the live part as it was given to the library, which draws it within a few milliseconds.
type drawn struct {
	lines          []string
	cursor, column int // the position of the cursor
	at             time.Time
}

// rememberDrawn remembers what was given to be drawn, and what may still be on the terminal.
func (s *screen) rememberDrawn(d drawn) {
	keep := 0
	for keep < len(s.drawn)-1 && d.at.Sub(s.drawn[keep+1].at) > settles {
		keep++
	}
	s.drawn = append(s.drawn[keep:], d)
}

// lastDrawn returns the live part as it was given to be drawn last.
func (s *screen) lastDrawn() []string {
	if len(s.drawn) == 0 {
		return nil
	}
	return s.drawn[len(s.drawn)-1].lines
}

// settles is the longest time until drawn content reaches the terminal.
const settles = 100 * time.Millisecond

func newScreen(env []string) screen {
	return screen{width: 80, height: 24, colours: colorprofile.Env(env) >= colorprofile.ANSI}
}

// redraw has the library draw all of the live part once more. Its own word for that, ClearScreen,
// leaves a movement of the cursor behind, which goes wrong where something is printed before it is
// made.
type redraw struct {
	onEmpty bool // at the top of an empty screen
}

func drawAgain() tea.Msg { return redraw{} }

// emptyScreen is a mark between printed lines: what is before it moves off the screen. No line can
// be the same, because control characters are never printed.
const emptyScreen = "\x00"

// paper is the scrollback, which is never changed once written.
type paper struct {
	m        *model
	markdown // the reply that streams in
	out      []string
	printing bool
	wrote    bool // the last line is not empty
	inReply  bool // the last line belongs to a reply
	// tail is the open block as shown, and tailOf its source.
	tail   [][]span
	tailOf string
}

// isIdle reports whether all is on the terminal.
func (p *paper) isIdle() bool { return len(p.out) == 0 && !p.printing }

// addLine adds a finished line.
func (p *paper) addLine(spans []span) {
	p.out = append(p.out, paintLine(trimRight(spans), p.m.screen.colours))
	p.wrote = len(spans) > 0
}

// addSpace adds an empty line, unless the last one is empty.
func (p *paper) addSpace() {
	if p.wrote {
		p.addLine(nil)
	}
}

// trimRight returns a line without spaces at its end.
func trimRight(line []span) []span {
	for n, last := range slices.Backward(line) {
		if text := strings.TrimRight(last.text, " "); text != "" {
			return append(slices.Clone(line[:n]), span{text, last.style})
		}
	}
	return nil
}

// addReply writes finished lines of a reply; nil is an empty one.
func (p *paper) addReply(lines [][]span) {
	for _, line := range lines {
		if !p.inReply || line == nil {
			p.addSpace()
		}
		if p.inReply = true; line != nil {
			p.addLine(line)
		}
	}
}

// flushReply finishes the reply, as far as it goes.
func (p *paper) flushReply() { p.addReply(p.finishReply()) }

// lookAgain is how soon the program checks again whether the live part is drawn.
const lookAgain = 5 * time.Millisecond

// printLines prints all pending lines and empties the screen, one after another: the library does
// not order what runs at the same time.
func (m *model) printLines() tea.Cmd {
	p := &m.paper
	if p.printing || len(p.out) == 0 || !m.screen.ready {
		return nil
	}
	printed := func() { p.printing = false }
	if p.printing = !m.screen.isDrawn(); p.printing {
		return delayCommand(lookAgain, printed)
	}
	p.printing = true
	after := func() tea.Msg { return done(printed) }
	if p.out[0] == emptyScreen {
		p.out = p.out[1:]
		return tea.Sequence(func() tea.Msg { return redraw{onEmpty: true} }, after)
	}
	count := slices.Index(p.out, emptyScreen)
	if count < 0 {
		count = len(p.out)
	}
	bundle := strings.Join(p.out[:count], "\n")
	p.out = p.out[count:]
	if bundle == "" {
		bundle = "\x1b[m" // the library leaves out what is empty
	}
	return tea.Sequence(tea.Println(bundle), drawAgain, after)
}

// writer is where a chat.Stream writes to.
type writer func(text string)

// Write implements io.Writer.
func (w writer) Write(data []byte) (int, error) {
	w(string(data))
	return len(data), nil
}

// maxSaid is how many lines of a person's message are shown, of a longer one the first and the
// last.
const maxSaid = 60

// addNote writes whole lines outside the replies.
func (p *paper) addNote(text string) {
	if !p.m.Stream.Telling() { // else it goes above the open block, which continues below
		p.flushReply()
	}
	text = strings.TrimSuffix(text, "\n")
	said := strings.HasPrefix(text, "› ")
	if p.inReply || said {
		p.addSpace()
		p.inReply = false
	}
	lines := strings.Split(text, "\n")
	if said && len(lines) > maxSaid { // the person knows what they pasted
		left := len(lines) - maxSaid
		lines = slices.Concat(lines[:maxSaid/2], []string{"  " + p.m.Text.T("… %d more lines", left)},
			lines[len(lines)-maxSaid/2:])
	}
	for _, line := range lines {
		for _, spans := range formatNote(sanitize.Strip(line), said, p.width) {
			p.addLine(spans)
		}
	}
	if said {
		p.addSpace()
	}
}

// formatNote formats a line outside the replies by its first mark. said says that it is a person's
// message.
func formatNote(line string, said bool, width int) [][]span {
	bare := strings.TrimLeft(line, " ")
	indent := strings.Repeat(" ", min(len(line)-len(bare), width/2))
	mark, rest, found := strings.Cut(bare, " ")
	marks := map[string]colour{"✓": green, "✗": red, "–": yellow, "!": yellow, "…": yellow, "→": cyan}
	switch {
	case said: // behind "› " or two spaces
		runes := []rune(line)
		first := span{string(runes[:min(2, len(runes))]), style{bold: true}}
		rest := span{expandTabs(string(runes[min(2, len(runes)):])), first.style}
		return prefixLines(wrapSpans([]span{rest}, width-2), first, span{text: "  "})
	case found && mark == "│":
		return diffLine(indent+"│ ", rest, width)
	case found && marks[mark] != 0:
		return prefixLines(wrapSpans([]span{{text: expandTabs(rest)}}, width-len(indent)-2),
			span{indent + mark + " ", style{fg: marks[mark]}}, span{text: indent + "  "})
	}
	return prefixLines(wrapSpans([]span{{text: expandTabs(bare)}}, width-len(indent)), span{text: indent},
		span{text: indent})
}

// diffLine returns a line of a diff, or of an output, behind its bar.
func diffLine(bar, line string, width int) [][]span {
	var s style
	switch {
	case strings.HasPrefix(line, "+++"), strings.HasPrefix(line, "---"):
		s.bold = true
	case strings.HasPrefix(line, "+"):
		s.fg = green
	case strings.HasPrefix(line, "-"):
		s.fg = red
	case strings.HasPrefix(line, "@@"):
		s.fg = cyan
	}
	edge := span{bar, style{faint: true}}
	return prefixLines(chopLine([]span{{expandTabs(line), s}}, width-len([]rune(bar))), edge, edge)
}

// renderLive returns the open block of the reply, at most so many lines of it, the last ones.
func (p *paper) renderLive(most int) [][]span {
	if of := fmt.Sprint(p.width, p.open, p.partial); of != p.tailOf {
		p.tail, p.tailOf = p.renderLeft(), of
	}
	return p.tail[max(0, len(p.tail)-most):]
}
