package anthropic_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/provider/anthropic"
	"github.com/regie-run/regie/internal/provider/providertest/strict"
	"github.com/regie-run/regie/internal/provider/wire/wiretest"
)

// asker sends requests to a server that answers with what it is given.
func asker(t *testing.T) func(stream string) (*provider.Reply, error) {
	t.Helper()
	return wiretest.Asker(t, "m", "/v1/messages", "text/event-stream", func(address string) (provider.Provider, error) {
		return anthropic.New(anthropic.Config{Name: "test", BaseURL: address})
	})
}

func ask(t *testing.T, stream string) (*provider.Reply, error) {
	t.Helper()
	return asker(t)(stream)
}

func sketch(reply *provider.Reply) string {
	var out []string
	for _, part := range reply.Parts {
		switch part.Type {
		case regie.PartCall:
			out = append(out, fmt.Sprintf("%s %s(%s)", part.Call.ID, part.Call.Name, part.Call.Arguments))
		default:
			out = append(out, fmt.Sprintf("%s:%s%s", part.Type, part.Text, part.Opaque))
		}
	}
	u := reply.Usage
	return strings.Join(out, " ") + fmt.Sprintf(" [%s %d/%d/%d/%d]", reply.StopReason, u.Input, u.CacheCreation, u.CacheRead, u.Output)
}

func events(lines ...string) string {
	var out strings.Builder
	for _, line := range lines {
		out.WriteString("data: " + line + "\n\n")
	}
	return out.String()
}

const (
	began = `{"type":"message_start","message":{"usage":{"input_tokens":3}}}`
	ended = `{"type":"message_stop"}`
)

func because(reason string) string {
	return `{"type":"message_delta","delta":{"stop_reason":"` + reason + `"},"usage":{"output_tokens":4}}`
}

func block(index int, start string) string {
	return fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":%s}`, index, start)
}

func piece(index int, json string) string {
	return fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":{"type":"input_json_delta","partial_json":%s}}`, index, json)
}

func stop(index int) string { return fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, index) }

