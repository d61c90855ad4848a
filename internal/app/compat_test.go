package app_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/access"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/compat"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
)

// door is the OpenAI-compatible endpoint of an engine over real HTTP.
type door struct {
	*harness
	conn   *app.Conn
	server *httptest.Server
	closed bool
}

func (b *harness) door(change ...func(*compat.Config)) *door {
	b.t.Helper()
	return b.doorOf(b.connect(), change...)
}

// doorOf is the endpoint over a connection.
func (b *harness) doorOf(conn *app.Conn, change ...func(*compat.Config)) *door {
	b.t.Helper()
	d := &door{harness: b, conn: conn}
	settings := compat.Config{Service: d.conn.Service(), Workspace: func(ctx context.Context) (regie.Workspace, error) {
		return d.conn.Workspaces.Open(ctx, dispatch.WorkspaceRequest{Path: b.root})
	}, Proxy: d.conn.Proxy()}
	for _, c := range change {
		c(&settings)
	}
	d.server = httptest.NewServer(asOwner(compat.Handler(settings)))
	b.t.Cleanup(d.close)
	return d
}

// asOwner has every request come from this machine's user.
func asOwner(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(access.AsOwner(r.Context())))
	})
}

func (d *door) close() {
	if d.closed {
		return
	}
	d.closed = true
	d.server.Close()
	if err := d.conn.Close(); err != nil {
		d.t.Error(err)
	}
}

// answered is what came back.
type answered struct {
	status int
	header http.Header
	body   string
	ID     string `json:"id"`
	Error  struct {
		Message, Type, Code string
		Param               string
	}
	Choices []struct {
		FinishReason string `json:"finish_reason"`
		Message      struct {
			Content   string
			ToolCalls []toolCall `json:"tool_calls"`
		}
	}
	Usage struct {
		PromptTokens int64 `json:"prompt_tokens"`
	}
	Metadata map[string]string
}

type toolCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

type header map[string]string

func (d *door) do(method, path, body string, headers header) answered {
	d.t.Helper()
	r, err := http.NewRequestWithContext(d.t.Context(), method, d.server.URL+path, strings.NewReader(body))
	fatal(d.t, err)
	for k, v := range headers {
		r.Header.Set(k, v)
	}
	response, err := http.DefaultClient.Do(r)
	fatal(d.t, err)
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	fatal(d.t, err)
	out := answered{status: response.StatusCode, header: response.Header, body: string(data)}
	if strings.HasPrefix(response.Header.Get("Content-Type"), "application/json") {
		if err := json.Unmarshal(data, &out); err != nil {
			d.t.Fatalf("%v: %s", err, data)
		}
	}
	return out
}

// chat asks main, which has to answer.
func (d *door) chat(body map[string]any, headers header) answered {
	d.t.Helper()
	if body["model"] == nil {
		body["model"] = "main"
	}
	data, err := json.Marshal(body)
	fatal(d.t, err)
	out := d.do(http.MethodPost, "/v1/chat/completions", string(data), headers)
	if out.status != http.StatusOK {
		d.t.Fatalf("%d: %s", out.status, out.body)
	}
	return out
}

func message(role, text string) map[string]any { return map[string]any{"role": role, "content": text} }

var weather = []any{map[string]any{"type": "function", "function": map[string]any{
	"name": "get_weather", "description": "the weather of a place",
	"parameters": map[string]any{"type": "object", "properties": map[string]any{"place": map[string]any{"type": "string"}}, "required": []any{"place"}},
}}}

// session returns what is stored of the session that an answer names.
func (d *door) session(a answered) store.SessionView {
	d.t.Helper()
	id, err := regie.ParseID(a.header.Get(compat.HeaderSession))
	fatal(d.t, err)
	view, err := d.conn.Session(d.t.Context(), id)
	fatal(d.t, err)
	if view.Audit == nil {
		d.t.Errorf("the log does not verify: %s", view.AuditError)
	}
	return view
}

