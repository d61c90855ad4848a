package main

import (
	"bufio"
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/client"
)

// served starts a server on a data directory of a stage, and returns how to kill it.
func (s *stage) served(addr string) (url string, kill func()) {
	s.t.Helper()
	c := exec.CommandContext(s.t.Context(), "regie", "serve", "--addr", addr)
	c.Dir, c.Env = filepath.Join(s.dir, "work"), append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(s.dir, "home"), "REGIE_LANG=en"}, s.env...)
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		s.t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	url, ok := strings.CutPrefix(strings.TrimSpace(line), "Regie listens on ")
	if err != nil || !ok {
		s.t.Fatalf("it says %q, %v", line, err)
	}
	kill = func() {
		_ = c.Process.Kill()
		_ = c.Wait() // it was killed
	}
	s.t.Cleanup(kill)
	return url, kill
}

// TestScreenServer talks with a server that is killed in the middle of an answer and started again:
// the chat says so, goes on, and shows nothing twice.
func TestScreenServer(t *testing.T) {
	t.Parallel()
	let := make(chan struct{})
	var again atomic.Bool
	s := newStage(t, reply("The first answer."), func(w http.ResponseWriter, r *http.Request) {
		if again.Swap(true) {
			reply("The whole of it.")(w, r)
			return
		}
		begins("It begins.\n\n", "And ends.", let)(w, r)
	}, reply("The last answer."))
	defer close(let)
	url, kill := s.served("127.0.0.1:0")
	client := &stage{t: t, dir: s.dir}
	token, err := os.ReadFile(filepath.Join(s.dir, "data", "api.token"))
	if err != nil {
		t.Fatal(err)
	}
	client.env = []string{"REGIE_SERVER=" + url, "REGIE_TOKEN=" + strings.TrimSpace(string(token)), "REGIE_DATA_DIR=" + filepath.Join(s.dir, "elsewhere")}
	p := chatAt(client, 100, 30)
	p.enter("one")
	p.sees("The first answer.", "ready")
	p.enter("two")
	p.sees("It begins.", "working")
	kill()
	p.sees("the engine does not answer")
	s.served(strings.TrimPrefix(url, "http://"))
	p.sees("the engine answers again", "The whole of it.", "ready")
	p.enter("three")
	p.sees("The last answer.", "ready")
	p.enter("!echo here | tee c.txt") // in the server's workspace
	p.sees("[l]")
	p.press("y")
	p.sees("A c.txt", "│ here", "ready")
	s.holds("c.txt", "here\n")
	for _, text := range []string{"› one", "The first answer.", "› two", "It begins.", "The whole of it.", "› three", "The last answer."} {
		p.once(text)
	}
	p.leaves()
}

// TestScreenServerModel chats with a server without a model of one's own: what the server has
// answers, and nothing else can be chosen. A provider that it has no key for is told.
func TestScreenServerModel(t *testing.T) {
	t.Parallel()
	s := newStage(t, reply("The first answer."), reply("The second."))
	settings := filepath.Join(s.dir, "home", ".config", "regie")
	if err := os.MkdirAll(settings, 0o700); err != nil {
		t.Fatal(err)
	}
	yaml := "providers: {anthropic: {models: {large: wise-1}}}\n"
	if err := os.WriteFile(filepath.Join(settings, "regie.yaml"), []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	url, _ := s.served("127.0.0.1:0")
	token, err := os.ReadFile(filepath.Join(s.dir, "data", "api.token"))
	if err != nil {
		t.Fatal(err)
	}
	client := &stage{t: t, dir: s.dir, env: []string{"REGIE_SERVER=" + url, "REGIE_TOKEN=" + strings.TrimSpace(string(token)), "REGIE_DATA_DIR=" + filepath.Join(s.dir, "elsewhere")}}
	p := emulator(client, 100, 30, "chat")
	p.sees("›", "ready", "· scripted")
	p.enter("/model")
	p.sees("openai / scripted answers; /model NAME", "! anthropic: ", "no key", "▸ openai/scripted", "openai/another")
	p.press("Enter")
	p.sees("openai / scripted answers from the next message on")
	p.enter("one")
	p.sees("The first answer.", "ready", "· scripted")
	p.leaves()
}

// TestChatIsThere: a chat over --server with an API token counts as a person's being there (spec
// 5.4); what only follows a stream with that token does not.
func TestChatIsThere(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	url, _ := s.served("127.0.0.1:0")
	owner, err := os.ReadFile(filepath.Join(s.dir, "data", "api.token"))
	if err != nil {
		t.Fatal(err)
	}
	api, err := client.New(url, strings.TrimSpace(string(owner)), "en")
	if err != nil {
		t.Fatal(err)
	}
	defer api.Close()
	if _, err := api.Workspaces.Open(t.Context(), client.WorkspaceRequest{Path: filepath.Join(s.dir, "work")}); err != nil {
		t.Fatal(err)
	}
	made, err := api.Tokens.Add(t.Context(), client.TokenRequest{Name: "laptop", Scopes: []regie.TokenScope{regie.ScopeRead, regie.ScopeChat, regie.ScopeApprove}})
	if err != nil {
		t.Fatal(err)
	}
	if all, err := api.Presence.List(t.Context()); err != nil || len(all) > 0 {
		t.Fatalf("before: %+v, %v", all, err)
	}
	remote := &stage{t: t, dir: s.dir, env: []string{"REGIE_SERVER=" + url, "REGIE_TOKEN=" + made.Secret, "REGIE_DATA_DIR=" + filepath.Join(s.dir, "elsewhere")}}
	p := chatAt(remote, 100, 30)
	soon, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for there := false; !there; {
		all, err := api.Presence.List(soon)
		if err != nil {
			t.Fatal(err)
		}
		there = len(all) == 1 && all[0].Mode == "UI" && all[0].Streams == 0
		select {
		case <-time.After(10 * time.Millisecond):
		case <-soon.Done():
			t.Fatalf("who is there: %+v", all)
		}
	}
	p.leaves()
}
