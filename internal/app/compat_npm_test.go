package app_test

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// The clients that others wrote: a package of npm, and the script that talks with it.
const (
	openaiClient, openaiScript       = "openai", "client.mjs"
	anthropicClient, anthropicScript = "@anthropic-ai/sdk", "anthropic.mjs"
)

// npmClient returns node and a script that talks with a client of others, which make npm installs.
func npmClient(t *testing.T, client, script string) (node, path string) {
	t.Helper()
	_, err := os.Stat(filepath.Join("..", "compat", "testdata", "npm", "node_modules", filepath.FromSlash(client), "index.mjs"))
	if err == nil {
		node, err = exec.LookPath("node")
	}
	if err != nil {
		if os.Getenv("REGIE_CI") == "1" {
			t.Fatalf("the client %s of npm is not there (make npm installs it): %v", client, err)
		}
		t.Skipf("the client %s of npm is not there: make npm installs it", client)
	}
	return node, filepath.Join("..", "compat", "testdata", script)
}

// runs has OpenAI's client do one case, and compares what came of it; claude has Anthropic's.
func (d *door) runs(which, want string) {
	d.t.Helper()
	npmRuns(d.t, openaiClient, openaiScript, want, d.server.URL+"/v1", which)
}

func (d *door) claude(which, want string) {
	d.t.Helper()
	npmRuns(d.t, anthropicClient, anthropicScript, want, d.server.URL+"/v1", which)
}

func npmRuns(t *testing.T, client, script, want string, args ...string) {
	t.Helper()
	node, path := npmClient(t, client, script)
	command := exec.CommandContext(t.Context(), node, append([]string{path}, args...)...)
	var stderr strings.Builder
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	var got, wanted any
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := json.Unmarshal([]byte(want), &wanted); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(wanted, got); diff != "" {
		t.Errorf("%v (-want +got):\n%s", args, diff)
	}
}

// TestCompatOpenAI has OpenAI's own client talk to an agent.
func TestCompatOpenAI(t *testing.T) {
	t.Parallel()
	asks := says("", call{"w", "client__get_weather", `{"place":"Bern"}`})
	pieces := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		chunk(w, map[string]any{"content": "Hel"})
		says("lo.")(w, r)
	}
	for _, c := range []struct {
		which, want string
		steps       []http.HandlerFunc
	}{
		{"models", `{"ids":["main","openai/scripted"],"one":"main"}`, nil},
		{"chat", `{"text":"Hello.","finish":"stop","session":true,"usage":true}`, []http.HandlerFunc{says("Hello.")}},
		{"chatStreamed", `{"pieces":"Hello.","text":"Hello.","finish":"stop","usage":true}`, []http.HandlerFunc{pieces}},
		{"tools", `{"finish":"tool_calls","name":"get_weather","arguments":"{\"place\":\"Bern\"}","text":"Sun."}`, []http.HandlerFunc{asks, says("Sun.")}},
		{"toolsStreamed", `{"text":"Sun.","places":["Bern"]}`, []http.HandlerFunc{asks, says("Sun.")}},
		{"responses", `{"text":"Hello.","status":"completed","next":"More.","again":"More.","stale":409,"gone":"NotFoundError"}`, []http.HandlerFunc{says("Hello."), says("More.")}},
		{"responsesStreamed", `{"kinds":["response.created","response.in_progress","response.output_item.added","response.content_part.added","response.output_text.delta",
			"response.output_text.done","response.content_part.done","response.output_item.done","response.completed"],"text":"Hello.","final":"Hello."}`, []http.HandlerFunc{pieces}},
		{"responsesTools", `{"name":"get_weather","arguments":"{\"place\":\"Bern\"}","text":"Sun."}`, []http.HandlerFunc{asks, says("Sun.")}},
		{"errors", `{"model":["NotFoundError",404,"model","model_not_found"],"n":["BadRequestError",400,"n","BAD_REQUEST"],"image":["BadRequestError",400,"messages[0].content[0].type","BAD_REQUEST"],
			"session":["NotFoundError",404,null,"NOT_FOUND"],"input":["BadRequestError",400,"background","BAD_REQUEST"]}`, nil},
		{
			"failing", `{"plain":["InternalServerError",502,"PROVIDER_AUTH"],"stream":["InternalServerError",502,"PROVIDER_AUTH"]}`,
			[]http.HandlerFunc{refuses(http.StatusUnauthorized, `{"error":{"message":"bad key"}}`)},
		},
	} {
		t.Run(c.which, func(t *testing.T) {
			newBed(t, newModel(t, c.steps...)).door().runs(c.which, c.want)
		})
	}
	t.Run("failsMidway", func(t *testing.T) {
		m := newModel(t, once(says("Looking.", call{"l", "files__list_files", `{}`}), nil), refuses(http.StatusUnauthorized, `{"error":{"message":"bad key"}}`))
		newBed(t, m).door().runs("failsMidway", `{"text":"Looking.","error":"APIError","code":"PROVIDER_AUTH"}`)
	})
	t.Run("abort", func(t *testing.T) { aborts(t, (*door).runs) })
}

// aborts has a client leave in the middle of a stream: the round goes on.
func aborts(t *testing.T, client func(d *door, which, want string)) {
	t.Helper()
	free := make(chan struct{})
	m := newModel(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		chunk(w, map[string]any{"content": "Half"})
		<-free
		says(" whole")(w, r)
	})
	d := newBed(t, m).door()
	client(d, "abort", `{"aborted":true}`)
	close(free)
	rounds, err := d.conn.List(t.Context(), store.RoundFilter{Limit: 10})
	if err != nil || len(rounds) != 1 {
		t.Fatalf("%d rounds, %v", len(rounds), err)
	}
	d.until(d.conn, rounds[0].Session.ID, func(e *regie.Event) bool {
		return e.Type == regie.EventRound && strings.Contains(string(e.Body), "ANSWERED")
	})
}
