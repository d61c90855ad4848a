package tui

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/plain"
)

// promptMark stands before what the person writes.
const promptMark = "› "

// tiny is how many lines a terminal has at least for all of the live part to have its place.
const tiny = 10

// narrow is how many columns a terminal has at least for a key to be seen.
const narrow = 9

// choices is how many things to choose from are shown together, so that what is picked is seen in
// the smallest terminal too.
func (s *screen) choices(most int) int {
	return max(1, min(most, s.height-6))
}

// View implements tea.Model: the live part, which never fills the screen.
func (m *model) View() tea.View {
	if !m.screen.ready || m.leaving && m.screen.isDrawn() {
		m.screen.drew(drawn{at: time.Now()})
		return tea.NewView("")
	}
	width, room := m.screen.width, m.screen.height-1
	input, y, x := m.input(width, max(1, room/2))
	below := m.below(width, max(1, room-len(input)))
	gap := 1
	// what is asked goes before the prompt, which has not the keyboard, and before the empty line
	if m.screen.height < tiny {
		gap = 0
		if m.hasField() {
			input, y, x = nil, 0, 0
		}
	}
	room -= len(input) + gap
	asked, fits := m.asked(max(room-len(below), 0))
	if !fits && m.screen.height < tiny {
		below = nil
		asked, _ = m.asked(max(room, 0))
	}
	room -= len(below) + len(asked)
	queue := m.queued(width)
	queue = queue[:min(len(queue), max(room/2, 0))]
	room -= len(queue)
	working := m.work.lines(m, max(0, room/2))
	room -= len(working)
	live := m.paper.live(max(0, min(room-1, m.screen.height*2/3)))
	var lines [][]span
	if len(live) > 0 && m.paper.wrote {
		lines = append(lines, nil)
	}
	lines = append(lines, live...)
	lines = append(lines, working...)
	lines = append(lines, queue...)
	if gap > 0 && (len(lines) > 0 || m.paper.wrote) {
		lines = append(lines, nil)
	}
	lines = append(lines, asked...)
	y += len(lines)
	lines = append(lines, input...)
	lines = append(lines, below...)
	out := make([]string, len(lines))
	for i, line := range lines {
		out[i] = cut(paint(line, m.screen.colours), width-1)
	}
	m.screen.drew(drawn{out, y, x, time.Now()})
	v := tea.NewView(strings.Join(out, "\n"))
	if !m.hasField() {
		v.Cursor = tea.NewCursor(min(x, width-1), y)
		v.Cursor.Blink = false
	}
	v.ReportFocus = true
	v.WindowTitle = m.title()
	return v
}

// asked is what a dialog asks, in at most so many lines, and whether all of it fits. What Enter
// would do comes before all else, then the keys; where not even that has its place, no key decides
// anything.
func (m *model) asked(most int) (lines [][]span, fits bool) {
	m.screen.small = false
	if m.dialog == nil || !m.armed {
		return nil, true
	}
	m.screen.room, m.screen.keys, m.screen.from, m.screen.to = most, 0, 0, 0
	lines = m.dialog.view(m)
	picked := m.screen.to - m.screen.from
	if m.screen.said.Width < narrow || picked > most || most == 0 {
		m.screen.small = true
		return m.tooSmall(most), false
	}
	if len(lines) <= most {
		return lines, true
	}
	body, keys := lines[:len(lines)-m.screen.keys], lines[len(lines)-m.screen.keys:]
	keys = keys[:min(len(keys), most-picked)]
	room := min(most-len(keys), len(body))
	from := max(0, m.screen.to-room)
	body = body[from : from+room]
	if len(keys) == 0 && picked > 0 {
		body[len(body)-1] = m.screen.keysBehind(body[len(body)-1], lines[len(lines)-m.screen.keys:])
	}
	return slices.Concat(body, keys), false
}

// keysBehind puts as many keys as fit behind the last line of what is picked, where they have no
// line of their own.
func (s *screen) keysBehind(line []span, keys [][]span) []span {
	for _, key := range slices.Concat(keys...) {
		more := append(slices.Clip(line), span{text: " "}, span{strings.TrimSpace(key.text), key.style})
		if wide(more) > s.width-1 {
			break
		}
		line = more
	}
	return line
}

// tooSmall says, in at most so many lines, that what is asked has no room, and the keys that there
// are then: as much of it as fits.
func (m *model) tooSmall(most int) (lines [][]span) {
	esc := m.Text.T("[Esc]")
	for _, said := range []string{
		m.Text.T("too small to answer: make the terminal larger, or %s", esc),
		m.Text.T("too small: %s", esc), esc,
	} {
		lines = wrap([]span{{said, style{fg: yellow}}}, m.screen.said.Width-1)
		if len(lines) <= most {
			break
		}
	}
	return lines[:min(len(lines), max(most, 1))]
}

// input is the prompt with what the person writes, at most so many lines around the cursor.
func (m *model) input(width, most int) (lines [][]span, y, x int) {
	if m.history.searching {
		return m.history.view(m, width)
	}
	rows, y, x := m.draft.rows(width-3, m.pasted)
	from := 0
	if len(rows) > most {
		from = min(max(0, y-most/2), len(rows)-most)
		rows = rows[from : from+most]
	}
	mark := style{bold: true, fg: cyan}
	if m.hasField() {
		mark = style{faint: true}
	}
	for i, r := range rows {
		before := "  "
		if i+from == 0 {
			before = promptMark
		}
		lines = append(lines, []span{{before, mark}, {r.text, style{}}})
	}
	return lines, y - from, x + 2
}

