package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/i18n"
	"github.com/regie-run/regie/internal/sanitize"
	"github.com/regie-run/regie/internal/store"
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

// showResult shows the answer or the open requests, and says how the run went.
func (w *follower) showResult(ctx context.Context) error {
	if err := w.awaitSettled(ctx); err != nil {
		return err
	}
	view, err := w.control.Get(ctx, w.round)
	if err != nil {
		return err
	}
	var inbox store.Inbox
	if view.Round.State == regie.RoundWaiting {
		if inbox, err = w.control.Inbox(ctx, store.InboxFilter{SessionID: w.session}); err != nil {
			return err
		}
	}
	waiting := awaitedOf(w.environment, inbox)
	code, why := exitVerdict(w.text, view, w.timedOut)
	text, readable := finalAnswer(view)
	var cached time.Time
	if last := lastReply(view); last != nil {
		cached = last.Reply.AI.Cached
	}
	if w.json {
		if !readable {
			text = ""
		}
		err := json.NewEncoder(w.stdout).Encode(struct {
			Type    string         `json:"type"`
			RoundID regie.ID       `json:"round_id"`
			State   string         `json:"state"`
			End     regie.RoundEnd `json:"end_reason,omitempty"`
			Waiting []awaited      `json:"waiting,omitempty"`
			Answer  string         `json:"answer"`
			Spent   regie.Spending `json:"spent"`
			Cached  time.Time      `json:"cached,omitzero"` // when the model gave an answer of the response cache
			Exit    int            `json:"exit_code"`
		}{
			"result", w.round, string(view.Round.State), view.Round.End, waiting, text,
			view.Spent, cached, code,
		})
		if err != nil {
			return err
		}
	} else if text != "" {
		if !readable { // the person still sees it (spec 2.2)
			w.showLines(w.T("the model's last reply cannot be read; this is what it wrote:"))
		}
		fmt.Fprintln(w.stdout, sanitize.Strip(text))
	}
	if !w.json && isTerminal(w.stdout) {
		// A person has read it. That it could not be stored changes nothing of how the run went.
		_ = w.control.MarkRead(context.WithoutCancel(ctx), dispatch.ReadRequest{SessionID: w.session, Seq: view.Head})
	}
	for i := range waiting {
		w.showLines(waiting[i].describeLines(w.text)...)
	}
	if why != "" {
		w.showLines(why)
	}
	if chat.Paid(view.Spent) {
		paid := chat.Cost(w.text, view.Spent)
		if usageOf(runView{RoundView: view}).Estimated {
			paid += w.T(" (estimated)")
		}
		w.showLines(paid)
	}
	if code == exitDone {
		return nil
	}
	return exit{code}
}

// awaitedOf lists the open requests of a run, each with the command that answers it.
func awaitedOf(env *environment, inbox store.Inbox) []awaited {
	var out []awaited
	for i := range inbox.Approvals {
		a := &inbox.Approvals[i]
		waits := awaited{Kind: "approval", ID: a.ID, Command: env.sameCommand("approve", chat.Short(a.ID))}
		for n := range a.Reviews {
			if review := &a.Reviews[n]; review.Decision == nil {
				waits.Calls = append(waits.Calls, awaitedCall{
					n + 1, review.CallID, review.Tool,
					sanitize.Line(env.text.Sentence(review.Preview.Sentence)),
				})
			}
		}
		out = append(out, waits)
	}
	for i := range inbox.Questions {
		q := &inbox.Questions[i]
		out = append(out, awaited{
			Kind: "question", ID: q.ID, Command: env.sameCommand("answer", chat.Short(q.ID)),
			Text: sanitize.Visible(q.Module.Text), Options: q.Module.Options,
			module: &q.Module,
		})
	}
	return out
}

// describeLines describes the open request.
func (a *awaited) describeLines(t *i18n.Printer) []string {
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
			out = append(out, fmt.Sprintf("%3d  %s", i+1, sanitize.Line(option)))
		}
		out = append(out, t.T("  answer with: %s", a.Command+" "+chat.AnswerWith(t, a.module)))
	}
	return out
}

