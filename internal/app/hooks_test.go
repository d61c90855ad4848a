package app_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/store"
)

// hooked has the harness's settings declare hooks. Each is a line of shell; what all of them are
// told is appended to the file that is returned.
func (b *harness) hooked(hooks ...[2]string) (told func() []regie.HookInput) {
	b.t.Helper()
	file := filepath.Join(b.t.TempDir(), "told")
	var text strings.Builder
	text.WriteString("hooks:\n")
	for _, h := range hooks {
		fmt.Fprintf(&text, "  - {on: %s, timeout: 1m, command: [sh, -c, %q]}\n", h[0], "cat >> "+file+"; echo >> "+file+"; "+h[1])
	}
	b.configured(text.String())
	return func() (out []regie.HookInput) {
		b.t.Helper()
		data, err := os.ReadFile(file)
		if err != nil {
			return nil
		}
		for line := range bytes.Lines(data) {
			var in regie.HookInput
			fatal(b.t, json.Unmarshal(line, &in))
			out = append(out, in)
		}
		return out
	}
}

// noted are what is stored of hooks with a round.
func noted(view store.RoundView) (out []regie.HookRun) {
	for i := range view.Notices {
		notice, _ := view.Notices[i].ToolNotice()
		out = append(out, notice.Hooks...)
	}
	return out
}

// TestHookForbids: a hook's word is stronger than what the run allows, the model is told why, and
// all of it is in the log.
func TestHookForbids(t *testing.T) {
	t.Parallel()
	m := newModel(t, replyWith("", put("a", "append", "one\n")), replyWith("Then not."))
	b := newHarness(t, m)
	b.holds("zero\n")
	told := b.hooked([2]string{"before_tool", "echo not on sundays >&2; exit 2"}, [2]string{"after_tool", ""})
	view := b.run(everything)
	expect(t, view, regie.EndAnswered, "NOT_RUN DENIED")
	b.held("zero\n")
	if !strings.Contains(m.last(), "not on sundays") {
		t.Errorf("the model was told %s", m.last())
	}
	ran := noted(view)
	if len(ran) != 1 || ran[0].Verdict != regie.VerdictForbid || ran[0].Reason != "not on sundays" || ran[0].CallID != view.Exchanges[0].Calls[0].ID {
		t.Errorf("the log has %+v", ran)
	}
	if in := told(); len(in) != 1 || in[0].Call.Tool != "files.write_file" || in[0].RoundID != view.Round.ID || in[0].Workspace != b.root {
		t.Errorf("it was told %+v", in)
	}
}

// TestHookAsks: what a hook wants approved is asked about with its reason, whatever the run allows.
// It is heard again before the call runs, and the person is asked once.
func TestHookAsks(t *testing.T) {
	t.Parallel()
	b := newHarness(t, newModel(t, replyWith("", put("a", "append", "one\n"), put("b", "append", "two\n")), replyWith("ok")))
	b.holds("zero\n")
	told := b.hooked([2]string{"before_tool", `echo '{"decision":"ask","reason":"it is late"}'`})
	conn, run, asked := b.startAsked(everything)
	if len(asked.Reviews) != 2 || asked.Reviews[0].Verdict != regie.VerdictMustAsk || asked.Reviews[0].Grounds[0].Source != regie.SourceHook ||
		!strings.Contains(asked.Reviews[0].Grounds[0].Sentence.String(), "it is late") {
		t.Fatalf("%+v", asked.Reviews)
	}
	if n := len(told()); n != 2 {
		t.Errorf("it was asked %d times", n)
	}
	b.decide(conn, asked, allowAll(asked)...)
	expect(t, b.await(conn, run), regie.EndAnswered, "SUCCEEDED", "SUCCEEDED")
	b.held("zero\none\ntwo\n")
	if n := len(told()); n != 4 {
		t.Errorf("it was asked %d times", n)
	}
}

// TestHookOfAnEdit: the arguments of a person's edit are what the hook is told before they run.
func TestHookOfAnEdit(t *testing.T) {
	t.Parallel()
	b := newHarness(t, newModel(t, replyWith("", put("a", "append", "one\n")), replyWith("ok")))
	b.holds("zero\n")
	b.hooked([2]string{"before_tool", ""})
	b.settings.File.Hooks[0].Command = []string{"sh", "-c", "case $(cat) in *uno*) echo no italian >&2; exit 2;; esac"}
	conn, run, asked := b.startAsked(approval.Policy{})
	edited := allow(asked.Reviews[0])
	edited.Arguments = json.RawMessage(`{"path":"a.txt","mode":"append","content":"uno\n"}`)
	b.decide(conn, asked, edited)
	expect(t, b.await(conn, run), regie.EndAnswered, "NOT_RUN DENIED")
	b.held("zero\n")
}

