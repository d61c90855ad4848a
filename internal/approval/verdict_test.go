package approval_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/approval"
)

// withObjection has a hook say something of the call.
func withObjection(verdict regie.Verdict) func(*approval.Input) {
	return func(in *approval.Input) {
		in.Objections = append(in.Objections, regie.Ground{Source: regie.SourceHook, Verdict: verdict, Sentence: regie.Say("the hook %s forbids it", "x")})
	}
}

// TestSentences has a row for each sentence of decisions 5, 19, 34, 36, 40 and 49 and of spec 4.2
// and 4.4 that is about the verdict.
func TestSentences(t *testing.T) {
	writes := withLevel(approval.Level{Source: regie.SourceApp, Require: approval.RequireWrites})
	allowed := withRule(regie.VerdictAllow)
	query := func(in *approval.Input) { in.Kind = regie.KindQuery }
	role := func(role regie.ToolRole) func(*approval.Input) { return func(in *approval.Input) { in.Role = role } }
	external := func(in *approval.Input) { in.Risk = regie.RiskExternal }
	demand := withLevel(approval.Level{Source: regie.SourceApp, RequireValidation: true})
	type edits = []func(*approval.Input)
	for _, c := range []struct {
		sentence string
		edits    edits
		want     regie.Verdict
		by       []regie.Source
	}{
		{"nothing asks", nil, "ALLOW", nil},
		{"any forbid: forbidden", edits{writes, demand, allowed, withRule(regie.VerdictForbid)}, "FORBID", []regie.Source{"rule", "app", "app"}},
		{"else any must-ask: asked", edits{writes, demand, allowed}, "MUST_ASK", []regie.Source{"app", "app"}},
		{"else an allow rule: allowed", edits{writes, allowed}, "ALLOW", []regie.Source{"rule", "app"}},
		{"else any ask: asked", edits{writes}, "ASK", []regie.Source{"app"}},
		{"what the run was started with allows like a rule", edits{writes, withAllowed("files.*")}, "ALLOW", []regie.Source{"run", "app"}},
		{"require: writes is about actions", edits{writes, query}, "ALLOW", nil},
		{"require: all is about queries too", edits{withLevel(approval.Level{Source: regie.SourceAgent, Require: "all"}), query}, "ASK", []regie.Source{"agent"}},
		{"require: none asks about nothing", edits{withLevel(approval.Level{Source: regie.SourceApp, Require: "none"})}, "ALLOW", nil},
		{"require: none on one level takes nothing from another", edits{withLevel(approval.Level{Source: regie.SourceSession, Require: "none"}), writes}, "ASK", []regie.Source{"app"}},
		{"external: always confirm", edits{external, query}, "ASK", []regie.Source{"tool"}},
		{"a tool's risk is a default", edits{external, allowed}, "ALLOW", []regie.Source{"rule", "tool"}},
		{"if any level says yes", edits{writes, withLevel(approval.Level{Source: regie.SourceSession, RequireValidation: true})}, "MUST_ASK", []regie.Source{"session", "app"}},
		{"a level says one thing, the strictest", edits{withLevel(approval.Level{Source: regie.SourceAgent, RequireValidation: true, Require: "all"})}, "MUST_ASK", []regie.Source{"agent"}},
		{"no standing rule lifts require_validation", edits{demand, allowed, withAllowed("*")}, "MUST_ASK", []regie.Source{"app"}},
		{"approval is a property of a call of any kind", edits{query, withRule(regie.VerdictMustAsk)}, "MUST_ASK", []regie.Source{"rule"}},
		{"a rule that asks is explicit", edits{withRule(regie.VerdictAsk), allowed}, "MUST_ASK", []regie.Source{"rule"}},
		{"the model's own request", edits{allowed, func(in *approval.Input) { in.ModelAsks = true }}, "MUST_ASK", []regie.Source{"model"}},
		{"taint where data can leave", edits{allowed, func(in *approval.Input) { in.Tainted, in.ReadPrivate, in.Egress = true, true, true }}, "MUST_ASK", []regie.Source{"taint"}},
		{"taint without egress", edits{func(in *approval.Input) { in.Tainted, in.ReadPrivate = true, true }}, "ALLOW", nil},
		{"taint without private data", edits{func(in *approval.Input) { in.Tainted, in.Egress = true, true }}, "ALLOW", nil},
		{"private data without taint", edits{func(in *approval.Input) { in.ReadPrivate, in.Egress = true, true }}, "ALLOW", nil},
		{"a repeated UNKNOWN always needs an approval", edits{allowed, func(in *approval.Input) { in.UnresolvedUnknown = true }}, "MUST_ASK", []regie.Source{"unknown"}},
		{"a hook asks, whatever a rule allows", edits{writes, allowed, withObjection(regie.VerdictMustAsk)}, "MUST_ASK", []regie.Source{"hook", "app"}},
		{"a hook forbids", edits{allowed, withObjection(regie.VerdictForbid)}, "FORBID", []regie.Source{"hook"}},
		{"a hook that allows lifts nothing", edits{writes, withObjection(regie.VerdictAllow)}, "ASK", []regie.Source{"app"}},
		{"nor does it lift what is forbidden", edits{withRule(regie.VerdictForbid), withObjection(regie.VerdictAllow)}, "FORBID", []regie.Source{"rule"}},
		{"a hook has no defaults that a rule could lift", edits{withObjection(regie.VerdictAsk)}, "ALLOW", nil},
		{"a question is not asked about", edits{writes, role(regie.RoleQuestion)}, "ALLOW", nil},
		{"the end is not asked about", edits{withLevel(approval.Level{Source: regie.SourceApp, Require: "all"}), role(regie.RoleComplete)}, "ALLOW", nil},
		{"a plan is not asked about", edits{writes, role(regie.RolePlan)}, "ALLOW", nil},
		{"a question can be forbidden", edits{role(regie.RoleQuestion), withRule(regie.VerdictForbid)}, "FORBID", []regie.Source{"rule"}},
		{"an explicit wish is about every call", edits{role(regie.RolePlan), demand}, "MUST_ASK", []regie.Source{"app"}},
	} {
		got := approval.Decide(call(func(in *approval.Input) {
			for _, edit := range c.edits {
				edit(in)
			}
		}))
		var by []regie.Source
		for _, g := range got.Grounds {
			by = append(by, g.Source)
		}
		if got.Verdict != c.want || !slices.Equal(by, c.by) {
			t.Errorf("%s: %s by %v, want %s by %v", c.sentence, got.Verdict, by, c.want, c.by)
		}
	}
}

