package chat

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/i18n"
	"github.com/regie-run/regie/internal/sanitize"
	"github.com/regie-run/regie/internal/store"
)

// SlashCommand is something that is typed with a slash.
type SlashCommand struct {
	Name, About string
	run         func(c *Conversation, rest string)
}

// SlashCommands are all slash commands, in the order of /help.
func SlashCommands(t *i18n.Printer) []SlashCommand {
	return []SlashCommand{
		{"/help", t.T("commands and keys"), func(c *Conversation, _ string) { c.Renderer.ShowHelp() }},
		{"/undo", t.T("undo the newest run, after a preview: /undo [files | force | ID]"), planUndo},
		{"/fork", t.T("continue in a copy of this chat; the files stay as they are"), forkChat},
		{"/resume", t.T("resume a paused run, or another chat: /resume [ID]"), resumeChat},
		{"/new", t.T("begin another chat"), func(c *Conversation, _ string) {
			c.Start(regie.NewID())
			c.Renderer.Separate()
			c.Note(c.Text.T("a new chat"))
		}},
		{"/clear", t.T("begin another chat on an empty screen"), func(c *Conversation, _ string) {
			c.Start(regie.NewID())
			c.Renderer.ClearScreen()
		}},
		{"/model", t.T("which model answers: /model [NAME | PROVIDER/NAME]"), chooseModel},
		{"/mode", t.T("what runs without asking, from the next call on: /mode [ask | accept_edits | plan | auto]"), chooseMode},
		{"/agent", t.T("which agent answers in a new chat: /agent [NAME]"), chooseAgent},
		{"/approvals", t.T("ask again what this chat waits for"), askAgain},
		{"/rules", t.T("standing rules; /revoke ID revokes one"), listRules},
		{"/revoke", t.T("revoke a standing rule: /revoke ID"), revokeRule},
		{"/automations", t.T("the automations here: /automations [run | show | pause | resume | stop | enable | disable] [ID]"), manageAutomations},
		{"/automate", t.T("make this chat an automation: /automate weekly mon 09:00"), automateChat},
		{"/cost", t.T("the cost of this chat and of today"), showCost},
		{"/cache", t.T("the content of the response cache; /cache clear empties it"), showCache},
		{"/show", t.T("show a whole call: /show [NUMBER]"), (*Conversation).ShowCall},
		{"/steer", t.T("send a message to the agent with its next step: /steer TEXT"), steerRun},
		{"/queue", t.T("queued messages: /queue [rm N | edit N]"), editQueue},
		{"/pause", t.T("pause the run; /resume continues it"), func(c *Conversation, _ string) {
			c.tellControl(!c.Round.IsZero(), c.Round, Control.Pause, "")
		}},
		{"/stop", t.T("end the run and close the chat; a message opens it again"), func(c *Conversation, _ string) {
			stop := func(control Control, ctx context.Context, session regie.ID) error {
				_, err := control.Stop(ctx, session) // the log tells what it gives back
				return err
			}
			c.tellControl(!c.Round.IsZero(), c.Session, stop, "")
		}},
		{"/close", t.T("close the chat while nothing runs or waits"), func(c *Conversation, _ string) {
			c.tellControl(!c.Last.IsZero(), c.Session, Control.CloseSession,
				c.Text.T("closed; a message opens it again"))
		}},
		{"/skills", t.T("the skills that the agent has here"), func(c *Conversation, _ string) {
			if c.Skills != nil {
				c.Skills(c.Note)
			}
		}},
		{"/quit", t.T("leave; what runs stays as it is stored"), func(c *Conversation, _ string) {
			c.Renderer.Leave()
		}},
	}
}

// CustomCommand is a slash command of a workspace, or a skill that is used by its name: Expand
// makes the message of what was typed behind it.
type CustomCommand struct {
	Name, About string
	Expand      func(typed string) string
}

// customFor is how long the commands of a workspace are offered as they were read.
const customFor = 3 * time.Second

// SlashCommands are all slash commands of this chat, in the order of /help. A command of the
// workspace replaces none of Regie's.
func (c *Conversation) SlashCommands() []SlashCommand {
	out := SlashCommands(c.Text)
	if c.Commands != nil && time.Since(c.customAt) > customFor {
		c.custom, c.customAt = nil, time.Now()
		for _, own := range c.Commands() {
			name := "/" + own.Name
			if !slices.ContainsFunc(slices.Concat(out, c.custom), func(s SlashCommand) bool { return s.Name == name }) {
				say := func(c *Conversation, rest string) { c.Say(own.Expand(rest)) }
				c.custom = append(c.custom, SlashCommand{name, sanitize.Line(own.About), say})
			}
		}
	}
	return append(out, c.custom...)
}