// TestHookBeforeIntent: while a hook is asked, the reply is stored and nothing of its calls has
// begun.
func TestHookBeforeIntent(t *testing.T) {
	t.Parallel()
	b := newHarness(t, newModel(t, replyWith("", put("a", "append", "one\n")), replyWith("ok")))
	b.holds("zero\n")
	dir := t.TempDir()
	begun, gate := filepath.Join(dir, "begun"), filepath.Join(dir, "gate")
	fatal(t, syscall.Mkfifo(begun, 0o600))
	fatal(t, syscall.Mkfifo(gate, 0o600))
	b.hooked([2]string{"before_tool", "echo > " + begun + "; cat " + gate})
	conn, run := b.start(everything)
	_, err := os.ReadFile(begun)
	fatal(t, err)
	view := b.round(conn, run.RoundID)
	if c := view.Exchanges[0].Calls; len(c) != 1 || c[0].State != regie.CallProposed || !c[0].StartedAt.IsZero() {
		t.Errorf("%+v", c)
	}
	fatal(t, os.WriteFile(gate, nil, 0o600))
	expect(t, b.await(conn, run), regie.EndAnswered, "SUCCEEDED")
	b.held("zero\none\n")
}

// TestHooksOfResults: each call that has run is told with its id and its result, before the next
// reply is asked for, and the end comes last.
func TestHooksOfResults(t *testing.T) {
	t.Parallel()
	b := newHarness(t, newModel(t, replyWith("", put("a", "append", "one\n"), call{"b", "files__read_file", `{"path":"a.txt"}`}), replyWith("ok")))
	b.holds("zero\n")
	told := b.hooked([2]string{"after_tool", "exit 1"}, [2]string{"after_round", ""}, [2]string{"before_round", ""})
	view := b.run(everything)
	expect(t, view, regie.EndAnswered, "SUCCEEDED", "SUCCEEDED")
	calls := view.Exchanges[0].Calls
	in := told()
	if len(in) != 4 || in[0].On != regie.HookBeforeRound || in[3].On != regie.HookAfterRound || in[3].End != regie.EndAnswered {
		t.Fatalf("%+v", in)
	}
	for i, c := range calls {
		if got := in[i+1]; got.On != regie.HookAfterTool || got.Call.ID != c.ID || got.Call.State != regie.CallSucceeded || got.Call.Result != c.Result {
			t.Errorf("of call %d it was told %+v", i+1, got.Call)
		}
	}
	ran := noted(view)
	if len(ran) != 3 || ran[1].Verdict != "" || ran[1].Failure.IsZero() {
		t.Errorf("the log has %+v", ran)
	}
}

// TestHookRefusesTheRound: no model is asked.
func TestHookRefusesTheRound(t *testing.T) {
	t.Parallel()
	m := newModel(t, replyWith("ok"))
	b := newHarness(t, m)
	b.hooked([2]string{"before_round", "echo the budget is spent >&2; exit 2"})
	view := b.run(everything)
	if view.Round.End != regie.EndDenied || !strings.Contains(view.Round.EndNote.String(), "the budget is spent") || m.count() != 0 {
		t.Errorf("%s %s, %d requests", view.Round.End, view.Round.EndNote, m.count())
	}
	if ran := noted(view); len(ran) != 1 || ran[0].On != regie.HookBeforeRound {
		t.Errorf("%+v", ran)
	}
}

// TestHookAfterAKill: the engine that held a round is gone while its hook was asked: the next one
// asks again, and the call runs once.
func TestHookAfterAKill(t *testing.T) {
	t.Parallel()
	b := newHarness(t, newModel(t, replyWith("", put("a", "append", "one\n")), replyWith("ok")))
	b.holds("zero\n")
	dir := t.TempDir()
	begun := filepath.Join(dir, "begun")
	fatal(t, syscall.Mkfifo(begun, 0o600))
	told := b.hooked([2]string{"before_tool", "if test -e " + dir + "/again; then exit 0; fi; touch " + dir + "/again; echo > " + begun + "; sleep 600"})
	conn, run := b.start(everything)
	_, err := os.ReadFile(begun)
	fatal(t, err)
	fatal(t, conn.Close())
	b.held("zero\n")
	conn = b.connect()
	expect(t, b.await(conn, run), regie.EndAnswered, "SUCCEEDED")
	b.held("zero\none\n")
	if in := told(); len(in) != 2 || in[0].Call.ID != in[1].Call.ID {
		t.Errorf("%+v", in)
	}
}
