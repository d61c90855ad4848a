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
	model   string // that the newest run was asked with
}

func newMeter() meter {
	return meter{before: regie.Spending{Known: true}, counted: map[regie.ID]regie.Spending{}}
}

func (g *meter) describeContext(m *model) string {
	if g.prompt == 0 || g.budget == 0 {
		return ""
	}
	return m.Text.T("context %d%%", min(999, int(g.prompt*100/g.budget)))
}

// describeCost returns what the chat has cost.
func (g *meter) describeCost(m *model) string {
	out := g.before
	for _, s := range g.counted {
		out.Cost += s.Cost
		out.Known = out.Known && s.Known
	}
	if !chat.Paid(out) {
		return ""
	}
	return chat.Cost(m.Text, regie.Spending{Cost: out.Cost, Known: out.Known})
}

// measureRound reads what a round has cost.
func measureRound(m *model, round regie.ID) {
	session := m.Session
	m.Do(chat.Beside, func(ctx context.Context) func() {
		view, err := m.Control.Get(ctx, round)
		return func() {
			if err == nil && session == m.Session { // else the next one reads it again
				m.meter.addRound(&view)
			}
		}
	})
}

// addRound takes in what a round has cost until now.
func (g *meter) addRound(view *store.RoundView) {
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

// nextModel returns the model that answers the next message, as far as that is known: what this
// chat asks for, else what the newest run was asked with, else what the engine has.
func nextModel(m *model) string {
	if model := cmp.Or(m.Request.Model, m.meter.model); model != "" {
		return model
	}
	_, model := chat.EngineModel(m.engine, m.Request.Agent)
	return model
}

// readEngine reads the engine's model for a chat without one. An error of the server appears with
// the first message, not here.
func readEngine(m *model) {
	if m.Request.Model == "" {
		m.Do(chat.Beside, func(ctx context.Context) func() {
			agents, _ := m.Control.Agents(ctx)
			return func() { m.engine = agents }
		})
	}
}
