package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/plain"
	"github.com/regie-run/regie/internal/store"
)

// follower watches one round until it ends, is paused or waits for a person whom nobody can ask,
// and shows what happens.
type follower struct {
	*command
	control *app.Conn
	json    bool
	round   regie.ID
	session regie.ID
	after   int64 // the last event that was seen
	// paused, waits and ended are what the events say of the session.
	paused, waits, ended bool
	timedOut             bool
	away                 bool   // the model could not be reached, and the person knows
	why                  string // it could not be reached, in words
	said                 string // by a reply that may be the answer
	noted                bool   // a line was written since this was last unset
	// forTool says that what is waited for without a person is a tool's server; parked, that the
	// run is left waiting for it, because it was not told to wait for the network.
	forTool, parked, network bool
	deadline                 <-chan time.Time
	signals                  <-chan os.Signal
	// asker puts what is waited for to the person; nil where nobody can be asked.
	asker  *chat.Asker
	input  *chat.Input
	feed   *chat.Feed
	fold   chat.Fold
	output chat.Output
}

// follow starts or resumes a round and follows it. The returned exit says how it went.
func (c *command) follow(ctx context.Context, control *app.Conn, f runFlags, request dispatch.RunRequest,
	signals <-chan os.Signal,
) (outcome, err error) {
	w := &follower{command: c, control: control, json: f.json, signals: signals}
	if f.asks {
		w.asks()
	}
	if err := w.begin(ctx, f, request); err != nil {
		return nil, err
	}
	if !f.deadline.IsZero() {
		timer := time.NewTimer(time.Until(f.deadline))
		defer timer.Stop()
		w.deadline = timer.C
	}
	return w.watch(ctx)
}

// asks makes the follower put to the person what the run waits for.
func (w *follower) asks() {
	editor := chat.Command(chat.EditorLine(os.Getenv))
	w.asker = &chat.Asker{
		Control: w.control, Page: &chat.Page{W: w.stderr, Text: w.text, Now: time.Now, Inside: true},
		Next: w.next, Settle: w.quiet,
		Edit: func(ctx context.Context, path string) error {
			defer w.input.Pause()()
			return editor(ctx, path)
		},
	}
}

// watch follows the round to its end, or until it is paused or waits, and says how it went.
func (w *follower) watch(ctx context.Context) (outcome, err error) {
	if w.ended {
		return w.finish(ctx)
	}
	w.feed = chat.Follow(ctx, w.control, w.session, w.after)
	defer func() { w.feed.Stop() }()
	for !w.ended && !w.paused && !w.parked {
		if w.waits {
			if left, err := w.wait(ctx); left || err != nil {
				return w.finishOr(ctx, err)
			}
			continue
		}
		select {
		case item := <-w.feed.Items:
			if err := w.item(item); err != nil {
				return nil, err
			}
		case err := <-w.feed.Ended:
			return nil, err
		case <-w.deadline:
			if err := w.timeUp(ctx); err != nil {
				return nil, err
			}
		case s := <-w.signals:
			if err := w.signal(ctx, s); err != nil {
				return w.finishOr(ctx, err)
			}
		}
	}
	return w.finish(ctx)
}

// wait is reached when the session waits for a person. It asks them, or reports that the run is
// left waiting.
func (w *follower) wait(ctx context.Context) (left bool, err error) {
	w.waits = false
	if err := w.settle(ctx); err != nil {
		return false, err
	}
	round, err := w.control.Get(ctx, w.round)
	if err != nil || round.Round.State != regie.RoundWaiting { // answered already, by somebody else
		return false, err
	}
	if w.asker == nil {
		return true, nil
	}
	if w.input == nil {
		if w.input, err = chat.NewInput(w.stdin, true); err != nil {
			return false, err
		}
	}
	w.waits = true // until an event says otherwise: see next
	later, err := w.asker.Ask(ctx, w.session)
	w.waits = false
	switch {
	case errors.Is(err, chat.ErrMoved):
		return false, nil
	case errors.Is(err, chat.ErrLeave):
		return true, nil
	}
	return later > 0, err
}

// next shows a prompt and waits for the person's line, while the events, the clock and the signals
// go on.
func (w *follower) next(ctx context.Context, prompt string) (string, error) {
	fmt.Fprint(w.stderr, prompt)
	for w.waits {
		if w.noted { // behind the prompt
			fmt.Fprint(w.stderr, prompt)
			w.noted = false
		}
		select {
		case line, ok := <-w.input.Lines():
			if !ok {
				return "", chat.ErrLeave
			}
			return line, nil
		case item := <-w.feed.Items:
			if err := w.item(item); err != nil {
				return "", err
			}
		case err := <-w.feed.Ended:
			return "", err
		case <-w.deadline:
			if err := w.timeUp(ctx); err != nil {
				return "", err
			}
		case s := <-w.signals:
			if err := w.signal(ctx, s); err != nil {
				return "", err
			}
		}
	}
	fmt.Fprintln(w.stderr)
	return "", chat.ErrMoved
}

