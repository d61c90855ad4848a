package app_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// The scripts that talk with the clients of the two vendors.
const openaiScript, anthropicScript = "client.mjs", "anthropic.mjs"

// TestCompat_VendorClients has OpenAI's and Anthropic's own clients talk to an agent.
func TestCompat_VendorClients(t *testing.T) {
	t.Parallel()
	asks := replyWith("Let me look.", call{"w", "client__get_weather", `{"place":"Bern"}`})
	silent := replyWith("", call{"w", "client__get_weather", `{"place":"Bern"}`})
	failing := refuses(http.StatusUnauthorized, `{"error":{"message":"bad key"}}`)
	midway := func() []http.HandlerFunc {
		return []http.HandlerFunc{once(replyWith("Looking.", call{"l", "files__list_files", `{}`}), nil), failing}
	}
	pieces := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		chunk(w, map[string]any{"content": "Hel"})
		replyWith("lo.")(w, r)
	}
	for _, c := range []struct {
		script, which, want string
		steps               []http.HandlerFunc
	}{
		{openaiScript, "models", `{"ids":["main","openai/scripted"],"one":"main"}`, nil},
		{openaiScript, "chat", `{"text":"Hello.","finish":"stop","session":true,"usage":true}`, []http.HandlerFunc{replyWith("Hello.")}},
		{openaiScript, "chatStreamed", `{"pieces":"Hello.","text":"Hello.","finish":"stop","usage":true}`, []http.HandlerFunc{pieces}},
		{openaiScript, "tools", `{"finish":"tool_calls","name":"get_weather","arguments":"{\"place\":\"Bern\"}","text":"Sun."}`, []http.HandlerFunc{silent, replyWith("Sun.")}},
		{openaiScript, "toolsStreamed", `{"text":"Sun.","places":["Bern"]}`, []http.HandlerFunc{silent, replyWith("Sun.")}},
		{openaiScript, "responses", `{"text":"Hello.","status":"completed","next":"More.","again":"More.","stale":409,"gone":"NotFoundError"}`, []http.HandlerFunc{replyWith("Hello."), replyWith("More.")}},
		{openaiScript, "responsesStreamed", `{"kinds":["response.created","response.in_progress","response.output_item.added","response.content_part.added","response.output_text.delta",
			"response.output_text.done","response.content_part.done","response.output_item.done","response.completed"],"text":"Hello.","final":"Hello."}`, []http.HandlerFunc{pieces}},
		{openaiScript, "responsesTools", `{"name":"get_weather","arguments":"{\"place\":\"Bern\"}","text":"Sun."}`, []http.HandlerFunc{silent, replyWith("Sun.")}},
		{openaiScript, "errors", `{"model":["NotFoundError",404,"model","model_not_found"],"n":["BadRequestError",400,"n","BAD_REQUEST"],"image":["BadRequestError",400,"messages[0].content[0].type","BAD_REQUEST"],
			"session":["NotFoundError",404,null,"NOT_FOUND"],"input":["BadRequestError",400,"background","BAD_REQUEST"]}`, nil},
		{openaiScript, "failing", `{"plain":["InternalServerError",502,"PROVIDER_AUTH"],"stream":["InternalServerError",502,"PROVIDER_AUTH"]}`, []http.HandlerFunc{failing}},
		{openaiScript, "failsMidway", `{"text":"Looking.","error":"APIError","code":"PROVIDER_AUTH"}`, midway()},
		{anthropicScript, "models", `{"ids":["main"],"one":["main","model","main"],"none":["NotFoundError",404,"not_found_error"]}`, nil},
		{anthropicScript, "chat", `{"text":"Hello.","stop":"end_turn","role":"assistant","type":"message","model":"main","usage":true,"next":"More.","ignored":"max_tokens"}`, []http.HandlerFunc{replyWith("Hello."), replyWith("More.")}},
		{anthropicScript, "chatStreamed", `{"kinds":["message_start","content_block_start","content_block_delta","content_block_stop","message_delta","message_stop"],"pieces":"Hello.","text":"Hello.",
			"stop":"end_turn","usage":true}`, []http.HandlerFunc{pieces}},
		{anthropicScript, "tools", `{"stop":"tool_use","said":"Let me look.","names":["get_weather"],"inputs":[{"place":"Bern"}],"text":"Sun."}`, []http.HandlerFunc{asks, replyWith("Sun.")}},
		{anthropicScript, "toolsStreamed", `{"stop":"tool_use","content":["text","tool_use"],"input":{"place":"Bern"},"text":"Sun."}`, []http.HandlerFunc{asks, replyWith("Sun.")}},
		{anthropicScript, "toolRunner", `{"text":"Sun.","places":["Bern"]}`, []http.HandlerFunc{silent, replyWith("Sun.")}},
		{anthropicScript, "countTokens", `{"short":true,"long":true}`, nil},
		{anthropicScript, "errors", `{"model":["NotFoundError",404,"not_found_error","model_not_found","model"],"stop":["BadRequestError",400,"invalid_request_error","BAD_REQUEST","stop_sequences"],
			"image":["BadRequestError",400,"invalid_request_error","BAD_REQUEST","messages[0].content[0].type"],
			"forced":["BadRequestError",400,"invalid_request_error","BAD_REQUEST","tool_choice.type"],"session":["NotFoundError",404,"not_found_error","NOT_FOUND",null],
			"count":["NotFoundError",404,"not_found_error","model_not_found","model"],"batches":["NotFoundError",404,"not_found_error","NOT_FOUND",null]}`, nil},
		{anthropicScript, "failing", `{"plain":["InternalServerError",502,"api_error","PROVIDER_AUTH"],"stream":["InternalServerError",502,"api_error","PROVIDER_AUTH"]}`, []http.HandlerFunc{failing}},
		{anthropicScript, "failsMidway", `{"text":"Looking.","error":"APIError","type":"api_error","code":"PROVIDER_AUTH"}`, midway()},
	} {
		t.Run(c.script+" "+c.which, func(t *testing.T) {
			m := newModel(t, c.steps...)
			newNPMProgram(t, c.script).prints(c.want, newHarness(t, m).door().server.URL+"/v1", c.which)
			if !strings.HasPrefix(c.which, "fail") && m.count() != len(c.steps) {
				t.Errorf("the model was asked %d times", m.count())
			}
		})
	}
}

