//go:build faults

package crash

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
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
	"github.com/regie-run/regie/internal/invariant"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/provider/providertest/strict"
)

// world is everything outside the child: the ledger and the scripted model. It survives the child.
type world struct {
	ledger *httptest.Server
	model  *httptest.Server

	mu         sync.Mutex
	effects    []invariant.Effect
	shown      map[string]bool // the notes that stood in a prompt
	violations []string
	db         view // the child's database, read from here
	looking    sync.RWMutex
	touched    chan struct{}
	// late looks at who brings an effect about, where there are several engines, and reports
	// whether nobody could have kept it from that.
	late func(ctx context.Context, e invariant.Effect) bool
	// latency bounds how long the model thinks before it answers: zero where a process can be
	// killed at any step all the same.
	latency time.Duration
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
	var e invariant.Effect
	if err := json.NewDecoder(r.Body).Decode(&e); err != nil {
		w.violate("the ledger got garbage: %v", err)
		return
	}
	w.mu.Lock()
	e.At = time.Now()
	w.effects = append(w.effects, e) // at once: a probe that comes now sees it
	place, late := len(w.effects)-1, w.late
	w.mu.Unlock()
	switch {
	case e.Class == regie.ClassRead:
	case late != nil && late(r.Context(), e):
		w.mu.Lock()
		w.effects[place].Late = true
		w.mu.Unlock()
	default:
		w.checkIntent(r.Context(), e)
	}
}

// inTime leaves out what came late and had been done again by then, of classes that may be: the
// call was looked at, and is on its way once more.
func inTime(effects []invariant.Effect) (out []invariant.Effect) {
	times := map[regie.ID]int{}
	for _, e := range effects {
		times[e.Key]++
	}
	for _, e := range effects {
		if !e.Late || e.Class == regie.ClassOnce || times[e.Key] == 1 {
			out = append(out, e)
		}
	}
	return out
}

// checkIntent asserts invariants 2 and 3 at the moment of the effect, from outside the process that
// brings it about.
func (w *world) checkIntent(ctx context.Context, e invariant.Effect) {
	w.looking.RLock() // who closes it waits: a connection that outlived its files would write into the next ones
	defer w.looking.RUnlock()
	w.mu.Lock()
	db := w.db
	w.mu.Unlock()
	if db == nil { // the child is dead and its machine too
		return
	}
	invariant.AtEffect(ctx, db, e, w.violate)
	var of uint64
	if n, err := fmt.Sscanf(e.Name, "s%d/", &of); n == 1 && err == nil && planOf(of).kind == "queued" {
		invariant.AtSlots(ctx, db, e, 1, w.violate)
	}
}

var (
	seedOf  = regexp.MustCompile(`seed (\d+)`)
	stepOf  = regexp.MustCompile(`Step (\d+)\.`)
	notesOf = regexp.MustCompile(`seed \d+ note n\d+\.(?: @s\d+/[\w.]*)*`)
)

// serveModel answers by the scenario of the seed in the user's message and the number of replies
// that the thread holds already: it has no memory, as a model has none. Of a thread that was
// summarised it knows the last step from what the summary says.
func (w *world) serveModel(rw http.ResponseWriter, r *http.Request) {
	w.touch()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the child died while it sent
	}
	if err := strict.Chat(body); err != nil {
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
	replies, told, seed, notes, neighbour := 0, 0, uint64(0), map[string]bool{}, false
	for _, m := range request.Messages {
		for _, step := range stepOf.FindAllStringSubmatch(m.Content, -1) {
			n, _ := strconv.Atoi(step[1])
			told = max(told, n)
		}
		if strings.HasPrefix(m.Content, "[CONTEXT_SUMMARY]") {
			if found := seedOf.FindStringSubmatch(m.Content); found != nil && seed == 0 {
				seed, _ = strconv.ParseUint(found[1], 10, 64)
			}
			continue
		}
		for _, text := range notesOf.FindAllString(m.Content, -1) {
			if m.Role == "user" && notes[text] {
				w.violate("the message %q stands twice in a prompt (invariant 7)", text)
			}
			notes[text] = notes[text] || m.Role == "user"
		}
		if m.Role == "assistant" {
			replies++
		}
		neighbour = neighbour || m.Role == "user" && strings.Contains(m.Content, neighbourText)
		if found := seedOf.FindStringSubmatch(m.Content); m.Role == "user" && found != nil {
			seed, _ = strconv.ParseUint(found[1], 10, 64)
		}
	}
	w.mu.Lock()
	maps.Copy(w.shown, notes)
	w.mu.Unlock()
	if neighbour {
		answerNeighbour(rw, replies)
		return
	}
	steps, p := scenario(seed), planOf(seed)
	if p.kind == "long" {
		replies = told
	}
	if strings.HasPrefix(request.Messages[len(request.Messages)-1].Content, provider.SummaryMark) {
		w.summarise(rw, seed, replies)
		return
	}
	if w.latency > 0 {
		select {
		case <-time.After(rand.N(w.latency)):
		case <-r.Context().Done():
		}
	}
	rw.Header().Set("Content-Type", "text/event-stream")
	switch {
	case p.dialect == regie.DialectJSON:
		for _, piece := range strings.SplitAfter(inJSON(p, steps, replies), ",") {
			writeChunks(rw, `{"content":`+quote(piece)+`}`)
		}
		finish(rw, "stop")
		return
	case replies >= len(steps) && p.session == regie.SessionAutomation && !p.silent(replies-len(steps)):
		writeChunks(rw, fmt.Sprintf(`{"tool_calls":[{"index":0,"id":"c%d","type":"function","function":{"name":"session__complete","arguments":"{\"summary\":\"All done.\"}"}}]}`, replies))
		finish(rw, "tool_calls")
		return
	case replies >= len(steps):
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

// summarise answers a request for a summary.
func (w *world) summarise(rw http.ResponseWriter, seed uint64, replies int) {
	if !summarises(seed) {
		http.Error(rw, `{"error":{"message":"no summaries here"}}`, http.StatusBadRequest)
		return
	}
	rw.Header().Set("Content-Type", "text/event-stream")
	var rest strings.Builder
	for i := range 14 {
		fmt.Fprintf(&rest, " What is behind Step %d is still open, and nothing of it was refused.", replies+i)
	}
	writeChunks(rw, fmt.Sprintf(`{"content":"seed %d: done up to Step %d.%s"}`, seed, replies, rest.String()))
	finish(rw, "stop")
}

// inJSON is a reply in the JSON dialect.
func inJSON(p plan, steps [][]scripted, replies int) string {
	reply := map[string]any{"pre_text": fmt.Sprintf("Step %d.", replies+1)}
	switch {
	case replies >= len(steps):
		reply["pre_text"] = "All done."
		if p.session == regie.SessionAutomation && !p.silent(replies-len(steps)) {
			reply["completed"] = true
		}
	case steps[replies][0].tool == garbage:
		return fmt.Sprintf("Well, step %d: {\"action\": \"none\"}", replies+1)
	default:
		list := "action_commands"
		switch {
		case steps[replies][0].tool == "ledger__read":
			list = "data_commands"
		case replies+1 < len(steps) || p.seed%2 == 0:
			reply["keep_control"] = true
		default:
			reply["post_text"] = "All of it is done."
		}
		var commands []map[string]any
		for _, c := range steps[replies] {
			commands = append(commands, map[string]any{"type": strings.Replace(c.tool, "__", ".", 1), "params": c.arguments})
		}
		reply[list] = commands
	}
	data, _ := json.Marshal(reply)
	return string(data)
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
