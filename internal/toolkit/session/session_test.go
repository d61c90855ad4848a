package session_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/tool"
	"github.com/regie-run/regie/internal/toolkit/session"
)

func TestTools(t *testing.T) {
	d := newDesk(t)
	type facts struct {
		Wire string
		Role regie.ToolRole
	}
	got := map[string]facts{}
	for _, definition := range d.tools.Definitions() {
		if definition.Kind != regie.KindQuery || definition.Class != regie.ClassRead {
			t.Errorf("%s is no query", definition.Name)
		}
		got[definition.Name] = facts{tool.WireName(definition.Name), definition.Role}
	}
	want := map[string]facts{
		session.AskUser: {"session__ask_user", regie.RoleQuestion}, session.Complete: {"session__complete", regie.RoleComplete},
		session.UpdatePlan: {"session__update_plan", regie.RolePlan}, session.ReadResult: {"session__read_result", ""},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	asks, _, _ := d.tools.Lookup(session.AskUser)
	asker, ok := asks.(interface {
		Module(arguments json.RawMessage) (regie.Module, error)
	})
	if !ok {
		t.Fatal("ask_user cannot say what it asks")
	}
	if m, err := asker.Module(json.RawMessage(`{"question":"Go on?"}`)); err != nil || m.Kind != regie.ModuleValidation {
		t.Errorf("%+v %v", m, err)
	}
}

// What the loop settles by itself is never run; if it were, nothing would have happened.
func TestSettledByTheLoop(t *testing.T) {
	d := newDesk(t)
	for name, arguments := range map[string]string{session.AskUser: `{"question":"Go on?"}`, session.Complete: `{"summary":"All done."}`} {
		out := d.call(name, arguments)
		if out.State != regie.CallFailed || out.Again || out.Error.Code != regie.CodeConflict || !strings.Contains(out.Error.Message, name) {
			t.Errorf("%s: %+v %+v", name, out, out.Error)
		}
	}
}

// The schemas say what the parsers check, so that most models never meet the parsers' errors.
func TestSchemas(t *testing.T) {
	d := newDesk(t)
	for _, row := range []struct {
		name, arguments, param string
	}{
		{session.AskUser, `{}`, "question"},
		{session.AskUser, `{"question":""}`, "question"},
		{session.AskUser, `{"question":"Which?","options":["a"]}`, "options"},
		{session.AskUser, `{"question":"Which?","options":null}`, "options"},
		{session.AskUser, `{"question":"Which?","options":["a",""]}`, "options"},
		{session.AskUser, encode(t, map[string]any{"question": "Which?", "options": numbered(21)}), "options"},
		{session.AskUser, `{"question":"Which?","free":true}`, "free"},
		{session.Complete, `{}`, "summary"},
		{session.Complete, encode(t, map[string]any{"summary": strings.Repeat("x", 4001)}), "summary"},
		{session.UpdatePlan, `{}`, "steps"},
		{session.UpdatePlan, `{"steps":null}`, "steps"},
		{session.UpdatePlan, `{"steps":[{"text":"a","status":"doing"}]}`, "steps"},
		{session.UpdatePlan, `{"steps":[{"text":"a"}]}`, "steps"},
		{session.UpdatePlan, encode(t, plan(51, session.StepPending)), "steps"},
		{session.ReadResult, `{}`, "call_id"},
		{session.ReadResult, `{"call_id":"x","offset":-1}`, "offset"},
		{session.ReadResult, `{"call_id":"x","limit":99}`, "limit"},
		{session.ReadResult, `{"call_id":"x","limit":30721}`, "limit"},
	} {
		if got := d.tools.Check(row.name, row.arguments); got.Error == nil || got.Error.Param != row.param {
			t.Errorf("%s %s: %+v", row.name, row.arguments, got.Error)
		}
	}
	for name, arguments := range map[string]string{
		session.AskUser:    encode(t, map[string]any{"question": strings.Repeat("é", 2000), "options": numbered(20), "allow_multiple": true, "allow_free_text": false}),
		session.Complete:   encode(t, map[string]any{"summary": strings.Repeat("é", 4000)}),
		session.UpdatePlan: encode(t, plan(50, session.StepDone)),
		session.ReadResult: `{"call_id":"x","offset":0,"limit":30720}`,
	} {
		if got := d.tools.Check(name, arguments); got.Error != nil {
			t.Errorf("%s: %+v", name, got.Error)
		}
	}
}

func plan(n int, statuses ...session.StepStatus) session.Plan {
	p := session.Plan{Steps: make([]session.Step, n)}
	for i := range p.Steps {
		p.Steps[i] = session.Step{Text: fmt.Sprint("step ", i+1), Status: statuses[i%len(statuses)]}
	}
	return p
}

func TestParsePlan(t *testing.T) {
	for name, row := range map[string]struct {
		arguments string
		want      session.Plan
	}{
		"a plan":   {`{"steps":[{"text":" look ","status":"done"},{"text":"write","status":"active"},{"text":"write","status":"pending"}]}`, session.Plan{Steps: []session.Step{{Text: "look", Status: "done"}, {Text: "write", Status: "active"}, {Text: "write", Status: "pending"}}}},
		"no steps": {`{"steps":[]}`, session.Plan{Steps: []session.Step{}}},
		"fifty":    {encode(t, plan(50, session.StepPending)), plan(50, session.StepPending)},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := session.ParsePlan(json.RawMessage(row.arguments))
			if err != nil || !cmp.Equal(got, row.want) {
				t.Errorf("%v\n%s", err, cmp.Diff(row.want, got))
			}
			if out := newDesk(t).call(session.UpdatePlan, row.arguments); out.State != regie.CallSucceeded || out.Result != "ok" {
				t.Errorf("%+v %+v", out, out.Error)
			}
		})
	}
}

