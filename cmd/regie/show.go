package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/i18n"
	"github.com/regie-run/regie/internal/sanitize"
	"github.com/regie-run/regie/internal/store"
)

// showRun prints a run with every exchange, attempt and call (spec 10.1).
func showRun(p *printer, view runView) {
	t, r := p.text, view.Round
	p.printLine("%s %s  %s", t.T("run"), r.ID, roundState(r))
	if !r.EndNote.IsZero() {
		p.printLine("  %s", t.Sentence(r.EndNote))
	}
	p.printLine("  %s  %s  (%s)", t.T("started"), r.StartedAt.Local().Format("2006-01-02 15:04:05.000"),
		formatDuration(t, &r))
	p.printLine("  %s  %s  %s %s", t.T("workspace"), view.Workspace.Root, t.T("session"), view.Session.ID)
	p.printLine("  %s  %s  %s %s / %s  %s %s", t.T("agent"), r.Agent, t.T("model"), r.Provider,
		r.Model, t.T("trace"), r.TraceID)
	if view.Trigger != nil {
		p.printLine("  %s  %s", t.T("job"), oneLine(view.Trigger.LinearText(), 100))
	}
	for _, line := range chat.UndoLines(t, view.Undos) {
		p.printLine("  %s", line)
	}
	for i := range view.Notices {
		m := &view.Notices[i]
		for _, line := range chat.ToolNotice(t, m) {
			p.printLine("%s", line)
		}
	}
	for i := range view.Enrichments {
		p.printLine("")
		p.printLine("%s", t.T("read because a message names it"))
		for k := range view.Enrichments[i].Calls {
			showCall(p, &view.Enrichments[i].Calls[k])
		}
	}
	for i := range view.Exchanges {
		showExchange(p, &view.Exchanges[i], r.Provider)
	}
	showTotals(p, view)
}

// showExchange prints a model call with its batch; own is the provider of its run.
func showExchange(p *printer, e *store.ExchangeView, own string) {
	t := p.text
	p.printLine("")
	p.printLine("%s %d  %s  %s  %s", t.T("exchange"), e.Number, e.Reason, e.State, e.Purpose)
	for _, a := range e.Attempts {
		p.printLine("  %s %d  %s%s  %s: %s  %s", t.T("attempt"), a.Number,
			strings.TrimPrefix(a.Provider+" / "+a.Model+"  ", " /   "), formatMillis(t, a.ModelUS), a.Code,
			oneLine(a.Error, 100), formatMoney(t, a.Money))
		if a.Partial != "" {
			p.printLine("     %s  %s", t.T("partial reply"), oneLine(a.Partial, 100))
		}
	}
	if e.Error != "" && len(e.Attempts) == 0 {
		p.printLine("  %s", e.Error)
	}
	if m := e.Summary; m != nil && m.System != nil && m.System.Compaction != nil {
		p.printText("  ", "tokens, estimated: %d before, %d after", m.System.Compaction.Before,
			m.System.Compaction.After)
		p.printLine("  %s  %s", t.T("says"), oneLine(m.System.Summary, 100))
	}
	if e.Reply == nil {
		return
	}
	if e.Reason == regie.ExchangeCommand {
		p.printText("  ", "a command run by a person; no model was asked")
	} else {
		showReply(p, e, own)
	}
	for i := range e.Calls {
		showCall(p, &e.Calls[i])
	}
}

