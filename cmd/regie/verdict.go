package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/dispatch"
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
			"result", w.round, string(view.Round.State), view.Round.End, w.awaited(inbox), answer(view),
			view.Spent, cachedAt(view), code,
		})
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(w.stdout, "%s\n", line)
	} else if text := answer(view); text != "" {
		fmt.Fprintln(w.stdout, plain.Strip(text))
	} else if raw, ok := unreadable(view); ok { // the person still sees it (spec 2.2)
		w.note(w.text.T("the model's last reply cannot be read; this is what it wrote:"))
		fmt.Fprintln(w.stdout, plain.Strip(raw))
	}
	if !w.json && isTerminal(w.stdout) {
		// A person has read it. That it could not be stored changes nothing of how the run went.
		_ = w.control.MarkRead(context.WithoutCancel(ctx), dispatch.ReadRequest{SessionID: w.session, Seq: view.Head})
	}
	for _, waits := range w.awaited(inbox) {
		for _, line := range waits.lines(w.text) {
			w.note(line)
		}
	}
	if why != "" {
		w.note(why)
	}
	if chat.Paid(view.Spent) {
		paid := chat.Cost(w.text, view.Spent)
		if estimated(view) {
			paid += w.text.T(" (estimated)")
		}
		w.note(paid)
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
				waits.Calls = append(waits.Calls, awaitedCall{
					n + 1, review.CallID, review.Tool,
					plain.Line(c.text.Sentence(review.Preview.Sentence)),
				})
			}
		}
		out = append(out, waits)
	}
	for i := range inbox.Questions {
		q := &inbox.Questions[i]
		out = append(out, awaited{
			Kind: "question", ID: q.ID, Command: c.again("answer", chat.Short(q.ID)),
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

// again is a command line with the settings that this one was given by flags: without them it would
// find another store or model.
func (c *command) again(words ...string) string {
	line := append(append([]string{"regie"}, words...), c.where(true)...)
	return strings.Join(append(line, written([]calledWith{
		{"--provider", c.flags.Provider},
		{"--base-url", c.flags.BaseURL},
		{"--model", c.flags.Model},
		{"--replay", c.flags.Replay},
		{"--record", c.flags.Record},
		{"--record-raw", c.flags.RecordRaw},
	})...), " ")
}

// calledWith is a flag of this call.
type calledWith struct{ name, value string }

// where are the flags that say what is asked: an engine, a server, a workspace of it. A command of
// this machine knows no server.
func (c *command) where(everywhere bool) []string {
	flags := []calledWith{
		{"--data-dir", c.flags.DataDir},
		{"--database", withoutPassword(c.flags.Database)},
		{"--config", c.flags.Config},
	}
	if everywhere {
		flags = append(flags, calledWith{"--server", c.flags.Server}, calledWith{"--workspace", c.flags.Workspace})
	}
	return written(flags)
}

// hinted has the commands that are named on the screen ask what this one asks.
func (c *command) hinted() { c.text.Called(c.where(true), c.where(false)) }

// written are the flags that were given, as a shell reads them.
func written(flags []calledWith) (out []string) {
	for _, flag := range flags {
		// the demo goes on without a word
		if flag.value != "" && (flag.name != "--provider" || flag.value != config.ProviderDemo) {
			out = append(out, flag.name, quoted(flag.value))
		}
	}
	return out
}

// quoted is a word for a shell.
func quoted(word string) string {
	if strings.Trim(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=:,./@%") == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// refusals counts the calls of a run that were not run: because a rule or a hook forbids them,
// because nobody could be asked, because a person said no, because nobody answered in time; and
// those of which nobody knows whether they happened.
type refusals struct{ forbidden, unasked, denied, expired, unknown int }

func refused(view store.RoundView) (r refusals) {
	for _, exchange := range view.Exchanges {
		for i := range exchange.Calls {
			call := &exchange.Calls[i]
			switch {
			case call.NotRun == regie.NotRunDenied && call.Error != nil && call.Error.Code == regie.CodeUserRejected:
				r.denied++
			case call.NotRun == regie.NotRunDenied && call.Error != nil && call.Error.Code == regie.CodeForbidden:
				r.forbidden++
			case call.NotRun == regie.NotRunDenied:
				r.unasked++
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
	case view.Round.State == regie.RoundWaiting && view.Session.State == regie.SessionWaitingNetwork:
		return exitParked,
			t.T(
				"the run waits and is tried again by itself while a regie runs. Go on at once with: regie run --resume %s", id)
	case view.Round.State == regie.RoundWaiting && view.Session.State != regie.SessionPaused:
		return exitParked, t.T("the run %s waits; nothing of it is lost", id)
	default:
		return exitParked, t.T("the run is paused. Go on with: regie run --resume %s", id)
	}
	switch view.Round.End {
	case regie.EndAnswered, regie.EndCompleted:
		if !view.Round.EndNote.IsZero() { // nobody said that the work is done
			return exitLimit, t.T("the run ended: %s", t.Sentence(view.Round.EndNote))
		}
		switch r := refused(view); {
		case r.forbidden > 0:
			return exitDenied,
				t.T("%d call(s) are forbidden by a rule or a hook and were not run; see: regie runs show %s",
					r.forbidden, id)
		case r.unasked > 0:
			return exitDenied,
				t.T(
					"%d action(s) needed an approval and were not run; allow them with --allow, see: regie runs show %s", r.unasked, id)
		case r.denied > 0:
			return exitDenied, t.T("%d action(s) were denied and not run; see: regie runs show %s", r.denied, id)
		case r.expired > 0:
			return exitDenied,
				t.T("%d action(s) were not run, because nobody answered in time; see: regie runs show %s", r.expired,
					id)
		case r.unknown > 0:
			return exitError, t.T("the outcome of %d action(s) is not known; see: regie runs show %s", r.unknown, id)
		}
		return exitDone, ""
	case regie.EndDenied:
		return exitDenied, t.T("the run ended: %s", t.Sentence(view.Round.EndNote))
	case regie.EndLimit, regie.EndEarlyStop, regie.EndWatchdog:
		return exitLimit, t.T("the run ended: %s", t.Sentence(view.Round.EndNote))
	case regie.EndInterrupted, regie.EndStopped:
		return exitInterrupted, t.T("interrupted; see: regie runs show %s", id)
	default:
		return exitError, t.T("the run ended: %s", t.Sentence(view.Round.EndNote))
	}
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
