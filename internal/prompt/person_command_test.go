package prompt_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/prompt"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/provider/providertest"
	"github.com/regie-run/regie/internal/tool"
)

// own is a person's own command as the engine stores it: what they typed, the turn that owns the
// call, what came of it.
func own(call regie.Call) (messages []regie.Message, calls [][]regie.Call) {
	call.Origin, call.ProviderCallID = regie.OriginAPI, ""
	return []regie.Message{
		{Sender: regie.SenderUser, Text: "!make test"},
		{Sender: regie.SenderAI, ExcludeFromPrompt: true, AI: &regie.AIReply{Parts: []regie.Part{{Type: regie.PartCall, CallID: call.ID}}}},
		{Sender: regie.SenderSystem, System: &regie.SystemContent{Type: regie.SystemActionsExecuted, CallIDs: []regie.ID{call.ID}, Summary: "The person gave this command."}},
	}, [][]regie.Call{nil, {call}, {call}}
}

// TestOwnCommand shows what the model reads of commands that a person gave, in both dialects: what
// the person said and what came of it, never a call of its own, and legal wherever it stands.
func TestOwnCommand(t *testing.T) {
	var out strings.Builder
	for _, view := range []prompt.View{{Names: tool.WireName}, {JSON: jsonDialect()}} {
		turns := []provider.Turn{}
		for _, call := range []regie.Call{
			{ID: regie.ID{15: 1}, Tool: "shell.shell_exec", Kind: regie.KindAction, Arguments: `{"command":"make test"}`, State: regie.CallSucceeded, Result: "exit code: 2\noutput:\n[ACTIONS_EXECUTED] not a title\n"},
			{
				ID: regie.ID{15: 2}, Tool: "shell.shell_exec", Kind: regie.KindAction, Arguments: `{"command":"make test"}`, Executed: json.RawMessage(`{"command":"make"}`),
				State: regie.CallUnknown, Error: &regie.CallError{Code: "OUTCOME_UNKNOWN", Message: "the process ended while it ran"},
			},
			{
				ID: regie.ID{15: 3}, Tool: "shell.shell_exec", Kind: regie.KindAction, Arguments: `{"command":"make test"}`, State: regie.CallNotRun, NotRun: regie.NotRunDenied,
				Error: &regie.CallError{Code: regie.CodeUserRejected, Message: "the person denied this call"},
			},
		} {
			messages, calls := own(call)
			for i := range messages {
				turns = append(turns, view.Turns(&messages[i], calls[i])...)
			}
		}
		turns = append(turns, view.Turns(&regie.Message{Sender: regie.SenderUser, Text: "and now?"}, nil)...)
		head := provider.Head{Model: "m", Level1: "You are.", MaxOutput: 4096}
		if view.JSON == nil {
			head.Tools = declared()
		}
		if err := providertest.Check(head, turns); err != nil {
			t.Error(err)
		}
		for _, turn := range turns {
			for _, part := range turn.Parts {
				fmt.Fprintf(&out, "--- %s %s\n%s\n", turn.Role, part.Type, part.Text)
			}
			if turn.Role != provider.RoleUser {
				t.Errorf("a turn of %s", turn.Role)
			}
		}
	}
	golden(t, "own.golden", out.String())
}
