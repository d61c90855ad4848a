package tui

import (
	"strings"
)

// ShowHelp implements chat.Renderer.
func (m surface) ShowHelp() {
	t := m.Text
	m.paper.addSpace()
	for _, c := range m.SlashCommands() {
		m.helpLine(c.Name, c.About)
	}
	m.paper.addSpace()
	for _, row := range [][2]string{
		{"Enter", t.T("send; while the agent works it is queued")},
		{"Alt-Enter", t.T("new line, like Shift-Enter and Ctrl-J")},
		{"@path", t.T("the file or directory is read and sent with the message")},
		{"!command", t.T("run a command yourself, with the approval that the agent's need")},
		{"Esc", t.T("interrupt the run; twice clears what you wrote")},
		{"Ctrl-C", t.T("clear, interrupt; twice leaves")},
		{"Ctrl-D", t.T("leave, at an empty prompt")},
		{"Ctrl-Z", t.T("suspend, where regie serve or another program is the engine")},
		{"Ctrl-R", t.T("search in what you have said; Up and Down go through it")},
		{"Up", t.T("at an empty prompt: take the last queued message back, to edit it")},
		{"Ctrl-O", t.T("show the newest call whole")},
		{"Shift-Tab", t.T("the next mode, of what runs without asking; /mode lists them")},
		{"Tab", t.T("complete; show again what waits for you")},
	} {
		m.helpLine(row[0], row[1])
	}
	m.paper.addSpace()
}

// helpLine writes what can be typed or pressed, and behind it what that does.
func (m surface) helpLine(name, about string) {
	const column = 15
	before := span{"  " + name + strings.Repeat(" ", max(1, column-2-len(name))), style{fg: cyan}}
	for _, line := range prefixLines(wrapSpans([]span{{text: about}}, m.screen.width-column-1), before,
		span{text: strings.Repeat(" ", column)}) {
		m.paper.addLine(line)
	}
}
