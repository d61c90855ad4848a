package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/client"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/doctor"
	"github.com/regie-run/regie/internal/sanitize"
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
	away                 bool // a server cannot be reached, and the person knows
	noted                bool // a line was written since this was last unset
	network              bool // it waits for the network
	deadline             <-chan time.Time
	signals              <-chan os.Signal
	// asker asks the person for decisions and answers; nil where it cannot.
	asker  *chat.Asker
	input  *chat.Input
	feed   *chat.Feed
	fold   chat.Fold
	output chat.Output
}

// followRun starts or resumes a round and follows it. The returned exit says how it went.
func followRun(ctx context.Context, env *environment, control *app.Conn, f runFlags, request dispatch.RunRequest,
	resumed *store.RoundView, signals <-chan os.Signal,
) error {
	w := &follower{environment: env, control: control, json: f.json, signals: signals}
	if f.asks {
		w.askPerson()
	}
	begin := func() error { return w.submitRun(ctx, f, request) }
	if f.resume != "" {
		begin = func() error { return w.resumeRun(ctx, resumed, f.repin) }
	}
	if err := begin(); err != nil {
		return err
	}
	timer := time.NewTimer(time.Until(f.deadline))
	defer timer.Stop()
	w.deadline = timer.C
	return w.watchRound(ctx)
}

// askPerson lets the follower put the run's open requests to the person.
func (w *follower) askPerson() {
	editor := chat.Command(chat.EditorLine(os.Getenv))
	page := w.newPage(w.stderr)
	page.Inside = true
	w.asker = &chat.Asker{
		Control: w.control.Client, Page: page, Next: w.promptLine, Settle: w.awaitQuiet,
		Edit: func(ctx context.Context, path string) error {
			defer w.input.Pause()()
			return editor(ctx, path)
		},
	}
}

// watchRound follows the round to its end, or until it is paused or waits, and says how it went.
func (w *follower) watchRound(ctx context.Context) (err error) {
	if w.ended {
		return w.showResult(ctx)
	}
	w.feed = chat.Follow(ctx, w.control.Client, w.session, w.after)
	defer func() { w.feed.Stop() }()
	for left := false; !left && !w.ended && !w.paused && (!w.away || w.network); {
		if w.waits {
			left, err = w.awaitAnswer(ctx)
		} else {
			_, _, err = w.handleNext(ctx, nil, nil)
		}
		if err != nil {
			return err
		}
	}
	return w.showResult(ctx)
}