// rebuilds runs every round of a session once more from the store: what was sent comes out the
// same.
func (d *door) rebuilds(view store.SessionView) {
	d.t.Helper()
	for _, round := range view.History {
		again, err := d.conn.Replay(d.t.Context(), round.ID)
		if err != nil || again.Difference != 0 || again.Identical != len(again.Steps) {
			d.t.Errorf("round %d does not come out the same: %+v %v", round.Number, again, err)
		}
	}
}

// TestCompatChat asks an agent without a session, then in the session of the answer: it is one
// thread, which no list shows.
func TestCompatChat(t *testing.T) {
	t.Parallel()
	m := newModel(t, replyWith("Hello."), replyWith("", call{"l", "files__list_files", `{}`}), replyWith("Two files."))
	d := newHarness(t, m).door()
	first := d.chat(map[string]any{"messages": []any{message("system", "Be brief."), message("user", "hi")}, "temperature": 0.3}, nil)
	if c := first.Choices[0]; c.Message.Content != "Hello." || c.FinishReason != "stop" || first.Usage.PromptTokens < 100 || first.Metadata["session_id"] == "" {
		t.Errorf("%s", first.body)
	}
	if got := first.header.Get("X-Regie-Ignored"); got != "temperature" {
		t.Errorf("ignored: %q", got)
	}
	if asked := m.last(); !strings.Contains(asked, "[CLIENT_CONTEXT]") || !strings.Contains(asked, "Be brief.") {
		t.Errorf("the model is not told what the application says: %s", asked)
	}
	id := first.header.Get(compat.HeaderSession)
	second := d.chat(map[string]any{"messages": []any{message("user", "not this"), message("assistant", "nor this"), message("user", "look")}}, header{compat.HeaderSession: id})
	if second.Choices[0].Message.Content != "Two files." || second.header.Get(compat.HeaderSession) != id {
		t.Errorf("%s", second.body)
	}
	if asked := m.last(); strings.Contains(asked, "not this") || strings.Contains(asked, "nor this") || !strings.Contains(asked, "look") {
		t.Errorf("more than the last message was taken: %s", asked)
	}
	view := d.session(second)
	if view.Origin != regie.OriginAPISession || len(view.History) != 2 {
		t.Errorf("%+v", view.Session)
	}
	d.rebuilds(view)
	listed, err := d.conn.Sessions(t.Context(), store.SessionFilter{})
	if err != nil || len(listed) != 0 {
		t.Errorf("a list shows %d sessions, %v", len(listed), err)
	}
	if listed, err = d.conn.Sessions(t.Context(), store.SessionFilter{API: true}); err != nil || len(listed) != 1 {
		t.Errorf("asked for, it shows %d, %v", len(listed), err)
	}
}

