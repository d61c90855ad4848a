package mcpserver_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/regie-run/regie/internal/provider/providertest"
)

// npm returns what node runs of the packages that make npm installs.
func npm(t *testing.T, module string) (node, dir string) {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("testdata", "npm"))
	if err == nil {
		_, err = os.Stat(filepath.Join(dir, "node_modules", module, "package.json"))
	}
	if err == nil {
		node, err = exec.LookPath("node")
	}
	if err != nil {
		if os.Getenv("REGIE_CI") == "1" {
			t.Fatalf("%s of npm is not there (make npm installs it): %v", module, err)
		}
		t.Skipf("%s of npm is not there: make npm installs it", module)
	}
	return node, dir
}

// apply are the scenarios of the official conformance suite that apply to this server.
var apply = []string{
	"server-initialize", "logging-set-level", "ping", "tools-list", "server-sse-polling", "server-sse-multiple-streams", "resources-list", "prompts-list",
	"dns-rebinding-protection",
}

// fixtures are the scenarios that do not, with the reason: most call tools, resources and prompts
// of a server that is made for them.
var fixtures = map[string]string{
	"completion-complete":    "no completion: no prompts, and one resource template whose parameter is an id",
	"tools-call-simple-text": "calls the fixture test_simple_text", "tools-call-image": "calls the fixture test_image_content",
	"tools-call-audio": "calls the fixture test_audio_content", "tools-call-embedded-resource": "calls the fixture test_embedded_resource",
	"tools-call-mixed-content": "calls the fixture test_multiple_content_types", "tools-call-with-logging": "calls the fixture test_tool_with_logging",
	"tools-call-error": "calls the fixture test_error_handling", "tools-call-with-progress": "calls the fixture test_tool_with_progress",
	"tools-call-sampling": "the server never samples: its agents have their own models", "tools-call-elicitation": "calls the fixture test_elicitation",
	"json-schema-2020-12": "looks at the fixture json_schema_2020_12_tool", "elicitation-sep1034-defaults": "calls a fixture", "elicitation-sep1330-enums": "calls a fixture",
	"resources-read-text": "reads the fixture test://static-text", "resources-read-binary": "reads the fixture test://static-binary",
	"resources-templates-read": "reads a fixture of a template", "resources-subscribe": "no subscriptions: session_status waits", "resources-unsubscribe": "no subscriptions",
	"prompts-get-simple": "no prompts", "prompts-get-with-args": "no prompts", "prompts-get-embedded-resource": "no prompts", "prompts-get-with-image": "no prompts",
}

var summary = regexp.MustCompile(`(?m)^([✓✗]) ([a-z0-9-]+): (\d+) passed, (\d+) failed`)

// TestConformance runs the official conformance suite against the server over HTTP: every scenario
// is known here, and those that apply pass.
func TestConformance(t *testing.T) {
	node, dir := npm(t, "@modelcontextprotocol/conformance")
	b := newHarness(t)
	cmd := exec.CommandContext(t.Context(), node, "--import", "./globsync.mjs", "node_modules/@modelcontextprotocol/conformance/dist/index.js",
		"server", "--url", b.serve(), "--suite", "all", "--output-dir", t.TempDir())
	cmd.Dir = dir
	out, _ := cmd.CombinedOutput() // it fails, because of what does not apply
	seen := map[string]bool{}
	for _, line := range summary.FindAllStringSubmatch(string(out), -1) {
		seen[line[2]] = line[1] == "✓" && line[4] == "0"
	}
	for _, name := range apply {
		if passed, ran := seen[name]; !passed {
			t.Errorf("%s: ran: %v, passed: %v", name, ran, passed)
		}
		delete(seen, name)
	}
	for name, passed := range seen {
		if fixtures[name] == "" || passed {
			t.Errorf("%s is not known here, or passes by now: %v", name, passed)
		}
	}
	if t.Failed() || len(seen) != len(fixtures) {
		t.Errorf("%d scenarios beside those that apply, want %d:\n%s", len(seen), len(fixtures), out)
	}
}

// report is what client.mjs writes.
type report struct {
	Tools   []string
	Read    result
	Secret  result
	Started struct {
		StructuredContent status
	}
	Asked, Progress []string
}

type result struct {
	IsError bool
	Content []struct{ Text string }
}

