package app_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// TestWebSocketHandshake: what asks for a WebSocket in a wrong way is told so as everywhere, and
// how it would be right.
func TestWebSocketHandshake(t *testing.T) {
	t.Parallel()
	h := newBed(t, newModel(t)).serve("127.0.0.1:0")
	right := map[string]string{"Connection": "keep-alive, Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "MDEyMzQ1Njc4OWFiY2RlZg=="}
	for name, c := range map[string]struct {
		header, value string
		status        int
		told          string
	}{
		"no upgrade":      {"Connection", "", 426, "Upgrade"},
		"to another":      {"Upgrade", "h2c", 426, "Upgrade"},
		"another version": {"Sec-WebSocket-Version", "12", 400, "Sec-WebSocket-Version"},
		"no key":          {"Sec-WebSocket-Key", "", 400, ""},
		"a short key":     {"Sec-WebSocket-Key", "MDEy", 400, ""},
		"no base64":       {"Sec-WebSocket-Key", "!", 400, ""},
	} {
		response := h.ask("GET", "/api/v1/ws", "", func(r *http.Request) {
			for header, value := range right {
				r.Header.Set(header, value)
			}
			if r.Header.Set(c.header, c.value); c.value == "" {
				r.Header.Del(c.header)
			}
		})
		var said struct {
			Status       int
			Code, Detail string
		}
		err := json.NewDecoder(response.Body).Decode(&said)
		_ = response.Body.Close()
		if err != nil || response.StatusCode != c.status || said.Status != c.status || said.Code != "BAD_REQUEST" || strings.Contains(said.Detail, "violation") ||
			response.Header.Get("Content-Type") != "application/problem+json" || c.told != "" && response.Header.Get(c.told) == "" {
			t.Errorf("%s: %d %v %+v %v", name, response.StatusCode, response.Header, said, err)
		}
	}
}
