package approval_test

import (
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/approval"
)

// What the tests are about: a call of files.write_file on docs/a.md, in a workspace and a session,
// at noon.
var (
	here, thisSession     = regie.ID{1}, regie.ID{2}
	elsewhere, otherChat  = regie.ID{3}, regie.ID{4}
	ruleID, callID        = regie.ID{5}, regie.ID{6}
	signature, definition = regie.HashOf([]byte("call")), regie.HashOf([]byte("tool"))
	noon                  = time.Date(2031, 5, 6, 12, 0, 0, 0, time.UTC)
)

const writeFile = "files.write_file"

func call(edits ...func(*approval.Input)) approval.Input {
	in := approval.Input{
		Tool: writeFile, Kind: regie.KindAction, Risk: regie.RiskInternal, Signature: signature,
		Arguments: map[string]any{"path": "docs/a.md", "lines": 3.0}, WorkspaceID: here, SessionID: thisSession, Now: noon,
	}
	for _, edit := range edits {
		edit(&in)
	}
	return in
}

func anyCall() regie.Scope { return regie.Scope{Tool: writeFile, Kind: regie.ScopeAny} }

func under(dir string) regie.Scope {
	return regie.Scope{Tool: writeFile, Field: "path", Kind: regie.ScopeUnder, Value: dir}
}

// rule is one of this workspace that holds for every call of the tool.
func rule(verdict regie.Verdict, edits ...func(*regie.Rule)) regie.Rule {
	r := regie.Rule{ID: ruleID, WorkspaceID: here, Verdict: verdict, Scope: anyCall(), Author: "ann", CreatedAt: noon.Add(-time.Hour)}
	for _, edit := range edits {
		edit(&r)
	}
	return r
}

func scoped(s regie.Scope) func(*regie.Rule) { return func(r *regie.Rule) { r.Scope = s } }

func withRule(verdict regie.Verdict, edits ...func(*regie.Rule)) func(*approval.Input) {
	return func(in *approval.Input) { in.Rules = append(in.Rules, rule(verdict, edits...)) }
}

func withLevel(level approval.Level) func(*approval.Input) {
	return func(in *approval.Input) { in.Levels = append(in.Levels, level) }
}

func withAllowed(pattern string) func(*approval.Input) {
	return func(in *approval.Input) { in.Policy.Allow = append(in.Policy.Allow, pattern) }
}

// source is one thing that can be said about a call, and what it amounts to: "f", "m", "a", or "w"
// and "*" for the two defaults.
type source struct {
	name, means string
	add         func(*approval.Input)
}

var sources = []source{
	{"a rule forbids", "f", withRule(regie.VerdictForbid)},
	{"a rule of the session forbids", "f", withRule(regie.VerdictForbid, func(r *regie.Rule) { r.SessionID = thisSession })},
	{"the app", "m", withLevel(approval.Level{Source: regie.SourceApp, RequireValidation: true})},
	{"the workspace, with a default", "m", withLevel(approval.Level{Source: regie.SourceWorkspace, RequireValidation: true, Require: approval.RequireWrites})},
	{"the agent", "m", withLevel(approval.Level{Source: regie.SourceAgent, RequireValidation: true})},
	{"the session", "m", withLevel(approval.Level{Source: regie.SourceSession, RequireValidation: true})},
	{"a zone", "m", withLevel(approval.Level{Source: "zone", RequireValidation: true})},
	{"a rule must ask", "m", withRule(regie.VerdictMustAsk)},
	{"a rule asks", "m", withRule(regie.VerdictAsk)},
	{"a rule with an unknown word", "m", withRule("PERHAPS")},
	{"a rule without a word", "m", withRule("")},
	{"the model", "m", func(in *approval.Input) { in.ModelAsks = true }},
	{"taint and egress", "m", func(in *approval.Input) { in.Tainted, in.ReadPrivate, in.Egress = true, true, true }},
	{"an unknown outcome", "m", func(in *approval.Input) { in.UnresolvedUnknown = true }},
	{"a rule allows", "a", withRule(regie.VerdictAllow)},
	{"a rule of the session allows", "a", withRule(regie.VerdictAllow, func(r *regie.Rule) { r.SessionID = thisSession })},
	{"a rule allows the folder", "a", withRule(regie.VerdictAllow, scoped(under("docs")))},
	{"a rule allows the signature", "a", withRule(regie.VerdictAllow, scoped(regie.Scope{Tool: writeFile, Kind: regie.ScopeExact, Value: signature.String()}))},
	{"the run allows", "a", withAllowed("files.*")},
	{"writes ask", "w", withLevel(approval.Level{Source: regie.SourceApp, Require: approval.RequireWrites})},
	{"all asks", "*", withLevel(approval.Level{Source: regie.SourceSession, Require: approval.RequireAll})},
	{"an unknown default asks", "*", withLevel(approval.Level{Source: regie.SourceSession, Require: "some"})},
	{"the tool, of this very call", "m", func(in *approval.Input) { in.ToolAsks = []regie.Sentence{regie.Say("it reads a secret")} }},
}
