package ollama

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/regie-run/regie/internal/provider"
)

// TestThink: a model is told what it takes and nothing else.
func TestThink(t *testing.T) {
	shows := map[string]string{
		"plain":   `{"capabilities":["completion","tools"]}`,
		"old":     `{"capabilities":["completion","thinking"]}`,
		"gpt-oss": `{"capabilities":["completion","thinking"]}`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		for name, show := range shows {
			if strings.Contains(string(body), `"`+name+`"`) {
				_, _ = io.WriteString(w, show)
				return
			}
		}
		http.NotFound(w, r)
	}))
	defer server.Close()
	p, err := New(Config{Name: "x", BaseURL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ model, effort, want string }{
		{"plain", "high", ``},
		{"nobody", "high", ``},
		{"old", "", ``},
		{"old", "max", `true`},
		{"old", "none", `false`},
		{"gpt-oss", "xhigh", `"high"`},
		{"gpt-oss", "none", `"low"`},
	} {
		conversation, err := p.Open(provider.Head{Model: c.model, MaxOutput: 100, ReasoningEffort: c.effort})
		if err != nil {
			t.Fatal(err)
		}
		shower, ok := conversation.(provider.Shower)
		if !ok {
			t.Fatal("it cannot be shown")
		}
		body := string(shower.Body())
		_, got, _ := strings.Cut(body, `"think":`)
		got, _, _ = strings.Cut(got, `,"messages"`)
		if got != c.want {
			t.Errorf("%s, %q: %s, want %s", c.model, c.effort, got, c.want)
		}
	}
}
