// Package smtp_test sends notifications to emersion/go-smtp, a mail server that others wrote.
package smtp_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"log/slog"
	"math/big"
	"mime"
	"mime/quotedprintable"
	"net"
	"net/mail"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/notify"
	"github.com/regie-run/regie/internal/store"
)

// certificate is that of the test's servers, which this process trusts alone.
var certificate tls.Certificate

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "smtp")
	if err == nil {
		err = makeCertificate(filepath.Join(dir, "ca.pem"))
	}
	if err == nil { // read once, before the first connection
		err = errors.Join(os.Setenv("SSL_CERT_FILE", filepath.Join(dir, "ca.pem")), os.Setenv("SSL_CERT_DIR", dir))
	}
	if err != nil {
		log.Fatal(err)
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// makeCertificate makes the certificate of localhost and writes it to a file.
func makeCertificate(path string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"localhost"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return err
	}
	certificate = tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600)
}

// letter is a message that the server took, with its envelope.
type letter struct {
	from, login string
	to          []string
	encrypted   bool
	data        []byte
}

// server is a mail server of one test. Its refuse answers RCPT where it is set.
type server struct {
	*smtp.Server
	mu      sync.Mutex
	letters []letter
	refuse  error
	hang    chan struct{}
}

type session struct {
	server *server
	conn   *smtp.Conn
	letter letter
}

// NewSession implements smtp.Backend.
func (s *server) NewSession(c *smtp.Conn) (smtp.Session, error) {
	if s.hang != nil {
		<-s.hang
	}
	return &session{server: s, conn: c}, nil
}

func (x *session) AuthMechanisms() []string { return []string{sasl.Plain} }

func (x *session) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		if password != "pässword" {
			return smtp.ErrAuthFailed
		}
		x.letter.login = user
		return nil
	}), nil
}

func (x *session) Mail(from string, _ *smtp.MailOptions) error {
	_, x.letter.encrypted = x.conn.TLSConnectionState()
	x.letter.from = from
	return nil
}

func (x *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	x.letter.to = append(x.letter.to, to)
	return x.server.refuse
}

func (x *session) Data(r io.Reader) (err error) {
	x.letter.data, err = io.ReadAll(r)
	x.server.mu.Lock()
	defer x.server.mu.Unlock()
	x.server.letters = append(x.server.letters, x.letter)
	return err
}

func (x *session) Reset()        { x.letter = letter{login: x.letter.login} }
func (x *session) Logout() error { return nil }

// start starts a server with a protection and returns its port.
func start(t *testing.T, s *server, protection string) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	s.Server = smtp.NewServer(s)
	s.Domain, s.ErrorLog, s.AllowInsecureAuth = "localhost", log.New(io.Discard, "", 0), true
	settings := &tls.Config{Certificates: []tls.Certificate{certificate}}
	switch protection {
	case "tls":
		listener = tls.NewListener(listener, settings)
	case "starttls":
		s.TLSConfig = settings
	}
	var group sync.WaitGroup
	group.Go(func() { _ = s.Serve(listener) })
	t.Cleanup(func() {
		_ = s.Close()
		_ = listener.Close() // s may not have it yet
		group.Wait()
	})
	return port
}

// send sends a test notification through a channel.
func send(t *testing.T, c config.Channel) (store.Delivery, string) {
	t.Helper()
	c.Type = config.ChannelSMTP
	worker := notify.New(notify.Config{
		Channels: map[string]config.Channel{"mail": c}, Log: slog.New(slog.DiscardHandler),
		Translate: func(said regie.Sentence) string { return "é " + said.String() },
	})
	sent, err := worker.Test(t.Context(), "mail")
	if err != nil || len(sent) != 1 {
		t.Fatal(sent, err)
	}
	return sent[0], sent[0].Error.String()
}

// channel is a channel to a server.
func channel(port int, protection string) config.Channel {
	return config.Channel{
		Host: "localhost", Port: port, TLS: protection, From: "Régie <regie@example.com>",
		To: []string{"Ada <ada@example.com>", "bob@example.com"}, Username: "regie", PasswordEnv: "P", Secret: "pässword",
	}
}

