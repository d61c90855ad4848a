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

// Config configures a chat at a terminal.
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
	// Aside receives the output of the rest of the process; nil without any.
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
	reply := func(text string) { m.paper.addReply(m.paper.addPiece(text)) }
	stream := chat.Stream{Out: writer(reply), Err: writer(m.paper.addNote), Apart: true}
	m.Conversation = chat.NewConversation(ctx, c.Config, surface{m}, stream)
	m.Stream.Mark, m.ShownRounds = m.Calls.Mark, shownRounds
	return m
}

// Init implements tea.Model.
func (m *model) Init() tea.Cmd {
	m.Begin(func(err error) { m.err, m.leaving = err, true })
	m.handleLog()
	readEngine(m)
	return m.takeCommands()
}

// Update implements tea.Model.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	m.queueCommand(m.handleMessage(msg))
	m.readFeed()
	m.handleDue()
	m.queueCommand(m.printLines())
	m.queueCommand(m.tickClock())
	command := m.takeCommands()
	return m, command
}

// handleMessage takes a message in, and returns what the library runs then.
func (m *model) handleMessage(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.screen.said, m.screen.ready = msg, true
		m.screen.width, m.screen.height = max(msg.Width, narrow), max(msg.Height, 2)
		m.paper.width = m.screen.width - 1 // as below what is printed: the last column stays empty
	case tea.ColorProfileMsg:
		m.screen.colours = msg.Profile >= colorprofile.ANSI
	case tea.KeyPressMsg:
		keyboard{m}.handleKey(msg)
	case tea.PasteMsg:
		m.handlePaste(msg.Content)
	case done:
		if msg != nil {
			msg()
		}
	case items:
		m.handleItems(msg)
	}
	return m.takeCommands()
}

// handlePaste inserts a paste into the field of a dialog or a search, else into the prompt: a paste
// never answers a dialog.
func (m *model) handlePaste(content string) {
	if mention, ok := chat.MentionPastedImage(content, m.Look); ok && !m.hasField() {
		content = mention
	}
	m.typed = time.Now()
	if m.hasField() && m.letter.name != "" {
		m.takeWords(m.letter.name)
	}
	if m.hasField() {
		if q, ok := m.dialog.(*questioning); ok && q.takesWords(content) {
			q.writes = true
		}
		if field := m.dialog.inputField(); field != nil {
			field.insertText(content)
			return
		}
		m.armed = false
	}
	if m.history.searching {
		m.history.query.insertText(strings.TrimSpace(content))
		m.history.findEntry(m, len(m.history.list))
		return
	}
	m.draft.insertText(content)
	m.popup.updateOffers(m)
}

// handleDue asks the session's open request, or leaves once all is written.
func (m *model) handleDue() {
	if m.leaving {
		if m.paper.isIdle() {
			m.queueCommand(tea.Quit)
		}
		return
	}
	if m.dialog != nil && !m.armed && !m.isWriting() && time.Since(m.typed) >= quiet {
		m.armed = true
	}
	if m.Due && m.dialog == nil && !m.asking {
		m.askPending()
	}
}

// quiet is how long the person must not type before a dialog takes the keyboard, so that text for
// the prompt decides nothing.
const quiet = 600 * time.Millisecond

// isWriting reports whether the person is busy at the prompt; dialogs wait for that.
func (m *model) isWriting() bool {
	return !m.draft.isEmpty() || m.history.searching || m.popup.isShown()
}

// openNow opens a dialog that follows from the person's input. The dialog gets the keyboard at
// once, unless the person is writing; then a hint appears.
func (m *model) openNow(d dialog) {
	m.openDialog(d)
	if m.armed = !m.isWriting(); !m.armed {
		m.hint = m.Text.T("Tab shows what you asked for")
	}
}

// tickClock keeps the clock going while something moves.
func (m *model) tickClock() tea.Cmd {
	moving := m.Busy() || m.dialog != nil && !m.armed || m.State == regie.SessionWaitingNetwork
	if m.ticking || !moving || m.leaving {
		return nil
	}
	m.ticking = true
	return delayCommand(200*time.Millisecond, func() { m.ticking = false })
}
