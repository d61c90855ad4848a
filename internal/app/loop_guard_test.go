package app_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/tool"
)

// TestCircles meets models that repeat themselves (decisions 9 and 30): what was answered is not
// done again, and who cannot stop is stopped.
func TestCircles(t *testing.T) {
	t.Parallel()
	t.Run("the same call delivered again, behind a failed write under its id", func(t *testing.T) {
		var runs atomic.Int64
		failing := action(t, "x.fail", regie.ClassOnce, func(context.Context, *tool.Invocation) (tool.Result, error) {
			return tool.Result{}, tool.NotDone{Err: regie.Errorf(regie.CodeNoPermission, "not today")}
		}, nil)
		m := newModel(t, replyWith("", call{"same", "x__act", `{}`}), replyWith("", call{"same", "x__fail", `{}`}), replyWith("", call{"same", "x__act", `{}`}), replyWith("ok")) //nolint:gocritic // it says the same again
		view := newHarness(t, m, countedAction(t, &runs, nil), failing).run(everything)
		expect(t, view, regie.EndAnswered, "SUCCEEDED", "FAILED", "NOT_RUN ANTI_LOOP")
		if told := view.Exchanges[2].Calls[0].Result; runs.Load() != 1 || !strings.Contains(told, "ANTI_LOOP_ID") || !strings.Contains(told, "done") {
			t.Errorf("%d runs, told %q", runs.Load(), told)
		}
	})
	t.Run("a failure that will come again", func(t *testing.T) {
		fail := func(id string) call { return call{id, "files__read_file", `{"path":"../../etc/passwd"}`} }
		view := newHarness(t, newModel(t, replyWith("", fail("a")), replyWith("", fail("b")), replyWith("", fail("c")))).run(everything)
		expect(t, view, regie.EndEarlyStop, "FAILED", "NOT_RUN REPEATED_FAILURE", "NOT_RUN REPEATED_FAILURE")
		if !strings.Contains(view.Round.EndNote.String(), "third time") {
			t.Errorf("the note is %q", view.Round.EndNote)
		}
	})
	t.Run("an unknown outcome proposed again", func(t *testing.T) {
		var runs atomic.Int64
		b := newHarness(t, newModel(t, replyWith("", call{"a", "x__act", `{}`}), replyWith("", call{"b", "x__act", `{}`})), countedAction(t, &runs, context.DeadlineExceeded))
		conn, run := b.start(everything) // not even that allows it a second time
		asked := b.parked(conn, run.SessionID).Approvals[0]
		if review := asked.Reviews[0]; review.Verdict != regie.VerdictMustAsk || review.Grounds[0].Source != regie.SourceUnknown || runs.Load() != 1 {
			t.Errorf("asked because %+v after %d runs", review.Grounds, runs.Load())
		}
	})
	t.Run("the model asks for a check", func(t *testing.T) {
		var runs atomic.Int64
		b := newHarness(t, newModel(t, replyWith("", call{"a", "x__act", `{"\u005fvalidate":true}`}), replyWith("ok")), countedAction(t, &runs, nil))
		conn, run, asked := b.startAsked(everything)
		if review := asked.Reviews[0]; review.Grounds[0].Source != regie.SourceModel || string(review.Arguments) != "{}" {
			t.Errorf("asked about %s because %+v", review.Arguments, review.Grounds)
		}
		b.decide(conn, asked, allowAll(asked)...)
		expect(t, b.await(conn, run), regie.EndAnswered, "SUCCEEDED")
	})
}

// TestRepeatedActionSaysSo has a model propose a payment again that was just made: who is asked can
// tell it from a first one, and decides.
func TestRepeatedActionSaysSo(t *testing.T) {
	t.Parallel()
	for answer, becomes := range map[regie.Answer]string{regie.AnswerAllow: "SUCCEEDED", regie.AnswerDeny: "NOT_RUN DENIED"} {
		var runs atomic.Int64
		m := newModel(t, replyWith("", call{"a", "x__act", `{"name":"rent"}`}), replyWith("", call{"b", "x__act", `{"name":"rent"}`}), replyWith("ok"))
		b := newHarness(t, m, countedAction(t, &runs, nil))
		conn, run := b.start(approval.Policy{})
		first := b.parked(conn, run.SessionID).Approvals[0]
		b.decide(conn, first, allowAll(first)...)
		again := b.next(conn, run.SessionID, first.ID)
		told := func(a regie.Approval) bool {
			return slices.ContainsFunc(a.Reviews[0].Preview.Warnings, func(s regie.Sentence) bool {
				return strings.HasPrefix(s.String(), "this exact action was already done")
			})
		}
		if told(first) || !told(again) {
			t.Errorf("warned at first: %v, again: %v", told(first), told(again))
		}
		decision := regie.Decision{CallID: again.Reviews[0].CallID, Answer: answer}
		if answer == regie.AnswerDeny {
			decision.Reason = "it is paid" // with which the model goes on
		}
		b.decide(conn, again, decision)
		expect(t, b.await(conn, run), regie.EndAnswered, "SUCCEEDED", becomes)
		if paid := runs.Load(); (paid == 2) != (answer == regie.AnswerAllow) || paid > 2 {
			t.Errorf("%s: paid %d times", answer, paid)
		}
	}
}

