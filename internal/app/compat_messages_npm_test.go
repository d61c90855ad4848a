package app_test

import (
	"net/http"
	"testing"
)

// TestCompatAnthropic has Anthropic's own client talk to an agent.
func TestCompatAnthropic(t *testing.T) {
	t.Parallel()
	asks := says("Let me look.", call{"w", "client__get_weather", `{"place":"Bern"}`})
	silent := says("", call{"w", "client__get_weather", `{"place":"Bern"}`})
	pieces := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		chunk(w, map[string]any{"content": "Hel"})
		says("lo.")(w, r)
	}
	for _, c := range []struct {
		which, want string
		steps       []http.HandlerFunc
	}{
		{"models", `{"ids":["main"],"one":["main","model","main"],"none":["NotFoundError",404,"not_found_error"]}`, nil},
		{"chat", `{"text":"Hello.","stop":"end_turn","role":"assistant","type":"message","model":"main","usage":true,"next":"More.","ignored":"max_tokens"}`, []http.HandlerFunc{says("Hello."), says("More.")}},
		{"chatStreamed", `{"kinds":["message_start","content_block_start","content_block_delta","content_block_stop","message_delta","message_stop"],"pieces":"Hello.","text":"Hello.",
			"stop":"end_turn","usage":true}`, []http.HandlerFunc{pieces}},
		{"tools", `{"stop":"tool_use","said":"Let me look.","names":["get_weather"],"inputs":[{"place":"Bern"}],"text":"Sun."}`, []http.HandlerFunc{asks, says("Sun.")}},
		{"toolsStreamed", `{"stop":"tool_use","content":["text","tool_use"],"input":{"place":"Bern"},"text":"Sun."}`, []http.HandlerFunc{asks, says("Sun.")}},
		{"toolRunner", `{"text":"Sun.","places":["Bern"]}`, []http.HandlerFunc{silent, says("Sun.")}},
		{"countTokens", `{"short":true,"long":true}`, nil},
		{"errors", `{"model":["NotFoundError",404,"not_found_error","model_not_found","model"],"stop":["BadRequestError",400,"invalid_request_error","BAD_REQUEST","stop_sequences"],
			"image":["BadRequestError",400,"invalid_request_error","BAD_REQUEST","messages[0].content[0].type"],
			"forced":["BadRequestError",400,"invalid_request_error","BAD_REQUEST","tool_choice.type"],"session":["NotFoundError",404,"not_found_error","NOT_FOUND",null],
			"count":["NotFoundError",404,"not_found_error","model_not_found","model"],"batches":["NotFoundError",404,"not_found_error","NOT_FOUND",null]}`, nil},
		{
			"failing", `{"plain":["InternalServerError",502,"api_error","PROVIDER_AUTH"],"stream":["InternalServerError",502,"api_error","PROVIDER_AUTH"]}`,
			[]http.HandlerFunc{refuses(http.StatusUnauthorized, `{"error":{"message":"bad key"}}`)},
		},
	} {
		t.Run(c.which, func(t *testing.T) {
			m := newModel(t, c.steps...)
			newBed(t, m).door().claude(c.which, c.want)
			if len(c.steps) > 0 && c.which != "failing" && m.count() != len(c.steps) {
				t.Errorf("the model was asked %d times", m.count())
			}
		})
	}
	t.Run("failsMidway", func(t *testing.T) {
		m := newModel(t, once(says("Looking.", call{"l", "files__list_files", `{}`}), nil), refuses(http.StatusUnauthorized, `{"error":{"message":"bad key"}}`))
		newBed(t, m).door().claude("failsMidway", `{"text":"Looking.","error":"APIError","type":"api_error","code":"PROVIDER_AUTH"}`)
	})
	t.Run("abort", func(t *testing.T) { aborts(t, (*door).claude) })
}
