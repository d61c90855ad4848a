package chat

import (
	"context"
	"strings"

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
	case "/queue":
		return c.queued(ctx, rest)
	case "/rules", "/revoke":
		return c.standing(ctx, word, rest)
	case "/resume":
		if rest != "" {
			return c.goOn(ctx, rest)
		}
		return c.control(ctx, word)
	case "/stop", "/pause":
		return c.control(ctx, word)
	case "/close":
		return c.close(ctx)
	case "/undo":
		return c.undo(ctx, rest)
	}
	return c.more(ctx, word, rest)
}

// more obeys the words that are about the chat itself: which one, who answers, what is in it.
func (c *Chat) more(ctx context.Context, word, rest string) error {
	switch word {
	case "/fork":
		return c.fork(ctx, rest)
	case "/new":
		return c.another(ctx)
	case "/model":
		return c.model(ctx, rest)
	case "/agent":
		return c.agent(ctx, rest)
	case "/show":
		return c.show(ctx, rest)
	case "/cost":
		return c.cost(ctx)
	case "/cache":
		return c.cache(ctx, rest)
	case "/skills":
		if c.Skills != nil {
			c.Skills(c.stream.Note)
		}
		return nil
	}
	c.stream.Note(c.Text.T(
		"there is no %s; /help lists what there is, and a message that begins with a slash is written with two", word))
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
		c.Text.T("!command     run a command yourself, with the approval that the agent's need; the agent reads of it with your next message"),
		c.Text.T("What you type while the agent works is queued."),
		c.Text.T("/steer TEXT  give it to the agent with its next step; what it asks about is withdrawn"),
		c.Text.T("/queue       what waits for its turn;  /queue rm N  take one back"),
		c.Text.T("/approvals   ask again what this chat waits for"),
		c.Text.T("/rules       what is allowed without asking;  /revoke ID  take that back"),
		c.Text.T("/pause       start nothing new;  /resume  go on"),
		c.Text.T("/stop        end the run and close the chat; a message opens it again"),
		c.Text.T("/undo        take the newest run back, its files and what was said, after a look at it;  /undo files  only the files;  /undo ID"),
		c.Text.T("             /undo 3  the three newest runs;  /undo to ID  all since a run or a message"),
		c.Text.T("/show        unfold the newest call;  /show N  the one with that number behind it"),
		c.Text.T("/fork        go on in a copy of this chat; the files stay as they are"),
		c.Text.T("/new         begin another chat;  /resume ID  go on with one: regie sessions list has them"),
		c.Text.T("/model       which model answers, and which there are;  /model NAME or PROVIDER/NAME  choose one"),
		c.Text.T("/agent       which agents there are;  /agent NAME  begin a new chat with one"),
		c.Text.T("/cost        what this chat and today have cost"),
		c.Text.T("/cache       what is in the response cache;  /cache clear  empty it"),
		c.Text.T("/skills      the skills that the agent has here, and what is odd about any"),
		c.Text.T("/close       close the chat while nothing runs or waits; a message opens it again"),
		c.Text.T("/exit        leave, as Ctrl-D does; what runs stays as it is stored"),
		c.Text.T("Ctrl-C       interrupt the run; at the prompt, leave"),
	} {
		c.stream.Note(line)
	}
}
