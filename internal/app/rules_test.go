package app_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/client"
	"github.com/regie-run/regie/internal/access"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/tool"
)

// allowBelow answers the first call of an approval always, below its directory, until a time or for
// good, and returns the rule.
func (b *harness) allowBelow(control *client.Client, asked regie.Approval, expires time.Time) store.StandingRule {
	b.t.Helper()
	var under *regie.Scope
	for i, scope := range asked.Reviews[0].Preview.Scopes {
		if scope.Kind == regie.ScopeUnder {
			under = &asked.Reviews[0].Preview.Scopes[i]
		}
	}
	before, err := control.Rules.List(b.t.Context(), store.RuleFilter{Root: b.root})
	fatal(b.t, err)
	if _, err := control.Decide(b.t.Context(), decide(asked, "always", regie.Decision{
		CallID: asked.Reviews[0].CallID, Answer: regie.AnswerAlways, Scope: under, ExpiresAt: expires,
	})); err != nil {
		b.t.Fatal(err)
	}
	list, err := control.Rules.List(b.t.Context(), store.RuleFilter{Root: b.root})
	if err != nil || len(list.Rules) != 1 || list.Audit == nil || list.Audit.Events != before.Audit.Events+1 {
		b.t.Fatalf("the rules are %+v, %v", list, err)
	}
	return list.Rules[0]
}

// TestRuleEnds has a rule end in the middle of a batch that it allowed, in each way that it can:
// what has not begun is asked about again (decisions 20 and 36), all of it together.
func TestRuleEnds(t *testing.T) {
	for name, during := range map[string]struct {
		expires time.Duration
		act     func(b *harness, engine, client *app.Conn, run dispatch.Run, rule store.StandingRule) error
		after   func(b *harness, client *app.Conn, run dispatch.Run, rule store.StandingRule) error
	}{
		"revoked by another process": {act: func(b *harness, _, client *app.Conn, _ dispatch.Run, rule store.StandingRule) error {
			return client.Rules.Revoke(b.t.Context(), dispatch.RevokeRequest{RuleIDs: []regie.ID{rule.ID}, By: "bob"})
		}},
		"expired": {expires: 2 * time.Second, act: func(_ *harness, _, _ *app.Conn, _ dispatch.Run, rule store.StandingRule) error {
			<-time.After(time.Until(rule.ExpiresAt)) // the work takes longer than the rule holds
			return nil
		}},
		"revoked while the run is paused": {
			act: func(b *harness, engine, _ *app.Conn, run dispatch.Run, _ store.StandingRule) error {
				return engine.Service().Rounds.Pause(access.AsOwner(b.t.Context()), run.RoundID)
			},
			after: func(b *harness, client *app.Conn, run dispatch.Run, rule store.StandingRule) error {
				b.state(client, run.SessionID, regie.SessionPaused)
				if err := client.Rules.Revoke(b.t.Context(), dispatch.RevokeRequest{RuleIDs: []regie.ID{rule.ID}}); err != nil {
					return err
				}
				return client.Resume(b.t.Context(), run.RoundID)
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			acting := make(chan func() error, 1)
			act := action(t, "test.act", regie.ClassOnce, func(context.Context, *tool.Invocation) (tool.Result, error) {
				return tool.Result{Content: "done"}, (<-acting)()
			}, nil)
			b := newHarness(t, newModel(t,
				replyWith("", write("a", "docs/a.txt", "one\n")),
				replyWith("", write("b", "docs/b.txt", "two\n"), call{"x", "test__act", `{}`}, write("c", "docs/c.txt", "three\n"), write("d", "docs/d.txt", "four\n")),
				replyWith("ok")), act)
			engine, client := b.connect(), b.connect()
			run := b.send(client, b.request(approval.Policy{Allow: []string{"test.*"}}))
			asked := b.parked(client, run.SessionID).Approvals[0]
			var expires time.Time
			if during.expires > 0 {
				expires = time.Now().Add(during.expires)
			}
			rule := b.allowBelow(client.Client, asked, expires)
			acting <- func() error { return during.act(b, engine, client, run, rule) }
			if during.after != nil {
				fatal(t, during.after(b, client, run, rule))
			}
			next := b.next(client, run.SessionID, asked.ID)
			if len(next.Reviews) != 2 || !strings.Contains(string(next.Reviews[0].Arguments), "c.txt") || next.Reviews[0].Verdict != regie.VerdictAsk {
				t.Fatalf("asked about %+v", next.Reviews)
			}
			for file, want := range map[string]bool{"a": true, "b": true, "c": false, "d": false} {
				if _, err := os.Stat(filepath.Join(b.root, "docs", file+".txt")); (err == nil) != want {
					t.Errorf("%s.txt: %v", file, err)
				}
			}
			if list, err := client.Rules.List(t.Context(), store.RuleFilter{Root: b.root}); err != nil || len(list.Rules) != 0 || list.AuditError != "" {
				t.Errorf("the rules that hold are %+v, %v", list, err)
			}
			if _, err := client.Decide(t.Context(), decide(next, "y", regie.Decision{CallID: next.Reviews[0].CallID, Answer: regie.AnswerAllow},
				regie.Decision{CallID: next.Reviews[1].CallID, Answer: regie.AnswerDeny, Reason: "enough"})); err != nil {
				t.Fatal(err)
			}
			expect(t, b.await(client, run), regie.EndAnswered, "SUCCEEDED", "SUCCEEDED", "SUCCEEDED", "SUCCEEDED", "NOT_RUN DENIED")
		})
	}
}

// TestRulesRefuse revokes as one must not.
func TestRulesRefuse(t *testing.T) {
	t.Parallel()
	conn := newHarness(t, newModel(t)).connect()
	for name, c := range map[string]struct {
		ids  []regie.ID
		code regie.Code
	}{
		"nothing":  {nil, regie.CodeBadRequest},
		"unknown":  {[]regie.ID{regie.NewID()}, regie.CodeNotFound},
		"too many": {make([]regie.ID, 1001), regie.CodeBadRequest},
	} {
		if err := conn.Rules.Revoke(t.Context(), dispatch.RevokeRequest{RuleIDs: c.ids}); regie.CodeOf(err) != c.code {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAlteredRule widens a rule behind the store's back: the list says so, and each run's page.
func TestAlteredRule(t *testing.T) {
	t.Parallel()
	b := newHarness(t, newModel(t, replyWith("", write("a", "docs/a.txt", "one\n")), replyWith("ok")))
	conn, run := b.start(approval.Policy{})
	rule := b.allowBelow(conn.Client, b.parked(conn, run.SessionID).Approvals[0], time.Now().Add(time.Hour))
	b.await(conn, run)
	fatal(t, b.raw("UPDATE rules SET scope = replace(scope, 'docs', 'src')"))
	says := "the log and the stored rule " + rule.ID.String() + " differ: scope"
	if list, err := conn.Rules.List(t.Context(), store.RuleFilter{Root: b.root}); err != nil || list.Audit != nil || !strings.Contains(list.AuditError, says) {
		t.Errorf("the list says %q, %v", list.AuditError, err)
	}
	view := b.round(conn, run.RoundID)
	if fault := unlikeWritten(t, conn, view.Workspace.ID); !strings.Contains(fault, says) {
		t.Errorf("the workspace's log: %q", fault)
	}
}