// TestWhichRules has a row for each reason why a rule counts or does not. The call is an action
// that is asked about by default.
func TestWhichRules(t *testing.T) {
	const allow, must, forbid = regie.VerdictAllow, regie.VerdictMustAsk, regie.VerdictForbid
	expires := func(at time.Time) func(*regie.Rule) { return func(r *regie.Rule) { r.ExpiresAt = at } }
	of := func(workspace, session regie.ID) func(*regie.Rule) {
		return func(r *regie.Rule) { r.WorkspaceID, r.SessionID = workspace, session }
	}
	exact := func(field, value string) regie.Scope {
		return regie.Scope{Tool: writeFile, Field: field, Kind: regie.ScopeExact, Value: value}
	}
	path := func(value any) func(*approval.Input) {
		return func(in *approval.Input) { in.Arguments["path"] = value }
	}
	same := func(*approval.Input) {}
	for _, c := range []struct {
		name    string
		verdict regie.Verdict
		rule    func(*regie.Rule)
		call    func(*approval.Input)
		want    regie.Verdict
	}{
		{"revoked", allow, func(r *regie.Rule) { r.RevokedAt = noon.Add(-1) }, same, "ASK"},
		{"forbidding, revoked", forbid, func(r *regie.Rule) { r.RevokedAt = noon.Add(-1) }, same, "ASK"},
		{"before its end", allow, expires(noon.Add(1)), same, allow},
		{"at its end", allow, expires(noon), same, "ASK"},
		{"after its end", allow, expires(noon.Add(-1)), same, "ASK"},
		{"forbidding, after its end", forbid, expires(noon.Add(-1)), same, "ASK"},
		{"asking, after its end", must, expires(noon), same, "ASK"},
		{"without a time", allow, expires(noon), func(in *approval.Input) { in.Now = time.Time{} }, "ASK"},
		{"forbidding without a time", forbid, expires(noon), func(in *approval.Input) { in.Now = time.Time{} }, forbid},
		{"without a time, without an end", allow, expires(time.Time{}), func(in *approval.Input) { in.Now = time.Time{} }, allow},

		{"of this session", allow, of(here, thisSession), same, allow},
		{"of another session", allow, of(here, otherChat), same, "ASK"},
		{"forbidding, of another session", forbid, of(here, otherChat), same, "ASK"},
		{"of another workspace", allow, of(elsewhere, regie.ID{}), same, "ASK"},
		{"forbidding, of another workspace", forbid, of(elsewhere, regie.ID{}), same, "ASK"},
		{"of this session in another workspace", allow, of(elsewhere, thisSession), same, "ASK"},
		{"of no workspace", allow, of(regie.ID{}, regie.ID{}), same, "ASK"},
		{"of no workspace, where there is none", allow, of(regie.ID{}, regie.ID{}), func(in *approval.Input) { in.WorkspaceID = regie.ID{} }, "ASK"},
		{"forbidding, of no workspace", forbid, of(regie.ID{}, regie.ID{}), same, forbid},

		{"of another tool", allow, scoped(regie.Scope{Tool: "files.read_file", Kind: regie.ScopeAny}), same, "ASK"},
		{"of no tool", allow, scoped(regie.Scope{Kind: regie.ScopeAny}), func(in *approval.Input) { in.Tool = "" }, "ASK"},
		{"of these arguments", allow, scoped(exact("", signature.String())), same, allow},
		{"of other arguments", allow, scoped(exact("", definition.String())), same, "ASK"},
		{"forbidding other arguments", forbid, scoped(exact("", definition.String())), same, "ASK"},
		{"of this value", allow, scoped(exact("path", "docs/a.md")), same, allow},
		{"of another value", allow, scoped(exact("path", "docs/b.md")), same, "ASK"},
		{"forbidding another value", forbid, scoped(exact("path", "docs/b.md")), same, "ASK"},
		{"of this folder", allow, scoped(under("docs")), same, allow},
		{"of another folder", allow, scoped(under("doc")), same, "ASK"},
		{"forbidding another folder", forbid, scoped(under("secrets")), same, "ASK"},
		{"of this folder, a way up", allow, scoped(under("docs")), path("docs/../secrets/a"), "ASK"},
		{"of this folder, absolute", allow, scoped(under("docs")), path("/docs/a.md"), "ASK"},

		{"forbidding, a way up", forbid, scoped(under("secrets")), path("docs/../secrets/a"), must},
		{"asking, a way up", must, scoped(under("secrets")), path("docs/../secrets/a"), must},
		{"forbidding, absolute", forbid, scoped(under("secrets")), path("/work/secrets/a"), must},
		{"forbidding, at home", forbid, scoped(under("secrets")), path("~/secrets/a"), must},
		{"forbidding, a backslash", forbid, scoped(under("secrets")), path(`secrets\a`), must},
		{"forbidding, empty", forbid, scoped(under("secrets")), path(""), must},
		{"forbidding, several paths", forbid, scoped(under("secrets")), path([]any{"secrets/a"}), must},
		{"forbidding, no path", forbid, scoped(under("secrets")), func(in *approval.Input) { in.Arguments = nil }, must},
		{"forbidding a value, written otherwise", forbid, scoped(exact("path", "docs/b.md")), path("docs/./b.md"), must},
		{"allowing a value, written otherwise", allow, scoped(exact("path", "docs/b.md")), path("docs/./b.md"), "ASK"},
		{"forbidding a value, not a text", forbid, scoped(exact("lines", "3")), same, must},
		{"forbidding, a folder that is none", forbid, scoped(under("secrets/")), same, must},
		{"forbidding, an absolute folder", forbid, scoped(under("/secrets")), same, must},
		{"forbidding, the whole workspace", forbid, scoped(under(".")), same, must},
		{"forbidding, digits that are none", forbid, scoped(exact("", "x")), same, must},
		{"forbidding, no digits", forbid, scoped(exact("", "")), same, must},
		{"forbidding, large digits", forbid, scoped(exact("", strings.ToUpper(definition.String()))), same, must},
		{"forbidding, no signature", forbid, scoped(exact("", definition.String())), func(in *approval.Input) { in.Signature = regie.Hash{} }, must},
		{"forbidding, any call of a field", forbid, scoped(regie.Scope{Tool: writeFile, Kind: regie.ScopeAny, Field: "path"}), same, must},
		{"forbidding, an unknown sort of scope", forbid, scoped(regie.Scope{Tool: writeFile, Kind: "glob"}), same, must},
		{"allowing, an unknown sort of scope", allow, scoped(regie.Scope{Tool: writeFile, Kind: "glob"}), same, "ASK"},
		{"forbidding, another tool's unknown scope", forbid, scoped(regie.Scope{Tool: "files.read_file", Kind: "glob"}), same, "ASK"},
	} {
		in := call(func(in *approval.Input) {
			in.Levels = []approval.Level{{Source: regie.SourceApp, Require: approval.RequireWrites}}
			c.call(in)
		})
		in.Rules = []regie.Rule{rule(c.verdict, c.rule)}
		got := approval.Decide(in)
		if got.Verdict != c.want {
			t.Errorf("a rule %s, %s: %s, want %s", c.verdict, c.name, got.Verdict, c.want)
		}
		grounded(t, in, got)
	}
}

