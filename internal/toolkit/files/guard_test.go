package files

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/tool"
)

// session is a conversation's calls, as a store gives them.
type session struct {
	*desk
	calls []regie.Call
}

func (s *session) earlier(_ context.Context, visit func(regie.Call) bool) error {
	for _, c := range slices.Backward(s.calls) {
		if c.State != regie.CallFailed && !visit(c) {
			return nil
		}
	}
	return nil
}

// call makes a call as the engine does, and remembers it.
func (s *session) call(operation string, args object) tool.Outcome {
	s.t.Helper()
	c, problem := s.check(operation, args)
	if problem != nil {
		s.t.Fatal(problem)
	}
	c.inv.Earlier = s.earlier
	shown, problem := tool.DescribeCall(s.t.Context(), c.tool, c.inv)
	asked := problem
	if problem := c.prepare(s.t); problem != nil {
		if asked == nil || *asked != *problem {
			s.t.Errorf("the preview says %+v, the call %+v", asked, problem)
		}
		return tool.Outcome{State: regie.CallFailed, Error: problem}
	}
	out := c.run(s.t)
	data, _ := json.Marshal(args)
	s.calls = append(s.calls, regie.Call{ID: c.inv.CallID, Tool: "files." + operation, Arguments: string(data), State: out.State, Result: out.Result, Intent: c.inv.Intent})
	out.Whole = strings.Join(said(shown.Warnings), "\n")
	return out
}

// A file that is not what the model saw last is not edited, replaced or deleted; what it saw stands
// in the calls of the session alone.
func TestSeen(t *testing.T) {
	long := strings.Repeat("line\n", 300)
	read := func(s *session) { s.call("read_file", object{"path": "f"}) }
	for name, row := range map[string]struct {
		before func(s *session)
		code   regie.Code
		says   string // the error's sentence, or a warning
	}{
		"never read": {func(*session) {}, "", "the agent has not read f in this session"},
		"read":       {read, "", ""},
		"by a link":  {func(s *session) { s.call("read_file", object{"path": "link"}) }, "", ""},
		"read and changed": {
			func(s *session) { read(s); s.file("f", "other\n"+long) }, regie.CodeFileChanged, "f is not what it was when it was read: somebody else has changed it since",
		},
		"changed and read again": {func(s *session) { read(s); s.file("f", "one\n\n"+long); read(s) }, "", ""},
		"changed beyond what was read": {
			func(s *session) {
				s.call("read_file", object{"path": "f", "end_line": 3})
				s.file("f", "one\n"+long+"more\n")
			}, "", "",
		},
		"moved down": {
			func(s *session) { s.call("read_file", object{"path": "f", "end_line": 3}); s.file("f", "\none\n"+long) }, regie.CodeFileChanged, "f is not what it was when it was read: somebody else has changed it since",
		},
		"own edit after the read": {func(s *session) { read(s); s.call("edit_file", object{"path": "f", "edits": one("one", "one one")}) }, "", ""},
		"own edit and another's": {
			func(s *session) {
				read(s)
				s.call("edit_file", object{"path": "f", "edits": one("one", "one one")})
				s.file("f", "one\n")
			}, regie.CodeFileChanged, "f is not what it was when you changed it: somebody else has changed it since",
		},
		"own write":          {func(s *session) { s.call("write_file", object{"path": "f", "content": "one\n", "mode": "overwrite"}) }, "", ""},
		"read of another":    {func(s *session) { s.file("g", "x"); s.call("read_file", object{"path": "g"}) }, "", "the agent has not read f in this session"},
		"a call that failed": {func(s *session) { s.call("read_file", object{"path": "f", "start_line": 9999}) }, "", "the agent has not read f in this session"},
		"a copy in a fork": {func(s *session) {
			s.call("write_file", object{"path": "f", "content": "one\n", "mode": "overwrite"})
			s.calls[0].Intent = nil
		}, "", ""},
		"own write undone": {func(s *session) {
			s.call("write_file", object{"path": "f", "content": "two\n", "mode": "overwrite"})
			s.file("f", "one\n")
		}, regie.CodeFileChanged, "f is not what it was when you changed it: somebody else has changed it since"},
		"own write, unknown": {func(s *session) {
			s.call("write_file", object{"path": "f", "content": "two\n", "mode": "overwrite"})
			s.file("f", "one\n"+long)
			s.calls[0].State = regie.CallUnknown
		}, "", ""},
		"it was empty before": {func(s *session) { s.file("f", ""); read(s); s.file("f", "one\n") }, regie.CodeFileChanged, "f is not what it was when it was read: somebody else has changed it since"},
	} {
		for _, next := range []struct {
			operation string
			args      object
		}{
			{"edit_file", object{"path": "f", "edits": one("one\n", "1\n")}}, {"write_file", object{"path": "f", "content": "x", "mode": "overwrite"}}, {"delete_file", object{"path": "f"}},
		} {
			s := &session{desk: newDesk(t)}
			s.file("f", "one\n"+long)
			s.must(os.Symlink("f", s.abs("link")))
			row.before(s)
			held := s.content("f")
			out := s.call(next.operation, next.args)
			if codeOf(out) != row.code {
				t.Errorf("%s, %s: %s %+v", name, next.operation, out.State, out.Error)
				continue
			}
			if row.code != "" && (out.Error.Message != row.says || !out.Error.Retryable || s.content("f") != held) {
				t.Errorf("%s, %s: %+v", name, next.operation, out.Error)
			}
			if row.code == "" && strings.Contains(out.Whole, "has not read") != (row.says != "") {
				t.Errorf("%s, %s: warned of %q", name, next.operation, out.Whole)
			}
		}
		s := &session{desk: newDesk(t)}
		s.file("f", "one\n"+long)
		s.must(os.Symlink("f", s.abs("link")))
		row.before(s)
		// it replaces nothing
		if out := s.call("write_file", object{"path": "f", "content": "x", "mode": "append"}); out.State != regie.CallSucceeded {
			t.Errorf("%s, append: %+v", name, out.Error)
		}
	}
}

