package engine

import (
	"context"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/fault"
	"github.com/regie-run/regie/internal/price"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/store"
)

// leastReply is the shortest reply that is worth asking for where a cap leaves little, in tokens
// (decision 29).
const leastReply = 1000

// terms are what a round's model calls cost, and what they may cost: those of the configuration of
// now, so that a round goes on once a cap was raised.
type terms struct {
	price         price.Price
	stated, known bool
	caps          regie.Caps
	ofRound       bool // the cap of the session is that of a run
}

// termsOf returns those of a round; lower are the caps of its workspace's files.
func (e *Engine) termsOf(round regie.Round, kind regie.SessionType, lower regie.Caps) terms {
	var out terms
	if e.cfg.Price != nil {
		out.price, out.stated, out.known = e.cfg.Price(round.Provider, round.Model, round.Pin)
	}
	if e.cfg.Caps != nil {
		out.caps = e.cfg.Caps(round.Agent)
	}
	out.caps = out.caps.Lower(lower)
	if kind == regie.SessionAutomation { // its limits count over the whole session (decision 2)
		all := out.caps.Lower(regie.Caps{Session: out.caps.Round})
		out.ofRound = all.Session != out.caps.Session
		all.Round = 0
		out.caps = all
	}
	return out
}

// money reserves and books what model calls cost, within the caps.
type money struct{ *run }

// modelPrice returns what the round's model costs. One that is free costs nothing, unless the
// configuration says so.
func (m *money) modelPrice() (price.Price, bool) {
	if m.budget.thread.free && !m.targets.terms.stated {
		return price.Price{}, true
	}
	return m.targets.terms.price, m.targets.terms.known
}

// costOf returns what a call cost that is over, with what was reserved for it.
func (m *money) costOf(u regie.Usage) regie.Money {
	out := regie.Money{Reserved: m.exchange.Money.Reserved}
	if p, known := m.modelPrice(); known {
		out.Cost, out.Known = p.Cost(u)
	}
	if out.Reserved > 0 && out.Known {
		out.Overrun = max(0, out.Cost-out.Reserved)
	}
	return out
}

// reservation returns what a call with a prompt of a size in bytes may cost: the estimate plus a
// fifth, and the longest reply. ok is false where the price of such a prompt is unknown.
func (m *money) reservation(size, reply int) (out store.Reservation, tokens int64, ok bool) {
	p, known := m.modelPrice()
	if !known {
		return out, 0, false
	}
	estimate := int64(m.budget.thread.gauge.Tokens(size))
	tokens = estimate + (estimate+4)/5
	out.Caps = m.targets.terms.caps
	reply = max(reply, m.budget.thread.leastOutput) // the codec asks for no less
	if out.Prompt, out.Reply, ok = p.Most(tokens, int64(reply)); !ok {
		return out, tokens, false
	}
	least := min(reply, max(leastReply, m.budget.thread.leastOutput))
	if m.budget.summary != nil { // half a summary is none
		least = reply
	}
	_, out.Least, ok = p.Most(tokens, int64(least))
	return out, tokens, ok
}

// isCapped reports whether calls of this round have to be reserved.
func (m *money) isCapped() bool {
	if m.targets.terms.caps.IsZero() {
		return false
	}
	p, known := m.modelPrice()
	return !known || !p.Free()
}

// nextReservation returns the reservation for the next step, with a prompt that grows by a reply
// and the results of its calls. It is nil where none is needed, or where the step itself has to
// compute it.
func (m *money) nextReservation(reply *regie.Message, calls []regie.Call) *store.Reservation {
	const around = 200 // the keys around a turn or a result
	if !m.isCapped() || m.budget.thread.conversation == nil || m.budget.summary != nil {
		return nil
	}
	size := m.budget.thread.size + 2*around
	if reply != nil && reply.AI != nil {
		size += len(reply.AI.Text())
	}
	for i := range calls {
		size += 2*around + len(calls[i].Arguments) + len(calls[i].Result)
		if e := calls[i].Error; e != nil {
			size += len(e.Message) + len(e.Hint)
		}
	}
	out, _, ok := m.reservation(size, m.budget.maxReply())
	if !ok {
		return nil
	}
	return &out
}

// refusal is why money keeps a model call from being made: a cap, or a price that is not known.
type refusal struct {
	over    *store.OverCap
	wants   store.Reservation
	unknown *provider.Error
}

