package chat

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/sanitize"
	"github.com/regie-run/regie/internal/store"
)

// PlainConfig configures a Chat.
type PlainConfig struct {
	Config
	Input *Input
	Out   io.Writer // the replies
	Err   io.Writer // all else
	// Terminal says that a person sits there: approvals and questions are put to them. Else the
	// lines are messages, one after another, and what waits ends the chat.
	Terminal bool
}

// Moment is how long the chat waits for further events before it prompts, so that recent events
// appear above the prompt.
const Moment = 30 * time.Millisecond

// Chat is a conversation in plain lines (spec 10.1).
type Chat struct {
	*Conversation
	input     *Input
	terminal  bool
	asker     *Asker
	failed    error // what ends the chat after this step
	signalled bool
}

// Result is how a chat was left.
type Result struct {
	// Last is the newest round, zero where none was started.
	Last regie.ID
	// Rounds are those that began while the chat went on, the oldest first.
	Rounds []regie.ID
	// Signalled says that a signal ended it, or a second Ctrl-C that left a round as it was; not a
	// Ctrl-C at a prompt where nothing runs.
	Signalled bool
}

// New returns a chat that has not begun.
func New(ctx context.Context, config PlainConfig) *Chat {
	c := &Chat{input: config.Input, terminal: config.Terminal}
	c.Conversation = NewConversation(ctx, config.Config, c, Stream{Out: config.Out, Err: config.Err})
	c.ShownRounds, c.ShowsOutput, c.Unattended = shownRounds, true, !c.terminal
	if c.terminal { // a person unfolds calls by their numbers; what is read by a program has none
		c.Stream.Mark = c.Calls.Mark
	}
	c.asker = &Asker{
		Control: c.Control, Page: c.Page, Next: c.promptLine, Settle: c.settleItems, later: c.Later,
		Edit: func(ctx context.Context, path string) error {
			defer c.input.Pause()()
			err := c.Editor(ctx, path)
			c.drainSignals()
			return err
		},
	}
	return c
}

// drainSignals forgets the signals that were meant for an editor.
func (c *Chat) drainSignals() {
	for {
		select {
		case <-c.Signals:
		default:
			return
		}
	}
}

// Run holds the conversation until the person leaves or the input ends. Errors are those of
// Control; a refused message is shown, and the chat continues.
func (c *Chat) Run() (Result, error) {
	defer func() {
		c.StopFollowing()
		c.MarkRead(c.ctx)
	}()
	if c.terminal {
		c.Note(c.Text.T("%s in %s. /help lists what you can type, Ctrl-D leaves.", c.Request.Agent, c.Request.Root))
	}
	if c.Begin(func(err error) { c.failed = err }); c.failed != nil {
		return Result{}, c.failed
	}
	for {
		err := c.handleNext(c.ctx)
		if err == nil {
			err = c.failed
		}
		switch {
		case errors.Is(err, ErrLeave):
			if c.terminal {
				c.Stream.startLine() // the shell's prompt is next
				c.Farewell()
			}
			return Result{Last: c.Last, Rounds: c.Rounds, Signalled: c.signalled}, nil
		case errors.Is(err, ErrMoved), err == nil:
			c.failed = nil
		default:
			return Result{Last: c.Last, Rounds: c.Rounds}, err
		}
	}
}

// handleNext asks the open request, or waits for the person, the session or a signal.
func (c *Chat) handleNext(ctx context.Context) error {
	if c.Due {
		return c.askPending(ctx)
	}
	var settled <-chan time.Time
	// what follows an end at once, such as the round of a queued message, comes first
	if c.terminal && !c.Busy() && !c.Stream.prompted {
		settled = time.After(Moment)
	}
	line, typed, quiet, err := c.awaitInput(ctx, c.terminal || !c.Busy(), settled, !c.Busy())
	switch {
	case quiet:
		c.MarkRead(ctx)
		c.Stream.Prompt("> ")
	case !typed || strings.TrimSpace(line) == "":
	case c.terminal:
		c.Enter(line)
	default: // input from a pipe is a message, never a command
		c.Say(line)
	}
	return err
}

