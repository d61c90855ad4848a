package app_test

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/control"
	"github.com/regie-run/regie/internal/httpapi"
)

// TestWebSocketUnsubscribes leaves a session again and again while its log pours in: the connection
// stands, and behind the answer nothing of it comes.
func TestWebSocketUnsubscribes(t *testing.T) {
	t.Parallel()
	steps := []http.HandlerFunc{}
	for range 8 {
		steps = append(steps, says(strings.Repeat("many words ", 80_000)))
	}
	h := newBed(t, newModel(t, steps...)).serve("127.0.0.1:0")
	session := h.session()
	for range steps {
		var sent httpapi.Accepted
		h.json("POST", "/api/v1/sessions/"+session+"/messages", `{"content":"go on"}`, 202, &sent)
		fatal(t, h.engine.Wait(t.Context(), sent.RoundID))
	}
	conn := h.websocket(h.token)
	conn.SetReadLimit(8 << 20)
	until := func(kind string) (before int) {
		t.Helper()
		for ; ; before++ {
			_, data, err := conn.Read(t.Context())
			if err != nil {
				t.Fatalf("waiting for %s: %v", kind, err)
			}
			var n struct {
				Type string `json:"type"`
			}
			if err := json.Unmarshal(data, &n); err != nil || n.Type == kind {
				return before
			}
		}
	}
	say := func(word string) {
		t.Helper()
		fatal(t, conn.Write(t.Context(), websocket.MessageText, fmt.Appendf(nil, `{"type":%q,"session_id":%q}`, word, session)))
	}
	for range 5 {
		say("subscribe")
		if n := until("subscribed"); n != 0 {
			t.Errorf("%d news came of what was left", n)
		}
		until("message") // the rest, of some megabytes, is being written
		say("unsubscribe")
		until("unsubscribed")
	}
}

// TestSilentWebSocket: who follows and says nothing any more is told the end, of the server as of a
// token, and waited for half a second, not five.
func TestSilentWebSocket(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status websocket.StatusCode
		ends   func(h *house, token regie.ID) error
	}{
		"the server stops": {websocket.StatusServiceRestart, func(h *house, _ regie.ID) error { return h.engine.Close() }},
		"the token ends": {websocket.StatusPolicyViolation, func(h *house, token regie.ID) error {
			conn := h.connect()
			return conn.Tokens.Revoke(t.Context(), control.RevokeTokensRequest{TokenIDs: []regie.ID{token}})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newBed(t, newModel(t)).serve("127.0.0.1:0")
			made, _ := h.with("follower", regie.ScopeRead)
			_, read := h.upgraded(made.Secret)
			began := time.Now()
			fatal(t, c.ends(h, made.Token.ID))
			said, err := io.ReadAll(read)
			if took := time.Since(began); err != nil || took > 3*time.Second {
				t.Errorf("it took %s (%v)", took, err)
			}
			if len(said) < 4 || said[0] != 0x88 || binary.BigEndian.Uint16(said[2:]) != uint16(c.status) {
				t.Errorf("it is told %x", said)
			}
		})
	}
}
