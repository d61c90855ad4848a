package tui

import (
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"

	"github.com/regie-run/regie/internal/plain"
)

// screen is what is known of the terminal.
type screen struct {
	width, height int
	ready         bool // the terminal has said its size
	said          tea.WindowSizeMsg
	colours       bool
	room, keys    int  // how many lines what is asked may have, and how many of them, the last ones, its keys have
	from, to      int  // of these lines what Enter would do: what is picked, or what is being written
	small         bool // what is asked has no room: no key decides anything
	drawn         []drawn
	stands        func() bool // whether the live part has been on the terminal; nil: there is none
}

// isDrawn reports whether the live part has been drawn. Before that the library takes it to be as
// high as the terminal, and what is printed above it would stand over what the terminal shows of
// other programs.
func (s *screen) isDrawn() bool { return s.stands == nil || s.stands() }

// drawn is the live part as it was given to the library, which draws it within a few milliseconds.
type drawn struct {
	lines          []string
	cursor, column int // where the cursor stands
	at             time.Time
}

// drew remembers what was given to be drawn, and what may still be on the terminal.
func (s *screen) drew(d drawn) {
	keep := 0
	for keep < len(s.drawn)-1 && d.at.Sub(s.drawn[keep+1].at) > settles {
		keep++
	}
	s.drawn = append(s.drawn[keep:], d)
}

// last is the live part as it was given to be drawn last.
func (s *screen) last() []string {
	if len(s.drawn) == 0 {
		return nil
	}
	return s.drawn[len(s.drawn)-1].lines
}

// settles is how long it may take until what is given to be drawn is on the terminal.
const settles = 100 * time.Millisecond

func newScreen(env []string) screen {
	return screen{width: 80, height: 24, colours: colorprofile.Env(env) >= colorprofile.ANSI}
}

func (s *screen) profile(msg tea.ColorProfileMsg) { s.colours = msg.Profile >= colorprofile.ANSI }

// printed says that the terminal has what was last written into its scrollback.
type printed struct{}

// redraw has the library draw all of the live part once more. Its own word for that, ClearScreen,
// leaves a movement of the cursor behind, which goes wrong where something is printed before it is
// made.
type redraw struct{}

// paper is the scrollback: what is written there is finished.
type paper struct {
	m        *model
	render   renderer
	cutter   cutter // the reply that streams in
	out      []string
	printing bool
	wrote    bool // something other than an empty line stands last
	inReply  bool // what stands last is of a reply
	// tail is the open block as it is shown, and what it was made from.
	tail       [][]span
	tailSource string
	tailWidth  int
}

// resized has lines made for a terminal of some columns. Its last one stays empty, as below what is
// printed: so what streams in stands as it will be printed.
func (p *paper) resized(width int) { p.render.width = width - 1 }

// margin is what a line is indented by, of what it would be where there is room.
func margin(indent, width int) int {
	if width < 30 {
		return min(indent, width/8)
	}
	return indent
}

// idle reports whether all is on the terminal.
func (p *paper) idle() bool { return len(p.out) == 0 && !p.printing }

// line adds a finished line.
func (p *paper) line(spans []span) {
	p.out = append(p.out, paint(trimmed(spans), p.m.screen.colours))
	p.wrote = len(spans) > 0
}

// space adds an empty line, unless one stands there.
func (p *paper) space() {
	if p.wrote {
		p.line(nil)
	}
}

// trimmed is a line without spaces at its end.
func trimmed(line []span) []span {
	for n := len(line); n > 0; n-- {
		last := line[n-1]
		if last.text = strings.TrimRight(last.text, " "); last.text != "" {
			out := append([]span{}, line[:n-1]...)
			return append(out, last)
		}
		line = line[:n-1]
	}
	return nil
}

// blocks writes finished blocks of a reply.
func (p *paper) blocks(blocks []block) {
	for _, b := range blocks {
		if !p.inReply || b.gap || b.kind == fence && b.first {
			p.space()
		}
		p.inReply = true
		for _, line := range p.render.lines(b) {
			p.line(line)
		}
	}
}

// flush finishes the reply, as far as it goes.
func (p *paper) flush() {
	p.blocks(p.cutter.end())
	p.render.forget()
}

// lookAgain is how soon it is looked again whether the live part stands.
const lookAgain = 5 * time.Millisecond