// awaitInput handles what happens next: an item of the session or a signal, or, where it reads, a
// line that was typed; quiet says that nothing did for a moment.
func (c *Chat) awaitInput(ctx context.Context, reads bool, moment <-chan time.Time, atPrompt bool) (
	line string, typed, quiet bool, err error,
) {
	var lines <-chan string
	if reads {
		lines = c.input.Lines()
	}
	feed := c.Feed
	if feed == nil {
		feed = &Feed{}
	}
	select {
	case line, typed = <-lines:
		if !typed {
			return "", false, false, ErrLeave
		}
		c.Stream.Typed()
	case item := <-feed.Items:
		c.handleItem(item)
	case err := <-feed.Ended:
		return "", false, false, err
	case s := <-c.Signals:
		return "", false, false, c.handleSignal(s, atPrompt)
	case <-moment:
		quiet = true
	case <-ctx.Done():
		return "", false, false, context.Cause(ctx)
	}
	return line, typed, quiet, nil
}

// promptLine returns Asker's: it shows a prompt and returns the person's line, or ErrMoved once
// nothing waits any more. What happens meanwhile is shown.
func (c *Chat) promptLine(ctx context.Context, prompt string) (string, error) {
	return c.readLine(ctx, prompt, c.Waiting, false)
}

// readLine shows a prompt and returns the person's line, or ErrMoved once holds returns false.
// Output that arrives meanwhile follows the prompt, which is then shown again.
func (c *Chat) readLine(ctx context.Context, prompt string, holds func() bool, atPrompt bool) (string, error) {
	for holds() {
		if !c.Stream.prompted {
			c.Stream.Prompt(prompt)
		}
		line, typed, _, err := c.awaitInput(ctx, true, nil, atPrompt)
		if typed || err != nil {
			return line, err
		}
	}
	return "", ErrMoved
}

// readReply reads one line of the person while nothing of the session waits for them. Ctrl-C leaves
// the question, not the chat: the line is empty then.
func (c *Chat) readReply(prompt string) string {
	line, err := c.readLine(c.ctx, prompt, func() bool { return true }, true)
	if left := errors.Is(err, ErrLeave) && !c.signalled; err != nil && !left && !errors.Is(err, ErrMoved) {
		c.failed = err
	}
	return strings.TrimSpace(line)
}

// settleItems is Asker's: it shows what has happened until nothing has for a moment.
func (c *Chat) settleItems(ctx context.Context) error {
	for c.Waiting() {
		if _, _, quiet, err := c.awaitInput(ctx, false, time.After(Moment), false); quiet || err != nil {
			return err
		}
	}
	return ErrMoved
}

// askPending puts the session's open requests to the person. Without a terminal, an open request
// ends the chat.
func (c *Chat) askPending(ctx context.Context) error {
	c.Due = false
	c.Stream.startLine()
	if !c.terminal {
		inbox, err := c.Control.Inbox(ctx, store.InboxFilter{SessionID: c.Session})
		if err != nil || countWaiting(inbox) == 0 {
			return err
		}
		c.Page.Inbox(inbox)
		return ErrLeave
	}
	_, err := c.asker.Ask(ctx, c.Session)
	return err
}

// handleItem takes an item in.
func (c *Chat) handleItem(item dispatch.Item) {
	c.See(item)
	if item.Event != nil && item.Event.Type == regie.EventSessionState && c.State == regie.SessionQueued {
		c.Note(QueuedLine(c.Text, c.Place))
	}
}

