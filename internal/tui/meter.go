package tui

import (
	"cmp"
	"context"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
)

// meter holds the consumption of the chat.
type meter struct {
	// prompt is the size of the last model call, input and output, budget the limit of a prompt, in
	// tokens.
	prompt, budget int64
	// before is the cost of the chat when it was resumed, counted the cost of each known round so
	// far.
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

// describeCost returns the cost of the chat.
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

// measureRound reads the cost of a round.
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

// addRound records the cost of a round so far.
func (g *meter) addRound(view *store.RoundView) {
	g.counted[view.Round.ID] = view.Spent
	g.budget, g.model = int64(view.Round.Limits.ContextTokens), view.Round.Model
}

// takenUp starts with the cost of a resumed chat; it counts the shown rounds one by one, because
// they may continue.
func (g *meter) takenUp(past *chat.Past) {
	g.before, g.model = past.View.Spent, past.View.Model
	for i := range past.Rounds {
		view := &past.Rounds[i]
		g.counted[view.Round.ID] = view.Spent
		g.before.Cost -= view.Spent.Cost
	}
}

// nextModel returns the model that answers the next message, if known: the model of this chat, else
// of the newest run, else of the engine.
func nextModel(m *model) string {
	_, ofAgent := chat.EngineModel(m.engine, m.Request.Agent)
	if chat.LeavesModel(&m.Request) {
		return cmp.Or(m.meter.model, ofAgent, m.Request.Model)
	}
	return cmp.Or(m.Request.Model, m.meter.model, ofAgent)
}

// readEngine loads the agents' models if the chat has no model of its own. It ignores an
// error: the first message reports it.
func readEngine(m *model) {
	if chat.LeavesModel(&m.Request) {
		m.Do(chat.Beside, func(ctx context.Context) func() {
			agents, _ := m.Control.Agents.List(ctx, dispatch.AgentFilter{Root: m.Request.Root})
			return func() { m.engine = agents }
		})
	}
}