// TestCompatTools hands a client its tool: the round ends, the next request has the result, with
// and without naming the session.
func TestCompatTools(t *testing.T) {
	t.Parallel()
	for name, named := range map[string]bool{"by the calls' ids": false, "by the session": true} {
		t.Run(name, func(t *testing.T) {
			m := newModel(t,
				replyWith("Both.", call{"w", "client__get_weather", `{"place":"Bern"}`}, call{"l", "files__list_files", `{}`}, call{"v", "client__get_weather", `{"place":"Basel"}`}),
				replyWith("Sun and rain."))
			d := newHarness(t, m).door()
			messages := []any{message("user", "weather?")}
			first := d.chat(map[string]any{"messages": messages, "tools": weather}, nil)
			c := first.Choices[0]
			if c.FinishReason != "tool_calls" || len(c.Message.ToolCalls) != 2 || c.Message.Content != "Both." || c.Message.ToolCalls[1].Function.Arguments != `{"place":"Basel"}` ||
				c.Message.ToolCalls[0].Function.Name != "get_weather" {
				t.Fatalf("%s", first.body)
			}
			view := d.session(first)
			if round := view.History[0]; round.End != regie.EndClientTools || view.State != regie.SessionIdle {
				t.Errorf("%s %s", round.End, view.State)
			}
			shown, err := d.conn.Prompt(t.Context(), dispatch.PromptRequest{SessionID: view.ID})
			if err != nil || strings.Contains(string(shown.Body), "Both.") {
				t.Errorf("what would be sent now shows half a batch: %v %s", err, shown.Body)
			}
			messages = append(messages, map[string]any{"role": "assistant", "content": "Both.", "tool_calls": c.Message.ToolCalls},
				map[string]any{"role": "tool", "tool_call_id": c.Message.ToolCalls[1].ID, "content": "rain"},
				map[string]any{"role": "tool", "tool_call_id": c.Message.ToolCalls[0].ID, "content": "sun"})
			headers := header{}
			if named {
				headers[compat.HeaderSession] = first.header.Get(compat.HeaderSession)
			}
			for range 2 { // the same again does nothing twice
				second := d.chat(map[string]any{"messages": messages, "tools": weather}, headers)
				if second.Choices[0].Message.Content != "Sun and rain." || second.header.Get(compat.HeaderSession) != first.header.Get(compat.HeaderSession) {
					t.Errorf("%s", second.body)
				}
			}
			if m.count() != 2 {
				t.Errorf("the model was asked %d times", m.count())
			}
			view = d.session(first)
			if len(view.History) != 2 || view.History[1].Counters.Total != 2 {
				t.Errorf("%+v", view.History)
			}
			if got := callStates(view); got != "SUCCEEDED sun, SUCCEEDED, SUCCEEDED rain" {
				t.Errorf("%s", got)
			}
			d.rebuilds(view)
		})
	}
}

func callStates(view store.SessionView) string {
	var out []string
	for _, m := range view.Thread {
		for _, c := range m.Calls {
			line := string(c.State)
			if c.NotRun != "" {
				line += " " + string(c.NotRun)
			}
			if c.Origin == regie.OriginClient && c.Result != "" {
				line += " " + c.Result
			}
			out = append(out, line)
		}
	}
	return strings.Join(out, ", ")
}

// TestCompatHistory imports what a client brings: a conversation with calls that nobody here made.
func TestCompatHistory(t *testing.T) {
	t.Parallel()
	m := newModel(t, nil, replyWith("It was sun."))
	d := newHarness(t, m).door()
	history := []any{
		message("developer", "You are a weatherman."), message("user", "weather?"),
		map[string]any{"role": "assistant", "content": nil, "tool_calls": []any{map[string]any{"id": "abc", "type": "function", "function": map[string]any{"name": "get_weather", "arguments": `{"place":"Bern"}`}}}},
		map[string]any{"role": "tool", "tool_call_id": "abc", "content": []any{map[string]any{"type": "text", "text": "sun"}}},
	}
	ends := d.chat(map[string]any{"messages": history, "tools": weather}, nil)
	if ends.Choices[0].Message.Content != "It was sun." {
		t.Errorf("%s", ends.body)
	}
	view := d.session(ends)
	if got := callStates(view); got != "SUCCEEDED sun" || len(view.History) != 1 {
		t.Errorf("%s", got)
	}
	d.rebuilds(view)
}

