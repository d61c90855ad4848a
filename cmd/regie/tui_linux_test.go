package main

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
)

// TestScreenAnswer shows an answer of 500 lines: each of them stands once in the scrollback, after
// the terminal was made narrower and wider too.
func TestScreenAnswer(t *testing.T) {
	t.Parallel()
	for _, row := range append(slices.Clone(screens), screens[0].at(40)) {
		t.Run(fmt.Sprintf("%s-%d", row.lang, row.columns), func(t *testing.T) {
			t.Parallel()
			s := newStage(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				for i := range 500 {
					piece(w, map[string]any{"content": fmt.Sprintf("line %d of it, été 日本\n\n", i+1)})
				}
				finish(w, "stop")
			})
			s.env = append(s.env, "REGIE_LANG="+row.lang)
			p := emulator(s, row.columns, 24, "chat")
			p.sees("›", row.ready)
			p.enter("five hundred lines, please")
			p.sees("line 500 of it, été 日本", row.ready)
			check := func() {
				t.Helper()
				var wanted, got []string
				for i := range 500 {
					wanted = append(wanted, fmt.Sprintf("line %d of it, été 日本", i+1))
				}
				for line := range strings.SplitSeq(p.joined(), "\n") {
					if strings.HasPrefix(line, "line ") {
						got = append(got, strings.TrimRight(line, " "))
					}
				}
				if strings.Join(got, "\n") != strings.Join(wanted, "\n") {
					t.Errorf("the scrollback holds %d lines of 500:\n%s", len(got), strings.Join(got, "\n"))
				}
				p.once("› five hundred lines, please")
				p.once(row.ready)
			}
			check()
			p.types("a draft that is longer than a narrow terminal is wide, so that it is broken")
			p.until("the draft", func() bool { return strings.Contains(strings.Join(strings.Fields(p.screen()), ""), "broken") })
			for _, size := range []int{60, 30, row.columns} {
				p.resize(size, 20)
				p.press("x")
				p.until("the key", func() bool { return strings.Contains(strings.Join(strings.Fields(p.screen()), ""), "brokenx") })
				p.press("BSpace")
				check()
			}
			p.press("C-c", "C-d")
			p.ends(0)
		})
	}
}

// TestScreenApproval answers calls in several ways; the golden files show the whole of it.
func TestScreenApproval(t *testing.T) {
	t.Parallel()
	for _, row := range screens {
		t.Run(fmt.Sprintf("%s-%d", row.lang, row.columns), func(t *testing.T) {
			t.Parallel()
			s := newStage(t,
				reply("I write \x1b[2Jfour files.", wanted{"a", "a.txt", "one\n"}, wanted{"b", "b.txt", "two\n"}, wanted{"c", "c.txt", "three\n"}, wanted{"d", "d.txt", "fo\x1bu\u202er\n"}),
				reply("And two more.", wanted{"e", "docs/e.txt", "five\n"}, wanted{"f", "docs/f.txt", "six\n"}),
				reply("All **done**."))
			s.env = append(s.env, "EDITOR=sed -i 's/\"two/\"zwei/'", "REGIE_LANG="+row.lang)
			p := emulator(s, row.columns, 40, "chat")
			p.sees("›", "/help")
			p.enter("write four files")
			p.sees("+one", "[l]")
			p.types("yes, but") // the beginning of a message is no answer
			p.sees("› yes, but", "Tab")
			p.press("C-u")
			p.sees("+one", "[l]")
			p.press("y")
			p.sees("+two", "[l]")
			p.press("e")
			p.sees("+zwei", "[y]", "[l]")
			p.press("y")
			p.sees("+three", "[l]")
			p.press("r")
			p.sees("[E")
			p.types("not that one")
			p.press("Enter")
			p.sees("+fo␛u<U+202E>r", "[l]", "DENIED  [1]")
			p.press("N")
			p.sees("+five", "[l]")
			p.press("s")
			p.sees("▸ 1")
			p.press("Down", "Down")
			p.sees("▸ 3")
			p.press("Enter")
			p.sees("+six", "▸ 3") // it was not shown before
			p.press("Enter")
			p.sees("All done.", "/help")
			p.leaves()
			for name, want := range map[string]string{"a.txt": "one\n", "b.txt": "zwei\n", "c.txt": "", "d.txt": "", "docs/e.txt": "five\n", "docs/f.txt": "six\n"} {
				s.holds(name, want)
			}
			if !strings.Contains(s.read(), "not that one") {
				t.Error("the model is not told why a call was denied")
			}
			p.golden(fmt.Sprintf("approval-%s-%d", row.lang, row.columns))
		})
	}
}

