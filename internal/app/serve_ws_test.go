package app_test

import (
	"encoding/binary"
	"io"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/control"
)

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
			h := newHarness(t, newModel(t)).serve("127.0.0.1:0")
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
