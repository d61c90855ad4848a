package app_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/provider/providertest"
	"github.com/regie-run/regie/internal/provider/providertest/strict"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/store/storetest"
	"github.com/regie-run/regie/internal/tool"
)

// model is a scripted model server over real HTTP. It has no memory: the step is the number of
// replies that the thread holds. Every prompt that it is sent must pass a strict validator
// (invariant 18).
type model struct {
	t      *testing.T
	server *httptest.Server
	steps  []http.HandlerFunc

	mu       sync.Mutex
	requests [][]byte
}

func newModel(t *testing.T, steps ...http.HandlerFunc) *model {
	t.Helper()
	m := &model{t: t, steps: steps}
	m.server = httptest.NewServer(m)
	t.Cleanup(m.server.Close)
	return m
}

func (m *model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet { // it has no list of its models, which some vendors' servers are asked for
		http.NotFound(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	if err := strict.Chat(body); err != nil {
		m.t.Errorf("a prompt that no strict server takes: %v\n%s", err, body)
	}
	m.mu.Lock()
	m.requests = append(m.requests, body)
	m.mu.Unlock()
	var request struct {
		Messages []struct{ Role string } `json:"messages"`
	}
	if err := json.Unmarshal(body, &request); err != nil {
		m.t.Error(err)
		return
	}
	step := 0
	for _, message := range request.Messages {
		if message.Role == "assistant" {
			step++
		}
	}
	if step >= len(m.steps) {
		m.t.Errorf("the script has no step %d", step)
		http.Error(w, "no such step", http.StatusBadRequest)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	m.steps[step](w, r)
}

// sent is what the request of a step holds: last may be the one of another session, which goes on
// beside it.
func sent(r *http.Request) string {
	body, _ := io.ReadAll(r.Body) // a reader of bytes, which does not fail
	return string(body)
}

// last returns the messages of the last request.
func (m *model) last() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return string(m.requests[len(m.requests)-1])
}

func (m *model) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.requests)
}

type call struct{ id, name, arguments string }

// replyWith streams a text and calls, in good order.
func replyWith(text string, calls ...call) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		reason := "stop"
		if text != "" {
			chunk(w, map[string]any{"content": text})
		}
		for i, c := range calls {
			reason = "tool_calls"
			chunk(w, map[string]any{"tool_calls": []any{map[string]any{
				"index": i, "id": c.id, "type": "function", "function": map[string]any{"name": c.name, "arguments": c.arguments},
			}}})
		}
		_, _ = fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":%q}]}\n\n", reason)
		_, _ = fmt.Fprint(w, "data: {\"choices\":[],\"usage\":"+usualClaim+"}\n\ndata: [DONE]\n\n")
	}
}

// usualClaim cannot be true: what it is taken for is an estimate.
const usualClaim = `{"prompt_tokens":7,"completion_tokens":3}`

// claims has a step claim to have used something else.
func claims(usage string, step http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		said := httptest.NewRecorder()
		step(said, r)
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write(bytes.ReplaceAll(said.Body.Bytes(), []byte(usualClaim), []byte(usage)))
	}
}

func chunk(w http.ResponseWriter, delta map[string]any) {
	data, _ := json.Marshal(delta)
	_, _ = fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":%s,\"finish_reason\":null}]}\n\n", data)
	_ = http.NewResponseController(w).Flush()
}

// once answers differently the first time.
func once(first, then http.HandlerFunc) http.HandlerFunc {
	var mu sync.Mutex
	asked := false
	return func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		handler := then
		if !asked {
			handler = first
		}
		asked = true
		mu.Unlock()
		handler(w, r)
	}
}

// harness is a workspace, a data directory and the settings for a model.
type harness struct {
	t        *testing.T
	root     string
	settings config.Config
	tools    []tool.Tool

	spoken regie.Dialect // that requests force
}

func newHarness(t *testing.T, m *model, tools ...tool.Tool) *harness {
	t.Helper()
	b := &harness{t: t, root: t.TempDir(), tools: tools}
	env := map[string]string{"REGIE_DATA_DIR": filepath.Join(t.TempDir(), "data"), "REGIE_BASE_URL": m.server.URL + "/v1", "REGIE_MODEL": "scripted"}
	var err error
	if b.settings, err = config.Load(func(name string) string { return env[name] }, config.Flags{}); err != nil {
		t.Fatal(err)
	}
	b.settings.SetupFile = filepath.Join(t.TempDir(), "setup.yaml")
	if os.Getenv("REGIE_TEST_STORE") == "postgres" { // the same tests on the other store
		b.settings.Database = storetest.Postgres(t)
	}
	return b
}

