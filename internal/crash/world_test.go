//go:build faults

package crash

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	_ "modernc.org/sqlite" // to look at the child's database from outside

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider/openai"
)

// effect is one side effect as the ledger sees it.
type effect struct {
	Key   regie.ID          `json:"key"` // the call id: the idempotency key
	Class regie.EffectClass `json:"class"`
	Name  string            `json:"name"`
}

// world is everything outside the child: the ledger and the scripted model. It survives the child.
type world struct {
	ledger *httptest.Server
	model  *httptest.Server

	mu         sync.Mutex
	effects    []effect
	violations []string
	db         *sql.DB // the child's database, read from here
	touched    chan struct{}
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{touched: make(chan struct{}, 1)}
	w.ledger = httptest.NewServer(http.HandlerFunc(w.serveLedger))
	w.model = httptest.NewServer(http.HandlerFunc(w.serveModel))
	t.Cleanup(w.ledger.Close)
	t.Cleanup(w.model.Close)
	return w
}

func (w *world) violate(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.violations = append(w.violations, fmt.Sprintf(format, args...))
}

// touch tells the killer that the child is at work.
func (w *world) touch() {
	select {
	case w.touched <- struct{}{}:
	default:
	}
}

func (w *world) serveLedger(rw http.ResponseWriter, r *http.Request) {
	w.touch()
	if r.URL.Path == "/probe" {
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, e := range w.effects {
			if e.Name == r.URL.Query().Get("name") {
				return
			}
		}
		rw.WriteHeader(http.StatusNotFound)
		return
	}
	var e effect
	if err := json.NewDecoder(r.Body).Decode(&e); err != nil {
		w.violate("the ledger got garbage: %v", err)
		return
	}
	if e.Class != regie.ClassRead {
		w.checkIntent(r.Context(), e)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.effects = append(w.effects, e)
}

// checkIntent asserts invariant 2 at the moment of the effect: its intent is committed, visible from another process.
func (w *world) checkIntent(ctx context.Context, e effect) {
	w.mu.Lock()
	db := w.db
	w.mu.Unlock()
	var state string
	err := db.QueryRowContext(ctx, "SELECT state FROM calls WHERE id = ?", e.Key).Scan(&state)
	switch {
	case ctx.Err() != nil: // the child died while we looked
	case err != nil:
		w.violate("an effect of %s without a stored call %s: %v", e.Name, e.Key, err)
	case state != "STARTED":
		w.violate("an effect of %s while its call is %s, not STARTED (invariant 2)", e.Name, state)
	}
}

var seedOf = regexp.MustCompile(`seed (\d+)`)

// serveModel answers by the scenario of the seed in the user's message and the number of replies that the thread holds already: it
// has no memory, as a model has none.
func (w *world) serveModel(rw http.ResponseWriter, r *http.Request) {
	w.touch()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the child died while it sent
	}
	if err := openai.ValidateRequest(body); err != nil {
		w.violate("a prompt that no strict server takes (invariant 18): %v", err)
	}
	var request struct {
		Messages []struct {
			Role    string `json:"role"`
			Content string `json:"content"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(body, &request); err != nil {
		w.violate("the model got garbage: %v", err)
		return
	}
	replies, seed := 0, uint64(0)
	for _, m := range request.Messages {
		if m.Role == "assistant" {
			replies++
		}
		if found := seedOf.FindStringSubmatch(m.Content); m.Role == "user" && found != nil {
			seed, _ = strconv.ParseUint(found[1], 10, 64)
		}
	}
	rw.Header().Set("Content-Type", "text/event-stream")
	steps := scenario(seed)
	if replies >= len(steps) {
		writeChunks(rw, `{"content":"All "}`, `{"content":"done."}`)
		finish(rw, "stop")
		return
	}
	writeChunks(rw, fmt.Sprintf(`{"content":"Step %d."}`, replies+1))
	for i, c := range steps[replies] {
		arguments, _ := json.Marshal(c.arguments)
		writeChunks(rw, fmt.Sprintf(`{"tool_calls":[{"index":%d,"id":"c%d_%d","type":"function","function":{"name":%q,"arguments":%s}}]}`, i, replies, i, c.tool, quote(string(arguments))))
	}
	finish(rw, "tool_calls")
}

func quote(s string) string {
	data, _ := json.Marshal(s)
	return string(data)
}

func writeChunks(rw http.ResponseWriter, deltas ...string) {
	for _, delta := range deltas {
		_, _ = io.WriteString(rw, `data: {"id":"x","object":"chat.completion.chunk","created":1,"model":"scripted","choices":[{"index":0,"delta":`+delta+`,"finish_reason":null}]}`+"\n\n")
		_ = http.NewResponseController(rw).Flush()
	}
}

func finish(rw http.ResponseWriter, reason string) {
	_, _ = io.WriteString(rw, `data: {"choices":[{"index":0,"delta":{},"finish_reason":"`+reason+`"}]}`+"\n\n"+
		`data: {"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5}}`+"\n\ndata: [DONE]\n\n")
}

// scripted is a call that the model proposes.
type scripted struct {
	tool      string
	arguments map[string]string
}

// scenario makes the batches of one run: every effect has a name of its own.
func scenario(seed uint64) [][]scripted {
	random := rand.New(rand.NewPCG(seed, 1))
	tools := []string{"ledger__once", "ledger__keyed", "ledger__verifiable", "ledger__read", "files__write_file"}
	steps := make([][]scripted, 1+random.IntN(3))
	for i := range steps {
		for j := range 1 + random.IntN(5) {
			name := fmt.Sprintf("s%d-%d-%d", seed, i, j)
			c := scripted{tool: tools[random.IntN(len(tools))], arguments: map[string]string{"name": name}}
			if strings.HasPrefix(c.tool, "files") {
				c.arguments = map[string]string{"path": fmt.Sprintf("s%d/journal.txt", seed), "content": name + "\n", "mode": "append"}
			}
			steps[i] = append(steps[i], c)
		}
	}
	return steps
}
