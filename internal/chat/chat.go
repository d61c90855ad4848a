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
	"github.com/regie-run/regie/internal/plain"
	"github.com/regie-run/regie/internal/store"
)

// PlainConfig is what a Chat needs.
type PlainConfig struct {
	Config
	Input *Input
	Out   io.Writer // the replies
	Err   io.Writer // all else
	// Terminal says that a person sits there: approvals and questions are put to them. Else the
	// lines are messages, one after another, and what waits ends the chat.
	Terminal bool
}

// Moment is how long nothing may happen before the person is asked: what just happened stands above
// the prompt, not behind it.
const Moment = 30 * time.Millisecond

// Chat is a conversation in plain lines (spec 10.1).
type Chat struct {
	*Conversation
	input     *Input
	terminal  bool
	asker     *Asker
	failed    error // what ends the chat after this step
	signalled bool
	prompted  bool
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
		Control: c.Control, Page: c.Page, Next: c.next, Settle: c.settleItems, later: c.Later,
		Edit: func(ctx context.Context, path string) error {
			defer c.input.Pause()()
			err := c.Editor(ctx, path)
			c.drain()
			return err
		},
	}
	return c
}

// drain forgets the signals that were meant for an editor.
func (c *Chat) drain() {
	for {
		select {
		case <-c.Signals:
		default:
			return
		}
	}
}

