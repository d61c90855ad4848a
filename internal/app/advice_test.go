package app_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/regie-run/regie"
)

// TestAdvice: after the last try people are told what they can do, and at each that the server has
// not failed in another way than it has.
func TestAdvice(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		step   http.HandlerFunc
		says   string
		status int
	}{
		"a fault":    {refusesWith(500, "on fire"), "on fire. The fault is the server's own: look at what it logs", 500},
		"overloaded": {refusesWith(503, "busy"), "busy. Try again in a while, or use another model", 503},
		"too fast":   {refusesWith(429, "slow down."), "slow down. Its server takes no more requests for now: try again in a minute", 429},
		"overloaded in the stream": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = w.Write([]byte("data: {\"error\":{\"message\":\"much to do\",\"type\":\"overloaded_error\"}}\n\n"))
		}, "much to do. Try again in a while", 503},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, newModel(t, c.step))
			conn := b.impatient()
			defer conn.Close()
			run, err := conn.Submit(t.Context(), b.request(everything))
			if err != nil {
				t.Fatal(err)
			}
			view := b.await(conn, run)
			if expect(t, view, regie.EndProviderError); !strings.Contains(view.Round.EndNote.String(), c.says) {
				t.Errorf("told %q", view.Round.EndNote)
			}
			resets := 0
			for _, e := range b.eventsOf(conn, view) {
				var body struct{ Status int }
				if e.Type == regie.EventStreamReset && json.Unmarshal(e.Body, &body) == nil && body.Status == c.status {
					resets++
				}
			}
			if resets != 2 {
				t.Errorf("%d of 2 tries were told with their status", resets)
			}
		})
	}
}
