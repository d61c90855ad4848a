package tui

import (
	"context"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/plain"
	"github.com/regie-run/regie/internal/store"
)

// command is something that is typed with a slash.
type command struct {
	name, about string
	run         func(m *model, rest string) tea.Cmd
}

// commands are all that there is, in the order of /help.
func (m *model) commands() []command {
	t := m.Text
	return []command{
		{"/help", t.T("what can be typed and pressed"), func(m *model, _ string) tea.Cmd { m.help(); return nil }},
		{"/undo", t.T("take the newest run back, after a look at it: /undo [N | files | ID | to ID]"), (*model).undo},
		{"/fork", t.T("go on in a copy of this chat; the files stay as they are"), (*model).fork},
		{"/resume", t.T("go on with a paused run, or with another chat: /resume [ID]"), (*model).resumes},
		{"/new", t.T("begin another chat"), (*model).another},
		{"/clear", t.T("begin another chat on an empty screen"), (*model).clear},
		{"/model", t.T("which model answers: /model [NAME | PROVIDER/NAME]"), (*model).models},
		{"/agent", t.T("which agent answers in a new chat: /agent [NAME]"), (*model).agents},
		{"/approvals", t.T("ask again what this chat waits for"), (*model).approvals},
		{"/rules", t.T("what is allowed without asking; /revoke ID takes that back"), (*model).rules},
		{"/revoke", t.T("take back what was allowed for longer: /revoke ID"), (*model).revoke},
		{"/cost", t.T("what this chat and today have cost"), (*model).cost},
		{"/cache", t.T("what is in the response cache; /cache clear empties it"), (*model).cache},
		{"/show", t.T("unfold a call: /show [NUMBER]"), (*model).show},
		{"/steer", t.T("give the agent something with its next step: /steer TEXT"), (*model).steer},
		{"/queue", t.T("what waits for its turn: /queue [rm N | edit N]"), (*model).queue},
		{"/pause", t.T("start nothing new; /resume goes on"), (*model).pause},
		{"/stop", t.T("end the run and close the chat; a message opens it again"), (*model).stopAll},
		{"/close", t.T("close the chat while nothing runs or waits"), (*model).closeChat},
		{"/skills", t.T("the skills that the agent has here"), (*model).skills},
		{
			"/quit", t.T("leave; what runs stays as it is stored"),
			func(m *model, _ string) tea.Cmd { m.leave(); return nil },
		},
	}
}

// command obeys a line that begins with a slash.
func (m *model) command(line string) tea.Cmd {
	word, rest, _ := strings.Cut(line, " ")
	if word == "/exit" {
		word = "/quit"
	}
	for _, c := range m.commands() {
		if c.name == word {
			return c.run(m, strings.TrimSpace(rest))
		}
	}
	m.note(m.Text.T(
		"there is no %s; /help lists what there is, and a message that begins with a slash is written with two",
		plain.Line(word)))
	return nil
}

func (m *model) help() {
	t := m.Text
	m.paper.space()
	for _, c := range m.commands() {
		m.helpLine(c.name, c.about)
	}
	m.paper.space()
	for _, row := range [][2]string{
		{"Enter", t.T("send; while the agent works it is queued")},
		{"Alt-Enter", t.T("another line, as Shift-Enter, Ctrl-J and a \\ at the end do")},
		{"@path", t.T("the file or directory is read and sent with the message")},
		{"!command", t.T("run a command yourself, with the approval that the agent's need")},
		{"Esc", t.T("interrupt the run; twice clears what you wrote")},
		{"Ctrl-C", t.T("clear, interrupt; twice leaves")},
		{"Ctrl-D", t.T("leave, at an empty prompt")},
		{"Ctrl-Z", t.T("suspend, where regie serve or another program is the engine")},
		{"Ctrl-R", t.T("search in what you have said; Up and Down go through it")},
		{"Up", t.T("at an empty prompt: take the last queued message back, to edit it")},
		{"Ctrl-O", t.T("unfold the newest call")},
		{"Tab", t.T("complete; show again what waits for you")},
	} {
		m.helpLine(row[0], row[1])
	}
	m.paper.space()
}

