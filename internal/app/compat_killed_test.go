package app_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/compat"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/store/sqlite"
)

// doorKilled is what a child process of TestCompatKilled is told: to serve, to be asked once, and
// to be killed then.
type doorKilled struct {
	Settings   config.Config
	Root, Body string
	// Early has it killed when the request's round has begun, else when its answer is there.
	Early bool
}

// TestCompatKilled kills the process that serves a client with SIGKILL after each step of a
// conversation with its tool, and in the middle of it: the next one answers the same request from
// where it stands, and asks the model nothing twice that was answered.
func TestCompatKilled(t *testing.T) {
	t.Parallel()
	if said := os.Getenv("REGIE_TEST_DOOR"); said != "" {
		serveAndDie(t, said)
		return
	}
	for name, early := range map[string]bool{"with an answer": false, "without": true} {
		t.Run(name, func(t *testing.T) {
			m := newModel(t, replyWith("", call{"w", "client__get_weather", `{"place":"Bern"}`}, call{"l", "files__list_files", `{}`}), replyWith("Sun."))
			b := newHarness(t, m)
			die := func(body map[string]any) {
				t.Helper()
				data, err := json.Marshal(body)
				fatal(t, err)
				runKilled(t, "TestCompatKilled", "REGIE_TEST_DOOR", doorKilled{b.settings, b.root, string(data), early})
			}
			key := header{"Idempotency-Key": "k"}
			first := map[string]any{"model": "main", "messages": []any{message("user", "weather?")}, "tools": weather}
			die(first)
			d := b.door()
			asked := d.chat(first, key)
			calls := asked.Choices[0].Message.ToolCalls
			if len(calls) != 1 {
				t.Fatalf("%s", asked.body)
			}
			second := map[string]any{"model": "main", "tools": weather, "messages": []any{
				message("user", "weather?"), map[string]any{"role": "assistant", "tool_calls": calls}, map[string]any{"role": "tool", "tool_call_id": calls[0].ID, "content": "sun"},
			}}
			d.close()
			die(second)
			d = b.door()
			answer := d.chat(second, key)
			if answer.Choices[0].Message.Content != "Sun." || answer.header.Get(compat.HeaderSession) != asked.header.Get(compat.HeaderSession) {
				t.Errorf("%s", answer.body)
			}
			view := d.session(answer)
			if got := callStates(view); got != "SUCCEEDED sun, SUCCEEDED" || len(view.History) != 2 {
				t.Errorf("%d rounds: %s", len(view.History), got)
			}
			if !early && m.count() != 2 {
				t.Errorf("the model was asked %d times", m.count())
			}
			d.rebuilds(view)
		})
	}
}

func serveAndDie(t *testing.T, said string) {
	t.Helper()
	var in doorKilled
	fatal(t, json.Unmarshal([]byte(said), &in))
	conn, err := app.Connect(context.Background(), app.Options{Config: in.Settings, TuneStore: func(c *sqlite.Config) {
		tell := c.Notify
		c.Notify = func(session regie.ID, added []regie.Event) {
			if in.Early && slices.ContainsFunc(added, func(e regie.Event) bool { return e.Type == regie.EventRound }) {
				die(t) // once a round is stored
			}
			tell(session, added)
		}
	}})
	fatal(t, err)
	server := httptest.NewServer(asOwner(compat.Handler(compat.Config{Service: conn.Service(), Workspace: func(ctx context.Context) (regie.Workspace, error) {
		return conn.Workspaces.Open(ctx, dispatch.WorkspaceRequest{Path: in.Root})
	}})))
	request, err := http.NewRequestWithContext(context.Background(), http.MethodPost, server.URL+"/v1/chat/completions", strings.NewReader(in.Body))
	fatal(t, err)
	request.Header.Set("Idempotency-Key", "k")
	response, err := http.DefaultClient.Do(request)
	fatal(t, err)
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Fatalf("%d", response.StatusCode)
	}
	die(t)
}

// runKilled runs a test in a child process, which is told something and ends by SIGKILL.
func runKilled(t *testing.T, test, variable string, told any) {
	t.Helper()
	said, err := json.Marshal(told)
	fatal(t, err)
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+test+"$", "-test.count=1")
	child.Env = append(os.Environ(), variable+"="+string(said))
	out, err := child.CombinedOutput()
	if status, ok := child.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
		t.Fatalf("the child was not killed: %v\n%s", err, out)
	}
}

func die(t *testing.T) {
	t.Helper()
	fatal(t, syscall.Kill(os.Getpid(), syscall.SIGKILL))
	select {} // SIGKILL comes
}

