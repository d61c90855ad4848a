package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/plain"
	"github.com/regie-run/regie/internal/store"
)

// follower watches one round until it ends or is paused, and shows what happens.
type follower struct {
	*command
	control *app.Conn
	json    bool
	round   regie.ID
	session regie.ID
	// paused and ended are set by the events of the log.
	paused, ended bool
	tools         map[regie.ID]string
}

// follow starts or resumes a round and follows it. The returned exit says how it went.
func (c *command) follow(ctx context.Context, control *app.Conn, f runFlags, request dispatch.RunRequest, signals <-chan os.Signal) (outcome, err error) {
	w := &follower{command: c, control: control, json: f.json, tools: map[regie.ID]string{}}
	after, err := w.begin(ctx, f, request)
	if err != nil {
		return nil, err
	}
	if w.ended {
		return w.finish(ctx, false)
	}
	var deadline <-chan time.Time
	if !f.deadline.IsZero() {
		timer := time.NewTimer(time.Until(f.deadline))
		defer timer.Stop()
		deadline = timer.C
	}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	seen := make(chan error, 1)
	go func() { seen <- control.Events(watching, w.session, after, w.item) }()
	timedOut := false
	for {
		select {
		case err := <-seen:
			if !errors.Is(err, errStopFollowing) {
				return nil, err
			}
			return w.finish(ctx, timedOut)
		case <-deadline:
			timedOut = true
			if err := control.Pause(ctx, w.round); err != nil {
				return nil, err
			}
		case s := <-signals:
			if s != os.Interrupt { // a plain end: the run stays as it is stored and can be resumed
				fmt.Fprintln(c.stderr, c.text.T("left as it is; go on with: regie run --resume %s", w.round))
				return exit{exitInterrupted}, nil
			}
			fmt.Fprintln(c.stderr, c.text.T("interrupting… (once more to leave at once)"))
			if err := control.Interrupt(ctx, w.round); err != nil {
				return nil, err
			}
		}
	}
}

// begin submits the request, or takes a round up, and returns from where to follow.
func (w *follower) begin(ctx context.Context, f runFlags, request dispatch.RunRequest) (after int64, err error) {
	if f.resume == "" {
		run, err := w.control.Submit(ctx, request)
		if err != nil {
			return 0, err
		}
		w.round, w.session = run.RoundID, run.SessionID
		w.note(w.text.T("run %s in %s", run.RoundID, request.Root))
		return 0, nil
	}
	if w.round, err = regie.ParseID(f.resume); err != nil {
		return 0, err
	}
	view, err := w.control.Get(ctx, w.round)
	if err != nil {
		return 0, err
	}
	w.session = view.Session.ID
	w.ended = view.Round.State == regie.RoundEnded
	if w.ended {
		w.note(w.text.T("run %s has ended already", w.round))
		return view.Head, nil
	}
	w.note(w.text.T("going on with run %s", w.round))
	return view.Head, w.control.Resume(ctx, w.round)
}

func (w *follower) note(line string) {
	fmt.Fprintln(w.stderr, plain.Strip(line))
}

// item shows one event. It returns errStopFollowing at the end of the round.
func (w *follower) item(item dispatch.Item) error {
	if item.Event == nil {
		return nil
	}
	event := item.Event
	if w.json {
		line, err := json.Marshal(event)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w.stdout, "%s\n", line); err != nil {
			return err
		}
	}
	switch event.Type {
	case regie.EventRound:
		var body struct {
			RoundID regie.ID         `json:"round_id"`
			State   regie.RoundState `json:"state"`
		}
		if json.Unmarshal(event.Body, &body) == nil && body.RoundID == w.round && body.State == regie.RoundEnded {
			w.ended = true
			return errStopFollowing
		}
	case regie.EventSessionState:
		var body struct {
			State regie.SessionState `json:"state"`
		}
		if json.Unmarshal(event.Body, &body) == nil && body.State == regie.SessionPaused {
			w.paused = true
			return errStopFollowing
		}
	case regie.EventMessage, regie.EventToolCall, regie.EventToolResult, regie.EventStreamReset:
		w.progress(event)
	}
	return nil
}

