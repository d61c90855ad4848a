package session_test

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/tool"
	"github.com/regie-run/regie/internal/toolkit/session"
)

// keep stores a result and returns its call's id.
func (d *desk) keep(result string) string {
	id := regie.NewID()
	d.kept.results[id] = result
	return id.String()
}

func TestReadResult(t *testing.T) {
	text := strings.Repeat("0123456789", 30)
	for _, row := range []struct {
		name, result  string
		offset, limit int
		want          string
	}{
		{"short", "abc", 0, 0, "abc\n[bytes 0 to 3 of 3; this is its end]"},
		{"empty", "", 0, 0, "[the result is empty]"},
		{"a part", text, 0, 100, text[:100] + "\n[bytes 0 to 100 of 300; go on with offset 100]"},
		{"from the middle", text, 150, 100, text[150:250] + "\n[bytes 150 to 250 of 300; go on with offset 250]"},
		{"to the end", text, 200, 100, text[200:] + "\n[bytes 200 to 300 of 300; this is its end]"},
		{"beyond the end", text, 299, 500, "9\n[bytes 299 to 300 of 300; this is its end]"},
		{"the default", strings.Repeat("x", 20_000), 0, 0, strings.Repeat("x", 16384) + "\n[bytes 0 to 16384 of 20000; go on with offset 16384]"},
		{"not through a character", strings.Repeat("€", 100), 0, 100, strings.Repeat("€", 33) + "\n[bytes 0 to 99 of 300; go on with offset 99]"},
		{"from inside a character", strings.Repeat("€", 100), 200, 100, strings.Repeat("€", 33) + "\n[bytes 198 to 297 of 300; go on with offset 297]"},
	} {
		t.Run(row.name, func(t *testing.T) {
			d := newDesk(t)
			arguments := map[string]any{"call_id": d.keep(row.result), "offset": row.offset}
			if row.limit > 0 {
				arguments["limit"] = row.limit
			}
			if out := d.call(session.ReadResult, arguments); out.State != regie.CallSucceeded || out.Result != row.want || out.Whole != "" {
				t.Errorf("got %.300q %+v", out.Result, out.Error)
			}
		})
	}
}

func TestReadResultRefuses(t *testing.T) {
	d := newDesk(t)
	id := d.keep("abc")
	for _, row := range []struct {
		name      string
		arguments map[string]any
		code      regie.Code
		param     string
		says      string
	}{
		{"no such call", map[string]any{"call_id": regie.NewID().String()}, regie.CodeNotFound, "call_id", "no result of call"},
		{"the provider's id", map[string]any{"call_id": "toolu_01"}, regie.CodeBadArguments, "call_id", "toolu_01"},
		{"an empty id", map[string]any{"call_id": ""}, regie.CodeBadArguments, "call_id", "not the id"},
		{"behind the end", map[string]any{"call_id": id, "offset": 3}, regie.CodeBadArguments, "offset", "3 bytes"},
	} {
		t.Run(row.name, func(t *testing.T) {
			out := d.call(session.ReadResult, row.arguments)
			if out.State != regie.CallFailed || out.Error.Code != row.code || out.Error.Param != row.param || !strings.Contains(out.Error.Message, row.says) {
				t.Errorf("got %+v %+v", out, out.Error)
			}
		})
	}
	checked := d.tools.Check(session.ReadResult, encode(t, map[string]any{"call_id": id}))
	out := tool.Run(t.Context(), checked.Tool, &tool.Invocation{SessionID: regie.NewID(), Arguments: checked.Arguments})
	if out.State != regie.CallFailed || out.Error.Code != regie.CodeNotFound {
		t.Errorf("another session reads it: %+v", out)
	}
}

// TestReadOn takes the whole way: a tool's result is shortened, and what its marker says leads to
// the whole, part by part.
func TestReadOn(t *testing.T) {
	d := newDesk(t)
	var whole strings.Builder
	for i := range 9000 {
		fmt.Fprintf(&whole, "line %d: € and ü\n", i)
	}
	long, err := tool.New(regie.ToolDefinition{Name: "any.long", Kind: regie.KindQuery, Risk: regie.RiskInternal}, tool.Handler[struct{}]{
		Run: func(context.Context, *tool.Invocation, struct{}) (tool.Result, error) {
			return tool.Result{Content: whole.String()}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	call := regie.NewID()
	out := tool.Run(t.Context(), long, &tool.Invocation{CallID: call, Arguments: []byte("{}")})
	d.kept.results[call] = out.Whole
	marker := regexp.MustCompile(`(?s)^(.*)\n\[shortened: .*; read on with session__read_result, call_id "([0-9a-f-]{36})", offset (\d+)\]$`).FindStringSubmatch(out.Result)
	if marker == nil {
		t.Fatalf("the marker does not say how to read on: %q", out.Result[len(out.Result)-200:])
	}
	got, next := marker[1], marker[3]
	for part := regexp.MustCompile(`(?s)^(.*)\n\[bytes \d+ to \d+ of \d+; (?:this is its end|go on with offset (\d+))\]$`); next != ""; {
		offset, err := strconv.Atoi(next)
		if err != nil {
			t.Fatal(err)
		}
		out := d.call(session.ReadResult, map[string]any{"call_id": marker[2], "offset": offset, "limit": 30720})
		found := part.FindStringSubmatch(out.Result)
		if found == nil || out.Whole != "" {
			t.Fatalf("at %d: %+v", offset, out.Error)
		}
		got, next = got+found[1], found[2]
	}
	if got != whole.String() {
		t.Errorf("read %d bytes of %d", len(got), whole.Len())
	}
}