// TestCompat_ClientLeaves has each vendor's client leave in the middle of a stream: the round goes
// on.
func TestCompat_ClientLeaves(t *testing.T) {
	t.Parallel()
	for _, script := range []string{openaiScript, anthropicScript} {
		t.Run(script, func(t *testing.T) {
			free := make(chan struct{})
			d := newHarness(t, newModel(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				chunk(w, map[string]any{"content": "Half"})
				<-free
				replyWith(" whole")(w, r)
			})).door()
			newNPMProgram(t, script).prints(`{"aborted":true}`, d.server.URL+"/v1", "abort")
			close(free)
			rounds, err := d.conn.List(t.Context(), store.RoundFilter{Limit: 10})
			if err != nil || len(rounds) != 1 {
				t.Fatalf("%d rounds, %v", len(rounds), err)
			}
			d.until(d.conn, rounds[0].Session.ID, func(e *regie.Event) bool {
				return e.Type == regie.EventRound && strings.Contains(string(e.Body), "ANSWERED")
			})
		})
	}
}

// TestAISDK_Anthropic has Vercel's AI SDK talk to an agent with both majors of its provider.
func TestAISDK_Anthropic(t *testing.T) {
	t.Parallel()
	asks := replyWith("Let me look.", call{"w", "get_weather", `{"place":"Bern"}`})
	for _, c := range []struct {
		which, want string
		steps       []http.HandlerFunc
	}{
		{"generate", `{"text":"Hello.","finish":"stop","usage":true}`, []http.HandlerFunc{replyWith("Hello.")}},
		{"stream", `{"pieces":"Hello.","finish":"stop"}`, []http.HandlerFunc{replyWith("Hello.")}},
		{"tools", `{"text":"Sun.","steps":2,"places":["Bern"],"more":"Rain."}`, []http.HandlerFunc{asks, replyWith("Sun."), replyWith("Rain.")}},
		{"toolsStreamed", `{"text":"Sun.","steps":2,"places":["Bern"]}`, []http.HandlerFunc{asks, replyWith("Sun.")}},
	} {
		for _, major := range []string{"3", "4"} {
			t.Run(c.which+" "+major, func(t *testing.T) {
				m := newModel(t, c.steps...)
				h := newHarness(t, m).serve("127.0.0.1:0")
				newNPMProgram(t, "anthropic/client.mjs").prints(c.want, h.served.URL+"/v1", major, c.which, h.token)
				if m.count() != len(c.steps) {
					t.Errorf("the model was asked %d times", m.count())
				}
			})
		}
	}
}

// TestOpenAIClients_Turns has the AI SDK and OpenAI's agents run a tool in their first turn and
// take a second one.
func TestOpenAIClients_Turns(t *testing.T) {
	t.Parallel()
	const twice = `"first":"Sun.","second":"Still.","places":["Bern"]`
	for which, want := range map[string]string{
		"generateText":    `{` + twice + `,"references":true}`,
		"streamText":      `{` + twice + `,"references":true}`,
		"agentsChat":      `{` + twice + `}`,
		"agentsResponses": `{` + twice + `}`,
	} {
		t.Run(which, func(t *testing.T) {
			m := newModel(t, callsOffered(t, "w", "get_weather", `{"place":"Bern"}`), replyWith("Sun."), replyWith("Still."))
			d := newHarness(t, m).door()
			newNPMProgram(t, "openai/cases.mjs").prints(want, d.server.URL+"/v1", which)
			if asked := m.last(); !strings.Contains(asked, `"content":"Sun."`) || !strings.Contains(asked, `"content":"sun"`) {
				t.Errorf("the second turn lacks the first: %s", asked)
			}
		})
	}
}
