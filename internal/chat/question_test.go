package chat_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/i18n"
	"github.com/regie-run/regie/internal/tool"
)

// page is what a person sees, growing.
type page struct {
	t *testing.T

	mu    sync.Mutex
	grown chan struct{}
	text  bytes.Buffer
	seen  int
}

func (p *page) Write(data []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.grown)
	p.grown = make(chan struct{})
	return p.text.Write(data)
}

// expect waits until a text appears behind what was expected before.
func (p *page) expect(want string) {
	p.t.Helper()
	deadline := time.After(30 * time.Second)
	for {
		p.mu.Lock()
		at, grown := strings.Index(p.text.String()[p.seen:], want), p.grown
		if at >= 0 {
			p.seen += at + len(want)
		}
		all := p.text.String()
		p.mu.Unlock()
		if at >= 0 {
			return
		}
		select {
		case <-grown:
		case <-deadline:
			p.t.Fatalf("%q does not appear:\n%s", want, all)
		}
	}
}

// asking is a tool that asks the module which its arguments are.
type asking struct{ tool.Tool }

func (asking) Module(arguments json.RawMessage) (regie.Module, error) {
	var module regie.Module
	err := json.Unmarshal(arguments, &module)
	return module, err
}

type askingArgs struct {
	Kind    string   `json:"kind"`
	Text    string   `json:"text"`
	Options []string `json:"options,omitempty"`
	Free    bool     `json:"allow_free_text,omitempty"`
	Several bool     `json:"allow_multiple,omitempty"`
}

func askingTool(t *testing.T) tool.Tool {
	t.Helper()
	made, err := tool.New(regie.ToolDefinition{Name: "test.ask", Description: "asks", Kind: regie.KindQuery, Risk: regie.RiskInternal, Role: regie.RoleQuestion},
		tool.Handler[askingArgs]{Run: func(context.Context, *tool.Invocation, askingArgs) (tool.Result, error) { return tool.Result{}, nil }})
	if err != nil {
		t.Fatal(err)
	}
	return asking{made}
}

// inquisitive is a model that asks each question in turn and then says that it knows enough.
func inquisitive(t *testing.T, questions ...askingArgs) (server *httptest.Server, last func() string) {
	t.Helper()
	var mu sync.Mutex
	var body []byte
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		body, _ = io.ReadAll(r.Body)
		step := bytes.Count(body, []byte(`"role":"assistant"`))
		w.Header().Set("Content-Type", "text/event-stream")
		delta, reason := `{"content":"I know enough."}`, "stop"
		if step < len(questions) {
			arguments, _ := json.Marshal(questions[step])
			quoted, _ := json.Marshal(string(arguments))
			delta, reason = fmt.Sprintf(`{"tool_calls":[{"index":0,"id":"q%d","type":"function","function":{"name":"test__ask","arguments":%s}}]}`, step, quoted), "tool_calls"
		}
		_, _ = fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":%s,\"finish_reason\":%q}]}\n\ndata: [DONE]\n\n", delta, reason)
	}))
	t.Cleanup(server.Close)
	return server, func() string {
		mu.Lock()
		defer mu.Unlock()
		return string(body)
	}
}

// TestQuestions answers questions of every kind, each first as one must not.
func TestQuestions(t *testing.T) {
	server, last := inquisitive(t,
		askingArgs{Kind: string(regie.ModuleChoice), Text: "Which \x1b[2Jcolour?", Options: []string{"red", "green"}},
		askingArgs{Kind: string(regie.ModuleChoice), Text: "Which of them?", Options: []string{"tea", "milk", "jam"}, Several: true},
		askingArgs{Kind: string(regie.ModuleChoice), Text: "What else?", Options: []string{"nothing", "much"}, Free: true},
		askingArgs{Kind: string(regie.ModuleValidation), Text: "Sure?"},
	)
	env := map[string]string{"REGIE_DATA_DIR": filepath.Join(t.TempDir(), "data"), "REGIE_BASE_URL": server.URL + "/v1", "REGIE_MODEL": "scripted"}
	settings, err := config.Load(func(name string) string { return env[name] }, config.Flags{})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := app.Connect(t.Context(), app.Options{Config: settings, Tools: []tool.Tool{askingTool(t)}})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	in, typed, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	input, err := chat.NewInput(in, true)
	if err != nil {
		t.Fatal(err)
	}
	defer input.Close()
	shown := &page{t: t, grown: make(chan struct{})}
	talk := chat.New(t.Context(), chat.PlainConfig{
		Input: input, Out: shown, Err: shown, Terminal: true, Config: chat.Config{Control: conn.Client, Text: i18n.New("en"), Request: dispatch.RunRequest{
			Root: t.TempDir(), FoundBy: "directory", Agent: "main", Provider: settings.Provider, Model: settings.Model, Policy: approval.Policy{Questions: true},
		}},
	})
	left := make(chan error, 1)
	go func() {
		_, err := talk.Run()
		left <- err
	}()
	enter := func(line string) {
		t.Helper()
		if _, err := typed.WriteString(line + "\n"); err != nil {
			t.Fatal(err)
		}
	}
	shown.expect("> ")
	enter("ask me")
	for _, step := range []struct{ want, prompt, bad, why, good string }{
		{"Which ␛[2Jcolour?", "or a text  [l] later", "blue", "choose by number, from 1 to 2", "2"},
		{"  3  jam", "or a text  [l] later", "4", "choose by number, from 1 to 3", "1,3"},
		{"What else?", "or a text  [l] later", "3", "choose by number, from 1 to 2", "some honey"},
		{"Sure?", "[y] yes  [n] no  [l] later", "perhaps", "answer y or n", "y"},
	} {
		shown.expect("question ")
		shown.expect(step.want)
		shown.expect(step.prompt)
		enter(step.bad)
		shown.expect(step.why)
		shown.expect(step.prompt)
		enter(step.good)
	}
	shown.expect("I know enough.")
	shown.expect("> ")
	if err := typed.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-left; err != nil {
		t.Error(err)
	}
	for _, want := range []string{"green", "tea", "jam", "some honey"} {
		if !strings.Contains(last(), want) {
			t.Errorf("the model is not told %q", want)
		}
	}
}
