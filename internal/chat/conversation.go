package chat

import (
	"context"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/client"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/i18n"
	"github.com/regie-run/regie/internal/sanitize"
	"github.com/regie-run/regie/internal/store"
)

// Config is what every chat needs. Look, Skills, Settings, NoSchedules and Continue may
// be missing.
type Config struct {
	Control Control
	Text    *i18n.Printer
	Editor  Editor
	Signals <-chan os.Signal
	// Request is what each message is sent with; session, text and client id are the chat's.
	Request dispatch.RunRequest
	// Look finds what a message names with @; nil has nothing named.
	Look Look
	// ReadImage reads an image that a message names with @; nil sends none.
	ReadImage func(path string) ([]byte, error)
	// Skills writes the skills of the workspace, a line each; nil has none.
	Skills func(note func(line string))
	// Commands returns the slash commands of the workspace as they are now; nil has none.
	Commands func() []CustomCommand
	// History keeps the slash commands that are typed; nil keeps none.
	History *History
	// Settings is the fingerprint of a provider's settings, for /model.
	Settings func(provider string) regie.Hash
	// NoSchedules reports whether nothing starts the runs of schedules; nil: something does.
	NoSchedules func() bool
	// Continue names the session to go on with: "last" for the newest chat of the workspace, an id
	// of a session or a run or the end of one, "" for a new session.
	Continue string
}

// Work takes time and runs outside the loop of a Renderer. It touches no state; the function that
// it returns runs in the loop.
type Work func(ctx context.Context) (then func())

// Order says what work waits for, and what waits for it.
type Order int

// The orders.
const (
	Beside  Order = iota // nothing
	InOrder              // for the work before it; what happens in the session is shown behind it
)

// Renderer draws a conversation and has the person decide. Its methods run in its loop.
type Renderer interface {
	Do(order Order, work Work)
	// ShowError shows an error; nil shows nothing.
	ShowError(err error)
	// Separate puts space between the text above and the next one.
	Separate()
	// Reset forgets the session before another one replaces it. TakenUp shows a resumed chat; its
	// last messages are written already.
	Reset()
	TakenUp(past *Past)
	// Settled closes the open question: the session no longer waits.
	Settled()
	// Sent tells what became of a message, or why it was refused.
	Sent(m *Outgoing, run dispatch.Run, err error)
	// EditMessage puts a message that was not sent into the prompt; false where it cannot.
	EditMessage(said string) bool
	Choose(choice *Choice)
	// Confirm asks before an action. said describes it, if that is not on the screen already; the
	// last key changes nothing.
	Confirm(said string, keys []Key)
	ShowHelp()
	// ShowMode tells that the session has another mode.
	ShowMode(name, about string)
	ClearScreen()
	Leave()
}

// Choice is one of several things that a person chooses from.
type Choice struct {
	Title, Note string // above a list that keys choose from, and above one that only is read
	Options     []Option
	Then        func(value string)
}

// Option is one of the things: the value that is chosen, and the text that is shown.
type Option struct{ Value, Text string }

// Conversation is a session as a person takes part in it: its state as the events tell it, and what
// the person can do. One Renderer shows it.
type Conversation struct {
	Config
	Renderer Renderer
	Stream   *Stream
	Page     *Page
	Calls    Calls
	Feed     *Feed // nil until the session is there
	ctx      context.Context
	// Unattended says that no person reads the chat. ShowsOutput writes a call's output as it
	// comes. ShownRounds is how many earlier rounds a resumed chat shows.
	Unattended, ShowsOutput bool
	ShownRounds             int

	Session      regie.ID
	Round, Last  regie.ID   // the open one, or zero; the newest one
	Rounds       []regie.ID // that began here
	State        regie.SessionState
	Mode         regie.Mode // empty is ask
	Place        int        // in the queue for a slot
	Stop         regie.StopRequest
	Seen         int64 // the last event that was shown
	Began        time.Time
	Due          bool              // the session waits for something that the person was not asked yet
	Later        map[regie.ID]bool // what was put off
	Interrupting bool
	own          regie.ID       // the call of a command that the person gave, until its round has ended
	custom       []SlashCommand // of the workspace, as they were at customAt
	customAt     time.Time
	past         *Past // which is being shown

	// Asking names the request that is under way and may take a while.
	Asking string
}

