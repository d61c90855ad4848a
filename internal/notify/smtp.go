package notify

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"mime"
	"mime/quotedprintable"
	"net"
	"net/mail"
	"net/smtp"
	"strconv"
	"strings"
	"time"

	"github.com/regie-run/regie/internal/config"
)

// mailer sends notifications as mail. A server that does not offer the configured protection gets
// neither the password nor a message.
type mailer struct{ config.Channel }

func (s *mailer) send(ctx context.Context, m *Message) error {
	conn, err := s.dial(ctx)
	if err == nil {
		defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
		defer conn.Close()
		err = s.deliver(conn, m)
	}
	return explainFailure(ctx, err)
}

func (s *mailer) settings() *tls.Config {
	return &tls.Config{ServerName: s.Host, MinVersion: tls.VersionTLS12}
}

func (s *mailer) dial(ctx context.Context) (net.Conn, error) {
	port := map[string]int{"tls": 465, "none": 25}[s.TLS]
	at := net.JoinHostPort(s.Host, strconv.Itoa(cmp.Or(s.Port, port, 587)))
	if s.TLS == "tls" {
		return (&tls.Dialer{Config: s.settings()}).DialContext(ctx, "tcp", at)
	}
	return (&net.Dialer{}).DialContext(ctx, "tcp", at)
}

// deliver hands a message to the server.
func (s *mailer) deliver(conn net.Conn, m *Message) error {
	client, err := smtp.NewClient(conn, s.Host)
	if err == nil && s.TLS != "tls" && s.TLS != "none" {
		err = client.StartTLS(s.settings())
	}
	if err == nil && s.Username != "" { // PlainAuth tells a password in clear to this machine alone
		err = client.Auth(smtp.PlainAuth("", s.Username, s.Secret, s.Host))
	}
	from, bad := mail.ParseAddress(s.From)
	if err = cmp.Or(err, bad); err == nil {
		err = client.Mail(from.Address)
	}
	var to []string
	for _, text := range s.To {
		address, bad := mail.ParseAddress(text)
		if err = cmp.Or(err, bad); err == nil {
			to, err = append(to, address.String()), client.Rcpt(address.Address)
		}
	}
	if err != nil {
		return err
	}
	data, err := client.Data()
	if err != nil {
		return err
	}
	_, err = data.Write(writeMail(m, from, to))
	if err = cmp.Or(err, data.Close()); err == nil {
		_ = client.Quit() // the server has taken the message
	}
	return err
}

// writeMail writes a notification as a message. Its Message-ID is the same in each attempt.
func writeMail(m *Message, from *mail.Address, to []string) []byte {
	_, domain, _ := strings.Cut(from.Address, "@")
	var out bytes.Buffer
	for _, header := range []string{
		"From: " + from.String(), "To: " + strings.Join(to, ",\r\n "),
		"Subject: " + mime.QEncoding.Encode("utf-8", m.Title),
		"Date: " + m.CreatedAt.Format(time.RFC1123Z), "Message-ID: <" + m.ID.String() + "@" + domain + ">",
		"Auto-Submitted: auto-generated", "MIME-Version: 1.0", "Content-Type: text/plain; charset=utf-8",
		"Content-Transfer-Encoding: quoted-printable", "",
	} {
		out.WriteString(header + "\r\n")
	}
	text := quotedprintable.NewWriter(&out) // which a buffer never fails
	_, _ = text.Write([]byte(m.body() + "\n"))
	_ = text.Close()
	return out.Bytes()
}
