package notify

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/regie-run/regie"
)

const webhookSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

func newMessageOf(kind regie.NotificationKind) *Message {
	return &Message{
		ID: regie.NewID(), Kind: kind, CreatedAt: time.Now().UTC(), SessionID: regie.NewID(), RoundID: regie.NewID(), ObjectID: regie.NewID(),
		Title: "Un agent attend — é", Text: "Zeile 1\nZeile 2", URL: "https://r.example/inbox/1",
	}
}

// TestWebhook_Verified has the Go and the JavaScript library of Standard Webhooks verify a
// delivery.
func TestWebhook_Verified(t *testing.T) {
	t.Parallel()
	node := findNode(t)
	verifier, err := standardwebhooks.NewWebhook(webhookSecret)
	if err != nil {
		t.Fatal(err)
	}
	var seen []string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if err := verifier.Verify(body, r.Header); err != nil {
			t.Errorf("the Go library: %v", err)
		}
		headers := map[string]string{}
		for name := range r.Header {
			headers[strings.ToLower(name)] = r.Header.Get(name)
		}
		in, _ := json.Marshal(map[string]any{"secret": webhookSecret, "headers": headers, "body": string(body)})
		command := exec.CommandContext(r.Context(), node, filepath.Join("testdata", "verify.mjs"))
		command.Stdin = strings.NewReader(string(in))
		out, err := command.CombinedOutput()
		if err != nil {
			t.Errorf("the JavaScript library: %v\n%s", err, out)
		}
		seen = append(seen, string(out))
	}))
	defer server.Close()
	m := newMessageOf(regie.NotifyApproval)
	if err := (&webhook{server.URL, webhookSecret}).send(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf(`{"id":"%[1]s","same":true,"type":"approval","object":"%[2]s","title":"Un agent attend — é","forged":"No matching signature found"}`, m.ID, m.ObjectID)
	if len(seen) != 1 || strings.TrimSpace(seen[0]) != want {
		t.Errorf("the JavaScript library read %s, want %s", seen, want)
	}
}

// findNode returns node, where the library is installed too.
func findNode(t *testing.T) string {
	t.Helper()
	node, err := exec.LookPath("node")
	if err == nil {
		_, err = os.Stat(filepath.Join("..", "compat", "testdata", "npm", "node_modules", "standardwebhooks", "package.json"))
	}
	if err != nil && os.Getenv("REGIE_CI") == "1" {
		t.Fatalf("the JavaScript library of Standard Webhooks is not installed (make npm installs it): %v", err)
	}
	if err != nil {
		t.Skip("the JavaScript library of Standard Webhooks is not installed: make npm installs it")
	}
	return node
}

// ntfyServer is a server that takes messages as https://docs.ntfy.sh/publish/ describes it. It
// keeps one message for each sequence id.
type ntfyServer struct {
	token    string
	messages map[string]ntfyMessage
}

type ntfyMessage struct{ topic, title, text, priority, tags, click string }

var (
	sequenceID  = regexp.MustCompile(`^[-_A-Za-z0-9]{1,64}$`)
	ntfyLevels  = map[string]bool{"min": true, "low": true, "default": true, "high": true, "max": true, "urgent": true}
	ntfyTopic   = regexp.MustCompile(`^/[-_A-Za-z0-9]{1,64}$`)
	ntfyMaxBody = int64(4096)
)

func (s *ntfyServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, ntfyMaxBody))
	title, decoded := new(mime.WordDecoder).DecodeHeader(r.Header.Get("Title"))
	priority := r.Header.Get("Priority")
	switch {
	case s.token != "" && r.Header.Get("Authorization") != "Bearer "+s.token:
		http.Error(w, `{"code":40301,"http":403,"error":"forbidden"}`, http.StatusForbidden)
		return
	case err != nil, decoded != nil, r.Method != http.MethodPost, !ntfyTopic.MatchString(r.URL.Path),
		priority != "" && !ntfyLevels[priority], !sequenceID.MatchString(r.Header.Get("X-Sequence-Id")):
		http.Error(w, `{"code":40000,"http":400,"error":"bad request"}`, http.StatusBadRequest)
		return
	}
	s.messages[r.Header.Get("X-Sequence-Id")] = ntfyMessage{r.URL.Path, title, string(body), priority, r.Header.Get("Tags"), r.Header.Get("Click")}
	fmt.Fprintf(w, `{"id":"x","event":"message","topic":%q}`, r.URL.Path[1:])
}

