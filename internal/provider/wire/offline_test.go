package wire

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
)

// TestOffline: only who refuses to be connected is told to be started; a server on this machine
// that is there, and cannot be talked to, says why.
func TestOffline(t *testing.T) {
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = nil
	secure.StartTLS()
	defer secure.Close()
	open := httptest.NewServer(http.NotFoundHandler())
	defer open.Close()
	for address, want := range map[string]string{
		secure.URL: "cannot be reached: x509: certificate signed by unknown authority",
		"https" + strings.TrimPrefix(open.URL, "http"): "server gave HTTP response to HTTPS client",
		"http://127.0.0.1:1":                           "nothing answers at http://127.0.0.1:1: start it",
	} {
		s, err := New(Config{Address: address, Example: address, API: "Chat Completions", NotRunning: regie.Verbatim("start it")})
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Post(context.Background(), "/x", [][]byte{[]byte("{}")})
		failed, ok := errors.AsType[*provider.Error](err)
		if !ok || failed.Code != regie.CodeProviderOffline || !failed.Offline || !strings.Contains(failed.Message, want) {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// TestUnsent: a call that is cut while it connects was not sent, one that is cut behind that may
// have been.
func TestUnsent(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // it takes connections, and answers nothing
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	why := errors.New("the person")
	for unsent, dial := range map[bool]func(ctx context.Context, cut func(error)) (net.Conn, error){
		true: func(ctx context.Context, cut func(error)) (net.Conn, error) {
			cut(why)
			<-ctx.Done()
			return nil, ctx.Err()
		},
		false: func(ctx context.Context, cut func(error)) (net.Conn, error) {
			c, err := (&net.Dialer{}).DialContext(ctx, "tcp", silent.Addr().String())
			return &cutsOnWrite{c, cut, why}, err
		},
	} {
		ctx, cut := context.WithCancelCause(context.Background())
		s, err := New(Config{
			Address: "http://example.test", Example: "http://example.test",
			Dial: func(inner context.Context, _, _ string) (net.Conn, error) { return dial(inner, cut) },
		})
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Post(ctx, "/x", [][]byte{[]byte("{}")})
		if got, ok := errors.AsType[*provider.Cut](err); !ok || got.Unsent != unsent || !errors.Is(err, why) {
			t.Errorf("unsent %v: %+v", unsent, err)
		}
	}
}

// cutsOnWrite ends the call once its request goes out.
type cutsOnWrite struct {
	net.Conn
	cut func(error)
	why error
}

func (c *cutsOnWrite) Write(p []byte) (int, error) {
	defer c.cut(c.why)
	return c.Conn.Write(p)
}