// NewConversation returns one of a new session.
func NewConversation(ctx context.Context, c Config, r Renderer, stream Stream) *Conversation {
	conversation := &Conversation{
		Mode: c.Request.ApprovalMode, Config: c, Renderer: r, ctx: ctx, Session: regie.NewID(),
		State: regie.SessionIdle, Later: map[regie.ID]bool{},
		Page: &Page{W: stream.Err, Text: c.Text, Now: time.Now, Inside: true},
	}
	stream.Text = c.Text
	conversation.Stream = &stream
	return conversation
}

// Waiting reports whether the session waits for the person.
func (c *Conversation) Waiting() bool {
	return c.State == regie.SessionWaitingValidation || c.State == regie.SessionWaitingResponse
}

// Busy says that the agent works: new messages are queued.
func (c *Conversation) Busy() bool {
	return c.State == regie.SessionActive || c.State == regie.SessionQueued
}

// Note writes a line outside the replies.
func (c *Conversation) Note(line string) { c.Stream.Note(line) }

// loadBeside reads outside the loop and shows the result, or the error, in the loop.
func loadBeside[T any](c *Conversation, read func(ctx context.Context) (T, error), show func(T)) {
	c.Renderer.Do(Beside, func(ctx context.Context) func() {
		found, err := read(ctx)
		return func() {
			c.Asking = ""
			if c.Renderer.ShowError(err); err == nil {
				show(found)
			}
		}
	})
}

// Start makes the conversation one of another session.
func (c *Conversation) Start(session regie.ID) {
	c.markReadBeside()
	c.StopFollowing()
	old := c.Stream
	c.Stream = &Stream{Out: old.Out, Err: old.Err, Text: c.Text, Mark: old.Mark, Apart: old.Apart}
	c.Calls.done = nil
	clear(c.Later)
	c.Session, c.Round, c.Last, c.own = session, regie.ID{}, regie.ID{}, regie.ID{}
	c.State, c.Stop, c.Seen, c.Place, c.Mode = regie.SessionIdle, "", 0, 0, c.Request.ApprovalMode
	c.Due, c.Interrupting = false, false
	c.Renderer.Reset()
}

// TakeUp goes on with a chat that was opened: its last events are shown as they were when they
// came.
func (c *Conversation) TakeUp(past *Past) {
	c.Start(past.View.ID)
	c.Request.Agent = past.View.Agent
	if from := past.View.ForkedFrom; from != nil {
		c.Note(c.Page.forkedFrom(from) + "; " + c.Text.T("the files of the workspace were not forked"))
	}
	c.past = past
	rounds := c.Rounds
	for _, event := range past.Events {
		c.See(dispatch.Item{Event: event})
	}
	c.past, c.Rounds, c.Interrupting, c.Mode = nil, rounds, false, past.View.ApprovalMode
	c.Last, c.Round, c.Seen = past.Last, past.Running, past.View.Head
	for i := range past.Rounds { // how it ends counts for the exit code
		c.Rounds, c.Began = append(c.Rounds, c.Round), past.Rounds[i].Round.StartedAt
	}
	for i := range past.View.Pending {
		c.Stream.addQueued(past.View.Pending[i].Message.ID, past.View.Pending[i].Message.LinearText())
	}
	c.Renderer.TakenUp(past)
	c.setState(past.View.State)
}

// Begin takes up the chat that was asked for, where one was.
func (c *Conversation) Begin(failed func(error)) {
	if c.Continue == "" {
		noteFinished(c)
		return
	}
	c.Renderer.Do(Beside, func(ctx context.Context) func() {
		past, err := Open(ctx, c.Control, c.Request.Root, c.Continue, c.ShownRounds)
		return func() {
			if err != nil {
				failed(err)
			} else {
				c.goOn(past)
				if mode := c.Request.ApprovalMode; mode != "" {
					c.SetMode(mode)
				}
				noteFinished(c)
			}
		}
	})
}

