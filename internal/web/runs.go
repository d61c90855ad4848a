package web

import (
	"html/template"
	"strconv"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/httpread"
	"github.com/regie-run/regie/internal/sanitize"
	"github.com/regie-run/regie/internal/store"
)

// runLine is a round in the list of runs.
type runLine struct {
	ID               regie.ID
	Chip             chip
	Title, Chat      string
	Session          regie.ID
	At               time.Time
	Took, Cost       string
	Exchanges, Calls int
}

const shownRuns = 50

// showRuns lists the rounds, the newest first.
func (s *Site) showRuns(v *visit) error {
	f := v.newFrame("runs", v.text.T("Runs"))
	if err := v.fillFrame(f); err != nil {
		return err
	}
	filter := store.RoundFilter{Limit: shownRuns + 1}
	if cursor := v.r.URL.Query().Get("cursor"); cursor != "" {
		if err := httpread.Bind(v.r.URL.Query(), &filter); err != nil {
			return err
		}
		filter.Limit = shownRuns + 1
	}
	rounds, err := s.Service.Rounds.List(v.r.Context(), filter)
	if err != nil {
		return err
	}
	page := struct {
		*frame
		Runs []runLine
		Next string
	}{frame: f}
	if len(rounds) > shownRuns {
		rounds = rounds[:shownRuns]
		last := &rounds[shownRuns-1].Round
		page.Next = store.Cursor("rounds", store.Mark{At: last.StartedAt, ID: last.ID})
	}
	for i := range rounds {
		r := &rounds[i]
		line := runLine{
			ID: r.Round.ID, Chip: roundChip(v.text, &r.Round), Title: sanitize.Line(sanitize.Clip(r.Text, 200)),
			Chat: v.sessionName(r.Session.Name), Session: r.Session.ID, At: r.Round.StartedAt,
			Took: v.roundTook(&r.Round),
			Cost: formatCost(v.text, r.Spent), Exchanges: r.Exchanges, Calls: r.Calls,
		}
		if line.Chat == line.Title {
			line.Chat = ""
		}
		page.Runs = append(page.Runs, line)
	}
	v.render(200, "runs", page)
	return nil
}

// roundTook says how long a round took; empty while it goes on.
func (v *visit) roundTook(r *regie.Round) string {
	if r.EndedAt.IsZero() {
		return ""
	}
	return formatSpan(v.text, r.EndedAt.Sub(r.StartedAt))
}

// runPage is one round.
type runPage struct {
	*frame
	Round            *regie.Round
	Chip             chip
	Took, Cost, Note string
	Chat             string
	Session          regie.ID
	Tokens, Cached   int64
	Calls            int
	Trigger          string
	Exchanges        []exchangePart
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

// showRun shows a round: its exchanges, calls and money.
func (s *Site) showRun(v *visit) error {
	id, err := v.id()
	if err != nil {
		return err
	}
	view, err := s.Service.Rounds.Get(v.r.Context(), id)
	if err != nil {
		return err
	}
	inbox, err := s.Service.Approvals.Inbox(v.r.Context(), store.InboxFilter{SessionID: view.Session.ID, Closed: true})
	if err != nil {
		return err
	}
	asked := v.newThread(&inbox, nil).approvals
	f := v.newFrame("runs", v.text.T("Run no. %s", strconv.Itoa(view.Round.Number)))
	if err := v.fillFrame(f); err != nil {
		return err
	}
	page := runPage{
		frame: f, Round: &view.Round, Chip: roundChip(v.text, &view.Round), Took: v.roundTook(&view.Round),
		Cost: formatCost(v.text, view.Spent), Chat: v.sessionName(view.Session.Name), Session: view.Session.ID,
	}
	if !view.Round.EndNote.IsZero() {
		page.Note = sanitize.Line(v.text.Sentence(view.Round.EndNote))
	}
	if view.Trigger != nil {
		page.Trigger = personText(view.Trigger)
	}
	for i := range view.Exchanges {
		part := v.exchangePart(&view.Exchanges[i], asked)
		page.Tokens += part.Input + part.Output
		page.Cached += part.CacheHit
		page.Calls += len(part.Calls)
		page.Exchanges = append(page.Exchanges, part)
	}
	v.render(200, "run", page)
	return nil
}

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
