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
	"github.com/regie-run/regie/internal/text"
)

// Config is what a chat at a terminal needs. Look, Skills, Files, Settings and Continue may be
// missing.
type Config struct {
	Control chat.Control
	Text    *text.Printer
	In, Out *os.File // the terminal
	Editor  chat.Editor
	Signals <-chan os.Signal
	// IsEngine reports whether this process is the engine: then it does not stop for a while. nil:
	// it is not.
	IsEngine func() bool
	// Request is what each message is sent with; session, text and client id are the chat's.
	Request dispatch.RunRequest
	// Look finds what a message names with @; nil has nothing named. Files lists what may be named:
	// paths of the workspace.
	Look  chat.Look
	Files func(ctx context.Context) []string
	// Skills writes the skills of the workspace, a line each; nil has none.
	Skills func(note func(line string))
	// Settings is the fingerprint of a provider's settings, for /model.
	Settings func(provider string) regie.Hash
	// Continue names the session to go on with: "last" for the newest chat of the workspace, an id
	// of a session or a run or the end of one, "" for a new session.
	Continue string
	// Env is the environment, as os.Environ has it.
	Env []string
	// Bell says when the person is called: BellAuto, BellAlways or BellOff.
	Bell Bell
	// Aside is what the rest of the process writes to; nil where it writes nothing.
	Aside *Aside
}

// done is what a command hands back to the loop: what is to happen there.
type done func() tea.Cmd

// dialog is something that the person is asked; it has the keyboard while it is there.
type dialog interface {
	key(m *model, name string, typed string) tea.Cmd
	view(m *model) [][]span
}

// line is a dialog that the person may write in; what is pasted may have no room there.
type line interface {
	paste(s string) (writes, fits bool)
}

// model is the state of the chat.
type model struct {
	Config
	ctx    context.Context
	page   *chat.Page
	stream *chat.Stream
	paper  paper
	screen screen

	session      regie.ID
	round, last  regie.ID // the open one, or zero; the newest one
	seen         int64    // the last event that was shown
	state        regie.SessionState
	place        int // in the queue for a slot
	stop         regie.StopRequest
	feed         *chat.Feed
	generation   int // of the feed
	holds        int
	held         *items // what has come while holds is not 0
	due          bool
	asking       bool // the inbox is being read
	interrupting bool
	silent       int               // for so many seconds the model has sent nothing, 0 for not long
	later        map[regie.ID]bool // what was put off
	began        time.Time         // of the round
	work         work
	// the call of a command that the person gave, until its round has ended
	own     regie.ID
	taking  bool                                       // a message is being taken back
	ops     []func(ctx context.Context) func() tea.Cmd // what is said to the Control, in order
	busyOps bool

	draft   editor
	history history
	popup   popup
	dialog  dialog
	armed   bool // the dialog takes keys
	swept   bool // what is typed was meant for a dialog that has gone, until the person pauses
	letter  letter
	typed   time.Time
	// draftEsc is when Esc was pressed with something written.
	draftEsc  time.Time
	hint      string // below the prompt, until the next key
	runHint   string // the same, as long as a run is open
	once      bool   // Ctrl-C at an empty prompt
	ticking   bool
	bell      bell
	meter     meter
	providers []string // as /model has found them
	served    served
	engine    []dispatch.AgentView // what it has answer

	leaving bool
	result  chat.Result
	err     error
}

func newModel(ctx context.Context, c Config) *model {
	m := &model{
		Config: c, ctx: ctx, session: regie.NewID(), state: regie.SessionIdle,
		later: map[regie.ID]bool{}, typed: time.Time{},
	}
	m.screen = newScreen(c.Env)
	m.paper = paper{m: m, render: renderer{parser: newParser(), width: 80}}
	m.stream = &chat.Stream{Out: replies{m}, Err: notes{m}, Text: c.Text, Mark: m.work.calls.Mark, Apart: true}
	m.page = &chat.Page{W: notes{m}, Text: c.Text, Now: time.Now, Inside: true}
	m.history.atOnce = pastSessions
	m.bell = newBell(c)
	m.meter = newMeter(store.Spent{})
	return m
}

// Init implements tea.Model.
func (m *model) Init() tea.Cmd {
	return tea.Batch(m.begin(), m.history.load(m), m.aside(), m.engineHas(), m.measure(regie.ID{}))
}

