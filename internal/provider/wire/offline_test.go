package wire

import (
	"bufio"
	"context"
	"errors"
	"io"
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
		"https" + strings.TrimPrefix(open.URL, "http"): "it speaks http and not https; write its address with http://",
		"http://127.0.0.1:1":                           "nothing answers at http://127.0.0.1:1: start it",
	} {
		s, err := New(Config{Address: address, Example: address, API: "Chat Completions", NotRunning: regie.Verbatim("start it")})
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Post(context.Background(), "/x", func() *Body { return NewBody([]byte("{}")) })
		failed, ok := errors.AsType[*provider.Error](err)
		if !ok || failed.Code != regie.CodeProviderOffline || !failed.Offline || !strings.Contains(failed.Message, want) {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// TestPlainToTLS: a server that speaks TLS and is asked in http is told as such, whichever way it
// says so, and another is asked instead.
func TestPlainToTLS(t *testing.T) {
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	defer secure.Close()
	nginx := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write([]byte("<html><head><title>400 The plain HTTP request was sent to HTTPS port</title></head></html>"))
	}))
	defer nginx.Close()
	alert, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer alert.Close()
	go func() {
		for {
			conn, err := alert.Accept()
			if err != nil {
				return
			}
			// Whole: where the rest of a request comes to a closed connection, the answer can be
			// lost.
			if request, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
				_, _ = io.Copy(io.Discard, request.Body)
			}
			_, _ = conn.Write([]byte("\x15\x03\x01\x00\x02\x02\x46"))
			_ = conn.Close()
		}
	}()
	for name, address := range map[string]string{
		"go": "http" + strings.TrimPrefix(secure.URL, "https"), "nginx": nginx.URL, "alert": "http://" + alert.Addr().String(),
	} {
		s, err := New(Config{Address: address, Example: address, API: "Chat Completions", NotRunning: regie.Verbatim("start it")})
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Post(context.Background(), "/x", func() *Body { return NewBody([]byte("{}")) })
		failed, ok := errors.AsType[*provider.Error](err)
		if !ok || !strings.Contains(failed.Message, "it speaks https and not http; write its address with https://") || !failed.Misplaced && !failed.Offline {
			t.Errorf("%s: %+v", name, err)
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
		_, err = s.Post(ctx, "/x", func() *Body { return NewBody([]byte("{}")) })
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
