package tui

import (
	"context"
	"strconv"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
)

// meter is what the chat has consumed.
type meter struct {
	// prompt is what the last model call read and wrote, budget what a prompt may hold, in tokens.
	prompt, budget int64
	// before is what the chat had cost when it was taken up, resumed are the rounds of that;
	// counted is what the others have cost until now.
	before  regie.Spending
	resumed map[regie.ID]bool
	counted map[regie.ID]regie.Spending
	today   store.Spent
	// asked and heard count what was read of it: an older reading does not replace a newer one.
	asked, heard int
	// provider and model are what the newest run was asked with; chosen is what the chat asked for
	// then.
	provider, model, chosen string
}

func newMeter(today store.Spent) meter {
	return meter{
		before: regie.Spending{Known: true}, resumed: map[regie.ID]bool{},
		counted: map[regie.ID]regie.Spending{}, today: today,
	}
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

// cost is what the chat has cost, and of the caps the one that is reached first if it goes on like
// this.
func (g *meter) cost(m *model) string {
	spent := g.spent()
	nearest := g.nearest(m.Round, spent)
	if nearest.most == 0 && !chat.Paid(spent) {
		return ""
	}
	out := chat.Cost(m.Text, regie.Spending{Cost: spent.Cost, Known: spent.Known})
	has, most := regie.Dollars(nearest.has), regie.Dollars(nearest.most)
	switch {
	case nearest.most == 0:
		return out
	case nearest.of == ofRound:
		return out + " · " + m.Text.T("this run $%s of $%s", has, most)
	case nearest.of == ofWorkspace:
		return out + " · " + m.Text.T("today here $%s of $%s", has, most)
	case nearest.of == ofDay:
		return out + " · " + m.Text.T("today $%s of $%s", has, most)
	default:
		return out + m.Text.T(" of $%s", most)
	}
}

// What a cap bounds.
const (
	ofSession = iota
	ofRound
	ofWorkspace
	ofDay
)

// capped is a cap, and what is spent of it, in millionths of a dollar.
type capped struct {
	of        int
	has, most int64
}

// nearest is the cap of which the largest part is spent; a zero one where there is none.
func (g *meter) nearest(round regie.ID, spent regie.Spending) (out capped) {
	caps := g.today.Caps
	for _, c := range []capped{
		{ofSession, spent.Cost, caps.Session},
		{ofRound, g.counted[round].Cost, caps.Round},
		{ofWorkspace, g.today.Workspace.Cost, caps.Workspace},
		{ofDay, g.today.All.Cost, caps.Day},
	} {
		if c.of == ofRound && round.IsZero() {
			continue
		}
		if c.most > 0 && (out.most == 0 || float64(c.has)*float64(out.most) > float64(out.has)*float64(c.most)) {
			out = c
		}
	}
	return out
}

// spent is what the chat has cost, the run that is under way included.
func (g *meter) spent() regie.Spending {
	out := g.before
	for _, s := range g.counted {
		out.Cost += s.Cost
		out.Due += s.Due
		out.Known = out.Known && s.Known
	}
	return out
}

// measure reads what a round has cost, and what today has: of all rounds where it is zero.
func (m *model) measure(round regie.ID) {
	session, root := m.Session, m.Request.Root
	m.meter.asked++
	number := m.meter.asked
	m.Do(chat.Beside, func(ctx context.Context) func() {
		var view store.RoundView
		var err error
		if !round.IsZero() {
			view, err = m.Control.Get(ctx, round)
		}
		today, failed := m.Control.Spent(ctx, root)
		return func() {
			if session != m.Session || number < m.meter.heard { // one that was asked later is here already
				return
			}
			m.meter.heard = number
			if err == nil && !round.IsZero() {
				m.meter.round(round, view.Spent, view.Round.Limits)
			}
			if failed == nil {
				m.meter.today = today
			}
		}
	})
}

// bounds reads what bounds a round's prompts, and which model it was asked with: a size, or no word
// at all, stands for one that only the engine knows.
func (m *model) bounds(round regie.ID) {
	if m.meter.budget > 0 && m.meter.model != "" && m.meter.chosen == asksFor(&m.Request) {
		return
	}
	session, asked := m.Session, asksFor(&m.Request)
	m.Do(chat.Beside, func(ctx context.Context) func() {
		view, err := m.Control.Get(ctx, round)
		return func() {
			if err == nil && session == m.Session {
				m.meter.budget = int64(view.Round.Limits.ContextTokens)
				m.meter.provider, m.meter.model, m.meter.chosen = view.Round.Provider, view.Round.Model, asked
			}
		}
	})
}

// round takes in what a round has cost until now.
func (g *meter) round(id regie.ID, spent regie.Spending, limits regie.Limits) {
	g.budget = int64(limits.ContextTokens)
	if !g.resumed[id] {
		g.counted[id] = spent
	}
}

// takenUp begins with what a chat has cost that goes on, and with its rounds that have ended.
func (g *meter) takenUp(past *chat.Past) {
	g.before = past.View.Spent
	for i := range past.View.History {
		if round := &past.View.History[i]; round.State == regie.RoundEnded {
			g.resumed[round.ID] = true
		}
	}
	for i := range past.Rounds {
		if view := &past.Rounds[i]; !g.resumed[view.Round.ID] { // it goes on, and is measured
			g.counted[view.Round.ID] = view.Spent
			g.before.Cost -= view.Spent.Cost
			g.before.Due -= view.Spent.Due
		}
	}
}

// answers is the model that answers the next message, as far as that is known: what the newest run
// was asked with, unless the person has chosen another one since, what this chat asks for, or what
// the engine has.
func (m *model) answers() (provider, model string) {
	switch {
	case m.meter.model != "" && m.meter.chosen == asksFor(&m.Request):
		return m.meter.provider, m.meter.model
	case m.Request.Model != "":
		return m.Request.Provider, m.Request.Model
	}
	return chat.EngineModel(m.engine, m.Request.Agent)
}

// asksFor is what the person has chosen for the next message.
func asksFor(in *dispatch.RunRequest) string { return in.Provider + "/" + in.Model }

// engineHas asks what answers where the chat has no model of its own. A server that does not say is
// told of with the first message, not here.
func (m *model) engineHas() {
	if m.Request.Model != "" {
		return
	}
	m.Do(chat.Beside, func(ctx context.Context) func() {
		agents, err := m.Control.Agents(ctx)
		return func() {
			if err == nil {
				m.engine = agents
			}
		}
	})
}
