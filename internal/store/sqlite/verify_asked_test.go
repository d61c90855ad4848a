package sqlite_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/store/sqlite"
	"github.com/regie-run/regie/internal/store/storetest"
)

// answered is a session in which everything happened that people were asked about: an approval with
// an allowed, an edited and a denied call, one that waits, one that was withdrawn with its message,
// a question with its answer, a call that was resolved, and a rule that holds and one that was
// revoked.
type answered struct {
	workspace            regie.ID
	session              regie.ID // with the decided approval
	open, question, done regie.ID // sessions with the others
	stopped              regie.ID
}

func answer(t *testing.T, dir string) *answered {
	t.Helper()
	s, err := sqlite.Open(t.Context(), sqlite.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	w := storetest.NewWorld(t, s)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	a := &answered{workspace: w.Workspace.ID}
	fence, reply, asked := w.Ask(3)
	a.session = fence.SessionID
	scope := regie.Scope{Tool: "t.action", Kind: regie.ScopeAny, Sentence: regie.Say("any file of this workspace")}
	until := time.Now().Add(time.Hour)
	preview := regie.Preview{Sentence: regie.Say("any file of this workspace"), Diff: "+y\n"}
	decide := func(request string, preview *regie.Preview, rules []regie.Rule, d regie.Decision) {
		t.Helper()
		d.By = "ada"
		in := store.Decide{ApprovalID: asked.ID, Request: request, Decisions: []regie.Decision{d}, Rules: rules}
		if preview != nil {
			in.Previews = map[regie.ID]regie.Preview{d.CallID: *preview}
		}
		_, err := w.Store.Decide(t.Context(), in)
		must(err)
	}
	rule := regie.Rule{
		ID: regie.NewID(), SessionID: fence.SessionID, Verdict: regie.VerdictAllow, Scope: scope, Author: "ada", FromCall: reply.Calls[0].ID, ExpiresAt: until,
	}
	decide("1", nil, []regie.Rule{rule}, regie.Decision{CallID: reply.Calls[0].ID, Answer: regie.AnswerSession, Scope: &scope, ExpiresAt: until})
	decide("2", &preview, nil, regie.Decision{CallID: reply.Calls[1].ID, Answer: regie.AnswerAllow, Arguments: json.RawMessage(`{"n":7}`)})
	decide("3", nil, nil, regie.Decision{CallID: reply.Calls[2].ID, Answer: regie.AnswerDeny, Reason: "not <that> \xff one"})
	must(w.Store.RevokeRules(t.Context(), store.RevokeRules{RuleIDs: []regie.ID{w.Standing(time.Time{}).ID}, By: "bob"}))

	fence, _, _ = w.Ask(1)
	a.open = fence.SessionID

	fence, _, _ = w.Ask(1)
	a.stopped = fence.SessionID
	in := w.Submission("later")
	in.SessionID, in.New = fence.SessionID, nil
	_, err = w.Store.Submit(t.Context(), in)
	must(err)
	_, err = w.Store.RequestStop(t.Context(), fence.RoundID, regie.StopStop)
	must(err)

	a.question = ask(w, must)

	fence = w.Start()
	a.done = fence.SessionID
	reply = w.Reply(fence, 1, regie.KindQuery, regie.KindAction)
	must(w.AppendReply(fence, reply))
	must(w.CommitCalls(fence, store.Settle{Exchange: 1, Start: &reply.Calls[1]}))
	must(w.CommitCalls(fence, w.Half(reply)))
	must(w.Store.ResolveCall(t.Context(), reply.Calls[1].ID, regie.ResolvedHappened, "seen", "ada"))
	must(a.verify(t, s))
	must(s.Close())
	return a
}

// ask puts a question to a person, answers it, and returns its session.
func ask(w *storetest.World, must func(error)) regie.ID {
	fence := w.Start()
	reply := w.Reply(fence, 1, regie.KindQuery)
	question := regie.Question{
		ID: regie.NewID(), RoundID: fence.RoundID, CallID: reply.Calls[0].ID, Module: regie.Module{Kind: regie.ModuleChoice, Text: "which?", Options: []string{"a", "b"}},
		ExpiresAt: time.Now().Add(time.Hour),
	}
	reply.Ask, reply.Park = &store.Asked{Questions: []regie.Question{question}}, true
	must(w.AppendReply(fence, reply))
	_, err := w.Store.Answer(w.Ctx, store.AnswerQuestion{
		QuestionID: question.ID, Request: "r", Reply: regie.QuestionReply{Choices: []string{"b"}, By: "ada", At: time.Now()}, Result: "b",
		Message: regie.Message{ID: regie.NewID(), Sender: regie.SenderUser, Author: regie.Author{Kind: regie.AuthorUser, ID: "ada"}, Text: "b", ExcludeFromPrompt: true},
	})
	must(err)
	return fence.SessionID
}

// verify verifies every log of the store and returns what it says first.
func (a *answered) verify(t *testing.T, s *sqlite.Store) error {
	t.Helper()
	for _, id := range []regie.ID{a.session, a.open, a.stopped, a.question, a.done, a.workspace} {
		if _, err := s.Verify(t.Context(), id); err != nil {
			return err
		}
	}
	return nil
}

// unguarded drops every trigger, as somebody would who alters what must not be altered.
func unguarded(t *testing.T, dir string) func(sql string) {
	t.Helper()
	db := rawWith(t, dir, "foreign_keys(0)")
	rows, err := db.QueryContext(t.Context(), "SELECT name FROM sqlite_schema WHERE type = 'trigger'")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	run := func(sql string) {
		t.Helper()
		if _, err := db.ExecContext(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	for _, name := range names {
		run("DROP TRIGGER " + name)
	}
	return run
}

// TestVerifyFindsAlteredAnswers alters, one after another, what people were shown, what they said,
// and what follows from it; verify names the column (decision 15: who decided what).
func TestVerifyFindsAlteredAnswers(t *testing.T) {
	const (
		shown    = "UPDATE reviews SET %s WHERE answer IS NULL"
		said     = "UPDATE reviews SET %s WHERE answer = 'allow_session'"
		edit     = "UPDATE reviews SET %s WHERE edited IS NOT NULL"
		denied   = "UPDATE reviews SET %s WHERE answer = 'deny'"
		decided  = "UPDATE approvals SET %s WHERE state = 'DECIDED'"
		unclosed = "UPDATE approvals SET %s WHERE state = 'OPEN'"
		wait     = "UPDATE waits SET %s WHERE kind = 'APPROVAL' AND state = 'RESOLVED'"
		asked    = "UPDATE waits SET %s WHERE kind = 'QUESTION'"
		held     = "UPDATE rules SET %s WHERE revoked_at IS NULL"
		revoked  = "UPDATE rules SET %s WHERE revoked_at IS NOT NULL"
		resolved = "UPDATE calls SET %s WHERE resolved_at IS NOT NULL"
	)
	untouched := t.TempDir()
	a := answer(t, untouched)
	for _, c := range []struct{ where, set, says string }{
		{shown, "preview = replace(preview, '+x', '+z')", "what was shown"},
		{shown, "preview = json_set(preview, '$.preconditions', json('[{\"kind\":\"file\",\"name\":\"a\"}]'))", "what was shown"},
		{shown, "preview = '{'", "preview"},
		{shown, "arguments = '{\"n\":9}'", "what was shown"},
		{shown, "definition = zeroblob(32)", "what was shown"},
		{shown, "verdict = 'MUST_ASK'", "what was shown"},
		{shown, "grounds = '[]'", "what was shown"},
		{shown, "ordinal = 1", "ordinal"},
		{shown, "call_id = zeroblob(16)", "the log has no"},
		{shown, "answer = 'allow', decided_by = 'eve', decided_at = 1", "answer"},
		{said, "answer = 'allow_always'", "answer"},
		{said, "scope = json_set(scope, '$.kind', 'exact')", "scope"},
		{said, "scope = NULL", "scope"},
		{said, "expires_at = expires_at + 1", "expires_at"},
		{said, "expires_at = NULL", "expires_at"},
		{said, "request = 'another'", "request"},
		{said, "decided_by = 'eve'", "decided_by"},
		{said, "decided_at = decided_at + 1", "decided_at"},
		{said, "edited = '{}'", "edited"},
		{edit, "edited = '{\"n\":8}'", "edited"},
		{edit, "edited_preview = replace(edited_preview, '+y', '+z')", "edited_preview"},
		{edit, "edited_preview = NULL", "edited_preview"},
		{denied, "answer = 'allow'", "answer"},
		{denied, "reason = 'because'", "reason"},
		{denied, "reason = NULL", "reason"},
		{decided, "state = 'EXPIRED'", "state"},
		{decided, "closed_at = closed_at + 1", "closed_at"},
		{decided, "created_at = created_at + 1", "created_at"},
		{decided, "expires_at = expires_at + 1", "expires_at"},
		{decided, "exchange = exchange + 1", "exchange"},
		{decided, "round_id = zeroblob(16)", "round_id"},
		{decided, "seq = seq + 1", "seq"},
		{unclosed, "state = 'DECIDED', closed_at = 1", "state"},
		{unclosed, "session = (SELECT min(session) FROM approvals)", "approval"},
		{"UPDATE approvals SET %s WHERE state = 'WITHDRAWN'", "state = 'DECIDED'", "state"},
		{wait, "state = 'EXPIRED'", "state"},
		{wait, "resolved_by = 'eve'", "resolved_by"},
		{wait, "resolved_at = resolved_at + 1", "resolved_at"},
		{wait, "deadline = deadline + 1", "deadline"},
		{wait, "created_at = created_at + 1", "created_at"},
		{wait, "owner_id = zeroblob(16)", "owner_id"},
		{wait, "resolution = '{}'", "resolution"},
		{wait, "round_id = zeroblob(16)", "round_id"},
		{wait, "kind = 'TASK'", "wait for"},
		{asked, "resolution = replace(resolution, '\"b\"', '\"a\"')", "resolution"},
		{asked, "resolved_by = 'eve'", "resolved_by"},
		{asked, "resolved_at = resolved_at + 1", "resolved_at"},
		{asked, "state = 'EXPIRED'", "state"},
		{asked, "deadline = deadline + 1", "deadline"},
		{asked, "object_id = zeroblob(16)", "object_id"},
		{"UPDATE questions SET %s", "module = replace(module, 'which', 'what')", "module"},
		{"UPDATE questions SET %s", "call_id = zeroblob(16)", "call_id"},
		{"UPDATE questions SET %s", "request = 'another'", "request"},
		{held, "verdict = 'FORBID'", "verdict"},
		{held, "scope = json_set(scope, '$.tool', 't.other')", "scope"},
		{held, "tool = 't.other'", "tool"},
		{held, "session = NULL", "session"},
		{held, "author = 'eve'", "author"},
		{held, "expires_at = NULL", "expires_at"},
		{held, "expires_at = expires_at + 1", "expires_at"},
		{held, "created_at = created_at + 1", "created_at"},
		{held, "from_call = NULL", "from_call"},
		{held, "revoked_at = 1, revoked_by = 'eve'", "revoked_at"},
		{revoked, "revoked_at = NULL, revoked_by = NULL", "revoked_at"},
		{revoked, "revoked_by = 'eve'", "revoked_by"},
		{revoked, "revoked_at = revoked_at + 1", "revoked_at"},
		{resolved, "resolved_by = 'eve'", "resolved_by"},
		{resolved, "resolve_note = 'guessed'", "resolve_note"},
		{resolved, "resolved_at = resolved_at + 1", "resolved_at"},
		{resolved, "resolved_as = 'did_not_happen'", "resolved_as"},
		{"UPDATE calls SET %s WHERE code = 'DENIED'", "error = '{\"code\":\"X\"}'", "error"},
		{"UPDATE calls SET %s", "tool = 'another'", "tool"},
		{"UPDATE messages SET %s WHERE pending_seq IS NOT NULL", "withdrawn_at = NULL", "withdrawn_at"},
		{"UPDATE messages SET %s WHERE pending_seq IS NOT NULL", "withdrawn_at = withdrawn_at + 1", "withdrawn_at"},
		{"UPDATE messages SET %s WHERE pending_seq IS NOT NULL", "taken_back = 1", "taken_back"},
		{"UPDATE messages SET %s WHERE pending_seq IS NULL AND sender = 'USER'", "withdrawn_at = 1", "withdrawn_at"},
		{"DELETE FROM %s", "reviews", "missing"},
		{"DELETE FROM %s", "questions", "call_id"},
		{"DELETE FROM %s", "approvals", "missing"},
		{"DELETE FROM %s", "waits", "missing"},
		{"DELETE FROM %s", "rules", "missing"},
		{"DELETE FROM %s", "messages WHERE pending_seq IS NOT NULL", "missing"},
		{"INSERT INTO rules SELECT randomblob(16), workspace_id, %s, verdict, tool, scope, author, from_call, 1, NULL, NULL, NULL FROM rules", "NULL", "the log has no rule"},
		{"INSERT INTO approvals SELECT %s, session, round_id, exchange, 'OPEN', 1, 2, NULL, 9 FROM approvals WHERE state = 'OPEN'", "randomblob(16)", "the log has no approval"},
		{"INSERT INTO messages (id, session, seq, sender, variant, author_kind, author_id) SELECT randomblob(16), session, %s, 'USER', 'text', 'user', 'x' FROM messages LIMIT 1", "99", "the log has no message"},
	} {
		statement := strings.Replace(c.where, "%s", c.set, 1)
		t.Run(statement, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS(untouched)); err != nil {
				t.Fatal(err)
			}
			unguarded(t, dir)("PRAGMA ignore_check_constraints = 1; " + statement)
			err := a.verify(t, open(t, dir))
			if regie.CodeOf(err) != regie.CodeChainBroken || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want %q", err, c.says)
			}
		})
	}
}