// TestCompatExpires removes sessions of clients a day after something last happened in them, and no
// others.
func TestCompatExpires(t *testing.T) {
	t.Parallel()
	m := newModel(t, replyWith("Hello."), replyWith("More."))
	d := newHarness(t, m).door()
	old := d.chat(map[string]any{"messages": []any{message("user", "hi")}}, nil)
	own, err := d.conn.Submit(t.Context(), d.request(everything))
	fatal(t, err)
	d.await(d.conn, own)
	last := d.session(old).LastActivity
	left := func() int {
		listed, err := d.conn.Sessions(t.Context(), store.SessionFilter{API: true})
		fatal(t, err)
		return len(listed)
	}
	if err := d.conn.RemoveUnused(t.Context(), last.Add(24*time.Hour)); err != nil || left() != 2 {
		t.Errorf("%d sessions are left, %v", left(), err)
	}
	if err := d.conn.RemoveUnused(t.Context(), last.Add(24*time.Hour+time.Microsecond)); err != nil || left() != 1 {
		t.Errorf("%d sessions are left, %v", left(), err)
	}
	again := d.do(http.MethodPost, "/v1/chat/completions", `{"model":"main","messages":[{"role":"user","content":"x"}]}`, header{compat.HeaderSession: old.header.Get(compat.HeaderSession)})
	if again.status != http.StatusNotFound {
		t.Errorf("%d %s", again.status, again.body)
	}
}

// TestCompatBadInput sends what no client of good will sends (spec 12.5).
func TestCompatBadInput(t *testing.T) {
	t.Parallel()
	m := newModel(t)
	d := newHarness(t, m).door()
	const hi = `"messages":[{"role":"user","content":"hi"}]`
	for name, c := range map[string]struct {
		method, path, body string
		headers            header
		status             int
		param              string
	}{
		"no JSON":                   {http.MethodPost, passChat, `{"model"`, nil, 400, ""},
		"too large":                 {http.MethodPost, passChat, `{"model":"` + strings.Repeat("x", 21<<20) + `"}`, nil, 413, ""},
		"another agent":             {http.MethodPost, passChat, `{"model":"other",` + hi + `}`, nil, 404, "model"},
		"another provider":          {http.MethodPost, passChat, `{"model":"nobody/x",` + hi + `}`, nil, 404, "model"},
		"the model in capitals":     {http.MethodPost, passChat, `{"MODEL":"main",` + hi + `}`, nil, 400, "model"},
		"no session":                {http.MethodPost, passChat, `{"model":"main",` + hi + `}`, header{compat.HeaderSession: "0197e0a1-2b3c-7d4e-8f50-61728394a5b6"}, 404, ""},
		"a session that is none":    {http.MethodPost, passChat, `{"model":"main",` + hi + `}`, header{compat.HeaderSession: "../x"}, 400, "metadata.session_id"},
		"two sessions":              {http.MethodPost, passChat, `{"model":"main","metadata":{"session_id":"a"},` + hi + `}`, header{compat.HeaderSession: "b"}, 400, "metadata.session_id"},
		"a tool of the agent's":     {http.MethodPost, passChat, `{"model":"main",` + hi + `,"tools":[{"type":"function","function":{"name":"files__read_file"}}]}`, nil, 400, ""},
		"a schema that is none":     {http.MethodPost, passChat, `{"model":"main",` + hi + `,"tools":[{"type":"function","function":{"name":"a","parameters":7}}]}`, nil, 400, ""},
		"an effort that is none":    {http.MethodPost, passChat, `{"model":"main",` + hi + `,"reasoning_effort":"extreme"}`, nil, 400, ""},
		"the wrong method":          {http.MethodGet, passChat, ``, nil, 404, ""},
		"a method of nobody's":      {"BREW", "/v1/responses/resp_x", ``, nil, 404, ""},
		"nothing there":             {http.MethodGet, "/v1/embeddings", ``, nil, 404, ""},
		"a model that is not there": {http.MethodGet, "/v1/models/x", ``, nil, 404, "model"},
		"a response of nobody":      {http.MethodGet, "/v1/responses/resp_x", ``, nil, 404, ""},
		"to be forgotten":           {http.MethodDelete, "/v1/responses/resp_x", ``, nil, 404, ""},
	} {
		t.Run(name, func(t *testing.T) {
			out := d.do(c.method, c.path, c.body, c.headers)
			if out.status != c.status || out.Error.Param != c.param || out.Error.Message == "" || out.Error.Code == "" || out.header.Get("X-Should-Retry") != "false" {
				t.Errorf("%d %.300s", out.status, out.body)
			}
		})
	}
	if m.count() != 0 {
		t.Errorf("the model was asked %d times", m.count())
	}
	if listed, err := d.conn.Sessions(t.Context(), store.SessionFilter{API: true}); err != nil || len(listed) != 0 {
		t.Errorf("%d sessions were made, %v", len(listed), err)
	}
}
