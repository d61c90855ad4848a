package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestScreenBeside writes notes while an answer streams in: they stand above the block that is
// open, and code, table and sentence go on as they were.
func TestScreenBeside(t *testing.T) {
	t.Parallel()
	const before, after = "A sentence that goes ", "on.\n\n```python\ndef one():\n    return"
	const then, end = " 1\n```\n\n| col | val |\n|---|---|\n| a ", "| b |\n\nThe end."
	goOn := make(chan struct{}, 3)
	s := newStage(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, said := range []string{before, after, then, end} {
			piece(w, map[string]any{"content": said})
			if said == end {
				break
			}
			select {
			case <-goOn:
			case <-r.Context().Done():
				return
			}
		}
		finish(w, "stop")
	})
	p := chatAt(s, 80, 24)
	p.enter("go")
	for i, seen := range []string{"A sentence that goes", "def one", "col"} {
		p.sees(seen)
		p.enter(fmt.Sprintf("/bogus%d", i))
		p.sees(fmt.Sprintf("there is no /bogus%d", i))
		goOn <- struct{}{}
	}
	p.sees("The end.", "ready")
	all := p.joined()
	for _, whole := range []string{"A sentence that goes on.\n", "def one():\n", "    return 1\n"} {
		if !strings.Contains(all, whole) {
			t.Errorf("%q is broken:\n%s", whole, all)
		}
	}
	if strings.Contains(all, "```") || strings.Contains(all, "|---|") {
		t.Errorf("marks of Markdown are shown:\n%s", all)
	}
	p.leaves()
}

// TestScreenDraftAtApproval clears what was written while an approval waits: neither Esc nor Ctrl-C
// withdraws what is asked.
func TestScreenDraftAtApproval(t *testing.T) {
	t.Parallel()
	s := newStage(t, reply("I write.", wanted{"a", "a.txt", "one\n"}), reply("Done."))
	p := chatAt(s, 80, 24)
	p.enter("write")
	p.sees("[y] once")
	p.types("abc")
	p.sees("› abc")
	p.press("Escape")
	p.sees("Esc once more clears what you wrote")
	p.press("C-c")
	p.gone("abc")
	p.sees("[y] once")
	p.press("y")
	p.sees("Done.", "ready")
	p.leaves()
}
