package engine

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dialect"
	"github.com/regie-run/regie/internal/fault"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/store"
)

// modelCall is the open model call: its attempts and what people saw of its reply.
type modelCall struct {
	*run
	question  provider.Question // what was asked last, for the response cache; zero where it is not asked
	streamed  partial           // what people saw of the reply
	sent      bool              // the call was sent, and nothing of it is stored
	estimated regie.Usage       // what the call used, where it brought no reply
	due       bool              // the call has waited for its moment: the provider's breaker lets it be tried
	outage    *regie.Outage     // of the current exchange's network
}

// sendAttempt makes one attempt.
func (c *modelCall) sendAttempt(ctx context.Context) (*provider.Reply, time.Duration, error) {
	fault.Point(fault.ModelBefore)
	conversation, size := c.budget.thread.conversation, c.budget.thread.size
	if c.budget.summary != nil {
		conversation, size = c.budget.summary.conversation, c.budget.summary.size
	}
	var text dialect.Stream
	c.streamed.text.Reset()
	silence := c.watchSilence()
	defer silence.Stop()
	seen := 0
	sink := func(d provider.Delta) {
		c.reportModel()
		if !silence.Reset(c.cfg.SilentAfter) && c.cfg.Delta != nil { // people were told of a silence, and it is over
			c.cfg.Delta(c.session.ID, c.round.ID, c.exchange.Number, provider.Delta{})
		}
		seen += len(d.Text) + len(d.Thinking)
		if d == (provider.Delta{}) { // the model writes a call
			return
		}
		fault.Point(fault.ModelMid)
		if c.json != nil { // people read the text of the object, as it comes
			d.Text = text.Add(d.Text)
		}
		if c.budget.summary == nil {
			c.streamed.add(d.Text)
		}
		// a summary is not shown
		if c.cfg.Delta != nil && c.budget.summary == nil && (d.Text != "" || d.Thinking != "") {
			c.cfg.Delta(c.session.ID, c.round.ID, c.exchange.Number, d)
		}
	}
	c.reportModel()
	started := time.Now()
	reply, err := c.sendOrCached(ctx, conversation, sink)
	took := time.Since(started)
	if err == nil {
		fault.Point(fault.ModelAfter)
		reply.Usage = c.budget.countUsage(reply, size)
		return reply, took, nil
	}
	c.estimateUsage(err, size, seen)
	return nil, took, err
}

// estimateUsage sets what a call without a reply used (decision 72): the vendor's count as far as
// it can be true, else the prompt by its size in bytes and the reply by the bytes that came. seen
// is the size of its text and thinking.
func (c *modelCall) estimateUsage(err error, size, seen int) {
	c.estimated = regie.Usage{}
	var claimed regie.Usage
	failed, isFailure := errors.AsType[*provider.Error](err)
	cut, isCut := errors.AsType[*provider.Cut](err)
	switch {
	case isFailure && failed.Unbilled():
		return
	case isFailure:
		claimed, seen = failed.Usage, max(seen, failed.Received, len(failed.Partial))
	case isCut && cut.Unsent:
		c.sent = false
	case isCut:
		claimed, seen = cut.Usage, max(seen, cut.Received)
	}
	if !c.sent {
		return
	}
	c.estimated = c.budget.thread.gauge.Counted(claimed, size, seen, c.maxOutput(), c.budget.openReplyLimit())
	if isFailure {
		failed.Usage = c.estimated
	}
}

// watchSilence returns a timer that reports a silent model to a chat (decision 74). It runs
// concurrently with the round, so it copies what it needs.
func (c *modelCall) watchSilence() *time.Timer {
	session, round, exchange, tells := c.session.ID, c.round.ID, c.exchange.Number,
		c.cfg.Progress != nil && !c.isAutomation()
	return time.AfterFunc(c.cfg.SilentAfter, func() {
		if tells {
			c.cfg.Progress(session, round, exchange, Progress{Silent: c.cfg.SilentAfter})
		}
	})
}

// maxTries returns the tries of a model call after such a failure. A waiting person does not wait
// for a silent model three times (decision 74).
func (c *modelCall) maxTries(failed *provider.Error) int {
	if failed.Code == regie.CodeTimeout && !c.isAutomation() {
		return min(c.cfg.Attempts, 2)
	}
	return c.cfg.Attempts
}

// replyBytes returns how much a model wrote.
func replyBytes(parts []provider.Part) (n int) {
	for i := range parts {
		n += len(parts[i].Text)
		if call := parts[i].Call; call != nil {
			n += len(call.Name) + len(call.Arguments)
		}
	}
	return n
}

// cut is the reason that ended a model call in the middle on a working connection.
type cut struct {
	code regie.Code
	why  string
}

var (
	byPause    = cut{regie.CodeStopRequested, "the run was paused while the model was being asked"}
	byShutdown = cut{regie.CodeEngineGone, "Regie was stopped while it was asking the model"}
	byDeath    = cut{
		regie.CodeEngineGone,
		"the process that was asking the model ended without a word: it was killed, or it crashed",
	}
)

// maybeSent reports whether a model call that is open may have been sent: by this process, or by a
// dead one.
func (c *modelCall) maybeSent() bool { return c.sent || c.resumed && !c.isCommand() }

