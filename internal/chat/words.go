package chat

import (
	"context"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// word obeys a line that begins with a slash.
func (c *Chat) word(ctx context.Context, line string) error {
	word, rest, _ := strings.Cut(line, " ")
	rest = strings.TrimSpace(rest)
	switch word {
	case "/exit", "/quit":
		return ErrLeave
	case "/help":
		c.help()
		return nil
	case "/approvals":
		c.asker.Again()
		c.due = waiting(c.state)
		if !c.due {
			c.stream.Note(c.Text.T("this chat waits for nothing"))
		}
		return nil
	case "/steer":
		if rest == "" {
			c.stream.Note(c.Text.T("say what: /steer TEXT"))
			return nil
		}
		return c.send(ctx, rest, store.Steer)
	case "/stop", "/pause", "/resume":
		return c.control(ctx, word)
	}
	c.stream.Note(c.Text.T("there is no %s; /help lists what there is, and a message that begins with a slash is written with two", word))
	return nil
}

// control says a stopping word to the run, or lets it go on (decision 6).
func (c *Chat) control(ctx context.Context, word string) error {
	if c.round.IsZero() {
		c.stream.Note(c.Text.T("nothing runs in this chat"))
		return nil
	}
	var err error
	switch word {
	case "/stop":
		err = c.Control.Stop(ctx, c.session)
	case "/pause":
		err = c.Control.Pause(ctx, c.round)
	default:
		c.asker.Again() // what was put off before the pause is asked again
		err = c.Control.Resume(ctx, c.round)
	}
	if err != nil {
		return c.refused(ctx, err)
	}
	return nil
}

// help lists what can be typed.
func (c *Chat) help() {
	for _, line := range []string{
		c.Text.T("Type a message and Enter. A line that ends in \\ goes on; lines that are pasted together are one message."),
		c.Text.T("What you type while the agent works is queued."),
		c.Text.T("/steer TEXT  give it to the agent with its next step; what it asks about is withdrawn"),
		c.Text.T("/approvals   ask again what this chat waits for"),
		c.Text.T("/pause       start nothing new;  /resume  go on"),
		c.Text.T("/stop        end the run and close the chat; a message opens it again"),
		c.Text.T("/exit        leave, as Ctrl-D does; what runs stays as it is stored"),
		c.Text.T("Ctrl-C       interrupt the run; at the prompt, leave"),
	} {
		c.stream.Note(line)
	}
}

// begin takes up the session that was asked for, shows its last messages, and finds out how it stands.
func (c *Chat) begin(ctx context.Context) error {
	if c.Terminal {
		c.stream.Note(c.Text.T("%s in %s, model %s. /help lists what you can type, Ctrl-D leaves.", c.Request.Agent, c.Request.Root, c.Request.Model))
	}
	if c.Continue == "" {
		return nil
	}
	rounds, err := c.Control.List(ctx, c.Request.Root, maxRounds)
	if err != nil {
		return err
	}
	found, err := pick(rounds, c.Continue)
	if err != nil {
		return err
	}
	c.session, c.Request.Agent = found[0].Session.ID, found[0].Session.Agent
	var view store.RoundView
	for i := min(shownRounds, len(found)) - 1; i >= 0; i-- {
		if view, err = c.Control.Get(ctx, found[i].Round.ID); err != nil {
			return err
		}
		c.show(&view)
	}
	c.last, c.state = view.Round.ID, view.Session.State
	if view.Round.State != regie.RoundEnded {
		c.round = view.Round.ID
	}
	c.become(c.state)
	c.feed = Follow(ctx, c.Control, c.session, view.Head)
	return nil
}

const (
	maxRounds   = 1000 // how far back a chat is looked for
	shownRounds = 3    // how many messages with their answers are shown before one goes on
)

// pick returns the rounds of the session that a person names, newest first.
func pick(rounds []store.RoundSummary, name string) ([]store.RoundSummary, error) {
	var session regie.ID
	part := strings.ReplaceAll(strings.ToLower(name), "-", "")
	for i := range rounds {
		line := &rounds[i]
		if line.Session.Type != regie.SessionChat {
			continue
		}
		if name != "last" && (len(part) < minDigits || !has(line.Session.ID, part) && !has(line.Round.ID, part)) {
			continue
		}
		if !session.IsZero() && session != line.Session.ID && name != "last" {
			return nil, regie.Errorf(regie.CodeConflict, "%s is the end of the ids of several chats, write more of it: %s %s", name, session, line.Session.ID)
		}
		if session.IsZero() {
			session = line.Session.ID
		}
	}
	if session.IsZero() && name == "last" {
		return nil, regie.Errorf(regie.CodeNotFound, "there is no chat in this workspace yet: start one with regie chat")
	}
	if session.IsZero() {
		return nil, regie.Errorf(regie.CodeNotFound, "there is no chat %s in this workspace: see regie runs list", name)
	}
	var out []store.RoundSummary
	for i := range rounds {
		if rounds[i].Session.ID == session {
			out = append(out, rounds[i])
		}
	}
	return out, nil
}

// has reports whether an id ends in some digits, or is them.
func has(id regie.ID, digits string) bool {
	return strings.HasSuffix(strings.ReplaceAll(id.String(), "-", ""), digits)
}

// show writes a round as it was: the message, the calls, the answer.
func (c *Chat) show(view *store.RoundView) {
	if view.Trigger != nil && view.Trigger.Text != "" {
		c.stream.Note("› " + strings.ReplaceAll(view.Trigger.Text, "\n", "\n  "))
	}
	calls := 0
	for i := range view.Exchanges {
		e := &view.Exchanges[i]
		calls += len(e.Calls)
		if e.Reply == nil || e.Reply.AI == nil || len(e.Calls) > 0 && i+1 < len(view.Exchanges) {
			continue
		}
		if calls > 0 {
			c.stream.Note("  " + c.Text.T("(%d calls: regie runs show %s)", calls, view.Round.ID))
			calls = 0
		}
		c.stream.write(e.Reply.AI.Text())
		c.stream.fresh()
	}
}