func TestParsePlanRefuses(t *testing.T) {
	for _, row := range []struct {
		name      string
		arguments any
		param     string
		says      string
		runs      bool // the schema lets it through, so the tool itself must refuse
	}{
		{"no JSON", `{`, "", "do not fit", false},
		{"no steps", `{}`, "steps", "no list", false},
		{"null", `{"steps":null}`, "steps", "no list", false},
		{"another member", `{"steps":[],"title":"x"}`, "", "title", false},
		{"another member of a step", `{"steps":[{"text":"a","status":"done","id":1}]}`, "", "id", false},
		{"too many", plan(51, session.StepPending), "steps", "51 steps", false},
		{"an empty step", `{"steps":[{"text":" ","status":"done"}]}`, "steps", "empty", true},
		{"a long step", map[string]any{"steps": []any{map[string]any{"text": strings.Repeat("é", 301), "status": "done"}}}, "steps", "301", false},
		{"a step of two lines", `{"steps":[{"text":"a\nb","status":"done"}]}`, "steps", "one line", true},
		{"a step that moves the cursor", `{"steps":[{"text":"a\u001b[2K","status":"done"}]}`, "steps", "U+001B", true},
		{"no status", `{"steps":[{"text":"a"}]}`, "steps", `"" is not the status`, false},
		{"another status", `{"steps":[{"text":"a","status":"DONE"}]}`, "steps", `"DONE" is not the status`, false},
		{"two active", plan(2, session.StepActive), "steps", "2 steps are active", true},
	} {
		t.Run(row.name, func(t *testing.T) {
			arguments := encode(t, row.arguments)
			_, err := session.ParsePlan(json.RawMessage(arguments))
			refused(t, err, row.param, row.says)
			out := newDesk(t).call(session.UpdatePlan, arguments)
			if out.State != regie.CallFailed || out.Error.Code != regie.CodeBadArguments || row.runs && !strings.Contains(out.Error.Message, row.says) {
				t.Errorf("%+v %+v", out, out.Error)
			}
		})
	}
}

func FuzzParsePlan(f *testing.F) {
	f.Add([]byte(`{"steps":[{"text":"look","status":"done"},{"text":"write","status":"active"}]}`))
	f.Add([]byte(`{"steps":[{"text":"\u202e","status":"pending"}]}`))
	f.Add([]byte(`{"steps":[]}`))
	f.Fuzz(func(t *testing.T, arguments []byte) {
		p, err := session.ParsePlan(arguments)
		if err != nil {
			if regie.CodeOf(err) != regie.CodeBadArguments || !utf8.ValidString(err.Error()) {
				t.Errorf("%q: %v", arguments, err)
			}
			return
		}
		active := 0
		for _, step := range p.Steps {
			if step.Status == session.StepActive {
				active++
			}
			if step.Text == "" || harmful(step.Text) || strings.Contains(step.Text, "\n") || utf8.RuneCountInString(step.Text) > 300 {
				t.Errorf("the step %q", step.Text)
			}
		}
		if active > 1 || len(p.Steps) > 50 || p.Steps == nil {
			t.Errorf("%d active of %d", active, len(p.Steps))
		}
		again, err := session.ParsePlan(json.RawMessage(encode(t, p)))
		if err != nil || !cmp.Equal(p, again) {
			t.Errorf("not stable: %v\n%s", err, cmp.Diff(p, again))
		}
	})
}
