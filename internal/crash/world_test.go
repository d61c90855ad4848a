//go:build faults

package crash

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	_ "modernc.org/sqlite" // to look at the child's database from outside

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider/openai"
)

// effect is one side effect as the ledger sees it.
type effect struct {
	Key   regie.ID          `json:"key"` // the call id: the idempotency key
	Class regie.EffectClass `json:"class"`
	Name  string            `json:"name"`
	PID   int               `json:"pid"`
	At    time.Time         `json:"-"` // when it came
}

// world is everything outside the child: the ledger and the scripted model. It survives the child.
type world struct {
	ledger *httptest.Server
	model  *httptest.Server

	mu         sync.Mutex
	effects    []effect
	shown      map[string]bool // the notes that stood in a prompt
	violations []string
	db         *sql.DB // the child's database, read from here
	looking    sync.RWMutex
	touched    chan struct{}
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{shown: map[string]bool{}, touched: make(chan struct{}, 1)}
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
	w.mu.Lock()
	e.At = time.Now()
	w.effects = append(w.effects, e) // at once: a probe that comes now sees it
	w.mu.Unlock()
	if e.Class != regie.ClassRead {
		w.checkIntent(r.Context(), e)
	}
}

// checkIntent asserts invariant 2 at the moment of the effect: its intent is committed, visible from another process.
func (w *world) checkIntent(ctx context.Context, e effect) {
	w.looking.RLock() // who closes it waits: a connection that outlived its files would write into the next ones
	defer w.looking.RUnlock()
	w.mu.Lock()
	db := w.db
	w.mu.Unlock()
	if db == nil { // the child is dead and its machine too
		return
	}
	var state string
	err := db.QueryRowContext(ctx, "SELECT state FROM calls WHERE id = ?", e.Key).Scan(&state)
	switch {
	case ctx.Err() != nil: // the child died while we looked
	case err != nil:
		w.violate("an effect of %s without a stored call %s: %v", e.Name, e.Key, err)
	case state == "UNKNOWN": // it was STARTED, and cut by a stop while it was on its way here
	case state != "STARTED":
		w.violate("an effect of %s while its call is %s, not STARTED (invariant 2)", e.Name, state)
	default:
		w.checkAllowed(ctx, db, e)
	}
}

// checkAllowed asserts invariant 3 at the moment of the effect: where a person was asked about the call, the stored answer to the
// latest question allows exactly these arguments.
func (w *world) checkAllowed(ctx context.Context, db *sql.DB, e effect) {
	var answer sql.NullString
	var arguments string
	err := db.QueryRowContext(ctx, `SELECT v.answer, coalesce(v.edited, v.arguments) FROM reviews v JOIN approvals a ON a.id = v.approval_id
		WHERE v.call_id = ? ORDER BY a.created_at DESC, a.id DESC LIMIT 1`, e.Key).Scan(&answer, &arguments)
	var args effectArgs
	switch {
	case ctx.Err() != nil, errors.Is(err, sql.ErrNoRows):
	case err != nil, json.Unmarshal([]byte(arguments), &args) != nil:
		w.violate("what was asked about %s cannot be read: %v", e.Name, err)
	case !strings.HasPrefix(answer.String, "allow"):
		w.violate("an effect of %s, of which the person said %q (invariant 3)", e.Name, answer.String)
	case args.Name != e.Name:
		w.violate("an effect of %s where %s was allowed (invariant 3)", e.Name, args.Name)
	}
}

var (
	seedOf  = regexp.MustCompile(`seed (\d+)`)
	notesOf = regexp.MustCompile(`seed \d+ note n\d+\.`)
)

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
	replies, seed, notes := 0, uint64(0), map[string]bool{}
	for _, m := range request.Messages {
		for _, text := range notesOf.FindAllString(m.Content, -1) {
			if m.Role == "user" && notes[text] {
				w.violate("the message %q stands twice in a prompt (invariant 7)", text)
			}
			notes[text] = notes[text] || m.Role == "user"
		}
		if m.Role == "assistant" {
			replies++
		}
		if found := seedOf.FindStringSubmatch(m.Content); m.Role == "user" && found != nil {
			seed, _ = strconv.ParseUint(found[1], 10, 64)
		}
	}
	w.mu.Lock()
	maps.Copy(w.shown, notes)
	w.mu.Unlock()
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
