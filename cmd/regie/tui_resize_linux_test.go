package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestScreenResized changes the size of the terminal between two parts of an answer that streams
// in: whatever was written before, in between and afterwards is in the scrollback, once, and in its
// order.
func TestScreenResized(t *testing.T) {
	t.Parallel()
	resizeEachScreen(t, false, func(n int) bool { return n == 1 })
}

// TestScreenResizedMeanwhile changes the size of the terminal while text is on its way. What the
// program has written for the size before may stay as a copy (docs/design.md, known limits), but
// nothing is lost, and all is in its order.
func TestScreenResizedMeanwhile(t *testing.T) {
	t.Parallel()
	resizeEachScreen(t, true, func(n int) bool { return n > 0 })
}

func resizeEachScreen(t *testing.T, meanwhile bool, right func(n int) bool) {
	t.Helper()
	for _, screen := range screens {
		t.Run(fmt.Sprintf("%s-%d", screen.lang, screen.columns), func(t *testing.T) {
			t.Parallel()
			for words, n := range resizeInAnAnswer(t, screen, meanwhile) {
				if !right(n) {
					t.Errorf("%q stands there %d times", words, n)
				}
			}
		})
	}
}

// resizeInAnAnswer streams an answer in parts and changes the size of the terminal after each,
// meanwhile: as soon as the first line of the part is there. It returns how often each paragraph's
// first words are in the scrollback.
func resizeInAnAnswer(t *testing.T, screen drawn, meanwhile bool) map[string]int {
	t.Helper()
	const each = 25
	sizes := [][2]int{{60, 22}, {40, 12}, {100, 30}, {30, 8}, {120, 50}, {80, 10}, {200, 24}, {50, 24}, {screen.columns, 24}}
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
	s.env = append(s.env, "REGIE_LANG="+screen.lang)
	p := emulator(s, screen.columns, 24, "chat")
	p.sees("›", screen.ready)
	p.enter("go")
	for i, size := range sizes {
		goOn <- struct{}{}
		until := fmt.Sprintf("paragraph %d is", (i+1)*each)
		if meanwhile {
			until = fmt.Sprintf("paragraph %d is", i*each+1)
		}
		p.until(until, func() bool { return strings.Contains(p.all(), until) })
		if !meanwhile {
			p.rests()
		}
		p.resize(size[0], size[1])
		if !meanwhile {
			p.knowsItsSize(size[0], size[1])
			p.rests()
		}
	}
	goOn <- struct{}{}
	p.sees(fmt.Sprintf("paragraph %d is", each*(len(sizes)+1)), screen.ready)
	said := strings.Join(strings.Fields(p.joined()), " ")
	counts := map[string]int{}
	at := 0
	for i := range each * (len(sizes) + 1) {
		words := fmt.Sprintf("paragraph %d is so long that", i+1)
		found := strings.LastIndex(said, words) // copies are above it
		if counts[words] = strings.Count(said, words); found >= 0 && found < at {
			t.Errorf("%q is not in its place", words)
		}
		at = found
	}
	p.leaves()
	return counts
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
