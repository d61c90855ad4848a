package tui

import (
	"context"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
)

// surface is a model as a chat.Renderer.
type surface struct{ *model }

// Do implements chat.Renderer.
func (m *model) Do(order chat.Order, work chat.Work) {
	if order == chat.Beside {
		m.beside(work)
		return
	}
	m.holds++
	m.inOrder(func(ctx context.Context) func() {
		then := work(ctx)
		return func() {
			then()
			m.release()
		}
	})
}

// ShowError implements chat.Renderer.
func (m *model) ShowError(err error) {
	if err != nil && m.ctx.Err() == nil {
		m.Note("✗ " + m.Text.Error(err))
	}
}

// Separate implements chat.Renderer.
func (m surface) Separate() { m.paper.space() }

// Reset implements chat.Renderer. What a message was about has gone; the message has not.
func (m surface) Reset() {
	m.paper.flush()
	m.work = work{}
	m.meter = newMeter()
	m.replaceDialog()
}

// TakenUp implements chat.Renderer.
func (m surface) TakenUp(past *chat.Past) {
	m.meter.takenUp(past)
	for _, event := range past.Events {
		body := chat.BodyOf(event)
		m.work.event(event, &body)
	}
	m.paper.flush()
	m.paper.space()
	if !past.Last.IsZero() {
		measure(m.model, past.Last)
	}
}

// Settled implements chat.Renderer.
func (m surface) Settled() {
	switch m.dialog.(type) {
	case *approving, *questioning:
		m.overtaken()
	}
}

// Sent implements chat.Renderer. What was not taken stays where it can be sent again.
func (m surface) Sent(o *chat.Outgoing, run dispatch.Run, err error) {
	switch {
	case o.Command && regie.CodeOf(err) == regie.CodeRoundInProgress && m.draft.empty():
		m.hint = m.Text.T("a run is open: the command stays here, to be given when it has ended")
		m.draft.set(o.Typed)
	case err != nil, o.Session != m.Session:
		m.ShowError(err)
		m.unsent(o)
	case run.Answered:
		m.Note("› " + strings.ReplaceAll(o.Typed, "\n", "\n  "))
		m.Note(m.Text.T("taken as the answer"))
		if q, ok := m.dialog.(*questioning); ok {
			m.Later[q.asked.ID] = true // it is answered; what else waits is asked
			m.closeDialog()
			m.Due = m.Waiting()
		}
	case run.Pending && o.When == store.Steer:
		m.hint = m.Text.T("the agent gets it with its next step")
	}
}

// unsent keeps what was not taken: a message in the prompt, a command too where it is one command
// there.
func (m surface) unsent(o *chat.Outgoing) {
	if o.Command && !m.draft.empty() {
		m.history.add(o.Typed)
	} else {
		m.back(o.Typed)
	}
}

// EditMessage implements chat.Renderer.
func (m surface) EditMessage(said string) bool {
	m.back(said)
	return true
}

// Choose implements chat.Renderer.
func (m surface) Choose(choice *chat.Choice) {
	m.replaceDialog()
	m.openNow(&picking{Choice: choice})
}

// Confirm implements chat.Renderer.
func (m surface) Confirm(said string, keys []chat.Key) {
	m.replaceDialog()
	m.openNow(&confirming{said, keys})
}

// ClearScreen implements chat.Renderer.
func (m surface) ClearScreen() {
	m.paper.wrote, m.paper.inReply = false, false
	m.run(tea.Sequence(tea.Raw(strings.Repeat("\r\n", m.screen.height)+"\x1b[H"), tea.ClearScreen))
}

// Leave implements chat.Renderer: what runs stays as it is stored.
func (m *model) Leave() {
	if !m.leaving {
		m.leaving = true
		m.paper.flush()
		m.Farewell()
	}
}
