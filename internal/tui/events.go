package tui

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"syscall"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/plain"
	"github.com/regie-run/regie/internal/store"
)

const (
	// together is how long what streams in is collected before it is shown: the eye sees no
	// difference, and typing stays quick.
	together = 20 * time.Millisecond
	// atOnce bounds how many items are taken together.
	atOnce = 512
	// shownRounds is how many messages with their answers are shown before one goes on.
	shownRounds = 10
)

// items are some of what happens in the session that a feed follows.
type items struct {
	list []dispatch.Item
	feed *chat.Feed
}

// ended says that nothing more of a session is followed.
type ended struct {
	err  error
	feed *chat.Feed
}

// readFeed begins to read the feed where the conversation has another one.
func (m *model) readFeed() {
	if m.Feed != m.reading && m.Feed != nil {
		m.run(m.next())
	}
	m.reading = m.Feed
}

// next takes what happens next, with what follows at once.
func (m *model) next() tea.Cmd {
	feed := m.Feed
	return func() tea.Msg {
		var list []dispatch.Item
		select {
		case item := <-feed.Items:
			list = append(list, item)
		case err := <-feed.Ended:
			return ended{err, feed}
		}
		timer := time.NewTimer(together)
		defer timer.Stop()
		for len(list) < atOnce {
			select {
			case item := <-feed.Items:
				list = append(list, item)
				continue
			case <-timer.C:
			}
			break
		}
		return items{list, feed}
	}
}

// release shows what was held back: what the person said stands above what came of it.
func (m *model) release() {
	m.holds--
	if m.holds > 0 || m.held == nil {
		return
	}
	held := *m.held
	m.held = nil
	m.took(held)
}

func (m *model) took(taken items) {
	if taken.feed != m.Feed {
		return
	}
	for i, item := range taken.list {
		if m.holds > 0 { // it waits for what stands above the others
			taken.list = taken.list[i:]
			m.held = &taken
			return
		}
		m.see(item)
	}
	if m.holds > 0 {
		m.held = &items{feed: taken.feed}
		return
	}
	m.run(m.next())
}

// see takes an item in.
func (m *model) see(item dispatch.Item) {
	event := item.Event
	if event == nil {
		if m.silent = item.Delta.Silent; m.silent == 0 && !m.work.output(item.Delta) {
			m.See(item)
		}
		return
	}
	var body struct {
		RoundID   regie.ID          `json:"round_id"`
		State     string            `json:"state"`
		Stop      regie.StopRequest `json:"stop_request"`
		TakenBack bool              `json:"taken_back"`
	}
	_ = json.Unmarshal(event.Body, &body) // without a field it says nothing of it
	m.silent = 0
	m.work.event(event)
	open, ends := m.Round, event.Type == regie.EventRound && body.State == string(regie.RoundEnded)
	if ends {
		m.work.over()
	}
	if ends || event.Type == regie.EventMessageWithdrawn && !body.TakenBack ||
		event.Type == regie.EventSessionState && body.State == string(regie.SessionPaused) {
		m.paper.flush() // what was being said is cut off
	}
	m.See(item)
	switch event.Type {
	case regie.EventMessage:
		var message regie.Message
		if json.Unmarshal(event.Body, &message) != nil {
			return
		}
		m.paper.flush()
		m.meter.message(&message)
		if message.Sender == regie.SenderUser {
			m.history.add(message.LinearText())
		}
		if message.Usage != nil { // what it costs is seen while one can still stop it
			m.measure(message.RoundID)
		}
	case regie.EventRound:
		switch {
		case ends && (body.RoundID == open || open.IsZero()):
			m.measure(body.RoundID)
			m.run(m.bell.ring(m.Text.T("the agent has finished"), time.Since(m.Began)))
		case body.State == string(regie.RoundRunning) && body.Stop == "":
			m.bounds(body.RoundID)
		}
	case regie.EventApproval, regie.EventQuestion:
		if asked, ok := m.dialog.(moves); ok { // somebody may have answered elsewhere
			asked.heard(m, event.Body)
		}
	}
}

// greeting says where the chat is. It is written before anything is drawn, so that what is drawn
// never begins on the terminal's first line: what is erased from there on some terminals (tmux)
// keep.
func (m *model) greeting() string {
	m.paper.wrote = true
	return paint([]span{
		{"regie ", style{bold: true}},
		{plain.Line(m.Text.T("%s in %s", m.Request.Agent, m.Request.Root)), style{faint: true}},
	}, m.screen.colours)
}

// openChat takes up the chat that was asked for when this one began, or leaves.
func (m *model) openChat() {
	if m.Continue == "" {
		return
	}
	m.Do(chat.Beside, func(ctx context.Context) func() {
		past, err := chat.Open(ctx, m.Control, m.Request.Root, m.Continue, shownRounds)
		return func() {
			if err != nil {
				m.err, m.leaving = err, true
				return
			}
			m.TakeUp(&past)
			m.Follow(past.View.Head)
		}
	})
}

// signalled is a signal of the operating system.
type signalled struct{ signal os.Signal }

func (m *model) signal(s os.Signal) {
	switch {
	case s == syscall.SIGTSTP: // in the person's editor; it is refused already
		m.stays()
	case s == syscall.SIGINT && !m.Round.IsZero() && !m.Interrupting:
		m.Interrupt()
	default:
		m.result.Signalled = s != os.Interrupt || m.Interrupting
		m.Leave()
	}
}

