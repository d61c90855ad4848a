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

// follower watches one round until it ends, is paused, or waits for a person at another terminal,
// and shows what happens.
type follower struct {
	*environment
	control *app.Conn
	json    bool
	round   regie.ID
	session regie.ID
	after   int64 // the last event that was seen
	// paused, waits and ended are the session's state by its events.
	paused, waits, ended bool
	timedOut             bool
	away                 bool   // the model cannot be reached, and the person knows
	why                  string // it cannot be reached, in words
	said                 string // by a reply that may be the answer
	noted                bool   // a line was written since this was last unset
	// forTool says that the run waits for a tool's server; parked, that it is left waiting, because
	// it was not to wait for the network.
	forTool, parked, network bool
	deadline                 <-chan time.Time
	signals                  <-chan os.Signal
	// asker asks the person for decisions and answers; nil where it cannot.
	asker  *chat.Asker
	input  *chat.Input
	feed   *chat.Feed
	fold   chat.Fold
	output chat.Output
}

// followRun starts or resumes a round and follows it. The returned exit says how it went.
func followRun(ctx context.Context, env *environment, control *app.Conn, f runFlags, request dispatch.RunRequest,
	resumed *resumedRun, signals <-chan os.Signal,
) (outcome, err error) {
	w := &follower{environment: env, control: control, json: f.json, signals: signals}
	if f.asks {
		w.askPerson()
	}
	if resumed != nil {
		err = w.resume(ctx, resumed)
	} else {
		err = w.submit(ctx, f, request)
	}
	if err != nil {
		return nil, err
	}
	if !f.deadline.IsZero() {
		timer := time.NewTimer(time.Until(f.deadline))
		defer timer.Stop()
		w.deadline = timer.C
	}
	return w.watch(ctx)
}

