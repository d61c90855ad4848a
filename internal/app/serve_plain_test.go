package app_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/access"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/control"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
)

// TestPlainEvents follows sessions in the plain form: history is told and ends nothing, an idle
// session's log has an end, an open round's is its own, and a wait is told only where it is one
// now.
func TestPlainEvents(t *testing.T) {
	t.Parallel()
	asks := says("I write.", call{"w", "files__write_file", `{"path":"x","content":"x"}`})
	busy, free := make(chan struct{}), make(chan struct{})
	b := newBed(t, newModel(t, asks, says("First."), func(w http.ResponseWriter, r *http.Request) {
		close(busy)
		select {
		case <-free:
			says("Second.")(w, r)
		case <-r.Context().Done():
		}
	}, asks)) //nolint:gocritic // it says the same again
	h := b.serve("127.0.0.1:0")
	id, err := regie.ParseID(h.session())
	if err != nil {
		t.Fatal(err)
	}
	follow := func(session regie.ID, after int64) io.ReadCloser {
		return h.ask("GET", fmt.Sprintf("/api/v1/sessions/%s/events?format=openai&after=%d", session, after), "").Body
	}
	tells := func(what string, body io.ReadCloser, want string) {
		t.Helper()
		defer body.Close()
		said, err := io.ReadAll(body)
		var lines strings.Builder
		for line := range strings.Lines(string(said)) {
			data, ok := strings.CutPrefix(line, "data: ")
			var piece struct {
				Content string `json:"content"`
			}
			if _ = json.Unmarshal([]byte(data), &piece); piece.Content != "" { // in one piece or in several
				lines.WriteString(piece.Content)
			} else if ok {
				lines.WriteString(" " + strings.TrimSpace(data))
			}
		}
		if err != nil || lines.String() != want+" [DONE]" {
			t.Errorf("%s: %q, want %q (%v)", what, lines.String(), want, err)
		}
	}
	park := func(session regie.ID) regie.ID {
		t.Helper()
		if _, err := h.engine.Service().Rounds.Submit(access.AsOwner(t.Context()), dispatch.RunRequest{ClientID: "1", SessionID: session, Text: "write", Policy: approval.Policy{OnApproval: approval.Park}}); err != nil {
			t.Fatal(err)
		}
		return b.parked(h.engine.Control(), session).Approvals[0].ID
	}
	head := func(session regie.ID) int64 {
		t.Helper()
		found, err := h.engine.Service().Sessions.List(access.AsOwner(t.Context()), store.SessionFilter{ID: session, Limit: 1})
		if err != nil || len(found) != 1 {
			t.Fatal(err)
		}
		return found[0].Head
	}
	tells("a new session", follow(id, 0), "")
	waits := ` {"waiting":true,"approval_id":"` + park(id).String() + `"}`
	tells("a wait", follow(id, 0), "I write."+waits)
	tells("a wait behind all that was said", follow(id, head(id)), waits)
	rounds, err := h.engine.Service().Rounds.List(access.AsOwner(t.Context()), store.RoundFilter{SessionID: id, Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.engine.Service().Rounds.Interrupt(access.AsOwner(t.Context()), rounds[0].Round.ID); err != nil {
		t.Fatal(err)
	}
	if err := h.engine.Wait(t.Context(), rounds[0].Round.ID); err != nil {
		t.Fatal(err)
	}
	h.read("POST", "/api/v1/sessions/"+id.String()+"/messages", `{"content":"go on"}`, nil, carrying("Accept", "text/event-stream"))
	const history = "I write.\n\nFirst."
	tells("an idle session", follow(id, 0), history)
	tells("an idle session, behind its end", follow(id, head(id)), "")
	h.json("POST", "/api/v1/sessions/"+id.String()+"/messages", `{"content":"and on"}`, 202, nil)
	<-busy
	open := follow(id, 0)
	close(free)
	tells("an open round", open, history+"\n\nSecond.")
}

// TestPlainBehindApproval sends a message in the plain form that waits behind an approval of
// somebody else's: the stream says so and ends.
func TestPlainBehindApproval(t *testing.T) {
	t.Parallel()
	b := newBed(t, newModel(t, says("I write.", call{"w", "files__write_file", `{"path":"x","content":"x"}`})))
	h := b.serve("127.0.0.1:0")
	id, err := regie.ParseID(h.session())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.engine.Service().Rounds.Submit(access.AsOwner(t.Context()), dispatch.RunRequest{ClientID: "1", SessionID: id, Text: "write", Policy: approval.Policy{OnApproval: approval.Park}}); err != nil {
		t.Fatal(err)
	}
	approval := b.parked(h.engine.Control(), id).Approvals[0].ID
	sends := h.add(control.TokenRequest{Name: "sends", Scopes: []regie.TokenScope{regie.ScopeChat}})
	for name, row := range map[string]struct {
		as   func(*http.Request)
		want string
	}{
		"who reads":     {bearer(h.token), `{"waiting":true,"approval_id":"` + approval.String() + `"}`},
		"who only says": {bearer(sends.Secret), `{"waiting":true}`},
	} {
		response := h.ask("POST", "/api/v1/sessions/"+id.String()+"/messages?format=openai", `{"content":"later","when_busy":"queue"}`, row.as)
		said, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil || !strings.HasSuffix(string(said), "data: "+row.want+"\n\ndata: [DONE]\n\n") {
			t.Errorf("%s: %q %v", name, said, err)
		}
		_, frames := h.read("POST", "/api/v1/sessions/"+id.String()+"/messages", `{"content":"later","when_busy":"queue"}`, func(frame string) bool {
			return strings.Contains(frame, "message_pending")
		}, row.as, carrying("Accept", "text/event-stream"))
		if len(frames) < 2 || strings.TrimSpace(frames[len(frames)-2]) != "event: waiting\ndata: "+row.want {
			t.Errorf("%s, with events: %q", name, frames)
		}
	}
}

// TestPlainEnds has a client of ten lines told once what a reply says whose stream broke off, and
// how a run ended that has no answer.
func TestPlainEnds(t *testing.T) {
	t.Parallel()
	heard := make(chan struct{})
	half := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		chunk(w, map[string]any{"content": "The answer is 4"})
		select {
		case <-heard:
		case <-r.Context().Done():
		}
	}
	asked := make(chan struct{}, 1)
	h := newBed(t, newModel(t, once(half, says("The answer is 42, and this is why.")), once(refuses(http.StatusUnauthorized, `{"error":{"message":"wrong key"}}`), hangs(asked)))).serve("127.0.0.1:0")
	session := h.session()
	tell := func(said string, each func(line string)) string {
		t.Helper()
		response := h.ask("POST", "/api/v1/sessions/"+session+"/messages?format=openai", `{"content":"`+said+`","when_busy":"queue"}`)
		defer response.Body.Close()
		var all strings.Builder
		lines := bufio.NewScanner(response.Body)
		for lines.Scan() {
			if line, is := strings.CutPrefix(lines.Text(), "data: "); is {
				all.WriteString(line + "\n")
				each(line)
			}
		}
		if err := lines.Err(); err != nil {
			t.Fatal(err)
		}
		return all.String()
	}
	nothing := func(string) {}
	var end sync.Once
	if got, want := tell("why?", func(string) { end.Do(func() { close(heard) }) }),
		`{"content":"The answer is 4"}`+"\n"+`{"content":"2, and this is why."}`+"\n[DONE]\n"; got != want {
		t.Errorf("a reply whose stream broke off: %s, want %s", got, want)
	}
	if got := tell("and now?", nothing); !strings.HasPrefix(got, `{"end_reason":"PROVIDER_ERROR","detail":"`) || !strings.Contains(got, "wrong key") || !strings.HasSuffix(got, "\n[DONE]\n") {
		t.Errorf("a run that was refused: %s", got)
	}
	response := h.ask("GET", "/api/v1/sessions/"+session+"/events?format=openai", "")
	defer response.Body.Close()
	if all, err := io.ReadAll(response.Body); err != nil || strings.Count(string(all), "The answer") != 1 || strings.Count(string(all), "PROVIDER_ERROR") != 1 {
		t.Errorf("as history: %s, %v", all, err)
	}
	id, err := regie.ParseID(session)
	if err != nil {
		t.Fatal(err)
	}
	stopped, queued := make(chan string, 1), make(chan string, 1)
	go func() { stopped <- tell("go on", nothing) }()
	<-asked
	go func() { queued <- tell("and this", nothing) }()
	h.until(h.engine.Control(), id, func(e *regie.Event) bool { return e.Type == regie.EventMessagePending })
	h.json("POST", "/api/v1/sessions/"+session+"/stop", "{}", http.StatusOK, nil)
	if got := <-stopped; !strings.HasPrefix(got, `{"end_reason":"STOPPED"`) {
		t.Errorf("a run that was stopped: %s", got)
	}
	if got := <-queued; got != `{"withdrawn":true}`+"\n[DONE]\n" {
		t.Errorf("a message that was taken back: %s", got)
	}
}