// Run holds the conversation until the person leaves or the input ends. Errors are those of
// Control; what a message is refused for is shown to a person and goes on.
func (c *Chat) Run() (Result, error) {
	defer func() {
		c.StopFollowing()
		c.MarkRead(c.ctx)
	}()
	if err := c.open(); err != nil {
		return Result{}, err
	}
	for {
		err := c.step(c.ctx)
		if err == nil {
			err = c.failed
		}
		switch {
		case errors.Is(err, ErrLeave):
			if c.terminal {
				c.Stream.fresh() // the shell's prompt is next
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

// open takes up the session that was asked for, and shows its last messages.
func (c *Chat) open() error {
	if c.terminal {
		c.Note(c.greeting())
	}
	if c.Continue == "" {
		return nil
	}
	past, err := Open(c.ctx, c.Control, c.Request.Root, c.Continue, shownRounds)
	if err == nil {
		c.goOn(past)
	}
	return err
}

// greeting is the first line, with the model where it is known already.
func (c *Chat) greeting() string {
	if c.Request.Model == "" {
		return c.Text.T("%s in %s. /help lists what you can type, Ctrl-D leaves.", c.Request.Agent, c.Request.Root)
	}
	return c.Text.T("%s in %s, model %s. /help lists what you can type, Ctrl-D leaves.", c.Request.Agent,
		c.Request.Root, c.Request.Model)
}

// step does the next thing: asks what is due, or waits for the person, the session or a signal.
func (c *Chat) step(ctx context.Context) error {
	if c.Due {
		return c.ask(ctx)
	}
	var lines <-chan string
	if c.terminal || !c.Busy() {
		lines = c.input.Lines()
	}
	var settled <-chan time.Time
	// what follows an end at once, such as the round of a queued message, comes first
	if c.terminal && !c.Busy() && !c.prompted {
		timer := time.NewTimer(Moment)
		defer timer.Stop()
		settled = timer.C
	}
	select {
	case <-settled:
		c.MarkRead(ctx)
		c.Stream.Prompt("> ")
		c.prompted = true
		return nil
	case line, ok := <-lines:
		if !ok {
			return ErrLeave
		}
		c.Stream.Typed()
		c.prompted = false
		c.obey(line)
		return nil
	case item := <-c.items():
		c.see(item)
		return nil
	case err := <-c.ended():
		return c.lost(err)
	case s := <-c.Signals:
		return c.signal(s, !c.Busy())
	}
}

// next is Asker's: it shows what happens meanwhile, and notices when nothing waits any more.
func (c *Chat) next(ctx context.Context, prompt string) (string, error) {
	return c.readLine(ctx, prompt, c.Waiting, func(s os.Signal) error { return c.signal(s, false) })
}

// readLine shows a prompt and returns the person's line, or ErrMoved once holds is false. What
// happens meanwhile is shown.
func (c *Chat) readLine(ctx context.Context, prompt string, holds func() bool, signal func(os.Signal) error,
) (string, error) {
	asked := false
	for {
		if !holds() {
			return "", ErrMoved
		}
		if !asked {
			c.Stream.Prompt(prompt)
		}
		select {
		case line, ok := <-c.input.Lines():
			if !ok {
				return "", ErrLeave
			}
			c.Stream.Typed()
			return line, nil
		case item := <-c.items():
			open := c.Stream.open
			c.see(item)
			asked = open == c.Stream.open // what was written stands behind the prompt
		case err := <-c.ended():
			return "", c.lost(err)
		case s := <-c.Signals:
			if err := signal(s); err != nil {
				return "", err
			}
			asked = s != syscall.SIGTSTP // why it is refused stands behind the prompt
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
}

// reply reads one line of the person while nothing of the session waits for them. Ctrl-C leaves the
// question, not the chat: the line is empty then.
func (c *Chat) reply(prompt string) string {
	line, err := c.readLine(c.ctx, prompt, func() bool { return true }, func(s os.Signal) error {
		_ = c.signal(s, true) // it says that the person leaves, and they leave the question
		return ErrMoved
	})
	if err != nil && !errors.Is(err, ErrMoved) {
		c.failed = err
	}
	return strings.TrimSpace(line)
}

// settleItems is Asker's: it shows what has happened until nothing has for a moment.
func (c *Chat) settleItems(ctx context.Context) error {
	for {
		timer := time.NewTimer(Moment)
		select {
		case <-timer.C:
			return nil
		case item := <-c.items():
			timer.Stop()
			if c.see(item); !c.Waiting() {
				return ErrMoved
			}
		case err := <-c.ended():
			timer.Stop()
			return c.lost(err)
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		}
	}
}

// ask puts to the person what the session waits for. Without one, that ends the chat.
func (c *Chat) ask(ctx context.Context) error {
	c.Due = false
	c.Stream.fresh()
	c.prompted = false
	if !c.terminal {
		inbox, err := c.Control.Inbox(ctx, store.InboxFilter{SessionID: c.Session})
		if err != nil || count(inbox) == 0 {
			return err
		}
		c.Page.Inbox(inbox)
		return ErrLeave
	}
	_, err := c.asker.Ask(ctx, c.Session)
	return err
}

func (c *Chat) items() <-chan dispatch.Item {
	if c.Feed == nil {
		return nil
	}
	return c.Feed.Items
}

func (c *Chat) ended() <-chan error {
	if c.Feed == nil {
		return nil
	}
	return c.Feed.Ended
}

// see takes an item in.
func (c *Chat) see(item dispatch.Item) {
	open := c.Stream.open
	c.See(item)
	if open != nil && c.Stream.open != open {
		c.prompted = false
	}
	if item.Event != nil && item.Event.Type == regie.EventSessionState && c.State == regie.SessionQueued {
		c.Note(QueuedLine(c.Text, c.Place))
	}
}

// lost takes in that nothing more of the session comes, which ends a chat that nobody attends.
func (c *Chat) lost(why error) error {
	if !c.terminal || !c.Lost(why) {
		return why
	}
	return ErrMoved
}

// signal obeys Ctrl-C: it interrupts a round, once more leaves it as it is; at the prompt it
// leaves. Any other signal leaves, but for a Ctrl-Z that is refused already: why is said.
func (c *Chat) signal(s os.Signal, atPrompt bool) error {
	if s == syscall.SIGTSTP {
		c.Note(c.Text.T("no Ctrl-Z: runs go on in this program. Ctrl-D leaves, regie chat -c returns"))
		c.prompted = false
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

// obey takes what the person typed at the prompt, or while the agent works. What comes through a
// pipe is said, not typed.
func (c *Chat) obey(line string) {
	trimmed := strings.TrimSpace(line)
	switch {
	case trimmed == "":
	case strings.HasPrefix(line, "//"):
		c.Send(line[1:], store.Queue)
	case strings.HasPrefix(line, "/") && c.terminal:
		c.Obey(trimmed)
	case strings.HasPrefix(line, regie.CommandMark) && c.terminal:
		c.Give(trimmed)
	default:
		c.Say(line)
	}
}

// Do implements Renderer: the loop stands still meanwhile.
func (c *Chat) Do(_ Order, work Work) {
	if then := work(c.ctx); then != nil {
		then()
	}
}

// ShowError implements Renderer. Where nobody reads it an error ends the chat.
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
func (c *Chat) Separate() { c.Stream.fresh() }

// Reset implements Renderer.
func (c *Chat) Reset() { c.prompted = false }

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
		c.Note("  " + plain.Line(option.Text))
	}
}

// ConfirmUndo implements Renderer.
func (c *Chat) ConfirmUndo(undo *UndoOffer) {
	for shown := undo.Show(); shown; undo.ShowWhole() {
		choices := c.Text.T("[y] undo  [n] leave it > ")
		if undo.More {
			choices = c.Text.T("[y] undo  [v] the whole diff  [n] leave it > ")
		}
		switch word := strings.ToLower(c.reply(choices)); {
		case agrees(word):
			undo.Agree(func() {})
			return
		case word != "v":
			undo.Refuse()
			return
		}
	}
}

// ConfirmWithdrawal implements Renderer.
func (c *Chat) ConfirmWithdrawal(typed string, question bool) {
	c.Note(c.Text.T("The run waits for your answer (/approvals). Sent now, your message withdraws what it asks about, and nothing of that is run."))
	choices := c.Text.T("[y] send and withdraw  [n] do not send > ")
	if !question {
		choices = c.Text.T("[y] send and withdraw  [q] send when this run has ended  [n] do not send > ")
	}
	line, err := c.next(c.ctx, choices)
	switch word := strings.TrimSpace(line); {
	case err != nil:
		c.failed = err
	case agrees(word):
		c.Send(typed, store.Steer)
	case word == "q" && !question:
		c.Send(typed, store.Queue)
	default:
		c.Note(c.Text.T("not sent"))
	}
}

// ShowHelp implements Renderer.
func (c *Chat) ShowHelp() {
	c.Note(c.Text.T("Type a message and Enter. A line that ends in \\ goes on; lines that are pasted together are one message."))
	c.Note(c.Text.T("What you type while the agent works is queued."))
	lines := [][2]string{
		{"@path", c.Text.T("the file or directory is read and sent with the message")},
		{"!command", c.Text.T("run a command yourself, with the approval that the agent's need")},
	}
	for _, command := range SlashCommands(c.Text) {
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
