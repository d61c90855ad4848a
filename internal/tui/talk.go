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

// items are some of what happens in the session.
type items struct {
	list       []dispatch.Item
	generation int
}

// ended says that nothing more of a session is followed.
type ended struct {
	err        error
	generation int
}

// follow begins to follow the session.
func (m *model) follow(after int64) tea.Cmd {
	if m.feed != nil {
		m.feed.Stop()
	}
	m.generation++
	m.feed = chat.Follow(m.ctx, m.Control, m.session, after)
	return m.next()
}

// next takes what happens next, with what follows at once.
func (m *model) next() tea.Cmd {
	feed, generation := m.feed, m.generation
	return func() tea.Msg {
		var list []dispatch.Item
		select {
		case item := <-feed.Items:
			list = append(list, item)
		case err := <-feed.Ended:
			return ended{err, generation}
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
		return items{list, generation}
	}
}

// hold keeps what happens back until release: what the person said stands above what came of it.
func (m *model) hold() { m.holds++ }

func (m *model) release() tea.Cmd {
	m.holds--
	if m.holds > 0 || m.held == nil {
		return nil
	}
	held := *m.held
	m.held = nil
	return m.took(held)
}

func (m *model) took(taken items) tea.Cmd {
	if taken.generation != m.generation {
		return nil
	}
	if m.holds > 0 {
		m.held = &taken
		return nil
	}
	var cmds []tea.Cmd
	for i, item := range taken.list {
		cmds = append(cmds, m.see(item))
		if m.holds > 0 { // it waits for what stands above the others
			taken.list = taken.list[i+1:]
			m.held = &taken
			return tea.Batch(cmds...)
		}
	}
	return tea.Batch(append(cmds, m.next())...)
}

// see takes an item in.
func (m *model) see(item dispatch.Item) tea.Cmd {
	if item.Delta != nil {
		if m.silent = item.Delta.Silent; m.silent > 0 || m.work.output(item.Delta) {
			return nil
		}
		m.stream.Item(item)
		return nil
	}
	event := item.Event
	if event == nil {
		return nil
	}
	m.seen, m.silent = event.Seq, 0
	if id, is := chat.OwnCall(event); is {
		m.own = id
	}
	m.work.event(m, event)
	if givesBack(event) {
		m.paper.flush() // what was being said is cut off
	}
	m.stream.Item(item)
	switch event.Type {
	case regie.EventMessage:
		var message regie.Message
		if json.Unmarshal(event.Body, &message) == nil {
			m.paper.flush()
			m.meter.message(&message)
			if message.Sender == regie.SenderUser {
				m.history.add(message.LinearText())
			}
			if message.Usage != nil { // what it costs is seen while one can still stop it
				return m.measure(message.RoundID)
			}
		}
	default:
		return m.turn(event)
	}
	return nil
}

// givesBack reports whether an event gives a message back because the session was stopped.
func givesBack(event *regie.Event) bool {
	var body struct {
		TakenBack bool `json:"taken_back"`
	}
	return event.Type == regie.EventMessageWithdrawn && json.Unmarshal(event.Body, &body) == nil && !body.TakenBack
}

// turn takes in what changes the state of the session.
func (m *model) turn(event *regie.Event) tea.Cmd {
	var body struct {
		RoundID regie.ID          `json:"round_id"`
		State   string            `json:"state"`
		Place   int               `json:"position"`
		Stop    regie.StopRequest `json:"stop_request"`
		End     regie.RoundEnd    `json:"end_reason"`
	}
	if json.Unmarshal(event.Body, &body) != nil {
		return nil
	}
	switch event.Type {
	case regie.EventRound:
		switch {
		case body.State == string(regie.RoundEnded):
			m.paper.flush()
			m.work.over()
			came := m.outcome(body.RoundID)
			if body.RoundID == m.round || m.round.IsZero() {
				m.round, m.state, m.interrupting, m.stop = regie.ID{}, regie.SessionIdle, false, ""
				m.settled()
				return tea.Batch(came, m.read(), m.measure(body.RoundID),
					m.bell.ring(m.Text.T("the agent has finished"), time.Since(m.began)))
			}
			return came
		case body.State == string(regie.RoundRunning) && body.Stop == "":
			if m.round != body.RoundID {
				m.began = event.Time
			}
			m.round, m.last, m.interrupting, m.stop = body.RoundID, body.RoundID, false, ""
			m.become(regie.SessionActive)
			return m.bounds(body.RoundID)
		default:
			m.stop = body.Stop
		}
	case regie.EventSessionState:
		m.place = body.Place
		m.become(regie.SessionState(body.State))
	case regie.EventApproval, regie.EventQuestion:
		switch body.State {
		case string(regie.ApprovalExpired):
			m.note(m.Text.T("nobody answered in time: what was asked is not run"))
		case string(regie.ApprovalWithdrawn):
			m.note(m.Text.T("what was asked is withdrawn"))
		}
		if asked, ok := m.dialog.(moves); ok { // somebody may have answered elsewhere
			asked.heard(m, event.Body)
		}
	}
	return nil
}

func (m *model) become(state regie.SessionState) {
	if state == regie.SessionPaused && m.state != state {
		m.paper.flush() // what was being said is cut off
		m.note(m.Text.T("paused; /resume goes on"))
	}
	if m.state == regie.SessionPaused && state != m.state { // the pause was taken back
		m.stop = ""
	}
	m.state, m.due = state, waiting(state)
	if !m.due {
		m.settled()
	}
}

// settled closes what is asked: the session waits no more.
func (m *model) settled() {
	m.due = false
	if d, ok := m.dialog.(moves); ok {
		m.overtaken(d)
	}
}

// begin takes up the session that was asked for.
func (m *model) begin() tea.Cmd {
	if m.Continue == "" {
		return nil
	}
	return m.resume(m.Continue)
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

// resume goes on with a chat.
func (m *model) resume(name string) tea.Cmd {
	return m.do(func(ctx context.Context) func() tea.Cmd {
		past, err := chat.Open(ctx, m.Control, m.Request.Root, name, shownRounds)
		return func() tea.Cmd {
			if err != nil {
				if m.feed == nil && m.last.IsZero() && m.Continue == name { // it was asked for when the chat began
					m.err, m.leaving = err, true
					return nil
				}
				m.told(err)
				return nil
			}
			read := m.read()
			m.takeUp(&past)
			return tea.Batch(read, m.follow(past.View.Head), m.measure(past.Last), m.history.load(m))
		}
	})
}

func (m *model) takeUp(past *chat.Past) {
	m.fresh(past.View.ID)
	m.Request.Agent = past.View.Agent
	m.meter.takenUp(past)
	if m.Request.Model == "" {
		m.meter.provider, m.meter.model = past.View.Provider, past.View.Model
	}
	m.work.calls.Copies(past)
	for i := range past.Rounds {
		m.work.past(&past.Rounds[i])
	}
	m.stream.Past(past)
	m.paper.flush()
	m.paper.space()
	m.last, m.round, m.seen, m.own = past.Last, past.Running, past.View.Head, chat.OwnRunning(past)
	for i := range past.Rounds {
		if past.Rounds[i].Round.ID == past.Running {
			m.began = past.Rounds[i].Round.StartedAt
			m.work.plan = planOf(&past.Rounds[i])
		}
	}
	m.become(past.View.State)
}

// fresh makes the chat one of another session.
func (m *model) fresh(session regie.ID) {
	if m.feed != nil {
		m.feed.Stop()
		m.feed = nil
	}
	m.generation++
	m.stream = &chat.Stream{Out: replies{m}, Err: notes{m}, Text: m.Text, Mark: m.work.calls.Mark, Apart: true}
	m.session, m.round, m.last, m.seen, m.state = session, regie.ID{}, regie.ID{}, 0, regie.SessionIdle
	m.due, m.interrupting, m.stop = false, false, ""
	m.work.forget()
	m.own = regie.ID{}
	last := m.meter
	m.meter = newMeter(last.today)
	m.meter.asked, m.meter.heard = last.asked, last.asked // what is under way was asked for the other chat
	if d, ok := m.dialog.(*instead); ok {                 // what it was about has gone; the message has not
		m.back(d.typed)
	}
	m.closeDialog()
}

// lost takes in that nothing more of the session comes. One that was removed elsewhere takes
// nothing along that the person has written.
func (m *model) lost(why error) tea.Cmd {
	if regie.CodeOf(why) != regie.CodeNotFound {
		m.err, m.leaving = why, true
		return nil
	}
	m.paper.flush()
	m.settled()
	m.fresh(regie.NewID())
	m.paper.space()
	m.note(m.Text.T("this chat was removed elsewhere; what you write now begins a new one"))
	return nil
}

// markRead says how far the person has read (decision 45). That it could not be stored, because the
// engine has gone for example, is no reason to do anything otherwise, or to wait.
func (m *model) markRead(ctx context.Context) {
	if m.seen == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	_ = m.Control.MarkRead(ctx, dispatch.ReadRequest{SessionID: m.session, Seq: m.seen})
}

// read says that the person has read the chat as far as it is shown: at the end of each run, and
// before another chat takes its place.
func (m *model) read() tea.Cmd {
	read := &model{Config: m.Config, session: m.session, seen: m.seen}
	return m.do(func(ctx context.Context) func() tea.Cmd {
		read.markRead(ctx)
		return nil
	})
}

// send gives a message to the agent.
func (m *model) send(typed string, when store.WhenBusy) tea.Cmd {
	request := m.Request
	request.ClientID, request.SessionID, request.Text, request.WhenBusy = regie.NewID().String(), m.session, typed, when
	answers := waiting(m.state)
	if answers { // what is heard of a question that this answers comes after it
		m.hold()
	}
	return m.inOrder(func(ctx context.Context) func() tea.Cmd {
		if request.Segments = chat.Mentions(typed, m.Look); request.Segments != nil {
			request.Text = ""
		}
		run, err := m.Control.Submit(ctx, request)
		return func() tea.Cmd {
			cmd := m.sent(request.SessionID, typed, when, run, err)
			if answers {
				cmd = tea.Batch(cmd, m.release())
			}
			return cmd
		}
	})
}

// unsent keeps what was not taken: a message in the prompt, a command too where it is one command
// there.
func (m *model) unsent(typed string, when store.WhenBusy) {
	switch {
	case when != store.Reject:
		m.back(typed)
	case m.draft.empty():
		m.draft.set(typed)
	default:
		m.history.add(typed)
	}
}

func (m *model) sent(session regie.ID, typed string, when store.WhenBusy, run dispatch.Run, err error) tea.Cmd {
	if session != m.session { // another chat has been taken up since
		return nil
	}
	switch {
	case err != nil:
		m.told(err)
		m.unsent(typed, when)
		return nil
	case run.Answered:
		m.note("› " + strings.ReplaceAll(typed, "\n", "\n  "))
		m.note(m.Text.T("taken as the answer"))
		if q, ok := m.dialog.(*questioning); ok {
			m.later[q.asked.ID] = true // it is answered; what else waits is asked
			m.closeDialog()
			m.due = waiting(m.state)
		}
	case run.Pending && when == store.Steer:
		m.runHint = m.Text.T("the agent gets it with its next step")
	case run.Pending:
	case run.Seq > m.seen: // else what has happened since is known already
		m.round, m.last, m.state, m.place = run.RoundID, run.RoundID, regie.SessionActive, run.Position
		m.began = time.Now()
		if run.Position > 0 {
			m.state = regie.SessionQueued
		}
	}
	if m.feed == nil {
		return m.follow(0)
	}
	return nil
}

// interrupt asks the round to end.
func (m *model) interrupt() tea.Cmd {
	if m.round.IsZero() || m.interrupting {
		return nil
	}
	m.interrupting = true
	round := m.round
	return m.do(func(ctx context.Context) func() tea.Cmd {
		err := m.Control.Interrupt(ctx, round)
		return func() tea.Cmd {
			if err != nil {
				m.interrupting = false
				m.told(err)
			}
			return nil
		}
	})
}

// signalled is a signal of the operating system.
type signalled struct{ signal os.Signal }

func (m *model) signal(s os.Signal) tea.Cmd {
	if s == syscall.SIGTSTP { // in the person's editor; it is refused already
		m.stays()
		return nil
	}
	if s == syscall.SIGINT && !m.round.IsZero() && !m.interrupting {
		return m.interrupt()
	}
	m.result.Signalled = s != os.Interrupt || m.interrupting
	m.leave()
	return nil
}

// leave ends the chat; what runs stays as it is stored.
func (m *model) leave() {
	if m.leaving {
		return
	}
	m.leaving = true
	m.paper.flush()
	if m.last.IsZero() {
		return
	}
	m.paper.space()
	if !m.round.IsZero() {
		m.note(m.Text.T("run %s is left as it is", m.round.String()))
	}
	m.note(m.Text.T("go on with this chat: regie chat -r %s", chat.Short(m.session)))
}