// helpLine writes what can be typed or pressed, and behind it, on as many lines as it needs, what
// that does.
func (m *model) helpLine(name, about string) {
	const column = 14
	before := span{"  " + name + strings.Repeat(" ", max(1, column-2-len(name))), style{fg: cyan}}
	width := m.screen.width - column - 1
	if width < 20 { // it stands below
		m.paper.line([]span{before})
		before, width = span{text: "    "}, m.screen.width-5
	}
	for _, piece := range wrap([]span{{text: about}}, width) {
		m.paper.line(append([]span{before}, piece...))
		before = span{text: strings.Repeat(" ", m.screen.width-1-width)}
	}
}

// fork goes on in a copy of this chat (decision 17).
func (m *model) fork(name string) tea.Cmd {
	if m.last.IsZero() {
		m.note(m.Text.T("nothing was said in this chat"))
		return nil
	}
	in := dispatch.ForkRequest{SessionID: regie.NewID(), From: m.session, Name: name}
	return m.do(func(ctx context.Context) func() tea.Cmd {
		_, err := m.Control.Fork(ctx, in)
		return func() tea.Cmd {
			if err != nil {
				m.told(err)
				return nil
			}
			m.paper.space()
			return m.resume(in.SessionID.String())
		}
	})
}

// resumes goes on with the paused run, or with another chat.
func (m *model) resumes(name string) tea.Cmd {
	switch {
	case name != "":
		return m.resume(name)
	case m.state == regie.SessionPaused && !m.round.IsZero():
		clear(m.later) // what was put off before the pause is asked again
		round := m.round
		return m.tell(func(ctx context.Context) error { return m.Control.Resume(ctx, round) }, "")
	}
	root := m.Request.Root
	return m.do(func(ctx context.Context) func() tea.Cmd {
		sessions, err := m.Control.Sessions(ctx, store.SessionFilter{Root: root, Type: regie.SessionChat, Limit: 50})
		return func() tea.Cmd {
			if err != nil {
				m.told(err)
				return nil
			}
			p := &picking{title: m.Text.T("which chat:"), then: func(m *model, id string) tea.Cmd {
				return m.resume(id)
			}}
			for i := range sessions {
				s := &sessions[i]
				if s.ID == m.session {
					continue
				}
				p.list = append(p.list, option{s.ID.String(), chat.Short(s.ID) + "  " +
					s.LastActivity.Local().Format("2006-01-02 15:04") + "  " + string(s.State) + "  " + s.Name})
			}
			return m.pick(p)
		}
	})
}

func (m *model) pick(p *picking) tea.Cmd {
	switch {
	case len(p.list) == 0:
		m.note(m.Text.T("there is nothing to choose from"))
	case m.dialog == nil:
		m.openNow(p, m.Text.T("Tab shows what you asked for"))
	default:
		m.note(m.Text.T("answer first what is asked, or put it off"))
	}
	return nil
}

// another begins a new chat.
func (m *model) another(string) tea.Cmd {
	m.paper.flush()
	read := m.read()
	m.fresh(regie.NewID())
	m.paper.space()
	m.note(m.Text.T("a new chat"))
	return read
}

func (m *model) clear(string) tea.Cmd {
	read := m.read()
	m.fresh(regie.NewID())
	m.paper.wrote, m.paper.inReply = false, false
	return tea.Sequence(tea.Raw(strings.Repeat("\r\n", m.screen.height)+"\x1b[H"), tea.ClearScreen, read)
}

// agents chooses who answers in a new chat.
func (m *model) agents(name string) tea.Cmd {
	choose := func(m *model, name string) {
		if m.Request.Agent == name {
			return
		}
		if !m.last.IsZero() {
			m.fresh(regie.NewID())
		}
		m.Request.Agent = name
		m.note(m.Text.T("a new chat with %s", plain.Line(name)))
	}
	return m.do(func(ctx context.Context) func() tea.Cmd {
		agents, err := m.Control.Agents(ctx)
		return func() tea.Cmd {
			if err != nil {
				m.told(err)
				return nil
			}
			p := &picking{title: m.Text.T("which agent:"), then: chosen(choose)}
			for _, a := range agents {
				if a.Name == name {
					choose(m, name)
					return nil
				}
				p.list = append(p.list, option{a.Name, a.Name + "  " + a.Model})
			}
			if name != "" {
				m.note(m.Text.T("there is no agent %s", plain.Line(name)))
			}
			return m.pick(p)
		}
	})
}

func (m *model) approvals(string) tea.Cmd {
	clear(m.later)
	if m.due = waiting(m.state); !m.due {
		m.note(m.Text.T("this chat waits for nothing"))
	}
	return nil
}

