package chat

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/text"
)

// TestFold shows the first calls that are over the limit of a reply, and how many more there were,
// before whatever comes next.
func TestFold(t *testing.T) {
	result := func(code regie.NotRunCode) *regie.Event {
		body, err := json.Marshal(map[string]any{"tool": "files.read_file", "state": regie.CallNotRun, "code": code})
		if err != nil {
			t.Fatal(err)
		}
		return &regie.Event{Type: regie.EventToolResult, Body: body}
	}
	printer := text.New("en")
	for over, want := range map[int]string{0: "", 2: "", 3: "", 4: "more calls over the limit: 1", 8990: "more calls over the limit: 8,987"} {
		var f Fold
		shown := 0
		for range over {
			shown += len(f.Lines(printer, result(regie.NotRunOverLimit)))
		}
		if shown != min(over, maxOverLimit) {
			t.Errorf("%d calls: %d lines", over, shown)
		}
		lines := f.Lines(printer, result(regie.NotRunDenied))
		if said := strings.Join(lines[:len(lines)-1], ""); !strings.Contains(said, want) || want == "" && said != "" {
			t.Errorf("%d calls: %q, want %q", over, said, want)
		}
		if lines := f.Lines(printer, &regie.Event{Type: regie.EventMessage, Body: []byte("{}")}); len(lines) != 0 {
			t.Errorf("%d calls: told twice: %q", over, lines)
		}
	}
}
