package tui

import (
	"context"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/plain"
	"github.com/regie-run/regie/internal/store"
)

const (
	// pastSessions is of how many sessions of the workspace the messages are known, beside this one's.
	pastSessions = 20
	// maxHistory bounds how many messages are known.
	maxHistory = 2000
)

// history is what the person has said: in this chat, and, once it is asked for, in others of the workspace. It comes from the store.
type history struct {
	list      []string // oldest first
	at        int      // how far back from the end; 0 is what is being written
	draft     editor
	whole     bool // what was said in other chats is known too
	searching bool
	query     editor
	found     int // in list, or -1
}

// add remembers what was said last.
func (h *history) add(said string) {
	said = strings.TrimSpace(said)
	if said == "" {
		return
	}
	h.list = slices.DeleteFunc(h.list, func(s string) bool { return s == said })
	h.list = append(h.list, said)
	h.list = h.list[max(0, len(h.list)-maxHistory):]
}

// older puts the message before into the prompt.
func (h *history) older(m *model) {
	if h.at >= len(h.list) {
		return
	}
	if h.at == 0 {
		h.draft = m.draft
	}
	h.at++
	m.draft.set(h.list[len(h.list)-h.at])
}

func (h *history) newer(m *model) {
	switch {
	case h.at > 1:
		h.at--
		m.draft.set(h.list[len(h.list)-h.at])
	case h.at == 1:
		h.at = 0
		m.draft = h.draft
	}
}

// load reads what was said in this chat.
func (h *history) load(m *model) tea.Cmd {
	if m.last.IsZero() {
		return nil
	}
	session := m.session
	return m.do(func(ctx context.Context) func() tea.Cmd {
		said := saidIn(ctx, m.Control, session)
		return func() tea.Cmd {
			for _, one := range said {
				h.add(one)
			}
			h.moved()
			return nil
		}
	})
}

// everything reads, once, what was said in other chats of the workspace.
func (h *history) everything(m *model) tea.Cmd {
	if h.whole {
		return nil
	}
	h.whole = true
	root, own := m.Request.Root, m.session
	return m.do(func(ctx context.Context) func() tea.Cmd {
		sessions, err := m.Control.Sessions(ctx, store.SessionFilter{Root: root, Limit: pastSessions})
		if err != nil {
			return nil
		}
		var said []string
		for i := range slices.Backward(sessions) {
			if sessions[i].Type == regie.SessionChat && sessions[i].ID != own {
				said = append(said, saidIn(ctx, m.Control, sessions[i].ID)...)
			}
		}
		return func() tea.Cmd {
			recent := h.list
			at := h.at
			h.list = nil
			for _, one := range append(said, recent...) {
				h.add(one)
			}
			h.at = at
			h.moved()
			return nil
		}
	})
}

// moved looks again, where messages have come that were read meanwhile: they stand elsewhere now.
func (h *history) moved() {
	if h.searching {
		h.look(len(h.list))
	}
}

// saidIn are the person's messages of a session, oldest first. What cannot be read is left out: a history is a convenience.
func saidIn(ctx context.Context, control dispatch.Control, session regie.ID) []string {
	var out []string
	messages, err := control.Messages(ctx, dispatch.MessagesRequest{SessionID: session})
	if err != nil {
		return nil
	}
	for i := range messages {
		if m := &messages[i].Message; m.Sender == regie.SenderUser && m.System == nil {
			out = append(out, m.LinearText())
		}
	}
	return out
}

// search begins to look back.
func (h *history) search(*model) {
	h.searching, h.query = true, editor{}
	h.look(len(h.list))
}

// look finds the newest message before a place that holds what is looked for.
func (h *history) look(before int) {
	wanted := strings.ToLower(h.query.value())
	for i := min(before, len(h.list)) - 1; i >= 0; i-- {
		if strings.Contains(strings.ToLower(h.list[i]), wanted) {
			h.found = i
			return
		}
	}
	if before >= len(h.list) {
		h.found = -1
	}
}

func (h *history) key(m *model, name, typed string) tea.Cmd {
	switch name {
	case "ctrl+r", "up":
		h.look(h.found)
	case "esc", "ctrl+g":
		h.searching = false
	case "enter", "tab", "right":
		h.searching = false
		if h.found >= 0 && h.found < len(h.list) {
			m.draft.set(h.list[h.found])
			h.at = 0
		}
	default:
		if !h.query.key(name) {
			h.query.insert(typed)
		}
		h.look(len(h.list))
	}
	return nil
}

// view is the prompt while the person looks back.
func (h *history) view(m *model, width int) (lines [][]span, y, x int) {
	found := ""
	if h.found >= 0 && h.found < len(h.list) {
		found = strings.Join(strings.Fields(plain.Line(h.list[h.found])), " ")
	}
	label := m.Text.T("search: ")
	query := h.query.value()
	lines = [][]span{
		{{label, style{fg: cyan}}, {text: plain.Line(query)}},
		{{"  " + cut(found, width-4), style{faint: found == ""}}},
	}
	return lines, 0, wide([]span{{text: label + query}})
}
