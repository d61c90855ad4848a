package tui

import (
	"context"
	"os"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
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
	Aside *Aside
}

// dialog is something that the person is asked; it has the keyboard while it is there.
type dialog interface {
	key(m *model, name, typed string)
	view(m *model) [][]span
}

// line is a dialog that the person may write in; what is pasted may have no room there.
type line interface {
	paste(s string) (writes, fits bool)
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
	hint     string // below the prompt, until the next key
	runHint  string // the same, as long as a run is open
	once     bool   // Ctrl-C at an empty prompt
	ticking  bool
	bell     bell
	meter    meter
	engine   []dispatch.AgentView // what it has answer

	leaving bool
	result  chat.Result
	err     error
}

func newModel(ctx context.Context, c Config) *model {
	m := &model{config: c, loop: loop{ctx: ctx}, screen: newScreen(c.Env), bell: newBell(c)}
	m.meter = newMeter(store.Spent{})
	stream := chat.Stream{Out: replies{m}, Err: notes{m}, Apart: true}
	m.Conversation = chat.NewConversation(ctx, c.Config, surface{m}, stream)
	m.Stream.Mark, m.ShownRounds = m.Calls.Mark, shownRounds
	m.paper = paper{m: m, render: renderer{parser: newParser(), width: 80}}
	return m
}

// Init implements tea.Model.
func (m *model) Init() tea.Cmd {
	m.openChat()
	m.history.load(m)
	m.aside()
	m.engineHas()
	m.measure(regie.ID{})
	return m.drain()
}

// Update implements tea.Model.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	m.run(m.obey(msg))
	m.readFeed()
	m.attend()
	m.run(m.print())
	m.run(m.tick())
	cmd := m.drain()
	return m, cmd
}

// obey takes a message in, and returns what the library runs then.
func (m *model) obey(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.screen.said, m.screen.ready = msg, true
		m.screen.width, m.screen.height = max(msg.Width, narrow), max(msg.Height, 2)
		m.paper.resized(m.screen.width)
	case tea.ColorProfileMsg:
		m.screen.profile(msg)
	case tea.KeyPressMsg:
		m.bell.near()
		m.pressed(msg)
	case tea.PasteMsg:
		m.pastes(msg.Content)
	case tea.FocusMsg:
		m.bell.focus(true)
	case tea.BlurMsg:
		m.bell.focus(false)
	case done:
		m.run(msg())
	case printed:
		m.paper.printing = false
	case items:
		m.took(msg)
	case ended:
		if msg.feed == m.Feed && m.ctx.Err() == nil && !m.leaving && !m.Lost(msg.err) {
			m.err, m.leaving = msg.err, true
		}
	case ticked:
		m.ticking = false
	case stands:
		m.letterStands(msg.serial)
	case signalled:
		m.signal(msg.signal)
	}
	return m.drain()
}

// pastes takes what is pasted: into the line that a dialog or a search has, and else into the
// prompt, as the letters of a message: a paste decides nothing.
func (m *model) pastes(content string) {
	m.stillTyping()
	if m.hasField() && m.letter.typed != "" {
		m.words(m.letter.typed)
	}
	if m.hasField() {
		if line, ok := m.dialog.(line); ok {
			if writes, fits := line.paste(content); writes {
				m.fits(fits)
				return
			}
		}
		m.armed = false
	}
	if m.history.searching {
		m.history.paste(m, content)
		return
	}
	m.fits(m.draft.paste(content))
	m.popup.follow(m)
	m.popup.fetch(m)
}

// stillTyping says that something was typed or pasted just now.
func (m *model) stillTyping() {
	m.swept = m.swept && time.Since(m.typed) < quiet
	m.typed = time.Now()
}

// typeText puts what was typed into the prompt.
func (m *model) typeText(typed string) bool {
	m.fits(m.draft.insert(typed))
	return true
}

// fits says so where what was typed or pasted has no room in the message, and was not taken.
func (m *model) fits(taken bool) {
	if !taken {
		m.hint = m.Text.T("not taken: a message has at most 1 MiB; put it into a file and name it with @")
	}
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
func (m *model) openNow(d dialog, hint string) {
	m.open(d)
	if m.armed = !m.writing(); !m.armed {
		m.hint = hint
	}
}

// forgo closes what the person had opened and left again for the prompt, where they send something:
// it would come back over what is asked then.
func (m *model) forgo() {
	switch m.dialog.(type) {
	case *picking:
		m.closeDialog()
	case *undoing:
		m.closeDialog()
		m.Note(m.Text.T("nothing was undone"))
	}
}

// ticked is the clock of the live part.
type ticked struct{}

// tick keeps the clock going while something moves.
func (m *model) tick() tea.Cmd {
	moving := m.Busy() || m.dialog != nil && !m.armed || m.State == regie.SessionWaitingNetwork
	if m.ticking || !moving || m.leaving {
		return nil
	}
	m.ticking = true
	return tea.Tick(200*time.Millisecond, func(time.Time) tea.Msg { return ticked{} })
}
