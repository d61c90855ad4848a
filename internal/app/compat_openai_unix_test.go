//go:build unix

package app_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/control"
)

// npmProgram is a script of node that others wrote, in a directory and a home of its own.
type npmProgram struct {
	t            *testing.T
	node, script string
	dir, home    string
}

// newNPMProgram returns a script below internal/compat/testdata/folder, whose packages npm
// installed there.
func newNPMProgram(t *testing.T, folder, script string) *npmProgram {
	t.Helper()
	base, err := filepath.Abs(filepath.Join("..", "compat", "testdata", folder))
	f := &npmProgram{t: t, script: filepath.Join(base, filepath.FromSlash(script)), dir: t.TempDir(), home: t.TempDir()}
	if err == nil {
		_, err = os.Stat(filepath.Join(base, "node_modules", ".package-lock.json"))
	}
	if err == nil {
		f.node, err = exec.LookPath("node")
	}
	if err != nil {
		if os.Getenv("REGIE_CI") == "1" {
			t.Fatalf("%s is not installed (make npm installs it): %v", script, err)
		}
		t.Skipf("%s is not installed: make npm installs it", script)
	}
	return f
}

// write puts a file below the program's home or directory.
func (f *npmProgram) write(path, content string) {
	f.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		f.t.Fatal(err)
	}
}

// read returns a file of the program's directory.
func (f *npmProgram) read(name string) string {
	f.t.Helper()
	data, err := os.ReadFile(filepath.Join(f.dir, name))
	if err != nil {
		f.t.Error(err)
	}
	return string(data)
}

// run returns what the program writes to stdout. It ends the program and its children after two
// minutes. Only the loopback interface is reachable: every other address goes through a proxy
// that is not there.
func (f *npmProgram) run(env []string, args ...string) string {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), 2*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, f.node, append([]string{f.script}, args...)...)
	command.Dir, command.WaitDelay = f.dir, 5*time.Second
	command.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + f.home, "TMPDIR=" + f.t.TempDir(), "LANG=C.UTF-8",
		"HTTP_PROXY=http://127.0.0.1:9", "HTTPS_PROXY=http://127.0.0.1:9", "NO_PROXY=127.0.0.1",
	}, env...)
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	var stderr strings.Builder
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		f.t.Fatalf("%s: %v\n%s\n%s", filepath.Base(f.script), err, out, stderr.String())
	}
	return string(out)
}

// callsOffered streams a call of the tool that the request offers under this name, with or
// without a prefix.
func callsOffered(t *testing.T, id, name, arguments string) http.HandlerFunc {
	t.Helper()
	return func(w http.ResponseWriter, r *http.Request) {
		var request struct {
			Tools []struct{ Function struct{ Name string } }
		}
		if err := json.Unmarshal([]byte(sent(r)), &request); err != nil {
			t.Error(err)
		}
		for _, tool := range request.Tools {
			if tool.Function.Name == name || tool.Function.Name == "client__"+name {
				says("", call{id, tool.Function.Name, arguments})(w, r)
				return
			}
		}
		t.Errorf("the model is not offered %s: %+v", name, request.Tools)
		says("no such tool")(w, r)
	}
}

// codex returns a Codex whose only provider is the door.
func codex(t *testing.T, d *door) *npmProgram {
	t.Helper()
	f := newNPMProgram(t, "openai", "node_modules/@openai/codex/bin/codex.js")
	f.write(filepath.Join(f.home, ".codex", "config.toml"), `
model = "main"
model_provider = "regie"
check_for_update_on_startup = false
[analytics]
enabled = false
[model_providers.regie]
name = "Regie"
base_url = "`+d.server.URL+`/v1"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
`)
	return f
}