// Obey runs a line that begins with a slash. Whether the commands of the workspace are trusted is
// looked up at that moment.
func (c *Conversation) Obey(line string) {
	c.customAt = time.Time{}
	c.History.Add(c.Request.Root, line)
	word, rest, _ := strings.Cut(line, " ")
	if word == "/exit" {
		word = "/quit"
	}
	for _, command := range c.SlashCommands() {
		if command.Name == word {
			command.run(c, strings.TrimSpace(rest))
			return
		}
	}
	c.Note(c.Text.T(
		"there is no %s; /help lists the commands; to send a message that begins with a slash, write two",
		sanitize.Line(word)))
}

// tellControl says something about a round or a session to the Control, where there is one, and
// notes that it did.
func (c *Conversation) tellControl(has bool, id regie.ID, say func(Control, context.Context, regie.ID) error,
	done string,
) {
	if !has {
		c.Note(c.Text.T("nothing runs in this chat"))
		return
	}
	loadBeside(c, func(ctx context.Context) (string, error) { return done, say(c.Control, ctx, id) },
		func(done string) {
			if done != "" {
				c.Note(done)
			}
		})
}

// forkChat goes on in a copy of this chat (decision 17).
func forkChat(c *Conversation, name string) {
	if c.Last.IsZero() {
		c.Note(c.Text.T("nothing was said in this chat"))
		return
	}
	in, root := dispatch.ForkRequest{SessionID: regie.NewID(), From: c.Session, Name: name}, c.Request.Root
	loadBeside(c, func(ctx context.Context) (Past, error) {
		if _, err := c.Control.Fork(ctx, in); err != nil {
			return Past{}, err
		}
		return Open(ctx, c.Control, root, in.SessionID.String(), c.ShownRounds)
	}, func(past Past) {
		c.Renderer.Separate()
		c.goOn(past)
	})
}

// Resume replaces this chat with the one that a person names.
func (c *Conversation) Resume(name string) {
	root := c.Request.Root
	loadBeside(c, func(ctx context.Context) (Past, error) {
		return Open(ctx, c.Control, root, name, c.ShownRounds)
	}, c.goOn)
}

func (c *Conversation) goOn(past Past) {
	c.TakeUp(&past)
	c.Follow(past.View.Head)
}

// resumeChat goes on with the paused run, or with another chat.
func resumeChat(c *Conversation, name string) {
	switch {
	case name != "":
		c.Resume(name)
		return
	case c.State == regie.SessionPaused && !c.Round.IsZero():
		clear(c.Later) // requests put off before the pause are asked again
		c.tellControl(true, c.Round, Control.Resume, "")
		return
	}
	filter := store.SessionFilter{Root: c.Request.Root, Type: regie.SessionChat, Limit: 50}
	loadBeside(c, func(ctx context.Context) ([]store.SessionSummary, error) {
		return c.Control.Sessions(ctx, filter)
	}, func(sessions []store.SessionSummary) {
		choice := &Choice{Title: c.Text.T("which chat:"), Then: c.Resume}
		for i := range sessions {
			if s := &sessions[i]; s.ID != c.Session {
				choice.Options = append(choice.Options, Option{s.ID.String(), Short(s.ID) + "  " +
					s.LastActivity.Local().Format("2006-01-02 15:04") + "  " + string(s.State) + "  " + s.Name})
			}
		}
		c.offerChoice(choice)
	})
}

// offerChoice has the person choose, where there is something to choose from.
func (c *Conversation) offerChoice(choice *Choice) {
	if len(choice.Options) == 0 {
		c.Note(c.Text.T("there is nothing to choose from"))
		return
	}
	c.Renderer.Choose(choice)
}

// chooseAgent says which agents there are, or begins a new chat with one.
func chooseAgent(c *Conversation, name string) {
	filter := dispatch.AgentFilter{Root: c.Request.Root}
	loadBeside(c, func(ctx context.Context) ([]dispatch.AgentView, error) { return c.Control.Agents.List(ctx, filter) },
		func(agents []dispatch.AgentView) {
			choice := &Choice{Title: c.Text.T("which agent:"), Then: c.setAgent, Note: c.Text.T(
				"%s answers here; /agent NAME begins a new chat with another one", sanitize.Line(c.Request.Agent))}
			for i := range agents {
				if a := &agents[i]; a.Problem == "" {
					said := sanitize.Line(a.Name + "  " + a.Model + "  " + a.Description)
					choice.Options = append(choice.Options, Option{a.Name, strings.TrimRight(said, " ")})
				}
			}
			switch {
			case slices.ContainsFunc(agents, func(a dispatch.AgentView) bool { return a.Name == name }):
				c.setAgent(name)
			case name != "":
				c.Note(c.Text.T("there is no agent %s", sanitize.Line(name)))
			default:
				c.offerChoice(choice)
			}
		})
}

func (c *Conversation) setAgent(name string) {
	if c.Request.Agent == name {
		return
	}
	if !c.Last.IsZero() {
		c.Start(regie.NewID())
	}
	c.Request.Agent = name
	c.Note(c.Text.T("a new chat with %s", sanitize.Line(name)))
}

func askAgain(c *Conversation, _ string) {
	clear(c.Later)
	if c.Due = c.Waiting(); !c.Due {
		c.Note(c.Text.T("this chat is not waiting"))
	}
}