// TestClockJumpsBack asks about a call, and anew after the clock has jumped back by decades: what
// counts is what was asked last, because the log only rises.
func TestClockJumpsBack(t *testing.T) {
	dir := t.TempDir()
	s, err := sqlite.Open(t.Context(), sqlite.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	w := storetest.NewWorld(t, s)
	fence, reply, asked := w.Ask(1)
	call := reply.Calls[0].ID
	_, err = s.Decide(t.Context(), store.Decide{ApprovalID: asked.ID, Request: "1", Decisions: []regie.Decision{{CallID: call, Answer: regie.AnswerAllow, By: "ada"}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) { // where it is the year 2000
		s, err := sqlite.Open(t.Context(), sqlite.Config{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		w := storetest.NewWorld(t, s)
		again := w.AskAgain(fence, reply)
		batch, err := s.Batch(t.Context(), fence, 1, reply.Message.ID)
		if err != nil {
			t.Fatal(err)
		}
		inbox, err := s.Inbox(t.Context(), store.InboxFilter{ID: again.ID})
		if err != nil || len(inbox.Approvals) != 1 || inbox.Approvals[0].CreatedAt.Year() != 2000 {
			t.Fatalf("the clock did not jump back: %+v, %v", inbox, err)
		}
		if review := batch.Reviews[call]; review.Decision != nil || review.Verdict != regie.VerdictMustAsk {
			t.Errorf("what counts is %+v", review)
		}
		if _, err := s.Verify(t.Context(), fence.SessionID); err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}
