package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/tool"
)

// put makes a call that writes a.txt.
func put(id, mode, content string) call {
	data, _ := json.Marshal(map[string]string{"path": "a.txt", "content": content, "mode": mode})
	return call{id, "files__write_file", string(data)}
}

// chained asks for writes of one file, which holds "zero", and returns what the person is asked.
func chained(t *testing.T, calls ...call) (b *bed, conn *app.Conn, run dispatch.Run, asked regie.Approval) {
	t.Helper()
	b = newBed(t, newModel(t, says("", calls...), says("ok")))
	b.holds("zero\n")
	conn = b.connect()
	t.Cleanup(func() { _ = conn.Close() })
	run, err := conn.Submit(t.Context(), b.request(approval.Policy{}))
	if err != nil {
		t.Fatal(err)
	}
	asked = b.parked(conn, run.SessionID).Approvals[0]
	if len(asked.Reviews) != len(calls) {
		t.Fatalf("%d calls are asked about", len(asked.Reviews))
	}
	return b, conn, run, asked
}

func (b *bed) holds(content string) {
	b.t.Helper()
	if err := os.WriteFile(filepath.Join(b.root, "a.txt"), []byte(content), 0o600); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bed) held(want string) {
	b.t.Helper()
	if got, err := os.ReadFile(filepath.Join(b.root, "a.txt")); err != nil || string(got) != want {
		b.t.Errorf("the file holds %q, want %q (%v)", got, want, err)
	}
}

func (b *bed) decide(control chat.Control, a regie.Approval, decisions ...regie.Decision) {
	b.t.Helper()
	if _, err := control.Decide(b.t.Context(), decide(a, regie.NewID().String(), decisions...)); err != nil {
		b.t.Fatal(err)
	}
}

func allow(review regie.Review) regie.Decision {
	return regie.Decision{CallID: review.CallID, Answer: regie.AnswerAllow}
}

func allowAll(a regie.Approval) (out []regie.Decision) {
	for _, review := range a.Reviews {
		out = append(out, allow(review))
	}
	return out
}

// counts asserts on top of what a review was shown: the lines of the file before it, and the call
// that leaves them.
func counts(t *testing.T, review regie.Review, before string, after regie.ID) {
	t.Helper()
	if len(review.Preview.Preconditions) != 1 {
		t.Fatalf("it binds %+v", review.Preview.Preconditions)
	}
	p := review.Preview.Preconditions[0]
	if p.Hash != regie.HashOf([]byte(before)) || p.After != after || !strings.Contains(review.Preview.Diff, " "+strings.ReplaceAll(strings.TrimSuffix(before, "\n"), "\n", "\n ")) {
		t.Errorf("shown on top of %q after %s it binds %+v and shows\n%s", before, after, p, review.Preview.Diff)
	}
	warned := false
	for _, w := range review.Preview.Warnings {
		warned = warned || strings.Contains(w.String(), "after the calls before it")
	}
	if warned == after.IsZero() {
		t.Errorf("the person is told %v", review.Preview.Warnings)
	}
}