// askPerson has the follower ask the person what the run waits for.
func (w *follower) askPerson() {
	editor := chat.Command(chat.EditorLine(os.Getenv))
	page := w.page(w.stderr)
	page.Inside = true
	w.asker = &chat.Asker{
		Control: w.control, Page: page, Next: w.next, Settle: w.awaitQuiet,
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
	for left := false; !left && !w.ended && !w.paused && !w.parked; {
		if w.waits {
			left, err = w.wait(ctx)
		} else {
			_, _, err = w.step(ctx, nil, nil)
		}
		if _, leaves := errors.AsType[exit](err); leaves {
			return err, nil
		} else if err != nil {
			return nil, err
		}
	}
	return w.finish(ctx)
}

// step waits for an event, the deadline or a signal and handles it; or for a line of the person, or
// for a moment to pass, which end is true for.
func (w *follower) step(ctx context.Context, lines <-chan string, moment <-chan time.Time) (
	line string, end bool, err error,
) {
	select {
	case item := <-w.feed.Items:
		return "", false, w.handleItem(item)
	case err := <-w.feed.Ended:
		return "", false, err
	case <-w.deadline:
		return "", false, w.timeUp(ctx)
	case s := <-w.signals:
		return "", false, w.handleSignal(ctx, s)
	case line, ok := <-lines:
		if !ok {
			return "", false, chat.ErrLeave
		}
		return line, true, nil
	case <-moment:
		return "", true, nil
	}
}

// wait asks the person what the session waits for, or reports that the run is left waiting.
func (w *follower) wait(ctx context.Context) (left bool, err error) {
	w.waits = false
	if err := w.settle(ctx); err != nil {
		return false, err
	}
	round, err := w.control.Get(ctx, w.round)
	if err != nil || round.Round.State != regie.RoundWaiting { // answered already, from elsewhere
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

// next shows a prompt and returns the person's line. Events, the deadline and signals are handled
// meanwhile.
func (w *follower) next(ctx context.Context, prompt string) (string, error) {
	fmt.Fprint(w.stderr, prompt)
	for w.waits {
		if w.noted { // behind the prompt
			fmt.Fprint(w.stderr, prompt)
			w.noted = false
		}
		if line, end, err := w.step(ctx, w.input.Lines(), nil); end || err != nil {
			return line, err
		}
	}
	fmt.Fprintln(w.stderr)
	return "", chat.ErrMoved
}

// awaitQuiet handles events until none came for a moment.
func (w *follower) awaitQuiet(ctx context.Context) error {
	for w.waits {
		if _, end, err := w.step(ctx, nil, time.After(chat.Moment)); end || err != nil {
			w.noted = w.noted && !end
			return err
		}
	}
	return chat.ErrMoved
}

func (w *follower) timeUp(ctx context.Context) error {
	w.timedOut, w.deadline = true, nil
	return w.control.Pause(ctx, w.round)
}

// handleSignal obeys the first signal; the second ends the process.
func (w *follower) handleSignal(ctx context.Context, s os.Signal) error {
	if s != os.Interrupt { // a plain end: the run stays as it is stored and can be resumed
		w.notef("left as it is; go on with: regie run --resume %s", w.round)
		return exit{exitInterrupted}
	}
	w.notef("interrupting… (once more to leave at once)")
	return w.control.Interrupt(ctx, w.round)
}

// settle waits until a round that runs here has obeyed.
func (w *follower) settle(ctx context.Context) error {
	obeyed, stop := context.WithTimeout(ctx, 5*time.Second)
	defer stop()
	_ = w.control.Wait(obeyed, w.round) // why it stopped stands in the round
	return ctx.Err()
}

// submit submits the request of a new round.
func (w *follower) submit(ctx context.Context, f runFlags, request dispatch.RunRequest) error {
	if f.session != "" {
		found, err := chat.FindSession(ctx, w.control, request.Root, f.session)
		if err != nil {
			return err
		}
		// One job, one answer: it does not wait for a busy session.
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
	w.show(w.T("run %s in %s", run.RoundID, request.Root))
	return w.tellLimits(ctx, request.Limits)
}

// resume resumes a round.
func (w *follower) resume(ctx context.Context, resumed *resumedRun) error {
	w.round = resumed.id
	view, err := w.control.Get(ctx, w.round)
	if err != nil {
		return err
	}
	w.session, w.after = view.Session.ID, view.Head
	ended := view.Round.State == regie.RoundEnded
	if ended && resumed.head == 0 {
		w.ended = true
		w.show(w.T("run %s has ended already", w.round))
		return nil
	}
	if resumed.head > 0 { // the engine of this process went on with it meanwhile
		w.after = resumed.head
	}
	w.show(w.T("going on with run %s", w.round))
	if ended {
		return nil // its events are still to be shown
	}
	if err := w.control.Resume(ctx, w.round); err != nil {
		return err
	}
	// A round that waits for the network goes on by itself.
	w.waits = w.after == view.Head && view.Round.State == regie.RoundWaiting &&
		view.Session.State != regie.SessionWaitingNetwork
	var policy approval.Policy
	if len(view.Round.Policy) > 0 && json.Unmarshal(view.Round.Policy, &policy) == nil {
		w.network = policy.WaitNetwork
	}
	return nil
}

// tellLimits reports requested limits above those of the run: no flag raises one (spec 13).
func (w *follower) tellLimits(ctx context.Context, wanted regie.Limits) error {
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
			w.show("  " + w.T("%s lowers a limit and does not raise it: here it is %d", limit.flag, limit.real))
		}
	}
	return nil
}

// show writes lines on standard error.
func (w *follower) show(lines ...string) {
	for _, line := range lines {
		w.noted = true
		fmt.Fprintln(w.stderr, plain.Strip(line))
	}
}

// handleItem shows one event and takes the state of the session from it.
func (w *follower) handleItem(item dispatch.Item) error {
	if item.Delta != nil {
		w.show(w.output.Lines(w.text, item.Delta)...)
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
			w.show("  " + chat.QueuedLine(w.text, body.Place))
		}
		switch {
		case state != regie.SessionWaitingNetwork:
			w.forTool = false
		case w.forTool:
			w.parked = !w.network
		case !w.away: // it goes on by itself
			w.away = true
			if w.why == "" { // it began before anybody watched
				w.show("  " + w.T("the model cannot be reached; waiting for it"))
			} else {
				w.show("  " + w.T("the model does not answer (%s); waiting for it", w.why))
			}
		}
	case regie.EventFallback:
		w.show("  " + chat.FallbackLine(w.text, event))
	case regie.EventNotice:
		if line := chat.NoticeLine(w.text, event); line != "" {
			w.show("  " + line)
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
			w.show("  " + chat.Told(w.text, m))
			break
		}
		w.show("  " + w.T("the model's reply cannot be read; it is asked to write it again"))
	case regie.SystemLimitReached:
		w.show("  " + chat.Told(w.text, m))
	case regie.SystemCompleteRefused:
		if w.said != "" {
			w.show("  " + w.said)
		}
		w.show("  " + w.T("the model is told to go on, or to say that all is done"))
	}
	w.said = ""
}

// progress shows a step of the run on standard error.
func (w *follower) progress(event *regie.Event) {
	w.show(w.output.Rest(event)...)
	w.show(w.fold.Lines(w.text, event)...)
	switch event.Type {
	case regie.EventMessage:
		var m regie.Message
		if json.Unmarshal(event.Body, &m) != nil {
			return
		}
		w.show(chat.ToolNotice(w.text, &m)...)
		if notice, ok := m.ToolNotice(); ok {
			w.forTool = !notice.CallID.IsZero()
		} else if m.System != nil && m.System.Type == regie.SystemNetworkError {
			w.why = chat.Told(w.text, m.System)
		}
		w.away = w.away && m.AI == nil
		if line := chat.CachedLine(w.text, &m, time.Now()); line != "" {
			w.show("  " + line)
		}
		switch {
		case m.AI != nil && len(m.CallIDs()) > 0 && m.AI.Text() != "":
			w.show("  " + m.AI.Text())
		case m.AI != nil:
			w.said = m.AI.Text() // the answer, unless something follows
		case m.System != nil:
			w.notice(m.System)
		}
	case regie.EventStreamReset:
		if line, _ := chat.ResetLine(w.text, event); line != "" {
			w.show("  " + line)
		}
	}
}
