package tui

import (
	"context"
	"os"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/dispatch"
)

// Config is what a chat at a terminal needs.
type Config struct {
	chat.Config
	In, Out *os.File // the terminal
	// IsEngine reports whether this process is the engine: then it does not stop for a while. nil:
	// it is not.
	IsEngine func() bool
	// Env is the environment, as os.Environ has it.
	Env []string
	// Bell says when the person is called: BellAuto, BellAlways or BellOff.
	Bell Bell
	// Aside is what the rest of the process writes to; nil where it writes nothing.
	Aside Aside
}

// model is a conversation as it is drawn.
type model struct {
	*chat.Conversation
	loop
	focus
	config Config
	paper  paper
	screen screen

	reading *chat.Feed // the feed that is read
	holds   int
	held    *items // what has come while holds is not 0
	asking  bool   // the inbox is being read
	silent  int    // for so many seconds the model has sent nothing, 0 for not long
	work    work

	draft   editor
	history history
	popup   popup
	// draftEsc is when Esc was pressed with something written.
	draftEsc time.Time
	hint     string // below the prompt, until the next key or the end of the run
	once     bool   // Ctrl-C at an empty prompt
	ticking  bool
	meter    meter
	engine   []dispatch.AgentView // what it has answer

	leaving bool
	result  chat.Result
	err     error
}

func newModel(ctx context.Context, c Config) *model {
	m := &model{config: c, loop: loop{ctx: ctx}, screen: newScreen(c.Env)}
	m.meter = newMeter()
	m.paper = paper{m: m, markdown: markdown{parser: newParser(), width: 80}}
	reply := func(text string) { m.paper.reply(m.paper.add(text)) }
	stream := chat.Stream{Out: writer(reply), Err: writer(m.paper.note), Apart: true}
	m.Conversation = chat.NewConversation(ctx, c.Config, surface{m}, stream)
	m.Stream.Mark, m.ShownRounds = m.Calls.Mark, shownRounds
	return m
}

// Init implements tea.Model.
func (m *model) Init() tea.Cmd {
	m.Begin(func(err error) { m.err, m.leaving = err, true })
	m.listen()
	readEngine(m)
	return m.drain()
}

// Update implements tea.Model.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	m.run(m.obey(msg))
	m.readFeed()
	m.attend()
	m.run(m.print())
	m.run(m.tick())
	command := m.drain()
	return m, command
}

// obey takes a message in, and returns what the library runs then.
func (m *model) obey(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.screen.said, m.screen.ready = msg, true
		m.screen.width, m.screen.height = max(msg.Width, narrow), max(msg.Height, 2)
		m.paper.width = m.screen.width - 1 // as below what is printed: the last column stays empty
	case tea.ColorProfileMsg:
		m.screen.colours = msg.Profile >= colorprofile.ANSI
	case tea.KeyPressMsg:
		keyboard{m}.pressed(msg)
	case tea.PasteMsg:
		m.pastes(msg.Content)
	case done:
		if msg != nil {
			msg()
		}
	case items:
		m.took(msg)
	}
	return m.drain()
}

// pastes takes what is pasted: into the line that a dialog or a search has, and else into the
// prompt, as the letters of a message: a paste decides nothing.
func (m *model) pastes(content string) {
	m.typed = time.Now()
	if m.hasField() && m.letter.name != "" {
		m.words(m.letter.name)
	}
	if m.hasField() {
		if q, ok := m.dialog.(*questioning); ok && q.takes(content) {
			q.writes = true
		}
		if field := m.dialog.field(); field != nil {
			field.insert(content)
			return
		}
		m.armed = false
	}
	if m.history.searching {
		m.history.query.insert(strings.TrimSpace(content))
		m.history.look(m, len(m.history.list))
		return
	}
	m.draft.insert(content)
	m.popup.follow(m)
}

// attend does what is due: asks what the session waits for, leaves when all is written.
func (m *model) attend() {
	if m.leaving {
		if m.paper.idle() {
			m.run(tea.Quit)
		}
		return
	}
	if m.dialog != nil && !m.armed && !m.writing() && time.Since(m.typed) >= quiet {
		m.armed = true
	}
	if m.Due && m.dialog == nil && !m.asking {
		m.ask()
	}
}

// quiet is how long nothing may be typed before something that is asked takes the keyboard: what
// was meant for the prompt decides nothing.
const quiet = 600 * time.Millisecond

// writing reports whether the person is in the middle of something at the prompt: what is asked
// waits for that.
func (m *model) writing() bool { return !m.draft.empty() || m.history.searching || m.popup.shown() }

// openNow is open for what follows from what the person has just typed: it has the keyboard at
// once, unless they write something else by now; then it is hinted at.
func (m *model) openNow(d dialog) {
	m.open(d)
	if m.armed = !m.writing(); !m.armed {
		m.hint = m.Text.T("Tab shows what you asked for")
	}
}

// tick keeps the clock going while something moves.
func (m *model) tick() tea.Cmd {
	moving := m.Busy() || m.dialog != nil && !m.armed || m.State == regie.SessionWaitingNetwork
	if m.ticking || !moving || m.leaving {
		return nil
	}
	m.ticking = true
	return after(200*time.Millisecond, func() { m.ticking = false })
}
