package app_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/dispatch"
)

// TestReviewOfAnEdit: what an edited call would do can be seen before it is decided, by the
// engine's own process and by another's; that stores nothing, and what has moved on since is not
// taken for what was shown (decision 20).
func TestReviewOfAnEdit(t *testing.T) {
	t.Parallel()
	b, conn, run, asked := chained(t, write("a", "b.txt", "one\n"))
	other := b.connect()
	defer other.Close()
	edit := regie.Decision{CallID: asked.Reviews[0].CallID, Answer: regie.AnswerAllow, Arguments: json.RawMessage(`{"content":"two\n","mode":"overwrite","path":"a.txt"}`)}
	for name, control := range map[string]chat.Control{"engine": conn, "client": other} {
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
	if err != nil {
		t.Fatal(err)
	}
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
		"once with an expiry":  with(func(d *regie.Decision) { d.ExpiresAt = time.Now().Add(time.Hour) }),
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