// shownFinished is how many sessions are named that have finished meanwhile.
const shownFinished = 3

// noteFinished says in one line what has finished in this workspace since the person last looked
// (decision 74).
func noteFinished(c *Conversation) {
	if c.Unattended {
		return
	}
	filter := store.SessionFilter{Root: c.Request.Root, Limit: 100}
	loadBeside(c, func(ctx context.Context) ([]store.SessionSummary, error) {
		found, err := c.Control.Sessions(ctx, filter)
		if regie.CodeOf(err) == regie.CodeNotFound { // no run was made here
			err = nil
		}
		return found, err
	}, func(found []store.SessionSummary) {
		found = slices.DeleteFunc(found, func(s store.SessionSummary) bool { return !s.Finished || s.ID == c.Session })
		var names []string
		for i := range found[:min(len(found), shownFinished)] {
			names = append(names, sanitize.Line(truncateLine(found[i].Name, 40))+" ("+Short(found[i].ID)+")")
		}
		if more := len(found) - len(names); more > 0 {
			names = append(names, c.Text.T("%d more", more))
		}
		if len(names) > 0 {
			c.Note(c.Text.T("finished while you were away: %s; see regie sessions list, show ID", strings.Join(names, ", ")))
		}
	})
}

// Follow begins to follow the session after an event of its log.
func (c *Conversation) Follow(after int64) {
	c.StopFollowing()
	c.Feed = Follow(c.ctx, c.Control, c.Session, after)
}

// StopFollowing ends the following of the session.
func (c *Conversation) StopFollowing() {
	if c.Feed != nil {
		c.Feed.Stop()
		c.Feed = nil
	}
}

// readWithin is how long it may take to store how far the person has read.
const readWithin = 2 * time.Second

// MarkRead says how far the person has read (decision 45). That it could not be stored is no reason
// to do anything otherwise, or to wait.
func (c *Conversation) MarkRead(ctx context.Context) {
	if c.Unattended || c.Seen == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readWithin)
	defer cancel()
	_ = c.Control.MarkRead(ctx, dispatch.ReadRequest{SessionID: c.Session, Seq: c.Seen})
}

// markReadBeside runs MarkRead outside the loop: at the end of each run, and before another chat
// replaces this one.
func (c *Conversation) markReadBeside() {
	mark := *c
	c.Renderer.Do(Beside, func(ctx context.Context) func() {
		mark.MarkRead(ctx)
		return nil
	})
}

// See takes an item in.
func (c *Conversation) See(item dispatch.Item) {
	event := item.Event
	if event == nil {
		c.Stream.Item(item)
		return
	}
	body := BodyOf(event)
	if event.Type == regie.EventToolResult {
		c.Calls.Number(body.CallID, c.Round)
	}
	c.Stream.Item(item)
	c.Seen = event.Seq
	if id, is := ownCall(event); is {
		c.own = id
	}
	switch event.Type {
	case regie.EventRound:
		c.handleRound(event, &body)
	case regie.EventSession:
		takeMode(c, body.Mode)
	case regie.EventSessionState:
		c.Place = body.Place
		c.setState(regie.SessionState(body.State))
	case regie.EventApproval, regie.EventQuestion:
		switch body.State {
		case string(regie.ApprovalExpired):
			c.Note(c.Text.T("nobody answered in time: the action is not run"))
		case string(regie.ApprovalWithdrawn):
			c.Note(c.Text.T("the request is withdrawn"))
		}
	}
}

