package tui

import (
	"cmp"
	"context"
	"strconv"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/store"
)

// meter is what the chat has consumed.
type meter struct {
	// prompt is what the last model call read and wrote, budget what a prompt may hold, in tokens.
	prompt, budget int64
	// before is what the chat had cost when it was taken up, counted what the rounds that are known
	// have cost until now.
	before  regie.Spending
	counted map[regie.ID]regie.Spending
	today   store.Spent
	model   string // that the newest run was asked with
}

func newMeter(today store.Spent) meter {
	return meter{before: regie.Spending{Known: true}, counted: map[regie.ID]regie.Spending{}, today: today}
}

func (g *meter) context(m *model) string {
	switch {
	case g.prompt == 0:
		return ""
	case g.budget == 0:
		return m.Text.T("context %s", strconv.FormatInt((g.prompt+500)/1000, 10)+"k")
	default:
		return m.Text.T("context %d%%", min(999, int(g.prompt*100/g.budget)))
	}
}

// spent is what the chat has cost, the run that is under way included.
func (g *meter) spent() regie.Spending {
	out := g.before
	for _, s := range g.counted {
		out.Cost += s.Cost
		out.Known = out.Known && s.Known
	}
	return out
}

// cost is what the chat has cost, and of the caps the one of which the largest part is spent.
func (g *meter) cost(m *model) string {
	t, spent, round, caps, dollars := m.Text, g.spent(), g.counted[m.Round].Cost, g.today.Caps, regie.Dollars
	if m.Round.IsZero() {
		caps.Round = 0
	}
	said, largest := "", -1.0
	for _, c := range []struct {
		has, most int64
		said      string
	}{
		{spent.Cost, caps.Session, t.T(" of $%s", dollars(caps.Session))},
		{round, caps.Round, " · " + t.T("this run $%s of $%s", dollars(round), dollars(caps.Round))},
		{
			g.today.Workspace.Cost, caps.Workspace,
			" · " + t.T("today here $%s of $%s", dollars(g.today.Workspace.Cost), dollars(caps.Workspace)),
		},
		{g.today.All.Cost, caps.Day, " · " + t.T("today $%s of $%s", dollars(g.today.All.Cost), dollars(caps.Day))},
	} {
		if part := float64(c.has) / float64(c.most); c.most > 0 && part > largest {
			said, largest = c.said, part
		}
	}
	if said == "" && !chat.Paid(spent) {
		return ""
	}
	return chat.Cost(t, regie.Spending{Cost: spent.Cost, Known: spent.Known}) + said
}

// measure reads what a round has cost, and what today has: of all rounds where it is zero.
func (m *model) measure(round regie.ID) {
	session, root := m.Session, m.Request.Root
	m.Do(chat.Beside, func(ctx context.Context) func() {
		var view store.RoundView
		if !round.IsZero() {
			view, _ = m.Control.Get(ctx, round) // the next one reads it again
		}
		today, err := m.Control.Spent(ctx, root)
		return func() {
			if session == m.Session && view.Round.ID == round && !round.IsZero() {
				m.meter.round(&view)
			}
			if err == nil {
				m.meter.today = today
			}
		}
	})
}

// round takes in what a round has cost until now.
func (g *meter) round(view *store.RoundView) {
	g.counted[view.Round.ID] = view.Spent
	g.budget, g.model = int64(view.Round.Limits.ContextTokens), view.Round.Model
}

// takenUp begins with what a chat has cost that goes on; the rounds that are shown of it are
// counted one by one, because they may go on.
func (g *meter) takenUp(past *chat.Past) {
	g.before, g.model = past.View.Spent, past.View.Model
	for i := range past.Rounds {
		view := &past.Rounds[i]
		g.counted[view.Round.ID] = view.Spent
		g.before.Cost -= view.Spent.Cost
	}
}

// answers is the model that answers the next message, as far as that is known: what this chat asks
// for, else what the newest run was asked with, else what the engine has.
func (m *model) answers() string {
	if model := cmp.Or(m.Request.Model, m.meter.model); model != "" {
		return model
	}
	_, model := chat.EngineModel(m.engine, m.Request.Agent)
	return model
}

// engineHas asks what answers where the chat has no model of its own. A server that does not say is
// told of with the first message, not here.
func (m *model) engineHas() {
	if m.Request.Model == "" {
		m.Do(chat.Beside, func(ctx context.Context) func() {
			agents, _ := m.Control.Agents(ctx)
			return func() { m.engine = agents }
		})
	}
}
