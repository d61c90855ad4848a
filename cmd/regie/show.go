package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/plain"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/text"
)

// showRun prints a run with every exchange, attempt and call (spec 10.1).
func showRun(w io.Writer, t *text.Printer, view runView) error {
	p := &printer{w: w, text: t}
	r := view.Round
	p.line("%s %s  %s", t.T("run"), r.ID, roundState(r))
	if !r.EndNote.IsZero() {
		p.line("  %s", t.Sentence(r.EndNote))
	}
	took := "—"
	if !r.EndedAt.IsZero() {
		took = duration(t, r.EndedAt.Sub(r.StartedAt))
	}
	p.line("  %s  %s  (%s)", t.T("started"), r.StartedAt.Local().Format("2006-01-02 15:04:05.000"), took)
	p.line("  %s  %s  %s %s", t.T("workspace"), view.Workspace.Root, t.T("session"), view.Session.ID)
	p.line("  %s  %s  %s %s / %s  %s %s", t.T("agent"), r.Agent, t.T("model"), r.Provider,
		r.Model, t.T("trace"), r.TraceID)
	if view.Trigger != nil {
		p.line("  %s  %s", t.T("job"), oneLine(view.Trigger.LinearText(), 100))
	}
	for _, line := range chat.UndoLines(t, view.Undos) {
		p.line("  %s", line)
	}
	shown := map[string]bool{}
	for i := range view.Notices {
		m := &view.Notices[i]
		for _, line := range chat.ToolNotice(t, m) {
			if !shown[line] { // a run that waits says the same each time it is tried
				p.line("%s", line)
			}
			shown[line] = true
		}
	}
	for i := range view.Enrichments {
		p.line("")
		p.line("%s", t.T("read because a message names it"))
		for k := range view.Enrichments[i].Calls {
			showCall(p, &view.Enrichments[i].Calls[k])
		}
	}
	for i := range view.Exchanges {
		showExchange(p, &view.Exchanges[i], r.Provider)
	}
	showTotals(p, view)
	return p.err
}

// showExchange prints a model call with its batch; own is the provider of its run.
func showExchange(p *printer, e *store.ExchangeView, own string) {
	t := p.text
	p.line("")
	purpose := ""
	if e.Purpose == regie.PurposeSummary {
		purpose = "  " + t.T("summary")
	}
	p.line("%s %d  %s  %s%s", t.T("exchange"), e.Number, e.Reason, e.State, purpose)
	for _, a := range e.Attempts {
		paid := ""
		if a.Money != (regie.Money{Known: true}) {
			paid = "  " + money(t, a.Money)
		}
		who := ""
		if a.Provider != "" && a.Provider != own {
			who = a.Provider + " / " + a.Model + "  "
		}
		p.line("  %s %d  %s%s  %s: %s%s", t.T("attempt"), a.Number, who, milliseconds(t, a.ModelUS),
			a.Code, oneLine(a.Error, 100), paid)
		if a.Partial != "" {
			p.line("     %s  %s", t.T("had said"), oneLine(a.Partial, 100))
		}
	}
	if e.Error != "" && len(e.Attempts) == 0 {
		p.line("  %s", e.Error)
	}
	showSummary(p, e.Summary)
	if e.Reply == nil {
		return
	}
	if e.Reason == regie.ExchangeCommand {
		p.textf("  ", "a command of the person's own; no model was asked")
	} else {
		showReply(p, e, own)
	}
	for i := range e.Calls {
		showCall(p, &e.Calls[i])
	}
}

// showReply prints what a model said and cost.
func showReply(p *printer, e *store.ExchangeView, own string) {
	t := p.text
	p.line("  %s  %s  (%s %s)  %s  %s", t.T("model"), milliseconds(t, e.ModelUS), t.T("first byte"),
		milliseconds(t, e.FirstByteUS), tokens(t, e.Usage), money(t, e.Money))
	if e.Provider != "" && e.Provider != own {
		p.textf("  ", "answered by %s / %s in place of %s", e.Provider, e.Model, own)
	}
	reply := e.Reply.AI
	if reply == nil {
		return
	}
	if !reply.Cached.IsZero() {
		p.textf("  ", "from the response cache, answered %s; no model was asked",
			reply.Cached.Local().Format("2006-01-02 15:04:05"))
	}
	if reply.Text() != "" {
		p.line("  %s  %s", t.T("says"), oneLine(reply.Text(), 100))
	}
}

// showSummary says what a CONTEXT_SUMMARY took out of the prompts.
func showSummary(p *printer, m *regie.Message) {
	if m == nil || m.System == nil || m.System.Compaction == nil {
		return
	}
	c := m.System.Compaction
	if c.Hidden > 0 {
		p.textf("  ", "the prompt begins with a summary of the first %d messages", c.Hidden)
	} else {
		p.textf("  ", "the oldest results are left out of the prompt")
	}
	p.textf("  ", "tokens, estimated: %d before, %d after", c.Before, c.After)
	if m.System.Summary != "" {
		p.line("  %s  %s", p.text.T("says"), oneLine(m.System.Summary, 100))
	}
}

