package store

import (
	"strings"
	"testing"

	"github.com/regie-run/regie"
)

// TestAbout: an event says which file or query a call is about, whatever a model writes as
// arguments.
func TestAbout(t *testing.T) {
	for arguments, want := range map[string]string{
		`{"path":"a.md","content":"x"}`:                    "a.md",
		`{ "content": "\"path\": \"b\"", "path" : "a.md"}`: "a.md",
		`{"path":"a \"b\" é.md"}`:                          `a "b" é.md`,
		`{"path":".","query":"x.y"}`:                       "x.y",
		`{"url":"https://a.example/x","format":"text"}`:    "https://a.example/x",
		`{"path":7}`:    "",
		`{"path":"cut`:  "",
		`{"path":"cut\`: "",
		`{"path"`:       "",
		`{}`:            "",
		``:              "",
		`{"path":"` + strings.Repeat("é", 200) + `"}`:  strings.Repeat("é", 100),
		`{"path":"x` + strings.Repeat("é", 200) + `"}`: "x" + strings.Repeat("é", 99),
	} {
		if got := About(&regie.Call{Arguments: arguments}); got != want {
			t.Errorf("%s: %q", arguments, got)
		}
	}
	online := regie.Call{Tool: commandTool, Arguments: `{"command":"npm install","network":true}`}
	if got := About(&online); got != "+network npm install" {
		t.Errorf("of a command with the network: %q", got)
	}
	if got := About(&regie.Call{Arguments: `{"path":"a"}`, Executed: []byte(`{"path":"b"}`)}); got != "b" {
		t.Errorf("of edited arguments: %q", got)
	}
}

// TestExitCode: a command that failed is told as failed; a file that looks like its result is not.
func TestExitCode(t *testing.T) {
	for _, row := range []struct{ tool, result, want string }{
		{"shell.shell_exec", "exit code: 128\noutput:\n", "128"}, {"shell.shell_exec", "exit code: 0\n", ""}, {"shell.shell_exec", "", ""}, {"files.read_file", "exit code: 1\n", ""},
	} {
		if got := ExitCode(&regie.Call{Tool: row.tool, Result: row.result}); got != row.want {
			t.Errorf("%s %q: %q", row.tool, row.result, got)
		}
	}
}