// Update implements tea.Model.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	cmd := m.obey(msg)
	return m, tea.Batch(cmd, m.attend(), m.print(), m.tick())
}

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
		return m.pressed(msg)
	case tea.PasteMsg:
		return m.pastes(msg.Content)
	case tea.FocusMsg:
		m.bell.focus(true)
	case tea.BlurMsg:
		m.bell.focus(false)
	case done:
		return msg()
	case printed:
		m.paper.printing = false
	case items:
		return m.took(msg)
	case ended:
		if msg.generation == m.generation && m.ctx.Err() == nil && !m.leaving {
			return m.lost(msg.err)
		}
	case ticked:
		m.ticking = false
	case stands:
		return m.letterStands(msg.serial)
	case signalled:
		return m.signal(msg.signal)
	}
	return nil
}

// pastes takes what is pasted: into the line that a dialog or a search has, and else into the
// prompt, as the letters of a message: a paste decides nothing.
func (m *model) pastes(content string) tea.Cmd {
	m.stillTyping()
	if m.hasField() && m.letter.typed != "" {
		m.words(m.letter.typed)
	}
	if m.hasField() {
		if line, ok := m.dialog.(line); ok {
			if writes, fits := line.paste(content); writes {
				m.fits(fits)
				return nil
			}
		}
		m.armed = false
	}
	if m.history.searching {
		return m.history.paste(m, content)
	}
	m.fits(m.draft.paste(content))
	m.popup.follow(m)
	return m.popup.fetch(m)
}

// stillTyping says that something was typed or pasted just now.
func (m *model) stillTyping() {
	m.swept = m.swept && time.Since(m.typed) < quiet
	m.typed = time.Now()
}

// fits says so where what was typed or pasted has no room in the message, and was not taken.
func (m *model) fits(taken bool) {
	if !taken {
		m.hint = m.Text.T("not taken: a message has at most 1 MiB; put it into a file and name it with @")
	}
}

// do runs work beside the loop, and what it returns in the loop.
func (m *model) do(work func(ctx context.Context) func() tea.Cmd) tea.Cmd {
	ctx := m.ctx
	return func() tea.Msg {
		then := work(ctx)
		if then == nil {
			return nil
		}
		return done(then)
	}
}

// inOrder is do, for what must happen in the order in which the person said it.
func (m *model) inOrder(work func(ctx context.Context) func() tea.Cmd) tea.Cmd {
	m.ops = append(m.ops, work)
	return m.nextOp()
}

func (m *model) nextOp() tea.Cmd {
	if m.busyOps || len(m.ops) == 0 {
		return nil
	}
	next := m.ops[0]
	m.ops = m.ops[1:]
	m.busyOps = true
	return m.do(func(ctx context.Context) func() tea.Cmd {
		then := next(ctx)
		return func() tea.Cmd {
			m.busyOps = false
			var cmd tea.Cmd
			if then != nil {
				cmd = then()
			}
			return tea.Batch(cmd, m.nextOp())
		}
	})
}

// attend does what is due: asks what the session waits for, leaves when all is written.
func (m *model) attend() tea.Cmd {
	if m.leaving {
		if m.paper.idle() {
			return tea.Quit
		}
		return nil
	}
	if m.dialog != nil && !m.armed && !m.writing() && time.Since(m.typed) >= quiet {
		m.armed = true
	}
	if m.due && m.dialog == nil && !m.asking {
		return m.ask()
	}
	return nil
}

// quiet is how long nothing may be typed before something that is asked takes the keyboard: what
// was meant for the prompt decides nothing.
const quiet = 600 * time.Millisecond

// writing reports whether the person is in the middle of something at the prompt: what is asked
// waits for that.
func (m *model) writing() bool { return !m.draft.empty() || m.history.searching || m.popup.shown() }

func (m *model) open(d dialog) { m.dialog, m.armed = d, false }

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
		m.note(m.Text.T("nothing was undone"))
	}
}

func (m *model) closeDialog() { m.dialog, m.armed, m.letter.typed = nil, false, "" }

// note writes a line beside the replies.
func (m *model) note(line string) { m.stream.Note(line) }

// told shows an error.
func (m *model) told(err error) {
	if err != nil && m.ctx.Err() == nil {
		m.stream.Note("✗ " + m.Text.Error(err))
	}
}

// ticked is the clock of the live part.
type ticked struct{}

// tick keeps the clock going while something moves.
func (m *model) tick() tea.Cmd {
	moving := m.busy() || m.dialog != nil && !m.armed || m.state == regie.SessionWaitingNetwork
	if m.ticking || !moving || m.leaving {
		return nil
	}
	m.ticking = true
	return tea.Tick(200*time.Millisecond, func(time.Time) tea.Msg { return ticked{} })
}

func waiting(s regie.SessionState) bool {
	return s == regie.SessionWaitingValidation || s == regie.SessionWaitingResponse
}

// busy says that the agent works: what is typed now is queued.
func (m *model) busy() bool {
	return m.state == regie.SessionActive || m.state == regie.SessionQueued
}