func (m *model) rules(string) tea.Cmd {
	root := m.Request.Root
	return m.do(func(ctx context.Context) func() tea.Cmd {
		list, err := m.Control.Rules(ctx, store.RuleFilter{Root: root})
		return func() tea.Cmd {
			if err != nil {
				m.told(err)
				return nil
			}
			page := *m.page
			page.Inside = false
			page.Rules(list)
			return nil
		}
	})
}

func (m *model) revoke(name string) tea.Cmd {
	if name == "" {
		m.note(m.Text.T("say which: /revoke ID; /rules lists them"))
		return nil
	}
	root := m.Request.Root
	return m.do(func(ctx context.Context) func() tea.Cmd {
		rule, err := chat.FindRule(ctx, m.Control, root, name)
		if err == nil {
			err = m.Control.Revoke(ctx, dispatch.RevokeRequest{RuleIDs: []regie.ID{rule.ID}})
		}
		return func() tea.Cmd {
			if err != nil {
				m.told(err)
				return nil
			}
			m.note(chat.Revoked(m.Text, &rule))
			return nil
		}
	})
}

// cost says what was spent.
func (m *model) cost(string) tea.Cmd {
	session, root := m.session, m.Request.Root
	if m.last.IsZero() {
		session = regie.ID{}
	}
	return m.do(func(ctx context.Context) func() tea.Cmd {
		lines, err := chat.Costs(ctx, m.Control, m.Text, root, session)
		return func() tea.Cmd {
			m.told(err)
			for _, line := range lines {
				m.note(line)
			}
			return nil
		}
	})
}

func (m *model) cache(word string) tea.Cmd {
	root := m.Request.Root
	return m.do(func(ctx context.Context) func() tea.Cmd {
		line, err := chat.Cached(ctx, m.Control, m.Text, root, word)
		return func() tea.Cmd {
			if m.told(err); err == nil {
				m.note(line)
			}
			return nil
		}
	})
}

// show unfolds a call; without a number the newest one.
func (m *model) show(word string) tea.Cmd {
	n, err := m.work.calls.Find(word)
	if err != nil {
		m.note(m.Text.Error(err))
		return nil
	}
	read := m.work.calls.Read(n)
	return m.do(func(ctx context.Context) func() tea.Cmd {
		call, err := read(ctx, m.Control)
		return func() tea.Cmd {
			if m.told(err); err == nil {
				chat.Unfold(m.Text, call, n, m.note)
				m.paper.space()
			}
			return nil
		}
	})
}

func (m *model) steer(typed string) tea.Cmd {
	if typed == "" {
		m.note(m.Text.T("say what: /steer TEXT"))
		return nil
	}
	return m.send(typed, store.Steer)
}

func (m *model) pause(string) tea.Cmd {
	if m.round.IsZero() {
		m.note(m.Text.T("nothing runs in this chat"))
		return nil
	}
	round := m.round
	return m.tell(func(ctx context.Context) error { return m.Control.Pause(ctx, round) }, "")
}

func (m *model) stopAll(string) tea.Cmd {
	if m.round.IsZero() {
		m.note(m.Text.T("nothing runs in this chat"))
		return nil
	}
	session := m.session
	return m.do(func(ctx context.Context) func() tea.Cmd {
		stopped, err := m.Control.Stop(ctx, session)
		return func() tea.Cmd {
			m.told(err)
			if len(stopped.Withdrawn) > 0 {
				m.paper.flush() // what was being said is cut off
			}
			for i := range stopped.Withdrawn {
				m.stream.GivenBack(stopped.Withdrawn[i].ID, stopped.Withdrawn[i].LinearText())
			}
			return nil
		}
	})
}

func (m *model) closeChat(string) tea.Cmd {
	if m.last.IsZero() {
		m.note(m.Text.T("nothing was said in this chat"))
		return nil
	}
	session := m.session
	return m.tell(func(ctx context.Context) error { return m.Control.CloseSession(ctx, session) },
		m.Text.T("closed; a message opens it again"))
}

func (m *model) skills(string) tea.Cmd {
	if m.Skills != nil {
		m.Skills(m.note)
	}
	return nil
}

// tell says something to the Control, and notes what it did.
func (m *model) tell(say func(ctx context.Context) error, said string) tea.Cmd {
	return m.do(func(ctx context.Context) func() tea.Cmd {
		err := say(ctx)
		return func() tea.Cmd {
			if m.told(err); err == nil && said != "" {
				m.note(said)
			}
			return nil
		}
	})
}
