package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/plain"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/text"
)

// awaited is one thing that a parked run waits for, as the result line of --json tells it.
type awaited struct {
	Kind    string        `json:"kind"` // approval or question
	ID      regie.ID      `json:"id"`
	Command string        `json:"command"`
	Calls   []awaitedCall `json:"calls,omitempty"`
	Text    string        `json:"text,omitempty"`
	Options []string      `json:"options,omitempty"`
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
	code, why := verdict(w.text, view, w.timedOut)
	if w.json {
		line, err := json.Marshal(struct {
			Type    string         `json:"type"`
			RoundID regie.ID       `json:"round_id"`
			State   string         `json:"state"`
			End     regie.RoundEnd `json:"end_reason,omitempty"`
			Waiting []awaited      `json:"waiting,omitempty"`
			Answer  string         `json:"answer"`
			Exit    int            `json:"exit_code"`
		}{"result", w.round, string(view.Round.State), view.Round.End, w.awaited(inbox), answer(view), code})
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(w.stdout, "%s\n", line)
	} else if text := answer(view); text != "" {
		fmt.Fprintln(w.stdout, plain.Strip(text))
	}
	for _, waits := range w.awaited(inbox) {
		for _, line := range waits.lines(w.text) {
			w.note(line)
		}
	}
	if why != "" {
		w.note(why)
	}
	if code == exitDone {
		return nil, nil
	}
	return exit{code}, nil
}

// awaited lists what a run waits for, with the command that answers each.
func (c *command) awaited(inbox store.Inbox) []awaited {
	var out []awaited
	for i := range inbox.Approvals {
		a := &inbox.Approvals[i]
		waits := awaited{Kind: "approval", ID: a.ID, Command: c.again("approve", chat.Short(a.ID))}
		for n := range a.Reviews {
			if review := &a.Reviews[n]; review.Decision == nil {
				waits.Calls = append(waits.Calls, awaitedCall{n + 1, review.CallID, review.Tool, plain.Line(c.text.Sentence(review.Preview.Sentence))})
			}
		}
		out = append(out, waits)
	}
	for i := range inbox.Questions {
		q := &inbox.Questions[i]
		out = append(out, awaited{
			Kind: "question", ID: q.ID, Command: c.again("answer", chat.Short(q.ID)), Text: plain.Visible(q.Module.Text), Options: q.Module.Options,
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
		out = append(out, t.T("  approve with: %s", a.Command), t.T("  see the diffs: regie approvals show %s", chat.Short(a.ID)))
	default:
		out = append(out, t.T("waiting for an answer, %s:", chat.Short(a.ID)), "     "+strings.ReplaceAll(a.Text, "\n", "\n     "))
		for i, option := range a.Options {
			out = append(out, fmt.Sprintf("%3d  %s", i+1, plain.Line(option)))
		}
		out = append(out, t.T("  answer with: %s --choice 1, --yes, --no or a text", a.Command))
	}
	return out
}

// again is a command line with the settings that this one was given by flags: without them it would find another store or model.
func (c *command) again(words ...string) string {
	line := append([]string{"regie"}, words...)
	for _, flag := range []struct{ name, value string }{
		{"--data-dir", c.flags.DataDir},
		{"--provider", c.flags.Provider},
		{"--base-url", c.flags.BaseURL},
		{"--model", c.flags.Model},
		{"--replay", c.flags.Replay},
		{"--record", c.flags.Record},
	} {
		if flag.value != "" && (flag.name != "--provider" || flag.value != config.ProviderDemo) { // the demo goes on without a word
			line = append(line, flag.name, quoted(flag.value))
		}
	}
	return strings.Join(line, " ")
}

// quoted is a word for a shell.
func quoted(word string) string {
	if strings.Trim(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=:,./@%") == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// refusals counts the calls of a run that were not run: because nobody could be asked, because a person said no, because nobody
// answered in time; and those of which nobody knows whether they happened.
type refusals struct{ forbidden, denied, expired, unknown int }

func refused(view store.RoundView) (r refusals) {
	for _, exchange := range view.Exchanges {
		for i := range exchange.Calls {
			call := &exchange.Calls[i]
			switch {
			case call.NotRun == regie.NotRunDenied && call.Error != nil && call.Error.Code == regie.CodeUserRejected:
				r.denied++
			case call.NotRun == regie.NotRunDenied:
				r.forbidden++
			case call.NotRun == regie.NotRunExpired:
				r.expired++
			case call.State == regie.CallUnknown:
				r.unknown++
			}
		}
	}
	return r
}

// verdict is the exit code of spec 10.1, and what is said about it.
func verdict(t *text.Printer, view store.RoundView, timedOut bool) (int, string) {
	id := view.Round.ID
	switch {
	case view.Round.State == regie.RoundEnded:
	case timedOut:
		return exitTimeout, t.T("time is up; the run is paused. Go on with: regie run --resume %s", id)
	case view.Round.State == regie.RoundWaiting && view.Session.State != regie.SessionPaused:
		return exitParked, t.T("the run %s waits; nothing of it is lost", id)
	default:
		return exitParked, t.T("the run is paused. Go on with: regie run --resume %s", id)
	}
	switch view.Round.End {
	case regie.EndAnswered, regie.EndCompleted:
		switch r := refused(view); {
		case r.forbidden > 0:
			return exitDenied, t.T("%d action(s) needed an approval and were not run; allow them with --allow, see: regie runs show %s", r.forbidden, id)
		case r.denied > 0:
			return exitDenied, t.T("%d action(s) were denied and not run; see: regie runs show %s", r.denied, id)
		case r.expired > 0:
			return exitDenied, t.T("%d action(s) were not run, because nobody answered in time; see: regie runs show %s", r.expired, id)
		case r.unknown > 0:
			return exitError, t.T("the outcome of %d action(s) is not known; see: regie runs show %s", r.unknown, id)
		}
		return exitDone, ""
	case regie.EndDenied:
		return exitDenied, t.T("the run ended: %s", view.Round.EndNote)
	case regie.EndLimit, regie.EndEarlyStop:
		return exitLimit, t.T("the run ended: %s", view.Round.EndNote)
	case regie.EndInterrupted, regie.EndStopped:
		return exitInterrupted, t.T("interrupted; see: regie runs show %s", id)
	default:
		return exitError, t.T("the run ended: %s", view.Round.EndNote)
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