// TestWritesOfOneFile approves several writes of one file at once: each is shown on top of those
// before it, so what was shown is what happens, and binds (decision 20).
func TestWritesOfOneFile(t *testing.T) {
	t.Parallel()
	calls := []call{put("a", "overwrite", "one\n"), put("b", "append", "two\n"), put("c", "append", "three\n")}
	t.Run("all approved", func(t *testing.T) {
		b, conn, run, asked := chained(t, calls...)
		counts(t, asked.Reviews[1], "one\n", asked.Reviews[0].CallID)
		counts(t, asked.Reviews[2], "one\ntwo\n", asked.Reviews[1].CallID)
		b.decide(conn, asked, allowAll(asked)...)
		expect(t, b.await(conn, run), regie.EndAnswered, "SUCCEEDED", "SUCCEEDED", "SUCCEEDED")
		b.held("one\ntwo\nthree\n")
	})
	t.Run("the first denied", func(t *testing.T) {
		b, conn, run, asked := chained(t, calls...)
		b.decide(conn, asked, regie.Decision{CallID: asked.Reviews[0].CallID, Answer: regie.AnswerDeny, Reason: "no"}, allow(asked.Reviews[1]), allow(asked.Reviews[2]))
		again := b.next(conn, run.SessionID, asked.ID)
		if len(again.Reviews) != 2 || again.Reviews[0].CallID != asked.Reviews[1].CallID {
			t.Fatalf("asked again about %+v", again.Reviews)
		}
		counts(t, again.Reviews[0], "zero\n", regie.ID{})
		counts(t, again.Reviews[1], "zero\ntwo\n", asked.Reviews[1].CallID)
		b.held("zero\n")
		b.decide(conn, again, allowAll(again)...)
		expect(t, b.await(conn, run), regie.EndAnswered, "NOT_RUN DENIED", "SUCCEEDED", "SUCCEEDED")
		b.held("zero\ntwo\nthree\n")
	})
	t.Run("one in the middle denied, on which nothing counts", func(t *testing.T) {
		b, conn, run, asked := chained(t, put("a", "append", "one\n"), put("b", "overwrite", "two\n"), put("c", "append", "three\n"))
		b.decide(conn, asked, regie.Decision{CallID: asked.Reviews[0].CallID, Answer: regie.AnswerDeny, Reason: "no"}, allow(asked.Reviews[1]), allow(asked.Reviews[2]))
		again := b.next(conn, run.SessionID, asked.ID)
		// What the overwriting replaces is another text now; what comes after it is as it was
		// shown.
		if len(again.Reviews) != 1 || again.Reviews[0].CallID != asked.Reviews[1].CallID {
			t.Fatalf("asked again about %+v", again.Reviews)
		}
		b.decide(conn, again, allowAll(again)...)
		expect(t, b.await(conn, run), regie.EndAnswered, "NOT_RUN DENIED", "SUCCEEDED", "SUCCEEDED")
		b.held("two\nthree\n")
	})
	t.Run("the first edited", func(t *testing.T) {
		b, conn, run, asked := chained(t, calls[:2]...)
		first := allow(asked.Reviews[0])
		first.Arguments = json.RawMessage(`{"path":"a.txt","mode":"overwrite","content":"uno\n"}`)
		b.decide(conn, asked, first, allow(asked.Reviews[1]))
		again := b.next(conn, run.SessionID, asked.ID)
		if len(again.Reviews) != 1 {
			t.Fatalf("asked again about %+v", again.Reviews)
		}
		counts(t, again.Reviews[0], "uno\n", asked.Reviews[0].CallID)
		b.held("zero\n") // nothing starts before all is decided
		b.decide(conn, again, allowAll(again)...)
		expect(t, b.await(conn, run), regie.EndAnswered, "SUCCEEDED", "SUCCEEDED")
		b.held("uno\ntwo\n")
	})
	t.Run("both edited, in one answer", func(t *testing.T) {
		b, conn, run, asked := chained(t, calls[:2]...)
		first, second := allow(asked.Reviews[0]), allow(asked.Reviews[1])
		first.Arguments = json.RawMessage(`{"path":"a.txt","mode":"overwrite","content":"uno\n"}`)
		second.Arguments = json.RawMessage(`{"path":"a.txt","mode":"append","content":"due\n"}`)
		b.decide(conn, asked, second, first)
		expect(t, b.await(conn, run), regie.EndAnswered, "SUCCEEDED", "SUCCEEDED")
		b.held("uno\ndue\n")
	})
	t.Run("edited onto the file of another", func(t *testing.T) {
		b, conn, run, asked := chained(t, write("a", "b.txt", "one\n"), put("b", "append", "two\n"))
		first := allow(asked.Reviews[0])
		first.Arguments = json.RawMessage(`{"path":"a.txt","mode":"overwrite","content":"one\n"}`)
		b.decide(conn, asked, allow(asked.Reviews[1]), first)
		again := b.next(conn, run.SessionID, asked.ID)
		counts(t, again.Reviews[0], "one\n", asked.Reviews[0].CallID)
		b.decide(conn, again, allowAll(again)...)
		expect(t, b.await(conn, run), regie.EndAnswered, "SUCCEEDED", "SUCCEEDED")
		b.held("one\ntwo\n")
	})
	t.Run("decided one by one over restarts, all denied", func(t *testing.T) {
		b, conn, run, asked := chained(t, calls[:2]...)
		b.decide(conn, asked, allow(asked.Reviews[1]))
		if err := conn.Close(); err != nil {
			t.Fatal(err)
		}
		conn = b.connect()
		b.decide(conn, asked, regie.Decision{CallID: asked.Reviews[0].CallID, Answer: regie.AnswerDeny, Reason: "no"})
		again := b.next(conn, run.SessionID, asked.ID)
		if err := conn.Close(); err != nil {
			t.Fatal(err)
		}
		conn = b.connect()
		defer conn.Close()
		b.decide(conn, again, regie.Decision{CallID: again.Reviews[0].CallID, Answer: regie.AnswerDeny})
		// the model is told why of the first
		expect(t, b.await(conn, run), regie.EndAnswered, "NOT_RUN DENIED", "NOT_RUN DENIED")
		b.held("zero\n")
	})
	t.Run("changed by somebody else", func(t *testing.T) {
		b, conn, run, asked := chained(t, calls[:2]...)
		b.holds("somebody\n")
		b.decide(conn, asked, allowAll(asked)...)
		// The first fails, because it was shown on top of another text; the second is shown as it
		// is without it.
		again := b.next(conn, run.SessionID, asked.ID)
		counts(t, again.Reviews[0], "somebody\n", regie.ID{})
		b.holds("somebody else\n")
		b.decide(conn, again, allowAll(again)...)
		expect(t, b.await(conn, run), regie.EndAnswered, "FAILED", "FAILED")
		b.held("somebody else\n")
	})
	t.Run("two that exclude each other", func(t *testing.T) {
		for _, denied := range []int{0, 1} {
			b := newBed(t, newModel(t, says("", put("a", "create", "one\n"), put("b", "create", "two\n")), says("ok")))
			conn := b.connect()
			run, err := conn.Submit(t.Context(), b.request(approval.Policy{}))
			if err != nil {
				t.Fatal(err)
			}
			asked := b.parked(conn, run.SessionID).Approvals[0]
			if len(asked.Reviews) != 2 || !strings.Contains(fmt.Sprint(asked.Reviews[1].Preview.Warnings), "only run if the calls before it") {
				t.Fatalf("the person sees %+v", asked.Reviews)
			}
			b.decide(conn, asked, regie.Decision{CallID: asked.Reviews[denied].CallID, Answer: regie.AnswerDeny, Reason: "no"}, allow(asked.Reviews[1-denied]))
			want := []string{"SUCCEEDED", "SUCCEEDED"}
			want[denied] = "NOT_RUN DENIED"
			expect(t, b.await(conn, run), regie.EndAnswered, want...)
			b.held([]string{"two\n", "one\n"}[denied])
			if err := conn.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

// register is a tool with preconditions that is no file: each call puts a word behind those that
// are there.
func register(t *testing.T, held *string, mu *sync.Mutex) tool.Tool {
	t.Helper()
	const kind, name = regie.PreconditionKind("register"), "words"
	now := func(inv *tool.Invocation) string {
		if s, ok := inv.Assumes(kind, name); ok {
			return string(s.Data)
		}
		mu.Lock()
		defer mu.Unlock()
		return *held
	}
	out, err := tool.New(regie.ToolDefinition{Name: "words.add", Description: "adds a word", Kind: regie.KindAction, Class: regie.ClassOnce, Risk: regie.RiskInternal},
		tool.Handler[nameArgs]{
			Run: func(_ context.Context, _ *tool.Invocation, args nameArgs) (tool.Result, error) {
				mu.Lock()
				defer mu.Unlock()
				*held += args.Name
				return tool.Result{Content: *held}, nil
			},
			Preview: func(_ context.Context, inv *tool.Invocation, args nameArgs) (regie.Preview, error) {
				before := now(inv)
				return regie.Preview{
					Sentence: regie.Say("add %s to %s", args.Name, before), Preconditions: []regie.Precondition{{Kind: kind, Name: name, Hash: regie.HashOf([]byte(before))}},
				}, nil
			},
			CheckPreconditions: func(_ context.Context, inv *tool.Invocation, _ nameArgs, preconditions []regie.Precondition) error {
				for _, p := range preconditions {
					if p.Hash != regie.HashOf([]byte(now(inv))) {
						return regie.Errorf(regie.CodeStalePreview, "other words")
					}
				}
				return nil
			},
			Foresee: func(_ context.Context, inv *tool.Invocation, args nameArgs) ([]tool.State, error) {
				return []tool.State{{Kind: kind, Name: name, Exists: true, Data: []byte(now(inv) + args.Name)}}, nil
			},
		})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestChainOfAnyTool does the same with a tool that is no file's.
func TestChainOfAnyTool(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	words := "a"
	b := newBed(t, newModel(t, says("", call{"1", "words__add", `{"name":"b"}`}, call{"2", "words__add", `{"name":"c"}`}, call{"3", "words__add", `{"name":"d"}`}), says("ok")),
		register(t, &words, &mu))
	conn := b.connect()
	defer conn.Close()
	run, err := conn.Submit(t.Context(), b.request(approval.Policy{}))
	if err != nil {
		t.Fatal(err)
	}
	asked := b.parked(conn, run.SessionID).Approvals[0]
	if got := asked.Reviews[2].Preview.Sentence.String(); got != "add d to abc" {
		t.Errorf("the third is shown as %q", got)
	}
	b.decide(conn, asked, allow(asked.Reviews[0]), regie.Decision{CallID: asked.Reviews[1].CallID, Answer: regie.AnswerDeny, Reason: "no"}, allow(asked.Reviews[2]))
	again := b.next(conn, run.SessionID, asked.ID)
	if len(again.Reviews) != 1 || again.Reviews[0].Preview.Sentence.String() != "add d to ab" || words != "a" {
		t.Errorf("asked again about %+v, %q is there", again.Reviews, words)
	}
	b.decide(conn, again, allowAll(again)...)
	expect(t, b.await(conn, run), regie.EndAnswered, "SUCCEEDED", "NOT_RUN DENIED", "SUCCEEDED")
	if words != "abd" {
		t.Errorf("%q is there", words)
	}
}
