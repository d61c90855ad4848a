package httpapi

import (
	"crypto/tls"
	"net/http/httptest"
	"testing"
	"time"
)

// TestOriginScheme: over HTTPS a page of the same host that came without it is somebody else's.
func TestOriginScheme(t *testing.T) {
	for origin, row := range map[string]struct{ tls, let bool }{
		"https://localhost:7333":  {true, true},
		"http://localhost:7333":   {true, false},
		"http://localhost:7333/":  {false, true},
		"https://localhost:7333/": {false, true}, // something in front encrypts
	} {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "http://localhost:7333/", nil)
		r.Header.Set("Origin", origin)
		if row.tls {
			r.TLS = &tls.ConnectionState{}
		}
		if err := new(Guard).checkOrigin(r); (err == nil) != row.let {
			t.Errorf("%s, TLS %v: %v", origin, row.tls, err)
		}
	}
}

// TestCookieName: servers of one host name have cookies of their own, and one over HTTPS is that
// host's alone.
func TestCookieName(t *testing.T) {
	for address, want := range map[string]string{
		"http://localhost:7333/": "regie-7333", "http://localhost:7334/": "regie-7334", "http://regie.example/": "regie",
		"https://[::1]:7333/": "__Host-regie-7333", "https://regie.example/": "__Host-regie",
	} {
		c := sessionCookie(httptest.NewRequestWithContext(t.Context(), "GET", address, nil), "x", time.Now())
		if c.Name != want || c.Path != "/" || c.Domain != "" || !c.HttpOnly || c.Secure != (want[0] == '_') {
			t.Errorf("%s: %+v", address, c)
		}
	}
}
