package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/plain"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/text"
)

// printer collects lines and remembers the first failure to write.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintln(p.w, plain.Strip(fmt.Sprintf(format, args...)))
	}
}

// showRun prints a run with every exchange, attempt and call (spec 10.1).
func showRun(w io.Writer, t *text.Printer, view store.RoundView) error {
	p := &printer{w: w}
	r := view.Round
	p.line("%s %s  %s", t.T("run"), r.ID, roundState(r))
	if r.EndNote != "" {
		p.line("  %s", r.EndNote)
	}
	took := "—"
	if !r.EndedAt.IsZero() {
		took = duration(r.EndedAt.Sub(r.StartedAt))
	}
	p.line("  %s  %s  (%s)", t.T("started"), r.StartedAt.Local().Format("2006-01-02 15:04:05.000"), took)
	p.line("  %s  %s  %s %s", t.T("workspace"), view.Workspace.Root, t.T("session"), view.Session.ID)
	p.line("  %s  %s  %s %s / %s  %s %s", t.T("agent"), r.Agent, t.T("model"), r.Provider, r.Model, t.T("trace"), r.TraceID)
	if view.Trigger != nil {
		p.line("  %s  %s", t.T("job"), oneLine(view.Trigger.Text, 100))
	}
	for i := range view.Exchanges {
		showExchange(p, t, &view.Exchanges[i])
	}
	showTotals(p, t, view)
	return p.err
}

func showExchange(p *printer, t *text.Printer, e *store.ExchangeView) {
	p.line("")
	p.line("%s %d  %s  %s", t.T("exchange"), e.Number, e.Reason, e.State)
	for _, a := range e.Attempts {
		p.line("  %s %d  %s  %s: %s", t.T("attempt"), a.Number, milliseconds(a.ModelUS), a.Code, oneLine(a.Error, 100))
	}
	if e.Error != "" && len(e.Attempts) == 0 {
		p.line("  %s", e.Error)
	}
	if e.Reply == nil {
		return
	}
	p.line("  %s  %s  (%s %s)  %s  %s", t.T("model"), milliseconds(e.ModelUS), t.T("first byte"), milliseconds(e.FirstByteUS), tokens(t, e.Usage), money(t, e.Money))
	if reply := e.Reply.AI; reply != nil && reply.Text() != "" {
		p.line("  %s  %s", t.T("says"), oneLine(reply.Text(), 100))
	}
	for i := range e.Calls {
		showCall(p, t, &e.Calls[i])
	}
}

func showCall(p *printer, t *text.Printer, c *regie.Call) {
	state := string(c.State)
	if c.NotRun != "" {
		state += " " + string(c.NotRun)
	}
	if c.Recovered {
		state += " " + t.T("(recovered)")
	}
	p.line("  %2d %s %s", c.Ordinal+1, c.Tool, oneLine(c.Arguments, 80))
	outcome := oneLine(c.Result, 80)
	if c.Error != nil {
		outcome = string(c.Error.Code) + ": " + oneLine(c.Error.Message, 80)
	}
	p.line("     %s  %s  %s", state, milliseconds(c.DurationUS), outcome)
}

func showTotals(p *printer, t *text.Printer, view store.RoundView) {
	var usage regie.Usage
	cost := regie.Money{Known: true}
	states := map[regie.CallState]int{}
	var model, tools int64
	attempts := 0
	for _, e := range view.Exchanges {
		for _, a := range e.Attempts {
			attempts++
			usage, cost, model = add(usage, a.Usage), sum(cost, a.Money), model+a.ModelUS
		}
		if e.Reply == nil {
			continue
		}
		attempts++
		usage, cost, model = add(usage, e.Usage), sum(cost, e.Money), model+e.ModelUS
		for i := range e.Calls {
			states[e.Calls[i].State]++
			tools += e.Calls[i].DurationUS
		}
	}
	var calls []string
	for _, state := range []regie.CallState{
		regie.CallSucceeded, regie.CallFailed, regie.CallUnknown, regie.CallNotRun, regie.CallStarted, regie.CallProposed, regie.CallAwaitingApproval, regie.CallApproved,
	} {
		if states[state] > 0 {
			calls = append(calls, fmt.Sprintf("%d %s", states[state], state))
		}
	}
	if len(calls) == 0 {
		calls = []string{"0"}
	}
	p.line("")
	p.line("%s  %s: %d  %s: %d  %s: %s", t.T("total"), t.T("exchanges"), len(view.Exchanges), t.T("model calls"), attempts, t.T("calls"), strings.Join(calls, ", "))
	p.line("  %s  %s", tokens(t, usage), money(t, cost))
	p.line("  %s %s  %s %s", t.T("model"), milliseconds(model), t.T("tools"), milliseconds(tools))
	switch {
	case view.AuditError != "":
		p.line("%s  %s", t.T("log"), view.AuditError)
	case view.Audit != nil:
		p.line("%s  %s", t.T("log"), t.T("%d events, chain verified", view.Audit.Events))
	}
}

func add(a, b regie.Usage) regie.Usage {
	return regie.Usage{
		Input: a.Input + b.Input, Output: a.Output + b.Output, CacheCreation: a.CacheCreation + b.CacheCreation,
		CacheRead: a.CacheRead + b.CacheRead, Reasoning: a.Reasoning + b.Reasoning,
	}
}

// sum adds costs; what is unknown anywhere is unknown in the sum.
func sum(a, b regie.Money) regie.Money {
	return regie.Money{Cost: a.Cost + b.Cost, Known: a.Known && b.Known}
}

func tokens(t *text.Printer, u regie.Usage) string {
	out := t.T("tokens %d in, %d out", u.Input, u.Output)
	if u.CacheRead > 0 || u.CacheCreation > 0 {
		out += t.T(" (cache: %d read, %d written)", u.CacheRead, u.CacheCreation)
	}
	if u.Reasoning > 0 {
		out += t.T(" (%d reasoning)", u.Reasoning)
	}
	return out
}

// money shows a cost; an unknown price is shown as unknown, never as 0 (spec 6.3).
func money(t *text.Printer, m regie.Money) string {
	if !m.Known {
		return t.T("cost unknown")
	}
	return t.T("cost $%s", fmt.Sprintf("%.6f", float64(m.Cost)/1e6))
}