// TestTraps is spec 12.6 as a table.
func TestTraps(t *testing.T) {
	text, tool := `{"type":"text","text":"a"}`, `{"type":"tool_use","id":"t","name":"f","input":{}}`
	for name, c := range map[string]struct{ stream, want string }{
		"pieces out of turn":          {events(began, block(0, tool), block(1, `{"type":"tool_use","id":"u","name":"g"}`), piece(1, `"{\"y\""`), piece(0, `"{\"x\":1}"`), piece(1, `":2}"`), stop(0), stop(1), because("tool_use"), ended), `t f({"x":1}) u g({"y":2})`},
		"index 0 for all":             {events(began, block(0, tool), piece(0, `"{}"`), block(0, `{"type":"tool_use","id":"u","name":"g"}`), piece(0, `"{\"y\":2}"`), because("tool_use"), ended), `t f({}) u g({"y":2})`},
		"a whole input at once":       {events(began, block(0, `{"type":"tool_use","id":"t","name":"f","input":{"x":1}}`), stop(0), because("tool_use"), ended), `f({"x":1})`},
		"a whole input, never closed": {events(began, block(0, `{"type":"tool_use","id":"t","name":"f","input":{"x":1}}`), because("tool_use"), ended), `f({"x":1})`},
		"end_turn with calls":         {events(began, block(0, tool), stop(0), because("end_turn"), ended), `f({}) [end_turn`},
		"a call that is whole, cut":   {events(began, block(0, tool), piece(0, `"{\"x\":1}"`), because("max_tokens"), ended), `f({"x":1}) [max_tokens`},
		"tools of the server":         {events(began, block(0, `{"type":"server_tool_use","id":"s","name":"web"}`), piece(0, `"{\"q\":1}"`), stop(0), block(1, text), because("end_turn"), ended), "text:a [end_turn 3/0/0/4]"},
		"what is new":                 {events(began, `{"type":"novelty"}`, block(0, text), `{"type":"content_block_delta","index":0,"delta":{"type":"novel_delta","x":1}}`, because("end_turn"), ended), "text:a"},
		"no event names, CRLF":        {": hi\r\n\r\n" + strings.ReplaceAll(events(began, block(0, text), because("end_turn"), ended), "\n", "\r\n"), "text:a"},
		"usage that is none":          {events(began, block(0, text), `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":"x","output_tokens":1.5}}`, ended), "[end_turn 3/0/0/0]"},
		"usage beyond reason":         {events(began, block(0, text), `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"cache_read_input_tokens":-9,"output_tokens":9223372036854775807}}`, ended), "[end_turn 3/0/0/1099511627776]"},
		"the last usage wins":         {events(began, block(0, text), `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":9,"cache_read_input_tokens":2,"output_tokens":1}}`, `{"type":"message_delta","delta":{},"usage":{"output_tokens":5}}`, ended), "[end_turn 11/0/2/5]"},
		"NUL and bad bytes":           {events(began, block(0, `{"type":"text","text":"a\u0000b`+"\xff"+`"}`), because("end_turn"), ended), "text:a\uFFFDb\uFFFD"},
	} {
		t.Run(name, func(t *testing.T) {
			reply, err := ask(t, c.stream)
			if err != nil {
				t.Fatal(err)
			}
			if got := sketch(reply); !strings.Contains(got, c.want) {
				t.Errorf("got %.300s, want %s", got, c.want)
			}
		})
	}
	for name, c := range map[string]struct {
		stream    string
		code      regie.Code
		retryable bool
	}{
		"no stop reason":            {events(began, block(0, text), stop(0), ended), regie.CodeTruncatedStream, true},
		"no message_stop":           {events(began, block(0, text), stop(0), because("end_turn")), regie.CodeTruncatedStream, true},
		"half arguments":            {events(began, block(0, tool), piece(0, `"{\"x\":"`), because("tool_use"), ended), regie.CodeBadReply, true},
		"a call cut at its start":   {events(began, block(0, tool), because("max_tokens"), ended), regie.CodeBadReply, true},
		"a call out of its window":  {events(began, block(0, tool), because("model_context_window_exceeded"), ended), regie.CodeBadReply, true},
		"a piece of nothing":        {events(began, piece(0, `"{}"`), because("tool_use"), ended), regie.CodeBadReply, true},
		"declined":                  {events(began, block(0, text), because("refusal"), ended), regie.CodeProviderRejected, false},
		"garbage":                   {"data: <html>\n\n", regie.CodeBadReply, true},
		"overloaded in the stream":  {events(began, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`), regie.CodeProviderBusy, true},
		"too long, in the stream":   {events(began, `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long"}}`), regie.CodeProviderRejected, false},
		"the key, in the stream":    {events(began, `{"type":"error","error":{"type":"authentication_error","message":"x"}}`), regie.CodeProviderAuth, false},
		"no credit, in the stream":  {events(began, `{"type":"error","error":{"type":"billing_error","message":"x"}}`), regie.CodeProviderQuota, false},
		"too large for a reply":     {events(began, block(0, `{"type":"text","text":"`+strings.Repeat("x", 8<<20)+`"}`)), regie.CodeReplyTooLarge, false},
		"no credit, as they say it": {events(`{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API."}}`), regie.CodeProviderQuota, false},
	} {
		t.Run(name, func(t *testing.T) {
			reply, err := ask(t, c.stream)
			failed, ok := errors.AsType[*provider.Error](err)
			if reply != nil || !ok || failed.Code != c.code || failed.Retryable != c.retryable {
				t.Errorf("got %v, %v, want %s", reply, err, c.code)
			}
		})
	}
}

// TestThinkingGoesBack: what came goes back as it came, to models that think by themselves; to
// others only where they were asked to.
func TestThinkingGoesBack(t *testing.T) {
	for _, c := range []struct {
		model string
		wants []string
		not   string
	}{
		{"claude-opus-5-5", []string{`{"type":"thinking","thinking":"","signature":"EqQBCgIYAhIM"},{"type":"redacted_thinking","data":"EmwKAhgBEgy3va3pzix"},{"type":"text"`}, `"thinking":{`},
		{"claude-next", []string{`"signature":"EqQBCgIYAhIM"`}, "budget_tokens"},
		{"claude-haiku-4-5-20251001", nil, "EqQBCgIYAhIM"},
	} {
		var sent string
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			data, _ := io.ReadAll(r.Body)
			sent = string(data)
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = w.Write(wiretest.Recorded(t, "documented_tools.sse")["documented_tools.sse"])
		}))
		p, err := anthropic.New(anthropic.Config{BaseURL: server.URL})
		if err != nil {
			t.Fatal(err)
		}
		with := head
		with.Model = c.model
		conversation, err := p.Open(with)
		if err != nil {
			t.Fatal(err)
		}
		conversation.Append(user("go"))
		reply, err := conversation.Send(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		conversation.Append(provider.Turn{Role: provider.RoleAssistant, Parts: reply.Parts}, results("toolu_01T1x1fJ34qAmk2tNTrN7Up6", "toolu_02"))
		if _, err := conversation.Send(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		for _, want := range c.wants {
			if !strings.Contains(sent, want) {
				t.Errorf("%s: no %s in %s", c.model, want, sent)
			}
		}
		if c.not != "" && strings.Contains(sent, c.not) {
			t.Errorf("%s: %s in %s", c.model, c.not, sent)
		}
		if err := strict.Anthropic([]byte(sent)); err != nil {
			t.Error(err)
		}
		server.Close()
	}
}