// handleRound takes in that a round has begun, is to stop, or has ended.
func (c *Conversation) handleRound(event *regie.Event, body *Body) {
	switch {
	case body.State == string(regie.RoundEnded):
		c.showOutcome(body.RoundID)
		if body.RoundID == c.Round || c.Round.IsZero() {
			c.Round, c.State, c.Interrupting, c.Stop = regie.ID{}, regie.SessionIdle, false, ""
			c.closeQuestions()
			if c.past == nil {
				c.markReadBeside()
			}
		}
	case body.State == string(regie.RoundRunning) && body.Stop == "":
		if c.Round != body.RoundID {
			c.Began = event.Time
		}
		c.openRound(body.RoundID)
		c.Interrupting, c.Stop = false, ""
		c.setState(regie.SessionActive)
	default:
		c.Stop = body.Stop
	}
}

// openRound takes a round as the one that is open.
func (c *Conversation) openRound(round regie.ID) {
	c.Round, c.Last = round, round
	if !slices.Contains(c.Rounds, round) {
		c.Rounds = append(c.Rounds, round)
	}
}

func (c *Conversation) setState(state regie.SessionState) {
	if state == regie.SessionPaused && c.State != state {
		c.Note(c.Text.T("paused; /resume goes on"))
	}
	if c.State == regie.SessionPaused && state != c.State { // the pause was taken back
		c.Stop = ""
	}
	c.State = state
	if c.Due = c.Waiting(); !c.Due {
		c.closeQuestions()
	}
}

// closeQuestions closes open questions: the session no longer waits.
func (c *Conversation) closeQuestions() {
	c.Due = false
	c.Renderer.Settled()
}

// Interrupt asks the round to end.
func (c *Conversation) Interrupt() {
	if c.Round.IsZero() || c.Interrupting {
		return
	}
	c.Interrupting = true
	round := c.Round
	c.Renderer.Do(Beside, func(ctx context.Context) func() {
		err := c.Control.Interrupt(ctx, round)
		return func() {
			if c.Renderer.ShowError(err); err != nil {
				c.Interrupting = false
			}
		}
	})
}

// Farewell says where things stand, once the person has left.
func (c *Conversation) Farewell() {
	if c.Last.IsZero() {
		return
	}
	c.Renderer.Separate()
	if !c.Round.IsZero() {
		c.Note(c.Text.T("run %s is left as it is", c.Round.String()))
	}
	c.Note(c.Text.T("continue this chat: regie chat -r %s", Short(c.Session)))
}

// Outgoing is a message, or a command of the person, on its way.
type Outgoing struct {
	Session regie.ID
	Typed   string
	When    store.WhenBusy
	Command bool
}

// Enter sends the typed text, or runs it as a command.
func (c *Conversation) Enter(typed string) {
	switch {
	case strings.HasPrefix(typed, "//"):
		c.Say(typed[1:])
	case strings.HasPrefix(typed, "/"):
		c.Obey(strings.TrimSpace(typed))
	case strings.HasPrefix(typed, regie.CommandMark):
		c.Give(typed)
	default:
		c.Say(typed)
	}
}

// Say gives a message to the agent. While the session waits for the person, Say first explains the
// message's effect (decision 10).
func (c *Conversation) Say(typed string) {
	if !c.Waiting() {
		c.Send(typed, store.Queue)
		return
	}
	m := &Outgoing{Session: c.Session, Typed: typed, When: store.Queue}
	c.Renderer.Do(InOrder, func(ctx context.Context) func() {
		inbox, err := c.Control.Inbox(ctx, store.InboxFilter{SessionID: m.Session})
		return func() {
			switch {
			case err != nil, m.Session != c.Session: // or another chat has been taken up since
				c.Renderer.Sent(m, dispatch.Run{}, err)
			case countWaiting(inbox) == 0, len(inbox.Questions) > 0 && inbox.Questions[0].Module.AllowFreeText:
				c.Send(typed, store.Queue)
			default:
				c.confirmWithdrawal(typed, len(inbox.Questions) > 0)
			}
		}
	})
}

