package approval_test

import (
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/approval"
)

// TestFileRules is what a rule of a file says of calls, at last: the verdict.
func TestFileRules(t *testing.T) {
	push := func(dir string) string { return regie.Command{Argv: []string{"git", "push"}, Dir: dir}.String() }
	forbid, allow := regie.VerdictForbid, regie.VerdictAllow
	for _, row := range []struct {
		name      string
		rule      approval.FileRule
		tool      string
		arguments map[string]any
		want      regie.Verdict
	}{
		{"the tool", approval.FileRule{Tool: "files.write_file", Verdict: forbid}, "files.write_file", nil, forbid},
		{"another tool", approval.FileRule{Tool: "files.write_file", Verdict: forbid}, "files.edit_file", nil, regie.VerdictAsk},
		{"a pattern", approval.FileRule{Tool: "mcp_*.*", Verdict: forbid}, "mcp_bank.pay", nil, forbid},
		{"every tool", approval.FileRule{Tool: "*", Verdict: forbid}, "a.b", nil, forbid},
		{"a pattern that is none", approval.FileRule{Tool: "[", Verdict: forbid}, "[", nil, regie.VerdictAsk},
		{"a file", approval.FileRule{Tool: "*", Path: "a.txt", Verdict: forbid}, "a.b", map[string]any{"path": "a.txt"}, forbid},
		{"another file", approval.FileRule{Tool: "*", Path: "a.txt", Verdict: forbid}, "a.b", map[string]any{"path": "b.txt"}, regie.VerdictAsk},
		{"the file, written otherwise", approval.FileRule{Tool: "*", Path: "a.txt", Verdict: forbid}, "a.b", map[string]any{"path": "./a.txt"}, regie.VerdictMustAsk},
		{"no path", approval.FileRule{Tool: "*", Path: "a.txt", Verdict: forbid}, "a.b", map[string]any{"x": "a.txt"}, regie.VerdictMustAsk},
		{"below", approval.FileRule{Tool: "*", Path: "docs", Below: true, Verdict: forbid}, "a.b", map[string]any{"path": "docs/x/y"}, forbid},
		{"beside", approval.FileRule{Tool: "*", Path: "docs", Below: true, Verdict: forbid}, "a.b", map[string]any{"path": "docs2/x"}, regie.VerdictAsk},
		{"around", approval.FileRule{Tool: "*", Path: "docs", Below: true, Verdict: forbid}, "a.b", map[string]any{"path": "x/../docs/y"}, regie.VerdictMustAsk},
		{"a command", approval.FileRule{Tool: "shell.*", Argv: []string{"git", "push"}, Verdict: forbid}, "shell.shell_exec", map[string]any{regie.FieldCommand: push(".")}, forbid},
		{"in another directory", approval.FileRule{Tool: "shell.*", Argv: []string{"git", "push"}, Verdict: forbid}, "shell.shell_exec", map[string]any{regie.FieldCommand: push("sub")}, forbid},
		{"another command", approval.FileRule{Tool: "shell.*", Argv: []string{"git"}, Verdict: forbid}, "shell.shell_exec", map[string]any{regie.FieldCommand: push(".")}, regie.VerdictAsk},
		{"what is not literal", approval.FileRule{Tool: "shell.*", Argv: []string{"git", "push"}, Verdict: forbid}, "shell.shell_exec", map[string]any{"command": "git push; x"}, regie.VerdictMustAsk},
		{"allowed", approval.FileRule{Tool: "*", Path: "docs", Below: true, Verdict: allow}, "a.b", map[string]any{"path": "docs/x"}, allow},
		{"not allowed around", approval.FileRule{Tool: "*", Path: "docs", Below: true, Verdict: allow}, "a.b", map[string]any{"path": "docs/../x"}, regie.VerdictAsk},
		{"a command is allowed", approval.FileRule{Tool: "*", Argv: []string{"git", "push"}, Verdict: allow}, "a.b", map[string]any{regie.FieldCommand: push(".")}, allow},
		{"and not in another directory", approval.FileRule{Tool: "*", Argv: []string{"git", "push"}, Verdict: allow}, "a.b", map[string]any{regie.FieldCommand: push("sub")}, regie.VerdictAsk},
		{"in a named one", approval.FileRule{Tool: "*", Argv: []string{"git", "push"}, Cwd: "sub", Verdict: allow}, "a.b", map[string]any{regie.FieldCommand: push("sub")}, allow},
		{"not at the top then", approval.FileRule{Tool: "*", Argv: []string{"git", "push"}, Cwd: "sub", Verdict: allow}, "a.b", map[string]any{regie.FieldCommand: push(".")}, regie.VerdictAsk},
		{"not below it", approval.FileRule{Tool: "*", Argv: []string{"git", "push"}, Cwd: "sub", Verdict: allow}, "a.b", map[string]any{regie.FieldCommand: push("sub/a")}, regie.VerdictAsk},
		{"in one with what lies below", approval.FileRule{Tool: "*", Argv: []string{"git", "push"}, Cwd: "sub/**", Verdict: allow}, "a.b", map[string]any{regie.FieldCommand: push("sub")}, allow},
		{"below it", approval.FileRule{Tool: "*", Argv: []string{"git", "push"}, Cwd: "sub/**", Verdict: allow}, "a.b", map[string]any{regie.FieldCommand: push("sub/a/b")}, allow},
		{"beside it", approval.FileRule{Tool: "*", Argv: []string{"git", "push"}, Cwd: "sub/**", Verdict: allow}, "a.b", map[string]any{regie.FieldCommand: push("sub2")}, regie.VerdictAsk},
		{"in any", approval.FileRule{Tool: "*", Argv: []string{"git", "push"}, Cwd: "**", Verdict: allow}, "a.b", map[string]any{regie.FieldCommand: push("x/y")}, allow},
		{"any command is allowed", approval.FileRule{Tool: "shell.*", Verdict: allow}, "shell.shell_exec", map[string]any{regie.FieldCommand: push(".")}, allow},
		{"and not elsewhere", approval.FileRule{Tool: "shell.*", Verdict: allow}, "shell.shell_exec", map[string]any{regie.FieldCommand: push("sub")}, regie.VerdictAsk},
		{"nor by a shell", approval.FileRule{Tool: "shell.*", Cwd: "**", Verdict: allow}, "shell.shell_exec", map[string]any{"command": "git push | x"}, regie.VerdictAsk},
		{"nor under every tool", approval.FileRule{Tool: "*", Cwd: "**", Verdict: allow}, "shell.shell_exec", map[string]any{"command": "git push > x"}, regie.VerdictAsk},
		{"every command is forbidden", approval.FileRule{Tool: "shell.*", Verdict: forbid}, "shell.shell_exec", map[string]any{"command": "git push | x"}, forbid},
		{"a tool without commands", approval.FileRule{Tool: "*", Verdict: allow}, "a.b", map[string]any{"command": "x | y"}, allow},
		{"a directory of commands says nothing of a write", approval.FileRule{Tool: "files.write_file", Cwd: "docs", Verdict: allow}, "files.write_file", map[string]any{"path": "a.txt"}, regie.VerdictAsk},
		{"nor of a write in it", approval.FileRule{Tool: "*", Cwd: "docs/**", Verdict: allow}, "files.write_file", map[string]any{"path": "docs/a.txt"}, regie.VerdictAsk},
		{"nor does any directory", approval.FileRule{Tool: "*", Cwd: "**", Verdict: allow}, "a.b", map[string]any{"command": "x"}, regie.VerdictAsk},
		{"a page", approval.FileRule{Tool: "w.f", URL: "https://a.example/x", Verdict: forbid}, "w.f", map[string]any{"url": "https://A.example:443/x#y"}, forbid},
		{"another page", approval.FileRule{Tool: "w.f", URL: "https://a.example/x", Verdict: forbid}, "w.f", map[string]any{"url": "https://a.example/xy"}, regie.VerdictAsk},
		{"a page below", approval.FileRule{Tool: "w.f", URL: "https://a.example/d/", Verdict: allow}, "w.f", map[string]any{"url": "https://a.example/d/x?y=z"}, allow},
		{"a page beside", approval.FileRule{Tool: "w.f", URL: "https://a.example/d/", Verdict: allow}, "w.f", map[string]any{"url": "https://a.example/dx"}, regie.VerdictAsk},
		{"a page around", approval.FileRule{Tool: "w.f", URL: "https://a.example/d/", Verdict: allow}, "w.f", map[string]any{"url": "https://a.example/d/..%2fx"}, regie.VerdictAsk},
		{"a forbidden page, perhaps", approval.FileRule{Tool: "w.f", URL: "https://a.example/d/", Verdict: forbid}, "w.f", map[string]any{"url": "https://a.example/x/../d/y"}, regie.VerdictMustAsk},
		{"a forbidden host with a dot", approval.FileRule{Tool: "w.f", URL: "https://a.example/", Verdict: forbid}, "w.f", map[string]any{"url": "https://a.example./d"}, regie.VerdictMustAsk},
		{"a forbidden host with a port", approval.FileRule{Tool: "w.f", URL: "https://a.example/", Verdict: forbid}, "w.f", map[string]any{"url": "https://a.example:0443/d"}, regie.VerdictMustAsk},
		{"a page of another host", approval.FileRule{Tool: "w.f", URL: "https://a.example/", Verdict: allow}, "w.f", map[string]any{"url": "https://a.example.evil/"}, regie.VerdictAsk},
		{"a page of a user", approval.FileRule{Tool: "w.f", URL: "https://a.example/", Verdict: allow}, "w.f", map[string]any{"url": "https://a.example@evil/"}, regie.VerdictAsk},
		{"what is not literal is not allowed", approval.FileRule{Tool: "*", Argv: []string{"git", "push"}, Verdict: allow}, "a.b", map[string]any{"command": "git push"}, regie.VerdictAsk},
	} {
		t.Run(row.name, func(t *testing.T) {
			workspace, rule := regie.NewID(), row.rule
			rule.Where = "f (approvals.rules[1])"
			in := approval.Input{
				Tool: row.tool, Kind: regie.KindAction, Risk: regie.RiskInternal, Arguments: row.arguments, WorkspaceID: workspace, SessionID: regie.NewID(),
				Levels: []approval.Level{{Source: regie.SourceApp, Require: approval.RequireWrites}},
			}
			in.Rules = approval.FileRules([]approval.FileRule{rule}, workspace, approval.FileCall{Tool: row.tool, Arguments: row.arguments, Runs: row.tool == "shell.shell_exec"})
			got := approval.Decide(in)
			if got.Verdict != row.want {
				t.Errorf("%s: %+v", got.Verdict, got.Grounds)
			}
			if got.Verdict == forbid && got.Grounds[0].Sentence.String() != "f (approvals.rules[1]) forbids this" {
				t.Errorf("%s", got.Grounds[0].Sentence)
			}
		})
	}
}
