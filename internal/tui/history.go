package tui

import (
	"context"
	"slices"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/plain"
	"github.com/regie-run/regie/internal/store"
)

const (
	// maxSessions is of how many chats of the workspace the messages are read, beside this one's.
	maxSessions = 100
	// perSession is among how many messages of a chat, the newest ones, are those of the person
	// that are known.
	perSession = 1000
	// maxHistory bounds how many messages are known.
	maxHistory = 5000
)

// history is what the person has said: in this chat, and, once it is asked for, in others of the
// workspace. It comes from the store.
type history struct {
	list      []string // oldest first
	at        int      // how far back from the end; 0 is what is being written
	draft     editor
	asked     bool // other chats were asked for
	end       bool // they are known too
	searching bool
	query     editor
	found     int  // in list, or -1
	looked    int  // from where on was looked through
	wants     bool // what is looked for was not there
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

// back puts the message before into the prompt.
func (h *history) back(m *model) {
	h.older(m)
	h.begins(m)
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

// ends leaves what was said before. What was being written meanwhile stays known.
func (h *history) ends() {
	if h.at > 0 {
		h.add(h.draft.value())
	}
	h.at, h.draft = 0, editor{}
}

// load reads what was said in this chat.
func (h *history) load(m *model) {
	if m.Last.IsZero() {
		return
	}
	session := m.Session
	m.Do(chat.Beside, func(ctx context.Context) func() {
		said := saidIn(ctx, m.Control, session, perSession)
		return func() {
			for _, one := range said {
				h.add(one)
			}
			h.moved()
		}
	})
}

// begins reads what was said in other chats of the workspace, once it is asked for.
func (h *history) begins(m *model) {
	if h.asked || h.end {
		return
	}
	h.asked = true
	own, filter := m.Session, store.SessionFilter{Root: m.Request.Root, Type: regie.SessionChat, Limit: maxSessions}
	m.Do(chat.Beside, func(ctx context.Context) func() {
		sessions, err := m.Control.Sessions(ctx, filter)
		var said []string
		for i := range slices.Backward(sessions) {
			if sessions[i].ID != own {
				said = append(said, saidIn(ctx, m.Control, sessions[i].ID, perSession)...)
			}
		}
		return func() {
			h.asked, h.end = err == nil, err == nil
			if h.before(said); h.searching && h.wants {
				h.goOn(m)
			}
		}
	})
}

// before puts older messages in front of what is known. What is said again stands where it was said
// last.
func (h *history) before(said []string) {
	recent := h.list
	h.list = nil
	for _, one := range append(said, recent...) {
		h.add(one)
	}
	if h.found >= 0 {
		h.found = max(0, h.found+len(h.list)-len(recent))
	}
	h.looked = max(0, h.looked+len(h.list)-len(recent))
}

// goOn looks on in what was said before.
func (h *history) goOn(m *model) {
	h.wants = !h.look(h.looked)
	switch {
	case !h.wants:
		m.hint = ""
	case h.end:
		m.hint = m.Text.T("nothing older that was said here holds this")
	default:
		m.hint = m.Text.T("looking further back…")
	}
	h.begins(m)
}

// moved looks again, where messages of this chat have come that were read meanwhile: they stand
// elsewhere now.
func (h *history) moved() {
	if h.searching {
		h.look(len(h.list))
	}
}

// saidIn are the newest messages of the person in a session, oldest first, among so many of all.
// What cannot be read is left out: a history is a convenience.
func saidIn(ctx context.Context, control chat.Control, session regie.ID, among int) []string {
	var out []string
	messages, err := control.Messages(ctx, dispatch.MessagesRequest{SessionID: session, Before: 1 << 53, Limit: among})
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
	h.wants = !h.look(len(h.list))
}

// look finds the newest message before a place that holds what is looked for, and reports whether
// there is one.
func (h *history) look(before int) bool {
	wanted := strings.ToLower(h.query.value())
	for i := min(before, len(h.list)) - 1; i >= 0; i-- {
		if strings.Contains(strings.ToLower(h.list[i]), wanted) {
			h.found, h.looked = i, i
			return true
		}
	}
	if before >= len(h.list) {
		h.found = -1
	}
	h.looked = 0
	return false
}

func (h *history) key(m *model, name, typed string) {
	switch name {
	case "ctrl+r", "up":
		h.goOn(m)
		return
	case "esc", "ctrl+g":
		h.searching = false
	case "enter", "tab", "right":
		h.searching = false
		if h.found >= 0 && h.found < len(h.list) {
			found := h.list[h.found]
			h.ends()
			if written := m.draft.value(); !slices.Contains(h.list, strings.TrimSpace(written)) {
				h.add(written)
			}
			m.draft.set(found)
		}
	default:
		if !h.query.key(name) {
			m.fits(h.query.insert(typed))
		}
		h.looked = len(h.list)
		h.goOn(m)
		return
	}
}

// paste looks for what is pasted.
func (h *history) paste(m *model, s string) {
	s = strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
	if !h.query.insert(strings.Trim(s, "\n")) {
		m.fits(false)
		return
	}
	h.looked = len(h.list)
	h.goOn(m)
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