// print brings lines to the terminal, all that are there at once: one bundle after another, because
// what the library is told beside each other has no order.
func (m *model) print() tea.Cmd {
	p := &m.paper
	if p.printing || len(p.out) == 0 || !m.screen.ready {
		return nil
	}
	if p.printing = !m.screen.isDrawn(); p.printing {
		return tea.Tick(lookAgain, func(time.Time) tea.Msg { return printed{} })
	}
	bundle := strings.Join(p.out, "\n")
	p.out = nil
	if bundle == "" {
		bundle = "\x1b[m" // the library leaves out what is empty
	}
	p.printing = true
	return tea.Sequence(tea.Println(bundle), func() tea.Msg { return redraw{} }, func() tea.Msg { return printed{} })
}

// replies is where the text of replies is written.
type replies struct{ m *model }

// Write implements io.Writer.
func (w replies) Write(data []byte) (int, error) {
	w.m.paper.blocks(w.m.paper.cutter.add(string(data)))
	return len(data), nil
}

// maxSaid is how many lines of a person's message are shown, of a longer one the first and the
// last.
const maxSaid = 60

// notes is where all else is written, in whole lines.
type notes struct{ m *model }

// Write implements io.Writer.
func (w notes) Write(data []byte) (int, error) {
	p := &w.m.paper
	if !w.m.Stream.Telling() { // else it stands above the block that is open, which goes on below it
		p.flush()
	}
	text := strings.TrimSuffix(string(data), "\n")
	if p.inReply || strings.HasPrefix(text, "› ") {
		p.space()
		p.inReply = false
	}
	said := strings.HasPrefix(text, "› ")
	lines := strings.Split(text, "\n")
	if said && len(lines) > maxSaid { // the person knows what they pasted
		left := len(lines) - maxSaid
		lines = slices.Concat(lines[:maxSaid/2], []string{"  " + w.m.Text.T("… %d more lines", left)},
			lines[len(lines)-maxSaid/2:])
	}
	for _, line := range lines {
		for _, spans := range noted(plain.Strip(line), said, p.render.width) {
			p.line(spans)
		}
	}
	if said {
		p.space()
	}
	return len(data), nil
}

// noted is a line beside the replies as it is shown: by what it begins with. said says that it is a
// person's message.
func noted(line string, said bool, width int) [][]span {
	if said {
		return indentWrap(line, style{bold: true}, 2, width)
	}
	bare := strings.TrimLeft(line, " ")
	indent := margin(len(line)-len(bare), width)
	mark, rest, found := strings.Cut(bare, " ")
	var s style
	switch {
	case !found:
		mark, rest = "", bare
	case mark == "✓":
		s.fg = green
	case mark == "✗":
		s.fg = red
	case mark == "–", mark == "!", mark == "…":
		s.fg = yellow
	case mark == "→":
		s.fg = cyan
	case mark == "│":
		return diffLine(strings.Repeat(" ", indent)+"│ ", rest, width)
	default:
		mark, rest = "", bare
	}
	if mark == "" {
		return indentWrap(strings.Repeat(" ", min(indent, len(line)-len(bare)))+bare, style{}, indent, width)
	}
	var out [][]span
	for i, spans := range wrap([]span{{text: tabs(rest)}}, width-indent-2) {
		first := []span{{text: strings.Repeat(" ", indent)}, {mark + " ", s}}
		if i > 0 {
			first = []span{{text: strings.Repeat(" ", indent+2)}}
		}
		out = append(out, append(first, spans...))
	}
	return out
}

// indentWrap breaks a line; what follows its first piece is indented.
func indentWrap(line string, s style, indent, width int) [][]span {
	lines := wrap([]span{{tabs(line), s}}, width)
	if len(lines) == 1 {
		return lines
	}
	indent = min(indent, width/2)
	first := lines[0]
	var said strings.Builder
	for _, piece := range first {
		said.WriteString(piece.text)
	}
	rest := strings.TrimLeft(strings.TrimPrefix(tabs(line), said.String()), " ")
	out := [][]span{first}
	for _, more := range wrap([]span{{rest, s}}, width-indent) {
		out = append(out, append([]span{{text: strings.Repeat(" ", indent)}}, more...))
	}
	return out
}

// diffLine is a line of a diff, or of an output, behind its bar.
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
	var out [][]span
	for _, piece := range chop([]span{{tabs(line), s}}, width-len([]rune(bar))) {
		out = append(out, append([]span{{bar, style{faint: true}}}, piece...))
	}
	return out
}

// live is the open block of the reply, at most so many lines of it, the last ones.
func (p *paper) live(most int) [][]span {
	b, ok := p.cutter.left()
	if !ok {
		return nil
	}
	if key := b.lang + "\x00" + b.source; key != p.tailSource || p.render.width != p.tailWidth {
		p.tailSource, p.tailWidth = key, p.render.width
		p.tail, _ = p.render.draft(b)
	}
	return p.tail[max(0, len(p.tail)-most):]
}
