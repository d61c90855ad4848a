package app_test

import (
	"bufio"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestCompatTooLarge says of a body that it is too large before any of it has come.
func TestCompatTooLarge(t *testing.T) {
	t.Parallel()
	h := newBed(t, newModel(t)).serve("127.0.0.1:0")
	for _, path := range []string{passChat, "/v1/responses", passMessages, passMessages + "/count_tokens"} {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(h.served.URL, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		if err := conn.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Write([]byte("POST " + path + " HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + h.token + "\r\nContent-Type: application/json\r\nContent-Length: 99999999\r\n\r\n")); err != nil {
			t.Fatal(err)
		}
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Errorf("%s: %v", path, err)
		} else {
			if response.StatusCode != http.StatusRequestEntityTooLarge {
				t.Errorf("%s: %d", path, response.StatusCode)
			}
			response.Body.Close()
		}
		conn.Close()
	}
}
