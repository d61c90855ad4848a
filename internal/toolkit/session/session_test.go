package session_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

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

func TestUpdatePlan(t *testing.T) {
	for name, arguments := range map[string]any{
		"a plan":   `{"steps":[{"text":" look ","status":"done"},{"text":"write","status":"active"},{"text":"write","status":"pending"}]}`,
		"no steps": `{"steps":[]}`,
		"fifty":    plan(50, session.StepPending),
	} {
		if out := newDesk(t).call(session.UpdatePlan, arguments); out.State != regie.CallSucceeded || out.Result != "ok" {
			t.Errorf("%s: %+v %+v", name, out, out.Error)
		}
	}
}

func TestUpdatePlanRefuses(t *testing.T) {
	for _, row := range []struct {
		name      string
		arguments any
		says      string
		runs      bool // the schema lets it through, so the tool itself must refuse
	}{
		{"no JSON", `{`, "do not fit", false},
		{"no steps", `{}`, "no list", false},
		{"null", `{"steps":null}`, "no list", false},
		{"another member", `{"steps":[],"title":"x"}`, "title", false},
		{"another member of a step", `{"steps":[{"text":"a","status":"done","id":1}]}`, "id", false},
		{"too many", plan(51, session.StepPending), "51 steps", false},
		{"an empty step", `{"steps":[{"text":" ","status":"done"}]}`, "empty", true},
		{"a long step", map[string]any{"steps": []any{map[string]any{"text": strings.Repeat("é", 301), "status": "done"}}}, "301", false},
		{"a step of two lines", `{"steps":[{"text":"a\nb","status":"done"}]}`, "one line", true},
		{"a step that moves the cursor", `{"steps":[{"text":"a\u001b[2K","status":"done"}]}`, "U+001B", true},
		{"no status", `{"steps":[{"text":"a"}]}`, `"" is not the status`, false},
		{"another status", `{"steps":[{"text":"a","status":"DONE"}]}`, `"DONE" is not the status`, false},
		{"two active", plan(2, session.StepActive), "2 steps are active", true},
	} {
		t.Run(row.name, func(t *testing.T) {
			out := newDesk(t).call(session.UpdatePlan, row.arguments)
			if out.State != regie.CallFailed || out.Error.Code != regie.CodeBadArguments || row.runs && !strings.Contains(out.Error.Message, row.says) {
				t.Errorf("%+v %+v", out, out.Error)
			}
		})
	}
}
