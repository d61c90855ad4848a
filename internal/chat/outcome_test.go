package chat

import (
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/text"
)

// TestOutcome_FailedCommand: the line of an agent's command that failed says so, while it is
// watched and later.
func TestOutcome_FailedCommand(t *testing.T) {
	event := regie.Event{Type: regie.EventToolResult, Body: []byte(`{"tool":"shell.shell_exec","about":"git add .","state":"SUCCEEDED","exit":"128"}`)}
	live, is := eventOutcome(&event)
	past := callOutcome(&regie.Call{Tool: "shell.shell_exec", Arguments: `{"command":"git add ."}`, State: regie.CallSucceeded, Result: regie.CommandExit + "128\n"})
	for _, o := range []outcome{live, past} {
		line := o.line(text.New("en"))
		if !is || !strings.Contains(line, "✗ shell.shell_exec git add .") || !strings.Contains(line, "exit code 128") {
			t.Errorf("%q", line)
		}
	}
}
