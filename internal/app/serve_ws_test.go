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

// TestWebSocketFrames: a frame that announces more than any word holds ends the connection at once,
// with 1009, and nothing of it is waited for; so do words that are too long, in one frame and in
// many.
func TestWebSocketFrames(t *testing.T) {
	h := newBed(t, newModel(t)).serve("127.0.0.1:0")
	part := func(head byte) string {
		return string(append([]byte{head, 0x80 | 126, 0x0b, 0xb8, 0, 0, 0, 0}, make([]byte, 3000)...))
	}
	for name, frames := range map[string]string{
		"2^40 announced":          "\x81\xff\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00{",
		"2^40 in a second frame":  "\x01\x81\x00\x00\x00\x00{" + "\x80\xff\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00{",
		"two frames of one word":  part(0x01) + part(0x80),
		"one byte more than 4096": "\x81\xfe\x10\x01\x00\x00\x00\x00" + strings.Repeat(" ", 4097),
	} {
		conn, read := h.upgraded(h.token)
		if _, err := io.WriteString(conn, frames); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		said, _ := io.ReadAll(read) // it ends
		if len(said) < 4 || said[0] != 0x88 || binary.BigEndian.Uint16(said[2:]) != uint16(websocket.StatusMessageTooBig) || time.Since(began) > 3*time.Second {
			t.Errorf("%s: %x after %s", name, said, time.Since(began))
		}
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
