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
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/plain"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/text"
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
		Control: w.control.Client, Page: page, Next: w.next, Settle: w.awaitQuiet,
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
	w.feed = chat.Follow(ctx, w.control.Client, w.session, w.after)
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
		if line := chat.CachedLine(w.text, &m); line != "" {
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

// awaited is one thing that a parked run waits for, as the result line of --json tells it.
type awaited struct {
	Kind    string        `json:"kind"` // approval or question
	ID      regie.ID      `json:"id"`
	Command string        `json:"command"`
	Calls   []awaitedCall `json:"calls,omitempty"`
	Text    string        `json:"text,omitempty"`
	Options []string      `json:"options,omitempty"`

	module *regie.Module // of a question
}

type awaitedCall struct {
	Number int      `json:"number"` // what approve and deny take
	CallID regie.ID `json:"call_id"`
	Tool   string   `json:"tool"`
	Text   string   `json:"text"`
}

// finish shows the answer, or what is waited for, and says how the run went.
func (w *follower) finish(ctx context.Context) (outcome, err error) {
	if err := w.settle(ctx); err != nil {
		return nil, err
	}
	view, err := w.control.Get(ctx, w.round)
	if err != nil {
		return nil, err
	}
	var inbox store.Inbox
	if view.Round.State == regie.RoundWaiting {
		if inbox, err = w.control.Inbox(ctx, store.InboxFilter{SessionID: w.session}); err != nil {
			return nil, err
		}
	}
	waiting := awaitedOf(w.environment, inbox)
	code, why := verdict(w.text, view, w.timedOut)
	if w.json {
		line, err := json.Marshal(struct {
			Type    string         `json:"type"`
			RoundID regie.ID       `json:"round_id"`
			State   string         `json:"state"`
			End     regie.RoundEnd `json:"end_reason,omitempty"`
			Waiting []awaited      `json:"waiting,omitempty"`
			Answer  string         `json:"answer"`
			Spent   regie.Spending `json:"spent"`
			// when the model gave the answer, of one from the response cache
			Cached time.Time `json:"cached,omitzero"`
			Exit   int       `json:"exit_code"`
		}{
			"result", w.round, string(view.Round.State), view.Round.End, waiting, answer(view),
			view.Spent, cachedAt(view), code,
		})
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(w.stdout, "%s\n", line)
	} else if text := answer(view); text != "" {
		fmt.Fprintln(w.stdout, plain.Strip(text))
	} else if raw, ok := unreadable(view); ok { // the person still sees it (spec 2.2)
		w.show(w.T("the model's last reply cannot be read; this is what it wrote:"))
		fmt.Fprintln(w.stdout, plain.Strip(raw))
	}
	if !w.json && isTerminal(w.stdout) {
		// A person has read it. That it could not be stored changes nothing of how the run went.
		_ = w.control.MarkRead(context.WithoutCancel(ctx), dispatch.ReadRequest{SessionID: w.session, Seq: view.Head})
	}
	for i := range waiting {
		w.show(waiting[i].lines(w.text)...)
	}
	if why != "" {
		w.show(why)
	}
	if chat.Paid(view.Spent) {
		paid := chat.Cost(w.text, view.Spent)
		if estimated(view) {
			paid += w.T(" (estimated)")
		}
		w.show(paid)
	}
	if code == exitDone {
		return nil, nil
	}
	return exit{code}, nil
}

// awaitedOf lists what a run waits for, with the command that answers each.
func awaitedOf(env *environment, inbox store.Inbox) []awaited {
	var out []awaited
	for i := range inbox.Approvals {
		a := &inbox.Approvals[i]
		waits := awaited{Kind: "approval", ID: a.ID, Command: env.sameCommand("approve", chat.Short(a.ID))}
		for n := range a.Reviews {
			if review := &a.Reviews[n]; review.Decision == nil {
				waits.Calls = append(waits.Calls, awaitedCall{
					n + 1, review.CallID, review.Tool,
					plain.Line(env.text.Sentence(review.Preview.Sentence)),
				})
			}
		}
		out = append(out, waits)
	}
	for i := range inbox.Questions {
		q := &inbox.Questions[i]
		out = append(out, awaited{
			Kind: "question", ID: q.ID, Command: env.sameCommand("answer", chat.Short(q.ID)),
			Text: plain.Visible(q.Module.Text), Options: q.Module.Options,
			module: &q.Module,
		})
	}
	return out
}

// lines say what is waited for.
func (a *awaited) lines(t *text.Printer) []string {
	var out []string
	switch a.Kind {
	case "approval":
		out = append(out, t.T("waiting for an approval, %s:", chat.Short(a.ID)))
		for _, call := range a.Calls {
			out = append(out, fmt.Sprintf("%3d  %s", call.Number, call.Text))
		}
		out = append(out, t.T("  approve with: %s", a.Command),
			t.T("  see the diffs: regie approvals show %s", chat.Short(a.ID)))
	default:
		out = append(out, t.T("waiting for an answer, %s:", chat.Short(a.ID)),
			"     "+strings.ReplaceAll(a.Text, "\n", "\n     "))
		for i, option := range a.Options {
			out = append(out, fmt.Sprintf("%3d  %s", i+1, plain.Line(option)))
		}
		out = append(out, t.T("  answer with: %s", a.Command+" "+chat.AnswerWith(t, a.module)))
	}
	return out
}

// withoutPassword is a database's URL as it may be printed: who goes on gives the password in
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

// sameCommand is a command line with the flags of this one, so that it finds the same store and
// model.
func (env *environment) sameCommand(words ...string) string {
	line := append(append([]string{"regie"}, words...), env.storeFlags(true)...)
	f := &env.flags
	provider := f.Provider
	if provider == config.ProviderDemo { // a run of the demo resumes without it
		provider = ""
	}
	return strings.Join(append(line, givenFlags("--provider", provider, "--base-url", f.BaseURL, "--model", f.Model,
		"--replay", f.Replay, "--record", f.Record, "--record-raw", f.RecordRaw)...), " ")
}

// storeFlags are the given flags that name the engine; everywhere with those of a server.
func (env *environment) storeFlags(everywhere bool) []string {
	f := &env.flags
	out := givenFlags("--data-dir", f.DataDir, "--database", withoutPassword(f.Database), "--config", f.Config)
	if everywhere {
		out = append(out, givenFlags("--server", f.Server, "--workspace", f.Workspace)...)
	}
	return out
}

// givenFlags returns, for a shell, those of pairs of names and values that have a value.
func givenFlags(pairs ...string) (out []string) {
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			out = append(out, pairs[i], quoted(pairs[i+1]))
		}
	}
	return out
}

