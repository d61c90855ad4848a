package chat

import (
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/i18n"
	"github.com/regie-run/regie/internal/store"
)

// TestCost says what is not known, and never that it was nothing.
func TestCost(t *testing.T) {
	for _, c := range []struct {
		spent regie.Spending
		want  string
	}{
		{regie.Spending{Known: true}, "cost $0.00"},
		{regie.Spending{Cost: 4200, Known: true}, "cost $0.0042"},
		{regie.Spending{Cost: 4200, Known: true, Estimated: 1200}, "cost $0.0042, $0.0012 of it estimated"},
		{regie.Spending{}, "cost unknown"},
		{regie.Spending{Cost: 4200}, "cost unknown, at least $0.0042"},
		{regie.Spending{Cost: 4200, Due: 50_000}, "cost unknown, at least $0.0042"},
	} {
		if got := Cost(i18n.New("en"), c.spent); got != c.want {
			t.Errorf("%+v: %q, want %q", c.spent, got, c.want)
		}
	}
}

// TestToday is silent where nothing was spent and nothing is bounded.
func TestToday(t *testing.T) {
	en := i18n.New("en")
	nothing := store.Spent{Workspace: regie.Spending{Known: true}, All: regie.Spending{Known: true}}
	if got := Today(en, nothing, false); got != "" {
		t.Errorf("%q", got)
	}
	nothing.Caps = regie.Caps{Day: 2_000_000, Workspace: 1_000_000}
	if got, want := Today(en, nothing, false), "today, in this workspace: cost $0.00 of $1.00; everywhere: cost $0.00 of $2.00"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := Today(en, nothing, true), "today, everywhere: cost $0.00 of $2.00"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
