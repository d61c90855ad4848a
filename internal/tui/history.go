package tui

import (
	"context"
	"slices"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/sanitize"
	"github.com/regie-run/regie/internal/store"
)

const (
	// maxSessions is of how many chats of the workspace the messages are read.
	maxSessions = 100
	// perSession is among how many messages of a chat, the newest ones, are those of the person
	// that are known.
	perSession = 1000
)

// history holds the person's messages and slash commands in this workspace. It loads them on first
// use.
type history struct {
	list      []string // oldest first
	at        int      // how far back from the end; 0 is what is being written
	draft     editor
	loaded    bool
	searching bool
	query     editor
	found     int // in list, or -1
}

// addEntry remembers what was said last.
func (h *history) addEntry(said string) {
	if said = strings.TrimSpace(said); said != "" {
		h.list = append(slices.DeleteFunc(h.list, func(s string) bool { return s == said }), said)
	}
}

// showOlder puts the message before into the prompt.
func (h *history) showOlder(m *model) {
	if h.at >= len(h.list) {
		return
	}
	if h.at == 0 {
		h.draft = m.draft
	}
	h.at++
	m.draft.replaceText(h.list[len(h.list)-h.at])
}

func (h *history) showNewer(m *model) {
	switch {
	case h.at > 1:
		h.at--
		m.draft.replaceText(h.list[len(h.list)-h.at])
	case h.at == 1:
		h.at = 0
		m.draft = h.draft
	}
}

// endBrowsing leaves what was said before. What was being written meanwhile stays known.
func (h *history) endBrowsing() {
	if h.at > 0 {
		h.addEntry(h.draft.fullText())
	}
	h.at, h.draft = 0, editor{}
}

// loadEntries loads the messages of the workspace's chats on first use, this chat's last, and then
// calls then. It skips unreadable chats: a history is a convenience.
func (h *history) loadEntries(m *model, then func()) {
	if h.loaded {
		then()
		return
	}
	h.loaded = true
	own, filter := m.Session, store.SessionFilter{Root: m.Request.Root, Type: regie.SessionChat, Limit: maxSessions}
	m.Do(chat.Beside, func(ctx context.Context) func() {
		sessions, _ := m.Control.Sessions(ctx, filter)
		ids := []regie.ID{own}
		for i := range sessions {
			if sessions[i].ID != own {
				ids = append(ids, sessions[i].ID)
			}
		}
		said := m.History.Typed(filter.Root)
		of := len(said) // from here on they are of this chat
		for _, id := range slices.Backward(ids) {
			of = len(said)
			in := dispatch.MessagesRequest{SessionID: id, Before: 1 << 53, Limit: perSession}
			messages, _ := m.Control.Messages(ctx, in)
			for i := range messages {
				if m := &messages[i].Message; m.Sender == regie.SenderUser && m.System == nil {
					said = append(said, chat.Typed{At: m.Time, Text: m.LinearText()})
				}
			}
		}
		slices.SortStableFunc(said[:of], func(a, b chat.Typed) int { return a.At.Compare(b.At) })
		return func() {
			recent := h.list
			h.list = nil
			for i := range said {
				h.addEntry(said[i].Text)
			}
			for _, one := range recent {
				h.addEntry(one)
			}
			then()
		}
	})
}

// startSearch begins to look back.
func (h *history) startSearch(m *model) {
	h.searching, h.query, h.found = true, editor{}, -1
	h.loadEntries(m, func() { h.findEntry(m, len(h.list)) })
}

// findEntry finds the newest message before a place that contains the query.
func (h *history) findEntry(m *model, before int) {
	wanted := strings.ToLower(h.query.fullText())
	for i := min(before, len(h.list)) - 1; i >= 0; i-- {
		if strings.Contains(strings.ToLower(h.list[i]), wanted) {
			h.found, m.hint = i, ""
			return
		}
	}
	if m.hint = m.Text.T("no older message here contains this"); before >= len(h.list) {
		h.found = -1
	}
}

func (h *history) handleKey(m *model, name, typed string) {
	switch name {
	case "ctrl+r", "up":
		h.findEntry(m, h.found)
	case "esc", "ctrl+g":
		h.searching = false
	case "enter", "tab", "right":
		h.searching = false
		if h.found >= 0 {
			found := h.list[h.found]
			h.endBrowsing()
			h.addEntry(m.draft.fullText())
			m.draft.replaceText(found)
		}
	default:
		if !h.query.handleKey(name) {
			h.query.insertText(typed)
		}
		h.findEntry(m, len(h.list))
	}
}

// render is the prompt while the person looks back.
func (h *history) render(m *model, width int) (lines [][]span, y, x int) {
	found := ""
	if h.found >= 0 {
		found = strings.Join(strings.Fields(sanitize.Line(h.list[h.found])), " ")
	}
	head := []span{{m.Text.T("search: "), style{fg: cyan}}, {text: sanitize.Line(h.query.fullText())}}
	return [][]span{head, {{"  " + truncateText(found, width-4), style{faint: found == ""}}}}, 0, widthOf(head)
}
