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
	// pastSessions is of how many chats of the workspace the messages are read at once, beside this
	// one's; maxSessions of how many at most.
	pastSessions = 20
	maxSessions  = 400
	// perSession is among how many messages of a chat, the newest ones, are those of the person
	// that are known.
	perSession = 1000
	// maxHistory bounds how many messages are known.
	maxHistory = 5000
)

// history is what the person has said: in this chat, and, once it is asked for, in others of the
// workspace. It comes from the store.
type history struct {
	list  []string // oldest first
	at    int      // how far back from the end; 0 is what is being written
	draft editor
	// sessions is how many other chats are known too, the newest ones, and from where on: the place
	// of the oldest of them.
	sessions  int
	from      store.Mark
	atOnce    int  // how many are read at once
	reading   bool // more of them are being read
	end       bool // there are no more, or no more are read
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

// back puts the message before into the prompt, and reads what was said before the oldest one that
// is known.
func (h *history) back(m *model) {
	if h.older(m); h.at == len(h.list) {
		h.further(m)
		return
	}
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

// further reads what was said in the chats of the workspace before those that are known, some of
// them at a time.
func (h *history) further(m *model) {
	if h.reading || h.end {
		return
	}
	h.reading = true
	own := m.Session
	filter := store.SessionFilter{Root: m.Request.Root, Type: regie.SessionChat, Before: h.from, Limit: h.atOnce}
	m.Do(chat.Beside, func(ctx context.Context) func() {
		sessions, err := m.Control.Sessions(ctx, filter)
		var said []string
		for i := range slices.Backward(sessions) {
			if sessions[i].ID != own {
				said = append(said, saidIn(ctx, m.Control, sessions[i].ID, perSession)...)
			}
		}
		return func() {
			h.reading = false
			if err != nil {
				h.wants, m.hint = false, ""
				return
			}
			h.before(said)
			h.sessions += len(sessions)
			h.end = len(sessions) < h.atOnce || h.sessions >= maxSessions || len(h.list) >= maxHistory
			if len(sessions) > 0 {
				last := &sessions[len(sessions)-1]
				h.from = store.Mark{At: last.LastActivity, ID: last.ID}
			}
			if h.wants && h.searching {
				h.goOn(m)
				return
			}
		}
	})
}

// begins reads what was said in other chats, once it is asked for.
func (h *history) begins(m *model) {
	if h.sessions > 0 {
		return
	}
	h.further(m)
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

// goOn looks on in what was said before; where it is not there, further back is read.
func (h *history) goOn(m *model) {
	h.wants = !h.look(h.looked)
	switch {
	case !h.wants:
		m.hint = ""
		return
	case h.end && h.sessions >= maxSessions || len(h.list) >= maxHistory:
		m.hint = m.Text.T("nothing older is looked through than %s", h.from.At.Local().Format("2006-01-02 15:04"))
	case h.end:
		m.hint = m.Text.T("nothing older that was said here holds this")
	default:
		m.hint = m.Text.T("looking further back…")
	}
	h.further(m)
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
