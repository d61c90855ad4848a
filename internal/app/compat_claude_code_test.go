package app_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/regie-run/regie/internal/access"
	"github.com/regie-run/regie/internal/store"
)

// claudeCode is Claude Code as a client of Regie.
type claudeCode struct {
	*npmProgram
	*house
}

func newClaudeCode(t *testing.T, m *model) *claudeCode {
	t.Helper()
	h := newHarness(t, m).serve("127.0.0.1:0")
	return &claudeCode{newNPMProgram(t, "anthropic/node_modules/@anthropic-ai/claude-code/cli-wrapper.cjs", "ANTHROPIC_BASE_URL="+h.served.URL, "ANTHROPIC_AUTH_TOKEN="+h.token,
		"ANTHROPIC_MODEL=main", "ANTHROPIC_DEFAULT_HAIKU_MODEL=main", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1"), h}
}

// asks has Claude Code do one request and returns its answer.
func (c *claudeCode) asks(text string, flags ...string) string {
	c.house.t.Helper()
	out := c.run(append([]string{"-p", text, "--output-format", "json", "--permission-mode", "acceptEdits", "--allowedTools", "Read,Write,Edit,Bash,Agent"}, flags...)...)
	var answer struct {
		Result string
		Failed bool `json:"is_error"`
	}
	if err := json.Unmarshal([]byte(out), &answer); err != nil || answer.Failed {
		c.house.t.Fatalf("%v: %s", err, out)
	}
	return answer.Result
}

// sessions counts what its requests made.
func (c *claudeCode) sessions() []store.SessionSummary {
	c.house.t.Helper()
	listed, err := c.engine.Service().Sessions.List(access.AsOwner(c.house.t.Context()), store.SessionFilter{API: true})
	if err != nil {
		c.house.t.Fatal(err)
	}
	return listed
}

// TestClaudeCode_Answer gives Claude Code an answer, and one more in the same conversation.
func TestClaudeCode_Answer(t *testing.T) {
	t.Parallel()
	m := newModel(t, replyWith("It is noon."), replyWith("It is later."))
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
				calls[i].arguments = strings.ReplaceAll(calls[i].arguments, "DIR", c.dir)
			}
			replyWith("Working.", calls...)(w, r)
		}
	}
	m := newModel(t,
		step(call{"a", "Write", `{"file_path":"DIR/new.txt","content":"hello"}`}, call{"b", "Read", `{"file_path":"DIR/note.txt"}`}),
		step(call{"c", "Bash", `{"command":"cat new.txt; exit 3"}`}),
		step(call{"d", "Edit", `{"file_path":"DIR/new.txt","old_string":"hello","new_string":"bye"}`}),
		replyWith("Done."))
	c = newClaudeCode(t, m)
	c.write("note.txt", "the word is walrus\n")
	if got := c.asks("Do it."); got != "Done." || m.count() != 4 {
		t.Errorf("%q after %d requests", got, m.count())
	}
	for _, want := range []string{"the word is walrus", `The tool failed.\nExit code 3\nhello`} {
		if !strings.Contains(m.last(), want) {
			t.Errorf("the model does not read %q", want)
		}
	}
	c.holds("new.txt", "bye")
	if listed := c.sessions(); len(listed) != 1 || listed[0].Rounds != 4 {
		t.Errorf("%+v", listed)
	}
}

// TestClaudeCode_Parts has tools of Claude Code return what is no text: references to tools that it
// declares then, and an image.
func TestClaudeCode_Parts(t *testing.T) {
	t.Parallel()
	image := make(chan string, 1)
	m := newModel(t,
		replyWith("", call{"a", "ToolSearch", `{"query":"select:TaskStop","max_results":5}`}),
		replyWith("", call{"b", "TaskStop", `{"task_id":"none"}`}),
		func(w http.ResponseWriter, r *http.Request) {
			replyWith("", call{"c", "Read", `{"file_path":"` + <-image + `"}`})(w, r)
		},
		replyWith("Done."))
	c := newClaudeCode(t, m)
	image <- c.write("p.png", "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89"+
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
				replyWith("Sub answer.")(w, r)
				return
			}
			replyWith("", call{"a", "Agent", `{"description":"look","prompt":"SUB JOB","subagent_type":"Explore",
				"run_in_background":false,"model":"haiku"}`})(w, r)
		},
		replyWith("Done."))
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

// TestOpenCode_Tools has opencode work with its own tools for a model behind Regie, in both formats
// that it speaks. Only make proof installs it.
func TestOpenCode_Tools(t *testing.T) {
	t.Parallel()
	if os.Getenv("REGIE_PROOF") != "1" {
		t.Skip("opencode runs in make proof alone")
	}
	architecture := map[string]string{"amd64": "x64"}[runtime.GOARCH]
	if architecture == "" {
		architecture = runtime.GOARCH
	}
	for name, provider := range map[string]string{"messages": "@ai-sdk/anthropic", "chat completions": "@ai-sdk/openai-compatible"} {
		t.Run(name, func(t *testing.T) {
			var f *npmProgram
			step := func(name, arguments string) http.HandlerFunc {
				return func(w http.ResponseWriter, r *http.Request) {
					if strings.Contains(sent(r), "title generator") { // a session of its own
						replyWith("A title")(w, r)
						return
					}
					replyWith("Working.", call{name, name, strings.ReplaceAll(arguments, "DIR", f.dir)})(w, r)
				}
			}
			m := newModel(t,
				step("write", `{"filePath":"DIR/new.txt","content":"hello"}`),
				step("read", `{"filePath":"DIR/note.txt"}`),
				step("bash", `{"command":"cat new.txt","description":"show it"}`),
				replyWith("Done."))
			h := newHarness(t, m).serve("127.0.0.1:0")
			settings := fmt.Sprintf(`{"model":"regie/main","small_model":"regie/main","share":"disabled","provider":{"regie":{
				"npm":%q,"name":"Regie","options":{"baseURL":%q,"apiKey":%q},"models":{"main":{"name":"main"}}}}}`,
				provider, h.served.URL+"/v1", h.token)
			f = newNPMProgram(t, "proof-anthropic/node_modules/opencode-"+runtime.GOOS+"-"+architecture+"/bin/opencode", "OPENCODE_CONFIG_CONTENT="+settings, "OPENCODE_DISABLE_MODELS_FETCH=1",
				"OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1", "OPENCODE_DISABLE_DEFAULT_PLUGINS=1")
			f.write("note.txt", "the word is walrus\n")
			if out := f.run("run", "Do it."); !strings.Contains(out, "Done.") {
				t.Errorf("%s", out)
			}
			// One is read by a tool; the other stands in a request beside the conversation.
			for _, want := range []string{"the word is walrus", "title generator"} {
				if !slices.ContainsFunc(m.requests, func(r []byte) bool { return strings.Contains(string(r), want) }) {
					t.Errorf("the model does not read %q", want)
				}
			}
			f.holds("new.txt", "hello")
		})
	}
}
