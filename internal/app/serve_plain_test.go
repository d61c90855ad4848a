package app_test

import (
	"bufio"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/regie-run/regie"
)

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
	h := newHarness(t, newModel(t, once(half, replyWith("The answer is 42, and this is why.")), once(refuses(http.StatusUnauthorized, `{"error":{"message":"wrong key"}}`), hangs(asked)))).serve("127.0.0.1:0")
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
		fatal(t, lines.Err())
		return all.String()
	}
	nothing := func(string) {}
	var end sync.Once
	if got, want := tell("why?", func(string) { end.Do(func() { close(heard) }) }),
		`{"content":"The answer is 4"}`+"\n"+`{"content":"2, and this is why."}`+"\n[DONE]\n"; got != want {
		t.Errorf("a reply whose stream broke off: %s, want %s", got, want)
	}
	if got := tell("and now?", nothing); got != `{"end_reason":"PROVIDER_ERROR"}`+"\n[DONE]\n" {
		t.Errorf("a run that was refused: %s", got)
	}
	id, err := regie.ParseID(session)
	fatal(t, err)
	stopped, queued := make(chan string, 1), make(chan string, 1)
	go func() { stopped <- tell("go on", nothing) }()
	<-asked
	go func() { queued <- tell("and this", nothing) }()
	h.until(h.engine.Control(), id, func(e *regie.Event) bool { return e.Type == regie.EventMessagePending })
	h.json("POST", "/api/v1/sessions/"+session+"/stop", "{}", http.StatusOK, nil)
	if got := <-stopped; !strings.HasPrefix(got, `{"end_reason":"STOPPED"`) {
		t.Errorf("a run that was stopped: %s", got)
	}
	if got := <-queued; got != "[DONE]\n" {
		t.Errorf("a message that was taken back: %s", got)
	}
}
