package wire

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
)

// TestOffline: only who refuses to be connected is told to be started; a server on this machine that is there, and cannot be talked to, says why.
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
		s, err := New(Config{Address: address, Example: address, API: "Chat Completions", NotRunning: "start it"})
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