// handleSignal handles Ctrl-C: it interrupts a round, and a second one leaves the round running; at
// the prompt it leaves. Ctrl-Z only explains why it has no effect; any other signal leaves.
func (c *Chat) handleSignal(s os.Signal, atPrompt bool) error {
	if s == syscall.SIGTSTP {
		c.Note(c.Text.T("no Ctrl-Z: runs go on in this program. Ctrl-D leaves, regie chat -c returns"))
		return nil
	}
	if s != os.Interrupt || atPrompt || c.Interrupting || c.Round.IsZero() {
		c.signalled = s != os.Interrupt || c.Interrupting || !c.terminal
		return ErrLeave
	}
	c.Note(c.Text.T("interrupting… (once more to leave it as it is)"))
	c.Interrupt()
	return nil
}

// Do implements Renderer; it blocks the loop.
func (c *Chat) Do(_ Order, work Work) { doNow(c.ctx, work) }

// ShowError implements Renderer. Without a terminal, an error ends the chat.
func (c *Chat) ShowError(err error) {
	switch {
	case err == nil:
	case !c.terminal || c.ctx.Err() != nil:
		c.failed = err
	default:
		c.Note(c.Text.Error(err))
	}
}

// Separate implements Renderer.
func (c *Chat) Separate() { c.Stream.startLine() }

// Reset implements Renderer.
func (c *Chat) Reset() {}

// TakenUp implements Renderer.
func (c *Chat) TakenUp(*Past) {}

// Settled implements Renderer: readLine notices it.
func (c *Chat) Settled() {}

// Sent implements Renderer. The terminal shows what was typed there.
func (c *Chat) Sent(m *Outgoing, run dispatch.Run, err error) {
	switch {
	case err != nil:
		c.ShowError(err)
	case run.Answered:
		c.Note(c.Text.T("taken as the answer"))
	case run.Pending && m.When == store.Steer:
		c.Note(c.Text.T("the agent gets it with its next step"))
	case run.Pending: // it is shown when its turn comes
		c.Note(c.Text.T("queued: the agent gets it when this run has ended (/steer TEXT: with its next step)"))
	default:
		c.Stream.Own(run.MessageID, true)
	}
}

// EditMessage implements Renderer.
func (c *Chat) EditMessage(string) bool { return false }

// Choose implements Renderer: a list says what can be typed.
func (c *Chat) Choose(choice *Choice) {
	if choice.Note != "" {
		c.Note(choice.Note)
	}
	for _, option := range choice.Options {
		c.Note("  " + sanitize.Line(option.Text))
	}
}

// Confirm implements Renderer.
func (c *Chat) Confirm(said string, keys []Key) {
	if said != "" {
		c.Note(said)
	}
	key := FindKey(keys, c.readReply(keyPrompt(keys)))
	if key == nil {
		key = &keys[len(keys)-1]
	}
	key.Do()
}

// ShowMode implements Renderer.
func (c *Chat) ShowMode(name, about string) { c.Note(c.Text.T("mode %s: %s", name, about)) }

// ShowHelp implements Renderer.
func (c *Chat) ShowHelp() {
	c.Note(c.Text.T("Type a message and press Enter. A line that ends in \\ continues; lines pasted together are one message."))
	c.Note(c.Text.T("What you type while the agent works is queued."))
	lines := [][2]string{
		{"@path", c.Text.T("the file or directory is read and sent with the message")},
		{"!command", c.Text.T("run a command yourself, with the approval that the agent's need")},
	}
	for _, command := range c.SlashCommands() {
		lines = append(lines, [2]string{command.Name, command.About})
	}
	lines = append(lines, [2]string{"Ctrl-C", c.Text.T("interrupt the run; at the prompt, leave")})
	for _, line := range lines {
		c.Note(fmt.Sprintf("%-13s%s", line[0], line[1]))
	}
}

// ClearScreen implements Renderer: lines stay.
func (c *Chat) ClearScreen() { c.Note(c.Text.T("a new chat")) }

// Leave implements Renderer.
func (c *Chat) Leave() { c.failed = ErrLeave }
