package chat

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
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
	case "/rules", "/revoke":
		return c.standing(ctx, word, rest)
	case "/stop", "/pause", "/resume":
		return c.control(ctx, word)
	case "/close":
		return c.close(ctx)
	case "/undo":
		return c.undo(ctx, rest)
	case "/skills":
		if c.Skills != nil {
			c.Skills(c.stream.Note)
		}
		return nil
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
		var stopped dispatch.Stopped
		stopped, err = c.Control.Stop(ctx, c.session)
		for i := range stopped.Withdrawn {
			m := &stopped.Withdrawn[i]
			c.stream.GivenBack(m.ID, m.LinearText())
		}
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

// close closes the session while nothing of it is open (decision 6).
func (c *Chat) close(ctx context.Context) error {
	if c.last.IsZero() {
		c.stream.Note(c.Text.T("nothing was said in this chat"))
		return nil
	}
	if err := c.Control.CloseSession(ctx, c.session); err != nil {
		return c.refused(ctx, err)
	}
	c.stream.Note(c.Text.T("closed; a message opens it again"))
	return nil
}

// help lists what can be typed.
func (c *Chat) help() {
	for _, line := range []string{
		c.Text.T("Type a message and Enter. A line that ends in \\ goes on; lines that are pasted together are one message."),
		c.Text.T("@path        in a message: the file or directory is read and sent with it (@\"with spaces\"; \\@ names nothing)"),
		c.Text.T("What you type while the agent works is queued."),
		c.Text.T("/steer TEXT  give it to the agent with its next step; what it asks about is withdrawn"),
		c.Text.T("/approvals   ask again what this chat waits for"),
		c.Text.T("/rules       what is allowed without asking;  /revoke ID  take that back"),
		c.Text.T("/pause       start nothing new;  /resume  go on"),
		c.Text.T("/stop        end the run and close the chat; a message opens it again"),
		c.Text.T("/undo        take the newest run back, its files and what was said, after a look at it;  /undo files  only the files;  /undo ID"),
		c.Text.T("             /undo 3  the three newest runs;  /undo to ID  all since a run or a message"),
		c.Text.T("/skills      the skills that the agent has here, and what is odd about any"),
		c.Text.T("/close       close the chat while nothing runs or waits; a message opens it again"),
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
	found, err := FindSession(ctx, c.Control, c.Request.Root, c.Continue)
	if err == nil && found.Type != regie.SessionChat {
		err = regie.Errorf(regie.CodeNotFound, "there is no chat %s in this workspace: see regie sessions list", c.Continue)
	}
	if err != nil {
		return err
	}
	view, err := c.Control.Session(ctx, found.ID)
	if err != nil {
		return err
	}
	c.session, c.Request.Agent = view.ID, view.Agent
	rounds := view.History
	if len(rounds) < shownRounds {
		c.showCopies(&view, shownRounds-len(rounds))
	}
	for _, round := range rounds[max(0, len(rounds)-shownRounds):] {
		one, err := c.Control.Get(ctx, round.ID)
		if err != nil {
			return err
		}
		c.show(&one)
		if c.last = round.ID; round.State != regie.RoundEnded {
			c.round = round.ID
		}
	}
	c.become(view.State)
	c.seen = view.Head
	c.feed = Follow(ctx, c.Control, c.session, view.Head)
	return nil
}

// shownRounds is how many messages with their answers are shown before one goes on.
const shownRounds = 3

// showCopies writes the last messages with their answers of what a fork was made from.
func (c *Chat) showCopies(view *store.SessionView, most int) {
	if view.ForkedFrom == nil {
		return
	}
	c.stream.Note(c.Text.T("forked from %s at %s", Short(view.ForkedFrom.SessionID), strconv.FormatInt(view.ForkedFrom.Seq, 10)) + "; " + c.Text.T("the files of the workspace were not forked"))
	var copies []*regie.Message
	asked := 0
	for i := len(view.Thread) - 1; i >= 0 && asked < most; i-- {
		m := &view.Thread[i].Message
		if m.Copied == nil || m.System != nil {
			continue
		}
		if copies = append(copies, m); m.Sender == regie.SenderUser {
			asked++
		}
	}
	for _, m := range slices.Backward(copies) {
		switch text := Said(c.Text, m); {
		case m.Sender == regie.SenderUser:
			c.stream.Note("› " + strings.ReplaceAll(text, "\n", "\n  "))
		case text != "":
			c.stream.write(text)
			c.stream.fresh()
		}
	}
}

// show writes a round as it was: the message, the calls, the answer.
func (c *Chat) show(view *store.RoundView) {
	if _, gone := regie.Standing(view.Undos, regie.ID{}); !gone.IsZero() {
		c.stream.Note("  " + c.Text.T("(taken back: regie runs show %s)", view.Round.ID))
		return
	}
	if view.Trigger != nil && view.Trigger.LinearText() != "" {
		c.stream.Note("› " + strings.ReplaceAll(view.Trigger.LinearText(), "\n", "\n  "))
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