// approve gives a call what a person's answer gives it.
func (c call) approve(t *testing.T) regie.Preview {
	t.Helper()
	shown, problem := tool.DescribeCall(t.Context(), c.tool, c.inv)
	if problem != nil {
		t.Fatal(problem)
	}
	c.inv.Preconditions = shown.Preconditions
	return shown
}

func TestSecretsAsk(t *testing.T) {
	d := newDesk(t)
	d.file(".env", "KEY=CANARY\n")
	d.file("sub/id_rsa", "CANARY\n")
	d.file(".ssh/config", "CANARY\n")
	d.file("plain", "x\n")
	d.file("ignored.log", "x\n")
	d.file(".gitignore", "*.log\n")
	d.must(os.Symlink("../.env", d.abs("sub/harmless")))
	for _, row := range []struct {
		operation string
		args      object
		asks      string
	}{
		{"read_file", object{"path": ".env"}, ".env may contain a secret: a person decides each time"},
		{"read_file", object{"path": "sub/harmless"}, ".env may contain a secret: a person decides each time"},
		{"read_file", object{"path": "./sub/../sub/id_rsa"}, "sub/id_rsa may contain a secret: a person decides each time"},
		{"read_file", object{"path": ".ssh/config"}, ".ssh/config may contain a secret: a person decides each time"},
		{"read_file", object{"path": "plain"}, ""},
		{"read_file", object{"path": "ignored.log"}, ""},
		{"read_file", object{"path": "none"}, ""},
		{"read_file", object{"path": "../x"}, ""},
		{"write_file", object{"path": "new/.env.local", "content": "x"}, "new/.env.local may contain a secret: a person decides each time"},
		{"write_file", object{"path": "plain", "content": "x", "mode": "overwrite"}, ""},
		{"write_file", object{"path": "new.log", "content": "x"}, "new.log is in an ignore file: changing it needs an approval"},
		{"edit_file", object{"path": "ignored.log", "edits": one("x", "y")}, "ignored.log is in an ignore file: changing it needs an approval"},
		{"edit_file", object{"path": ".gitignore", "edits": one("*.log", "x")}, ".gitignore says which files are left out: a person decides each time"},
		{"write_file", object{"path": "sub/.regieignore", "content": "x"}, "sub/.regieignore says which files are left out: a person decides each time"},
		{"delete_file", object{"path": ".env"}, ".env may contain a secret: a person decides each time"},
		{"delete_file", object{"path": "ignored.log"}, "ignored.log is in an ignore file: changing it needs an approval"},
	} {
		c, problem := d.check(row.operation, row.args)
		if problem != nil {
			t.Fatal(problem)
		}
		if got := strings.Join(said(tool.MustAsk(t.Context(), c.tool, c.inv)), "\n"); got != row.asks {
			t.Errorf("%s %v asks %q", row.operation, row.args, got)
		}
		if row.asks == "" {
			continue
		}
		// Without a person's word it is refused, whoever calls.
		if out := d.do(row.operation, row.args); codeOf(out) != regie.CodePathProtected {
			t.Errorf("%s %v without a word: %s %+v", row.operation, row.args, out.State, out.Error)
		}
		// With it, it is done; what was shown does not tell the secret, and no standing rule can
		// come of it.
		shown := c.approve(t)
		if text := render(regie.Preview{Sentence: shown.Sentence, Warnings: shown.Warnings, Diff: shown.Diff, Scopes: make([]regie.Scope, 1)}); strings.Contains(text, "CANARY") || len(shown.Scopes) != 0 {
			t.Errorf("%s %v is shown as %s with %v", row.operation, row.args, text, shown.Scopes)
		}
		if problem := c.prepare(t); problem != nil {
			t.Errorf("%s %v approved: %+v", row.operation, row.args, problem)
			continue
		}
		if row.operation == "read_file" {
			if out := c.run(t); out.State != regie.CallSucceeded || !strings.Contains(out.Result, "CANARY") {
				t.Errorf("%s %v approved: %+v", row.operation, row.args, out)
			}
		}
	}
	// The word is for that very file.
	c, _ := d.check("read_file", object{"path": "sub/harmless"})
	c.approve(t)
	d.must(os.Remove(d.abs("sub/harmless")))
	d.must(os.Symlink("../.ssh/config", d.abs("sub/harmless")))
	if out := c.run(t); codeOf(out) != regie.CodeStalePreview {
		t.Errorf("a link that leads elsewhere by now: %+v", out)
	}
	// An edit would tell by its errors what stands in a secret: it is refused, approved or not.
	e, _ := d.check("edit_file", object{"path": ".env", "edits": one("KEY", "x")})
	if _, refusal := tool.DescribeCall(t.Context(), e.tool, e.inv); refusal == nil || refusal.Code != regie.CodePathProtected {
		t.Errorf("%+v", refusal)
	}
	// Neither a search nor a list shows it.
	for _, args := range []object{{"query": "canary"}, {"query": "canary", "path": "sub"}} {
		if out := d.do("search_text", args); strings.Contains(out.Result, "CANARY") || !strings.Contains(out.Result, "not searched because they may hold secrets") {
			t.Errorf("%q", out.Result)
		}
	}
	for path, code := range map[string]regie.Code{".env": regie.CodePathProtected, "sub/harmless": regie.CodePathProtected, ".ssh": regie.CodePathProtected} {
		if out := d.do("search_text", object{"query": "canary", "path": path}); codeOf(out) != code {
			t.Errorf("%s: %+v", path, out)
		}
	}
}