// Do implements chat.Renderer.
func (m *model) Do(order chat.Order, work chat.Work) {
	if order == chat.Beside {
		m.run(m.beside(work))
		return
	}
	if order == chat.Held {
		m.holds++
		inner := work
		work = func(ctx context.Context) func() {
			then := inner(ctx)
			return func() {
				then()
				m.release()
			}
		}
	}
	m.ops = append(m.ops, work)
	m.nextOp()
}

// beside runs work on a goroutine of the library, and what it returns in the loop.
func (m *model) beside(work chat.Work) tea.Cmd {
	return func() tea.Msg {
		then := work(m.ctx)
		if then == nil {
			return nil
		}
		return done(func() tea.Cmd {
			then()
			return m.drain()
		})
	}
}

// nextOp begins the next of what happens in the order in which the person said it.
func (m *model) nextOp() {
	if m.busyOps || len(m.ops) == 0 {
		return
	}
	next := m.ops[0]
	m.ops, m.busyOps = m.ops[1:], true
	m.run(m.beside(func(ctx context.Context) func() {
		then := next(ctx)
		return func() {
			m.busyOps = false
			if then != nil {
				then()
			}
			m.nextOp()
		}
	}))
}

// run has the library run a command once the loop is done with a message.
func (m *model) run(cmd tea.Cmd) {
	if cmd != nil {
		m.cmds = append(m.cmds, cmd)
	}
}

// drain are the commands that the library has not got.
func (m *model) drain() tea.Cmd {
	cmds := m.cmds
	m.cmds = nil
	return tea.Batch(cmds...)
}

// ShowError implements chat.Renderer.
func (m *model) ShowError(err error) {
	if err != nil && m.ctx.Err() == nil {
		m.Note("✗ " + m.Text.Error(err))
	}
}

// Separate implements chat.Renderer.
func (m *model) Separate() { m.paper.space() }

// Reset implements chat.Renderer. What a message was about has gone; the message has not.
func (m *model) Reset() {
	m.paper.flush()
	m.work.over()
	last := m.meter
	m.meter = newMeter(last.today)
	m.meter.asked, m.meter.heard = last.asked, last.asked // what is under way was asked for the other chat
	if d, ok := m.dialog.(*instead); ok {
		m.back(d.typed)
	}
	m.closeDialog()
}

// TakenUp implements chat.Renderer.
func (m *model) TakenUp(past *chat.Past) {
	m.meter.takenUp(past)
	if m.Request.Model == "" {
		m.meter.provider, m.meter.model, m.meter.chosen = past.View.Provider, past.View.Model, m.asksFor()
	}
	for i := range past.Rounds {
		m.work.past(&past.Rounds[i])
		if past.Rounds[i].Round.ID == past.Running {
			m.work.plan = planOf(&past.Rounds[i])
		}
	}
	m.paper.flush()
	m.paper.space()
	m.measure(past.Last)
	m.history.load(m)
}

// Settled implements chat.Renderer.
func (m *model) Settled() {
	if d, ok := m.dialog.(moves); ok {
		m.overtaken(d)
	}
}

// Sent implements chat.Renderer. What was not taken stays where it can be sent again.
func (m *model) Sent(o *chat.Outgoing, run dispatch.Run, err error) {
	switch {
	case o.Command && regie.CodeOf(err) == regie.CodeRoundInProgress && m.draft.empty():
		m.runHint = m.Text.T("a run is open: the command stays here, to be given when it has ended")
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
		m.runHint = m.Text.T("the agent gets it with its next step")
	}
}

// unsent keeps what was not taken: a message in the prompt, a command too where it is one command
// there.
func (m *model) unsent(o *chat.Outgoing) {
	switch {
	case !o.Command:
		m.back(o.Typed)
	case m.draft.empty():
		m.draft.set(o.Typed)
	default:
		m.history.add(o.Typed)
	}
}

// EditMessage implements chat.Renderer.
func (m *model) EditMessage(said string) bool {
	if !m.draft.empty() || m.hasField() {
		return false
	}
	m.draft.set(said)
	m.history.at = 0
	return true
}

// Choose implements chat.Renderer.
func (m *model) Choose(choice *chat.Choice) {
	if m.free() {
		m.openNow(&picking{Choice: choice}, m.Text.T("Tab shows what you asked for"))
	}
}

// free reports whether nothing is asked, and else says that it comes first.
func (m *model) free() bool {
	if m.dialog != nil {
		m.Note(m.Text.T("answer first what is asked, or put it off"))
	}
	return m.dialog == nil
}

// ConfirmUndo implements chat.Renderer.
func (m *model) ConfirmUndo(undo *chat.UndoOffer) {
	if m.free() && undo.Show() {
		m.open(&undoing{UndoOffer: undo})
	}
}

// ConfirmWithdrawal implements chat.Renderer.
func (m *model) ConfirmWithdrawal(typed string, question bool) {
	m.openNow(&instead{typed: m.with(typed), question: question}, m.Text.T("not sent yet: Tab shows why"))
}

// ClearScreen implements chat.Renderer.
func (m *model) ClearScreen() {
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
