package app_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/tool"
)

// TestRepeatedActionSaysSo has a model propose a payment again that was just made: who is asked can
// tell it from a first one.
func TestRepeatedActionSaysSo(t *testing.T) {
	t.Parallel()
	paid := 0
	pay := action(t, "bank.pay", regie.ClassOnce, func(context.Context, *tool.Invocation) (tool.Result, error) {
		paid++
		return tool.Result{Content: "paid"}, nil
	}, nil)
	proposal := call{"a", "bank__pay", `{"name":"rent"}`}
	m := newModel(t, says("", proposal), says("", call{"b", proposal.name, proposal.arguments}), says("ok"))
	b := newBed(t, m, pay)
	conn := b.connect()
	defer conn.Close()
	run, err := conn.Submit(t.Context(), b.request(approval.Policy{}))
	if err != nil {
		t.Fatal(err)
	}
	first := b.parked(conn, run.SessionID).Approvals[0]
	b.decide(conn, first, allowAll(first)...)
	again := b.next(conn, run.SessionID, first.ID)
	told := func(a regie.Approval) bool {
		return slices.ContainsFunc(a.Reviews[0].Preview.Warnings, func(s regie.Sentence) bool { return strings.HasPrefix(s.String(), "exactly this was done already") })
	}
	if told(first) || !told(again) {
		t.Errorf("warned at first: %v, again: %v", told(first), told(again))
	}
	b.decide(conn, again, regie.Decision{CallID: again.Reviews[0].CallID, Answer: regie.AnswerDeny, Reason: "it is paid"})
	expect(t, b.await(conn, run), regie.EndAnswered, "SUCCEEDED", "NOT_RUN DENIED")
	if paid != 1 {
		t.Errorf("paid %d times", paid)
	}
}

// TestReadAfterWrite reads a file before and after a write of the same reply: the second read is no
// duplicate of the first, whose result is out of date. A read without an action in between is one.
func TestReadAfterWrite(t *testing.T) {
	t.Parallel()
	read := func(id string) call { return call{id, "files__read_file", `{"path":"a.txt"}`} }
	overwrite := func(id, content string) call {
		return call{id, "files__write_file", `{"path":"a.txt","mode":"overwrite","content":"` + content + `"}`}
	}
	m := newModel(t, says("", overwrite("a", "old")), says("", read("b"), overwrite("c", "new"), read("d"), read("e")), says("ok"))
	view := newBed(t, m).run(everything)
	expect(t, view, regie.EndAnswered, "SUCCEEDED", "SUCCEEDED", "SUCCEEDED", "SUCCEEDED", "NOT_RUN DUPLICATE_IN_BATCH")
	if got := view.Exchanges[1].Calls; len(got) != 4 || !strings.Contains(got[0].Result, "old") || !strings.Contains(got[2].Result, "new") || got[3].DuplicateOf != got[2].ID {
		t.Errorf("the calls are %+v", got)
	}
}
