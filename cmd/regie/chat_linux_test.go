package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/regie-run/regie/internal/provider/providertest/strict"
)

// stage is a directory, a data directory and a scripted model for programs at terminals. The
// model's step is the number of replies that the thread holds.
type stage struct {
	t     *testing.T
	dir   string
	env   []string
	steps []http.HandlerFunc

	mu   sync.Mutex
	last string // request
}

func newStage(t *testing.T, steps ...http.HandlerFunc) *stage {
	t.Helper()
	s := &stage{t: t, dir: t.TempDir(), steps: steps}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	if err := os.Mkdir(filepath.Join(s.dir, "work"), 0o700); err != nil {
		t.Fatal(err)
	}
	s.env = []string{"REGIE_DATA_DIR=" + filepath.Join(s.dir, "data"), "REGIE_BASE_URL=" + server.URL + "/v1", "REGIE_MODEL=scripted"}
	return s
}

func (s *stage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet { // which models it has
		_, _ = io.WriteString(w, `{"object": "list", "data": [{"id": "scripted"}, {"id": "another\u001b[31m-one"}]}`)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	if err := strict.Chat(body); err != nil {
		s.t.Errorf("a prompt that no strict server takes: %v\n%s", err, body)
	}
	s.mu.Lock()
	s.last = string(body)
	s.mu.Unlock()
	var request struct {
		Messages []struct{ Role string } `json:"messages"`
	}
	if err := json.Unmarshal(body, &request); err != nil {
		s.t.Error(err)
	}
	step := 0
	for _, message := range request.Messages {
		if message.Role == "assistant" {
			step++
		}
	}
	if step >= len(s.steps) {
		s.t.Errorf("the script has no step %d", step)
		http.Error(w, "no such step", http.StatusBadRequest)
		return
	}
	s.steps[step](w, r)
}

// read is the last request of the model.
func (s *stage) read() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

func (s *stage) work(name string) string { return filepath.Join(s.dir, "work", name) }

// holds checks a file of the workspace; "" means that it is not there.
func (s *stage) holds(name, want string) {
	s.t.Helper()
	if got, _ := os.ReadFile(s.work(name)); string(got) != want {
		s.t.Errorf("%s holds %q, want %q", name, got, want)
	}
}

func (s *stage) regie(args ...string) *screen {
	s.t.Helper()
	return terminal(s.t, filepath.Join(s.dir, "work"), s.env, args...)
}

type wanted struct{ id, path, content string }

// reply streams a text and writes.
func reply(text string, writes ...wanted) http.HandlerFunc {
	var tools []called
	for _, file := range writes {
		arguments, _ := json.Marshal(map[string]string{"path": file.path, "content": file.content})
		tools = append(tools, called{file.id, "files__write_file", string(arguments)})
	}
	return calls(text, tools...)
}

type called struct{ id, tool, arguments string }

// calls streams a text and calls tools.
func calls(text string, tools ...called) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		reason := "stop"
		if text != "" {
			piece(w, map[string]any{"content": text})
		}
		for i, tool := range tools {
			reason = "tool_calls"
			piece(w, map[string]any{"tool_calls": []any{map[string]any{
				"index": i, "id": tool.id, "type": "function", "function": map[string]any{"name": tool.tool, "arguments": tool.arguments},
			}}})
		}
		finish(w, reason)
	}
}

func piece(w http.ResponseWriter, delta map[string]any) {
	data, _ := json.Marshal(delta)
	_, _ = fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":%s,\"finish_reason\":null}]}\n\n", data)
	_ = http.NewResponseController(w).Flush()
}

func finish(w http.ResponseWriter, reason string) {
	_, _ = fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":%q}]}\n\ndata: [DONE]\n\n", reason)
}

// begins streams the beginning of a text, and the rest once it is let.
func begins(start, rest string, let <-chan struct{}) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		piece(w, map[string]any{"content": start})
		select {
		case <-let:
		case <-r.Context().Done():
			return
		}
		piece(w, map[string]any{"content": rest})
		finish(w, "stop")
	}
}