// progress shows a step of the run on standard error.
func (w *follower) progress(event *regie.Event) {
	switch event.Type {
	case regie.EventMessage:
		var m regie.Message
		if json.Unmarshal(event.Body, &m) == nil && m.AI != nil && len(m.CallIDs()) > 0 && m.AI.Text() != "" {
			w.note("  " + m.AI.Text())
		}
	case regie.EventToolResult:
		var body struct {
			Tool       string           `json:"tool"`
			State      regie.CallState  `json:"state"`
			Code       regie.NotRunCode `json:"code"`
			Error      regie.Code       `json:"error"`
			Recovered  bool             `json:"recovered"`
			DurationUS int64            `json:"duration_us"`
		}
		if json.Unmarshal(event.Body, &body) != nil {
			return
		}
		mark, why := "✓", ""
		switch {
		case body.State != regie.CallSucceeded && body.Code != "":
			mark, why = "–", " "+string(body.Code)
		case body.State != regie.CallSucceeded:
			mark, why = "✗", " "+string(body.Error)
		case body.Recovered:
			why = " " + w.text.T("(recovered after the crash)")
		}
		w.note(fmt.Sprintf("  %s %s %s%s", mark, body.Tool, milliseconds(body.DurationUS), why))
	case regie.EventStreamReset:
		w.note("  " + w.text.T("the model is asked again"))
	}
}

// finish shows the answer and says how the run went.
func (w *follower) finish(ctx context.Context, timedOut bool) (error, error) {
	view, err := w.settled(ctx)
	if err != nil {
		return nil, err
	}
	code, why := w.verdict(view, timedOut)
	if w.json {
		line, err := json.Marshal(struct {
			Type    string         `json:"type"`
			RoundID regie.ID       `json:"round_id"`
			State   string         `json:"state"`
			End     regie.RoundEnd `json:"end_reason,omitempty"`
			Answer  string         `json:"answer"`
			Exit    int            `json:"exit_code"`
		}{"result", w.round, string(view.Round.State), view.Round.End, answer(view), code})
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(w.stdout, "%s\n", line)
	} else if text := answer(view); text != "" {
		fmt.Fprintln(w.stdout, plain.Strip(text))
	}
	if why != "" {
		w.note(why)
	}
	if code == exitDone {
		return nil, nil
	}
	return exit{code}, nil
}

// settled returns the round as it stands once what was asked of it has been obeyed: an answer that comes with the pause still counts.
func (w *follower) settled(ctx context.Context) (store.RoundView, error) {
	obeyed, stop := context.WithTimeout(ctx, 5*time.Second)
	defer stop()
	_ = w.control.Wait(obeyed, w.round) // why it stopped stands in the round
	return w.control.Get(ctx, w.round)
}

// verdict is the exit code of spec 10.1, and what is said about it.
func (w *follower) verdict(view store.RoundView, timedOut bool) (int, string) {
	denied, unknown := 0, 0
	for _, exchange := range view.Exchanges {
		for i := range exchange.Calls {
			switch {
			case exchange.Calls[i].NotRun == regie.NotRunDenied:
				denied++
			case exchange.Calls[i].State == regie.CallUnknown:
				unknown++
			}
		}
	}
	switch {
	case view.Round.State != regie.RoundEnded && timedOut:
		return exitTimeout, w.text.T("time is up; the run is paused. Go on with: regie run --resume %s", w.round)
	case view.Round.State != regie.RoundEnded:
		return exitParked, w.text.T("the run is paused. Go on with: regie run --resume %s", w.round)
	}
	switch view.Round.End {
	case regie.EndAnswered, regie.EndCompleted:
		switch {
		case denied > 0:
			return exitDenied, w.text.T("%d action(s) needed an approval and were not run; allow them with --allow, see: regie runs show %s", denied, w.round)
		case unknown > 0:
			return exitError, w.text.T("the outcome of %d action(s) is not known; see: regie runs show %s", unknown, w.round)
		}
		return exitDone, ""
	case regie.EndDenied:
		return exitDenied, w.text.T("the run ended: %s", view.Round.EndNote)
	case regie.EndLimit, regie.EndEarlyStop:
		return exitLimit, w.text.T("the run ended: %s", view.Round.EndNote)
	case regie.EndInterrupted, regie.EndStopped:
		return exitInterrupted, w.text.T("interrupted; see: regie runs show %s", w.round)
	default:
		return exitError, w.text.T("the run ended: %s", view.Round.EndNote)
	}
}

// answer is the text of the reply that ended the round.
func answer(view store.RoundView) string {
	for i := len(view.Exchanges) - 1; i >= 0; i-- {
		exchange := &view.Exchanges[i]
		if exchange.Reply != nil && exchange.Reply.AI != nil && len(exchange.Calls) == 0 {
			return exchange.Reply.AI.Text()
		}
	}
	return ""
}
