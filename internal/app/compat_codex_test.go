package app_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

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
				replyWith("", call{id, tool.Function.Name, arguments})(w, r)
				return
			}
		}
		t.Errorf("the model is not offered %s: %+v", name, request.Tools)
		replyWith("no such tool")(w, r)
	}
}

// codex returns a Codex whose only provider is the door.
func codex(t *testing.T, d *door) *npmProgram {
	t.Helper()
	f := newNPMProgram(t, "openai/node_modules/@openai/codex/bin/codex.js")
	f.env = append(f.env, "CODEX_HOME="+filepath.Join(f.home, ".codex"))
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
	f.run(append([]string{"exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "-o", reply}, args...)...)
	data, err := os.ReadFile(reply)
	fatal(f.t, err)
	return string(data)
}

// TestCodex_Text answers Codex, whose request has a namespace of tools and a hosted one, and its
// next turn.
func TestCodex_Text(t *testing.T) {
	t.Parallel()
	m := newModel(t, replyWith("Hello from Regie."), replyWith("And again."))
	f := codex(t, newHarness(t, m).door())
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
		replyWith("Done."))
	f := codex(t, newHarness(t, m).door())
	f.write("in.txt", "words")
	if got := f.askCodex("write in.txt in capitals to out.txt"); got != "Done." {
		t.Errorf("%q", got)
	}
	f.holds("out.txt", "WORDS")
	if asked := m.last(); !strings.Contains(asked, "words") {
		t.Errorf("the model is not told what the file says: %s", asked)
	}
}

// TestCodex_Namespace has the model call a tool of a namespace: Codex finds it under the
// namespace's name.
func TestCodex_Namespace(t *testing.T) {
	t.Parallel()
	m := newModel(t, callsOffered(t, "c", "multi_agent_v1__close_agent", `{"target":"nobody"}`), replyWith("Done."))
	f := codex(t, newHarness(t, m).door())
	if got := f.askCodex("close an agent"); got != "Done." {
		t.Errorf("%q", got)
	}
	if asked := m.last(); strings.Contains(asked, "unsupported call") || !strings.Contains(asked, "invalid agent id") {
		t.Errorf("Codex did not run its tool: %s", asked)
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
				replyWith("Done."), replyWith("Twice."))
			f := newNPMProgram(t, "proof-openai/node_modules/@mariozechner/pi-coding-agent/dist/cli.js", "PI_OFFLINE=1")
			f.write(filepath.Join(f.home, ".pi", "agent", "models.json"), `{"providers":{"regie":{"baseUrl":"`+newHarness(t, m).door().server.URL+path+`",
				"api":"`+api+`","apiKey":"unused","models":[{"id":"main"}]}}}`)
			f.write("in.txt", "words")
			if got := f.run("-p", "--provider", "regie", "--model", "main", "write in.txt in capitals to out.txt"); got != "Done.\n" {
				t.Errorf("the first turn: %q", got)
			}
			f.holds("out.txt", "WORDS")
			if got := f.run("-p", "-c", "--provider", "regie", "--model", "main", "once more"); got != "Twice.\n" {
				t.Errorf("the second turn: %q", got)
			}
		})
	}
}
