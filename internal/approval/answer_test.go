package approval_test

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/approval"
)

// bound is all that an approval binds.
type bound struct {
	definition    regie.Hash
	arguments     string
	preconditions []regie.Precondition
}

func (b bound) hash() regie.Hash {
	return approval.Bind(b.definition, []byte(b.arguments), b.preconditions)
}

// TestBind changes each thing that an approval binds; no two of the changed ones may share a hash.
func TestBind(t *testing.T) {
	file := func(name, content string) regie.Precondition {
		return regie.Precondition{Kind: regie.PreconditionFile, Name: name, Hash: regie.HashOf([]byte(content))}
	}
	base := bound{definition, `{"path":"a"}`, []regie.Precondition{file("a", "1"), file("b", "2")}}
	seen := map[regie.Hash]string{base.hash(): "as shown"}
	for name, other := range map[string]bound{
		"another tool":              {signature, base.arguments, base.preconditions},
		"no tool":                   {regie.Hash{}, base.arguments, base.preconditions},
		"other arguments":           {definition, `{"path":"b"}`, base.preconditions},
		"one more letter":           {definition, base.arguments + " ", base.preconditions},
		"no arguments":              {definition, "", base.preconditions},
		"no precondition":           {definition, base.arguments, nil},
		"one precondition less":     {definition, base.arguments, base.preconditions[:1]},
		"the other precondition":    {definition, base.arguments, base.preconditions[1:]},
		"one precondition more":     {definition, base.arguments, append(slices.Clone(base.preconditions), file("c", "3"))},
		"one precondition twice":    {definition, base.arguments, append(slices.Clone(base.preconditions), file("b", "2"))},
		"another content":           {definition, base.arguments, []regie.Precondition{file("a", "1"), file("b", "3")}},
		"contents exchanged":        {definition, base.arguments, []regie.Precondition{file("a", "2"), file("b", "1")}},
		"another name":              {definition, base.arguments, []regie.Precondition{file("a", "1"), file("c", "2")}},
		"no file":                   {definition, base.arguments, []regie.Precondition{file("a", "1"), {Kind: regie.PreconditionFile, Name: "b"}}},
		"another kind":              {definition, base.arguments, []regie.Precondition{file("a", "1"), {Kind: "record", Name: "b", Hash: regie.HashOf([]byte("2"))}}},
		"kind and name run over":    {definition, base.arguments, []regie.Precondition{file("a", "1"), {Kind: "fileb", Hash: regie.HashOf([]byte("2"))}}},
		"a precondition in letters": {definition, base.arguments + "\x00\x00\x00\x00\x00\x00\x00\x04filea", base.preconditions[1:]},
	} {
		if earlier, taken := seen[other.hash()]; taken {
			t.Errorf("%s binds the same as %s", name, earlier)
		}
		seen[other.hash()] = name
	}
	turned := slices.Clone(base.preconditions)
	slices.Reverse(turned)
	if (bound{definition, base.arguments, turned}).hash() != base.hash() {
		t.Error("the order of the preconditions is bound")
	}
	if base.preconditions[0].Name != "a" || turned[0].Name != "b" {
		t.Error("Bind has ordered its caller's preconditions")
	}
	chance := rand.New(rand.NewPCG(5, 6))
	arguments := []byte(base.arguments)
	for range 1000 {
		changed := slices.Clone(arguments)
		changed[chance.IntN(len(changed))] ^= 1 << chance.IntN(8)
		if approval.Bind(definition, changed, base.preconditions) == base.hash() {
			t.Fatalf("%q binds the same as %q", changed, arguments)
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
