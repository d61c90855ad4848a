package tui

import (
	"context"
	"strings"

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
		m.runBeside(work)
		return
	}
	m.holds++
	m.inOrder(func(ctx context.Context) func() {
		then := work(ctx)
		return func() {
			then()
			m.showHeld()
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
func (m surface) Separate() { m.paper.addSpace() }

// Reset implements chat.Renderer. What a message was about has gone; the message has not.
func (m surface) Reset() {
	m.paper.flushReply()
	m.work = work{}
	m.meter = newMeter()
	m.replaceDialog()
}

// TakenUp implements chat.Renderer.
func (m surface) TakenUp(past *chat.Past) {
	m.meter.takenUp(past)
	for _, event := range past.Events {
		body := chat.BodyOf(event)
		m.work.handleEvent(event, &body)
	}
	m.paper.flushReply()
	m.paper.addSpace()
	if !past.Last.IsZero() {
		measureRound(m.model, past.Last)
	}
}

// Settled implements chat.Renderer.
func (m surface) Settled() {
	switch m.dialog.(type) {
	case *approving, *questioning:
		m.closeOvertaken()
	}
}

// Sent implements chat.Renderer. What was not taken stays where it can be sent again.
func (m surface) Sent(o *chat.Outgoing, run dispatch.Run, err error) {
	switch {
	case o.Command && regie.CodeOf(err) == regie.CodeRoundInProgress && m.draft.isEmpty():
		m.hint = m.Text.T("a run is open: the command stays here until it has ended")
		m.draft.replaceText(o.Typed)
	case err != nil, o.Session != m.Session:
		m.ShowError(err)
		m.keepUnsent(o)
	case run.Answered:
		m.Note("› " + strings.ReplaceAll(o.Typed, "\n", "\n  "))
		m.Note(m.Text.T("taken as the answer"))
		if q, ok := m.dialog.(*questioning); ok {
			m.Later[q.asked.ID] = true // answered; the next request follows
			m.closeDialog()
			m.Due = m.Waiting()
		}
	case run.Pending && o.When == store.Steer:
		m.hint = m.Text.T("the agent gets it with its next step")
	}
}

// keepUnsent keeps what was not taken: a message in the prompt, a command too where it is one
// command there.
func (m surface) keepUnsent(o *chat.Outgoing) {
	if o.Command && !m.draft.isEmpty() {
		m.history.addEntry(o.Typed)
	} else {
		m.restorePrompt(o.Typed)
	}
}

// EditMessage implements chat.Renderer.
func (m surface) EditMessage(said string) bool {
	m.restorePrompt(said)
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

// ShowMode implements chat.Renderer: the status line has the mode.
func (m surface) ShowMode(name, about string) { m.hint = m.Text.T("mode %s: %s", name, about) }

// ClearScreen implements chat.Renderer.
func (m surface) ClearScreen() {
	m.paper.wrote, m.paper.inReply = false, false
	m.paper.out = append(m.paper.out, emptyScreen)
}

// Leave implements chat.Renderer: what runs stays as it is stored.
func (m *model) Leave() {
	if !m.leaving {
		m.leaving = true
		m.paper.flushReply()
		m.Farewell()
	}
}
