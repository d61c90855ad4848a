package app_test

import (
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/control"
)

// TestSettingsArePrivate: the directory of settings, with the keys that regie setup has stored, is
// no workspace for anybody, one that was made of it before is none any more, and in a workspace
// around it neither a query nor a search comes to it, by whatever token.
func TestSettingsArePrivate(t *testing.T) {
	t.Parallel()
	b := newHarness(t, newModel(t))
	home := t.TempDir()
	settings := filepath.Join(home, ".config", "regie")
	for name, text := range map[string]string{filepath.Join(settings, "setup.yaml"): "providers: {x: {api_key: sk-canary}}\n", filepath.Join(home, "notes.txt"): "about sk-canary\n"} {
		fatal(t, os.MkdirAll(filepath.Dir(name), 0o700))
		fatal(t, os.WriteFile(name, []byte(text), 0o600))
	}
	fatal(t, os.Symlink(settings, filepath.Join(home, "alias")))
	before := b.serve("127.0.0.1:0")
	old := before.placeAt(settings)
	fatal(t, before.engine.Close())
	b.settings.Private = []string{settings}
	h := b.serve("127.0.0.1:0")
	as := bearer(h.add(control.TokenRequest{Name: "all", Scopes: regie.TokenScopes()}).Secret)
	for _, dir := range []string{settings, filepath.Join(home, "alias"), "/etc/regie"} {
		for _, here := range []bool{false, true} {
			data, _ := json.Marshal(map[string]any{"path": dir, "here": here})
			status, said := h.said("POST", "/api/v1/workspaces", string(data), as)
			if missing := dir == "/etc/regie" && strings.Contains(said, "FILE_NOT_FOUND"); status == 200 || !missing && !strings.Contains(said, "PATH_PROTECTED") {
				t.Errorf("opening %s, here %v: %d %s", dir, here, status, said)
			}
		}
	}
	query := func(place regie.Workspace, name string) string {
		t.Helper()
		data, _ := json.Marshal(map[string]any{"workspace_id": place.ID, "tool": "files.read_file", "arguments": map[string]string{"path": name}})
		_, said := h.said("POST", "/api/v1/queries", string(data), as)
		return said
	}
	if said := query(old, "setup.yaml"); !strings.Contains(said, "PATH_PROTECTED") || strings.Contains(said, "canary") {
		t.Errorf("the workspace from before: %s", said)
	}
	around := h.placeAt(home)
	for _, name := range []string{".config/regie/setup.yaml", "alias/setup.yaml"} {
		if said := query(around, name); strings.Contains(said, "canary") {
			t.Errorf("reading %s: %s", name, said)
		}
	}
	if said := query(around, "notes.txt"); !strings.Contains(said, "canary") {
		t.Errorf("reading what is beside it: %s", said)
	}
	for _, mode := range []string{"exact", "regex", "semantic"} {
		for place, want := range map[regie.ID]int{around.ID: 200, old.ID: 403} {
			status, said := h.said("GET", "/api/v1/search?mode="+mode+"&q=canary&workspace="+url.QueryEscape(place.String()), "", as)
			if status != want || strings.Contains(said, "api_key") || want == 200 && !strings.Contains(said, "notes.txt") {
				t.Errorf("%s in %s: %d %s", mode, place, status, said)
			}
		}
	}
}
