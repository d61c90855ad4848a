package app_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/dispatch"
)

// put makes a call that writes a.txt.
func put(id, mode, content string) call {
	data, _ := json.Marshal(map[string]string{"path": "a.txt", "content": content, "mode": mode})
	return call{id, "files__write_file", string(data)}
}

// chained asks for writes of one file, which holds "zero", and returns what the person is asked.
func chained(t *testing.T, calls ...call) (b *harness, conn *app.Conn, run dispatch.Run, asked regie.Approval) {
	t.Helper()
	b = newHarness(t, newModel(t, replyWith("", calls...), replyWith("ok")))
	b.holds("zero\n")
	conn, run = b.start(approval.Policy{})
	asked = b.parked(conn, run.SessionID).Approvals[0]
	if len(asked.Reviews) != len(calls) {
		t.Fatalf("%d calls are asked about", len(asked.Reviews))
	}
	return b, conn, run, asked
}

func (b *harness) holds(content string) {
	b.t.Helper()
	fatal(b.t, os.WriteFile(filepath.Join(b.root, "a.txt"), []byte(content), 0o600))
}

func (b *harness) held(want string) {
	b.t.Helper()
	if got, err := os.ReadFile(filepath.Join(b.root, "a.txt")); err != nil || string(got) != want {
		b.t.Errorf("the file holds %q, want %q (%v)", got, want, err)
	}
}

