package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestScreenResized changes the size of the terminal while an answer streams in: whatever was
// written before, in between and afterwards is in the scrollback, once, and in its order. The race
// detector slows the program so much that a resize meets lines on their way, which leaves copies.
func TestScreenResized(t *testing.T) {
	t.Parallel()
	for _, row := range screens {
		t.Run(fmt.Sprintf("%s-%d", row.lang, row.columns), func(t *testing.T) {
			t.Parallel()
			const each = 25
			sizes := [][2]int{{60, 22}, {40, 12}, {100, 30}, {30, 8}, {120, 50}, {80, 10}, {200, 24}, {50, 24}, {row.columns, 24}}
			goOn := make(chan struct{}, len(sizes)+1)
			s := newStage(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				for i := range each * (len(sizes) + 1) {
					if i%each == 0 {
						<-goOn
					}
					piece(w, map[string]any{"content": fmt.Sprintf("paragraph %d is so long that a narrow terminal breaks it, 日本語 too\n\n", i+1)})
				}
				finish(w, "stop")
			})
			s.env = append(s.env, "REGIE_LANG="+row.lang)
			p := emulator(s, row.columns, 24, "chat")
			p.sees("›", row.ready)
			p.enter("go")
			for i, size := range sizes {
				goOn <- struct{}{}
				first := fmt.Sprintf("paragraph %d is", i*each+1)
				// and the next ones come while the terminal changes
				p.until(first, func() bool { return strings.Contains(p.all(), first) })
				p.resize(size[0], size[1])
			}
			goOn <- struct{}{}
			p.sees(fmt.Sprintf("paragraph %d is", each*(len(sizes)+1)), row.ready)
			said := strings.Join(strings.Fields(p.joined()), " ")
			at := 0
			for i := range each * (len(sizes) + 1) {
				words := fmt.Sprintf("paragraph %d is so long that", i+1)
				found := strings.Index(said, words)
				if n := strings.Count(said, words); n == 0 || n > 1 && !raceDetector || found < at {
					t.Errorf("%q stands there %d times, or not in its place", words, n)
				}
				at = found
			}
			p.leaves()
		})
	}
}

// TestScreenNarrowed makes a terminal narrower while one long paragraph streams in that begins at
// the top of the screen then: it is drawn anew with each line that it grows by, and none of these
// drawings stays in the scrollback. The terminal itself may have moved the paragraph's first broken
// line there.
func TestScreenNarrowed(t *testing.T) {
	t.Parallel()
	const words, each = 160, 8 // which is a line, when it is narrow
	goOn := make(chan struct{})
	s := newStage(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range words {
			if i > words/2 && i%each == 0 {
				<-goOn
			}
			piece(w, map[string]any{"content": fmt.Sprintf("word%d ", i)})
		}
		finish(w, "stop")
	})
	p := emulator(s, 80, 24, "chat")
	p.sees("›", "ready")
	p.enter("go")
	first := (words/2 + each) / each * each
	p.sees(fmt.Sprintf("word%d", first-1), "working 1 s") // all that was drawn is on the terminal by then
	p.resize(60, 24)
	for i := first; i < words; i += each {
		goOn <- struct{}{}
		p.sees(fmt.Sprintf("word%d", i+each-1))
	}
	p.sees("ready")
	said := p.joined()
	if n := strings.Count(said, "word0 "); n > 2 {
		t.Errorf("the paragraph stands there %d times:\n%s", n, said)
	}
	if strings.Contains(said, "Esc interrupts") {
		t.Errorf("a drawing of the status stays there:\n%s", said)
	}
	p.leaves()
}
