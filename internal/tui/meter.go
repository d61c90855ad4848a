package tui

import (
	"cmp"
	"context"

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
	most    int64  // that it may cost
	model   string // that the newest run was asked with
}

func newMeter() meter {
	return meter{before: regie.Spending{Known: true}, counted: map[regie.ID]regie.Spending{}}
}

func (g *meter) context(m *model) string {
	if g.prompt == 0 || g.budget == 0 {
		return ""
	}
	return m.Text.T("context %d%%", min(999, int(g.prompt*100/g.budget)))
}

// cost is what the chat has cost, and what it may cost.
func (g *meter) cost(m *model) string {
	out := g.before
	for _, s := range g.counted {
		out.Cost += s.Cost
		out.Known = out.Known && s.Known
	}
	said, most := chat.Cost(m.Text, regie.Spending{Cost: out.Cost, Known: out.Known}), g.most
	switch {
	case most > 0:
		return said + m.Text.T(" of $%s", regie.Dollars(most))
	case chat.Paid(out):
		return said
	}
	return ""
}

// measure reads what a round has cost, if one is named, and what a chat may cost.
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
				m.meter.most = today.Caps.Session
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

// nextModel is the model that answers the next message, as far as that is known: what this chat
// asks for, else what the newest run was asked with, else what the engine has.
func nextModel(m *model) string {
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