// alters says that a test alters the embedded store's file from outside; on another store it is
// skipped.
func (b *harness) alters() {
	b.t.Helper()
	if b.settings.Database != "" {
		b.t.Skip("alters SQLite's file")
	}
}

// connect attaches to the data directory; the first to do so is the engine. The end of the test
// closes the connection.
func (b *harness) connect() *app.Conn { return b.attach(app.Options{}) }

// attach connects with further options.
func (b *harness) attach(options app.Options) *app.Conn {
	b.t.Helper()
	options.Config = b.settings
	if options.Tools == nil {
		options.Tools = b.tools
	}
	if options.Models == nil {
		options.Models = b.watched()
	}
	conn, err := app.Connect(b.t.Context(), options)
	fatal(b.t, err)
	b.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// send stores a request.
func (b *harness) send(control service, in dispatch.RunRequest) dispatch.Run {
	b.t.Helper()
	run, err := control.Submit(b.t.Context(), in)
	fatal(b.t, err)
	return run
}

// start connects and submits a request.
func (b *harness) start(policy approval.Policy) (*app.Conn, dispatch.Run) {
	b.t.Helper()
	conn := b.connect()
	return conn, b.send(conn, b.request(policy))
}

// startAsked is start of a run that asks a person about its calls.
func (b *harness) startAsked(policy approval.Policy) (*app.Conn, dispatch.Run, regie.Approval) {
	b.t.Helper()
	conn, run := b.start(policy)
	return conn, run, b.parked(conn, run.SessionID).Approvals[0]
}

// round reads what is stored of a round.
func (b *harness) round(control service, id regie.ID) store.RoundView {
	b.t.Helper()
	view, err := control.Get(b.t.Context(), id)
	fatal(b.t, err)
	return view
}

// fatal ends a test that meets an error.
func fatal(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// watched are the models of the settings; every prompt to one of them must be legal for every
// vendor.
func (b *harness) watched() func(name string) (provider.Provider, error) {
	models := app.Models(b.settings)
	return func(name string) (provider.Provider, error) {
		p, err := models(name)
		if err != nil {
			return nil, err
		}
		return providertest.Watch(p, func(err error) { b.t.Errorf("a prompt that some vendor refuses: %v", err) }), nil
	}
}

func (b *harness) request(policy approval.Policy) dispatch.RunRequest {
	return dispatch.RunRequest{
		ClientID: regie.NewID().String(), SessionID: regie.NewID(), Root: b.root, FoundBy: "directory", Text: "do it", Agent: "main",
		Provider: b.settings.Provider, Model: b.settings.Model, Policy: policy,
	}
}

var everything = approval.Policy{Allow: []string{"*.*"}}

// run submits a request, waits for the end of its round, and returns what happened.
func (b *harness) run(policy approval.Policy) store.RoundView {
	b.t.Helper()
	conn := b.connect()
	defer func() {
		if err := conn.Close(); err != nil {
			b.t.Error(err)
		}
	}()
	run := b.send(conn, b.request(policy))
	return b.await(conn, run)
}

var errSeen = errors.New("seen")

// until reads a session's events until one satisfies want.
func (b *harness) until(control service, session regie.ID, want func(*regie.Event) bool) {
	b.t.Helper()
	err := control.Events(b.t.Context(), session, 0, func(item dispatch.Item) error {
		if item.Event != nil && want(item.Event) {
			return errSeen
		}
		return nil
	})
	if !errors.Is(err, errSeen) {
		b.t.Fatal(err)
	}
}

// unlikeWritten is what verifying a log finds, empty where it is what was written.
func unlikeWritten(t *testing.T, control service, owner regie.ID) string {
	t.Helper()
	logs, err := control.Verify(t.Context(), store.LogFilter{ID: owner})
	if err != nil || len(logs) != 1 {
		t.Fatalf("%d logs, %v", len(logs), err)
	}
	return logs[0].Error
}

// positionOf returns where a message stands in the log of its session.
func (b *harness) positionOf(control service, session, message regie.ID) int64 {
	b.t.Helper()
	views, err := control.Messages(b.t.Context(), dispatch.MessagesRequest{SessionID: session})
	fatal(b.t, err)
	for i := range views {
		if views[i].Message.ID == message {
			return views[i].Seq
		}
	}
	b.t.Fatalf("the session has no message %s", message)
	return 0
}

// await waits for the end of a round.
func (b *harness) await(control service, run dispatch.Run) store.RoundView {
	b.t.Helper()
	b.until(control, run.SessionID, func(e *regie.Event) bool {
		var body struct {
			RoundID regie.ID         `json:"round_id"`
			State   regie.RoundState `json:"state"`
		}
		return e.Type == regie.EventRound && json.Unmarshal(e.Body, &body) == nil && body.RoundID == run.RoundID && body.State == regie.RoundEnded
	})
	view := b.round(control, run.RoundID)
	if fault := unlikeWritten(b.t, control, view.Session.ID); fault != "" {
		b.t.Errorf("the log does not verify: %s", fault)
	}
	return view
}

const envChild = "REGIE_TEST_CHILD"

// child is this test once more, in a process of its own that is told something (isChild).
func (b *harness) child(told any) *exec.Cmd {
	b.t.Helper()
	data, err := json.Marshal(told)
	fatal(b.t, err)
	name, _, _ := strings.Cut(b.t.Name(), "/")
	child := exec.CommandContext(b.t.Context(), os.Args[0], "-test.run=^"+name+"$", "-test.count=1")
	child.Env = append(os.Environ(), envChild+"="+string(data))
	return child
}

// isChild reads what child has told this process.
func isChild(t *testing.T, told any) bool {
	t.Helper()
	data, is := os.LookupEnv(envChild)
	if is {
		fatal(t, json.Unmarshal([]byte(data), told))
	}
	return is
}

// asking is what a child that asks a model is told.
type asking struct {
	Settings config.Config
	Request  dispatch.RunRequest
}

// askForEver submits a request and waits to be killed.
func askForEver(t *testing.T, in asking) {
	t.Helper()
	conn, err := app.Connect(context.Background(), app.Options{Config: in.Settings})
	if err == nil {
		_, err = conn.Submit(context.Background(), in.Request)
	}
	fatal(t, err)
	select {}
}

type nameArgs struct {
	Name string `json:"name,omitempty"`
}

// action makes an action of a class; probe is for verifiable ones.
func action(t *testing.T, name string, class regie.EffectClass, run func(context.Context, *tool.Invocation) (tool.Result, error), probe func() tool.Evidence) tool.Tool { //nolint:unparam // each test names its class
	t.Helper()
	handler := tool.Handler[nameArgs]{Run: func(ctx context.Context, inv *tool.Invocation, _ nameArgs) (tool.Result, error) { return run(ctx, inv) }}
	if probe != nil {
		handler.Probe = func(context.Context, *tool.Invocation, nameArgs) (tool.Evidence, tool.Result, error) {
			return probe(), tool.Result{Content: "probed"}, nil
		}
	}
	out, err := tool.New(regie.ToolDefinition{Name: name, Description: "an action", Kind: regie.KindAction, Class: class, Risk: regie.RiskInternal}, handler)
	fatal(t, err)
	return out
}

// service is what the tests ask of a connection and of a client.
type service interface {
	Submit(ctx context.Context, in dispatch.RunRequest) (dispatch.Run, error)
	Interrupt(ctx context.Context, round regie.ID) error
	Pause(ctx context.Context, round regie.ID) error
	Resume(ctx context.Context, round regie.ID) error
	Stop(ctx context.Context, session regie.ID) (dispatch.Stopped, error)
	Inbox(ctx context.Context, filter store.InboxFilter) (store.Inbox, error)
	Review(ctx context.Context, in dispatch.DecideRequest) (dispatch.Reviewed, error)
	Decide(ctx context.Context, in dispatch.DecideRequest) (store.Resolved, error)
	Messages(ctx context.Context, in dispatch.MessagesRequest) ([]store.MessageView, error)
	Answer(ctx context.Context, in dispatch.AnswerRequest) (store.Resolved, error)
	Get(ctx context.Context, round regie.ID) (store.RoundView, error)
	List(ctx context.Context, filter store.RoundFilter) ([]store.RoundSummary, error)
	Spent(ctx context.Context, root string) (store.Spent, error)
	Events(ctx context.Context, session regie.ID, after int64, sink func(dispatch.Item) error) error
	Sessions(ctx context.Context, filter store.SessionFilter) ([]store.SessionSummary, error)
	Session(ctx context.Context, session regie.ID) (store.SessionView, error)
	Verify(ctx context.Context, filter store.LogFilter) ([]store.LogReport, error)
	Replay(ctx context.Context, round regie.ID) (dispatch.Replay, error)
}
