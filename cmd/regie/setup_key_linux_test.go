package main

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"
)

// vendors stands for all vendors behind a proxy: it records which host was shown which key, and
// knows one model.
type vendors struct {
	mu   sync.Mutex
	sent []string // "host key"
	cert tls.Certificate
	Env  string // what the program needs to reach it
}

func newVendors(t *testing.T, hosts ...string) *vendors {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "vendors"}, NotAfter: time.Now().Add(time.Hour), DNSNames: hosts,
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	v := &vendors{cert: tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}}
	proxy := httptest.NewServer(http.HandlerFunc(v.connect))
	t.Cleanup(proxy.Close)
	v.Env = "export HTTPS_PROXY=" + proxy.URL + " SSL_CERT_FILE=" + file
	return v
}

// connect answers CONNECT and is the server at the other end itself.
func (v *vendors) connect(w http.ResponseWriter, r *http.Request) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n") // the test fails where it does not get through
	secured := tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{v.cert}, MinVersion: tls.VersionTLS12})
	request, err := http.ReadRequest(bufio.NewReader(secured))
	if err != nil {
		return
	}
	host, _, _ := net.SplitHostPort(r.Host)
	v.mu.Lock()
	for _, name := range []string{"Authorization", "X-Api-Key", "X-Goog-Api-Key"} {
		if value := request.Header.Get(name); value != "" {
			v.sent = append(v.sent, host+" "+value)
		}
	}
	v.mu.Unlock()
	const list = `{"object":"list","data":[{"id":"m","object":"model"}]}`
	_, _ = io.WriteString(secured, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: 54\r\n\r\n"+list)
}

func (v *vendors) seen() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.sent)
}

// TestSetup_KeyGoesToItsVendor pastes keys of several vendors: none is shown to a vendor that it is
// not for.
func TestSetup_KeyGoesToItsVendor(t *testing.T) {
	t.Parallel()
	hosts := []string{"api.openai.com", "api.groq.com", "api.anthropic.com", "api.deepseek.com", "openrouter.ai", "generativelanguage.googleapis.com"}
	for _, c := range []struct {
		name, key string
		choices   []string // what is typed after the key, at "Which?"
		want      []string
	}{
		{name: "groq", key: "gsk_canary0123456", want: []string{"api.groq.com Bearer gsk_canary0123456"}},
		{name: "openrouter", key: "sk-or-v1-canary01", want: []string{"openrouter.ai Bearer sk-or-v1-canary01"}},
		{name: "one that says nothing", key: "sk-canary0123456", choices: []string{"2"}, want: []string{"api.deepseek.com Bearer sk-canary0123456"}},
		{name: "one of nobody here", key: "xai-canary012345", choices: []string{"6"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := newVendors(t, hosts...)
			term := newNewcomer(t, "regie setup", "export REGIE_LANG=en", v.Env)
			term.shows("Which? (Enter for 1):")
			term.enter("")
			term.shows("(it is not shown):")
			term.enter(c.key)
			for _, choice := range c.choices {
				term.shows("Which? (Enter for 9):")
				term.enter(choice)
			}
			if c.want == nil {
				term.sees("belongs to xai and was not sent")
			} else {
				term.until("the key", func() bool { return len(v.seen()) > 0 })
			}
			if got := v.seen(); !slices.Equal(got, c.want) {
				t.Errorf("sent: %v, want %v", got, c.want)
			}
		})
	}
	t.Run("a key in another vendor's variable", func(t *testing.T) {
		v := newVendors(t, hosts...)
		term := newNewcomer(t, "regie models; regie run --provider openai hello; regie run hello", "export REGIE_LANG=en OPENAI_API_KEY=gsk_canary0123456", v.Env)
		term.shows("exit=")
		if got := v.seen(); len(got) > 0 {
			t.Errorf("sent: %v", got)
		}
		term.sees("belongs to groq and was not sent")
	})
}
