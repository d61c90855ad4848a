package tui

import (
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/regie-run/regie/internal/chat"
)

// dialog asks the person something; it has the keyboard while it is armed.
type dialog interface {
	// render returns the dialog's lines, without its keys.
	render(m *model) [][]span
	// dialogKeys returns the keys that answer; busy says that an answer is on its way.
	dialogKeys(m *model) (list []chat.Key, busy bool)
	// inputField returns the field that the person writes in, or nil.
	inputField() *editor
}

// focus says who has the keyboard: the prompt or a dialog.
type focus struct {
	dialog dialog
	armed  bool // the dialog takes keys
	letter letter
	typed  time.Time // when something was typed last
}

// letter is a key of a dialog that waits whether another one follows.
type letter struct {
	name   string
	serial int
}

// aloneFor is how long a letter must stay the only one before it decides: a second letter makes it
// the start of a message.
const aloneFor = 300 * time.Millisecond

func (f *focus) openDialog(d dialog) { f.dialog, f.armed = d, false }

func (f *focus) closeDialog() { f.dialog, f.armed, f.letter.name = nil, false, "" }

// askAgain has what was just written read before a key answers: as where a dialog opens, the
// keyboard is the prompt's for a moment.
func (f *focus) askAgain() { f.armed, f.letter.name, f.typed = false, "", time.Now() }

// hasField reports whether a dialog has the keyboard: then the cursor is not in the prompt.
func (f *focus) hasField() bool { return f.dialog != nil && f.armed }

// answerKey gives a key to the dialog, a letter after a delay. Any other letter begins a message:
// Enter after it sends the message and does not answer the dialog. Enter right after a letter only
// ends its delay, because its effect was not visible yet.
func (m *model) answerKey(name, typed string) {
	field, is := m.dialog.inputField(), m.keyNamed(name) != nil
	switch waits := m.letter.name; {
	case waits != "" && typed != "":
		m.takeWords(waits + typed)
	case waits != "":
		if m.letterStands(m.letter.serial); name != "enter" && m.hasField() {
			m.answerKey(name, typed)
		}
	case is && len(typed) == 1 && unicode.IsLetter(rune(typed[0])):
		m.letter = letter{name, m.letter.serial + 1}
		serial := m.letter.serial
		m.queueCommand(delayCommand(aloneFor, func() { m.letterStands(serial) }))
	case is:
		m.decideByKey(name)
	case field != nil:
		if !field.handleKey(name) {
			field.insertText(typed)
		}
	case strings.TrimSpace(typed) != "":
		m.takeWords(typed)
	}
}

// keyNamed returns a key of the dialog, nil where it has none of that name.
func (m *model) keyNamed(name string) func() {
	list, busy := m.dialog.dialogKeys(m)
	key := chat.FindKey(list, name)
	switch {
	case key == nil:
		return nil
	case busy:
		return func() {}
	default:
		return key.Do
	}
}

// decideByKey runs a key of the dialog if its effect is visible.
func (m *model) decideByKey(name string) {
	if do := m.keyNamed(name); do != nil && (!m.screen.small || name == "esc") {
		do()
	}
}

// takeWords starts a message with the typed text, unless the text answers a question.
func (m *model) takeWords(typed string) {
	m.letter.name = ""
	if q, ok := m.dialog.(*questioning); ok && q.takesWords(typed) {
		q.writes = true
		q.text.insertText(typed)
		return
	}
	m.armed, m.typed = false, time.Now()
	m.draft.insertText(typed)
	m.popup.updateOffers(m)
}

// letterStands has the letter decide, unless something was typed behind it.
func (m *model) letterStands(serial int) {
	name := m.letter.name
	if name == "" || m.letter.serial != serial {
		return
	}
	m.letter.name = ""
	if m.hasField() {
		m.decideByKey(name)
	}
}

