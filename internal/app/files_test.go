package app_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/approval"
)

// TestSecretReads asks about a read of a secret whatever a run or a rule allows; what a person has
// not allowed reaches no prompt.
func TestSecretReads(t *testing.T) {
	t.Parallel()
	read := call{"s", "files__read_file", `{"path":".env"}`}
	other := call{"o", "files__list_files", `{}`}
	for name, row := range map[string]struct {
		answer regie.Answer
		states []string
		told   bool
	}{
		"allowed": {regie.AnswerAllow, []string{"SUCCEEDED", "SUCCEEDED"}, true}, "denied": {regie.AnswerDeny, []string{"SUCCEEDED", "NOT_RUN DENIED"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel(t, replyWith("", other, read), replyWith("ok"))
			b := newHarness(t, m)
			fatal(t, os.WriteFile(filepath.Join(b.root, ".env"), []byte("KEY=CANARY\n"), 0o600))
			conn, run, asked := b.startAsked(approval.Policy{Allow: []string{"*"}})
			review := asked.Reviews[0]
			if len(asked.Reviews) != 1 || review.Verdict != regie.VerdictMustAsk || review.Preview.Sentence.String() != "read .env (11 bytes), which may hold a secret" || len(review.Preview.Scopes) != 0 {
				t.Errorf("%+v", asked.Reviews)
			}
			if len(review.Grounds) == 0 || !strings.Contains(review.Grounds[0].Sentence.String(), ".env may contain a secret") {
				t.Errorf("%+v", review.Grounds)
			}
			// No answer holds for longer than this call.
			if _, err := conn.Decide(t.Context(), decide(asked, regie.NewID().String(), regie.Decision{CallID: review.CallID, Answer: regie.AnswerAlways})); regie.CodeOf(err) != regie.CodeBadRequest {
				t.Errorf("a rule was made: %v", err)
			}
			b.decide(conn, asked, regie.Decision{CallID: review.CallID, Answer: row.answer, Reason: "as I say"})
			view := b.await(conn, run)
			expect(t, view, regie.EndAnswered, row.states...)
			if strings.Contains(m.last(), "CANARY") != row.told {
				t.Errorf("the model is told: %s", m.last())
			}
		})
	}
	m := newModel(t, replyWith("", read), replyWith("ok"))
	b := newHarness(t, m)
	b.file(".env", "KEY=CANARY\n")
	expect(t, b.run(approval.Policy{Allow: []string{"*"}, OnApproval: approval.DenyAndGoOn}), regie.EndAnswered, "NOT_RUN DENIED") // nobody is there
	if strings.Contains(m.last(), "CANARY") {
		t.Error("the model is told")
	}
}

// TestStaleRead has the model read a file and edit it in a later run, by another engine, when
// somebody has changed it: what the model has seen is known from the store.
func TestStaleRead(t *testing.T) {
	t.Parallel()
	edit := func(old, fresh string) call {
		return call{"e" + old, "files__edit_file", `{"path":"a.txt","edits":[{"old":"` + old + `","new":"` + fresh + `"}]}`}
	}
	read := func(id string) call { return call{id, "files__read_file", `{"path":"a.txt"}`} }
	m := newModel(t, replyWith("", read("r")), replyWith("read"), replyWith("", edit("one", "1")), replyWith("it has changed"), replyWith("", read("r2"), edit("zwei", "2")), replyWith("again"),
		replyWith("", edit("zwei", "2")), replyWith("", edit("1", "eins"), call{"d", "files__delete_file", `{"path":"a.txt"}`}), replyWith("done"))
	b := newHarness(t, m)
	b.holds("one\ntwo\n")
	policy := approval.Policy{Allow: []string{"files.*"}}
	first := b.run(policy)
	expect(t, first, regie.EndAnswered, "SUCCEEDED")
	b.holds("1\none\nzwei\n")
	next := func(states ...string) {
		t.Helper()
		request := b.request(policy)
		request.SessionID = first.Round.SessionID
		conn := b.connect()
		run := b.send(conn, request)
		expect(t, b.await(conn, run), regie.EndAnswered, states...)
	}
	next("FAILED")
	if !strings.Contains(m.last(), "a.txt is not what it was when it was read") || !strings.Contains(m.last(), "read it again") {
		t.Errorf("the model is told %s", m.last())
	}
	b.held("1\none\nzwei\n")
	next("SUCCEEDED", "FAILED") // what it reads in the same reply it has not seen when it writes the edit
	b.held("1\none\nzwei\n")
	next("SUCCEEDED", "SUCCEEDED", "SUCCEEDED")
	if _, err := os.Stat(filepath.Join(b.root, "a.txt")); err == nil {
		t.Error("the file is still there")
	}
}

// TestSearchByMeaning lets a model look for what files are about: it reads what was found and how,
// also of what was written between two searches.
func TestSearchByMeaning(t *testing.T) {
	t.Parallel()
	search := func(id string) call {
		return call{id, "files__search_semantic", `{"query":"when are boilers serviced?"}`}
	}
	m := newModel(t, replyWith("", search("a")), replyWith("", search("b"), call{"w", "files__write_file", `{"path":"new.md","content":"The boiler is serviced in May.\n"}`}), replyWith("", search("c")), replyWith("ok"))
	b := newHarness(t, m)
	for name, text := range map[string]string{"house.md": "# House\n\nThe boiler is serviced in March.\n", ".env": "BOILER=CANARY serviced\n"} {
		fatal(t, os.WriteFile(filepath.Join(b.root, name), []byte(text), 0o600))
	}
	conn, run := b.start(approval.Policy{Allow: []string{"*"}})
	view := b.await(conn, run)
	expect(t, view, regie.EndAnswered, "SUCCEEDED", "SUCCEEDED", "SUCCEEDED", "SUCCEEDED")
	first, last := view.Exchanges[0].Calls[0].Result, view.Exchanges[2].Calls[0].Result
	if !strings.HasPrefix(first, "house.md:1-3  House\n     1\t# House\n") || !strings.HasSuffix(first, "[1 part (lexical: by words and their stems, because no embedder is configured)]") {
		t.Errorf("first it found %q", first)
	}
	if !strings.Contains(last, "new.md:1-1") || !strings.Contains(last, "[2 parts (") || strings.Contains(m.last(), "CANARY") {
		t.Errorf("then it found %q", last)
	}
}
