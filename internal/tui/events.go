package tui

import (
	"encoding/json"
	"os"
	"syscall"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/dispatch"
)

const (
	// together is how long what streams in is collected before it is shown: the eye sees no
	// difference, and typing stays quick.
	together = 20 * time.Millisecond
	// shownRounds is how many messages with their answers are shown before one goes on.
	shownRounds = 10
)

// items are some of what happens in the session that a feed follows.
type items struct {
	list []dispatch.Item
	feed *chat.Feed
}

// readFeed begins to read the feed where the conversation has another one.
func (m *model) readFeed() {
	if m.Feed != m.reading && m.Feed != nil {
		m.queueCommand(m.handleNext())
	}
	m.reading = m.Feed
}

// handleNext takes what happens next, with what follows at once.
func (m *model) handleNext() tea.Cmd {
	feed := m.Feed
	return func() tea.Msg {
		var list []dispatch.Item
		select {
		case item := <-feed.Items:
			list = append(list, item)
		case err := <-feed.Ended:
			return done(func() {
				if feed == m.Feed && m.ctx.Err() == nil && !m.leaving {
					m.err, m.leaving = err, true
				}
			})
		}
		timer := time.After(together)
		for {
			select {
			case item := <-feed.Items:
				list = append(list, item)
			case <-timer:
				return items{list, feed}
			}
		}
	}
}

// showHeld handles the items that were held back until the person's message was shown above them.
func (m *model) showHeld() {
	if m.holds--; m.holds == 0 && m.held != nil {
		m.handleItems(*m.held)
	}
}

// handleItems handles new items and then reads the next ones. It stops while an item waits for the
// message above it.
func (m *model) handleItems(taken items) {
	if taken.feed != m.Feed {
		return
	}
	for m.holds == 0 && len(taken.list) > 0 {
		item := taken.list[0]
		taken.list = taken.list[1:]
		m.handleItem(item)
	}
	if m.holds > 0 {
		m.held = &taken
		return
	}
	m.held = nil
	m.queueCommand(m.handleNext())
}

// handleItem takes an item in.
func (m *model) handleItem(item dispatch.Item) {
	event := item.Event
	if event == nil {
		if m.silent = item.Delta.Silent; m.silent == 0 && !m.work.addOutput(item.Delta) {
			m.See(item)
		}
		return
	}
	body := chat.BodyOf(event)
	m.silent = 0
	m.work.handleEvent(event, &body)
	open, ends := m.Round, chat.RoundEnds(event, &body)
	if ends || event.Type == regie.EventMessageWithdrawn && !body.TakenBack ||
		event.Type == regie.EventSessionState && body.State == string(regie.SessionPaused) {
		m.paper.flushReply() // what was being said is cut off
	}
	m.See(item)
	switch event.Type {
	case regie.EventMessage:
		var message regie.Message
		if json.Unmarshal(event.Body, &message) != nil {
			return
		}
		m.paper.flushReply()
		if message.Sender == regie.SenderUser {
			m.history.addEntry(message.LinearText())
		}
		if message.AI != nil && message.Usage != nil { // what it costs is seen while one can still stop it
			m.meter.prompt = message.Usage.Input + message.Usage.Output
			measureRound(m, message.RoundID)
		}
	case regie.EventRound:
		if ends && (body.RoundID == open || open.IsZero()) {
			m.hint = ""
			measureRound(m, body.RoundID)
			m.queueCommand(m.config.Bell.ringBell(m.Text.T("the agent has finished"), time.Since(m.Began)))
		}
	case regie.EventApproval, regie.EventQuestion: // it may be answered on another surface
		switch d := m.dialog.(type) {
		case *approving:
			d.Heard(&body)
		case *questioning:
			d.noteAnswered(m, &body)
		}
	}
}

func (m *model) handleSignal(s os.Signal) {
	switch {
	case s == syscall.SIGTSTP: // in the person's editor; it is refused already
		keyboard{m}.handleSuspend()
	case s == syscall.SIGINT && !m.Round.IsZero() && !m.Interrupting:
		m.Interrupt()
	default:
		m.result.Signalled = s != os.Interrupt || m.Interrupting
		m.Leave()
	}
}