// TestScreenQuestion answers questions by choice, by several, and in the person's own words.
func TestScreenQuestion(t *testing.T) {
	t.Parallel()
	s := newStage(t,
		asks(`{"question": "Which colour?", "options": ["red", "green"]}`),
		asks(`{"question": "Which of them?", "options": ["one", "two", "three"], "allow_multiple": true, "allow_free_text": true}`),
		reply("Thank you."))
	p := chatAt(s, 80, 30)
	p.enter("ask me")
	p.sees("Which colour?", "▸ 1  red", "2  green", "[Enter] answer")
	p.press("Down")
	p.sees("▸ 2")
	p.press("Enter")
	p.sees("Which of them?", "▸ ☐ 1  one", "[t]")
	p.press("1")
	p.press("3")
	p.sees("☑ 1  one", "☑ 3  three")
	p.press("Enter")
	p.sees("→ one, three", "Thank you.", "ready")
	p.leaves()
}

// asks has the model ask the person something.
func asks(arguments string) http.HandlerFunc {
	return calls("", called{arguments[:20], "session__ask_user", arguments})
}

// TestScreenKilled kills the terminal's program in the middle of an answer and goes on with it in
// another one: what was said stands there, and the answer goes on.
func TestScreenKilled(t *testing.T) {
	t.Parallel()
	for _, row := range screens {
		t.Run(fmt.Sprintf("%s-%d", row.lang, row.columns), func(t *testing.T) {
			t.Parallel()
			let := make(chan struct{})
			s := newStage(t, reply("The first answer."), begins("It begins, ", "and it ends.", let))
			s.env = append(s.env, "REGIE_LANG="+row.lang)
			p := emulator(s, row.columns, 24, "chat")
			p.sees("›", row.ready)
			p.enter("one")
			p.sees("The first answer.", row.ready)
			p.enter("two")
			p.sees("It begins,", row.working)
			p.tmux("send-keys", "-t", p.name, "C-z") // does nothing
			pid := strings.TrimSpace(p.tmux("display-message", "-p", "-t", p.name, "#{pane_pid}"))
			kill(t, pid)
			p.sees("exit=137")
			again := emulator(s, row.columns, 24, "chat", "-c")
			again.sees("› one", "The first answer.", "› two")
			close(let)
			again.sees("It begins, and it ends.", row.ready)
			again.once("The first answer.")
			again.once("› two")
			again.once("It begins, and it ends.")
			again.leaves()
			again.golden(fmt.Sprintf("resumed-%s-%d", row.lang, row.columns))
		})
	}
}

// child is the process below a shell.
func child(t *testing.T, shell string) string {
	t.Helper()
	out, err := os.ReadFile("/proc/" + shell + "/task/" + shell + "/children")
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// kill kills the program below a shell.
func kill(t *testing.T, shell string) {
	t.Helper()
	pid, err := strconv.Atoi(child(t, shell))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

// TestScreenQueue queues a message while the agent works, interrupts it, and has a second terminal
// on the same chat.
func TestScreenQueue(t *testing.T) {
	t.Parallel()
	let := make(chan struct{})
	defer close(let)
	var begun atomic.Bool // an answer that was interrupted is no reply in the thread
	s := newStage(t, reply("Hello."), func(w http.ResponseWriter, r *http.Request) {
		if begun.Swap(true) {
			reply("The second one.")(w, r)
			return
		}
		begins("It begins, ", "and it ends.", let)(w, r)
	}, reply("Said elsewhere."))
	p := chatAt(s, 100, 30)
	p.enter("hello")
	p.sees("Hello.", "ready")
	other := emulator(s, 100, 30, "chat", "-c")
	other.sees("› hello", "Hello.", "ready")
	p.enter("begin")
	p.sees("It begins,", "working")
	other.sees("› begin", "It begins,")
	p.enter("and then this")
	p.sees("⏳ and then this", "queued")
	other.sees("⏳ and then this")
	p.press("Escape")
	p.sees("interrupted", "› and then this", "The second one.", "ready")
	other.sees("interrupted", "› and then this", "The second one.", "ready")
	other.enter("from the other")
	p.sees("› from the other", "Said elsewhere.", "ready")
	for _, text := range []string{"› hello", "› begin", "› and then this", "The second one.", "› from the other", "Said elsewhere."} {
		p.once(text)
		other.once(text)
	}
	other.press("C-c", "C-c")
	other.ends(0)
	p.types("a draft")
	p.press("C-c")
	p.gone("a draft")
	p.press("C-c")
	p.sees("Ctrl-C once more leaves")
	p.press("C-c")
	p.ends(0)
}
