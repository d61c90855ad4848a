package tui

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
)

// heeds has what happens in the session reach the chat until something is so.
func heeds(t *testing.T, m *model, until func() bool) {
	t.Helper()
	for !until() {
		select {
		case item := <-m.Feed.Items:
			m.see(item)
			works(m, m.drain())
		case err := <-m.Feed.Ended:
			t.Fatal(err)
		}
	}
}

// A run that goes on after a pause is not said to be pausing.
func TestResumed(t *testing.T) {
	c := engine(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = fmt.Fprint(w, `data: {"choices":[{"index":0,"delta":{"content":"Slow"}}]}`+"\n\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	m := newModel(t.Context(), c)
	m.obey(tea.WindowSizeMsg{Width: 80, Height: 24})
	request := c.Request
	request.SessionID, request.ClientID, request.Text = m.Session, regie.NewID().String(), "go"
	run, err := c.Control.Submit(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	m.Follow(0)
	t.Cleanup(m.Feed.Stop)
	heeds(t, m, func() bool { return m.Round == run.RoundID })
	m.Obey("/pause")
	works(m, m.drain())
	heeds(t, m, func() bool { return m.State == regie.SessionPaused })
	m.Obey("/resume")
	works(m, m.drain())
	heeds(t, m, func() bool { return m.State != regie.SessionPaused })
	if out := paint(m.status(80), false); !strings.Contains(out, "working") {
		t.Errorf("the status says %q", out)
	}
}

// A chat whose model sends nothing says so, and which key stops it, until the model is at work
// again.
func TestSilentModel(t *testing.T) {
	c := engine(t, nil)
	m := newModel(t.Context(), c)
	m.obey(tea.WindowSizeMsg{Width: 80, Height: 24})
	m.State = regie.SessionActive
	for _, want := range []struct {
		delta dispatch.Delta
		says  string
	}{
		{dispatch.Delta{Silent: 30}, "the model has not answered for 30 s"},
		{dispatch.Delta{}, "working"},
	} {
		m.see(dispatch.Item{Delta: &want.delta})
		works(m, m.drain())
		if out := paint(m.status(80), false); !strings.Contains(out, want.says) || strings.Contains(out, "Esc stops") != (want.delta.Silent > 0) {
			t.Errorf("the status says %q, want %q", out, want.says)
		}
	}
}
