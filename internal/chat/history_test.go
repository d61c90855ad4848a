package chat

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/i18n"
	"github.com/regie-run/regie/internal/store"
)

// TestPast shows the events of a chat as they were shown when they came, with what came of the
// person's own command, and numbers the calls.
func TestPast(t *testing.T) {
	first, second, own := regie.NewID(), regie.NewID(), regie.Call{ID: regie.NewID(), Result: regie.CommandExit + "2\nput out\n"}
	back, read, copied := regie.NewID(), regie.NewID(), regie.NewID()
	past := Past{Last: second, View: store.SessionView{Thread: []store.MessageView{{Calls: []regie.Call{own}}}}}
	past.View.State, past.View.ForkedFrom = regie.SessionIdle, &regie.ForkPoint{SessionID: id(t, "a001"), Seq: 9}
	event := func(kind regie.EventType, body any) {
		data, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		past.Events = append(past.Events, &regie.Event{Seq: int64(len(past.Events) + 1), Type: kind, Body: data})
	}
	calls := func(id regie.ID) *regie.AIReply {
		return &regie.AIReply{Parts: []regie.Part{{Type: regie.PartText, Text: "I look."}, {Type: regie.PartCall, CallID: id, Tool: "shell.shell_exec"}}}
	}
	event(regie.EventMessage, regie.Message{Sender: regie.SenderAI, AI: calls(copied), Copied: &regie.Copied{}, Author: regie.Author{Kind: regie.AuthorUser}})
	event(regie.EventToolResult, map[string]any{"call_id": copied, "tool": "files.list_files", "state": "SUCCEEDED"})
	event(regie.EventMessage, regie.Message{Sender: regie.SenderUser, Text: "go\non", RoundID: first})
	event(regie.EventRound, map[string]any{"round_id": first, "state": "RUNNING"})
	event(regie.EventMessagePending, regie.Message{ID: back, Sender: regie.SenderUser, Text: "later"})
	event(regie.EventMessage, regie.Message{Sender: regie.SenderAI, RoundID: first, AI: calls(read)})
	event(regie.EventToolResult, map[string]any{"call_id": read, "tool": "files.read_file", "about": "a", "state": "SUCCEEDED"})
	event(regie.EventMessageWithdrawn, map[string]any{"message_id": back})
	event(regie.EventRound, map[string]any{"round_id": first, "state": "ENDED", "end_reason": "STOPPED"})
	event(regie.EventMessage, nil) // erased
	event(regie.EventMessage, regie.Message{Sender: regie.SenderUser, Text: "!make", RoundID: second})
	event(regie.EventRound, map[string]any{"round_id": second, "state": "RUNNING"})
	event(regie.EventMessage, regie.Message{Sender: regie.SenderAI, AI: calls(own.ID), RoundID: second, Author: regie.Author{Kind: regie.AuthorUser}})
	event(regie.EventToolResult, map[string]any{"call_id": own.ID, "tool": "shell.shell_exec", "about": "make", "state": "SUCCEEDED", "exit": "2"})
	event(regie.EventRound, map[string]any{"round_id": second, "state": "ENDED", "end_reason": "ANSWERED"})
	var out bytes.Buffer
	c := New(t.Context(), PlainConfig{Out: &out, Err: &out, Config: Config{Text: i18n.New("en")}})
	c.Stream.Mark = c.Calls.Mark
	c.TakeUp(&past)
	want := "forked from 8394a001 at 9; the files of the workspace were not forked\n" +
		"I look.\n  ✓ files.list_files 0.0 ms\n› go\n  on\nI look.\n  ✓ files.read_file a 0.0 ms  [1]\nnot sent, the agent never read it:\n› later\nstopped\n" +
		"› !make\nI look.\n  ✗ shell.shell_exec make 0.0 ms  exit code 2  [2]\n  │ exit code: 2\n  │ put out\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if c.Last != second || !c.Round.IsZero() || c.State != regie.SessionIdle || len(c.Rounds) != 0 {
		t.Errorf("it goes on with %+v", c.Conversation)
	}
}
