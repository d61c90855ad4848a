package responses_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/provider/responses"
	"github.com/regie-run/regie/internal/provider/wire/wiretest"
)

// asker returns a function that sends one request to a server, which answers with what serve
// writes.
func asker(t *testing.T, serve http.HandlerFunc) func() (*provider.Reply, error) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/responses" {
			http.NotFound(w, r)
			return
		}
		serve(w, r)
	}))
	t.Cleanup(server.Close)
	p, err := responses.New(responses.Config{Name: "test", BaseURL: server.URL + "/v1/"})
	if err != nil {
		t.Fatal(err)
	}
	c, err := p.Open(provider.Head{Model: "gpt-5.5", MaxOutput: 100})
	if err != nil {
		t.Fatal(err)
	}
	c.Append(user("go"))
	return func() (*provider.Reply, error) { return c.Send(t.Context(), nil) }
}

func ask(t *testing.T, stream string) (*provider.Reply, error) {
	t.Helper()
	return asker(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write([]byte(stream))
	})()
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
	return strings.Join(out, " ") + fmt.Sprintf(" [%s %d/%d/%d/%d/%d]", reply.StopReason, u.Input, u.CacheCreation, u.CacheRead, u.Output, u.Reasoning)
}

// TestThereAndBack sends a reply back: each reasoning stands in front of what it led to, in the
// order of the stream (spec 12.6, trap 5).
func TestThereAndBack(t *testing.T) {
	reply, err := ask(t, string(wiretest.Recorded(t, "documented_pairs.sse")["documented_pairs.sse"]))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"type":"reasoning","id":"rs_0a1","summary":[{"type":"summary_text","text":"**Looking up**"},{"type":"summary_text","text":"The person wants both."}],` +
		`"encrypted_content":"gAAAAABoISQ24OyVRYbk"},{"type":"message","role":"assistant","content":"Let me look.","phase":"commentary"},` +
		`{"type":"function_call","call_id":"call_VsV4","name":"get_weather","arguments":"{\"city\":\"Lyon\"}"},` +
		`{"type":"reasoning","id":"rs_0a5","summary":[],"encrypted_content":"gAAAAABoISQ29xY"},{"type":"function_call","call_id":"call_Zz01","name":"get_time","arguments":"{}"},` +
		`{"type":"function_call_output","call_id":"call_VsV4","output":"ok"},{"type":"function_call_output","call_id":"call_Zz01","output":"ok"}]`
	if got := body(t, head, reasons, user("go"), assistant(reply.Parts...), results("call_VsV4", "call_Zz01")); !strings.Contains(got, want) {
		t.Errorf("want %s in\n%s", want, got)
	}
}

func event(kind, more string) string {
	return "event: " + kind + "\ndata: {\"type\":\"" + kind + "\"" + more + "}\n\n"
}

func added(index int, item string) string {
	return event("response.output_item.added", fmt.Sprintf(`,"output_index":%d,"item":{%s}`, index, item))
}

func done(index int, item string) string {
	return event("response.output_item.done", fmt.Sprintf(`,"output_index":%d,"item":{%s}`, index, item))
}

const callItem = `"type":"function_call","id":"fc_1","call_id":"a","name":"f","arguments":`

var (
	completed = event("response.completed", `,"response":{"status":"completed","error":null,"incomplete_details":null}`)
	argument  = func(delta string) string {
		return event("response.function_call_arguments.delta", `,"item_id":"fc_1","output_index":0,"delta":`+delta)
	}
	incomplete = func(reason string) string {
		return event("response.incomplete", `,"response":{"status":"incomplete","incomplete_details":{"reason":"`+reason+`"},"usage":{"input_tokens":5,"output_tokens":2}}`)
	}
	says = event("response.output_text.delta", `,"output_index":0,"delta":"a"`)
)

// TestTraps is what bridges and the vendor itself send.
func TestTraps(t *testing.T) {
	whole := added(0, callItem+`""`) + argument(`"{\"x\":"`) + argument(`"1}"`)
	for name, c := range map[string]struct{ stream, want string }{
		"no arguments at all":            {added(0, callItem+`""`) + done(0, callItem+`""`) + completed, "a f({})"},
		"all arguments at the end":       {added(0, callItem+`""`) + done(0, callItem+`"{\"x\":1}"`) + completed, `a f({"x":1})`},
		"arguments as an object":         {done(0, callItem+`{"x":1}`) + completed, `a f({"x":1})`},
		"an id that changes on its way":  {added(0, callItem+`""`) + strings.ReplaceAll(argument(`"{}"`), "fc_1", "fc_2") + done(0, strings.Replace(callItem, "fc_1", "fc_3", 1)+`"{}"`) + completed, "a f({}) [completed"},
		"ids that change, and none":      {whole + event("response.function_call_arguments.done", `,"item_id":"x","output_index":0,"arguments":"{\"x\":1}"`) + completed, `a f({"x":1}) [`},
		"two without ids, numbered 0":    {done(0, `"type":"function_call","call_id":"a","name":"f","arguments":"{}"`) + done(0, `"type":"function_call","call_id":"b","name":"g","arguments":"{}"`) + completed, "a f({}) b g({}) ["},
		"interleaved":                    {added(0, callItem+`""`) + added(1, `"type":"function_call","id":"fc_2","call_id":"b","name":"g","arguments":""`) + argument(`"{\"x\""`) + event("response.function_call_arguments.delta", `,"item_id":"fc_2","output_index":1,"delta":"{}"`) + argument(`":1}"`) + done(1, `"type":"function_call","id":"fc_2","call_id":"b","name":"g","arguments":"{}"`) + done(0, callItem+`"{\"x\":1}"`) + completed, `a f({"x":1}) b g({}) [`},
		"text without an item":           {says + says + completed, "text:aa ["},
		"text of nowhere":                {strings.Repeat(event("response.output_text.delta", `,"delta":"a"`), 3) + completed, "text:aaa ["},
		"two messages":                   {done(0, `"type":"message","id":"m1","content":[{"text":"a"}]`) + done(1, `"type":"message","id":"m2","phase":"final_answer","content":[{"text":"b"}]`) + completed, "text:a\n\nb{\"phase\":\"final_answer\"} ["},
		"a refusal":                      {event("response.refusal.delta", `,"output_index":0,"delta":"I will not."`) + completed, "text:I will not. ["},
		"raw reasoning of open models":   {event("response.reasoning_text.delta", `,"item_id":"rs","delta":"hm"`) + done(0, `"type":"reasoning","id":"rs","summary":[],"content":[{"type":"reasoning_text","text":"hm"}]`) + says + completed, "thinking:hm text:a ["},
		"keys of kinds that differ":      {event("response.x", `,"delta":{"a":1},"item":7,"arguments":[],"response":"r","error":[1]`) + says + completed, "text:a ["},
		"an item of another kind":        {done(0, `"type":"computer_call","id":"c","summary":5,"content":{},"arguments":3`) + says + completed, "text:a ["},
		"CRLF, comments, no event lines": {strings.ReplaceAll(": x\n\n"+strings.ReplaceAll(says+completed, "event: ", ": "), "\n", "\r\n"), "text:a ["},
		"[DONE] behind the end":          {says + completed + "data: [DONE]\n\n", "text:a ["},
		"NUL and bad bytes":              {event("response.output_text.delta", `,"output_index":0,"delta":"a\u0000b`+"\xff"+`"`) + completed, "text:a\uFFFDb\uFFFD ["},
		"a long event":                   {event("response.output_text.delta", `,"output_index":0,"delta":"`+strings.Repeat("x", 300_000)+`"`) + completed, "text:xxx"},
		"cut at its limit":               {says + incomplete("max_output_tokens"), "text:a [max_output_tokens 5/0/0/2/0]"},
		"cut by a filter":                {says + incomplete("content_filter"), "text:a [content_filter"},
		"cut behind a whole call":        {whole + done(0, callItem+`"{\"x\":1}"`) + incomplete("max_output_tokens"), `a f({"x":1}) [max`},
		"usage that is no number":        {says + event("response.completed", `,"response":{"usage":{"input_tokens":"many"}}`), "text:a [completed 0/0/0/0/0]"},
		"usage below nothing":            {says + event("response.completed", `,"response":{"usage":{"input_tokens":-5,"output_tokens":9223372036854775807}}`), "[completed 0/0/0/1099511627776/0]"},
	} {
		t.Run(name, func(t *testing.T) {
			reply, err := ask(t, c.stream)
			if err != nil {
				t.Fatal(err)
			}
			if got := sketch(reply); !strings.Contains(got, c.want) || reply.Cut != strings.HasPrefix(name, "cut ") || reply.HeldBack != strings.Contains(name, "filter") {
				t.Errorf("got %.300s, cut %v, want %s", got, reply.Cut, c.want)
			}
		})
	}
	const empty = "answered nothing"
	for name, c := range map[string]struct {
		stream, says string
		code         regie.Code
	}{
		"never completed":                 {whole + done(0, callItem+`"{\"x\":1}"`), "", regie.CodeTruncatedStream},
		"[DONE] and never completed":      {says + "data: [DONE]\n\n", "", regie.CodeTruncatedStream},
		"a call that was never finished":  {whole + completed, "never finished", regie.CodeBadReply},
		"begun and completed":             {added(0, callItem+`""`) + completed, "never finished", regie.CodeBadReply},
		"half a call":                     {added(0, callItem+`""`) + argument(`"{\"x\":"`) + done(0, callItem+`""`) + completed, "not a whole JSON object", regie.CodeBadReply},
		"two versions of a call":          {whole + done(0, callItem+`"{\"x\":2}"`) + completed, "not those it sent in pieces", regie.CodeBadReply},
		"a piece behind a whole call":     {whole + done(0, callItem+`"{\"x\":1}"`) + argument(`"}"`) + completed, "was whole", regie.CodeBadReply},
		"arguments that are a list":       {done(0, callItem+`"[]"`) + completed, "not a whole JSON object", regie.CodeBadReply},
		"cut in a call":                   {added(0, callItem+`""`) + argument(`"{\"x\":"`) + incomplete("max_output_tokens"), "", regie.CodeBadReply},
		"cut before the first argument":   {added(0, callItem+`""`) + incomplete("max_output_tokens"), "", regie.CodeBadReply},
		"a piece of no call":              {argument(`"{}"`) + completed, "belongs to none", regie.CodeBadReply},
		"a piece that is no text":         {event("response.output_text.delta", `,"delta":[1]`) + completed, "", regie.CodeBadReply},
		"an item that is none":            {event("response.output_item.done", `,"item":7`) + completed, "", regie.CodeBadReply},
		"an end without a response":       {says + event("response.completed", ""), "", regie.CodeBadReply},
		"garbage":                         {"data: <html>\n\n", "no JSON", regie.CodeBadReply},
		"nothing":                         {completed, "", regie.CodeEmptyReply},
		"reasoning, out of tokens":        {done(0, `"type":"reasoning","id":"rs","summary":[],"encrypted_content":"x"`) + incomplete("max_output_tokens"), empty, regie.CodeEmptyReply},
		"all of it held back":             {incomplete("content_filter"), "content_filter", regie.CodeEmptyReply},
		"an event without end":            {`data: {"type":"` + strings.Repeat("x", 9<<20), "", regie.CodeReplyTooLarge},
		"items without end":               {strings.Repeat(done(0, `"type":"x"`), 20_001), "20,000 items", regie.CodeReplyTooLarge},
		"reasoning that fills the memory": {strings.Repeat(done(0, `"type":"reasoning","id":"","summary":[],"encrypted_content":"`+strings.Repeat("x", 6<<20)+`"`), 3), "16 MiB", regie.CodeReplyTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			reply, err := ask(t, c.stream)
			if failed, ok := errors.AsType[*provider.Error](err); reply != nil || !ok || failed.Code != c.code || !strings.Contains(failed.Message, c.says) {
				t.Errorf("got %v, %v, want %s", reply, err, c.code)
			}
		})
	}
}

// TestFailures is what the API calls its errors, in the stream and before it (spec 12.6, trap 7).
func TestFailures(t *testing.T) {
	inStream := func(body string) func() (*provider.Reply, error) {
		return func() (*provider.Reply, error) { return ask(t, body) }
	}
	failed := func(code, message string) func() (*provider.Reply, error) {
		return inStream(says + event("response.failed", `,"response":{"status":"failed","error":{"code":"`+code+`","message":"`+message+`"},"usage":{"input_tokens":7,"output_tokens":1}}`))
	}
	refused := func(status int, code, message string) func() (*provider.Reply, error) {
		return asker(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			_, _ = fmt.Fprintf(w, `{"error":{"message":%q,"type":"invalid_request_error","param":null,"code":%q}}`, message, code)
		})
	}
	const slow = "Rate limit reached for gpt-5.5 in organization org-1 on tokens per min (TPM): Limit 30000, Used 22999, Requested 12528. Please try again in 11.054s."
	for name, c := range map[string]struct {
		send      func() (*provider.Reply, error)
		code      regie.Code
		retryable bool
		wish      time.Duration
		says      string
	}{
		"too fast":                   {failed("rate_limit_exceeded", slow), regie.CodeProviderBusy, true, 0, "Rate limit reached"},
		"no credit":                  {failed("insufficient_quota", "You exceeded your current quota"), regie.CodeProviderQuota, false, 0, "current quota"},
		"no credit, at once":         {refused(429, "insufficient_quota", "You exceeded your current quota"), regie.CodeProviderQuota, false, 0, ""},
		"a limit of one's own":       {refused(400, "billing_hard_limit_reached", "Billing hard limit has been reached"), regie.CodeProviderQuota, false, 0, ""},
		"too much":                   {failed("context_length_exceeded", "Your input exceeds the context window of this model."), regie.CodeContextTooLarge, false, 0, ""},
		"too much, at once":          {refused(400, "context_length_exceeded", "Your input exceeds the context window of this model."), regie.CodeContextTooLarge, false, 0, ""},
		"their fault":                {failed("server_error", "An error occurred"), regie.CodeProviderBusy, true, 0, ""},
		"too many at once":           {failed("server_is_overloaded", "Our servers are overloaded"), regie.CodeProviderBusy, true, 0, ""},
		"not what they answer":       {failed("invalid_prompt", "limited access to this content"), regie.CodeProviderRejected, false, 0, ""},
		"a key, in the stream":       {failed("invalid_api_key", "no"), regie.CodeProviderAuth, false, 0, ""},
		"an event of its own":        {inStream(says + event("error", `,"code":"rate_limit_exceeded","message":"slow","param":null`)), regie.CodeProviderBusy, true, 0, "slow"},
		"one with an error inside":   {inStream(says + event("error", `,"error":{"type":"invalid_request_error","code":"context_length_exceeded","message":"long"}`)), regie.CodeContextTooLarge, false, 0, "long"},
		"failed, and not why":        {inStream(says + event("response.failed", `,"response":{"error":null}`)), regie.CodeProviderBusy, true, 0, "failed"},
		"no such model":              {refused(404, "model_not_found", "The model `x` does not exist"), regie.CodeProviderRejected, false, 0, "does not exist"},
		"no such API":                {refused(404, "", "Not Found"), regie.CodeProviderRejected, false, 0, "api: chat"},
		"an unverified organisation": {refused(400, "unsupported_value", "Your organization must be verified"), regie.CodeProviderRejected, false, 0, "must be verified"},
	} {
		t.Run(name, func(t *testing.T) {
			reply, err := c.send()
			e, ok := errors.AsType[*provider.Error](err)
			if reply != nil || !ok || e.Code != c.code || e.Retryable != c.retryable || e.RetryAfter != c.wish || !strings.Contains(e.Message, c.says) {
				t.Fatalf("got %v, %+v", reply, e)
			}
			if e.Status == 0 && e.Partial != "a" {
				t.Errorf("what had come is %q", e.Partial)
			}
		})
	}
	if _, err := failed("server_error", "x")(); err != nil {
		if e, _ := errors.AsType[*provider.Error](err); e.Usage.Input != 7 {
			t.Errorf("what it cost is lost: %+v", e.Usage)
		}
	}
}