// pasted is what a paste is shown as.
func (m *model) pasted(paste string) string {
	return "[" + m.Text.T("pasted: %d lines", strings.Count(strings.TrimRight(paste, "\n"), "\n")+1) + "]"
}

// below is what stands under the prompt, in at most so many lines: what can be completed, before
// the status.
func (m *model) below(width, most int) [][]span {
	if m.history.searching && m.screen.height <= 3 { // what is found has the place
		return nil
	}
	lines := m.popup.view(m, width, most)
	hint := cmp.Or(m.hint, m.Asking)
	if hint == "" && !m.Round.IsZero() {
		hint = m.runHint
	}
	if hint != "" {
		lines = append(lines, []span{{"  " + cut(plain.Line(hint), width-3), style{fg: yellow}}})
	}
	lines = append(lines, m.status(width))
	return lines[:min(len(lines), most)]
}

// queued are the messages that wait for their turn.
func (m *model) queued(width int) [][]span {
	var out [][]span
	queue := m.Queue()
	for i, q := range queue {
		text := strings.Join(strings.Fields(plain.Line(q.Text)), " ")
		state := []span{{"  " + m.Text.T("queued"), style{fg: yellow}}}
		if i == len(queue)-1 && width >= 60 {
			state = append(state, span{"  " + m.Text.T("Up takes it back"), style{faint: true}})
		}
		out = append(out, append([]span{{"  ⏳ ", style{}}, {
			cut(text, max(8, width-8-wide(state))),
			style{faint: true},
		}}, state...))
	}
	return out
}

// status is the line at the bottom: what the agent does, the model, how full its context is, what
// it costs.
func (m *model) status(width int) []span {
	parts := [][]span{m.doing()}
	add := func(s string) {
		if s != "" {
			parts = append(parts, []span{{s, style{faint: true}}})
		}
	}
	_, answers := m.answers()
	add(plain.Line(answers))
	if m.Request.Agent != "main" {
		add(plain.Line(m.Request.Agent))
	}
	add(m.meter.context(m))
	add(m.meter.cost(m))
	if n := len(m.Queue()); n > 0 {
		add(m.Text.T("queued: %d", n))
	}
	out := []span{{text: "  "}}
	used := 2
	for _, part := range parts {
		n := wide(part)
		if used > 2 {
			n += 3
		}
		if used > 2 && used+n > width-1 { // what happens is said in any case, as far as it fits
			break
		}
		if used > 2 {
			out = append(out, span{" · ", style{faint: true}})
		}
		out, used = append(out, part...), used+n
	}
	return out
}

// doing is what happens now, and what a key does about it.
func (m *model) doing() []span {
	faint, look := style{faint: true}, style{fg: yellow}
	since := ""
	if !m.Began.IsZero() {
		since = " " + elapsed(max(0, time.Since(m.Began)))
	}
	t := m.Text
	var said, key string
	switch {
	case m.once:
		said = t.T("Ctrl-C once more leaves")
	case m.Interrupting:
		said = t.T("interrupting… (once more to leave it as it is)")
	case m.Stop == regie.StopPause && m.State != regie.SessionPaused:
		said = t.T("pausing…")
	case m.State == regie.SessionActive && m.silent > 0:
		said, key = t.T("the model has not answered for %d s", m.silent), t.T("Esc stops")
	case m.State == regie.SessionActive:
		said, key = t.T("working")+since, t.T("Esc interrupts")
	case m.State == regie.SessionQueued && m.Place > 0:
		said = t.T("waits for a slot, place %d", m.Place)
	case m.State == regie.SessionQueued:
		said = t.T("waits for a slot")
	case m.Waiting():
		said, key, look.bold = t.T("waits for your answer"), m.answerHint(), true
	case m.State == regie.SessionWaitingNetwork:
		said = t.T("waits for the network")
	case m.State == regie.SessionWaitingProvider:
		said = t.T("waits for the settings of its provider")
	case m.State == regie.SessionWaitingTask:
		said = t.T("waits for a task")
	case m.State == regie.SessionPaused:
		said, key = t.T("paused"), t.T("/resume goes on")
	case m.State == regie.SessionClosed:
		said, look = t.T("closed"), faint
	default:
		said, key, look = t.T("ready"), t.T("/help"), faint
	}
	if key == "" {
		return []span{{said, look}}
	}
	return []span{{said, look}, {"  " + key, faint}}
}

// answerHint is what a key does about what waits for the person.
func (m *model) answerHint() string {
	switch t := m.Text; {
	case m.history.searching:
		return t.T("Esc ends the search")
	case m.Due && m.opened():
		return t.T("Esc shows it")
	case !m.armed && !m.draft.empty():
		return t.T("Tab answers, Enter sends what you write instead")
	case m.dialog == nil:
		return t.T("Tab shows it")
	default:
		return ""
	}
}

// title is the window's.
func (m *model) title() string {
	mark := ""
	switch {
	case m.Waiting():
		mark = "? "
	case m.Busy():
		mark = "… "
	}
	return mark + "regie · " + plain.Line(filepath.Base(m.Request.Root))
}