// TestMail delivers by each protection; what arrives is one message that mail readers understand.
func TestMail(t *testing.T) {
	for _, protection := range []string{"starttls", "tls", "none", ""} {
		s := &server{}
		on := protection
		if on == "" { // the default
			on = "starttls"
		}
		c := channel(start(t, s, on), protection)
		c.Link = "https://regie.example.com"
		d, failed := send(t, c)
		if failed != "" || len(s.letters) != 1 {
			t.Fatalf("%s: %s, %d letters", protection, failed, len(s.letters))
		}
		got := s.letters[0]
		if got.from != "regie@example.com" || !slices.Equal(got.to, []string{"ada@example.com", "bob@example.com"}) || got.login != "regie" ||
			got.encrypted == (on == "none") {
			t.Errorf("%s: %+v", protection, got)
		}
		m, err := mail.ReadMessage(bytes.NewReader(got.data))
		if err != nil {
			t.Fatal(err)
		}
		subject, err := new(mime.WordDecoder).DecodeHeader(m.Header.Get("Subject"))
		if err != nil || subject != "é Notifications from Regie arrive here" || m.Header.Get("Message-ID") != "<"+d.ID.String()+"@example.com>" {
			t.Errorf("%q, %v, %s", subject, err, m.Header.Get("Message-ID"))
		}
		from, err := m.Header.AddressList("From")
		to, err2 := m.Header.AddressList("To")
		at, err3 := m.Header.Date()
		if err = errors.Join(err, err2, err3); err != nil || from[0].Name != "Régie" || len(to) != 2 || to[0].Name != "Ada" || time.Since(at) > time.Minute {
			t.Errorf("%v %v %v %v", from, to, at, err)
		}
		body, err := io.ReadAll(quotedprintable.NewReader(m.Body))
		if err != nil || strings.TrimSpace(string(body)) != "https://regie.example.com" {
			t.Errorf("the body is %q, %v", body, err)
		}
	}
}

// TestMail_Refused: no message and no password goes to a server without the configured protection,
// one with another name, or one that refuses; an error says why.
func TestMail_Refused(t *testing.T) {
	for name, c := range map[string]struct {
		offers, wants string
		change        func(*config.Channel, *server)
		says          string
	}{
		"no STARTTLS":       {"none", "starttls", nil, "502"},
		"no TLS":            {"none", "tls", nil, "does not look like a TLS handshake"},
		"wrong certificate": {"tls", "tls", func(c *config.Channel, _ *server) { c.Host = "127.0.0.1" }, "x509"},
		"wrong password":    {"starttls", "starttls", func(c *config.Channel, _ *server) { c.Secret = "x" }, "535"},
		"receiver refused":  {"starttls", "starttls", func(_ *config.Channel, s *server) { s.refuse = &smtp.SMTPError{Code: 550, Message: "no such user"} }, "no such user"},
		"no password":       {"starttls", "starttls", func(c *config.Channel, _ *server) { c.Secret = "" }, "the variable P is not set"},
		"nothing there":     {"none", "none", func(c *config.Channel, _ *server) { c.Port = 1 }, "refused"},
	} {
		s := &server{}
		to := channel(start(t, s, c.offers), c.wants)
		if c.change != nil {
			c.change(&to, s)
		}
		d, failed := send(t, to)
		if d.State != store.DeliveryFailed || !strings.Contains(failed, c.says) || len(s.letters) != 0 {
			t.Errorf("%s: %s, %d letters, want %s", name, failed, len(s.letters), c.says)
		}
	}
}

// TestMail_Hangs: an attempt ends with its time, and with the request for it.
func TestMail_Hangs(t *testing.T) {
	s := &server{hang: make(chan struct{})}
	to := channel(start(t, s, "none"), "none")
	to.Type = config.ChannelSMTP
	worker := notify.New(notify.Config{
		Channels: map[string]config.Channel{"mail": to}, Log: slog.New(slog.DiscardHandler), Translate: regie.Sentence.String,
	})
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	sent, err := worker.Test(ctx, "")
	close(s.hang)
	if err != nil || sent[0].Error.String() != "the receiver did not answer in time" {
		t.Errorf("%+v, %v", sent, err)
	}
}
