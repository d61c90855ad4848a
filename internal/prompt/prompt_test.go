package prompt_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/prompt"
	"github.com/regie-run/regie/internal/provider"
)

var update = flag.Bool("update", false, "write the golden files anew")

func wire(name string) string { return "wire_" + name }

// TestGolden renders one of each message that a thread can hold, and compares the turns with a
// golden file.
func TestGolden(t *testing.T) {
	id := func(n byte) regie.ID { return regie.ID{15: n} }
	calls := []regie.Call{
		{ID: id(1), Tool: "a.b", ProviderCallID: "p1", Arguments: `{"x":1}`, State: regie.CallSucceeded, Result: "text"},
		{ID: id(2), Tool: "c.d", ProviderCallID: "p2", Arguments: `not json`, State: regie.CallNotRun, NotRun: regie.NotRunInvalid, Error: &regie.CallError{Code: "INVALID_ARGUMENTS", Message: "no", Retryable: true}},
		{ID: id(3), Tool: "e.f", ProviderCallID: "p3", Arguments: ``, State: regie.CallUnknown, Error: &regie.CallError{Code: "OUTCOME_UNKNOWN", Message: "?", Hint: "verify"}},
		{ID: id(4), Tool: "g.h", ProviderCallID: "p4", Arguments: ` {} `, State: regie.CallSucceeded, Executed: json.RawMessage(`{"x":2}`)},
	}
	ids := []regie.ID{id(1), id(2), id(3), id(4)}
	reply := &regie.AIReply{Parts: []regie.Part{{Type: regie.PartThinking, Text: "hm", Provider: "openai"}, {Type: regie.PartText, Text: "I look."}}}
	for _, callID := range ids {
		reply.Parts = append(reply.Parts, regie.Part{Type: regie.PartCall, CallID: callID})
	}
	var all []provider.Turn
	for _, m := range []regie.Message{
		{Sender: regie.SenderUser, Text: "do it"},
		{Sender: regie.SenderUser, Rich: []regie.Segment{{Text: "see "}, {Text: "this"}}},
		{Sender: regie.SenderAI, AI: reply},
		{Sender: regie.SenderSystem, System: &regie.SystemContent{Type: regie.SystemActionsExecuted, CallIDs: ids}},
		{Sender: regie.SenderSystem, System: &regie.SystemContent{Type: regie.SystemLimitReached, CallIDs: ids[:1], Summary: "the limit of 3"}},
		{Sender: regie.SenderSystem, ExcludeFromPrompt: true, System: &regie.SystemContent{Type: regie.SystemNetworkError, Summary: "audit only"}},
		{Sender: regie.SenderSystem, System: &regie.SystemContent{Type: regie.SystemSessionTimeout, Summary: "audit only"}},
		{Sender: regie.SenderAI, Text: "shown only", ExcludeFromPrompt: true},
		{Sender: regie.SenderAI, AI: &regie.AIReply{Parts: []regie.Part{{Type: regie.PartText, Text: "Done."}}}},
	} {
		var own []regie.Call
		switch {
		case m.AI != nil:
			own = calls[:len(m.CallIDs())]
		case m.System != nil:
			own = calls[:len(m.System.CallIDs)]
		}
		all = append(all, prompt.View{Names: wire}.Turns(&m, own)...)
	}
	got, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "turns.golden", string(got)+"\n")
	golden(t, "level1_automation.golden", prompt.Level1(prompt.Documentation{
		Limits: regie.Limits{Total: 20, Queries: 5, Retries: 5, FormatErrors: 5, CallsInReply: 10, Tokens: 100_000, Seconds: 600}, Type: regie.SessionAutomation, Dialect: regie.DialectJSON,
	}))
	for _, french := range []bool{false, true} {
		golden(t, map[bool]string{false: "level1_work.golden", true: "level1_work.fr.golden"}[french], prompt.Level1(prompt.Documentation{
			Toolkits: []string{"files", "shell"}, Index: true, Questions: true, French: french, Limits: regie.Limits{Total: 20, Queries: 10, Retries: 3, CallsInReply: 10},
		}))
	}
	golden(t, "level1.golden", prompt.Level1(prompt.Documentation{Instructions: "You keep the house's papers.", Limits: regie.Limits{Total: 20, Queries: 10, Retries: 3, CallsInReply: 10}}))
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}
