package web

import (
	"context"
	"html/template"
	"net/url"
	"strconv"
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
	ID              regie.ID
	Chip            chip
	Title, Chat, By string
	At              time.Time
	Took, Cost      string
	Calls           int
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
	if len(rounds) > shownRuns {
		rounds = rounds[:shownRuns]
		last := &rounds[shownRuns-1].Round
		query.Set("cursor", store.Cursor("rounds", store.Mark{At: last.StartedAt, ID: last.ID}))
		page.Next = template.URL("?" + query.Encode()) //nolint:gosec // it is encoded
	}
	for i := range rounds {
		line := newRunLine(v, &rounds[i])
		html, err := v.fragment("item-run", line)
		if err != nil {
			return nil, err
		}
		page.Items = append(page.Items, item{"run-" + line.ID.String(), html})
	}
	return page, nil
}

func newRunLine(v *visit, r *store.RoundSummary) runLine {
	line := runLine{
		ID: r.Round.ID, Chip: runChip(v, &r.Round, &r.Session), Title: sanitize.Line(sanitize.Clip(r.Text, 200)),
		Chat: v.sessionName(r.Session.Name), By: startedBy(v, &r.Round, &r.Session), At: r.Round.StartedAt,
		Took: v.roundTook(&r.Round), Cost: formatCost(v.text, r.Spent), Calls: r.Calls,
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

// roundTook says how long a round took; empty while it goes on.
func (v *visit) roundTook(r *regie.Round) string {
	if r.EndedAt.IsZero() {
		return ""
	}
	return formatSpan(v.text, r.EndedAt.Sub(r.StartedAt))
}

// exchangePart is one model call with its calls.
type exchangePart struct {
	Number                  int
	Model, Took, Cost, Why  string
	Reply                   []template.HTML
	Calls                   []callRow
	Attempts                []attemptPart
	Input, Output, CacheHit int64
	Error                   string
	Chip                    chip
}

type attemptPart struct{ Number, Why, Took string }

func (v *visit) exchangePart(x *store.ExchangeView, asked map[regie.ID]*regie.Approval) exchangePart {
	part := exchangePart{
		Number: x.Number, Model: sanitize.Line(x.Model), Error: sanitize.Strip(x.Error),
		Took:  formatSpan(v.text, time.Duration(x.ModelUS)*time.Microsecond),
		Cost:  formatCost(v.text, regie.Spending{Cost: x.Money.Cost, Known: x.Money.Known}),
		Input: x.Usage.Input, Output: x.Usage.Output,
		CacheHit: x.Usage.CacheRead,
	}
	switch x.State {
	case regie.ExchangeReplied:
		part.Chip = chip{"done", "tick", v.text.T("Done")}
	case regie.ExchangeFailed:
		part.Chip = chip{"bad", "cross", v.text.T("Failed")}
	default:
		part.Chip, part.Took = chip{"work", "spin", v.text.T("Running")}, ""
	}
	if x.Reply != nil && x.Reply.AI != nil {
		part.Reply = renderBlocks(x.Reply.AI.Text(), 0)
	}
	for i := range x.Calls {
		part.Calls = append(part.Calls, v.callRow(&x.Calls[i], asked[x.Calls[i].ID]))
	}
	for i := range x.Attempts {
		a := &x.Attempts[i]
		part.Attempts = append(part.Attempts, attemptPart{
			strconv.Itoa(a.Number), sanitize.Strip(string(a.Code) + ": " + a.Error),
			formatSpan(v.text, time.Duration(a.ModelUS)*time.Microsecond),
		})
	}
	return part
}