// handleNext waits for an event, the deadline or a signal and handles it; or for a line of the
// person, or for a moment to pass, which end is true for.
func (w *follower) handleNext(ctx context.Context, lines <-chan string, moment <-chan time.Time) (
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

// awaitAnswer puts the session's open requests to the person, or reports that the run is left
// waiting.
func (w *follower) awaitAnswer(ctx context.Context) (left bool, err error) {
	w.waits = false
	if err := w.awaitSettled(ctx); err != nil {
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

// promptLine shows a prompt and returns the person's line. Events, the deadline and signals are
// handled meanwhile.
func (w *follower) promptLine(ctx context.Context, prompt string) (string, error) {
	fmt.Fprint(w.stderr, prompt)
	for w.waits {
		if w.noted { // behind the prompt
			fmt.Fprint(w.stderr, prompt)
			w.noted = false
		}
		if line, end, err := w.handleNext(ctx, w.input.Lines(), nil); end || err != nil {
			return line, err
		}
	}
	fmt.Fprintln(w.stderr)
	return "", chat.ErrMoved
}

// awaitQuiet handles events until none came for a moment.
func (w *follower) awaitQuiet(ctx context.Context) error {
	for w.waits {
		if _, end, err := w.handleNext(ctx, nil, time.After(chat.Moment)); end || err != nil {
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
		w.notef("left as it is; continue with: regie run --resume %s", w.round)
		return exit{exitInterrupted}
	}
	w.notef("interrupting… (once more to leave at once)")
	return w.control.Interrupt(ctx, w.round)
}

// awaitSettled waits until a round that runs here has obeyed.
func (w *follower) awaitSettled(ctx context.Context) error {
	obeyed, stop := context.WithTimeout(ctx, 5*time.Second)
	defer stop()
	_ = w.control.Wait(obeyed, w.round) // the round records why it stopped
	return ctx.Err()
}

// submitRun submits the request of a new round.
func (w *follower) submitRun(ctx context.Context, f runFlags, request dispatch.RunRequest) error {
	if f.session != "" {
		found, err := chat.FindSession(ctx, w.control.Client, request.Root, f.session)
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
	w.round, w.session, w.network = run.RoundID, run.SessionID, f.network || f.unattended
	if f.session != "" {
		w.after = run.Seq - 1
	}
	w.showLines(w.T("run %s in %s", run.RoundID, request.Root))
	return nil
}

// resumeRun resumes a round, and shows the events after those in before.
func (w *follower) resumeRun(ctx context.Context, before *store.RoundView, repin bool) error {
	w.round, w.session, w.after = before.Round.ID, before.Session.ID, before.Head
	if before.Round.State == regie.RoundEnded {
		w.ended = true
		w.showLines(w.T("run %s has ended already", w.round))
		return nil
	}
	w.showLines(w.T("resuming run %s", w.round))
	view, err := w.control.Get(ctx, w.round)
	if err != nil || view.Round.State == regie.RoundEnded {
		return err // an engine of this process has gone on with it: its events are still to be shown
	}
	if repin {
		err = client.ChangeProvider(ctx, w.control.Client, dispatch.ProviderRequest{
			RoundID: w.round, Provider: w.config.Provider, Model: w.config.Model, Settings: w.settingsOfModel(),
		})
	}
	if err == nil {
		err = w.control.Resume(ctx, w.round)
	}
	if err != nil {
		return err
	}
	// A round that waits for the network continues on its own.
	w.waits = w.after == view.Head && view.Round.State == regie.RoundWaiting &&
		view.Session.State != regie.SessionWaitingNetwork
	w.network = waitsForNetwork(&view)
	return nil
}

// waitsForNetwork reports whether a run waits for a server that cannot be reached.
func waitsForNetwork(view *store.RoundView) bool {
	var policy approval.Policy
	_ = json.Unmarshal(view.Round.Policy, &policy) // one without a policy waits for nothing
	return policy.WaitNetwork || view.Session.Type == regie.SessionAutomation
}

// showLines writes lines on standard error.
func (w *follower) showLines(lines ...string) {
	for _, line := range lines {
		w.noted = true
		fmt.Fprintln(w.stderr, sanitize.Strip(line))
	}
}

// handleItem shows one event and takes the state of the session from it.
func (w *follower) handleItem(item dispatch.Item) error {
	if item.Delta != nil {
		w.showLines(w.output.Lines(w.text, item.Delta)...)
	}
	if item.Event == nil {
		return nil
	}
	event := item.Event
	w.after = event.Seq
	if w.json {
		if err := json.NewEncoder(w.stdout).Encode(event); err != nil {
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
			w.showLines("  " + chat.QueuedLine(w.text, body.Place))
		}
		if state == regie.SessionWaitingNetwork && !w.away { // it continues on its own
			w.away = true
			w.showLines("  " + w.T("a server cannot be reached; waiting for it"))
		}
	case regie.EventFallback:
		w.showLines("  " + chat.FallbackLine(w.text, event))
	case regie.EventNotice:
		if line := chat.NoticeLine(w.text, event); line != "" {
			w.showLines("  " + line)
		}
	case regie.EventMessage, regie.EventToolResult, regie.EventStreamReset:
		w.showProgress(event)
	}
	return nil
}

// showProgress shows a step of the run on standard error.
func (w *follower) showProgress(event *regie.Event) {
	w.showLines(w.output.Rest(event)...)
	w.showLines(w.fold.Lines(w.text, event)...)
	if line, _ := chat.ResetLine(w.text, event); line != "" && event.Type == regie.EventStreamReset {
		w.showLines("  " + line)
	}
	var m regie.Message
	if event.Type != regie.EventMessage || json.Unmarshal(event.Body, &m) != nil {
		return
	}
	w.showLines(chat.ToolNotice(w.text, &m)...)
	w.away = w.away && m.AI == nil
	if line := chat.CachedLine(w.text, &m); line != "" {
		w.showLines("  " + line)
	}
	switch {
	case m.AI != nil && len(m.CallIDs()) > 0 && m.AI.Text() != "":
		w.showLines("  " + m.AI.Text())
	case m.System != nil && (m.System.Type == regie.SystemFormatError && len(m.System.Said) == 0):
		w.showLines("  " + w.T("the model's reply cannot be read; it is asked to write it again"))
	case m.System != nil && m.System.Type == regie.SystemCompleteRefused:
		w.showLines("  " + w.T("the model is told to go on, or to say that all is done"))
	case m.System != nil && (m.System.Type == regie.SystemFormatError || m.System.Type == regie.SystemLimitReached ||
		m.System.Type == regie.SystemNetworkError):
		w.showLines("  " + chat.Told(w.text, m.System))
	}
}

// withoutPassword returns a database's URL as it may be printed: who goes on gives the password in
// another way, or writes it again.
func withoutPassword(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.User == nil {
		return text
	}
	u.User = url.User(u.User.Username())
	query := u.Query()
	query.Del("password")
	u.RawQuery = query.Encode()
	return u.String()
}

// sameCommand returns a command line with the flags of this one, so that it finds the same store
// and model.
func (env *environment) sameCommand(words ...string) string {
	f := &env.flags
	line := append([]string{"regie"}, words...)
	line = append(line, givenFlags("--data-dir", f.DataDir, "--database", withoutPassword(f.Database),
		"--config", f.Config, "--server", f.Server, "--workspace", f.Workspace)...)
	provider := f.Provider
	if provider == config.ProviderDemo { // a run of the demo resumes without it
		provider = ""
	}
	return strings.Join(append(line, givenFlags("--provider", provider, "--base-url", f.BaseURL, "--model", f.Model,
		"--replay", f.Replay, "--record", f.Record)...), " ")
}

// givenFlags returns, for a shell, those of pairs of names and values that have a value.
func givenFlags(pairs ...string) (out []string) {
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			out = append(out, pairs[i], doctor.Quote(pairs[i+1]))
		}
	}
	return out
}
