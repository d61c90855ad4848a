//go:build unix

package app_test

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/regie-run/regie/internal/access"
	"github.com/regie-run/regie/internal/store"
)

// frontendTime bounds one run of a frontend. A run takes seconds; the bound ends one that hangs.
const frontendTime = 120 * time.Second

// anthropicFrontends is the folder of the frontends that speak Messages.
const anthropicFrontends = "anthropic"

// findFrontend returns node and a file of a folder with frontends. The test is skipped where npm
// has not installed them.
func findFrontend(t *testing.T, folder, file string) (node, path string) {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("..", "compat", "testdata", folder, "node_modules", filepath.FromSlash(file)))
	if err == nil {
		_, err = os.Stat(path)
	}
	if err == nil {
		node, err = exec.LookPath("node")
	}
	if err != nil {
		if os.Getenv("REGIE_CI") == "1" {
			t.Fatalf("the frontend %s is not installed (run make npm): %v", file, err)
		}
		t.Skipf("the frontend %s is not installed: run make npm", file)
	}
	return node, path
}

// frontend is a program of others with a home and a project of its own. It reaches nothing but this
// machine.
type frontend struct {
	t             *testing.T
	home, project string
	env           []string
}

func newFrontend(t *testing.T, env ...string) *frontend {
	t.Helper()
	f := &frontend{t: t, home: t.TempDir(), project: t.TempDir()}
	f.env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + f.home, "TMPDIR=" + f.home, "NO_PROXY=127.0.0.1",
		"HTTP_PROXY=http://127.0.0.1:9", "HTTPS_PROXY=http://127.0.0.1:9", // the discard port: nobody listens
	}, env...)
	return f
}

// file writes a file of the project and returns its path.
func (f *frontend) file(name, content string) string {
	f.t.Helper()
	path := filepath.Join(f.project, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		f.t.Fatal(err)
	}
	return path
}

// run returns what the program prints. Its process group ends with it.
func (f *frontend) run(argv ...string) string {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), frontendTime)
	defer cancel()
	command := exec.CommandContext(ctx, argv[0], argv[1:]...)
	command.Dir, command.Env, command.WaitDelay = f.project, f.env, 5*time.Second
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	var stderr strings.Builder
	command.Stderr = &stderr
	out, err := command.Output()
	if command.Process != nil {
		_ = syscall.Kill(-command.Process.Pid, syscall.SIGKILL) // what it left running
	}
	if err != nil {
		f.t.Fatalf("%v: %v\n%s\n%s", argv, err, out, stderr.String())
	}
	return string(out)
}

// claudeCode is Claude Code as a client of Regie.
type claudeCode struct {
	*frontend
	*house
	argv []string
}

func newClaudeCode(t *testing.T, m *model) *claudeCode {
	t.Helper()
	node, path := findFrontend(t, anthropicFrontends, "@anthropic-ai/claude-code/cli-wrapper.cjs")
	h := newBed(t, m).serve("127.0.0.1:0")
	f := newFrontend(t, "ANTHROPIC_BASE_URL="+h.served.URL, "ANTHROPIC_AUTH_TOKEN="+h.token,
		"ANTHROPIC_MODEL=main", "ANTHROPIC_DEFAULT_HAIKU_MODEL=main", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1")
	return &claudeCode{f, h, []string{node, path}}
}

// asks has Claude Code do one request and returns its answer.
func (c *claudeCode) asks(text string, flags ...string) string {
	c.t.Helper()
	argv := append(append([]string{}, c.argv...), "-p", text, "--output-format", "json",
		"--permission-mode", "acceptEdits", "--allowedTools", "Read,Write,Edit,Bash,Agent")
	out := c.run(append(argv, flags...)...)
	var answer struct {
		Result string
		Failed bool `json:"is_error"`
	}
	if err := json.Unmarshal([]byte(out), &answer); err != nil || answer.Failed {
		c.t.Fatalf("%v: %s", err, out)
	}
	return answer.Result
}

// sessions counts what its requests made.
func (c *claudeCode) sessions() []store.SessionSummary {
	c.t.Helper()
	listed, err := c.engine.Service().Sessions.List(access.AsOwner(c.t.Context()), store.SessionFilter{API: true})
	if err != nil {
		c.t.Fatal(err)
	}
	return listed
}

// TestClaudeCode_Answer gives Claude Code an answer, and one more in the same conversation.
func TestClaudeCode_Answer(t *testing.T) {
	t.Parallel()
	m := newModel(t, says("It is noon."), says("It is later."))
	c := newClaudeCode(t, m)
	if got := c.asks("What time is it?"); got != "It is noon." {
		t.Errorf("%q", got)
	}
	question, environment := strings.Index(m.last(), "What time is it?"), strings.Index(m.last(), "# Environment")
	if environment < 0 || question < environment {
		t.Errorf("the environment stands at %d, the question at %d", environment, question)
	}
	if got := c.asks("And now?", "--continue"); got != "It is later." || !strings.Contains(m.last(), "It is noon.") {
		t.Errorf("%q", got)
	}
}

// TestClaudeCode_Tools has the model work with Claude Code's own tools over several turns of one
// session.
func TestClaudeCode_Tools(t *testing.T) {
	t.Parallel()
	var c *claudeCode
	step := func(calls ...call) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			for i := range calls {
				calls[i].arguments = strings.ReplaceAll(calls[i].arguments, "DIR", c.project)
			}
			says("Working.", calls...)(w, r)
		}
	}
	m := newModel(t,
		step(call{"a", "Write", `{"file_path":"DIR/new.txt","content":"hello"}`}, call{"b", "Read", `{"file_path":"DIR/note.txt"}`}),
		step(call{"c", "Bash", `{"command":"cat new.txt; exit 3"}`}),
		step(call{"d", "Edit", `{"file_path":"DIR/new.txt","old_string":"hello","new_string":"bye"}`}),
		says("Done."))
	c = newClaudeCode(t, m)
	c.file("note.txt", "the word is walrus\n")
	if got := c.asks("Do it."); got != "Done." || m.count() != 4 {
		t.Errorf("%q after %d requests", got, m.count())
	}
	for _, want := range []string{"the word is walrus", `The tool failed.\nExit code 3\nhello`} {
		if !strings.Contains(m.last(), want) {
			t.Errorf("the model does not read %q", want)
		}
	}
	if data, err := os.ReadFile(filepath.Join(c.project, "new.txt")); err != nil || string(data) != "bye" {
		t.Errorf("%q, %v", data, err)
	}
	if listed := c.sessions(); len(listed) != 1 || listed[0].Rounds != 4 {
		t.Errorf("%+v", listed)
	}
}

