package chat

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/text"
)

// Config is what a Chat needs; all of it is required but Look, Skills, Settings and Continue.
type Config struct {
	Control Control
	Text    *text.Printer
	Input   *Input
	Out     io.Writer // the replies
	Err     io.Writer // all else
	// Terminal says that a person sits there: approvals and questions are put to them. Else the
	// lines are messages, one after another, and what waits ends the chat.
	Terminal bool
	Editor   Editor
	Signals  <-chan os.Signal
	// Request is what each message is sent with; session, text and client id are the chat's.
	Request dispatch.RunRequest
	// Look finds what a message names with @; nil has nothing named.
	Look Look
	// Skills writes the skills of the workspace, a line each; nil has none.
	Skills func(note func(line string))
	// Settings is the fingerprint of a provider's settings, for /model.
	Settings func(provider string) regie.Hash
	// Continue names the session to go on with: "last" for the newest chat of the workspace, an id
	// of a session or a run or the end of one, "" for a new session.
	Continue string
}

// Moment is how long nothing may happen before the person is asked: what just happened stands above
// the prompt, not behind it.
const Moment = 30 * time.Millisecond

// Chat is a conversation in plain lines (spec 10.1).
type Chat struct {
	Config
	stream  *Stream
	calls   Calls
	asker   *Asker
	feed    *Feed // nil until the session is there
	session regie.ID
	round   regie.ID   // the open one, or zero
	last    regie.ID   // the newest one
	rounds  []regie.ID // that began here
	seen    int64      // the last event that was shown
	read    int64      // the last one that is stored as read
	state   regie.SessionState
	// due says that the session waits for something that the person was not asked yet.
	due          bool
	interrupting bool
	signalled    bool
	prompted     bool
	// own is the call of a command that the person gave; ownDone is its round, once that has ended.
	own     regie.ID
	ownDone regie.ID
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
func New(c Config) *Chat {
	chat := &Chat{Config: c, session: regie.NewID(), state: regie.SessionIdle}
	chat.stream = chat.newStream()
	chat.asker = &Asker{
		Control: c.Control, Page: &Page{W: c.Err, Text: c.Text, Now: time.Now, Inside: true},
		Next: chat.next, Settle: chat.settle,
		Edit: func(ctx context.Context, path string) error {
			defer c.Input.Pause()()
			err := c.Editor(ctx, path)
			chat.drain()
			return err
		},
	}
	return chat
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
func (c *Chat) Run(ctx context.Context) (Result, error) {
	defer func() {
		if c.feed != nil {
			c.feed.Stop()
		}
		c.markRead(context.WithoutCancel(ctx))
	}()
	if err := c.begin(ctx); err != nil {
		return Result{}, err
	}
	for {
		err := c.step(ctx)
		switch {
		case errors.Is(err, ErrLeave):
			c.farewell()
			return Result{Last: c.last, Rounds: c.rounds, Signalled: c.signalled}, nil
		case errors.Is(err, ErrMoved), err == nil:
		default:
			return Result{Last: c.last, Rounds: c.rounds}, err
		}
	}
}

// markRead says how far the person has read (decision 45). That it could not be stored is no reason
// to do anything otherwise, or to wait.
func (c *Chat) markRead(ctx context.Context) {
	if !c.Terminal || c.seen == c.read {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	if c.Control.MarkRead(ctx, dispatch.ReadRequest{SessionID: c.session, Seq: c.seen}) == nil {
		c.read = c.seen
	}
}

// step does the next thing: asks what is due, or waits for the person, the session or a signal.
func (c *Chat) step(ctx context.Context) error {
	if !c.ownDone.IsZero() {
		return c.outcome(ctx)
	}
	if c.due {
		return c.ask(ctx)
	}
	var lines <-chan string
	if c.Terminal || !c.busy() {
		lines = c.Input.Lines()
	}
	var settled <-chan time.Time
	// what follows an end at once, such as the round of a queued message, comes first
	if c.Terminal && !c.busy() && !c.prompted {
		timer := time.NewTimer(Moment)
		defer timer.Stop()
		settled = timer.C
	}
	select {
	case <-settled:
		c.markRead(ctx)
		c.stream.Prompt("> ")
		c.prompted = true
		return nil
	case line, ok := <-lines:
		if !ok {
			return ErrLeave
		}
		c.stream.Typed()
		c.prompted = false
		return c.said(ctx, line)
	case item := <-c.items():
		c.see(item)
		return nil
	case err := <-c.ended():
		return c.lost(ctx, err)
	case s := <-c.Signals:
		return c.signal(ctx, s, !c.busy())
	}
}

// next is Asker's: it shows what happens meanwhile, and notices when nothing waits any more.
func (c *Chat) next(ctx context.Context, prompt string) (string, error) {
	asked := false
	for {
		if !waiting(c.state) {
			return "", ErrMoved
		}
		if !asked {
			c.stream.Prompt(prompt)
		}
		select {
		case line, ok := <-c.Input.Lines():
			if !ok {
				return "", ErrLeave
			}
			c.stream.Typed()
			return line, nil
		case item := <-c.items():
			open := c.stream.open
			c.see(item)
			asked = open == c.stream.open // what was written stands behind the prompt
		case err := <-c.ended():
			return "", c.lost(ctx, err)
		case s := <-c.Signals:
			if err := c.signal(ctx, s, false); err != nil {
				return "", err
			}
			asked = s != syscall.SIGTSTP // why it is refused stands behind the prompt
		}
	}
}

// settle is Asker's: it shows what has happened until nothing has for a moment.
func (c *Chat) settle(ctx context.Context) error {
	for {
		timer := time.NewTimer(Moment)
		select {
		case <-timer.C:
			return nil
		case item := <-c.items():
			timer.Stop()
			if c.see(item); !waiting(c.state) {
				return ErrMoved
			}
		case err := <-c.ended():
			timer.Stop()
			return c.lost(ctx, err)
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		}
	}
}

// ask puts to the person what the session waits for. Without one, that ends the chat.
func (c *Chat) ask(ctx context.Context) error {
	c.due = false
	c.stream.fresh()
	c.prompted = false
	if !c.Terminal {
		inbox, err := c.Control.Inbox(ctx, store.InboxFilter{SessionID: c.session})
		if err != nil || count(inbox) == 0 {
			return err
		}
		c.asker.Page.Inbox(inbox)
		return ErrLeave
	}
	_, err := c.asker.Ask(ctx, c.session)
	return err
}

func (c *Chat) items() <-chan dispatch.Item {
	if c.feed == nil {
		return nil
	}
	return c.feed.Items
}

func (c *Chat) ended() <-chan error {
	if c.feed == nil {
		return nil
	}
	return c.feed.Ended
}

func waiting(s regie.SessionState) bool {
	return s == regie.SessionWaitingValidation || s == regie.SessionWaitingResponse
}

// busy says that the agent works: what is typed now is queued.
func (c *Chat) busy() bool {
	return c.state == regie.SessionActive || c.state == regie.SessionQueued
}

// see takes an item in.
func (c *Chat) see(item dispatch.Item) {
	open := c.stream.open
	c.number(item.Event)
	c.stream.Item(item)
	if open != nil && c.stream.open != open {
		c.prompted = false
	}
	if item.Event == nil {
		return
	}
	c.seen = item.Event.Seq
	if id, is := OwnCall(item.Event); is {
		c.own = id
	}
	var body struct {
		RoundID regie.ID          `json:"round_id"`
		State   string            `json:"state"`
		Place   int               `json:"position"`
		Stop    regie.StopRequest `json:"stop_request"`
	}
	if json.Unmarshal(item.Event.Body, &body) != nil {
		return
	}
	switch item.Event.Type {
	case regie.EventRound:
		if body.State == string(regie.RoundEnded) && !c.own.IsZero() {
			c.ownDone = body.RoundID
		}
		switch {
		case body.State == string(regie.RoundEnded) && body.RoundID == c.round:
			c.round, c.state, c.interrupting = regie.ID{}, regie.SessionIdle, false
		case body.State == string(regie.RoundRunning) && body.Stop == "":
			c.begun(body.RoundID)
			c.interrupting = false
		}
	case regie.EventSessionState:
		if c.become(regie.SessionState(body.State)); c.state == regie.SessionQueued {
			c.stream.Note(QueuedLine(c.Text, body.Place))
		}
	case regie.EventApproval, regie.EventQuestion:
		switch body.State {
		case string(regie.ApprovalExpired):
			c.stream.Note(c.Text.T("nobody answered in time: what was asked is not run"))
		case string(regie.ApprovalWithdrawn):
			c.stream.Note(c.Text.T("what was asked is withdrawn"))
		}
	}
}

// begun takes a round as the one that is open.
func (c *Chat) begun(round regie.ID) {
	c.round, c.last, c.state = round, round, regie.SessionActive
	if !slices.Contains(c.rounds, round) {
		c.rounds = append(c.rounds, round)
	}
}

func (c *Chat) become(state regie.SessionState) {
	c.state, c.due = state, waiting(state)
	if state == regie.SessionPaused {
		c.stream.Note(c.Text.T("paused; /resume goes on"))
	}
}

// signal obeys Ctrl-C: it interrupts a round, once more leaves it as it is; at the prompt it
// leaves. Any other signal leaves, but for a Ctrl-Z that is refused already: why is said.
func (c *Chat) signal(ctx context.Context, s os.Signal, atPrompt bool) error {
	if s == syscall.SIGTSTP {
		c.stream.Note(c.Text.T("no Ctrl-Z: runs go on in this program. Ctrl-D leaves, regie chat -c returns"))
		c.prompted = false
		return nil
	}
	if s != os.Interrupt || atPrompt || c.interrupting || c.round.IsZero() {
		c.signalled = s != os.Interrupt || c.interrupting || !c.Terminal
		return ErrLeave
	}
	c.interrupting = true
	c.stream.Note(c.Text.T("interrupting… (once more to leave it as it is)"))
	return c.Control.Interrupt(ctx, c.round)
}

// said takes what the person typed at the prompt, or while the agent works.
func (c *Chat) said(ctx context.Context, line string) error {
	trimmed := strings.TrimSpace(line)
	switch {
	case trimmed == "":
		return nil
	case strings.HasPrefix(line, "//"):
		return c.send(ctx, line[1:], store.Queue)
	case strings.HasPrefix(line, "/") && c.Terminal:
		return c.word(ctx, trimmed)
	case strings.HasPrefix(line, regie.CommandMark) && c.Terminal: // what comes through a pipe is said, not typed
		command, _ := CommandOf(trimmed)
		return c.give(ctx, command)
	case waiting(c.state):
		return c.instead(ctx, line)
	default:
		return c.send(ctx, line, store.Queue)
	}
}

// send gives a message to the agent.
func (c *Chat) send(ctx context.Context, text string, when store.WhenBusy) error {
	request := c.Request
	request.ClientID, request.SessionID, request.Text, request.WhenBusy = regie.NewID().String(), c.session, text, when
	if request.Segments = Mentions(text, c.Look); request.Segments != nil {
		request.Text = ""
	}
	run, err := c.Control.Submit(ctx, request)
	if err != nil {
		return c.refused(ctx, err)
	}
	switch {
	case run.Answered:
		c.stream.Note(c.Text.T("taken as the answer"))
	case run.Pending && when == store.Steer:
		c.stream.Note(c.Text.T("the agent gets it with its next step"))
	case run.Pending:
		c.stream.Note(c.Text.T("queued: the agent gets it when this run has ended (/steer TEXT: with its next step)"))
	default: // a message that had to wait is shown when its turn comes
		return c.took(ctx, run)
	}
	if c.feed == nil {
		c.feed = Follow(ctx, c.Control, c.session, 0)
	}
	return nil
}

// refused shows a person why something was refused, and returns it where nobody reads it.
func (c *Chat) refused(ctx context.Context, err error) error {
	if !c.Terminal || ctx.Err() != nil {
		return err
	}
	c.stream.Note(c.Text.Error(err))
	return nil
}

// instead takes a message while the session waits: it would take the place of what was asked, so
// the person is told so first (decision 10).
func (c *Chat) instead(ctx context.Context, text string) error {
	inbox, err := c.Control.Inbox(ctx, store.InboxFilter{SessionID: c.session})
	if err != nil {
		return err
	}
	question := len(inbox.Questions) > 0
	if count(inbox) == 0 || question && inbox.Questions[0].Module.AllowFreeText { // then it is the answer
		return c.send(ctx, text, store.Queue)
	}
	c.stream.Note(c.Text.T("The run waits for your answer (/approvals). Sent now, your message withdraws what it asks about, and nothing of that is run."))
	choices := c.Text.T("[y] send and withdraw  [n] do not send > ")
	if !question {
		choices = c.Text.T("[y] send and withdraw  [q] send when this run has ended  [n] do not send > ")
	}
	line, err := c.next(ctx, choices)
	if err != nil {
		return err
	}
	switch word := strings.TrimSpace(line); {
	case agrees(word):
		return c.send(ctx, text, store.Steer)
	case word == "q" && !question:
		return c.send(ctx, text, store.Queue)
	}
	c.stream.Note(c.Text.T("not sent"))
	return nil
}

// farewell says where things stand.
func (c *Chat) farewell() {
	if !c.Terminal {
		return
	}
	c.stream.fresh() // the shell's prompt is next
	if c.last.IsZero() {
		return
	}
	if !c.round.IsZero() {
		c.stream.Note(c.Text.T("run %s is left as it is", c.round))
	}
	c.stream.Note(c.Text.T("go on with this chat: regie chat -r %s", Short(c.session)))
}