// quiet shows what has happened until nothing has for a moment.
func (w *follower) quiet(context.Context) error {
	for w.waits {
		timer := time.NewTimer(chat.Moment)
		select {
		case <-timer.C:
			w.noted = false
			return nil
		case item := <-w.feed.Items:
			timer.Stop()
			if err := w.item(item); err != nil {
				return err
			}
		case err := <-w.feed.Ended:
			timer.Stop()
			return err
		}
	}
	return chat.ErrMoved
}

func (w *follower) timeUp(ctx context.Context) error {
	w.timedOut, w.deadline = true, nil
	return w.control.Pause(ctx, w.round)
}

// signal obeys the person's first signal; the second ends the process.
func (w *follower) signal(ctx context.Context, s os.Signal) error {
	if s != os.Interrupt { // a plain end: the run stays as it is stored and can be resumed
		fmt.Fprintln(w.stderr, w.text.T("left as it is; go on with: regie run --resume %s", w.round))
		return exit{exitInterrupted}
	}
	fmt.Fprintln(w.stderr, w.text.T("interrupting… (once more to leave at once)"))
	return w.control.Interrupt(ctx, w.round)
}

// settle lets go of a round that runs here: what was asked of it is obeyed.
func (w *follower) settle(ctx context.Context) error {
	obeyed, stop := context.WithTimeout(ctx, 5*time.Second)
	defer stop()
	_ = w.control.Wait(obeyed, w.round) // why it stopped stands in the round
	return ctx.Err()
}

func (w *follower) finishOr(ctx context.Context, err error) (outcome, failed error) {
	if err != nil {
		if _, left := errors.AsType[exit](err); left {
			return err, nil
		}
		return nil, err
	}
	return w.finish(ctx)
}

// begin submits the request, or takes a round up.
func (w *follower) begin(ctx context.Context, f runFlags, request dispatch.RunRequest) error {
	if f.resume == "" {
		if f.session != "" {
			found, err := chat.FindSession(ctx, w.control, request.Root, f.session)
			if err != nil {
				return err
			}
			// One job, one answer: a session that is busy is not waited for.
			request.SessionID, request.Agent, request.WhenBusy = found.ID, found.Agent, store.Reject
		}
		run, err := w.control.Submit(ctx, request)
		if err != nil {
			return err
		}
		w.round, w.session, w.network = run.RoundID, run.SessionID, f.network
		if f.session != "" {
			w.after = run.Seq - 1
		}
		w.note(w.text.T("run %s in %s", run.RoundID, request.Root))
		return w.clamped(ctx, request.Limits)
	}
	var err error
	if w.round, err = regie.ParseID(f.resume); err != nil {
		return err
	}
	view, err := w.control.Get(ctx, w.round)
	if err != nil {
		return err
	}
	w.session, w.after = view.Session.ID, view.Head
	ended := view.Round.State == regie.RoundEnded
	if ended && f.since == 0 {
		w.ended = true
		w.note(w.text.T("run %s has ended already", w.round))
		return nil
	}
	if f.since > 0 { // the engine of this process went on with it meanwhile
		w.after = f.since
	}
	w.note(w.text.T("going on with run %s", w.round))
	if ended {
		return nil // as the events that are to be shown say
	}
	if err := w.control.Resume(ctx, w.round); err != nil {
		return err
	}
	// What it waits for without a person, it goes on with by itself.
	w.waits = w.after == view.Head && view.Round.State == regie.RoundWaiting &&
		view.Session.State != regie.SessionWaitingNetwork
	var policy approval.Policy
	if len(view.Round.Policy) > 0 && json.Unmarshal(view.Round.Policy, &policy) == nil {
		w.network = policy.WaitNetwork
	}
	return nil
}

// clamped says which limits that were asked for are not those of the run: nothing on the command
// line raises one (spec 13).
func (w *follower) clamped(ctx context.Context, wanted regie.Limits) error {
	if wanted == (regie.Limits{}) {
		return nil
	}
	view, err := w.control.Get(ctx, w.round)
	if err != nil {
		return err
	}
	has := view.Round.Limits
	for _, limit := range []struct {
		flag         string
		wanted, real int64
	}{
		{"--max-replies", int64(wanted.Total), int64(has.Total)},
		{"--context-tokens", int64(wanted.ContextTokens), int64(has.ContextTokens)},
		{"--max-tokens", wanted.Tokens, has.Tokens},
		{"--time-limit", wanted.Seconds, has.Seconds},
	} {
		if limit.wanted > 0 && limit.real > 0 && limit.real < limit.wanted {
			w.note("  " + w.text.T("%s lowers a limit and does not raise it: here it is %d", limit.flag, limit.real))
		}
	}
	return nil
}

