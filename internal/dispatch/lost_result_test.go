package dispatch_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/tool"
	"github.com/regie-run/regie/internal/toolkit/session"
)

// TestLostResult has a query return more than the database has room for. Its shortened result says
// that the rest is lost, so do the log and read_result, and the run goes on.
func TestLostResult(t *testing.T) {
	const size = 4 << 20
	large, err := tool.New(regie.ToolDefinition{Name: "test.large", Description: "reads much", Kind: regie.KindQuery, Risk: regie.RiskInternal},
		tool.Handler[struct{}]{Run: func(context.Context, *tool.Invocation, struct{}) (tool.Result, error) {
			return tool.Result{Content: strings.Repeat("much ", size/5)}, nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	var h *house
	own, err := session.Tools(func(ctx context.Context, in, call regie.ID) (string, error) {
		return h.store.WholeResult(ctx, in, call)
	})
	if err != nil {
		t.Fatal(err)
	}
	in := make(chan regie.ID, 1)
	replies := 0
	h = newHouse(t, slow{pages: 400}, func() *provider.Reply {
		call := func(name, arguments string) *provider.Reply {
			return &provider.Reply{StopReason: "tool_calls", Parts: []provider.Part{{Type: regie.PartCall, Call: &provider.Call{ID: name, Name: name, Arguments: arguments}}}}
		}
		switch replies++; replies {
		case 1:
			return call("test__large", "{}")
		case 2:
			view, err := h.store.RoundView(t.Context(), <-in)
			if err != nil {
				t.Error(err)
			}
			return call("session__read_result", fmt.Sprintf(`{"call_id":%q,"offset":32000}`, view.Exchanges[0].Calls[0].ID))
		default:
			return answer("done")
		}
	}, append(own, large)...)
	submission := h.world.Submission("read")
	submission.Round.Policy, submission.Round.Limits.Queries = json.RawMessage(`{}`), 9
	in <- submission.Round.ID
	if _, err := h.dispatcher.Submit(t.Context(), submission); err != nil {
		t.Fatal(err)
	}
	h.ended(t, submission.SessionID, submission.Round.ID)
	view, err := h.store.RoundView(t.Context(), submission.Round.ID)
	if err != nil || view.Round.End != regie.EndAnswered || len(view.Exchanges) != 3 {
		t.Fatalf("the round ended %s (%s) after %d exchanges, %v", view.Round.End, view.Round.EndNote, len(view.Exchanges), err)
	}
	lost, read := view.Exchanges[0].Calls[0], view.Exchanges[1].Calls[0]
	if lost.State != regie.CallSucceeded || lost.ResultLost < size-5 || !strings.Contains(lost.Result, "the rest is lost") ||
		strings.Contains(lost.Result, "read_result") || len(lost.Result) > 32<<10 {
		t.Errorf("%s, %d bytes lost, the model reads %d bytes, at the end %q", lost.State, lost.ResultLost, len(lost.Result), lost.Result[max(0, len(lost.Result)-200):])
	}
	if read.State != regie.CallFailed || read.Error.Code != regie.CodeNotFound || !strings.Contains(read.Error.Message, "is lost") {
		t.Errorf("read_result is %s: %+v", read.State, read.Error)
	}
	events, err := h.store.Events(t.Context(), submission.SessionID, 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	told := false
	for _, e := range events {
		told = told || e.Type == regie.EventToolResult && strings.Contains(string(e.Body), fmt.Sprintf(`"lost":%d`, lost.ResultLost))
	}
	if !told {
		t.Error("the log does not say that something was lost")
	}
	if _, err := h.store.Verify(t.Context(), submission.SessionID); err != nil {
		t.Error(err)
	}
}
