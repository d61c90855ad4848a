package app_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/google/go-cmp/cmp"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
)

// frames reads a stream of server-sent events to its end, or until enough says so: each frame as it
// came.
func frames(t *testing.T, body io.Reader, enough func(frame string) bool) (out []string) {
	t.Helper()
	scanner := bufio.NewReader(body)
	var frame strings.Builder
	for {
		line, err := scanner.ReadString('\n')
		if err != nil {
			return out
		}
		if line != "\n" {
			frame.WriteString(line)
			continue
		}
		whole := frame.String()
		frame.Reset()
		if strings.HasPrefix(whole, ":") || whole == "" {
			continue
		}
		out = append(out, whole)
		if enough != nil && enough(whole) {
			return out
		}
	}
}

// kinds are what frames are called.
func kinds(frames []string) (out []string) {
	for _, f := range frames {
		for line := range strings.Lines(f) {
			if kind, ok := strings.CutPrefix(line, "event: "); ok {
				out = append(out, strings.TrimSpace(kind))
			}
		}
	}
	return out
}

// TestMessageStream says something and reads the round to its end; the plain form is what a client
// of ten lines reads.
func TestMessageStream(t *testing.T) {
	t.Parallel()
	h := newHarness(t, newModel(t, replyWith("I look.", call{"a", "files__list_files", `{}`}), replyWith("Nothing there."), replyWith("Still nothing."))).serve("127.0.0.1:0")
	session := h.session()
	status, got := h.read("POST", "/api/v1/sessions/"+session+"/messages", `{"content":"what is here?"}`, nil, carrying("Accept", "text/event-stream"))
	var durable []string // deltas of a quick reply may come with its message alone
	for _, kind := range kinds(got) {
		if !strings.HasPrefix(kind, "stream_") && kind != "session" { // its name comes in between
			durable = append(durable, kind)
		}
	}
	if diff := cmp.Diff([]string{"message", "round", "message", "tool_result", "message", "message", "round"}, durable); status != 200 || diff != "" {
		t.Errorf("%d (-want +got):\n%s", status, diff)
	}
	var last struct {
		Data struct {
			State regie.RoundState `json:"state"`
		} `json:"data"`
	}
	_, data, _ := strings.Cut(got[len(got)-1], "data: ")
	if err := json.Unmarshal([]byte(data), &last); err != nil || last.Data.State != regie.RoundEnded {
		t.Errorf("it ends with %s", got[len(got)-1])
	}
	said := h.ask("POST", "/api/v1/sessions/"+session+"/messages?format=openai", `{"content":"and now?"}`)
	defer said.Body.Close()
	plain, err := io.ReadAll(said.Body)
	var text strings.Builder
	for line := range strings.Lines(string(plain)) {
		var said struct {
			Content string `json:"content"`
		}
		if data, ok := strings.CutPrefix(line, "data: {"); ok && json.Unmarshal([]byte("{"+data), &said) == nil {
			text.WriteString(said.Content)
		}
	}
	if err != nil || text.String() != "Still nothing." || !strings.HasSuffix(string(plain), "data: [DONE]\n\n") {
		t.Errorf("the plain form is %q (%v)", plain, err)
	}
	var named store.SessionView
	if h.json("GET", "/api/v1/sessions/"+session, "", 200, &named); named.Name != "what is here?" {
		t.Errorf("the session is called %q", named.Name)
	}
}

// TestStreamOverRestart follows a reply while its server is closed in the middle: the client finds
// the next one, and has the whole log in order.
func TestStreamOverRestart(t *testing.T) {
	t.Parallel()
	begun, release := make(chan struct{}), make(chan struct{})
	slowly := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		chunk(w, map[string]any{"content": "one "})
		select {
		case begun <- struct{}{}:
		case <-release:
		case <-r.Context().Done():
			return
		}
		select {
		case <-release:
		case <-r.Context().Done():
			return
		}
		replyWith("two")(w, r)
	}
	b := newHarness(t, newModel(t, slowly))
	h := b.serve("127.0.0.1:0")
	addr := strings.TrimPrefix(h.served.URL, "http://")
	session := h.session()
	settings := b.settings
	settings.Server, settings.Token = h.served.URL, h.token
	conn, err := app.Connect(t.Context(), app.Options{Config: settings})
	fatal(t, err)
	defer conn.Close()
	id, err := regie.ParseID(session)
	fatal(t, err)
	run, err := conn.Submit(t.Context(), dispatch.RunRequest{ClientID: "1", SessionID: id, Text: "count"})
	fatal(t, err)
	<-begun
	var seqs []int64
	said := ""
	followed := make(chan error, 1)
	heard := make(chan struct{})
	go func() {
		first := true
		followed <- conn.Events(t.Context(), id, 0, func(item dispatch.Item) error {
			switch {
			case item.Delta != nil:
				said += item.Delta.Content
				if first {
					first = false
					close(heard)
				}
			case item.Event != nil:
				seqs = append(seqs, item.Event.Seq)
				if strings.Contains(string(item.Event.Body), `"state":"ENDED"`) {
					return errSeen
				}
			}
			return nil
		})
	}()
	<-heard // in the middle of the reply, who joins gets what was said so far
	go func() { close(release) }()
	fatal(t, h.engine.Close())
	b.serve(addr)
	if err := <-followed; !errors.Is(err, errSeen) {
		t.Fatal(err)
	}
	for i, seq := range seqs {
		if seq != int64(i+1) {
			t.Fatalf("the log came as %v", seqs)
		}
	}
	view, err := conn.Get(t.Context(), run.RoundID)
	if err != nil || view.Round.End != regie.EndAnswered || !strings.HasPrefix(said, "one ") {
		t.Errorf("%s, %v; heard %q", view.Round.End, err, said)
	}
}