// TestChatApprovals answers four calls of a reply, each in another way, and one of a later reply
// for all that come after it.
func TestChatApprovals(t *testing.T) {
	t.Parallel()
	s := newStage(t,
		reply("I write \x1b[2Jfour files.", wanted{"a", "a.txt", "one\n"}, wanted{"b", "b.txt", "two\n"}, wanted{"c", "c.txt", "three\n"}, wanted{"d", "d.txt", "fo\x1bur\n"}),
		reply("And two more.", wanted{"e", "docs/e.txt", "five\n"}, wanted{"f", "docs/f.txt", "six\n"}),
		reply("One more.", wanted{"g", "docs/g.txt", "seven\n"}),
		reply("All done."))
	s.env = append(s.env, "EDITOR=sed -i 's/\"two/\"zwei/'")
	c := s.regie("chat")
	c.expect("> ")
	c.enter("write four files")
	c.expect("four files.")
	c.expect("approval ")
	c.expect("it asks about 4 calls:")
	c.expect("  4  write 1 line to d.txt (new file)")
	c.expect("call 1 of 4:")
	c.expect("write 1 line to a.txt (new file)")
	c.expect("why: ")
	c.expect("│ +one")
	c.expect("[l] later")
	c.enter("yes!") // no answer
	c.expect("[l] later")
	c.enter("y")
	c.expect("call 2 of 4:")
	c.expect("[l] later")
	c.enter("e")
	c.expect("│ +zwei")
	c.expect("[y] once, as edited")
	c.enter("y")
	c.expect("call 3 of 4:")
	c.expect("[l] later")
	c.enter("n: not that one")
	c.expect("call 4 of 4:")
	c.expect("│ +fo␛ur")
	c.expect("[l] later")
	c.enter("N")
	c.expect("✓ files.write_file")
	c.expect("And two more.")
	c.expect("call 1 of 2:")
	c.expect("[l] later")
	c.enter("s")
	c.expect("any text to docs/e.txt")
	c.expect("  3  any file below docs/")
	c.expect("b to go back: ")
	c.enter("y") // nothing is covered that was not chosen by its number
	c.expect("b to go back: ")
	c.enter("3")
	c.expect("│ +six") // it was not shown before
	c.expect("this also allows the calls 2: [y] yes")
	c.enter("y")
	c.expect("this covers, and allows, the calls 2")
	c.expect("One more.") // nothing is asked about docs/g.txt
	c.expect("All done.")
	c.expect("> ")
	c.press("\x04")
	c.expect("continue this chat: regie chat -r ")
	c.ends(0)
	for name, want := range map[string]string{
		"a.txt": "one\n", "b.txt": "zwei\n", "c.txt": "", "d.txt": "", "docs/e.txt": "five\n", "docs/f.txt": "six\n", "docs/g.txt": "seven\n",
	} {
		s.holds(name, want)
	}
	if !strings.Contains(s.read(), "not that one") {
		t.Error("the model is not told why a call was denied")
	}
	if strings.ContainsRune(c.all(), 0x1b) {
		t.Error("a control sequence got through")
	}
	for _, once := range []string{"four files.", "And two more.", "One more.", "All done."} {
		if n := strings.Count(c.all(), once); n != 1 {
			t.Errorf("%q appears %d times", once, n)
		}
	}
}

// TestChatStreams shows a reply as it comes, takes a message meanwhile, and interrupts a reply that
// never ends.
func TestChatStreams(t *testing.T) {
	t.Parallel()
	let, never := make(chan struct{}), make(chan struct{})
	s := newStage(t, begins("Once upon", " a time.", let), reply("The second answer."), begins("It goes", " on.", never))
	c := s.regie("chat")
	c.expect("> ")
	c.enter("tell me \\")
	c.enter("a story")
	c.expect("Once upon")
	c.enter("and another")
	c.expect("queued: ")
	if !strings.Contains(s.read(), `tell me \na story`) {
		t.Errorf("the model read %s", s.read())
	}
	close(let)
	c.expect(" a time.")
	c.expect("› and another")
	c.expect("The second answer.")
	c.expect("> ")
	c.enter("/pause")
	c.expect("nothing runs in this chat")
	c.enter("/what")
	c.expect("there is no /what")
	c.enter("on and on")
	c.expect("It goes")
	c.press("\x03")
	c.expect("interrupted")
	c.expect("> ")
	c.press("\x03")
	c.expect("continue this chat")
	c.ends(0)
	if n := strings.Count(c.all(), "Once upon"); n != 1 {
		t.Errorf("the streamed text appears %d times", n)
	}
}

// TestChatKilled kills the chat with what it asks on the screen: the next one asks the same again.
func TestChatKilled(t *testing.T) {
	t.Parallel()
	s := newStage(t, reply("I write.", wanted{"a", "a.txt", "one\n"}, wanted{"b", "b.txt", "two\n"}), reply("Written."))
	c := s.regie("chat")
	c.expect("> ")
	c.enter("write two files")
	c.expect("approval ")
	id := regexp.MustCompile(`approval ([0-9a-f]{8})`).FindStringSubmatch(c.all())
	c.expect("call 1 of 2:")
	c.expect("[l] later")
	c.enter("y")
	c.expect("call 2 of 2:")
	c.expect("[l] later")
	if err := c.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	c.ends(-1)

	c = s.regie("chat", "-c")
	c.expect("› write two files")
	c.expect("I write.")
	c.expect("approval " + id[1])
	c.expect("call 2 of 2:") // the first answer was kept
	c.expect("[l] later")
	c.enter("l")
	c.expect("it stays in the inbox")
	c.expect("> ")
	c.enter("something else")
	c.expect("withdraws the request")
	c.enter("n")
	c.expect("not sent")
	c.enter("/approvals")
	c.expect("approval " + id[1])
	c.expect("[l] later")
	c.enter("l")
	c.expect("it stays in the inbox")
	c.expect("> ")
	c.enter("/pause")
	c.expect("paused; /resume goes on")
	c.expect("> ")
	c.enter("/resume")
	c.expect("approval " + id[1])
	c.expect("[l] later")
	c.enter("y")
	c.expect("✓ files.write_file")
	c.expect("✓ files.write_file")
	c.expect("Written.")
	c.expect("> ")
	c.enter("/exit")
	c.ends(0)
	s.holds("a.txt", "one\n")
	s.holds("b.txt", "two\n")
}

