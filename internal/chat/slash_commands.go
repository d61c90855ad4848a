package chat

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/plain"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/text"
)

// SlashCommand is something that is typed with a slash.
type SlashCommand struct {
	Name, About string
	run         func(c *Conversation, rest string)
}

// SlashCommands are all slash commands, in the order of /help.
func SlashCommands(t *text.Printer) []SlashCommand {
	return []SlashCommand{
		{"/help", t.T("what can be typed and pressed"), func(c *Conversation, _ string) { c.Renderer.ShowHelp() }},
		{"/undo", t.T("take the newest run back, after a look at it: /undo [files | force | ID]"), planUndo},
		{"/fork", t.T("go on in a copy of this chat; the files stay as they are"), forkChat},
		{"/resume", t.T("go on with a paused run, or with another chat: /resume [ID]"), resumeChat},
		{"/new", t.T("begin another chat"), startAnother},
		{"/clear", t.T("begin another chat on an empty screen"), clearScreen},
		{"/model", t.T("which model answers: /model [NAME | PROVIDER/NAME]"), chooseModel},
		{"/agent", t.T("which agent answers in a new chat: /agent [NAME]"), chooseAgent},
		{"/approvals", t.T("ask again what this chat waits for"), askAgain},
		{"/rules", t.T("what is allowed without asking; /revoke ID takes that back"), listRules},
		{"/revoke", t.T("take back what was allowed for longer: /revoke ID"), revokeRule},
		{"/cost", t.T("what this chat and today have cost"), showCost},
		{"/cache", t.T("what is in the response cache; /cache clear empties it"), showCache},
		{"/show", t.T("unfold a call: /show [NUMBER]"), (*Conversation).ShowCall},
		{"/steer", t.T("give the agent something with its next step: /steer TEXT"), steerRun},
		{"/queue", t.T("what waits for its turn: /queue [rm N | edit N]"), editQueue},
		{"/pause", t.T("start nothing new; /resume goes on"), pauseRun},
		{"/stop", t.T("end the run and close the chat; a message opens it again"), stopRun},
		{"/close", t.T("close the chat while nothing runs or waits"), closeSession},
		{"/skills", t.T("the skills that the agent has here"), listSkills},
		{"/quit", t.T("leave; what runs stays as it is stored"), leaveChat},
	}
}

// Obey runs a line that begins with a slash.
func (c *Conversation) Obey(line string) {
	word, rest, _ := strings.Cut(line, " ")
	if word == "/exit" {
		word = "/quit"
	}
	for _, command := range SlashCommands(c.Text) {
		if command.Name == word {
			command.run(c, strings.TrimSpace(rest))
			return
		}
	}
	c.Note(c.Text.T(
		"there is no %s; /help lists what there is, and a message that begins with a slash is written with two",
		plain.Line(word)))
}

// begun reports whether something was said in the chat, and else says that nothing was.
func (c *Conversation) begun() bool {
	if c.Last.IsZero() {
		c.Note(c.Text.T("nothing was said in this chat"))
	}
	return !c.Last.IsZero()
}

// running reports whether a run is open, and else says that none is.
func (c *Conversation) running() bool {
	if c.Round.IsZero() {
		c.Note(c.Text.T("nothing runs in this chat"))
	}
	return !c.Round.IsZero()
}

// forkChat goes on in a copy of this chat (decision 17).
func forkChat(c *Conversation, name string) {
	if !c.begun() {
		return
	}
	in, root := dispatch.ForkRequest{SessionID: regie.NewID(), From: c.Session, Name: name}, c.Request.Root
	load(c, func(ctx context.Context) (Past, error) {
		if _, err := c.Control.Fork(ctx, in); err != nil {
			return Past{}, err
		}
		return Open(ctx, c.Control, root, in.SessionID.String(), c.ShownRounds)
	}, func(past Past) {
		c.Renderer.Separate()
		c.goOn(past)
	})
}

