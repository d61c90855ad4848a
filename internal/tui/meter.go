package tui

import (
	"context"
	"strconv"

	tea "charm.land/bubbletea/v2"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/chat"
)

// meter is what the chat has consumed.
type meter struct {
	// prompt is what the last model call read and wrote, budget what a prompt may hold, in tokens.
	prompt, budget int64
	spent          regie.Spending
	known          bool
	caps           regie.Caps
	counted        map[regie.ID]regie.Spending // rounds that spent has
	resumed        map[regie.ID]bool           // those that it had when the chat was taken up
	// provider and model are what the newest run was asked with, "" where the person has chosen another one since.
	provider, model string
}

func (g *meter) message(message *regie.Message) {
	if message.AI != nil && message.Usage != nil {
		g.prompt = message.Usage.Input + message.Usage.Output
	}
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

func (g *meter) cost(m *model) string {
	if !g.known || !chat.Paid(g.spent) {
		return ""
	}
	out := chat.Cost(m.Text, regie.Spending{Cost: g.spent.Cost, Known: g.spent.Known})
	if g.caps.Session > 0 {
		out += m.Text.T(" of $%s", regie.Dollars(g.caps.Session))
	}
	return out
}

// measure reads what a round has cost, and the caps.
func (m *model) measure(round regie.ID) tea.Cmd {
	if round.IsZero() {
		return nil
	}
	session, root := m.session, m.Request.Root
	return m.do(func(ctx context.Context) func() tea.Cmd {
		view, err := m.Control.Get(ctx, round)
		spent, capsErr := m.Control.Spent(ctx, root)
		return func() tea.Cmd {
			if session != m.session {
				return nil
			}
			if err == nil {
				m.meter.round(round, view.Spent, view.Round.Limits)
			}
			if capsErr == nil {
				m.meter.caps = spent.Caps
			}
			return nil
		}
	})
}

// bounds reads what bounds a round's prompts, and which model it was asked with: a size, or no word at all, stands for one that only the engine knows.
func (m *model) bounds(round regie.ID) tea.Cmd {
	if m.meter.budget > 0 && m.meter.model != "" {
		return nil
	}
	session, asked := m.session, m.Request.Model
	return m.do(func(ctx context.Context) func() tea.Cmd {
		view, err := m.Control.Get(ctx, round)
		return func() tea.Cmd {
			if err == nil && session == m.session {
				m.meter.budget = int64(view.Round.Limits.ContextTokens)
				if asked == m.Request.Model {
					m.meter.provider, m.meter.model = view.Round.Provider, view.Round.Model
				}
			}
			return nil
		}
	})
}

// round takes in what a round has cost.
func (g *meter) round(id regie.ID, spent regie.Spending, limits regie.Limits) {
	if g.counted == nil {
		g.counted = map[regie.ID]regie.Spending{}
	}
	g.budget = int64(limits.ContextTokens)
	if !g.known { // a chat that began here
		g.known, g.spent = true, regie.Spending{Known: true}
	}
	if _, counted := g.counted[id]; counted || g.resumed[id] {
		return
	}
	g.counted[id] = spent
	g.spent.Cost += spent.Cost
	g.spent.Due += spent.Due
	g.spent.Known = g.spent.Known && spent.Known
}