// reserveCall reserves what the next call may cost, before it is made (decision 29). Mostly the end
// of the previous step has done so; this covers the first call of a round, a retry, and a prompt
// that has grown otherwise. It returns why the call may not be made, or nil.
func (m *money) reserveCall(ctx context.Context) (*refusal, error) {
	if !m.isCapped() {
		return nil, nil
	}
	size, most := m.budget.thread.size, m.budget.maxReply()
	if m.budget.summary != nil {
		size = m.budget.summary.size
	}
	wants, tokens, ok := m.reservation(size, most)
	if !ok {
		err := PriceUnknown(m.round.Provider, m.round.Model)
		return &refusal{unknown: &provider.Error{Code: regie.CodePriceUnknown, Message: err.Error(), Err: err}}, nil
	}
	if m.exchange.Money.Reserved < wants.Prompt+wants.Reply {
		fault.Point(fault.ReserveBefore)
		granted, err := m.cfg.Store.Reserve(m.commit, m.fence, m.exchange.Number, wants)
		if err != nil {
			return nil, err
		}
		fault.Point(fault.ReserveAfter)
		m.exchange.Money.Reserved = granted.Reserved
		if granted.Refused != nil {
			return &refusal{over: granted.Refused, wants: wants}, nil
		}
	}
	p, _ := m.modelPrice()
	afford := int(p.Reply(m.exchange.Money.Reserved-wants.Prompt, tokens, int64(most)))
	if afford >= most {
		afford = 0
	}
	if m.budget.summary != nil || afford == m.budget.afford {
		return nil, nil
	}
	return nil, m.shortenReply(ctx, afford)
}

// shortenReply has the next request ask for a reply of so many tokens at most, or, for 0, as long
// as ever: its conversation is begun anew.
func (m *money) shortenReply(ctx context.Context, afford int) error {
	before := m.budget.thread.contextSize
	m.budget.afford, m.budget.known, m.budget.thread.conversation = afford, nil, nil
	if err := m.budget.openThread(ctx); err != nil {
		return err
	}
	t := &m.budget.thread
	t.most, t.refusals, t.refusal, t.compactions, t.gaveUp, t.good = before.most, before.refusals, before.refusal,
		before.compactions, before.gaveUp, before.good
	t.conversation.EndWith(m.budget.requestTail())
	t.request, t.size = t.conversation.Request()
	return nil
}

// PriceUnknown is the error for a model with an unknown price where a budget applies (decision 29).
func PriceUnknown(provider, model string) error {
	return regie.Errorf(regie.CodePriceUnknown,
		"a budget is set, but the price of the model %s of %s is unknown: set providers.%s.prices in regie.yaml, or remove the budget", model, provider, provider)
}

// endOverCap ends a round if its next call could exceed a cap. Nothing is lost: a chat continues
// with the next message, and an unattended run is paused until it is resumed (decision 44).
func (r *run) endOverCap(over store.OverCap, wants store.Reservation) error {
	limit := capSentence(over)
	why := []regie.Sentence{
		regie.SayOf("The run stopped because %s does not allow its next step.", limit),
		regie.Say("$%s of it is spent or reserved, and the step could cost up to $%s.", regie.Dollars(over.Used),
			regie.Dollars(wants.Prompt+wants.Least)),
	}
	if r.isAutomation() {
		return r.money.pauseForBudget(append(why, r.money.capAdvice(over.Scope)))
	}
	said := append(append(why, r.describeWork(nil)...), r.money.capAdvice(over.Scope))
	end := r.endRound(r.round.Counters, regie.EndLimit, regie.SayOf("%s does not allow the next step", limit))
	out, err := r.cfg.Store.FailAttempt(r.commit, r.fence, store.Failure{
		Attempt: r.call.newAttempt(regie.CodeOverBudget, "not sent: "+limit.String()+" does not allow it"),
		Message: r.noticeMessage(regie.SystemLimitReached, said...), Advance: &end,
	})
	return r.advance(out, err, end)
}

// pauseForBudget pauses the round until a person resumes it.
func (m *money) pauseForBudget(why []regie.Sentence) error {
	notice := regie.Notice{
		RoundID: m.round.ID, Kind: regie.NoticeBudget, Since: time.Now().UTC(),
		Text: why[0].String(), Said: why,
	}
	if err := m.cfg.Store.Halt(m.commit, m.fence, store.Halt{Notice: notice}); err != nil {
		return err
	}
	m.round.Stop, m.parked = regie.StopPause, true
	return nil
}

// capAdvice says what a person can do about a cap.
func (m *money) capAdvice(scope regie.CapScope) regie.Sentence {
	key := scope.Key()
	if scope == regie.CapSession && m.targets.terms.ofRound {
		key = regie.CapRound.Key()
	}
	if m.isAutomation() {
		return regie.Say("Raise %s in regie.yaml and resume the run.", key)
	}
	return regie.Say("Raise %s in regie.yaml and write again to go on.", key)
}

// capSentence names a cap.
func capSentence(over store.OverCap) regie.Sentence {
	amount := regie.Dollars(over.Cap)
	switch over.Scope {
	case regie.CapRound:
		return regie.Say("the budget of $%s for one run", amount)
	case regie.CapSession:
		return regie.Say("the budget of $%s for one session", amount)
	case regie.CapWorkspace:
		return regie.Say("the budget of $%s a day for this workspace", amount)
	case regie.CapWidget:
		return regie.Say("the budget of $%s a day for this widget", amount)
	default:
		return regie.Say("the budget of $%s a day", amount)
	}
}