// askCodex runs one turn of Codex and returns its last message.
func (f *npmProgram) askCodex(args ...string) string {
	f.t.Helper()
	reply := filepath.Join(f.t.TempDir(), "reply")
	f.run([]string{"CODEX_HOME=" + filepath.Join(f.home, ".codex")},
		append([]string{"exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "-o", reply}, args...)...)
	data, err := os.ReadFile(reply)
	if err != nil {
		f.t.Fatal(err)
	}
	return string(data)
}

// TestCodex_Text answers Codex, whose request has a namespace of tools and a hosted one, and its
// next turn.
func TestCodex_Text(t *testing.T) {
	t.Parallel()
	m := newModel(t, says("Hello from Regie."), says("And again."))
	f := codex(t, newBed(t, m).door())
	if got := f.askCodex("say hello"); got != "Hello from Regie." {
		t.Errorf("the first turn: %q", got)
	}
	if got := f.askCodex("resume", "--last", "once more"); got != "And again." {
		t.Errorf("the second turn: %q", got)
	}
}

// TestCodex_Tools has the model read and write files with Codex's own shell, in three exchanges.
func TestCodex_Tools(t *testing.T) {
	t.Parallel()
	m := newModel(t,
		callsOffered(t, "r", "exec_command", `{"cmd":"cat in.txt"}`),
		callsOffered(t, "w", "exec_command", `{"cmd":"tr a-z A-Z < in.txt > out.txt"}`),
		says("Done."))
	f := codex(t, newBed(t, m).door())
	f.write(filepath.Join(f.dir, "in.txt"), "words")
	if got := f.askCodex("write in.txt in capitals to out.txt"); got != "Done." {
		t.Errorf("%q", got)
	}
	if got := f.read("out.txt"); got != "WORDS" {
		t.Errorf("out.txt: %q", got)
	}
	if asked := m.last(); !strings.Contains(asked, "words") {
		t.Errorf("the model is not told what the file says: %s", asked)
	}
}

// TestCodex_Namespace has the model call a tool of a namespace: Codex finds it under the
// namespace's name.
func TestCodex_Namespace(t *testing.T) {
	t.Parallel()
	m := newModel(t, callsOffered(t, "c", "multi_agent_v1__close_agent", `{"target":"nobody"}`), says("Done."))
	f := codex(t, newBed(t, m).door())
	if got := f.askCodex("close an agent"); got != "Done." {
		t.Errorf("%q", got)
	}
	if asked := m.last(); strings.Contains(asked, "unsupported call") || !strings.Contains(asked, "invalid agent id") {
		t.Errorf("Codex did not run its tool: %s", asked)
	}
}

// TestOpenAIClients_Turns has the AI SDK and OpenAI's agents run a tool in their first turn and
// take a second one.
func TestOpenAIClients_Turns(t *testing.T) {
	t.Parallel()
	const twice = `"first":"Sun.","second":"Still.","places":["Bern"]`
	for which, want := range map[string]string{
		"generateText":    `{` + twice + `,"references":true}`,
		"streamText":      `{` + twice + `,"references":true}`,
		"agentsChat":      `{` + twice + `}`,
		"agentsResponses": `{` + twice + `}`,
	} {
		t.Run(which, func(t *testing.T) {
			m := newModel(t, callsOffered(t, "w", "get_weather", `{"place":"Bern"}`), says("Sun."), says("Still."))
			d := newBed(t, m).door()
			f := newNPMProgram(t, "openai", "cases.mjs")
			if got := strings.TrimSpace(f.run(nil, d.server.URL+"/v1", which)); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
			if asked := m.last(); !strings.Contains(asked, `"content":"Sun."`) || !strings.Contains(asked, `"content":"sun"`) {
				t.Errorf("the second turn lacks the first: %s", asked)
			}
		})
	}
}

// TestResponses_References resolves items of earlier responses by their ids, for the token that
// may continue them.
func TestResponses_References(t *testing.T) {
	t.Parallel()
	m := newModel(t, callsOffered(t, "w", "places__get_weather", `{"place":"Bern"}`), says("Sun."), says("Still."))
	h := newBed(t, m).serve("127.0.0.1:0")
	own := h.add(control.TokenRequest{Name: "own", Scopes: []regie.TokenScope{regie.ScopeCompletions}})
	other := h.add(control.TokenRequest{Name: "other", Scopes: []regie.TokenScope{regie.ScopeCompletions}})
	type item struct {
		ID, Name, Namespace string
		CallID              string `json:"call_id"`
	}
	ask := func(token, input string, status int) (items []item, body string) {
		t.Helper()
		response := h.ask("POST", "/v1/responses", `{"model":"main","input":[{"role":"user","content":"weather?"}`+input+`],"tools":[{"type":"web_search"},
			{"type":"namespace","name":"places","tools":[{"type":"function","name":"get_weather","parameters":{"type":"object"}}]}]}`, bearer(token))
		defer response.Body.Close()
		data, err := io.ReadAll(response.Body)
		if err != nil || response.StatusCode != status {
			t.Fatalf("%s: %d %s %v, want %d", input, response.StatusCode, data, err, status)
		}
		var out struct{ Output []item }
		if err := json.Unmarshal(data, &out); err != nil {
			t.Fatal(err)
		}
		if got := response.Header.Get("X-Regie-Ignored"); status == http.StatusOK && got != "tools[0] (web_search)" {
			t.Errorf("ignored: %q", got)
		}
		return out.Output, string(data)
	}
	reference := func(id string) string { return `,{"type":"item_reference","id":"` + id + `"}` }
	first, _ := ask(own.Secret, "", http.StatusOK)
	if len(first) != 1 || first[0].Name != "get_weather" || first[0].Namespace != "places" {
		t.Fatalf("%+v", first)
	}
	result := `,{"type":"function_call_output","call_id":"` + first[0].CallID + `","output":"sun"}`
	second, _ := ask(own.Secret, reference(first[0].ID)+result, http.StatusOK)
	more := `,{"role":"user","content":"and?"}`
	ask(own.Secret, reference(first[0].ID)+result+reference(second[0].ID)+more, http.StatusOK)
	if asked := m.last(); !strings.Contains(asked, `"content":"Sun."`) || !strings.Contains(asked, `"content":"sun"`) {
		t.Errorf("the third request lacks what it refers to: %s", asked)
	}
	for _, c := range []struct{ token, id string }{
		{own.Secret, "msg_x"},
		{own.Secret, "rs_1"},
		{own.Secret, "fc_" + second[0].ID[4:]},
		{own.Secret, "msg_0197e0a1-2b3c-7d4e-8f50-61728394a5b6"},
		{other.Secret, second[0].ID},
		{other.Secret, first[0].ID},
	} {
		if _, body := ask(c.token, reference(c.id)+more, http.StatusNotFound); !strings.Contains(body, `"param":"input[1].id"`) {
			t.Errorf("%s: %s", c.id, body)
		}
	}
	if m.count() != 3 {
		t.Errorf("the model was asked %d times", m.count())
	}
}

// TestPi runs pi over each API that it offers: a tool loop, then a second turn of the same
// conversation.
func TestPi(t *testing.T) {
	t.Parallel()
	if os.Getenv("REGIE_PROOF") != "1" {
		t.Skip("only make proof runs pi (REGIE_PROOF=1)")
	}
	for api, path := range map[string]string{"openai-completions": "/v1", "openai-responses": "/v1", "anthropic-messages": ""} {
		t.Run(api, func(t *testing.T) {
			m := newModel(t,
				callsOffered(t, "r", "read", `{"path":"in.txt"}`),
				callsOffered(t, "b", "bash", `{"command":"tr a-z A-Z < in.txt > out.txt"}`),
				says("Done."), says("Twice."))
			f := newNPMProgram(t, "proof-openai", "node_modules/@mariozechner/pi-coding-agent/dist/cli.js")
			f.write(filepath.Join(f.home, ".pi", "agent", "models.json"), `{"providers":{"regie":{"baseUrl":"`+newBed(t, m).door().server.URL+path+`",
				"api":"`+api+`","apiKey":"unused","models":[{"id":"main"}]}}}`)
			f.write(filepath.Join(f.dir, "in.txt"), "words")
			env := []string{"PI_OFFLINE=1"}
			if got := f.run(env, "-p", "--provider", "regie", "--model", "main", "write in.txt in capitals to out.txt"); got != "Done.\n" {
				t.Errorf("the first turn: %q", got)
			}
			if got := f.read("out.txt"); got != "WORDS" {
				t.Errorf("out.txt: %q", got)
			}
			if got := f.run(env, "-p", "-c", "--provider", "regie", "--model", "main", "once more"); got != "Twice.\n" {
				t.Errorf("the second turn: %q", got)
			}
		})
	}
}
