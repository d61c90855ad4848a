package dispatch_test

import (
	"errors"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/provider"
)

// TestExpectedReaderMissesNothing streams a piece of a reply before its session's follower has come: it was announced, so it gets it.
// One that was not announced begins where it joins.
func TestExpectedReaderMissesNothing(t *testing.T) {
	enough := errors.New("enough")
	for _, expected := range []bool{true, false} {
		release := make(chan struct{})
		h := newHouse(t, slow{}, func() *provider.Reply { <-release; return answer("Once upon a time.") })
		in := h.world.Submission("tell me a story")
		if expected {
			h.dispatcher.Expect(in.SessionID)
		}
		out, err := h.dispatcher.Submit(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		h.hub.Delta(in.SessionID, out.RoundID, 1, provider.Delta{Text: "Once upon"})
		var streamed string
		err = h.dispatcher.Stream(t.Context(), in.SessionID, 0, func(item dispatch.Item) error {
			switch {
			case item.Delta != nil:
				if streamed += item.Delta.Content; streamed == "Once upon" {
					close(release)
				}
			case item.Event.Type == regie.EventRound && item.Event.Seq == 3 && !expected: // it began
				close(release)
			case item.Event.Type == regie.EventRound && item.Event.Seq > 3: // it ended
				return enough
			}
			return nil
		})
		if !errors.Is(err, enough) || (streamed == "Once upon") != expected {
			t.Errorf("expected %v: %q, %v", expected, streamed, err)
		}
		// The expectation was met: the next reader is one like any other.
		h.hub.Delta(in.SessionID, out.RoundID, 2, provider.Delta{Text: "late"})
		_ = h.dispatcher.Stream(t.Context(), in.SessionID, 0, func(item dispatch.Item) error {
			if item.Delta != nil {
				t.Errorf("a reader that was not announced got %q", item.Delta.Content)
			}
			return enough
		})
	}
}

// TestExpectationEnds announces a reader who never comes: nothing is kept for it beyond its round.
func TestExpectationEnds(t *testing.T) {
	h := newHouse(t, slow{}, func() *provider.Reply { return answer("done") })
	in := h.world.Submission("go")
	h.dispatcher.Expect(in.SessionID)
	out, err := h.dispatcher.Submit(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	h.ended(t, in.SessionID, out.RoundID)
	other := h.world.Submission("go")
	h.dispatcher.Expect(other.SessionID)
	if out, err = h.dispatcher.Submit(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	if err := h.dispatcher.Wait(t.Context(), out.RoundID); err != nil {
		t.Fatal(err)
	}
	h.dispatcher.Close(dispatch.ErrGone) // and with it whoever forgets it
	if n := h.hub.Readers(); n != 0 {
		t.Errorf("%d readers are left", n)
	}
}