type status struct {
	State, Answer string
	End           string `json:"end_reason"`
	ID            string `json:"session_id"`
}

func client(t *testing.T, env []string, args ...string) report {
	t.Helper()
	node, dir := npm(t, "@modelcontextprotocol/sdk")
	cmd := exec.CommandContext(t.Context(), node, append([]string{"client.mjs"}, args...)...)
	cmd.Dir, cmd.Env, cmd.Stderr = dir, env, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var r report
	if err := json.Unmarshal(out, &r); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return r
}

// TestNPM has the official client of npm do the whole job over both transports: on standard input
// and output the program itself, with an approval that is put to the person at its end; over HTTP
// it is a person's elsewhere.
func TestNPM(t *testing.T) {
	t.Run("stdio", func(t *testing.T) {
		b, program, env := apart(t, writes(), providertest.Scene{Text: []string{"Written."}})
		got := client(t, append(env, "WORKSPACE="+b.root), program, "mcp")
		if s := got.Started.StructuredContent; s.End != "ANSWERED" || s.Answer != "Written." || len(got.Asked) != 1 || !strings.Contains(got.Asked[0], "+one") || len(got.Progress) == 0 {
			t.Errorf("%+v", got)
		}
		if got.Read.IsError || !strings.Contains(got.Read.Content[0].Text, "alpha") || !got.Secret.IsError {
			t.Errorf("%+v", got)
		}
		if _, err := os.Stat(filepath.Join(b.root, "new.txt")); err != nil {
			t.Error(err)
		}
	})
	t.Run("http", func(t *testing.T) {
		b := newHarness(t, writes(), providertest.Scene{Text: []string{"Written."}})
		got := client(t, os.Environ(), b.serve())
		if s := got.Started.StructuredContent; s.State != "WAITING_VALIDATION" || len(got.Asked) != 0 || len(got.Tools) != 9 || got.Read.IsError || !got.Secret.IsError {
			t.Errorf("%+v", got)
		}
	})
}

// apart is a harness whose engine is no part of this process, with the program and its environment.
func apart(t *testing.T, scenes ...providertest.Scene) (b *harness, program string, env []string) {
	t.Helper()
	b = newHarness(t, scenes...)
	b.close()
	program = filepath.Join(t.TempDir(), "regie")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "../../cmd/regie").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "OLLAMA_HOST=127.0.0.1:1"}
	for name, value := range b.env {
		env = append(env, name+"="+value)
	}
	return b, program, env
}

// TestEngineKilled: the engine dies by SIGKILL while a client of another regie waits: that one
// takes over, the run goes on, and the client gets its answer.
func TestEngineKilled(t *testing.T) {
	b, program, env := apart(t)
	address, err := url.Parse(strings.TrimSuffix(b.env["REGIE_BASE_URL"], "/v1"))
	if err != nil {
		t.Fatal(err)
	}
	answers, asked, reached := httputil.NewSingleHostReverseProxy(address), make(chan struct{}, 1), make(chan struct{})
	silent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case asked <- struct{}{}: // the first one gets no answer
			_, _ = io.Copy(io.Discard, r.Body)
			close(reached)
			<-r.Context().Done()
		default:
			answers.ServeHTTP(w, r)
		}
	}))
	defer silent.Close()
	env = append(env, "REGIE_BASE_URL="+silent.URL+"/v1")
	speak := func() (*mcp.ClientSession, *exec.Cmd) {
		cmd := exec.Command(program, "mcp") //nolint:noctx // its client ends it
		cmd.Dir, cmd.Env, cmd.Stderr = b.root, env, os.Stderr
		return b.connect(&mcp.CommandTransport{Command: cmd}, nil), cmd
	}
	_, engine := speak() // it answers once it holds the data directory
	session, _ := speak()
	done := make(chan map[string]any, 1)
	go func() {
		_, data, _ := call(t, session, "start_session", object{"prompt": "say hello", "wait": 60})
		done <- data
	}()
	select {
	case <-reached:
	case data := <-done:
		t.Fatalf("it ended before the model was asked: %v", data)
	}
	if err := engine.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if data := <-done; data["answer"] != "Hello there." || data["end_reason"] != "ANSWERED" {
		t.Errorf("%v", data)
	}
}