// TestWebSocket follows two sessions and all of them on one connection.
func TestWebSocket(t *testing.T) {
	t.Parallel()
	h := newHarness(t, newModel(t, replyWith("Done."))).serve("127.0.0.1:0")
	one, other := h.session(), h.session()
	conn := h.websocket(h.token)
	say := func(format string, args ...any) {
		t.Helper()
		fatal(t, conn.Write(t.Context(), websocket.MessageText, fmt.Appendf(nil, format, args...)))
	}
	type told struct {
		Type    string `json:"type"`
		Session string `json:"session_id"`
		ID      int64  `json:"id"`
		Data    struct {
			Code regie.Code `json:"code"`
			Body struct {
				State string `json:"state"`
			} `json:"data"`
		} `json:"data"`
	}
	hear := func() (n told) {
		t.Helper()
		_, data, err := conn.Read(t.Context())
		if err == nil {
			err = json.Unmarshal(data, &n)
		}
		fatal(t, err)
		return n
	}
	for _, c := range []struct{ says, kind, code string }{
		{`{"type":"subscribe","session_id":"` + one + `"}`, "subscribed", ""},
		{`{"type":"subscribe","session_id":"` + one + `"}`, "error", "CONFLICT"},
		{`{"type":"subscribe","session_id":"` + regie.NewID().String() + `"}`, "error", "NOT_FOUND"},
		{`{"type":"subscribe","session_id":"x"}`, "error", "BAD_ID"},
		{`{"type":"shout"}`, "error", "BAD_REQUEST"},
		{`{"Type":"subscribe"}`, "error", "BAD_REQUEST"},
		{`nonsense`, "error", "BAD_REQUEST"},
		{`{"type":"subscribe","session_id":"` + other + `","after":-1}`, "error", "BAD_REQUEST"},
		{`{"type":"subscribe","session_id":"` + other + `"}`, "subscribed", ""},
		{`{"type":"subscribe","session_id":"*"}`, "subscribed", ""},
		{`{"type":"unsubscribe","session_id":"` + other + `"}`, "unsubscribed", ""},
		{`{"type":"unsubscribe","session_id":"` + other + `"}`, "error", "NOT_FOUND"},
		{`{"type":"unsubscribe"}`, "error", "NOT_FOUND"},
	} {
		say("%s", c.says)
		for {
			n := hear()
			if n.ID > 0 { // the logs begin to come
				continue
			}
			if n.Type != c.kind || string(n.Data.Code) != c.code {
				t.Errorf("%s: %+v", c.says, n)
			}
			break
		}
	}
	h.json("POST", "/api/v1/sessions/"+one+"/messages", `{"content":"go"}`, 202, nil)
	var last int64
	watched := false
	for ended := false; !ended || !watched; {
		n := hear()
		switch {
		case n.Session == "*":
			watched = watched || n.Type == "round" && n.Data.Body.State == "ENDED"
		case n.Session != one:
			t.Errorf("news of %s", n.Session)
		case n.ID > 0:
			if last != 0 && n.ID != last+1 {
				t.Errorf("%d after %d", n.ID, last)
			}
			last = n.ID
			ended = n.Type == "round" && n.Data.Body.State == "ENDED"
		}
	}
	closed := make(chan error, 1)
	go func() { closed <- h.engine.Close() }()
	for {
		if _, _, err := conn.Read(t.Context()); err != nil {
			if websocket.CloseStatus(err) != websocket.StatusServiceRestart {
				t.Errorf("the end: %v", err)
			}
			break
		}
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
}
