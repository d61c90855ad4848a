package app_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/regie-run/regie/internal/access"
	"github.com/regie-run/regie/internal/store"
)

// TestMetrics runs something on a server and reads what was counted; who has no token reads
// nothing.
func TestMetrics(t *testing.T) {
	t.Parallel()
	h := newHarness(t, newModel(t, replyWith("I look.", call{"a", "files__list_files", `{}`}, call{"b", "files__reed", `{}`}), replyWith("Done."))).serve("127.0.0.1:0")
	session := h.session()
	h.read("POST", "/api/v1/sessions/"+session+"/messages", `{"content":"look"}`, nil, carrying("Accept", "text/event-stream"))
	rounds, err := h.engine.Service().Rounds.List(access.AsOwner(t.Context()), store.RoundFilter{})
	// it is counted once nothing of it runs
	if err != nil || len(rounds) != 1 || h.engine.Wait(t.Context(), rounds[0].Round.ID) != nil {
		t.Fatalf("%d rounds, %v", len(rounds), err)
	}
	h.json("GET", "/metrics", "", 401, nil, func(r *http.Request) { r.Header.Del("Authorization") })
	status, data := h.said("GET", "/metrics", "")
	if status != 200 {
		t.Fatal(status)
	}
	for _, want := range []string{
		`regie_rounds_started_total{reason="USER_MESSAGE"} 1`, `regie_rounds_ended_total{reason="ANSWERED"} 1`, "regie_exchanges_total 2",
		`regie_tool_calls_total{state="SUCCEEDED",tool="files.list_files"} 1`, `regie_tool_calls_caught_total{code="OUT_OF_SCOPE"} 1`,
		`regie_tokens_total{kind="input",model="scripted",provider="openai"} `,
		`regie_round_exchanges_sum 2`, `regie_round_exchanges_count 1`, `regie_queue_length{kind="chat"} 0`, `regie_queue_oldest_seconds{kind="automation"} 0`,
		`regie_slots_taken{kind="api"} 0`, "regie_users_connected 1", `regie_rounds_ended_total{reason="WATCHDOG"} 0`,
		`regie_replies_of_unknown_cost_total{model="scripted",provider="openai"} 2`, `regie_waiting{kind="approval"} 0`, "regie_streams 0", "regie_spent_today_usd 0",
		`regie_http_requests_total{method="POST",status="201"} 1`, `regie_http_requests_total{method="GET",status="401"} 1`,
	} {
		if !strings.Contains(data, want) {
			t.Errorf("missing: %s", want)
		}
	}
	if t.Failed() {
		for line := range strings.Lines(data) {
			if strings.HasPrefix(line, "regie_") {
				t.Log(strings.TrimSpace(line))
			}
		}
	}
}

// handed is how many deltas were handed to streams.
func (h *house) handed() float64 {
	const name = "regie_stream_deltas_total"
	h.t.Helper()
	_, data := h.said("GET", "/metrics", "")
	for line := range strings.Lines(data) {
		if text, is := strings.CutPrefix(line, name+" "); is {
			if value, err := strconv.ParseFloat(strings.TrimSpace(text), 64); err == nil {
				return value
			}
		}
	}
	h.t.Fatalf("there is no metric %s", name)
	return 0
}