// TestReasons holds the sentences to naming what a person can look up.
func TestReasons(t *testing.T) {
	for _, c := range []struct {
		edit func(*approval.Input)
		want string
	}{
		{withRule(regie.VerdictAllow), `the rule 05000000-0000-0000-0000-000000000000 of "ann" allows this`},
		{withRule(regie.VerdictForbid), `the rule 05000000-0000-0000-0000-000000000000 of "ann" forbids this`},
		{withRule(regie.VerdictMustAsk), `the rule 05000000-0000-0000-0000-000000000000 of "ann" requires an approval each time`},
		{withRule(regie.VerdictForbid, scoped(under("."))), `the rule 05000000-0000-0000-0000-000000000000 of "ann" cannot be compared with these arguments, so a person decides`},
		{withAllowed("files.*"), `the run was started with "files.*" allowed`},
		{withLevel(approval.Level{Source: regie.SourceApp, RequireValidation: true}), "the settings of the app require approval of every call"},
		{withLevel(approval.Level{Source: regie.SourceWorkspace, RequireValidation: true}), "the settings of this workspace require approval of every call"},
		{withLevel(approval.Level{Source: regie.SourceAgent, RequireValidation: true}), "the settings of this agent require approval of every call"},
		{withLevel(approval.Level{Source: regie.SourceSession, RequireValidation: true}), "the settings of this session require approval of every call"},
		{withLevel(approval.Level{Source: regie.SourceTool, RequireValidation: true}), "the settings of this tool require approval of every call"},
		{withLevel(approval.Level{Source: "zone", RequireValidation: true}), `the settings of "zone" require approval of every call`},
		{withLevel(approval.Level{Source: regie.SourceApp, Require: "writes"}), "actions are asked about unless a rule allows them"},
		{withLevel(approval.Level{Source: regie.SourceApp, Require: "all"}), "every call is asked about unless a rule allows it"},
		{withLevel(approval.Level{Source: regie.SourceApp, Require: "Writes"}), `the approval setting "Writes" is unknown, so every call is asked about`},
		{func(in *approval.Input) { in.Risk = regie.RiskExternal }, `calls of "files.write_file" reach outside and are asked about unless a rule allows them`},
		{func(in *approval.Input) { in.ModelAsks = true }, "the model asks for a check"},
		{func(in *approval.Input) { in.Tainted, in.ReadPrivate, in.Egress = true, true, true }, "this session has read private data and content that others wrote, and the call can send data out"},
		{func(in *approval.Input) { in.UnresolvedUnknown = true }, "the outcome of an earlier identical call is unknown: it may already have happened"},
	} {
		if got := approval.Decide(call(c.edit)).Grounds; len(got) != 1 || got[0].Sentence.String() != c.want {
			t.Errorf("%v, want %q", got, c.want)
		}
	}
}