// TestChatCommand gives commands without a model: it asks for what would be asked about if the
// agent wanted it, and not for what a rule allows. One that was killed in its midst is not run
// again, and asked about.
func TestChatCommand(t *testing.T) {
	t.Parallel()
	s := newStage(t, reply("I read it."))
	c := s.regie("chat")
	c.expect("> ")
	c.enter("!")
	c.expect("write the command after the !")
	c.expect("> ")
	c.enter("!touch made.txt")
	c.expect("run touch made.txt in ./")
	c.expect("[l] later")
	c.enter("s") // for this session
	c.expect("b to go back: ")
	c.enter("2")
	c.expect("✓ shell.shell_exec")
	c.expect("> ")
	if err := os.Remove(s.work("made.txt")); err != nil {
		t.Error(err)
	}
	c.enter("! touch made.txt") // not asked about
	c.expect("✓ shell.shell_exec")
	c.expect("> ")
	c.enter("!echo started >> log.txt; sleep 60")
	c.expect("[l] later")
	c.enter("y")
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) { // between two looks
		if data, _ := os.ReadFile(s.work("log.txt")); string(data) == "started\n" {
			break
		} else if time.Now().After(deadline) {
			t.Fatalf("the command does not run: %s", c.all())
		}
	}
	c.enter("!echo two") // nothing is queued
	c.expect("a run of this session is open")
	if err := c.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	c.ends(-1)

	c = s.regie("chat", "-c")
	c.expect("› !echo started >> log.txt; sleep 60")
	c.expect("✗ shell.shell_exec") // whether the run has been taken up before the chat shows it or not
	c.expect("OUTCOME_UNKNOWN")
	c.expect("regie runs resolve")
	c.expect("> ")
	c.enter("!echo started >> log.txt; sleep 60")
	c.expect("the outcome of an earlier identical call is unknown")
	c.expect("[l] later")
	c.enter("n")
	c.expect("the command was not run")
	c.expect("> ")
	c.enter("what happened?")
	c.expect("I read it.")
	c.expect("> ")
	c.enter("/exit")
	c.ends(0)
	s.holds("log.txt", "started\n")
	s.holds("made.txt", "")
	for _, want := range []string{"!echo started", `\"status\":\"UNKNOWN\"`, "The person gave this command"} {
		if !strings.Contains(s.read(), want) {
			t.Errorf("the model does not read %s: %s", want, s.read())
		}
	}
	verified := s.regie("verify")
	verified.ends(0)
	shown := s.regie("runs", "show", "last")
	shown.ends(0)
}

// TestRunAsks asks at the terminal in place of waiting.
func TestRunAsks(t *testing.T) {
	t.Parallel()
	s := newStage(t, reply("I write.", wanted{"a", "a.txt", "one\n"}), reply("Written."))
	c := s.regie("run", "write a file")
	c.expect("│ +one")
	c.expect("[l] later")
	c.enter("l")
	c.expect("approve with: regie approve ")
	c.ends(exitParked)
	id := regexp.MustCompile(`regie run --resume|run ([0-9a-f-]{36}) in`).FindStringSubmatch(c.all())
	c = s.regie("run", "--resume", id[1])
	c.expect("[l] later")
	c.enter("y")
	c.expect("✓ files.write_file")
	c.expect("Written.")
	c.ends(0)
	s.holds("a.txt", "one\n")

	s = newStage(t, reply("I write.", wanted{"a", "a.txt", "one\n"}), reply("Written."))
	c = s.regie("run", "--timeout", "8s", "write a file")
	c.expect("[l] later")
	c.expect("the run is paused")
	c.ends(exitTimeout)
	c = s.regie("run", "write a file")
	c.expect("[l] later")
	c.press("\x03")
	c.expect("interrupting")
	c.ends(exitInterrupted)
}

// TestApproveWithoutModel answers where the run's model is not configured: the answer is kept, and
// the next command that has the model goes on.
func TestApproveWithoutModel(t *testing.T) {
	t.Parallel()
	s := newStage(t, reply("I write.", wanted{"a", "a.txt", "one\n"}), reply("Written."))
	c := s.regie("run", "--on-approval", "park", "write a file")
	c.ends(exitParked)
	id := regexp.MustCompile(`run ([0-9a-f-]{36}) in`).FindStringSubmatch(c.all())
	c = terminal(t, filepath.Join(s.dir, "work"), s.env[:1], "approve", "last")
	c.expect("the answer is stored, but the run does not go on here")
	c.ends(exitNoModel)
	s.holds("a.txt", "")
	c = s.regie("run", "--resume", id[1])
	c.expect("Written.")
	c.ends(0)
	s.holds("a.txt", "one\n")
}
