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