// Resume goes on with the chat that a person names, in place of this one.
func (c *Conversation) Resume(name string) {
	root := c.Request.Root
	load(c, func(ctx context.Context) (Past, error) {
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
		clear(c.Later) // what was put off before the pause is asked again
		round := c.Round
		c.tell(func(ctx context.Context) error { return c.Control.Resume(ctx, round) }, "")
		return
	}
	filter := store.SessionFilter{Root: c.Request.Root, Type: regie.SessionChat, Limit: 50}
	load(c, func(ctx context.Context) ([]store.SessionSummary, error) {
		return c.Control.Sessions(ctx, filter)
	}, func(sessions []store.SessionSummary) {
		choice := &Choice{Title: c.Text.T("which chat:"), Then: c.Resume}
		for i := range sessions {
			if s := &sessions[i]; s.ID != c.Session {
				choice.Options = append(choice.Options, Option{s.ID.String(), Short(s.ID) + "  " +
					s.LastActivity.Local().Format("2006-01-02 15:04") + "  " + string(s.State) + "  " + s.Name})
			}
		}
		c.choose(choice)
	})
}

// choose has the person choose, where there is something to choose from.
func (c *Conversation) choose(choice *Choice) {
	if len(choice.Options) == 0 {
		c.Note(c.Text.T("there is nothing to choose from"))
		return
	}
	c.Renderer.Choose(choice)
}

func startAnother(c *Conversation, _ string) {
	c.Start(regie.NewID())
	c.Renderer.Separate()
	c.Note(c.Text.T("a new chat"))
}

func clearScreen(c *Conversation, _ string) {
	c.Start(regie.NewID())
	c.Renderer.ClearScreen()
}

// listHolds is how long what the providers said of their models is taken for true.
const listHolds = 5 * time.Minute

// answering is what is known of the models and agents of an engine.
type answering struct {
	providers       []string
	agents          []dispatch.AgentView
	provider, model string // of the next message
	list            []dispatch.ProviderModels
	listErr         error // what was used can be chosen all the same
}

// chooseModel says which model answers and which there are, or chooses another one.
func chooseModel(c *Conversation, name string) {
	request, session, last := c.Request, c.Session, c.Last
	asks := name == "" && time.Since(c.modelsAt) > listHolds
	has := answering{list: c.models}
	if asks {
		c.Asking = c.Text.T("asking which models there are…")
	}
	load(c, func(ctx context.Context) (answering, error) {
		providers, err := c.Control.Providers(ctx)
		if err != nil {
			return has, err
		}
		for i := range providers {
			has.providers = append(has.providers, providers[i].Name)
		}
		if has.agents, err = c.Control.Agents(ctx); err != nil || name != "" {
			return has, err
		}
		has.provider, has.model = request.Provider, request.Model
		if request.Model == "" {
			has.provider, has.model = EngineModel(has.agents, request.Agent)
		}
		if request.Model == "" && !last.IsZero() {
			view, err := c.Control.Session(ctx, session)
			if err != nil {
				return has, err
			}
			if view.Model != "" {
				has.provider, has.model = view.Provider, view.Model
			}
		}
		if asks {
			asking, cancel := context.WithTimeout(ctx, ListWithin)
			defer cancel()
			has.list, has.listErr = c.Control.Models(asking)
		}
		return has, nil
	}, func(has answering) {
		setModel := func(name string) {
			c.Note(ChooseModel(c.Text, &c.Request, has.providers, c.Settings, name))
		}
		if name != "" {
			setModel(name)
			return
		}
		if c.Renderer.ShowError(has.listErr); asks && has.listErr == nil {
			c.models, c.modelsAt = has.list, time.Now()
		}
		c.Note(Answers(c.Text, has.provider, has.model))
		Silent(c.Text, has.list, c.Note)
		choice := &Choice{Title: c.Text.T("which model:"), Then: setModel}
		for _, k := range Choosable(has.provider, has.model, has.agents, has.list) {
			choice.Options = append(choice.Options, Option{k, k})
		}
		if len(choice.Options) > 1 || has.model == "" && len(choice.Options) > 0 {
			c.Renderer.Choose(choice)
		}
	})
}

// chooseAgent says which agents there are, or begins a new chat with one.
func chooseAgent(c *Conversation, name string) {
	load(c, c.Control.Agents, func(agents []dispatch.AgentView) {
		choice := &Choice{Title: c.Text.T("which agent:"), Then: c.setAgent, Note: c.Text.T(
			"%s answers here; /agent NAME begins a new chat with another one", plain.Line(c.Request.Agent))}
		for i := range agents {
			choice.Options = append(choice.Options, Option{agents[i].Name, agents[i].Name + "  " + agents[i].Model})
		}
		if slices.ContainsFunc(agents, func(a dispatch.AgentView) bool { return a.Name == name }) {
			c.setAgent(name)
			return
		}
		if name != "" {
			c.Note(c.Text.T("there is no agent %s", plain.Line(name)))
		}
		c.choose(choice)
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
	c.Note(c.Text.T("a new chat with %s", plain.Line(name)))
}

func askAgain(c *Conversation, _ string) {
	clear(c.Later)
	if c.Due = c.Waiting(); !c.Due {
		c.Note(c.Text.T("this chat waits for nothing"))
	}
}

func listRules(c *Conversation, _ string) {
	filter := store.RuleFilter{Root: c.Request.Root}
	load(c, func(ctx context.Context) (store.RuleList, error) { return c.Control.Rules(ctx, filter) },
		func(list store.RuleList) {
			page := *c.Page
			page.Inside = false
			page.Rules(list)
		})
}

func revokeRule(c *Conversation, name string) {
	if name == "" {
		c.Note(c.Text.T("say which: /revoke ID; /rules lists them"))
		return
	}
	root := c.Request.Root
	load(c, func(ctx context.Context) (store.StandingRule, error) {
		rule, err := FindRule(ctx, c.Control, root, name)
		if err == nil {
			err = c.Control.Revoke(ctx, dispatch.RevokeRequest{RuleIDs: []regie.ID{rule.ID}})
		}
		return rule, err
	}, func(rule store.StandingRule) { c.Note(Revoked(c.Text, &rule)) })
}

func showCost(c *Conversation, _ string) {
	session, root := c.Session, c.Request.Root
	if c.Last.IsZero() {
		session = regie.ID{}
	}
	load(c, func(ctx context.Context) ([]string, error) {
		return Costs(ctx, c.Control, c.Text, root, session)
	}, c.notes)
}

func showCache(c *Conversation, word string) {
	root := c.Request.Root
	load(c, func(ctx context.Context) (string, error) {
		return Cached(ctx, c.Control, c.Text, root, word)
	}, c.Note)
}

// ShowCall unfolds a call by its number; without one the newest.
func (c *Conversation) ShowCall(word string) {
	n, err := c.Calls.Find(word)
	if err != nil {
		c.Note(c.Text.Error(err))
		return
	}
	read := c.Calls.Read(n)
	load(c, func(ctx context.Context) (*regie.Call, error) { return read(ctx, c.Control) }, func(call *regie.Call) {
		Unfold(c.Text, call, n, c.Note)
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

// editQueue lists what waits for its turn, or takes one of it back (decision 10).
func editQueue(c *Conversation, rest string) {
	word, number, _ := strings.Cut(rest, " ")
	if word != "rm" && word != "edit" {
		c.notes(QueueLines(c.Text, c.Queue()))
		return
	}
	q, ok := FindQueued(c.Queue(), strings.TrimSpace(number))
	if !ok {
		c.Note(c.Text.T("there is no such message in the queue: /queue lists them"))
		return
	}
	c.TakeBack(q, word == "edit")
}

func pauseRun(c *Conversation, _ string) {
	if round := c.Round; c.running() {
		c.tell(func(ctx context.Context) error { return c.Control.Pause(ctx, round) }, "")
	}
}

func stopRun(c *Conversation, _ string) {
	session := c.Session
	if !c.running() {
		return
	}
	c.tell(func(ctx context.Context) error {
		_, err := c.Control.Stop(ctx, session) // the log tells what it gives back
		return err
	}, "")
}

func closeSession(c *Conversation, _ string) {
	session := c.Session
	if c.begun() {
		c.tell(func(ctx context.Context) error { return c.Control.CloseSession(ctx, session) },
			c.Text.T("closed; a message opens it again"))
	}
}

func listSkills(c *Conversation, _ string) {
	if c.Skills != nil {
		c.Skills(c.Note)
	}
}

func leaveChat(c *Conversation, _ string) { c.Renderer.Leave() }

// UndoOffer is what an undo would take back. The person sees it and agrees to it, or not (decision
// 16).
type UndoOffer struct {
	c    *Conversation
	in   dispatch.UndoRequest
	plan regie.UndoPlan
	// More says that a diff was shortened.
	More bool
}

// planUndo plans what would be taken back of the newest run, or of what is named.
func planUndo(c *Conversation, rest string) {
	if rest == "" && !c.begun() {
		return
	}
	in := dispatch.UndoRequest{Chat: true, SessionID: c.Session, Root: c.Request.Root}
	err := UndoWords(&in, rest)
	load(c, func(ctx context.Context) (regie.UndoPlan, error) {
		if err != nil {
			return regie.UndoPlan{}, err
		}
		return c.Control.PlanUndo(ctx, in)
	}, func(plan regie.UndoPlan) { c.Renderer.ConfirmUndo(&UndoOffer{c: c, in: in, plan: plan}) })
}

// Show writes what would be taken back, and reports whether it can be.
func (u *UndoOffer) Show() bool {
	c := u.c
	c.Renderer.Separate()
	u.More = c.Page.UndoPlan(&u.plan, shownLines)
	if len(u.plan.Conflicts(u.in.Force)) > 0 {
		c.Note(UndoInTheWay(c.Text, &u.plan, "/undo force"))
		return false
	}
	return true
}

// ShowWhole writes the diffs whole.
func (u *UndoOffer) ShowWhole() {
	u.c.Page.UndoPlan(&u.plan, 0)
	u.More = false
}

// Refuse leaves all as it is.
func (u *UndoOffer) Refuse() { u.c.Note(u.c.Text.T("nothing was undone")) }

// Agree takes it back, and calls then once that is shown.
func (u *UndoOffer) Agree(then func()) {
	c := u.c
	agreed := Agreed(u.in, &u.plan)
	c.Stream.Own(agreed.UndoID)
	c.Renderer.Do(Beside, func(ctx context.Context) func() {
		undone, err := c.Control.Undo(ctx, agreed)
		return func() {
			if err == nil {
				c.Page.Undone(&undone)
			}
			c.Renderer.ShowError(err)
			then()
		}
	})
}

// showOutcome shows what came of the person's own command, once its round has ended: they gave it
// to read that. What comes behind the end waits for it.
func (c *Conversation) showOutcome(round regie.ID) {
	own, session := c.own, c.Session
	if c.own = (regie.ID{}); own.IsZero() {
		return
	}
	c.Renderer.Do(Held, func(ctx context.Context) func() {
		view, err := c.Control.Get(ctx, round)
		return func() {
			if session != c.Session { // another chat has been taken up since
				return
			}
			defer c.Stream.Came("") // where nothing was found
			c.Renderer.ShowError(err)
			for i := range view.Exchanges {
				for k := range view.Exchanges[i].Calls {
					if call := &view.Exchanges[i].Calls[k]; call.ID == own {
						c.Stream.Came(call.Result)
						c.showOwn(call)
					}
				}
			}
		}
	})
}
