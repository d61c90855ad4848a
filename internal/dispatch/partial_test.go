package dispatch

import (
	"strings"
	"testing"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
)

// TestJoinInTheMiddle: who joins while a reply streams in first gets what was said so far (spec
// 5.4), once, and nothing of a reply that the log has, that was cut or that is an older one's.
func TestJoinInTheMiddle(t *testing.T) {
	session, round := regie.NewID(), regie.NewID()
	added := func(kind regie.EventType, body string) []regie.Event {
		return []regie.Event{{SessionID: session, Seq: 1, Type: kind, Time: time.Now(), Body: []byte(body)}}
	}
	for name, c := range map[string]struct {
		then func(h *Hub)
		want string
	}{
		"in the middle":            {func(*Hub) {}, "why|one two "},
		"behind a user's word":     {func(h *Hub) { h.Commit(session, added(regie.EventMessage, `{"sender":"USER"}`)) }, "why|one two "},
		"beside another's":         {func(h *Hub) { h.Commit(regie.NewID(), added(regie.EventMessage, `{"sender":"AI"}`)) }, "why|one two "},
		"behind its message":       {func(h *Hub) { h.Commit(session, added(regie.EventMessage, `{"sender":"AI"}`)) }, ""},
		"behind a cut":             {func(h *Hub) { h.Commit(session, added(regie.EventStreamReset, `{}`)) }, ""},
		"behind its round":         {func(h *Hub) { h.Commit(session, added(regie.EventRound, `{"state":"ENDED"}`)) }, ""},
		"behind what nobody knows": {func(h *Hub) { h.Commit(session, nil) }, ""},
		"in the next reply":        {func(h *Hub) { h.Delta(session, round, 2, provider.Delta{Text: "three"}) }, "three"},
		"of one that is too long":  {func(h *Hub) { h.Delta(session, round, 1, provider.Delta{Text: strings.Repeat("x", maxPartial)}) }, "why|one two "},
	} {
		t.Run(name, func(t *testing.T) {
			hub := NewHub()
			hub.Delta(session, round, 1, provider.Delta{Thinking: "why"})
			hub.Delta(session, round, 1, provider.Delta{Text: "one "})
			hub.Delta(session, round, 1, provider.Delta{Text: "two "})
			c.then(hub)
			var got []string
			r := hub.addReader(session)
			for _, d := range r.takeHeard(0).deltas {
				got = append(got, d.Content+d.Thinking)
			}
			if strings.Join(got, "|") != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			hub.removeReader(session, r)
		})
	}
}

// TestNobodyListens: in BACKEND mode no delta is made for anybody (decision 28); who reads a
// session hears of no other one.
func TestNobodyListens(t *testing.T) {
	hub, session, other := NewHub(), regie.NewID(), regie.NewID()
	r := hub.addReader(other)
	r.takeHeard(0)
	round := regie.NewID()
	hub.Delta(session, round, 1, provider.Delta{Text: "a"})
	if allocs := testing.AllocsPerRun(1000, func() { hub.Delta(session, round, 1, provider.Delta{Text: ""}) }); allocs != 0 {
		t.Errorf("a delta that nobody hears costs %v allocations", allocs)
	}
	if h := r.takeHeard(0); len(h.deltas) != 0 || len(h.events) != 0 || h.grew {
		t.Errorf("the reader of another session heard %+v", h)
	}
	select {
	case <-r.wake:
		t.Error("the reader of another session was woken")
	default:
	}
}