// showReply prints a model's reply and its cost.
func showReply(p *printer, e *store.ExchangeView, own string) {
	t := p.text
	p.printLine("  %s  %s  (%s %s)  %s  %s", t.T("model"), formatMillis(t, e.ModelUS), t.T("first byte"),
		formatMillis(t, e.FirstByteUS), formatTokens(t, e.Usage), formatMoney(t, e.Money))
	if e.Provider != "" && e.Provider != own {
		p.printText("  ", "answered by %s / %s in place of %s", e.Provider, e.Model, own)
	}
	reply := e.Reply.AI
	if reply == nil {
		return
	}
	if !reply.Cached.IsZero() {
		p.printText("  ", "from the response cache, answered %s; no model was asked",
			reply.Cached.Local().Format("2006-01-02 15:04:05"))
	}
	if reply.Text() != "" {
		p.printLine("  %s  %s", t.T("says"), oneLine(reply.Text(), 100))
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
	p.printLine("  %2d %s %s", c.Ordinal+1, sanitize.Line(c.Tool), oneLine(c.Arguments, 80))
	if len(c.Executed) > 0 { // a person's own words ran, not the model's
		p.printLine("     %s %s", t.T("edited by a person, to:"), oneLine(string(c.Executed), 80))
	}
	outcome := oneLine(c.Result, 80)
	if c.Error != nil {
		outcome = string(c.Error.Code) + ": " + oneLine(c.Error.Message, 80)
	}
	p.printLine("     %s  %s  %s", state, formatMillis(t, c.DurationUS), outcome)
	switch {
	case c.Resolution != nil:
		p.printText("     ", "%s reported: %s (%s)", c.Resolution.By, c.Resolution.As, oneLine(c.Resolution.Note, 80))
	case c.State == regie.CallUnknown:
		p.printText("     ", "check whether it happened, then run: regie runs resolve %s happened, or did-not-happen", c.ID)
	}
}

func showTotals(p *printer, view runView) {
	t, states := p.text, map[regie.CallState]int{}
	var model, tools int64
	asked := 0
	for i := range view.Exchanges {
		e := &view.Exchanges[i]
		asked += len(e.Attempts)
		for _, a := range e.Attempts {
			model += a.ModelUS
		}
		if e.Reply != nil && e.Reason != regie.ExchangeCommand && (e.Reply.AI == nil || e.Reply.AI.Cached.IsZero()) {
			asked++
		}
		model += e.ModelUS
		for j := range e.Calls {
			states[e.Calls[j].State]++
			tools += e.Calls[j].DurationUS
		}
	}
	var calls []string
	for _, state := range slices.Sorted(maps.Keys(states)) {
		calls = append(calls, fmt.Sprintf("%d %s", states[state], state))
	}
	p.printLine("")
	p.printLine("%s  %s: %d  %s: %d  %s: %s", t.T("total"), t.T("exchanges"), len(view.Exchanges), t.T("model calls"),
		asked, t.T("calls"), cmp.Or(strings.Join(calls, ", "), "0"))
	// the mark of estimated tokens also covers the cost on the same line
	p.printLine("  %s  %s", formatTokens(t, usageOf(view)), chat.Cost(t, view.Spent))
	p.printLine("  %s %s  %s %s", t.T("model"), formatMillis(t, model), t.T("tools"), formatMillis(t, tools))
	switch {
	case view.AuditError != "":
		p.printLine("%s  %s", t.T("log"), view.AuditError)
	case view.Audit != nil:
		p.printLine("%s  %s", t.T("log"), t.T("%d events, chain verified", view.Audit.Events))
	}
}

// usageOf sums the usage of a run's model calls.
func usageOf(view runView) (sum regie.Usage) {
	add := func(u regie.Usage) {
		sum.Input, sum.Output, sum.Reasoning = sum.Input+u.Input, sum.Output+u.Output, sum.Reasoning+u.Reasoning
		sum.CacheCreation, sum.CacheRead = sum.CacheCreation+u.CacheCreation, sum.CacheRead+u.CacheRead
		sum.Estimated = sum.Estimated || u.Estimated
	}
	for i := range view.Exchanges {
		add(view.Exchanges[i].Usage)
		for _, a := range view.Exchanges[i].Attempts {
			add(a.Usage)
		}
	}
	return sum
}

func formatTokens(t *i18n.Printer, u regie.Usage) string {
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

// formatMoney formats the cost of a call, with its reservation if there was one.
func formatMoney(t *i18n.Printer, m regie.Money) string {
	spent := regie.Spending{Due: m.Reserved}
	if m.Known {
		spent = regie.Spending{Cost: m.Cost, Known: true}
	}
	if m.Estimated {
		spent.Estimated = spent.Cost
	}
	out := chat.Cost(t, spent)
	if m.Reserved > 0 && m.Known {
		out += t.T(" (reserved $%s)", regie.Dollars(m.Reserved))
	}
	return out
}
