package tui

import (
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
)

// A chat that is removed elsewhere says so, and what is being written stands in the prompt of
// another one.
func TestRemovedElsewhere(t *testing.T) {
	c, ids := talked(t, []string{"one"})
	m := newModel(t.Context(), c)
	m.obey(tea.WindowSizeMsg{Width: 80, Height: 24})
	m.Session = ids[0]
	m.Follow(0)
	types(m, "a draft")
	if _, err := c.Control.Remove(t.Context(), dispatch.RemoveRequest{SessionID: ids[0]}); err != nil {
		t.Fatal(err)
	}
	feed := m.Feed
	for m.Feed == feed {
		m.obey(m.next()())
	}
	feed.Stop()
	if m.leaving || m.Session == ids[0] || m.draft.value() != "a draft" || !m.Last.IsZero() {
		t.Errorf("it leaves: %v, the prompt holds %q", m.leaving, m.draft.value())
	}
	if out := strings.Join(m.paper.out, "\n"); !strings.Contains(out, "removed elsewhere") {
		t.Errorf("it says\n%s", out)
	}
	m.ended(m.Feed, regie.Errorf(regie.CodeDatabaseLocked, "gone"))
	if !m.leaving || m.err == nil {
		t.Error("another end leaves the chat standing")
	}
}
