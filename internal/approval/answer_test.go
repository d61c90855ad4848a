package approval_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/approval"
)

// TestCovers changes each thing that a person's answer binds.
func TestCovers(t *testing.T) {
	const shown, written = `{"path":"a"}`, `{"path":"b"}`
	review := func(edits ...func(*regie.Review)) regie.Review {
		out := regie.Review{Definition: definition, Arguments: json.RawMessage(shown), Decision: &regie.Decision{Answer: regie.AnswerAllow}}
		for _, edit := range edits {
			edit(&out)
		}
		return out
	}
	answered := func(answer regie.Answer) func(*regie.Review) {
		return func(r *regie.Review) { r.Decision.Answer = answer }
	}
	edited := func(r *regie.Review) { r.Decision.Arguments = json.RawMessage(written) }
	for _, c := range []struct {
		name       string
		review     regie.Review
		definition regie.Hash
		arguments  string
		want       bool
	}{
		{"as shown", review(), definition, shown, true},
		{"for the session", review(answered(regie.AnswerSession)), definition, shown, true},
		{"for always", review(answered(regie.AnswerAlways)), definition, shown, true},
		{"denied", review(answered(regie.AnswerDeny)), definition, shown, false},
		{"an answer that is none", review(answered("ALLOW")), definition, shown, false},
		{"no answer", review(answered("")), definition, shown, false},
		{"undecided", review(func(r *regie.Review) { r.Decision = nil }), definition, shown, false},
		{"another tool", review(), signature, shown, false},
		{"no tool", review(func(r *regie.Review) { r.Definition = regie.Hash{} }), regie.Hash{}, shown, false},
		{"other arguments", review(), definition, written, false},
		{"one more letter", review(), definition, shown + " ", false},
		{"no arguments", review(), definition, "", false},
		{"as edited", review(edited), definition, written, true},
		{"as before the edit", review(edited), definition, shown, false},
		{"edited and denied", review(edited, answered(regie.AnswerDeny)), definition, written, false},
	} {
		if got := approval.Covers(c.review, c.definition, []byte(c.arguments)); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// proposed are the scopes that the preview of the call offers, the narrowest first.
func proposed() []regie.Scope {
	exact := regie.Scope{Tool: writeFile, Kind: regie.ScopeExact, Value: signature.String(), Sentence: regie.Say("exactly this")}
	folder := under("docs")
	folder.Sentence = regie.Say("any file below %s/", "docs")
	return []regie.Scope{exact, folder}
}

func TestScopeFor(t *testing.T) {
	scopes := proposed()
	changed := func(edit func(*regie.Scope)) *regie.Scope {
		scope := scopes[1]
		edit(&scope)
		return &scope
	}
	for _, c := range []struct {
		name     string
		answer   regie.Answer
		proposed []regie.Scope
		chosen   *regie.Scope
		want     regie.Scope
		code     regie.Code
	}{
		{"none chosen", regie.AnswerSession, scopes, nil, scopes[0], ""},
		{"none chosen, for always", regie.AnswerAlways, scopes, nil, scopes[0], ""},
		{"the first", regie.AnswerAlways, scopes, &scopes[0], scopes[0], ""},
		{"the second", regie.AnswerSession, scopes, &scopes[1], scopes[1], ""},
		{"in other words", regie.AnswerSession, scopes, changed(func(s *regie.Scope) { s.Sentence = regie.Say("all of it") }), scopes[1], ""},
		{"another tool", regie.AnswerAlways, scopes, changed(func(s *regie.Scope) { s.Tool = "shell.run" }), regie.Scope{}, regie.CodeBadRequest},
		{"another field", regie.AnswerAlways, scopes, changed(func(s *regie.Scope) { s.Field = "name" }), regie.Scope{}, regie.CodeBadRequest},
		{"another kind", regie.AnswerAlways, scopes, changed(func(s *regie.Scope) { s.Kind = regie.ScopeExact }), regie.Scope{}, regie.CodeBadRequest},
		{"another value", regie.AnswerAlways, scopes, changed(func(s *regie.Scope) { s.Value = "src" }), regie.Scope{}, regie.CodeBadRequest},
		{"everything", regie.AnswerSession, scopes, &regie.Scope{Tool: writeFile, Kind: regie.ScopeAny}, regie.Scope{}, regie.CodeBadRequest},
		{"an empty one", regie.AnswerSession, scopes, &regie.Scope{}, regie.Scope{}, regie.CodeBadRequest},
		{"nothing proposed", regie.AnswerAlways, nil, nil, regie.Scope{}, regie.CodeBadRequest},
		{"nothing proposed, one chosen", regie.AnswerAlways, nil, &scopes[0], regie.Scope{}, regie.CodeBadRequest},
		{"once", regie.AnswerAllow, scopes, nil, regie.Scope{}, ""},
		{"once, with a scope", regie.AnswerAllow, scopes, &scopes[0], regie.Scope{}, regie.CodeBadRequest},
		{"denied", regie.AnswerDeny, scopes, nil, regie.Scope{}, ""},
		{"denied, with a scope", regie.AnswerDeny, scopes, &scopes[0], regie.Scope{}, regie.CodeBadRequest},
		{"an unknown answer", "yes", scopes, nil, regie.Scope{}, regie.CodeBadRequest},
		{"no answer", "", scopes, &scopes[0], regie.Scope{}, regie.CodeBadRequest},
	} {
		got, err := approval.ScopeFor(c.answer, c.proposed, c.chosen)
		if regie.CodeOf(err) != c.code || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, %v, want %+v, %s", c.name, got, err, c.want, c.code)
		}
	}
}

// TestCheckExpiry asks about every expiry that an answer can have.
func TestCheckExpiry(t *testing.T) {
	for _, c := range []struct {
		answer  regie.Answer
		expires time.Time
		code    regie.Code
	}{
		{regie.AnswerAllow, time.Time{}, ""},
		{regie.AnswerDeny, time.Time{}, ""},
		{regie.AnswerAlways, time.Time{}, ""},
		{regie.AnswerSession, noon.Add(1), ""},
		{regie.AnswerAlways, noon.Add(approval.MaxStanding), ""},
		{regie.AnswerAlways, noon, regie.CodeBadRequest},
		{regie.AnswerAlways, noon.Add(-1), regie.CodeBadRequest},
		{regie.AnswerSession, noon.Add(approval.MaxStanding + 1), regie.CodeBadRequest},
		{regie.AnswerAllow, noon.Add(time.Hour), regie.CodeBadRequest},
		{regie.AnswerDeny, noon.Add(time.Hour), regie.CodeBadRequest},
	} {
		if err := approval.CheckExpiry(c.answer, noon, c.expires); regie.CodeOf(err) != c.code {
			t.Errorf("%s until %v: %v", c.answer, c.expires, err)
		}
	}
}

func TestRuleFrom(t *testing.T) {
	arguments := json.RawMessage(`{"lines":3,"path":"docs/a.md"}`)
	review := func(edit func(*regie.Review)) regie.Review {
		r := regie.Review{CallID: callID, Tool: writeFile, Definition: definition, Arguments: arguments, Preview: regie.Preview{Scopes: proposed()}}
		edit(&r)
		return r
	}
	shown := review(func(*regie.Review) {})
	session := regie.Decision{CallID: callID, Answer: regie.AnswerSession, By: "ann", At: noon}
	always := session
	always.Answer, always.Scope = regie.AnswerAlways, &proposed()[1]

	made, err := approval.RuleFrom(ruleID, here, thisSession, noon, shown, session)
	want := regie.Rule{
		ID: ruleID, WorkspaceID: here, SessionID: thisSession, Verdict: regie.VerdictAllow, Scope: proposed()[0], Author: "ann", CreatedAt: noon, FromCall: callID,
	}
	if diff := cmp.Diff(want, made); err != nil || diff != "" {
		t.Errorf("for the session: %v\n%s", err, diff)
	}
	lasting, err := approval.RuleFrom(ruleID, here, thisSession, noon, shown, always)
	want.SessionID, want.Scope = regie.ID{}, proposed()[1]
	if diff := cmp.Diff(want, lasting); err != nil || diff != "" {
		t.Errorf("for always: %v\n%s", err, diff)
	}

	always.ExpiresAt = noon.Add(time.Hour)
	ending, err := approval.RuleFrom(ruleID, here, thisSession, noon, shown, always)
	want.ExpiresAt = always.ExpiresAt
	if diff := cmp.Diff(want, ending); err != nil || diff != "" {
		t.Errorf("for an hour: %v\n%s", err, diff)
	}

	// What the rules are for: the same call, others below the folder, and no more than that.
	for _, c := range []struct {
		name          string
		edit          func(*approval.Input)
		once, forever regie.Verdict
	}{
		{"the same call", func(*approval.Input) {}, "ALLOW", "ALLOW"},
		{"another file of the folder", func(in *approval.Input) { in.Signature, in.Arguments["path"] = definition, "docs/b.md" }, "ASK", "ALLOW"},
		{"a file elsewhere", func(in *approval.Input) { in.Signature, in.Arguments["path"] = definition, "src/b.md" }, "ASK", "ASK"},
		{"another session", func(in *approval.Input) { in.SessionID = otherChat }, "ASK", "ALLOW"},
		{"another workspace", func(in *approval.Input) { in.WorkspaceID = elsewhere }, "ASK", "ASK"},
	} {
		in := call(c.edit)
		in.Levels = []approval.Level{{Source: regie.SourceApp, Require: approval.RequireWrites}}
		for _, r := range []struct {
			rule regie.Rule
			want regie.Verdict
		}{{made, c.once}, {lasting, c.forever}} {
			in.Rules = []regie.Rule{r.rule}
			if got := approval.Decide(in).Verdict; got != r.want {
				t.Errorf("%s under %+v: %s, want %s", c.name, r.rule.Scope, got, r.want)
			}
		}
	}

	edited := func(arguments string) regie.Decision {
		d := session
		d.Arguments = json.RawMessage(arguments)
		return d
	}
	if _, err := approval.RuleFrom(ruleID, here, thisSession, noon, shown, edited(`{ "path": "docs/a.md", "lines": 3 }`)); err != nil {
		t.Errorf("edited, and the same: %v", err)
	}
	answer := func(a regie.Answer) regie.Decision { return regie.Decision{CallID: callID, Answer: a, By: "ann"} }
	for _, c := range []struct {
		name                   string
		id, workspace, session regie.ID
		review                 regie.Review
		decision               regie.Decision
		code                   regie.Code
	}{
		{"once", ruleID, here, thisSession, shown, answer(regie.AnswerAllow), regie.CodeBadRequest},
		{"denied", ruleID, here, thisSession, shown, answer(regie.AnswerDeny), regie.CodeBadRequest},
		{"an unknown answer", ruleID, here, thisSession, shown, answer("yes"), regie.CodeBadRequest},
		{"edited", ruleID, here, thisSession, shown, edited(`{"lines":3,"path":"docs/b.md"}`), regie.CodeBadRequest},
		{"edited to no JSON", ruleID, here, thisSession, shown, edited(`{`), regie.CodeBadRequest},
		{"a scope of another tool", ruleID, here, thisSession, review(func(r *regie.Review) { r.Tool = "files.read_file" }), session, regie.CodeBadRequest},
		{"nothing proposed", ruleID, here, thisSession, review(func(r *regie.Review) { r.Preview.Scopes = nil }), session, regie.CodeBadRequest},
		{"no id", regie.ID{}, here, thisSession, shown, session, regie.CodeInternal},
		{"no workspace", ruleID, regie.ID{}, thisSession, shown, session, regie.CodeInternal},
		{"no session", ruleID, here, regie.ID{}, shown, session, regie.CodeInternal},
		{"nobody", ruleID, here, thisSession, shown, regie.Decision{CallID: callID, Answer: regie.AnswerSession}, regie.CodeInternal},
		{"of no call", ruleID, here, thisSession, review(func(r *regie.Review) { r.CallID = regie.ID{} }), regie.Decision{Answer: regie.AnswerSession, By: "ann"}, regie.CodeInternal},
		{"of another call", ruleID, here, thisSession, review(func(r *regie.Review) { r.CallID = elsewhere }), session, regie.CodeInternal},
	} {
		if made, err := approval.RuleFrom(c.id, c.workspace, c.session, noon, c.review, c.decision); regie.CodeOf(err) != c.code || !reflect.DeepEqual(made, regie.Rule{}) {
			t.Errorf("%s: %+v, %v, want %s", c.name, made, err, c.code)
		}
	}
	if _, err := approval.RuleFrom(ruleID, here, thisSession, time.Time{}, shown, session); regie.CodeOf(err) != regie.CodeInternal {
		t.Errorf("at no time: %v", err)
	}
}