// TestFlood is a server that never stops: its reply is cut off, and its answer to a question about
// models too.
func TestFlood(t *testing.T) {
	send := asker(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		piece := event("response.output_text.delta", `,"output_index":0,"delta":"`+strings.Repeat("x", 1<<20)+`"`)
		for range 100 {
			if _, err := w.Write([]byte(piece)); err != nil {
				return
			}
		}
	})
	if reply, err := send(); reply != nil || provider.CodeOf(err) != regie.CodeReplyTooLarge {
		t.Errorf("got %v, %v", reply, err)
	}
}

// TestWhatAModelCan tells by its name whether a model reasons: others refuse to be asked for it.
func TestWhatAModelCan(t *testing.T) {
	p, err := responses.New(responses.Config{Name: "openai", ContextTokens: 9000})
	if err != nil {
		t.Fatal(err)
	}
	for model, want := range map[string]bool{
		"gpt-5.5": true, "gpt-5.4-mini": true, "o3": true, "o4-mini": true, "gpt-oss-120b": true, "openai/gpt-6-astra": true, "codex-mini-latest": true,
		"gpt-4o": false, "gpt-4.1-mini": false, "gpt-3.5-turbo": false, "chatgpt-4o-latest": false, "gpt-5-chat-latest": false, "ft:gpt-4.1:org": false, "openai/gpt-4o": false,
	} {
		if got := p.Capabilities(model); got.Thinking != want || !got.NativeTools || got.Free || got.ContextTokens != 9000 {
			t.Errorf("%s: %+v", model, got)
		}
	}
}
