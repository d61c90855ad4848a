package dispatch

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
)

// TestSlowReader keeps a whole reply of many pieces for a reader that comes late, in its order, in
// few deltas and within bounds.
func TestSlowReader(t *testing.T) {
	hub, session, round := NewHub(), regie.NewID(), regie.NewID()
	r := hub.addReader(session)
	var want, got strings.Builder
	say := func(exchange int, d provider.Delta) {
		fmt.Fprintf(&want, "%s", d.Text+d.Thinking)
		hub.Delta(session, round, exchange, d)
	}
	for i := range 2_000 {
		say(1, provider.Delta{Thinking: fmt.Sprintf("thought %d,", i)})
	}
	for i := range 5_000 {
		say(1, provider.Delta{Text: fmt.Sprintf("word %d ", i)})
	}
	say(1, provider.Delta{Thinking: "one more thought"})
	say(2, provider.Delta{Text: strings.Repeat("long", maxPiece)})
	say(2, provider.Delta{Text: "."})
	heard := r.takeHeard(0).deltas
	for i, d := range heard {
		if d.RoundID != round || d.Content != "" && d.Thinking != "" || (d.Exchange == 2) != (i >= len(heard)-2) {
			t.Errorf("delta %d is %.80q, %.80q of exchange %d", i, d.Content, d.Thinking, d.Exchange)
		}
		got.WriteString(d.Content + d.Thinking)
	}
	if got.String() != want.String() || len(heard) > 200 {
		t.Errorf("%d bytes were said, %d heard in %d deltas", want.Len(), got.Len(), len(heard))
	}
	for range 100_000 {
		hub.Delta(session, round, 3, provider.Delta{Text: strings.Repeat("x", 100)})
	}
	if heard := r.takeHeard(0).deltas; len(heard) != maxDeltas {
		t.Errorf("%d deltas wait for a reader that never comes", len(heard))
	}
	hub.Delta(session, round, 4, provider.Delta{Text: "a"})
	hub.Delta(session, round, 4, provider.Delta{Text: "b"})
	if heard := r.takeHeard(0).deltas; len(heard) != 2 {
		t.Errorf("a reader that keeps up got %d of 2 deltas", len(heard))
	}
}

// TestLateDeltas: what is heard while the log is read comes before the message that it is a part
// of, behind those of earlier replies, and nothing of it is lost with the event that ends the
// stream.
func TestLateDeltas(t *testing.T) {
	round, other := regie.NewID(), regie.NewID()
	r := NewHub().addReader(regie.NewID())
	for _, d := range []Delta{{Exchange: 1, Content: "first"}, {Exchange: 1, Content: "first, too"}, {Exchange: 2, Content: "second"}, {Exchange: 3, Content: "cut"}} {
		d.RoundID = round
		r.addDelta(d)
	}
	r.addDelta(Delta{RoundID: other, Exchange: 1, Content: "another round"})
	event := func(seq int64, kind regie.EventType, body string) regie.Event {
		return regie.Event{Seq: seq, Type: kind, Body: []byte(body)}
	}
	message := `{"sender":"%s","round_id":"` + round.String() + `","exchange":%d}`
	events := []regie.Event{
		event(5, regie.EventMessage, fmt.Sprintf(message, "USER", 1)),
		event(6, regie.EventMessage, fmt.Sprintf(message, "AI", 1)),
		event(7, regie.EventToolResult, `{}`),
		event(8, regie.EventMessage, fmt.Sprintf(message, "SYSTEM", 1)),
		event(9, regie.EventMessage, fmt.Sprintf(message, "AI", 2)),
		event(10, regie.EventRound, `{"round_id":"`+round.String()+`","state":"ENDED"}`),
	}
	var got []string
	left, after, err := r.sendEvents(events, nil, 4, func(item Item) error {
		if item.Event != nil {
			got = append(got, fmt.Sprint(item.Event.Seq))
		} else {
			got = append(got, item.Delta.Content)
		}
		return nil
	})
	if len(left) != 1 || left[0].Content != "another round" {
		t.Errorf("left is %+v", left)
	}
	if want := "5|first|first, too|6|7|8|second|9|cut|10"; err != nil || after != 10 || strings.Join(got, "|") != want {
		t.Errorf("%v, %d: told %s, want %s", err, after, strings.Join(got, "|"), want)
	}
}

// TestToldOfCommits: a reader that is told what comes next in its log does not read that; what is
// out of turn, told twice or too much it reads.
func TestToldOfCommits(t *testing.T) {
	session := regie.NewID()
	added := func(bytes int, seqs ...int64) (events []regie.Event) {
		for _, seq := range seqs {
			events = append(events, regie.Event{
				SessionID: session, Seq: seq, Type: regie.EventNotice, Time: time.Now(),
				Body: []byte(strings.Repeat("x", bytes)),
			})
		}
		return events
	}
	many := make([]int64, eventPage+1)
	for i := range many {
		many[i] = int64(i) + 8
	}
	for name, c := range map[string]struct {
		commits [][]regie.Event
		told    []int64
		reads   bool
	}{
		"what comes next":       {[][]regie.Event{added(1, 8, 9), added(1, 10)}, []int64{8, 9, 10}, false},
		"what was read already": {[][]regie.Event{added(1, 6, 7, 8)}, []int64{8}, false},
		"all of it was read":    {[][]regie.Event{added(1, 6, 7)}, nil, false},
		"out of turn":           {[][]regie.Event{added(1, 9), added(1, 8)}, nil, true},
		"behind a gap":          {[][]regie.Event{added(1, 9)}, []int64{9}, true},
		"not known":             {[][]regie.Event{added(1, 8), nil}, nil, true},
		"too many":              {[][]regie.Event{added(1, many...)}, nil, true},
		"too much":              {[][]regie.Event{added(maxTold, 8, 9)}, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			hub := NewHub()
			r := hub.addReader(session)
			r.takeHeard(0) // a new reader reads the log
			for _, a := range c.commits {
				hub.Commit(session, a)
			}
			heard := r.takeHeard(7)
			var told []int64
			for i := range heard.events {
				told = append(told, heard.events[i].Seq)
			}
			if heard.grew != c.reads || !slices.Equal(told, c.told) {
				t.Errorf("told %v, reads the log: %v", told, heard.grew)
			}
			if again := r.takeHeard(7); again.grew || len(again.events) > 0 {
				t.Errorf("told again: %+v", again)
			}
		})
	}
}
