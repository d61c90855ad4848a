package openai_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/provider/openai"
	"github.com/regie-run/regie/internal/provider/wire/wiretest"
)

// asker sends requests to a server that answers with what it is given.
func asker(t *testing.T) func(stream string) (*provider.Reply, error) {
	t.Helper()
	return wiretest.Asker(t, "m", "/v1/chat/completions", "text/event-stream", func(address string) (provider.Provider, error) {
		return openai.New(openai.Config{Name: "test", BaseURL: address})
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
			out = append(out, fmt.Sprintf("%s(%s)", part.Call.Name, part.Call.Arguments))
		default:
			out = append(out, fmt.Sprintf("%s:%s", part.Type, part.Text))
		}
	}
	return strings.Join(out, " ") + fmt.Sprintf(" [%s %d/%d]", reply.StopReason, reply.Usage.Input, reply.Usage.Output)
}

// TestRecordedStreams holds each recorded stream to its whole reply or its error, and to none where
// it is cut (spec 12.6).
func TestRecordedStreams(t *testing.T) {
	wiretest.Streams(t, asker, "chat_*.sse", "crash_*.txt")
}

// stream makes a stream of choices' deltas that ends in good order.
func stream(reason string, deltas ...string) string {
	var b strings.Builder
	for _, d := range deltas {
		b.WriteString(`data: {"choices":[{"index":0,"delta":` + d + `,"finish_reason":null}]}` + "\n\n")
	}
	b.WriteString(`data: {"choices":[{"index":0,"delta":{},"finish_reason":"` + reason + `"}]}` + "\n\n")
	return b.String()
}

const done = "data: [DONE]\n\n"

// TestTraps is spec 12.6 as a table, each line under the number of its trap. The rest of what the
// traps say of Chat Completions stands elsewhere:
//
//  1. TestRecordedStreams, and the cuts of each vendor in providertest
//  2. an id that is missing or repeats gets another before it is used: TestRepeatedProviderIDs of
//     internal/app
//  4. providertest "stop, and calls", "nothing", "blanks"
//  5. DeepSeek and Perplexity: TestGoldenRequests, TestHouseRules
//  6. TestWrongUsage
//  7. TestVendorErrors: the kinds of 429, and tool_use_failed
//  8. package sse, providertest "silence" and "huge"
func TestTraps(t *testing.T) {
	piece := func(index, id, name, arguments string) string {
		return `{"tool_calls":[{` + index + id + `"function":{"name":` + name + `"arguments":` + arguments + `}}]}`
	}
	for name, c := range map[string]struct{ stream, want string }{
		"2 pieces by index alone":         {stream("tool_calls", piece(`"index":0,`, `"id":"a",`, `"f",`, `""`), piece(`"index":1,`, `"id":"b",`, `"g",`, `"{\"y\""`), `{"tool_calls":[{"index":0,"function":{"arguments":"{\"x\":1}"}}]}`, `{"tool_calls":[{"index":1,"function":{"arguments":":2}"}}]}`) + done, `f({"x":1}) g({"y":2})`},
		"2 index 0 for all":               {stream("tool_calls", piece(`"index":0,`, `"id":"a",`, `"f",`, `"{}"`), piece(`"index":0,`, `"id":"b",`, `"g",`, `"{}"`)) + done, `f({}) g({})`},
		"2 no ids":                        {stream("tool_calls", piece(`"index":0,`, ``, `"f",`, `"{}"`), piece(`"index":1,`, ``, `"g",`, `"{}"`)) + done, `f({}) g({})`},
		"2 several whole calls at once":   {stream("tool_calls", `{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}},{"index":1,"id":"b","function":{"name":"g","arguments":"{\"x\":1}"}}]}`) + done, `f({}) g({"x":1})`},
		"2 whole calls without numbers":   {stream("tool_calls", `{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}},{"id":"b","function":{"name":"g","arguments":"{}"}}]}`) + done, `f({}) g({})`},
		"3 an empty first piece":          {stream("tool_calls", piece(`"index":0,`, `"id":"a",`, `"f",`, `""`), `{"tool_calls":[{"index":0,"function":{"arguments":"{\"x\":1}"}}]}`) + done, `f({"x":1})`},
		"3 no arguments at all":           {stream("tool_calls", `{"tool_calls":[{"index":0,"id":"a","function":{"name":"f"}}]}`) + done, `f({})`},
		"3 empty arguments":               {stream("tool_calls", piece(`"index":0,`, `"id":"a",`, `"f",`, `""`)) + done, `f({})`},
		"2 arguments as an object":        {stream("tool_calls", piece(`"index":0,`, `"id":"a",`, `"f",`, `{"x":1}`)) + done, `f({"x":1})`},
		"4 stop with calls":               {stream("stop", piece(`"index":0,`, `"id":"a",`, `"f",`, `"{}"`)) + done, `f({}) [stop 0/0]`},
		"6 usage after the end":           {stream("stop", `{"content":"a"}`) + `data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":8}}` + "\n\n" + done, "[stop 7/8]"},
		"6 the last usage wins":           {`data: {"choices":[],"usage":{"prompt_tokens":1}}` + "\n\n" + stream("stop", `{"content":"a"}`) + `data: {"choices":[],"usage":{"prompt_tokens":9}}` + "\n\n" + done, "[stop 9/0]"},
		"8 comments and carriage returns": {": keep-alive\r\n\r\n" + strings.ReplaceAll(stream("stop", `{"content":"a"}`), "\n", "\r\n") + ": more\r\n\r\n" + done, "text:a"},
		"8 NUL and bad bytes":             {stream("stop", `{"content":"a\u0000b`+"\xff"+`"}`) + done, "text:a\uFFFDb\uFFFD"},
		"8 a long line":                   {stream("stop", `{"content":"`+strings.Repeat("x", 300_000)+`"}`) + done, "text:xxx"},
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
		stream string
		code   regie.Code
	}{
		"1 no finish reason":        {`data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}` + "\n\n" + done, regie.CodeTruncatedStream},
		"1 no end marker":           {stream("stop", `{"content":"a"}`), regie.CodeTruncatedStream},
		"1 half arguments":          {stream("tool_calls", piece(`"index":0,`, `"id":"a",`, `"f",`, `"{\"x\":"`)) + done, regie.CodeBadReply},
		"1 arguments are a list":    {stream("tool_calls", piece(`"index":0,`, `"id":"a",`, `"f",`, `"[]"`)) + done, regie.CodeBadReply},
		"4 empty":                   {stream("stop", `{"content":""}`) + done, regie.CodeEmptyReply},
		"8 garbage":                 {"data: <html>\n\n", regie.CodeBadReply},
		"8 an error in the stream":  {`data: {"error":{"message":"overloaded"}}` + "\n\n", regie.CodeProviderBusy},
		"7 no credit in the stream": {`data: {"error":{"message":"pay","code":"insufficient_quota"}}` + "\n\n", regie.CodeProviderQuota},
	} {
		t.Run(name, func(t *testing.T) {
			reply, err := ask(t, c.stream)
			failed, ok := errors.AsType[*provider.Error](err)
			if reply != nil || !ok || failed.Code != c.code {
				t.Errorf("got %v, %v, want %s", reply, err, c.code)
			}
		})
	}
}
