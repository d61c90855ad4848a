package app_test

import (
	"bufio"
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/regie-run/regie/internal/app"
)

// TestServerSaysNothingRaw: what net/http says of its own accord goes to the engine's log, and not
// as a raw line to the terminal of whoever serves: a TLS handshake that was left in the middle, by
// a client or by the stop, is for who looks for it.
func TestServerSaysNothingRaw(t *testing.T) { // not parallel: it looks at the log of the whole process
	known := httptest.NewTLSServer(http.NotFoundHandler())
	defer known.Close()
	key, err := x509.MarshalPKCS8PrivateKey(known.TLS.Certificates[0].PrivateKey)
	fatal(t, err)
	dir := t.TempDir()
	c := app.ServeConfig{Addr: "127.0.0.1:0", CertFile: filepath.Join(dir, "cert.pem"), KeyFile: filepath.Join(dir, "key.pem")}
	for name, block := range map[string]pem.Block{c.CertFile: {Type: "CERTIFICATE", Bytes: known.Certificate().Raw}, c.KeyFile: {Type: "PRIVATE KEY", Bytes: key}} {
		fatal(t, os.WriteFile(name, pem.EncodeToMemory(&block), 0o600))
	}
	var raw, logged spoken
	before := log.Writer()
	log.SetOutput(&raw)
	defer log.SetOutput(before)
	h := newBed(t, newModel(t)).serveOn(c, func(o *app.Options) {
		o.Log = slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	var dialer net.Dialer
	conn, err := dialer.DialContext(t.Context(), "tcp", strings.TrimPrefix(h.served.URL, "https://"))
	fatal(t, err)
	defer conn.Close()
	// no TLS, which is answered in clear, and said
	if _, err := conn.Write([]byte("GET / HTTP/1.1\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	if _, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil { //nolint:bodyclose // the connection is
		t.Fatal(err)
	}
	half, err := dialer.DialContext(t.Context(), "tcp", strings.TrimPrefix(h.served.URL, "https://"))
	fatal(t, err)
	defer half.Close()
	fatal(t, h.engine.Close())
	if said := raw.String(); said != "" {
		t.Errorf("on the terminal: %s", said)
	}
	said := logged.String()
	if !strings.Contains(said, "TLS handshake error") {
		t.Errorf("the log says nothing of it: %s", said)
	}
	for line := range strings.Lines(said) {
		if strings.Contains(line, "TLS handshake error") && !strings.Contains(line, "level=DEBUG") {
			t.Errorf("for everybody: %s", line)
		}
	}
}

// spoken is a buffer that several write to.
type spoken struct {
	mu  sync.Mutex
	out bytes.Buffer
}

// Write implements io.Writer.
func (s *spoken) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.Write(p)
}

// String is what was written.
func (s *spoken) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.String()
}