func listRules(c *Conversation, _ string) {
	filter := store.RuleFilter{Root: c.Request.Root}
	loadBeside(c, func(ctx context.Context) (store.RuleList, error) { return c.Control.Rules.List(ctx, filter) },
		c.Page.Rules)
}

func revokeRule(c *Conversation, name string) {
	if name == "" {
		c.Note(c.Text.T("say which: /revoke ID; /rules lists them"))
		return
	}
	root := c.Request.Root
	loadBeside(c, func(ctx context.Context) (store.StandingRule, error) {
		rule, err := FindRule(ctx, c.Control, root, name)
		if err == nil {
			err = c.Control.Rules.Revoke(ctx, dispatch.RevokeRequest{RuleIDs: []regie.ID{rule.ID}})
		}
		return rule, err
	}, func(rule store.StandingRule) { c.Note(Revoked(c.Text, &rule)) })
}

// showCost shows the cost of the chat and of today.
func showCost(c *Conversation, _ string) {
	session, root, last := c.Session, c.Request.Root, c.Last
	loadBeside(c, func(ctx context.Context) (out []string, err error) {
		if !last.IsZero() {
			view, err := c.Control.Session(ctx, session)
			if err != nil {
				return nil, err
			}
			out = append(out, c.Text.T("this chat: %s", Cost(c.Text, view.Spent)))
		}
		spent, err := c.Control.Spent(ctx, root)
		if line := Today(c.Text, spent, false); line != "" {
			out = append(out, line)
		}
		if len(out) == 0 {
			out = []string{c.Text.T("nothing was spent today")}
		}
		return out, err
	}, c.Stream.writeNotes)
}

// showCache shows the statistics of the workspace's response cache, or empties it.
func showCache(c *Conversation, word string) {
	root := c.Request.Root
	loadBeside(c, func(ctx context.Context) (string, error) {
		if word == "clear" {
			cleared, err := c.Control.Cache.Clear(ctx, dispatch.ClearRequest{Root: root})
			return c.Text.T("answers removed from the response cache: %d", int(cleared.Entries)), err
		}
		s, err := c.Control.Cache.Stats(ctx, root)
		return c.Text.T("response cache of this workspace: %d answers, given again %d times, about %d tokens saved",
			int(s.Entries), int(s.Hits), int(s.Saved)), err
	}, c.Note)
}

// ShowCall unfolds a call by its number; without one the newest.
func (c *Conversation) ShowCall(word string) {
	one, n, err := c.Calls.findCall(word)
	if err != nil {
		c.Note(c.Text.Error(err))
		return
	}
	loadBeside(c, func(ctx context.Context) (*regie.Call, error) { return one.readCall(ctx, c.Control) },
		func(call *regie.Call) {
			c.showCall(call, n)
			c.Renderer.Separate()
		})
}

func steerRun(c *Conversation, typed string) {
	if typed == "" {
		c.Note(c.Text.T("say what: /steer TEXT"))
		return
	}
	c.Send(typed, store.Steer)
}

// planUndo plans the undo of the newest run, or of a named one.
func planUndo(c *Conversation, rest string) {
	if rest == "" && c.Last.IsZero() {
		c.Note(c.Text.T("nothing was said in this chat"))
		return
	}
	in := dispatch.UndoRequest{Chat: true, SessionID: c.Session, Root: c.Request.Root}
	if err := undoWords(&in, rest); err != nil {
		c.Renderer.ShowError(err)
		return
	}
	loadBeside(c, func(ctx context.Context) (regie.UndoPlan, error) { return c.Control.Undos.Plan(ctx, in) },
		func(plan regie.UndoPlan) {
			c.Renderer.Separate()
			more := c.Page.UndoPlan(&plan, shownLines)
			if len(plan.Conflicts(in.Force)) > 0 {
				c.Note(UndoInTheWay(c.Text, &plan, "/undo force"))
				return
			}
			confirmUndo(c, &plan, Agreed(in, &plan), more)
		})
}

// confirmUndo asks whether what was shown is taken back (decision 16). more says that there is more
// of it to be shown.
func confirmUndo(c *Conversation, plan *regie.UndoPlan, agreed dispatch.UndoRequest, more bool) {
	keys := []Key{{yesNames, c.Text.T("[y] undo"), func() {
		c.Stream.Own(agreed.UndoID, true)
		loadBeside(c, func(ctx context.Context) (regie.Undo, error) { return c.Control.Undos.Undo(ctx, agreed) },
			func(undone regie.Undo) { c.Page.Undone(&undone) })
	}}}
	if more {
		keys = append(keys, Key{"v", c.Text.T("[v] the whole diff"), func() {
			c.Page.UndoPlan(plan, 0)
			confirmUndo(c, plan, agreed, false)
		}})
	}
	c.Renderer.Confirm("", append(keys, Key{"esc " + noNames, c.Text.T("[n] leave it"), func() {
		c.Note(c.Text.T("nothing was undone"))
	}}))
}
