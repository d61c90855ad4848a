package tui

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/sanitize"
)

// promptMark precedes the person's text.
const promptMark = "› "

// narrow is how many columns a terminal has at least for a key to be seen.
const narrow = 9

// View implements tea.Model: the live part, which never fills the screen.
func (m *model) View() tea.View {
	if !m.screen.ready || m.leaving && m.screen.isDrawn() {
		m.screen.rememberDrawn(drawn{at: time.Now()})
		return tea.NewView("")
	}
	if m.screen.lent {
		m.screen.rememberDrawn(drawn{lines: []string{""}, at: time.Now()})
		return tea.NewView(" ")
	}
	width, room := m.screen.width, m.screen.height-1
	input, y, x := m.renderInput(width, max(1, room/2))
	below := m.renderBelow(width, max(1, room-len(input)))
	room -= len(input) + len(below) + 1
	asked := m.renderDialog(max(room, 1))
	room -= len(asked)
	queue := m.renderQueued(width)
	queue = queue[:min(len(queue), max(room/2, 0))]
	room -= len(queue)
	working := m.work.renderLines(m, max(0, room/2))
	room -= len(working)
	live := m.paper.renderLive(max(0, min(room-1, m.screen.height*2/3)))
	above := slices.Concat(live, working, queue)
	if len(live) > 0 && m.paper.wrote {
		above = append([][]span{nil}, above...)
	}
	if len(above) > 0 || m.paper.wrote {
		above = append(above, nil)
	}
	above = append(above, asked...)
	y += len(above)
	lines := slices.Concat(above, input, below)
	out := make([]string, len(lines))
	for i, line := range lines {
		out[i] = truncateText(paintLine(line, m.screen.colours), width-1)
	}
	m.screen.rememberDrawn(drawn{out, y, x, time.Now()})
	v := tea.NewView(strings.Join(out, "\n"))
	if !m.hasField() {
		v.Cursor = tea.NewCursor(min(x, width-1), y)
		v.Cursor.Blink = false
	}
	if v.WindowTitle = "regie · " + sanitize.Line(filepath.Base(m.Request.Root)); m.Waiting() {
		v.WindowTitle = "? " + v.WindowTitle
	}
	return v
}

// renderInput returns the prompt with the written text, at most most lines around the cursor.
func (m *model) renderInput(width, most int) (lines [][]span, y, x int) {
	if m.history.searching {
		return m.history.render(m, width)
	}
	rows, y, x := m.draft.wrapRows(width-3, m.describePaste)
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

// describePaste returns the label of a paste.
func (m *model) describePaste(paste string) string {
	return "[" + m.Text.T("pasted: %d lines", strings.Count(strings.TrimRight(paste, "\n"), "\n")+1) + "]"
}

// renderBelow returns at most most lines below the prompt: the completions, then the status.
func (m *model) renderBelow(width, most int) [][]span {
	lines := m.popup.render(m, width, most)
	if hint := cmp.Or(m.hint, m.Asking); hint != "" {
		lines = append(lines, []span{{"  " + truncateText(sanitize.Line(hint), width-3), style{fg: yellow}}})
	}
	lines = append(lines, m.renderStatus(width))
	return lines[:min(len(lines), most)]
}

// renderQueued returns the messages that wait for their turn.
func (m *model) renderQueued(width int) (out [][]span) {
	queue := m.Queue()
	for i, q := range queue {
		state := []span{{"  " + m.Text.T("queued"), style{fg: yellow}}}
		if i == len(queue)-1 && width >= 60 {
			state = append(state, span{"  " + m.Text.T("Up takes it back"), style{faint: true}})
		}
		text := strings.Join(strings.Fields(sanitize.Line(q.Text)), " ")
		text = truncateText(text, max(8, width-8-widthOf(state)))
		out = append(out, append([]span{{text: "  ⏳ "}, {text, style{faint: true}}}, state...))
	}
	return out
}

// renderStatus returns the status line: the activity, the model, the fill of its context, the cost.
func (m *model) renderStatus(width int) []span {
	parts := [][]span{m.describeActivity()}
	add := func(s string) {
		if s != "" {
			parts = append(parts, []span{{s, style{faint: true}}})
		}
	}
	if m.Mode != "" && m.Mode != regie.ModeAsk {
		name, _ := chat.ModeWords(m.Text, m.Mode)
		parts = append(parts, []span{{m.Text.T("mode %s", name), style{fg: cyan, bold: true}}})
	}
	add(sanitize.Line(nextModel(m)))
	if m.Request.Agent != "main" {
		add(sanitize.Line(m.Request.Agent))
	}
	add(m.meter.describeContext(m))
	add(m.meter.describeCost(m))
	if n := len(m.Queue()); n > 0 {
		add(m.Text.T("queued: %d", n))
	}
	out := []span{{text: "  "}}
	for i, part := range parts {
		if i > 0 {
			part = append([]span{{" · ", style{faint: true}}}, part...)
		}
		if i > 0 && widthOf(out)+widthOf(part) > width-1 { // the activity is always shown, as far as it fits
			break
		}
		out = append(out, part...)
	}
	return out
}

// describeActivity returns the current activity and the key that affects it.
func (m *model) describeActivity() []span {
	faint, look := style{faint: true}, style{fg: yellow}
	since := ""
	if !m.Began.IsZero() {
		since = " " + formatElapsed(time.Since(m.Began))
	}
	t := m.Text
	words := map[regie.SessionState][2]string{
		regie.SessionActive:            {t.T("working") + since, t.T("Esc interrupts")},
		regie.SessionQueued:            {t.T("waits for a slot")},
		regie.SessionWaitingValidation: {t.T("waits for your answer"), m.answerHint()},
		regie.SessionWaitingResponse:   {t.T("waits for your answer"), m.answerHint()},
		regie.SessionWaitingNetwork:    {t.T("waits for the network")},
		regie.SessionWaitingProvider:   {t.T("waits for the settings of its provider")},
		regie.SessionWaitingTask:       {t.T("waits for a task")},
		regie.SessionPaused:            {t.T("paused"), t.T("/resume goes on")},
		regie.SessionClosed:            {t.T("closed")},
		regie.SessionIdle:              {t.T("ready"), t.T("/help")},
	}[m.State]
	look.bold = m.Waiting()
	switch {
	case m.once:
		words = [2]string{t.T("Ctrl-C once more leaves")}
	case m.Interrupting:
		words = [2]string{t.T("interrupting… (once more to leave it as it is)")}
	case m.Stop == regie.StopPause && m.State != regie.SessionPaused:
		words = [2]string{t.T("pausing…")}
	case m.State == regie.SessionActive && m.silent > 0:
		words = [2]string{t.T("the model has not answered for %d s", m.silent), t.T("Esc stops")}
	case m.State == regie.SessionIdle, m.State == regie.SessionClosed:
		look = faint
	}
	if words[1] == "" {
		return []span{{words[0], look}}
	}
	return []span{{words[0], look}, {"  " + words[1], faint}}
}

// answerHint returns the key for the open request.
func (m *model) answerHint() string {
	switch t := m.Text; {
	case !m.armed && !m.draft.isEmpty():
		return t.T("Tab answers, Enter sends what you write instead")
	case m.dialog == nil:
		return t.T("Tab shows it")
	default:
		return ""
	}
}
