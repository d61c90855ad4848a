package tui

import (
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
)

// A chat whose model sends nothing says so, and which key stops it, until the model is at work
// again.
func TestSilentModel(t *testing.T) {
	c := engine(t, nil)
	m := newModel(t.Context(), c)
	m.handleMessage(tea.WindowSizeMsg{Width: 80, Height: 24})
	m.State = regie.SessionActive
	for _, want := range []struct {
		delta dispatch.Delta
		says  string
	}{
		{dispatch.Delta{Silent: 30}, "the model has not answered for 30 s"},
		{dispatch.Delta{}, "working"},
	} {
		m.handleItem(dispatch.Item{Delta: &want.delta})
		works(m, m.takeCommands())
		if out := paintLine(m.renderStatus(80), false); !strings.Contains(out, want.says) || strings.Contains(out, "Esc stops") != (want.delta.Silent > 0) {
			t.Errorf("the status says %q, want %q", out, want.says)
		}
	}
}