// exitVerdict returns the exit code of spec 10.1, and the reason in words.
func exitVerdict(t *i18n.Printer, view store.RoundView, timedOut bool) (int, string) {
	id := view.Round.ID
	switch {
	case view.Round.State == regie.RoundEnded:
	case timedOut:
		return exitTimeout, t.T("time is up; the run is paused. Continue with: regie run --resume %s", id)
	case view.Round.State == regie.RoundWaiting && view.Session.State == regie.SessionWaitingNetwork:
		return exitParked, t.T("the run waits and is retried automatically while a regie process runs. Continue now with: regie run --resume %s", id)
	case view.Round.State == regie.RoundWaiting && view.Session.State != regie.SessionPaused:
		return exitParked, t.T("the run %s waits; nothing is lost", id)
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

// verdictOfCalls returns the verdict on an answered run, by what became of its calls: the first
// reason in this order decides.
func verdictOfCalls(t *i18n.Printer, view store.RoundView) (int, string) {
	id, n := view.Round.ID, 0
	has := func(is func(*regie.Call) bool) bool {
		n = countCalls(view, is)
		return n > 0
	}
	switch {
	case has(notRun(regie.CodeForbidden)):
		return exitDenied, t.T("%d call(s) are forbidden by a rule or a hook and were not run; see: regie runs show %s", n, id)
	case has(notRun(regie.CodeUserRejected)):
		return exitDenied, t.T("%d action(s) were denied and not run; see: regie runs show %s", n, id)
	case has(func(c *regie.Call) bool { return c.NotRun == regie.NotRunDenied }):
		return exitDenied, t.T("%d action(s) needed an approval and were not run; allow them with --allow, see: regie runs show %s", n, id)
	case has(func(c *regie.Call) bool { return c.NotRun == regie.NotRunExpired }):
		return exitDenied, t.T("%d action(s) were not run, because nobody answered in time; see: regie runs show %s", n, id)
	case has(func(c *regie.Call) bool { return c.State == regie.CallUnknown }):
		return exitError, t.T("the outcome of %d action(s) is not known; see: regie runs show %s", n, id)
	}
	return exitDone, ""
}

// notRun tells calls that were not run for a reason.
func notRun(code regie.Code) func(*regie.Call) bool {
	return func(c *regie.Call) bool {
		return c.NotRun == regie.NotRunDenied && c.Error != nil && c.Error.Code == code
	}
}

func countCalls(view store.RoundView, is func(*regie.Call) bool) (n int) {
	for i := range view.Exchanges {
		for j := range view.Exchanges[i].Calls {
			if is(&view.Exchanges[i].Calls[j]) {
				n++
			}
		}
	}
	return n
}

// lastReply returns the exchange with the newest reply of a run, nil where none came.
func lastReply(view store.RoundView) (last *store.ExchangeView) {
	for i := range view.Exchanges {
		if reply := view.Exchanges[i].Reply; reply != nil && reply.AI != nil {
			last = &view.Exchanges[i]
		}
	}
	return last
}

// finalAnswer returns the text of the reply that ended the round; readable is false for a reply
// that breaks its dialect.
func finalAnswer(view store.RoundView) (text string, readable bool) {
	last := lastReply(view)
	if last == nil {
		return "", true
	}
	said := last.Reply.AI.Text()
	ended := view.Round.End == regie.EndAnswered || view.Round.End == regie.EndCompleted
	switch raw, odd := strings.CutPrefix(said, regie.InvalidFormat); {
	case odd && view.Round.State == regie.RoundEnded:
		return strings.TrimSpace(raw), false
	case odd, !ended && len(last.Calls) > 0:
		return "", true
	case ended && last.Reply.AI.PostText != "":
		return last.Reply.AI.PostText, true
	case ended:
		return withSummary(said, last.Calls), true
	}
	return said, true
}

// withSummary appends the summary that completed the run to the text of the last reply, unless the
// text contains it.
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
