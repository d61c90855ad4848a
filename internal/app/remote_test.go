package app_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/store"
)

// TestOwnTokenStaysHere: the token of a data directory, which opens everything, is shown to a Regie
// at this machine's own address alone. What else listens there never sees it, and no other address
// does.
func TestOwnTokenStaysHere(t *testing.T) {
	h := newHarness(t, newModel(t)).serve("127.0.0.1:0")
	var asked, shown atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { // answers all with 200
		asked.Add(1)
		if r.Header.Get("Authorization") != "" {
			shown.Add(1)
		}
	}))
	defer other.Close()
	redirects := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer redirects.Close()
	for address, want := range map[string]regie.Code{
		h.served.URL:                      "",
		other.URL:                         regie.CodeServerDown,
		redirects.URL:                     regie.CodeServerDown,
		"http://regie.example:7333":       regie.CodeNoToken,
		"https://regie.example":           regie.CodeNoToken,
		"http://192.0.2.1:7333":           regie.CodeNoToken,
		"http://127.0.0.1.nip.example:80": regie.CodeNoToken,
	} {
		settings := h.settings
		settings.Server = address
		conn, err := app.Connect(t.Context(), app.Options{Config: settings})
		if err == nil {
			_, err = conn.Sessions(t.Context(), store.SessionFilter{})
			_ = conn.Close()
		}
		if regie.CodeOf(err) != want || want == regie.CodeNoToken && !strings.Contains(err.Error(), "REGIE_TOKEN") {
			t.Errorf("%s: %v, want %s", address, err, want)
		}
	}
	if asked.Load() == 0 || shown.Load() != 0 {
		t.Errorf("another server was asked %d times, and shown the token %d times", asked.Load(), shown.Load())
	}
}

// TestTryNoAddress: what is no address is told so, not that it wants a key.
func TestTryNoAddress(t *testing.T) {
	for _, address := range []string{"127.0.0.1:18809", "127.0.0.1:18809/v1", "localhost", "http://"} {
		_, err := app.TryProvider(t.Context(), config.Provider{Name: "lab", Type: config.ProviderOpenAI, BaseURL: address})
		if err == nil || !strings.Contains(err.Error(), "is not the address of a server") {
			t.Errorf("%s: %v", address, err)
		}
	}
	if _, err := app.TryProvider(t.Context(), config.Provider{Name: "lab", Type: config.ProviderOpenAI, BaseURL: "https://models.example/v1"}); regie.CodeOf(err) != regie.CodeProviderAuth {
		t.Errorf("a server of others, without a key: %v", err)
	}
}