// closeOvertaken closes a dialog that was settled elsewhere. It keeps the written text in the
// history, for the Up key.
func (m *model) closeOvertaken() {
	if field := m.dialog.inputField(); field != nil {
		m.history.addEntry(field.fullText())
	}
	m.closeDialog()
}

// renderDialog returns the dialog in at most most lines. If it does not fit, its keys decide
// nothing.
func (m *model) renderDialog(most int) [][]span {
	m.screen.small = false
	if !m.hasField() {
		return nil
	}
	list, _ := m.dialog.dialogKeys(m)
	lines := append(m.dialog.render(m), keyLines(list, m.screen.width-2)...)
	if m.screen.small = len(lines) > most; m.screen.small {
		return [][]span{{{m.Text.T("too small to answer: make the terminal larger, or %s", m.Text.T("[Esc]")), style{fg: yellow}}}}
	}
	return lines
}

// keyLines returns what can be pressed, on as many lines as it needs; a key stays on its line.
func keyLines(list []chat.Key, width int) [][]span {
	const bound = "\u00a0"
	var line []span
	for _, k := range list {
		if mark, rest, found := strings.Cut(k.Label, " "); k.Label != "" {
			line = append(line, span{mark, style{fg: cyan}})
			if found {
				line = append(line, span{text: bound + strings.ReplaceAll(rest, " ", bound)})
			}
			line = append(line, span{text: "  "})
		}
	}
	lines := wrapSpans(line, width-2)
	for _, line := range lines {
		for i := range line {
			line[i].text = strings.ReplaceAll(line[i].text, bound, " ")
		}
	}
	return prefixLines(lines, span{text: "  "}, span{text: "  "})
}

// renderQuestion returns the question at the head of a dialog, on at most a fifth of the screen.
// The whole text is in the scrollback above.
func (s *screen) renderQuestion(said string) [][]span {
	bold := style{bold: true}
	lines := wrapSpans([]span{{said, bold}}, s.width-4)
	if most := max(1, s.height/5); len(lines) > most {
		lines = append(lines[:most-1], append(lines[most-1], span{"…", bold}))
	}
	return prefixLines(lines, span{"? ", style{fg: yellow, bold: true}}, span{text: "  "})
}

// renderChoices returns several things to choose from, as many around the one that is picked as
// have room.
func (s *screen) renderChoices(options []string, picked int) (lines [][]span) {
	most := max(3, s.height/2)
	from := min(max(0, picked-most/2), max(0, len(options)-most))
	for i := from; i < min(len(options), from+most); i++ {
		mark := span{text: "    "}
		if i == picked {
			mark = span{"  ▸ ", style{bold: true, fg: cyan}}
		}
		option := wrapSpans([]span{{options[i], mark.style}}, s.width-9)
		lines = append(lines, prefixLines(option, mark, span{text: "       "})...)
	}
	return lines
}

// pickKeys returns the keys that move the pick: the arrows and, if numbered is not nil, 1 to 9,
// which also call it.
func pickKeys(picked *int, n int, numbered func()) []chat.Key {
	list := []chat.Key{
		{Names: "up ctrl+p", Do: func() { *picked = max(0, *picked-1) }},
		{Names: "down ctrl+n", Do: func() { *picked = max(0, min(n-1, *picked+1)) }},
	}
	for i := range min(n, 9) {
		if numbered != nil {
			list = append(list, chat.Key{Names: strconv.Itoa(i + 1), Do: func() {
				*picked = i
				numbered()
			}})
		}
	}
	return list
}

// renderWritten returns the text being written into a dialog, with its cursor.
func (m *model) renderWritten(e *editor, mark span) (lines [][]span) {
	rows, _, _ := e.wrapRows(m.screen.width-6, m.describePaste)
	for _, r := range rows {
		lines = append(lines, []span{mark, {text: r.text}})
	}
	last := len(lines) - 1
	lines[last] = append(lines[last], span{" ", style{reverse: true}})
	return lines
}
