package web

import (
	"context"
	"html/template"
	"net/url"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/httpread"
	"github.com/regie-run/regie/internal/sanitize"
	"github.com/regie-run/regie/internal/store"
)

// runsPage is the list of runs. State, From and To are its filters, as the address has them.
type runsPage struct {
	*frame
	Next            template.URL // the address of the older ones
	State, From, To string
}

// runLine is a round in the list of runs.
type runLine struct {
	*store.RoundSummary
	Chip                        chip
	Title, Chat, By, Took, Cost string
}

const shownRuns = 50

// loadRuns lists the rounds, the newest first.
func loadRuns(ctx context.Context, v *visit) (*runsPage, error) {
	query := v.r.URL.Query()
	page := &runsPage{
		frame: v.newFrame("runs", v.text.T("Runs")),
		State: query.Get("state"), From: query.Get("from"), To: query.Get("to"),
	}
	page.Path, page.Stream = "/runs", "/runs/stream?"+v.r.URL.RawQuery
	var filter store.RoundFilter
	err := httpread.Bind(url.Values{"cursor": {query.Get("cursor")}, "state": {page.State}}, &filter)
	if err == nil {
		err = v.fillFrame(page.frame)
	}
	if err != nil {
		return nil, err
	}
	filter.Limit = shownRuns + 1
	filter.From, _ = time.ParseInLocation(time.DateOnly, page.From, time.Local)          //nolint:gosmopolitan // a day as its reader has it
	if to, err := time.ParseInLocation(time.DateOnly, page.To, time.Local); err == nil { //nolint:gosmopolitan // as above
		filter.To = to.AddDate(0, 0, 1)
	}
	rounds, err := v.site.Service.Rounds.List(ctx, filter)
	if err != nil {
		return nil, err
	}
	rounds, page.Next = cutPage(v, "rounds", rounds, shownRuns, func(r *store.RoundSummary) store.Mark {
		return store.Mark{At: r.Round.StartedAt, ID: r.Round.ID}
	})
	b := &thread{v: v}
	for i := range rounds {
		b.add("run-"+rounds[i].Round.ID.String(), "item-run", newRunLine(v, &rounds[i]))
	}
	page.Items = b.items
	return page, b.err
}

func newRunLine(v *visit, r *store.RoundSummary) runLine {
	line := runLine{
		RoundSummary: r, Chip: runChip(v, &r.Round, &r.Session), Title: sanitize.Line(sanitize.Clip(r.Text, 200)),
		Chat: v.sessionName(r.Session.Name), By: startedBy(v, &r.Round, &r.Session), Cost: formatCost(v.text, r.Spent),
	}
	if !r.Round.EndedAt.IsZero() {
		line.Took = formatSpan(v.text, r.Round.EndedAt.Sub(r.Round.StartedAt))
	}
	if line.Chat == line.Title {
		line.Chat = ""
	}
	return line
}

// runChip returns the chip of a round: where it waits, for whom.
func runChip(v *visit, r *regie.Round, s *regie.Session) chip {
	if r.State == regie.RoundEnded {
		return endChip(v.text, r.End)
	}
	return sessionChip(v.text, &store.SessionSummary{Session: *s})
}

// startedBy names the trigger of a round.
func startedBy(v *visit, r *regie.Round, s *regie.Session) string {
	switch {
	case r.Reason == regie.ReasonTaskCallback:
		return v.text.T("A task")
	case s.Type == regie.SessionAutomation:
		return v.text.T("An automation")
	case s.Origin == regie.OriginAPISession:
		return v.text.T("A program")
	default:
		return v.text.T("A message")
	}
}

// exchangePart is one model call with its calls.
type exchangePart struct {
	*store.ExchangeView
	Chip       chip
	Took, Cost string
	Reply      []template.HTML
	Calls      []callRow
}

func (v *visit) exchangePart(x *store.ExchangeView, asked map[regie.ID]*regie.Approval) exchangePart {
	part := exchangePart{
		ExchangeView: x, Chip: exchangeChips[x.State].translateChip(v.text), Took: formatMicros(v.text, x.ModelUS),
		Cost: formatCost(v.text, regie.Spending{Cost: x.Money.Cost, Known: x.Money.Known}),
	}
	if x.State == regie.ExchangeOpen {
		part.Took = ""
	}
	if x.Reply != nil && x.Reply.AI != nil {
		part.Reply = renderBlocks(x.Reply.AI.Text(), 0)
	}
	for i := range x.Calls {
		part.Calls = append(part.Calls, v.callRow(&x.Calls[i], asked[x.Calls[i].ID]))
	}
	return part
}