// TestNtfy publishes to a receiver made from the documentation of ntfy.
func TestNtfy(t *testing.T) {
	t.Parallel()
	n := &ntfyServer{token: "tk_1", messages: map[string]ntfyMessage{}}
	server := httptest.NewServer(n)
	defer server.Close()
	m := newMessageOf(regie.NotifyApproval)
	for range 2 { // as after a crash
		if err := (&ntfy{server.URL + "/topic", "tk_1"}).send(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	test := &Message{ID: regie.NewID(), Kind: regie.NotifyTest, Title: "Hello"}
	if err := (&ntfy{server.URL + "/topic", "tk_1"}).send(t.Context(), test); err != nil {
		t.Fatal(err)
	}
	want := ntfyMessage{"/topic", m.Title, m.Text, "high", "approval", m.URL}
	if len(n.messages) != 2 || n.messages[m.ID.String()] != want {
		t.Errorf("kept are %+v, want %+v", n.messages, want)
	}
	if got := n.messages[test.ID.String()]; got != (ntfyMessage{"/topic", "Hello", "Hello", "", "test", ""}) {
		t.Errorf("the test is %+v", got)
	}
	if err := (&ntfy{server.URL + "/topic", "wrong"}).send(t.Context(), m); err == nil || err.Error() != "the receiver answered 403" {
		t.Errorf("with a wrong token: %v", err)
	}
}

// TestPost_Refused: what is no 2xx is no delivery, redirects are not followed, and no error names
// the address, which may be a secret.
func TestPost_Refused(t *testing.T) {
	t.Parallel()
	if transport, is := receivers.Transport.(*http.Transport); !is || transport.Proxy != nil {
		t.Error("a proxy of the environment may be used")
	}
	followed := false
	mux := http.NewServeMux()
	mux.HandleFunc("/elsewhere", func(http.ResponseWriter, *http.Request) { followed = true })
	mux.HandleFunc("/500", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "secret\x1b[2J", http.StatusInternalServerError)
	})
	for _, code := range []int{301, 302, 303, 307, 308} {
		mux.Handle(fmt.Sprintf("/%d", code), http.RedirectHandler("/elsewhere", code))
	}
	mux.HandleFunc("/broken", func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			_ = conn.Close()
		}
	})
	hung := make(chan struct{})
	mux.HandleFunc("/hangs", func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-hung:
		}
	})
	endless := func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := w.Write(make([]byte, 1<<16)); err != nil {
				return
			}
		}
	}
	mux.HandleFunc("/endless", endless)
	server := httptest.NewServer(mux)
	defer server.Close()
	defer close(hung)
	for path, want := range map[string]string{
		"/500": "the receiver answered 500", "/404": "the receiver answered 404", "/301": "the receiver answered 301",
		"/302": "the receiver answered 302", "/303": "the receiver answered 303", "/307": "the receiver answered 307",
		"/308": "the receiver answered 308", "/broken": "the receiver did not take it: EOF", "/hangs": "the receiver did not answer in time", "/endless": "",
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		if path == "/hangs" {
			ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
		}
		err := post(ctx, server.URL+path+"?topic=hidden", "x")
		cancel()
		if got := fmt.Sprint(err); want != "" && got != want || want == "" && err != nil || strings.Contains(got, "hidden") || regie.CodeOf(err) != regie.CodeNotDelivered && want != "" {
			t.Errorf("%s: %v, want %s", path, err, want)
		}
	}
	if followed {
		t.Error("a redirect was followed")
	}
	if err := (&webhook{server.URL, "whsec_no base64!"}).send(t.Context(), newMessageOf(regie.NotifyTest)); err == nil || !strings.Contains(err.Error(), "whsec_ and base64") {
		t.Errorf("with a bad secret: %v", err)
	}
}
