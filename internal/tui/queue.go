package tui

import (
	"context"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/dispatch"
)

// queue lists the messages that wait for their turn, or takes one of them back (decision 10).
func (m *model) queue(rest string) tea.Cmd {
	word, number, _ := strings.Cut(rest, " ")
	if word != "rm" && word != "edit" {
		for _, line := range chat.QueueLines(m.Text, m.stream.Queue()) {
			m.note(line)
		}
		return nil
	}
	q, ok := chat.FindQueued(m.stream.Queue(), strings.TrimSpace(number))
	if !ok {
		m.note(m.Text.T("there is no such message in the queue: /queue lists them"))
		return nil
	}
	return m.takeBack(q, word == "edit")
}

// takeBack takes a queued message back; edit puts it into the prompt, where nothing has been
// written there meanwhile. In order with what is sent: a message that is on its way is stored
// before.
func (m *model) takeBack(q chat.Queued, edit bool) tea.Cmd {
	if m.taking {
		return nil
	}
	m.taking = true
	m.stream.Taking(q.ID, true)
	session := m.session
	return m.inOrder(func(ctx context.Context) func() tea.Cmd {
		message, err := m.Control.TakeBack(ctx, dispatch.TakeBackRequest{SessionID: session, MessageID: q.ID})
		return func() tea.Cmd {
			m.taking = false
			if session != m.session {
				return nil
			}
			if err != nil {
				m.stream.Taking(q.ID, false)
				m.told(err)
				return nil
			}
			said := message.LinearText()
			edit = edit && m.draft.empty() && !m.hasField()
			m.stream.TakenBack(message.ID, said, edit)
			if edit {
				m.draft.set(said)
				m.history.at = 0
			}
			return nil
		}
	})
}
