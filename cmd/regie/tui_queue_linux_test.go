package main

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
)

// TestScreenTakeBack takes queued messages back one by one: with Up into the prompt, where it is
// edited, and with /queue. Another terminal on the same chat is told of each.
func TestScreenTakeBack(t *testing.T) {
	t.Parallel()
	let := make(chan struct{})
	var begun atomic.Bool
	s := newStage(t, reply("Hello."), func(w http.ResponseWriter, r *http.Request) {
		if begun.Swap(true) {
			reply("The rest of it.")(w, r)
			return
		}
		begins("It begins, ", "and it ends.", let)(w, r)
	}, reply("The rest of it."))
	p := chatAt(s, 100, 30)
	p.enter("hello")
	p.sees("Hello.", "ready")
	other := emulator(s, 100, 30, "chat", "-c", "--plain")
	other.sees("Hello.")
	p.enter("begin")
	p.sees("It begins,", "working")
	for _, text := range []string{"first of them", "second of them", "third of them"} {
		p.enter(text)
		p.sees("⏳ " + text)
	}
	p.sees("queued: 3", "Up takes it back")
	p.press("Up")
	p.sees("› third of them", "queued: 2")
	p.gone("⏳ third")
	other.sees("withdrawn, the agent does not read it:", "› third of them")
	p.types(", edited")
	p.press("Enter")
	p.sees("⏳ third of them, edited", "queued: 3")
	p.enter("/queue")
	p.sees("1  first of them", "2  second of them", "3  third of them, edited")
	p.enter("/queue rm 2")
	p.sees("withdrawn, the agent does not read it:", "queued: 2")
	p.enter("/queue rm 9")
	p.sees("there is no such message in the queue")
	other.enter("/queue rm 1")
	other.sees("withdrawn, the agent does not read it:", "› first of them")
	p.sees("queued: 1")
	close(let)
	p.sees("and it ends.", "› third of them, edited", "The rest of it.", "ready")
	p.enter("/queue")
	p.sees("no message is queued")
	sent := s.read()
	for text, want := range map[string]bool{"third of them, edited": true, "first of them": false, "second of them": false} {
		if strings.Contains(sent, text) != want {
			t.Errorf("the model was told %q: %v, wanted %v", text, !want, want)
		}
	}
	other.leaves()
	p.leaves()
}
