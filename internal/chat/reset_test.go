package chat_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/text"
)

// TestResetLine: only a server that says so is told to be overloaded.
func TestResetLine(t *testing.T) {
	for status, want := range map[int]string{
		503: "overloaded", 529: "overloaded", 429: "takes no more requests", 500: "answered 500", 502: "answered 502", 0: "reported an error",
	} {
		event := regie.Event{Type: regie.EventStreamReset, Body: fmt.Appendf(nil, `{"code":"PROVIDER_BUSY","status":%d}`, status)}
		line, _ := chat.ResetLine(text.New("en"), &event)
		if !strings.Contains(line, want) || strings.Contains(line, "overloaded") != (want == "overloaded") {
			t.Errorf("%d: %s", status, line)
		}
	}
}

// TestResetLineOfCut: what has cut a model call is said, and not that the model is asked at once by
// who was stopped.
func TestResetLineOfCut(t *testing.T) {
	for code, want := range map[regie.Code]string{
		regie.CodeStopRequested: "the run was paused", regie.CodeEngineGone: "the process that asked the model has ended", regie.CodeProviderBroken: "the connection broke",
	} {
		line, _ := chat.ResetLine(text.New("en"), &regie.Event{Type: regie.EventStreamReset, Body: fmt.Appendf(nil, `{"code":%q}`, code)})
		if !strings.Contains(line, want) || strings.Contains(line, "connection") != (code == regie.CodeProviderBroken) {
			t.Errorf("%s: %s", code, line)
		}
	}
}
