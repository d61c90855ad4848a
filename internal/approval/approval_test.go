package approval_test

import (
	"encoding/json"
	"path"
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/approval"
)

// TestPolicyAllows compares patterns with tools, for an action that is asked about by default.
func TestPolicyAllows(t *testing.T) {
	for _, c := range []struct {
		allow []string
		tool  string
		want  regie.Verdict
	}{
		{nil, "files.write_file", regie.VerdictAsk},
		{[]string{"files.write_file"}, "files.write_file", regie.VerdictAllow},
		{[]string{"files.*"}, "files.write_file", regie.VerdictAllow},
		{[]string{"*.*"}, "bank.pay", regie.VerdictAllow},
		{[]string{"files.*"}, "filesystem.wipe", regie.VerdictAsk},
		{[]string{"files.write"}, "files.write_file", regie.VerdictAsk},
		{[]string{"shell.*", "notes.*"}, "notes.create_note", regie.VerdictAllow},
		{[]string{"[broken"}, "files.write_file", regie.VerdictAsk},
		{[]string{"*[", "files.*\\"}, "files.write_file", regie.VerdictAsk},
		{[]string{"*", ""}, "", regie.VerdictAsk},
	} {
		in := call(withLevel(approval.Level{Source: regie.SourceApp, Require: approval.RequireWrites}))
		in.Tool, in.Policy.Allow = c.tool, c.allow
		if got := approval.Decide(in).Verdict; got != c.want {
			t.Errorf("%s with %v: %s, want %s", c.tool, c.allow, got, c.want)
		}
	}
}

func TestPolicyValidate(t *testing.T) {
	for name, c := range map[string]struct {
		policy approval.Policy
		want   regie.Code
	}{
		"broken":  {approval.Policy{Allow: []string{"files.*", "[x"}}, regie.CodeBadPattern},
		"empty":   {approval.Policy{Allow: []string{""}}, regie.CodeBadPattern},
		"unknown": {approval.Policy{OnApproval: "maybe"}, regie.CodeBadRequest},
		"zero":    {approval.Policy{}, ""},
		"park":    {approval.Policy{OnApproval: approval.Park}, ""},
		"deny":    {approval.Policy{OnApproval: approval.DenyAndGoOn}, ""},
		"fail":    {approval.Policy{Allow: []string{"files.*"}, OnApproval: approval.FailRun}, ""},
	} {
		if got := regie.CodeOf(c.policy.Validate()); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestPolicyJSON keeps what rounds have stored readable.
func TestPolicyJSON(t *testing.T) {
	const stored = `{"allow":["files.*"],"on_approval":"park"}`
	var policy approval.Policy
	if err := json.Unmarshal([]byte(stored), &policy); err != nil {
		t.Fatal(err)
	}
	if data, err := json.Marshal(policy); err != nil || string(data) != stored || policy.OnApproval != approval.Park {
		t.Errorf("%s, %v", data, err)
	}
	if data, err := json.Marshal(approval.Policy{}); err != nil || string(data) != "{}" {
		t.Errorf("%s, %v", data, err)
	}
}

// FuzzDecide looks for a path that an allow rule of a folder covers and that its letters lead out
// of it, for one that a forbidding rule of the folder misses, for a malformed pattern that allows,
// and for a panic.
func FuzzDecide(f *testing.F) {
	f.Add("docs", "docs/a.md", "files.*", "files.write_file", `{"lines":3}`)
	f.Add("docs", "docs/../secrets", "[", "", `{"path":["docs/a"]}`)
	f.Add("docs", "/docs/a", "files.[a-", "files.x", `null`)
	f.Add("..", "../a", `\`, "a", `[]`)
	f.Add("a/./b", "a/./b/c", "*", "*", `{"path":{"path":"a"}}`)
	f.Fuzz(func(t *testing.T, dir, name, pattern, tool, arguments string) {
		in := call(func(in *approval.Input) {
			in.Tool, in.Policy.Allow = tool, []string{pattern}
			in.Levels = []approval.Level{{Source: regie.SourceApp, Require: approval.RequireAll}}
		})
		verdict := approval.Decide(in).Verdict
		if _, err := path.Match(pattern, tool); (err != nil || tool == "") && verdict != regie.VerdictAsk {
			t.Errorf("the pattern %q makes %s of a call of %q", pattern, verdict, tool)
		}
		if in.Policy.Validate() != nil && pattern != "" && verdict == regie.VerdictAllow {
			t.Errorf("the pattern %q is refused, and allows %q", pattern, tool)
		}

		in.Policy.Allow = nil
		scope := regie.Scope{Tool: tool, Field: "path", Kind: regie.ScopeUnder, Value: dir}
		verdicts := func() (allow, forbid regie.Verdict) {
			in.Rules = []regie.Rule{rule(regie.VerdictAllow, scoped(scope))}
			allow = approval.Decide(in).Verdict
			in.Rules = []regie.Rule{rule(regie.VerdictForbid, scoped(scope))}
			return allow, approval.Decide(in).Verdict
		}
		in.Arguments = map[string]any{"path": name}
		allow, forbid := verdicts()
		leads := path.IsAbs(name) || strings.Contains("/"+name+"/", "/../")
		inside := strings.HasPrefix(path.Clean("/"+name)+"/", path.Clean("/"+dir)+"/")
		switch {
		case allow == regie.VerdictAllow && (leads || !inside):
			t.Errorf("%q is allowed as one below %q", name, dir)
		case tool != "" && leads && forbid != regie.VerdictMustAsk:
			t.Errorf("%q, where nothing below %q may be written: %s", name, dir, forbid)
		case tool != "" && path.Clean(name) != dir && inside && forbid == regie.VerdictAsk:
			t.Errorf("%q lies below the forbidden %q, and is not noticed", name, dir)
		case (allow == regie.VerdictAllow) != (forbid == regie.VerdictForbid):
			t.Errorf("%q below %q: a rule that allows makes %s, one that forbids %s", name, dir, allow, forbid)
		}

		in.Arguments = nil
		if json.Unmarshal([]byte(arguments), &in.Arguments) == nil {
			allow, forbid = verdicts()
			if (allow == regie.VerdictAllow) != (forbid == regie.VerdictForbid) {
				t.Errorf("%s below %q: a rule that allows makes %s, one that forbids %s", arguments, dir, allow, forbid)
			}
		}
	})
}
