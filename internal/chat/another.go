package chat

import (
	"context"
	"encoding/json"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/plain"
)

// newStream is what writes a session here. A person unfolds calls by their numbers; what is read by
// a program has none.
func (c *Chat) newStream() *Stream {
	s := &Stream{Out: c.Out, Err: c.Err, Text: c.Text}
	if c.Terminal {
		s.Mark = c.calls.Mark
	}
	return s
}

// number gives a call that has its result the number under which it is unfolded.
func (c *Chat) number(event *regie.Event) {
	var body struct {
		CallID regie.ID `json:"call_id"`
	}
	if event != nil && event.Type == regie.EventToolResult && json.Unmarshal(event.Body, &body) == nil {
		c.calls.Number(body.CallID, c.round)
	}
}

// fresh makes the chat one of another session.
func (c *Chat) fresh(ctx context.Context, session regie.ID) {
	c.markRead(ctx)
	if c.feed != nil {
		c.feed.Stop()
		c.feed = nil
	}
	c.stream = c.newStream()
	c.calls.Forget()
	c.asker.Again()
	c.session, c.round, c.last, c.own, c.ownDone = session, regie.ID{}, regie.ID{}, regie.ID{}, regie.ID{}
	c.seen, c.read, c.state = 0, 0, regie.SessionIdle
	c.due, c.interrupting, c.prompted = false, false, false
}

// takeUp goes on with a chat that was opened.
func (c *Chat) takeUp(ctx context.Context, past *Past) {
	c.session, c.Request.Agent = past.View.ID, past.View.Agent
	c.calls.Copies(past)
	for i := range past.Rounds {
		c.calls.Past(&past.Rounds[i])
	}
	c.stream.Past(past)
	c.last, c.round, c.own = past.Last, past.Running, OwnRunning(past)
	if !c.round.IsZero() { // how it ends counts for the exit code
		c.rounds = append(c.rounds, c.round)
	}
	c.become(past.View.State)
	c.seen = past.View.Head
	c.feed = Follow(ctx, c.Control, c.session, past.View.Head)
}

// goOn goes on with the chat that a person names, in place of this one.
func (c *Chat) goOn(ctx context.Context, name string) error {
	past, err := Open(ctx, c.Control, c.Request.Root, name, shownRounds)
	if err != nil {
		return c.refused(ctx, err)
	}
	c.fresh(ctx, past.View.ID)
	c.takeUp(ctx, &past)
	return nil
}

// another begins a new chat.
func (c *Chat) another(ctx context.Context) error {
	c.fresh(ctx, regie.NewID())
	c.stream.Note(c.Text.T("a new chat"))
	return nil
}

// lost takes in that nothing more of the session comes. To a person whose chat was removed
// elsewhere it says so, and another one begins.
func (c *Chat) lost(ctx context.Context, why error) error {
	if !c.Terminal || regie.CodeOf(why) != regie.CodeNotFound {
		return why
	}
	c.stream.fresh()
	c.fresh(ctx, regie.NewID())
	c.stream.Note(c.Text.T("this chat was removed elsewhere; what you write now begins a new one"))
	return ErrMoved
}

// fork goes on in a copy of this chat (decision 17).
func (c *Chat) fork(ctx context.Context, name string) error {
	if c.last.IsZero() {
		c.stream.Note(c.Text.T("nothing was said in this chat"))
		return nil
	}
	in := dispatch.ForkRequest{SessionID: regie.NewID(), From: c.session, Name: name}
	if _, err := c.Control.Fork(ctx, in); err != nil {
		return c.refused(ctx, err)
	}
	return c.goOn(ctx, in.SessionID.String())
}

// model says which model answers and which there are, or chooses another one.
func (c *Chat) model(ctx context.Context, name string) error {
	providers, err := c.Control.Providers(ctx)
	if err != nil {
		return c.refused(ctx, err)
	}
	if name != "" {
		var names []string
		for i := range providers {
			names = append(names, providers[i].Name)
		}
		c.stream.Note(ChooseModel(c.Text, &c.Request, names, c.Settings, name))
		return nil
	}
	agents, err := c.Control.Agents(ctx)
	if err != nil {
		return c.refused(ctx, err)
	}
	provider, model, err := c.answers(ctx, agents)
	if err != nil {
		return c.refused(ctx, err)
	}
	c.stream.Note(Answers(c.Text, provider, model))
	asking, cancel := context.WithTimeout(ctx, ListWithin)
	defer cancel()
	list, err := c.Control.Models(asking)
	if err != nil {
		err = c.refused(ctx, err) // what was used can be chosen all the same
	}
	Silent(c.Text, list, c.stream.Note)
	for _, one := range Choosable(provider, model, agents, list) {
		c.stream.Note("  " + plain.Line(one))
	}
	return err
}

// answers is the model that answers the next message: what this chat asks for, what its newest run
// was asked with, or what the engine has.
func (c *Chat) answers(ctx context.Context, agents []dispatch.AgentView) (provider, model string, err error) {
	if c.Request.Model != "" {
		return c.Request.Provider, c.Request.Model, nil
	}
	if !c.last.IsZero() {
		view, err := c.Control.Session(ctx, c.session)
		if err != nil || view.Model != "" {
			return view.Provider, view.Model, err
		}
	}
	provider, model = EngineModel(agents, c.Request.Agent)
	return provider, model, nil
}

// agent says which agents there are, or begins a new chat with one.
func (c *Chat) agent(ctx context.Context, name string) error {
	agents, err := c.Control.Agents(ctx)
	if err != nil {
		return c.refused(ctx, err)
	}
	for i := range agents {
		if agents[i].Name != name {
			continue
		}
		if c.Request.Agent == name {
			name = ""
			break
		}
		if !c.last.IsZero() {
			c.fresh(ctx, regie.NewID())
		}
		c.Request.Agent = name
		c.stream.Note(c.Text.T("a new chat with %s", plain.Line(name)))
		return nil
	}
	if name != "" {
		c.stream.Note(c.Text.T("there is no agent %s", plain.Line(name)))
	}
	c.stream.Note(c.Text.T("%s answers here; /agent NAME begins a new chat with another one",
		plain.Line(c.Request.Agent)))
	for i := range agents {
		c.stream.Note("  " + plain.Line(agents[i].Name+"  "+agents[i].Model))
	}
	return nil
}

// show unfolds a call; without a number the newest one.
func (c *Chat) show(ctx context.Context, word string) error {
	n, err := c.calls.Find(word)
	if err != nil {
		return c.refused(ctx, err)
	}
	call, err := c.calls.Read(n)(ctx, c.Control)
	if err != nil {
		return c.refused(ctx, err)
	}
	Unfold(c.Text, call, n, c.stream.Note)
	return nil
}

// cache says what is in the response cache, or empties it; cost says what was spent.
func (c *Chat) cache(ctx context.Context, word string) error {
	line, err := Cached(ctx, c.Control, c.Text, c.Request.Root, word)
	if err != nil {
		return c.refused(ctx, err)
	}
	c.stream.Note(line)
	return nil
}

func (c *Chat) cost(ctx context.Context) error {
	session := c.session
	if c.last.IsZero() {
		session = regie.ID{}
	}
	lines, err := Costs(ctx, c.Control, c.Text, c.Request.Root, session)
	if err != nil {
		return c.refused(ctx, err)
	}
	for _, line := range lines {
		c.stream.Note(line)
	}
	return nil
}
