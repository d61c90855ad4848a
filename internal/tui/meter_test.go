package tui

import (
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/i18n"
	"github.com/regie-run/regie/internal/store"
)

// TestMeter has the status line say what a chat costs while it runs.
func TestMeter(t *testing.T) {
	const dollar = 1_000_000
	old, running, fresh := regie.NewID(), regie.NewID(), regie.NewID()
	known := func(cost int64) regie.Spending { return regie.Spending{Cost: cost, Known: true} }
	for _, c := range []struct {
		name  string
		past  *chat.Past
		costs map[regie.ID]regie.Spending
		want  string
	}{
		{name: "nothing spent"},
		{name: "what is spent", costs: map[regie.ID]regie.Spending{old: known(dollar), fresh: known(dollar / 2)}, want: "cost $1.50"},
		{name: "taken up in the middle of a run", past: &chat.Past{
			View:   store.SessionView{Spent: known(3 * dollar), History: []regie.Round{{ID: old, State: regie.RoundEnded}, {ID: running, State: regie.RoundRunning}}},
			Rounds: []store.RoundView{{Round: regie.Round{ID: old, State: regie.RoundEnded}, Spent: known(2 * dollar)}, {Round: regie.Round{ID: running}, Spent: known(dollar)}},
		}, costs: map[regie.ID]regie.Spending{old: known(2 * dollar), running: known(4 * dollar)}, want: "cost $6.00"},
		{name: "a cost that nobody knows", costs: map[regie.ID]regie.Spending{old: known(dollar), fresh: {}}, want: "cost unknown, at least $1.00"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := &model{Conversation: &chat.Conversation{Config: chat.Config{Text: i18n.New("en")}}, meter: newMeter()}
			if c.past != nil {
				m.meter.takenUp(c.past)
			}
			for id, spent := range c.costs {
				m.meter.addRound(&store.RoundView{Round: regie.Round{ID: id}, Spent: known(0)}) // once more, with what it has cost by then
				m.meter.addRound(&store.RoundView{Round: regie.Round{ID: id}, Spent: spent})
			}
			if got := m.meter.describeCost(m); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
