package app_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/access"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/tool"
	toolkit "github.com/regie-run/regie/internal/toolkit/automations"
)

const proposed = `{"name":"Inbox","text":"Summarise the inbox.","when":"weekly mon 09:00","zone":"Europe/Paris","on_change":"inbox/**"}`

// proposal makes a call that proposes an automation.
func proposal(arguments string) call { return call{"a", "automations__propose", arguments} }

// stored lists the automations that there are.
func (b *harness) stored(control service) []dispatch.AutomationView {
	b.t.Helper()
	conn, ok := control.(*app.Conn)
	if !ok {
		b.t.Fatal("no engine")
	}
	found, err := conn.Automations.List(b.t.Context(), store.AutomationFilter{})
	fatal(b.t, err)
	return found
}

// TestProposal has an agent propose an automation: whatever policy and mode allow, a person sees
// its definition with the next runs, and decides (spec 5.3).
func TestProposal(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		decision regie.Decision
		state    string
		text     string // of the automation; empty: there is none
		when     string
	}{
		"approved": {regie.Decision{Answer: regie.AnswerAllow}, "SUCCEEDED", "Summarise the inbox.", "weekly mon 09:00"},
		"edited": {
			regie.Decision{Answer: regie.AnswerAllow, Arguments: json.RawMessage(`{"name":"Inbox","text":"Count the inbox.","when":"daily 07:30","zone":"Europe/Paris"}`)},
			"SUCCEEDED", "Count the inbox.", "daily 07:30",
		},
		"denied": {regie.Decision{Answer: regie.AnswerDeny, Reason: "no"}, "NOT_RUN DENIED", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newHarness(t, newModel(t, replyWith("", proposal(proposed)), replyWith("ok")))
			conn := b.connect()
			in := b.request(everything)
			in.ApprovalMode = regie.ModeAuto
			run := b.send(conn, in)
			asked := b.parked(conn, run.SessionID).Approvals[0]
			review := asked.Reviews[0]
			shown := review.Preview.Sentence.String() + review.Preview.Diff + fmt.Sprint(review.Preview.Warnings)
			for _, want := range []string{"Inbox", "weekly mon 09:00 Europe/Paris inbox/**", "Summarise the inbox."} {
				if !strings.Contains(shown, want) {
					t.Errorf("the person sees %s, want %q in it", shown, want)
				}
			}
			if n := strings.Count(shown, " 09:00 +0"); n != 5 || review.Verdict != regie.VerdictMustAsk || len(review.Preview.Scopes) > 0 {
				t.Errorf("%d next runs, %s, scopes %v: %s", n, review.Verdict, review.Preview.Scopes, shown)
			}
			if found := b.stored(conn); len(found) > 0 {
				t.Fatalf("before the decision there is %+v", found)
			}
			never := decide(asked, "1", regie.Decision{CallID: review.CallID, Answer: regie.AnswerAllow, Arguments: json.RawMessage(`{"name":"x","text":"x","when":"once 2020-01-01T09:00"}`)})
			if _, err := conn.Decide(t.Context(), never); err == nil {
				t.Error("an edit is allowed that never runs")
			}
			c.decision.CallID = review.CallID
			b.decide(conn, asked, c.decision)
			expect(t, b.await(conn, run), regie.EndAnswered, c.state)
			found := b.stored(conn)
			if len(found) != min(1, len(c.text)) {
				t.Fatalf("there are %d automations", len(found))
			}
			if c.text == "" {
				return
			}
			a := found[0]
			if a.ID != review.CallID || a.CreatedBy.Kind != regie.AuthorAgent || a.CreatedBy.ID != "main" || a.CreatedBy.CallID != review.CallID {
				t.Errorf("%s was created by %+v", a.ID, a.CreatedBy)
			}
			if a.Text != c.text || a.When != c.when || a.Definition.Schedule.Zone != "Europe/Paris" || !a.Enabled || a.Root != b.root {
				t.Errorf("it is %+v", a)
			}
		})
	}
}

// TestProposalRefused refuses what could never be created before a person is asked.
func TestProposalRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		arguments string
		kind      regie.SessionType
		end       regie.RoundEnd
		read      string
	}{
		"no schedule":           {`{"name":"x","text":"x","when":"sometimes"}`, "", regie.EndAnswered, "write one such as every 15m, daily 09:00,18:30"},
		"30 February":           {`{"name":"x","text":"x","when":"yearly 02-30 09:00"}`, "", regie.EndAnswered, "02-30"},
		"unknown zone":          {`{"name":"x","text":"x","when":"daily 09:00","zone":"Mars/Base"}`, "", regie.EndAnswered, "Europe/Paris"},
		"past":                  {`{"name":"x","text":"x","when":"once 2020-01-01T09:00"}`, "", regie.EndAnswered, "has no run after now"},
		"from an automation":    {proposed, regie.SessionAutomation, regie.EndCompleted, "FORBIDDEN"},
		"without a description": {`{"when":"daily 09:00"}`, "", regie.EndAnswered, "text"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			done := call{"done", "session__complete", `{"summary":"No."}`}
			last := replyWith("ok")
			if c.kind != "" {
				last = replyWith("", done)
			}
			m := newModel(t, replyWith("", proposal(c.arguments)), last)
			b := newHarness(t, m)
			conn := b.connect()
			in := b.request(approval.Policy{})
			in.Type = c.kind
			view := b.await(conn, b.send(conn, in))
			if got := states(view)[0]; view.Round.End != c.end || got != "FAILED" && got != "NOT_RUN INVALID" {
				t.Errorf("%s, %s", view.Round.End, got)
			}
			if !strings.Contains(m.last(), c.read) {
				t.Errorf("the model reads %s", m.last())
			}
			if found := b.stored(conn); len(found) > 0 {
				t.Errorf("there is %+v", found)
			}
		})
	}
}

// TestProposalRepeated repeats a call whose outcome was lost: there is one automation.
func TestProposalRepeated(t *testing.T) {
	t.Parallel()
	b := newHarness(t, newModel(t, replyWith("hello")))
	view := b.run(everything)
	engine, err := app.OpenEngine(t.Context(), app.Options{Config: b.settings})
	fatal(t, err)
	defer engine.Close()
	made, err := toolkit.Tools(func() toolkit.Service { return engine.Service().Automations })
	fatal(t, err)
	inv := &tool.Invocation{
		CallID: regie.NewID(), SessionID: view.Session.ID, Workspace: view.Workspace, Arguments: json.RawMessage(proposed),
	}
	for range 2 {
		if out := tool.Run(t.Context(), made[0], inv); out.State != regie.CallSucceeded || !strings.Contains(out.Result, inv.CallID.String()) {
			t.Errorf("%+v", out)
		}
		inv.Repeated = true
	}
	found, err := engine.Service().Automations.List(access.AsOwner(t.Context()), store.AutomationFilter{})
	if err != nil || len(found) != 1 || found[0].Version != 1 {
		t.Errorf("%+v, %v", found, err)
	}
	inv.CallID, inv.Arguments = regie.NewID(), json.RawMessage(`{"name":"x","text":"x","when":"daily 09:00","on_change":"[a"}`)
	inv.Repeated = false
	if out := tool.Run(t.Context(), made[0], inv); out.State != regie.CallFailed || out.Error.Code != regie.CodeBadPattern {
		t.Errorf("%+v", out)
	}
}
