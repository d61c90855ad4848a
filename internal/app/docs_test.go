package app_test

import (
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/regie-run/regie/internal/compat"
)

// TestDocsListAll: the page names every address that is served beside the operations, and each that
// it names is there.
func TestDocsListAll(t *testing.T) {
	h := newBed(t, newModel(t)).serve("127.0.0.1:0")
	response := h.ask("GET", "/docs", "")
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%d %v", response.StatusCode, err)
	}
	var named []string
	for _, found := range regexp.MustCompile(`<b>([A-Z]+)</b> <code>(/[^<]*)</code>`).FindAllStringSubmatch(string(data), -1) {
		if !strings.HasPrefix(found[2], "/api/v1/") {
			named = append(named, found[1]+" "+found[2])
		}
	}
	wanted := []string{"GET /healthz", "GET /readyz", "GET /version", "GET /metrics", "GET /docs", "GET /openapi.json", "POST /mcp"}
	for _, at := range compat.Routes() {
		wanted = append(wanted, at.Method+" "+at.Path)
	}
	for _, want := range wanted {
		if !slices.Contains(named, want) {
			t.Errorf("%s is not in /docs", want)
		}
	}
	for _, at := range named {
		method, path, _ := strings.Cut(at, " ")
		asked := h.ask(method, strings.NewReplacer("{id...}", "main", "{id}", "x").Replace(path), "")
		said, err := io.ReadAll(asked.Body)
		_ = asked.Body.Close()
		if err != nil || asked.StatusCode == http.StatusMethodNotAllowed || strings.Contains(string(said), "there is nothing at") {
			t.Errorf("%s is not served: %d %s", at, asked.StatusCode, said)
		}
	}
}