func (b *harness) decide(control service, a regie.Approval, decisions ...regie.Decision) {
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

// counts asserts on top of what a review was shown: the lines of the file before it, which a call
// before it leaves.
func counts(t *testing.T, review regie.Review, before string) {
	t.Helper()
	if len(review.Preview.Preconditions) != 1 {
		t.Fatalf("it binds %+v", review.Preview.Preconditions)
	}
	p := review.Preview.Preconditions[0]
	if p.Hash != regie.HashOf([]byte(before)) || !strings.Contains(review.Preview.Diff, " "+strings.ReplaceAll(strings.TrimSuffix(before, "\n"), "\n", "\n ")) {
		t.Errorf("shown on top of %q it binds %+v and shows\n%s", before, p, review.Preview.Diff)
	}
	if !slices.ContainsFunc(review.Preview.Warnings, func(w regie.Sentence) bool {
		return strings.Contains(w.String(), "after the calls before it")
	}) {
		t.Errorf("the person is told %v", review.Preview.Warnings)
	}
}

// TestWritesOfOneFile approves several writes of one file at once: each is shown on top of those
// before it, so what was shown is what happens, and binds (decision 20).
func TestWritesOfOneFile(t *testing.T) {
	t.Parallel()
	calls := []call{put("a", "overwrite", "one\n"), put("b", "append", "two\n"), put("c", "append", "three\n")}
	const done, denied, stale = "SUCCEEDED", "NOT_RUN DENIED", "FAILED"
	for name, c := range map[string]struct {
		calls  []call
		deny   bool           // the first
		edits  map[int]string // of calls
		states []string
		file   string
	}{
		"all approved":     {calls, false, nil, []string{done, done, done}, "one\ntwo\nthree\n"},
		"the first denied": {calls, true, nil, []string{denied, stale, stale}, "zero\n"},
		"one denied on which nothing counts": {
			[]call{put("a", "append", "one\n"), put("b", "overwrite", "two\n")}, true, nil, []string{denied, stale}, "zero\n",
		},
		"the first edited": {calls[:2], false, map[int]string{0: `{"path":"a.txt","mode":"overwrite","content":"uno\n"}`}, []string{done, stale}, "uno\n"},
		"both edited, in one answer": {
			calls[:2], false,
			map[int]string{0: `{"path":"a.txt","mode":"overwrite","content":"uno\n"}`, 1: `{"path":"a.txt","mode":"append","content":"due\n"}`},
			[]string{done, done},
			"uno\ndue\n",
		},
		"edited onto the file of another": {
			[]call{write("a", "b.txt", "one\n"), put("b", "append", "two\n")},
			false,
			map[int]string{0: `{"path":"a.txt","mode":"overwrite","content":"one\n"}`},
			[]string{done, stale},
			"one\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			b, conn, run, asked := chained(t, c.calls...)
			if name == "all approved" {
				counts(t, asked.Reviews[1], "one\n")
				counts(t, asked.Reviews[2], "one\ntwo\n")
			}
			decisions := allowAll(asked)
			if c.deny {
				decisions[0] = regie.Decision{CallID: decisions[0].CallID, Answer: regie.AnswerDeny, Reason: "no"}
			}
			for n, arguments := range c.edits {
				decisions[n].Arguments = json.RawMessage(arguments)
			}
			slices.Reverse(decisions)
			b.decide(conn, asked, decisions...)
			expect(t, b.await(conn, run), regie.EndAnswered, c.states...)
			b.held(c.file)
		})
	}
	t.Run("decided one by one over restarts, all denied", func(t *testing.T) {
		b, conn, run, asked := chained(t, calls[:2]...)
		b.decide(conn, asked, regie.Decision{CallID: asked.Reviews[1].CallID, Answer: regie.AnswerDeny})
		fatal(t, conn.Close())
		conn = b.connect()
		b.decide(conn, asked, regie.Decision{CallID: asked.Reviews[0].CallID, Answer: regie.AnswerDeny, Reason: "no"})
		expect(t, b.await(conn, run), regie.EndAnswered, denied, denied)
		b.held("zero\n")
	})
	t.Run("changed by somebody else", func(t *testing.T) {
		b, conn, run, asked := chained(t, calls[:2]...)
		b.holds("somebody\n")
		b.decide(conn, asked, allowAll(asked)...)
		expect(t, b.await(conn, run), regie.EndAnswered, stale, stale)
		b.held("somebody\n")
	})
	t.Run("two that cannot be used together", func(t *testing.T) {
		for _, denied := range []int{0, 1} {
			b := newHarness(t, newModel(t, replyWith("", put("a", "create", "one\n"), put("b", "create", "two\n")), replyWith("ok")))
			conn, run, asked := b.startAsked(approval.Policy{})
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

// TestReviewOfAnEdit: what an edited call would do can be seen before it is decided, by the
// engine's own process and by another's; that stores nothing, and what has moved on since is not
// taken for what was shown (decision 20).
func TestReviewOfAnEdit(t *testing.T) {
	t.Parallel()
	b, conn, run, asked := chained(t, write("a", "b.txt", "one\n"))
	other := b.connect()
	edit := regie.Decision{CallID: asked.Reviews[0].CallID, Answer: regie.AnswerAllow, Arguments: json.RawMessage(`{"content":"two\n","mode":"overwrite","path":"a.txt"}`)}
	for name, control := range map[string]service{"engine": conn, "client": other} {
		got, err := control.Review(t.Context(), decide(asked, "1", edit))
		if err != nil || len(got.Reviews) != 1 || !strings.Contains(got.Reviews[0].Preview.Diff, "-zero\n+two") || len(got.Reviews[0].Preview.Preconditions) != 1 {
			t.Fatalf("%s: %+v, %v", name, got, err)
		}
		if got, err := control.Review(t.Context(), decide(asked, "2", regie.Decision{CallID: edit.CallID, Answer: regie.AnswerAllow})); err != nil || len(got.Reviews) > 0 {
			t.Errorf("%s of nothing edited: %+v, %v", name, got, err)
		}
		if _, err := control.Review(t.Context(), decide(asked, "3", regie.Decision{CallID: regie.NewID(), Answer: regie.AnswerAllow, Arguments: edit.Arguments})); regie.CodeOf(err) != regie.CodeNotFound {
			t.Errorf("%s of no call: %v", name, err)
		}
	}
	got, err := other.Review(t.Context(), decide(asked, "4", edit))
	fatal(t, err)
	if inbox := b.parked(conn, run.SessionID); inbox.Approvals[0].Reviews[0].Decision != nil {
		t.Fatalf("looking has decided: %+v", inbox.Approvals[0])
	}
	b.holds("moved\n")
	in := decide(asked, "5", edit)
	in.Shown = []dispatch.ShownEdit{{CallID: edit.CallID, Preconditions: got.Reviews[0].Preview.Preconditions}}
	if _, err := other.Decide(t.Context(), in); regie.CodeOf(err) != regie.CodeStalePreview {
		t.Fatalf("what was not shown is allowed: %v", err)
	}
	b.holds("zero\n")
	if _, err := other.Decide(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	expect(t, b.await(conn, run), regie.EndAnswered, "SUCCEEDED")
	b.held("two\n")
	if _, err := os.Stat(filepath.Join(b.root, "b.txt")); err == nil {
		t.Error("the call ran as it was proposed")
	}
	if _, err := conn.Review(t.Context(), decide(asked, "6", edit)); regie.CodeOf(err) != regie.CodeConflict {
		t.Errorf("of what is decided: %v", err)
	}
}

// TestReviewOfWhatCannotBeDecided: what could never be decided is not shown either, and is told as
// deciding tells it; a call is shown once.
func TestReviewOfWhatCannotBeDecided(t *testing.T) {
	t.Parallel()
	b, conn, run, asked := chained(t, write("a", "b.txt", "one\n"))
	edited := regie.Decision{CallID: asked.Reviews[0].CallID, Answer: regie.AnswerAllow, Arguments: json.RawMessage(`{"content":"two\n","mode":"overwrite","path":"a.txt"}`)}
	with := func(change func(*regie.Decision)) []regie.Decision {
		d := edited
		change(&d)
		return []regie.Decision{d}
	}
	for name, decisions := range map[string][]regie.Decision{
		"a call twice":         {edited, edited},
		"no answer":            with(func(d *regie.Decision) { d.Answer = "nope" }),
		"none of one unedited": with(func(d *regie.Decision) { d.Answer, d.Arguments = "nope", nil }),
		"a denial edited":      with(func(d *regie.Decision) { d.Answer = regie.AnswerDeny }),
		"once with a scope":    with(func(d *regie.Decision) { d.Scope = &asked.Reviews[0].Preview.Scopes[0] }),
		"a denial with an expiry": with(func(d *regie.Decision) {
			d.Answer, d.Arguments, d.ExpiresAt = regie.AnswerDeny, nil, time.Now().Add(time.Hour)
		}),
		"once with an expiry": with(func(d *regie.Decision) { d.ExpiresAt = time.Now().Add(time.Hour) }),
		"a scope of nobody's": with(func(d *regie.Decision) {
			d.Answer, d.Scope = regie.AnswerAlways, &regie.Scope{Tool: "shell.run_command"}
		}),
		"a long reason": with(func(d *regie.Decision) { d.Reason = strings.Repeat("a", 4<<10+1) }),
	} {
		got, shown := conn.Review(t.Context(), decide(asked, "1", decisions...))
		_, decided := conn.Decide(t.Context(), decide(asked, "1", decisions...))
		if regie.CodeOf(shown) != regie.CodeBadRequest || decided == nil || shown.Error() != decided.Error() {
			t.Errorf("%s: shown %d (%v), decided: %v", name, len(got.Reviews), shown, decided)
		}
	}
	if inbox := b.parked(conn, run.SessionID); inbox.Approvals[0].Reviews[0].Decision != nil {
		t.Errorf("something was decided: %+v", inbox.Approvals[0])
	}
}
