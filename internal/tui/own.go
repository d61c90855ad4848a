package tui

import (
	"context"

	tea "charm.land/bubbletea/v2"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/store"
)

// give has a person's own command run: with the same approval as the agent's, and without a model
// (spec 10.1).
func (m *model) give(typed string) tea.Cmd {
	command, _ := chat.CommandOf(typed)
	if command == "" {
		m.note(chat.NoCommand(m.Text))
		return nil
	}
	request := m.Request
	request.ClientID, request.SessionID, request.Command = regie.NewID().String(), m.session, command
	return m.inOrder(func(ctx context.Context) func() tea.Cmd {
		run, err := m.Control.Submit(ctx, request)
		return func() tea.Cmd {
			// it stays where it can be given again
			if regie.CodeOf(err) == regie.CodeRoundInProgress && m.draft.empty() && request.SessionID == m.session {
				m.runHint = m.Text.T("a run is open: the command stays here, to be given when it has ended")
				m.draft.set(typed)
				return nil
			}
			return m.sent(request.SessionID, typed, store.Reject, run, err)
		}
	})
}

// outcome shows what came of the person's own command, once its round has ended: they gave it to
// read that. What comes behind the end waits for it.
func (m *model) outcome(round regie.ID) tea.Cmd {
	own, session := m.own, m.session
	if m.own = (regie.ID{}); own.IsZero() {
		return nil
	}
	m.hold()
	return m.do(func(ctx context.Context) func() tea.Cmd {
		view, err := m.Control.Get(ctx, round)
		return func() tea.Cmd {
			switch {
			case session != m.session: // another chat has been taken up since
			case err != nil:
				m.stream.Came("")
				m.told(err)
			default:
				m.came(&view, own)
			}
			return m.release()
		}
	})
}

func (m *model) came(view *store.RoundView, own regie.ID) {
	defer func() { m.stream.Came("") }() // where nothing was found
	for i := range view.Exchanges {
		for k := range view.Exchanges[i].Calls {
			call := &view.Exchanges[i].Calls[k]
			if call.ID == own {
				m.stream.Came(call.Result)
			}
			if call.ID == own && chat.OwnOutcome(m.Text, call, m.note) {
				m.paper.space()
			}
		}
	}
}