// TestEditedAnswerAgain repeats an answer whose edit could not be made any more: the file that it
// makes is there. A client that has lost the first reply must hear that it was heard.
func TestEditedAnswerAgain(t *testing.T) {
	t.Parallel()
	b, conn, run, asked := chained(t, write("a", "c.txt", "one\n"))
	edited := decide(asked, "x", regie.Decision{
		CallID: asked.Reviews[0].CallID, Answer: regie.AnswerAllow, Arguments: json.RawMessage(`{"path":"b.txt","content":"two\n"}`),
	})
	for range 2 {
		_, err := conn.Decide(t.Context(), edited)
		fatal(t, err)
		expect(t, b.await(conn, run), regie.EndAnswered, "SUCCEEDED")
	}
	edited.Request = "y"
	if _, err := conn.Decide(t.Context(), edited); regie.CodeOf(err) != regie.CodeConflict {
		t.Errorf("another answer: %v", err)
	}
	if got, _ := os.ReadFile(filepath.Join(b.root, "b.txt")); string(got) != "two\n" {
		t.Errorf("the file holds %q", got)
	}
}

// TestDenialSaidAgain: a reason that is cleaned before it is stored is still the same reason when
// the request comes again.
func TestDenialSaidAgain(t *testing.T) {
	t.Parallel()
	_, conn, _, asked := chained(t, write("a", "b.txt", "one\n"))
	in := decide(asked, "d1", regie.Decision{CallID: asked.Reviews[0].CallID, Answer: regie.AnswerDeny, Reason: "not \u202ethis\x1b one"})
	for range 2 {
		_, err := conn.Decide(t.Context(), in)
		fatal(t, err)
	}
	in.Decisions[0].Reason = "for another reason"
	if _, err := conn.Decide(t.Context(), in); regie.CodeOf(err) != regie.CodeConflict {
		t.Fatalf("another reason under the same id: %v", err)
	}
}

// TestMessageAgainDuringQuestion repeats messages while a question is open, as a client does that
// has lost the reply: neither the message that started the round nor one that has answered a
// question is taken as the answer to the next one.
func TestMessageAgainDuringQuestion(t *testing.T) {
	t.Parallel()
	m := newModel(t, replyWith("", colour), replyWith("", size), replyWith("ok"))
	b := newHarness(t, m)
	conn := b.connect()
	first := b.request(approval.Policy{Questions: true})
	run := b.send(conn, first)
	b.parked(conn, run.SessionID)
	if again, err := conn.Submit(t.Context(), first); err != nil || !again.Duplicate || again.Answered {
		t.Errorf("the first message again: %+v, %v", again, err)
	}
	answer := first
	answer.ClientID, answer.Text = regie.NewID().String(), "the blue one"
	if out, err := conn.Submit(t.Context(), answer); err != nil || !out.Answered {
		t.Fatalf("the answer: %+v, %v", out, err)
	}
	var second regie.Question
	b.until(conn, run.SessionID, func(*regie.Event) bool {
		inbox, err := conn.Inbox(t.Context(), store.InboxFilter{SessionID: run.SessionID})
		if err == nil && len(inbox.Questions) == 1 && inbox.Questions[0].Module.Text == "Which size?" {
			second = inbox.Questions[0]
		}
		return !second.ID.IsZero()
	})
	for _, in := range []int{1, 2} {
		if again, err := conn.Submit(t.Context(), answer); err != nil || !again.Duplicate || again.Answered {
			t.Errorf("the answer again, %d: %+v, %v", in, again, err)
		}
	}
	inbox, err := conn.Inbox(t.Context(), store.InboxFilter{SessionID: run.SessionID})
	if err != nil || len(inbox.Questions) != 1 || inbox.Questions[0].ID != second.ID {
		t.Fatalf("the second question is %+v, %v", inbox, err)
	}
	answer.ClientID, answer.Text = regie.NewID().String(), "the red one"
	b.send(conn, answer)
	expect(t, b.await(conn, run), regie.EndAnswered, "SUCCEEDED", "SUCCEEDED")
	if strings.Count(m.last(), "the blue one") != 1 || strings.Count(m.last(), "the red one") != 1 {
		t.Errorf("the model read %s", m.last())
	}
}