// bookOpenCall books a model call that was cut, before the round is given back: by what has it
// given back, or by the death of who sent it. Its price may be due.
func (c *modelCall) bookOpenCall(by cut) error {
	if c.round.Phase != regie.PhaseModel || !c.maybeSent() {
		return nil
	}
	if !c.sent {
		by = byDeath
	}
	return c.bookLostCall(by)
}

// bookLostCall books a model call that was cut, or that a dead process may have sent: its outcome
// will never be known, its price may be due (decisions 25 and 28).
func (c *modelCall) bookLostCall(by cut) error {
	_, err := c.cfg.Store.FailAttempt(c.commit, c.fence, store.Failure{
		Attempt: c.newAttempt(by.code, by.why), Retry: c.targets.reopen(c.targets.at),
	})
	if err == nil {
		c.exchange.Attempt++
		c.exchange.Money, c.resumed, c.sent = regie.Money{}, false, false
	}
	return err
}

func (c *modelCall) newAttempt(code regie.Code, message string) regie.Attempt {
	a := regie.Attempt{
		RoundID: c.round.ID, Exchange: c.exchange.Number, Number: c.exchange.Attempt,
		Purpose: c.exchange.Purpose, Code: code, Error: message,
		Money: c.costUnanswered(),
	}
	if c.sent { // what a dead process may have sent nobody knows
		a.FirstSeq, a.LastSeq, a.Request, a.Head = c.budget.lastRequest()
		a.Usage = c.estimated
	}
	return a
}

func (c *modelCall) failedAttempt(failed *provider.Error, took time.Duration) regie.Attempt {
	a := c.newAttempt(failed.Code, failed.Message)
	a.Status, a.Partial, a.ModelUS = failed.Status, failed.Partial, took.Microseconds()
	return a
}

func (c *modelCall) storeRetry(failed *provider.Error, took, wait time.Duration) error {
	_, err := c.cfg.Store.FailAttempt(c.commit, c.fence, store.Failure{
		Attempt: c.failedAttempt(failed, took), Retry: c.targets.reopen(c.targets.at), Delay: wait,
	})
	if err == nil {
		c.countAttempt(failed)
	}
	return err
}

// countAttempt brings the run in line with an attempt that was stored as failed.
func (c *modelCall) countAttempt(failed *provider.Error) {
	c.exchange.Attempt++
	c.exchange.Money, c.sent = regie.Money{}, false
	c.round.Tokens += failed.Usage.Input + failed.Usage.Output
	c.used = c.round.Tokens
}

// costUnanswered returns the cost of a call without a reply: zero if it was not sent or was
// refused, the estimate if this process sent it. The cost of a dead process's call is unknown: its
// reservation may be due.
func (c *modelCall) costUnanswered() regie.Money {
	p, known := c.money.modelPrice()
	switch {
	case known && p.Free(), !c.sent && !c.resumed, c.sent && c.estimated == regie.Usage{}:
		return regie.Money{Reserved: c.exchange.Money.Reserved, Known: true}
	case c.sent:
		return c.money.costOf(c.estimated)
	default:
		return regie.Money{Reserved: c.exchange.Money.Reserved}
	}
}

// reportReply tells a stored reply.
func (c *modelCall) reportReply(e *regie.Exchange, hit bool) {
	if c.cfg.Replied == nil {
		return
	}
	out := Replied{Provider: e.Provider, Model: e.Model, Usage: e.Usage, Money: e.Money}
	switch {
	case c.budget.summary != nil || c.question.Key.IsZero():
	case hit:
		out.Cache = "hit"
	default:
		out.Cache = "miss"
	}
	c.cfg.Replied(out)
}

// Replied is a stored reply, for who counts.
type Replied struct {
	Provider, Model string
	Usage           regie.Usage
	Money           regie.Money
	// Cache is "hit" or "miss" where the response cache was asked, and empty where it was not.
	Cache string
}

// backoff doubles from 500 ms, with jitter, and honours the vendor's own wish (spec 3.6): one over
// longWish ends the step's tries.
func backoff(try int, wish time.Duration) time.Duration {
	base := 500 * time.Millisecond << min(try-2, 6)
	return max(base/2+rand.N(base), wish)
}

// ignoreCut is an error of a step that may only say that its context ended; the loop sees why.
func ignoreCut(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil //nolint:nilerr // see above
	}
	return err
}

// maxStreamed bounds what is kept of a reply that is cut off, in bytes.
const maxStreamed = 64 << 10

// partial is the beginning of a reply as people saw it, in a text that every store takes.
type partial struct {
	text strings.Builder // as it came: a character may come in two pieces
}

// add takes the next piece, or what fits of it.
func (p *partial) add(s string) { p.text.WriteString(s[:min(len(s), maxStreamed-p.text.Len())]) }

// String is what is stored.
func (p *partial) String() string {
	text := sanitizeText(p.text.String())
	if p.text.Len() < maxStreamed {
		return text
	}
	return strings.ToValidUTF8(text[:min(len(text), maxStreamed)], "") + "…"
}

// sanitizeText makes text that every store takes: valid UTF-8 without NUL.
func sanitizeText(s string) string {
	return strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", "\uFFFD"), "\uFFFD")
}