// TestCompatApprovals meets a call that needs an approval, where it is parked.
func TestCompatApprovals(t *testing.T) {
	t.Parallel()
	write := call{"w", "files__write_file", `{"path":"x","content":"x"}`}
	m := newModel(t, replyWith("I write.", write), replyWith("Written."), replyWith("Yes."))
	d := newHarness(t, m).door(func(c *compat.Config) { c.OnApproval = approval.Park })
	out := d.chat(map[string]any{"messages": []any{message("user", "write")}}, nil)
	inbox, err := d.conn.Inbox(t.Context(), store.InboxFilter{})
	if err != nil || len(inbox.Approvals) != 1 {
		t.Fatalf("%+v %v", inbox, err)
	}
	a := inbox.Approvals[0]
	if c := out.Choices[0]; c.FinishReason != "stop" || !strings.Contains(c.Message.Content, a.ID.String()) || !strings.HasPrefix(c.Message.Content, "I write.") {
		t.Errorf("%s", out.body)
	}
	early := d.do(http.MethodPost, passChat, `{"model":"main","messages":[{"role":"user","content":"done?"}]}`, header{compat.HeaderSession: out.header.Get(compat.HeaderSession)})
	if early.status != http.StatusConflict || early.Error.Code != "approval_pending" {
		t.Errorf("a message before the decision: %d %s", early.status, early.body)
	}
	if again, err := d.conn.Inbox(t.Context(), store.InboxFilter{}); err != nil || len(again.Approvals) != 1 {
		t.Fatalf("a message withdrew the approval: %+v %v", again, err)
	}
	d.decide(d.conn, a, allow(a.Reviews[0]))
	view := d.session(out)
	d.await(d.conn, dispatch.Run{SessionID: view.ID, RoundID: view.History[0].ID})
	if _, err := os.Stat(filepath.Join(d.root, "x")); err != nil {
		t.Error(err)
	}
	next := d.chat(map[string]any{"messages": []any{message("user", "done?")}}, header{compat.HeaderSession: view.ID.String()})
	if next.Choices[0].Message.Content != "Yes." {
		t.Errorf("%s", next.body)
	}
}

// TestCompatStopped ends the engine while an answer is awaited: the message is stored and answered
// when it is back, so no client is to send it again. One with a key may: its round is taken up, and
// answers it.
func TestCompatStopped(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ path, body, key string }{
		"chat":                {passChat, `{"model":"main","messages":[{"role":"user","content":"hi"}]}`, ""},
		"chat, streamed":      {passChat, `{"model":"main","stream":true,"messages":[{"role":"user","content":"hi"}]}`, ""},
		"responses":           {"/v1/responses", `{"model":"main","input":"hi"}`, ""},
		"responses, streamed": {"/v1/responses", `{"model":"main","stream":true,"input":"hi"}`, ""},
		"responses, keyed":    {"/v1/responses", `{"model":"main","input":"hi"}`, "k"},
		"messages":            {passMessages, `{"model":"main","messages":[{"role":"user","content":"hi"}]}`, ""},
		"messages, streamed":  {passMessages, `{"model":"main","stream":true,"messages":[{"role":"user","content":"hi"}]}`, ""},
		"messages, keyed":     {passMessages, `{"model":"main","messages":[{"role":"user","content":"hi"}]}`, "k"},
	} {
		t.Run(name, func(t *testing.T) {
			asked := make(chan struct{}, 8)
			b := newHarness(t, newModel(t, once(hangs(asked), replyWith("Here."))))
			d, headers, retry := b.door(), header{}, "false"
			if c.key != "" {
				headers["Idempotency-Key"], retry = c.key, "true"
			}
			ended := make(chan error, 1)
			go func() {
				<-asked
				ended <- d.conn.Close()
			}()
			out := d.do(http.MethodPost, c.path, c.body, headers)
			if err := <-ended; err != nil {
				t.Error(err)
			}
			d.closed = true
			d.server.Close()
			if !strings.Contains(out.body, `"`+string(regie.CodeEngineGone)+`"`) || out.header.Get("X-Should-Retry") != retry {
				t.Errorf("%d %v %s", out.status, out.header, out.body)
			}
			if c.key == "" {
				return
			}
			again := b.door().do(http.MethodPost, c.path, c.body, headers)
			if again.status != http.StatusOK || !strings.Contains(again.body, "Here.") || again.header.Get(compat.HeaderSession) != out.header.Get(compat.HeaderSession) {
				t.Errorf("after %v: %d %v %s", out.header, again.status, again.header, again.body)
			}
		})
	}
}