func (w *follower) note(line string) {
	w.noted = true
	fmt.Fprintln(w.stderr, plain.Strip(line))
}

// item shows one event and notes what it says of the session.
func (w *follower) item(item dispatch.Item) error {
	if item.Delta != nil {
		for _, line := range w.output.Lines(w.text, item.Delta) {
			w.note(line)
		}
	}
	if item.Event == nil {
		return nil
	}
	event := item.Event
	w.after = event.Seq
	if w.json {
		line, err := json.Marshal(event)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w.stdout, "%s\n", line); err != nil {
			return err
		}
	}
	var body struct {
		RoundID regie.ID `json:"round_id"`
		State   string   `json:"state"`
		Place   int      `json:"position"`
	}
	if err := json.Unmarshal(event.Body, &body); err != nil {
		return nil //nolint:nilerr // a body that was erased says nothing
	}
	switch event.Type {
	case regie.EventRound:
		if body.RoundID == w.round && body.State == string(regie.RoundEnded) {
			w.ended, w.waits = true, false
		}
	case regie.EventSessionState:
		state := regie.SessionState(body.State)
		w.paused = state == regie.SessionPaused
		w.waits = state == regie.SessionWaitingValidation || state == regie.SessionWaitingResponse
		if state == regie.SessionQueued {
			w.note("  " + chat.QueuedLine(w.text, body.Place))
		}
		switch {
		case state != regie.SessionWaitingNetwork:
			w.forTool = false
		case w.forTool:
			w.parked = !w.network
		case !w.away: // it goes on by itself
			w.away = true
			if w.why == "" { // it began before anybody watched
				w.note("  " + w.text.T("the model cannot be reached; waiting for it"))
			} else {
				w.note("  " + w.text.T("the model does not answer (%s); waiting for it", w.why))
			}
		}
	case regie.EventFallback:
		w.note("  " + chat.FallbackLine(w.text, event))
	case regie.EventNotice:
		if line := chat.NoticeLine(w.text, event); line != "" {
			w.note("  " + line)
			w.away = w.away || w.why != "" && strings.Contains(line, plain.Strip(w.why))
		}
	case regie.EventMessage, regie.EventToolResult, regie.EventStreamReset:
		w.progress(event)
	}
	return nil
}

// notice says what keeps a reply from being the answer.
func (w *follower) notice(m *regie.SystemContent) {
	switch m.Type {
	case regie.SystemFormatError:
		if len(m.Said) > 0 { // it can be read, and is not what a person should get
			w.note("  " + chat.Told(w.text, m))
			break
		}
		w.note("  " + w.text.T("the model's reply cannot be read; it is asked to write it again"))
	case regie.SystemLimitReached:
		w.note("  " + chat.Told(w.text, m))
	case regie.SystemCompleteRefused:
		if w.said != "" {
			w.note("  " + w.said)
		}
		w.note("  " + w.text.T("the model is told to go on, or to say that all is done"))
	}
	w.said = ""
}

// progress shows a step of the run on standard error.
func (w *follower) progress(event *regie.Event) {
	for _, line := range w.output.Rest(event) {
		w.note(line)
	}
	for _, line := range w.fold.Lines(w.text, event) {
		w.note(line)
	}
	switch event.Type {
	case regie.EventMessage:
		var m regie.Message
		if json.Unmarshal(event.Body, &m) != nil {
			return
		}
		for _, line := range chat.ToolNotice(w.text, &m) {
			w.note(line)
		}
		if notice, ok := m.ToolNotice(); ok {
			w.forTool = !notice.CallID.IsZero()
		} else if m.System != nil && m.System.Type == regie.SystemNetworkError {
			w.why = chat.Told(w.text, m.System)
		}
		w.away = w.away && m.AI == nil
		if line := chat.CachedLine(w.text, &m, time.Now()); line != "" {
			w.note("  " + line)
		}
		switch {
		case m.AI != nil && len(m.CallIDs()) > 0 && m.AI.Text() != "":
			w.note("  " + m.AI.Text())
		case m.AI != nil:
			w.said = m.AI.Text() // the answer, unless something follows
		case m.System != nil:
			w.notice(m.System)
		}
	case regie.EventStreamReset:
		if line, _ := chat.ResetLine(w.text, event); line != "" {
			w.note("  " + line)
		}
	}
}