func showCall(p *printer, c *regie.Call) {
	t := p.text
	state := string(c.State)
	if c.NotRun != "" {
		state += " " + string(c.NotRun)
	}
	if c.Recovered && c.State.Settled() { // until then it waits for its tool
		state += " " + t.T("(recovered)")
	}
	p.line("  %2d %s %s", c.Ordinal+1, plain.Line(c.Tool), oneLine(c.Arguments, 80))
	if len(c.Executed) > 0 { // a person's own words ran, not the model's
		p.line("     %s %s", t.T("edited by a person, to:"), oneLine(string(c.Executed), 80))
	}
	outcome := oneLine(c.Result, 80)
	if c.Error != nil {
		outcome = string(c.Error.Code) + ": " + oneLine(c.Error.Message, 80)
	}
	p.line("     %s  %s  %s", state, milliseconds(t, c.DurationUS), outcome)
	switch {
	case c.Resolution != nil && c.Resolution.Note != "":
		p.textf("     ", "%s found out: %s (%s)", c.Resolution.By, c.Resolution.As, oneLine(c.Resolution.Note, 80))
	case c.Resolution != nil:
		p.textf("     ", "%s found out: %s", c.Resolution.By, c.Resolution.As)
	case c.State == regie.CallUnknown:
		p.textf("     ", "look what became of it, and say so: regie runs resolve %s happened, or did-not-happen", c.ID)
	}
}

func showTotals(p *printer, view runView) {
	t := p.text
	var usage regie.Usage
	states := map[regie.CallState]int{}
	var model, tools int64
	attempts := 0
	for _, e := range view.Exchanges {
		for _, a := range e.Attempts {
			attempts++
			usage, model = add(usage, a.Usage), model+a.ModelUS
		}
		if e.Reply == nil {
			continue
		}
		// else no model was asked
		if ai := e.Reply.AI; e.Reason != regie.ExchangeCommand && (ai == nil || ai.Cached.IsZero()) {
			attempts++
		}
		usage, model = add(usage, e.Usage), model+e.ModelUS
		for i := range e.Calls {
			states[e.Calls[i].State]++
			tools += e.Calls[i].DurationUS
		}
	}
	var calls []string
	for _, state := range []regie.CallState{
		regie.CallSucceeded, regie.CallFailed, regie.CallUnknown, regie.CallNotRun, regie.CallStarted,
		regie.CallProposed, regie.CallAwaitingApproval, regie.CallApproved,
	} {
		if states[state] > 0 {
			calls = append(calls, fmt.Sprintf("%d %s", states[state], state))
		}
	}
	if len(calls) == 0 {
		calls = []string{"0"}
	}
	p.line("")
	p.line("%s  %s: %d  %s: %d  %s: %s", t.T("total"), t.T("exchanges"), len(view.Exchanges), t.T("model calls"),
		attempts, t.T("calls"), strings.Join(calls, ", "))
	// the mark of estimated tokens holds for the cost beside them
	p.line("  %s  %s", tokens(t, usage), chat.Cost(t, view.Spent))
	p.line("  %s %s  %s %s", t.T("model"), milliseconds(t, model), t.T("tools"), milliseconds(t, tools))
	switch {
	case view.AuditError != "":
		p.line("%s  %s", t.T("log"), view.AuditError)
	case view.Audit != nil:
		p.line("%s  %s", t.T("log"), t.T("%d events, chain verified", view.Audit.Events))
	}
}

// estimated reports whether what a run has used is not what its providers said.
func estimated(view store.RoundView) bool {
	for i := range view.Exchanges {
		if view.Exchanges[i].Usage.Estimated || slices.ContainsFunc(view.Exchanges[i].Attempts,
			func(a regie.Attempt) bool { return a.Usage.Estimated }) {
			return true
		}
	}
	return false
}

func add(a, b regie.Usage) regie.Usage {
	return regie.Usage{
		Input: a.Input + b.Input, Output: a.Output + b.Output, CacheCreation: a.CacheCreation + b.CacheCreation,
		CacheRead: a.CacheRead + b.CacheRead, Reasoning: a.Reasoning + b.Reasoning,
		Estimated: a.Estimated || b.Estimated,
	}
}

func tokens(t *text.Printer, u regie.Usage) string {
	out := t.T("tokens %d in, %d out", u.Input, u.Output)
	if u.Estimated {
		out += t.T(" (estimated)")
	}
	if u.CacheRead > 0 || u.CacheCreation > 0 {
		out += t.T(" (cache: %d read, %d written)", u.CacheRead, u.CacheCreation)
	}
	if u.Reasoning > 0 {
		out += t.T(" (%d reasoning)", u.Reasoning)
	}
	return out
}

// money shows what a call cost, with what was reserved for it where anything was.
func money(t *text.Printer, m regie.Money) string {
	out := chat.Cost(t, regie.Spending{Known: true}.With(m))
	if m.Reserved > 0 && m.Known {
		out += t.T(" (reserved $%s)", regie.Dollars(m.Reserved))
	}
	if m.Overrun > 0 {
		out += t.T(", $%s more than was reserved", regie.Dollars(m.Overrun))
	}
	return out
}
