package dispatch_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/engine"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/tool"
	"github.com/regie-run/regie/internal/toolkit/files"
)

type numbered struct {
	N int `json:"n,omitempty"`
}

// proposes makes a reply with one call for each of the arguments.
func proposes(name string, arguments ...string) *provider.Reply {
	out := &provider.Reply{StopReason: "tool_calls"}
	for _, a := range arguments {
		out.Parts = append(out.Parts, provider.Part{Type: regie.PartCall, Call: &provider.Call{ID: regie.NewID().String(), Name: name, Arguments: a}})
	}
	return out
}

// asked submits a message and returns what its round then waits for.
func (h *house) asked(t *testing.T, in store.Submission) regie.Approval {
	t.Helper()
	if _, err := h.dispatcher.Submit(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	return h.waits(t, in)
}

func (h *house) waits(t *testing.T, in store.Submission) regie.Approval {
	t.Helper()
	if err := h.dispatcher.Wait(t.Context(), in.Round.ID); err != nil {
		t.Fatal(err)
	}
	inbox, err := h.store.Inbox(t.Context(), store.InboxFilter{SessionID: in.SessionID})
	if err != nil || len(inbox.Approvals) != 1 {
		t.Fatalf("%+v, %v", inbox, err)
	}
	return inbox.Approvals[0]
}

// TestEditedIsJudgedAlike judges edited arguments with all that the engine judges a call with: what
// the session wants, what the run was started with, and an earlier call of unknown outcome.
func TestEditedIsJudgedAlike(t *testing.T) {
	runs := 0
	act, err := tool.New(regie.ToolDefinition{Name: "test.act", Description: "acts", Kind: regie.KindAction, Class: regie.ClassOnce, Risk: regie.RiskInternal},
		tool.Handler[numbered]{Run: func(context.Context, *tool.Invocation, numbered) (tool.Result, error) {
			if runs++; runs == 1 {
				return tool.Result{}, errors.New("the line went dead")
			}
			return tool.Result{Content: "acted"}, nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name    string
		replies []*provider.Reply
		policy  string
		session bool
		edit    string
		verdict regie.Verdict
		source  regie.Source
	}{
		{"nothing but the default", []*provider.Reply{proposes("test__act", `{"n":1}`)}, `{}`, false, `{"n":2}`, regie.VerdictAsk, regie.SourceApp},
		{"the session wants it", []*provider.Reply{proposes("test__act", `{"n":1}`)}, `{}`, true, `{"n":2}`, regie.VerdictMustAsk, regie.SourceSession},
		{
			"the run allows it",
			[]*provider.Reply{proposes("test__act", `{"n":1}`), proposes("test__act", `{"n":1}`)},
			`{"allow":["test.act"]}`, false,
			`{"n":2}`, regie.VerdictAllow, regie.SourceRun,
		},
		{
			"what it becomes has an unknown outcome",
			[]*provider.Reply{proposes("test__act", `{"n":1}`), proposes("test__act", `{"n":1}`)},
			`{"allow":["test.act"]}`, false,
			`{ "n" : 1 }`, regie.VerdictMustAsk, regie.SourceUnknown,
		},
		{"the model wants it", []*provider.Reply{proposes("test__act", `{"n":1,"_validate":true}`)}, `{"allow":["test.act"]}`, false, `{"n":2}`, regie.VerdictMustAsk, regie.SourceModel},
	} {
		t.Run(c.name, func(t *testing.T) {
			runs = 0
			replies := c.replies
			h := newHouse(t, slow{}, func() *provider.Reply {
				next := replies[0]
				replies = replies[1:]
				return next
			}, act)
			in := h.world.Submission("act")
			in.Round.Policy, in.Round.Limits.Retries, in.New.RequireValidation = json.RawMessage(c.policy), 9, c.session
			a := h.asked(t, in)
			session, workspace, err := h.store.Session(t.Context(), in.SessionID)
			if err != nil {
				t.Fatal(err)
			}
			registry, err := tool.NewRegistry(act)
			if err != nil {
				t.Fatal(err)
			}
			review, err := engine.New(engine.Config{Store: h.store, Tools: always(registry)}).Edited(t.Context(), engine.Edit{
				Session: session, Workspace: workspace, Approval: &a, CallID: a.Reviews[0].CallID, Arguments: json.RawMessage(c.edit),
			})
			if err != nil || review.Verdict != c.verdict || len(review.Grounds) == 0 || review.Grounds[0].Source != c.source {
				t.Errorf("%s by %+v, %v; want %s by %s", review.Verdict, review.Grounds, err, c.verdict, c.source)
			}
		})
	}
}

// TestEditIntoTheUnknown edits a call into one whose outcome nobody knows: the person is asked
// anew, and told why (decision 5).
func TestEditIntoTheUnknown(t *testing.T) {
	runs := 0
	act, err := tool.New(regie.ToolDefinition{Name: "test.act", Description: "acts", Kind: regie.KindAction, Class: regie.ClassOnce, Risk: regie.RiskInternal},
		tool.Handler[numbered]{Run: func(context.Context, *tool.Invocation, numbered) (tool.Result, error) {
			if runs++; runs == 1 {
				return tool.Result{}, errors.New("the line went dead")
			}
			return tool.Result{Content: "acted"}, nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	replies := []*provider.Reply{proposes("test__act", `{"n":1}`), proposes("test__act", `{"n":2}`), answer("done")}
	h := newHouse(t, slow{}, func() *provider.Reply {
		next := replies[0]
		replies = replies[1:]
		return next
	}, act)
	in := h.world.Submission("act")
	in.Round.Policy, in.Round.Limits.Retries = json.RawMessage(`{}`), 9
	first := h.asked(t, in)
	h.decide(t, first, regie.Decision{CallID: first.Reviews[0].CallID, Answer: regie.AnswerAllow})
	second := h.waits(t, in)
	h.decide(t, second, regie.Decision{CallID: second.Reviews[0].CallID, Answer: regie.AnswerAllow, Arguments: json.RawMessage(`{"n":1}`)})
	third := h.waits(t, in)
	if g := third.Reviews[0].Grounds; third.ID == second.ID || g[0].Source != regie.SourceUnknown || runs != 1 {
		t.Fatalf("asked for %+v after %d runs", g, runs)
	}
	h.decide(t, third, regie.Decision{CallID: third.Reviews[0].CallID, Answer: regie.AnswerAllow})
	h.ended(t, in.SessionID, in.Round.ID)
	if runs != 2 {
		t.Errorf("%d runs", runs)
	}
}

// decide stores decisions as the app would.
func (h *house) decide(t *testing.T, a regie.Approval, decisions ...regie.Decision) {
	t.Helper()
	for i := range decisions {
		decisions[i].By = "ada"
	}
	if err := h.resolve(t.Context(), store.Decide{ApprovalID: a.ID, Request: regie.NewID().String(), Decisions: decisions}); err != nil {
		t.Fatal(err)
	}
}

// TestChainOverDeath has the process die at each commit between the approval of two writes of one
// file and their end: the writes happen once each, as they were shown.
func TestChainOverDeath(t *testing.T) {
	gone := errors.New("the process is gone")
	tools, err := files.Tools(nil)
	if err != nil {
		t.Fatal(err)
	}
	// before and after each of three commits: the first start, the second start with the first
	// result, the last result
	for at := range 6 {
		t.Run(fmt.Sprint(at), func(t *testing.T) {
			root := t.TempDir()
			path := filepath.Join(root, "a.txt")
			if err := os.WriteFile(path, []byte("zero\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			asked := false
			reply := func() *provider.Reply {
				if asked {
					return answer("done")
				}
				asked = true
				return proposes("files__write_file", `{"path":"a.txt","mode":"append","content":"one\n"}`, `{"path":"a.txt","mode":"append","content":"two\n"}`)
			}
			commits, died := 0, false
			dies := func(after int) func(store.Settle) error {
				return func(store.Settle) error {
					if !asked || died {
						return nil
					}
					if commits++; commits-1 == at && (at+after)%2 == 0 {
						died = true
						return gone
					}
					return nil
				}
			}
			h := newHouse(t, slow{settling: dies(0), settled: dies(1)}, reply, tools...)
			workspace, err := h.store.EnsureWorkspace(t.Context(), h.world.User, regie.Workspace{Name: "real", Root: root, FoundBy: "directory"})
			if err != nil {
				t.Fatal(err)
			}
			in := h.world.Submission("write")
			in.New.WorkspaceID, in.Workspace, in.Round.Policy = workspace.ID, workspace, json.RawMessage(`{}`)
			a := h.asked(t, in)
			h.decide(t, a, regie.Decision{CallID: a.Reviews[0].CallID, Answer: regie.AnswerAllow}, regie.Decision{CallID: a.Reviews[1].CallID, Answer: regie.AnswerAllow})
			if err := h.dispatcher.Wait(t.Context(), in.Round.ID); err != nil && !errors.Is(err, gone) {
				t.Fatal(err)
			}
			if !died {
				t.Fatalf("nothing died: there were %d moments", commits)
			}
			h.next(t, slow{}, nil, reply, tools...)
			h.ended(t, in.SessionID, in.Round.ID)
			got, err := os.ReadFile(path)
			view, again := h.store.RoundView(t.Context(), in.Round.ID)
			if err != nil || again != nil || string(got) != "zero\none\ntwo\n" {
				t.Errorf("the file holds %q, %v, %v", got, err, again)
			}
			for _, call := range view.Exchanges[0].Calls {
				if call.State != regie.CallSucceeded {
					t.Errorf("%s: %+v", call.State, call.Error)
				}
			}
		})
	}
}
