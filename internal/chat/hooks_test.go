package chat

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/i18n"
)

// TestHookRefusal: what a hook has against a run is told once, by the run's end; what another one
// says of it, and what one has against a call, is told where it is said.
func TestHookRefusal(t *testing.T) {
	var out bytes.Buffer
	s := &Stream{Out: &out, Err: &out, Text: i18n.New("en")}
	hooks := []regie.HookRun{
		{On: regie.HookBeforeRound, Hook: "first", Verdict: regie.VerdictForbid, Reason: "not today"},
		{On: regie.HookBeforeRound, Hook: "second", Verdict: regie.VerdictMustAsk, Reason: "perhaps"},
	}
	for _, notice := range [][]regie.HookRun{hooks, {{On: regie.HookBeforeTool, Hook: "third", Tool: "files.write_file", Verdict: regie.VerdictForbid, Reason: "no writing"}}} {
		data, err := json.Marshal(regie.ToolNotice{Hooks: notice})
		if err != nil {
			t.Fatal(err)
		}
		m := regie.Message{
			Sender: regie.SenderSystem, Author: regie.Author{Kind: regie.AuthorComponent, ID: regie.ComponentTools}, ExecutionMetadata: data,
			System: &regie.SystemContent{Type: regie.SystemNetworkError},
		}
		body, _ := json.Marshal(m)
		s.Item(dispatch.Item{Event: &regie.Event{Type: regie.EventMessage, Body: body}})
	}
	end, _ := json.Marshal(map[string]any{"round_id": regie.NewID(), "state": "ENDED", "end_reason": "DENIED", "end_note": hooks[0].Objection()})
	s.Item(dispatch.Item{Event: &regie.Event{Type: regie.EventRound, Body: end}})
	for _, said := range []string{"not today", "perhaps", "no writing"} {
		if n := strings.Count(out.String(), said); n != 1 {
			t.Errorf("%q is told %d times:\n%s", said, n, out.String())
		}
	}
}