// TestClaudeCode_Parts has tools of Claude Code return what is no text: references to tools that it
// declares then, and an image.
func TestClaudeCode_Parts(t *testing.T) {
	t.Parallel()
	var image string
	m := newModel(t,
		says("", call{"a", "ToolSearch", `{"query":"select:TaskStop","max_results":5}`}),
		says("", call{"b", "TaskStop", `{"task_id":"none"}`}),
		func(w http.ResponseWriter, r *http.Request) {
			says("", call{"c", "Read", `{"file_path":"` + image + `"}`})(w, r)
		},
		says("Done."))
	c := newClaudeCode(t, m)
	image = c.file("p.png", "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89"+
		"\x00\x00\x00\rIDATx\x9cc\xf8\xff\xff?\x00\x05\xfe\x02\xfe\xa75\x81\x84\x00\x00\x00\x00IEND\xaeB`\x82")
	if got := c.asks("Do it."); got != "Done." || m.count() != 4 {
		t.Errorf("%q after %d requests", got, m.count())
	}
	for _, want := range []string{"[the tool TaskStop can be called now]", "a part of the type image"} {
		if !strings.Contains(m.last(), want) {
			t.Errorf("the model does not read %q", want)
		}
	}
}

// TestClaudeCode_Background has Claude Code ask for its own purposes: a subagent of the small model
// beside its conversation, and the size of its context.
func TestClaudeCode_Background(t *testing.T) {
	t.Parallel()
	m := newModel(t,
		func(w http.ResponseWriter, r *http.Request) {
			if body := sent(r); !strings.Contains(body, "MAIN JOB") {
				says("Sub answer.")(w, r)
				return
			}
			says("", call{"a", "Agent", `{"description":"look","prompt":"SUB JOB","subagent_type":"Explore",
				"run_in_background":false,"model":"haiku"}`})(w, r)
		},
		says("Done."))
	c := newClaudeCode(t, m)
	if got := c.asks("MAIN JOB"); got != "Done." || !strings.Contains(m.last(), "Sub answer.") {
		t.Errorf("%q, %d requests", got, m.count())
	}
	if got := len(c.sessions()); got != 2 {
		t.Errorf("%d sessions", got)
	}
	if got := c.asks("/context", "--continue"); !strings.Contains(got, "System prompt") {
		t.Errorf("%s", got)
	}
}

// TestAISDK_Anthropic has Vercel's AI SDK talk to an agent with both majors of its provider.
func TestAISDK_Anthropic(t *testing.T) {
	t.Parallel()
	asks := says("Let me look.", call{"w", "get_weather", `{"place":"Bern"}`})
	for _, c := range []struct {
		which, want string
		steps       []http.HandlerFunc
	}{
		{"generate", `{"text":"Hello.","finish":"stop","usage":true}`, []http.HandlerFunc{says("Hello.")}},
		{"stream", `{"pieces":"Hello.","finish":"stop"}`, []http.HandlerFunc{says("Hello.")}},
		{"tools", `{"text":"Sun.","steps":2,"places":["Bern"],"more":"Rain."}`, []http.HandlerFunc{asks, says("Sun."), says("Rain.")}},
		{"toolsStreamed", `{"text":"Sun.","steps":2,"places":["Bern"]}`, []http.HandlerFunc{asks, says("Sun.")}},
	} {
		for _, major := range []string{"3", "4"} {
			t.Run(c.which+" "+major, func(t *testing.T) {
				node, module := findFrontend(t, anthropicFrontends, "ai/package.json")
				script := filepath.Join(filepath.Dir(module), "..", "..", "client.mjs")
				m := newModel(t, c.steps...)
				h := newBed(t, m).serve("127.0.0.1:0")
				out := newFrontend(t).run(node, script, h.served.URL+"/v1", major, c.which, h.token)
				var got, want any
				if err := json.Unmarshal([]byte(out), &got); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
				if err := json.Unmarshal([]byte(c.want), &want); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				if m.count() != len(c.steps) {
					t.Errorf("the model was asked %d times", m.count())
				}
			})
		}
	}
}