// quoted returns a word for a shell.
func quoted(word string) string {
	const safe = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=:,./@%"
	if word != "" && strings.Trim(word, safe) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// shellWords returns a command line.
func shellWords(words []string) string {
	out := make([]string, len(words))
	for i, word := range words {
		out[i] = quoted(word)
	}
	return strings.Join(out, " ")
}

// failure is a way in which a call was not run, or is in doubt. The first decides the exit code.
type failure int

const (
	forbidden failure = iota // by a rule or a hook
	unasked                  // no person could be asked
	denied                   // by a person
	expired                  // no person answered in time
	unknown                  // its outcome is not known
	failures
)

// countFailures counts the calls of a run that were not run, or left in doubt.
func countFailures(view store.RoundView) (counts [failures]int) {
	for _, exchange := range view.Exchanges {
		for i := range exchange.Calls {
			call := &exchange.Calls[i]
			switch {
			case call.NotRun == regie.NotRunDenied && call.Error != nil && call.Error.Code == regie.CodeUserRejected:
				counts[denied]++
			case call.NotRun == regie.NotRunDenied && call.Error != nil && call.Error.Code == regie.CodeForbidden:
				counts[forbidden]++
			case call.NotRun == regie.NotRunDenied:
				counts[unasked]++
			case call.NotRun == regie.NotRunExpired:
				counts[expired]++
			case call.State == regie.CallUnknown:
				counts[unknown]++
			}
		}
	}
	return counts
}

// verdict is the exit code of spec 10.1, and the reason in words.
func verdict(t *text.Printer, view store.RoundView, timedOut bool) (int, string) {
	id := view.Round.ID
	switch {
	case view.Round.State == regie.RoundEnded:
	case timedOut:
		return exitTimeout, t.T("time is up; the run is paused. Go on with: regie run --resume %s", id)
	case view.Round.State == regie.RoundWaiting && view.Session.State == regie.SessionWaitingNetwork:
		return exitParked, t.T("the run waits and is tried again by itself while a regie runs. Go on at once with: regie run --resume %s", id)
	case view.Round.State == regie.RoundWaiting && view.Session.State != regie.SessionPaused:
		return exitParked, t.T("the run %s waits; nothing of it is lost", id)
	default:
		return exitParked, t.T("the run is paused. Go on with: regie run --resume %s", id)
	}
	code := exitError
	switch view.Round.End {
	case regie.EndAnswered, regie.EndCompleted:
		if view.Round.EndNote.IsZero() {
			return verdictOfCalls(t, view)
		}
		code = exitLimit // the agent did not complete its work
	case regie.EndDenied:
		code = exitDenied
	case regie.EndLimit, regie.EndEarlyStop, regie.EndWatchdog:
		code = exitLimit
	case regie.EndInterrupted, regie.EndStopped:
		return exitInterrupted, t.T("interrupted; see: regie runs show %s", id)
	}
	return code, t.T("the run ended: %s", t.Sentence(view.Round.EndNote))
}

// verdictOfCalls is the verdict on an answered run, by what became of its calls.
func verdictOfCalls(t *text.Printer, view store.RoundView) (int, string) {
	id := view.Round.ID
	for why, n := range countFailures(view) {
		if n == 0 {
			continue
		}
		switch failure(why) {
		case forbidden:
			return exitDenied, t.T("%d call(s) are forbidden by a rule or a hook and were not run; see: regie runs show %s", n, id)
		case unasked:
			return exitDenied, t.T("%d action(s) needed an approval and were not run; allow them with --allow, see: regie runs show %s", n, id)
		case denied:
			return exitDenied, t.T("%d action(s) were denied and not run; see: regie runs show %s", n, id)
		case expired:
			return exitDenied, t.T("%d action(s) were not run, because nobody answered in time; see: regie runs show %s", n, id)
		default:
			return exitError, t.T("the outcome of %d action(s) is not known; see: regie runs show %s", n, id)
		}
	}
	return exitDone, ""
}

// lastReply is the exchange with the newest reply of a run, nil where none came.
func lastReply(view store.RoundView) (last *store.ExchangeView) {
	for i := range view.Exchanges {
		if reply := view.Exchanges[i].Reply; reply != nil && reply.AI != nil {
			last = &view.Exchanges[i]
		}
	}
	return last
}

// cachedAt is when the model gave the last reply, where that came from the response cache.
func cachedAt(view store.RoundView) time.Time {
	if last := lastReply(view); last != nil {
		return last.Reply.AI.Cached
	}
	return time.Time{}
}

// unreadable returns what the model wrote where its last reply is none in its dialect and the run
// ended with that.
func unreadable(view store.RoundView) (raw string, ok bool) {
	last := lastReply(view)
	if last == nil || view.Round.State != regie.RoundEnded {
		return "", false
	}
	raw, ok = strings.CutPrefix(last.Reply.AI.Text(), regie.InvalidFormat)
	raw = strings.TrimSpace(raw)
	return raw, ok && raw != ""
}

// answer is what the person reads of the reply that ended the round.
func answer(view store.RoundView) string {
	last := lastReply(view)
	if last == nil {
		return ""
	}
	said := last.Reply.AI.Text()
	switch ended := view.Round.End == regie.EndAnswered || view.Round.End == regie.EndCompleted; {
	case strings.HasPrefix(said, regie.InvalidFormat), !ended && len(last.Calls) > 0:
		return ""
	case ended && last.Reply.AI.PostText != "":
		return last.Reply.AI.PostText
	case ended:
		return withSummary(said, last.Calls)
	}
	return said
}

// withSummary adds to the text of the last reply what it completed the run with, unless that is the
// same.
func withSummary(said string, calls []regie.Call) string {
	for i := range calls {
		var arguments struct {
			Summary string `json:"summary"`
		}
		if calls[i].State != regie.CallSucceeded || json.Unmarshal([]byte(calls[i].Arguments), &arguments) != nil {
			continue
		}
		if !strings.Contains(said, strings.TrimSuffix(arguments.Summary, "…")) {
			said = strings.TrimSpace(said + "\n\n" + arguments.Summary)
		}
	}
	return said
}
