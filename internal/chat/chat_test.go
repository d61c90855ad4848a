package chat

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/i18n"
	"github.com/regie-run/regie/internal/store"
)

var update = flag.Bool("update", false, "write the golden files anew")

func id(t *testing.T, end string) regie.ID {
	t.Helper()
	parsed, err := regie.ParseID("0197e0a1-2b3c-7d4e-8f50-61728394" + end)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// anInbox holds an approval and a question in which everything occurs that a page can show.
func anInbox(t *testing.T, now time.Time) store.Inbox {
	t.Helper()
	no := false
	scopes := []regie.Scope{{Tool: "x", Kind: regie.ScopeAny, Sentence: regie.Say("any file of this workspace")}}
	return store.Inbox{
		Approvals: []regie.Approval{{
			ID: id(t, "a001"), SessionID: id(t, "a002"), RoundID: id(t, "a003"), Workspace: "house", SessionName: "Do it\x1b[2J", State: regie.ApprovalOpen,
			CreatedAt: now.Add(-5 * time.Minute), ExpiresAt: now.Add(23 * time.Hour),
			Reviews: []regie.Review{
				{
					CallID: id(t, "a004"), Tool: "files.write_file", Preview: regie.Preview{
						Sentence: regie.Say("write 1 line to %s (new file)", "a\u202e.txt"), Diff: "+one\x1b[31m\n+two\n", Scopes: scopes,
						Warnings: []regie.Sentence{regie.Say("%s is executable", "a.txt")},
					},
					Grounds: []regie.Ground{{Sentence: regie.Say("the model asks for a check")}},
				},
				{
					CallID: id(t, "a005"), Preview: regie.Preview{Sentence: regie.Say("append 1 line to %s", "b.txt")}, Decision: &regie.Decision{
						Answer: regie.AnswerSession, By: "ada", Scope: &scopes[0], Arguments: json.RawMessage(`{}`),
					},
				},
				{
					CallID: id(t, "a006"), Preview: regie.Preview{Sentence: regie.Say("append 1 line to %s", "c.txt")},
					Decision: &regie.Decision{Answer: regie.AnswerDeny, By: "ada", Reason: "not\nthat one"},
				},
			},
		}},
		Questions: []regie.Question{
			{
				ID: id(t, "b001"), SessionID: id(t, "a002"), RoundID: id(t, "a003"), State: regie.WaitOpen, CreatedAt: now.Add(-time.Second), ExpiresAt: now.Add(7 * 24 * time.Hour),
				Module: regie.Module{Kind: regie.ModuleChoice, Text: "Which\ncolour?", Options: []string{"red", "gr\x07een"}},
			},
			{
				ID: id(t, "b002"), State: regie.WaitResolved, CreatedAt: now.Add(-49 * time.Hour), Module: regie.Module{Kind: regie.ModuleValidation, Text: "Sure?"},
				Reply: &regie.QuestionReply{Yes: &no, By: "ada"},
			},
		},
	}
}

func TestPage(t *testing.T) {
	now := time.Date(2026, 11, 21, 9, 30, 0, 0, time.UTC)
	for _, lang := range []string{"en", "fr"} {
		t.Run(lang, func(t *testing.T) {
			var out bytes.Buffer
			page := &Page{W: &out, Text: i18n.New(lang), Now: func() time.Time { return now }, Everywhere: true}
			inbox := anInbox(t, now)
			page.Inbox(inbox)
			page.Show(inbox)
			page.Inbox(store.Inbox{})
			if page.Err() != nil {
				t.Error(page.Err())
			}
			if strings.ContainsAny(out.String(), "\x1b\x07\u202e") {
				t.Error("a control sequence got through")
			}
			path := filepath.Join("testdata", "page."+lang+".golden")
			if *update {
				if err := os.WriteFile(path, out.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), out.String()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", path, diff)
			}
		})
	}
}

func TestSpan(t *testing.T) {
	page := &Page{Text: i18n.New("fr")}
	for d, want := range map[time.Duration]string{
		-time.Second: "0 s", 59 * time.Second: "59 s", time.Minute: "1 min", 59 * time.Minute: "59 min", 90 * time.Minute: "2 h", 47 * time.Hour: "47 h", 49 * time.Hour: "2 j",
	} {
		if got := page.formatSpan(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
}

// TestReadSpan reads how long something is to hold, as people write it.
func TestReadSpan(t *testing.T) {
	for written, want := range map[string]time.Duration{
		"90m": 90 * time.Minute, "24h": 24 * time.Hour, "1h30m": 90 * time.Minute, "7d": 7 * 24 * time.Hour, "2w": 14 * 24 * time.Hour,
		"0h": 0, "-1h": 0, "d": 0, "0d": 0, "-2d": 0, "1.5d": 0, "99999d": 0, "soon": 0, "": 0, "7": 0, "7 d": 0,
	} {
		if got, err := Span(written); got != want || (err == nil) != (want > 0) || err != nil && regie.CodeOf(err) != regie.CodeBadRequest {
			t.Errorf("%q: %v, %v, want %v", written, got, err, want)
		}
	}
}

func TestDigits(t *testing.T) {
	for name, want := range map[string]string{"A4B5": "a4b5", "0197e0a1-2b3c": "0197e0a12b3c", "abc": "", "last!": "", "": "", strings.Repeat("a", 33): ""} {
		got, err := PartOfID(name)
		if got != want || (err == nil) != (want != "") || err != nil && regie.CodeOf(err) != regie.CodeBadID {
			t.Errorf("%q: %q, %v", name, got, err)
		}
	}
	if got := Short(id(t, "a001")); got != "8394a001" {
		t.Errorf("the short form is %q", got)
	}
}

func TestPickID(t *testing.T) {
	known := []regie.ID{id(t, "c001"), id(t, "c002"), id(t, "d002")}
	for name, want := range map[string]string{
		"c001": "c001", "C002": "c002", known[2].String(): "d002", "94c001": "c001", strings.ReplaceAll(known[1].String(), "-", ""): "c002",
		"c003": "NOT_FOUND", "002": "BAD_ID", "x001": "BAD_ID", "": "BAD_ID", known[0].String()[:9]: "CONFLICT", known[0].String()[:5]: "NOT_FOUND",
	} {
		got, err := PickID(known, name)
		is := string(regie.CodeOf(err))
		if err == nil {
			is = got.String()[32:]
		}
		if is != want {
			t.Errorf("%s: %s, %v, want %s", name, got, err, want)
		}
	}
}

func TestChoose(t *testing.T) {
	one := &regie.Module{Kind: regie.ModuleChoice, Options: []string{"red", "green", "blue"}}
	many := &regie.Module{Kind: regie.ModuleChoice, Options: one.Options, AllowMultiple: true}
	for _, c := range []struct {
		module  *regie.Module
		numbers string
		want    string
	}{
		{one, "2", "green"},
		{one, "1,2", ""},
		{one, "0", ""},
		{one, "4", ""},
		{one, "", ""},
		{one, "1,1", "red"},
		{one, "99999999999999999999", ""},
		{many, "1, 3", "red blue"},
		{many, "3 3 2", "blue green"},
		{many, "1,4", ""},
		{many, ",", ""},
	} {
		reply, err := Choose(c.module, c.numbers)
		if got := strings.Join(reply.Choices, " "); (err == nil) != (c.want != "") || err == nil && got != c.want || err != nil && regie.CodeOf(err) != regie.CodeBadRequest {
			t.Errorf("%q: %q, %v, want %q", c.numbers, got, err, c.want)
		}
	}
}

func TestEdit(t *testing.T) {
	arguments := json.RawMessage(`{"path":"a\u202e.txt","n":12345678901234567890}`)
	var seen string
	var mode, dir os.FileMode
	write := func(data string) Editor {
		return func(_ context.Context, path string) error {
			before, _ := os.ReadFile(path)
			seen = string(before)
			if info, err := os.Stat(path); err == nil {
				mode = info.Mode().Perm()
			}
			if info, err := os.Stat(filepath.Dir(path)); err == nil {
				dir = info.Mode().Perm()
			}
			return os.WriteFile(path, []byte(data), 0o600)
		}
	}
	for name, c := range map[string]struct {
		editor Editor
		code   regie.Code
	}{
		"changed":  {write(`{"path": "b.txt"}`), ""},
		"spaces":   {write("{ \"n\": 12345678901234567890,\n \"path\": \"a\\u202e.txt\" }"), regie.CodeConflict},
		"empty":    {write(" \n"), regie.CodeBadArguments},
		"not JSON": {write(`{"path": }`), regie.CodeBadArguments},
		"removed":  {func(_ context.Context, path string) error { return os.Remove(path) }, regie.CodeToolError},
		"fails":    {func(context.Context, string) error { return errors.New("exit status 1") }, regie.CodeToolError},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("TMPDIR", t.TempDir())
			edited, err := Edit(t.Context(), c.editor, arguments, nil)
			if regie.CodeOf(err) != c.code {
				t.Errorf("%v", err)
			}
			if c.code == "" && string(edited) != `{"path": "b.txt"}` {
				t.Errorf("edited to %s", edited)
			}
			if left, _ := os.ReadDir(os.Getenv("TMPDIR")); len(left) != 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
	if want := "{\n  \"path\": \"a\\u202e.txt\",\n  \"n\": 12345678901234567890\n}\n"; seen != want || mode != 0o600 || dir != 0o700 {
		t.Errorf("the editor got %q with %v in %v, want %q", seen, mode, dir, want)
	}
	// What could not be used is what one begins with next time.
	if _, err := Edit(t.Context(), write(`{}`), arguments, []byte(`{"path": }`)); err != nil || seen != `{"path": }` {
		t.Errorf("the next draft is %q, %v", seen, err)
	}
}

// TestStream writes what overtakes, repeats and gets lost in the order of the events, each once.
func TestStream(t *testing.T) {
	var out bytes.Buffer
	s := &Stream{Out: &out, Err: &out, Text: i18n.New("en")}
	first, second := id(t, "0001"), id(t, "0002")
	delta := func(round regie.ID, exchange int, content string) {
		s.Item(dispatch.Item{Delta: &dispatch.Delta{RoundID: round, Exchange: exchange, Content: content}})
	}
	event := func(kind regie.EventType, body any) {
		data, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		s.Item(dispatch.Item{Event: &regie.Event{Type: kind, Body: data, Time: time.Time{}.Add(time.Hour)}})
	}
	message := func(round regie.ID, exchange int, content string, calls ...regie.Part) {
		parts := append([]regie.Part{{Type: regie.PartText, Text: content}}, calls...)
		event(regie.EventMessage, regie.Message{Sender: regie.SenderAI, RoundID: round, Exchange: exchange, AI: &regie.AIReply{Parts: parts}})
	}
	event(regie.EventRound, map[string]any{"round_id": first, "state": "RUNNING"})
	delta(first, 1, "I lo")
	delta(first, 1, "ok\x1b[")
	delta(first, 1, "2J.")
	delta(first, 2, "I see.")    // of the next reply, before this one's message
	delta(second, 1, "And now?") // and of the next round
	message(first, 1, "I look\x1b[2J.", regie.Part{Type: regie.PartCall, CallID: id(t, "00c1"), Tool: "files.read_file"})
	event(regie.EventToolResult, map[string]any{"tool": "files.\nread_file", "about": "a\x1b[2J.md", "state": "SUCCEEDED", "duration_us": 1500})
	event(regie.EventMessage, regie.Message{
		Sender: regie.SenderSystem, RoundID: first, Exchange: 1, System: &regie.SystemContent{Type: regie.SystemDataAdded},
	})
	message(first, 2, "I see.")
	delta(first, 2, "I see.") // behind its message
	event(regie.EventRound, map[string]any{"round_id": first, "state": "ENDED", "end_reason": "ANSWERED"})
	event(regie.EventMessage, regie.Message{ID: id(t, "00a1"), Sender: regie.SenderUser, Text: "and\nthen?"})
	event(regie.EventRound, map[string]any{"round_id": second, "state": "RUNNING"})
	event(regie.EventStreamReset, map[string]any{"code": "TRUNCATED_STREAM", "wait_ms": 700})
	// nobody has seen anything of it
	event(regie.EventStreamReset, map[string]any{"code": "PROVIDER_BUSY", "wait_ms": 700})
	event(regie.EventStreamReset, map[string]any{"code": "PROVIDER_BUSY", "status": 503, "wait_ms": 42100})
	delta(second, 1, "Now it")
	message(second, 1, "Now it is done.") // deltas got lost: the rest
	delta(second, 2, "Lost")
	message(second, 2, "Nothing is lost.") // and here what was shown is no beginning of it
	delta(second, 3, "Cut\x1b]0;off")
	message(second, 3, "Cut\x1b]0;off.")
	event(regie.EventRound, map[string]any{"round_id": second, "state": "ENDED", "end_reason": "LIMIT", "end_note": "the limit of 1 replies"})
	event(regie.EventNotice, regie.Notice{Kind: regie.NoticeNetworkDown, Text: "no\x1b[2J route"})
	event(regie.EventNotice, regie.Notice{Kind: "of a later version"})
	want := "I look.\n  ✓ files.␊read_file a␛[2J.md 1.5 ms\nI see.\n› and\n  then?\nAnd now?\n" +
		"… the model is asked again: TRUNCATED_STREAM; its text above is discarded\n" +
		"… the model is asked again in 42 s: PROVIDER_BUSY\n" +
		"Now it is done.\nLost\nNothing is lost.\nCut0;off.\nthe run ended: the limit of 1 replies\n" +
		"the model has not been reached for 1h0m0s (no route); the run still waits for it\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestInput(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	in, err := NewInput(r, false)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	resume := in.Pause()
	if _, err := w.WriteString("for the editor"); err != nil {
		t.Fatal(err)
	}
	other := make([]byte, 100)
	if n, err := r.Read(other); err != nil || string(other[:n]) != "for the editor" {
		t.Errorf("the editor reads %q, %v", other[:n], err)
	}
	resume()
	if _, err := w.WriteString("one\r\ntwo \\\nthree\n\nfour"); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range in.Lines() {
		got = append(got, line)
	}
	if diff := cmp.Diff([]string{"one", "two \nthree", "", "four"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestInputPaste takes lines that are there together as one message at a terminal, and ends without
// an end of the input.
func TestInputPaste(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	in, err := NewInput(r, true)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.WriteString("one\ntwo\n"); err != nil {
		t.Fatal(err)
	}
	if got := <-in.Lines(); got != "one\ntwo" {
		t.Errorf("got %q", got)
	}
	if _, err := w.WriteString("three\n"); err != nil {
		t.Fatal(err)
	}
	if got := <-in.Lines(); got != "three" {
		t.Errorf("got %q", got)
	}
	in.Close()
	if got, ok := <-in.Lines(); ok {
		t.Errorf("got %q after the end", got)
	}
}