// confirmWithdrawal asks whether a message replaces the session's open request.
func (c *Conversation) confirmWithdrawal(typed string, question bool) {
	keys := []Key{{yesNames, c.Text.T("[y] send and withdraw"), func() {
		c.Due = false
		c.Send(typed, store.Steer)
	}}}
	if !question {
		queue := func() { c.Send(typed, store.Queue) }
		keys = append(keys, Key{"q", c.Text.T("[q] send when this run has ended"), queue})
	}
	c.Renderer.Confirm(
		c.Text.T("The run waits for your answer (/approvals). If you send your message now, it withdraws the request, and none of those actions is run."),
		append(keys, Key{"esc " + noNames, c.Text.T("[n] do not send"), func() {
			if !c.Renderer.EditMessage(typed) {
				c.Note(c.Text.T("not sent"))
			}
		}}))
}

// Send gives a message to the agent, now or when it has its turn.
func (c *Conversation) Send(typed string, when store.WhenBusy) {
	request := c.Request
	request.Text, request.WhenBusy = typed, when
	c.submitMessage(&Outgoing{Session: c.Session, Typed: typed, When: when}, request)
}

// Give has a person's own command run: with the same approval as the agent's, and without a model
// (spec 10.1).
func (c *Conversation) Give(typed string) {
	command, _ := CommandOf(typed)
	if command == "" {
		c.Note(c.Text.T("write the command after the !, as in !git status"))
		return
	}
	request := c.Request
	request.Command = command
	c.submitMessage(&Outgoing{Session: c.Session, Typed: typed, When: store.Reject, Command: true}, request)
}

func (c *Conversation) submitMessage(m *Outgoing, request dispatch.RunRequest) {
	request.ClientID, request.SessionID, request.ApprovalMode = regie.NewID().String(), m.Session, ""
	if !isStored(c) {
		request.ApprovalMode = c.Mode
	}
	c.Renderer.Do(InOrder, func(ctx context.Context) func() {
		var run dispatch.Run
		var err error
		if request.Segments = Mentions(request.Text, c.Look); request.Segments != nil {
			request.Text = ""
			request.Segments, err = AttachImages(ctx, c.Control, c.ReadImage, request.Segments)
		}
		if err == nil {
			run, err = c.Control.Submit(ctx, request)
		}
		return func() { c.handleSent(m, run, err) }
	})
}

// handleSent takes in what became of a message.
func (c *Conversation) handleSent(m *Outgoing, run dispatch.Run, err error) {
	if m.Session != c.Session { // another chat has been taken up since
		return
	}
	// else what has happened since is known already
	if err == nil && !run.Answered && !run.Pending && run.Seq > c.Seen {
		c.openRound(run.RoundID)
		c.State, c.Place, c.Began = regie.SessionActive, run.Position, time.Now()
		if run.Position > 0 {
			c.State = regie.SessionQueued
		}
	}
	if c.Renderer.Sent(m, run, err); err == nil && c.Feed == nil {
		c.Follow(0)
	}
}

// TakeBack withdraws a queued message; edit puts it into the prompt. It runs in order with sent
// messages, so an earlier one is stored first.
func (c *Conversation) TakeBack(q Queued, edit bool) {
	if c.Stream.own[q.ID] { // it is under way
		return
	}
	c.Stream.Own(q.ID, true)
	session := c.Session
	c.Renderer.Do(InOrder, func(ctx context.Context) func() {
		message, err := c.Control.TakeBack(ctx, dispatch.TakeBackRequest{SessionID: session, MessageID: q.ID})
		return func() {
			switch {
			case session != c.Session:
			case err != nil:
				c.Stream.Own(q.ID, false)
				c.Renderer.ShowError(err)
			default:
				c.Stream.removeQueued(q.ID)
				if said := message.LinearText(); !edit || !c.Renderer.EditMessage(said) {
					c.Stream.showWithdrawn(said, true)
				}
			}
		}
	})
}

// Queue are the messages that wait for their turn.
func (c *Conversation) Queue() []Queued { return c.Stream.waiting }

// Control is what a terminal asks of an engine.
type Control = *client.Client
