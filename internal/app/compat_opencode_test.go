//go:build unix

package app_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// TestOpenCode_Tools has opencode work with its own tools for a model behind Regie, in both formats
// that it speaks. Only make proof installs it.
func TestOpenCode_Tools(t *testing.T) {
	t.Parallel()
	if os.Getenv("REGIE_PROOF") != "1" {
		t.Skip("opencode runs in make proof alone")
	}
	architecture := map[string]string{"amd64": "x64"}[runtime.GOARCH]
	if architecture == "" {
		architecture = runtime.GOARCH
	}
	for name, provider := range map[string]string{"messages": "@ai-sdk/anthropic", "chat completions": "@ai-sdk/openai-compatible"} {
		t.Run(name, func(t *testing.T) {
			_, binary := findFrontend(t, "proof-anthropic", "opencode-"+runtime.GOOS+"-"+architecture+"/bin/opencode")
			var f *frontend
			step := func(name, arguments string) http.HandlerFunc {
				return func(w http.ResponseWriter, r *http.Request) {
					if strings.Contains(sent(r), "title generator") { // a session of its own
						says("A title")(w, r)
						return
					}
					says("Working.", call{name, name, strings.ReplaceAll(arguments, "DIR", f.project)})(w, r)
				}
			}
			m := newModel(t,
				step("write", `{"filePath":"DIR/new.txt","content":"hello"}`),
				step("read", `{"filePath":"DIR/note.txt"}`),
				step("bash", `{"command":"cat new.txt","description":"show it"}`),
				says("Done."))
			h := newBed(t, m).serve("127.0.0.1:0")
			settings := fmt.Sprintf(`{"model":"regie/main","small_model":"regie/main","share":"disabled","provider":{"regie":{
				"npm":%q,"name":"Regie","options":{"baseURL":%q,"apiKey":%q},"models":{"main":{"name":"main"}}}}}`,
				provider, h.served.URL+"/v1", h.token)
			f = newFrontend(t, "OPENCODE_CONFIG_CONTENT="+settings, "OPENCODE_DISABLE_MODELS_FETCH=1",
				"OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1", "OPENCODE_DISABLE_DEFAULT_PLUGINS=1")
			f.file("note.txt", "the word is walrus\n")
			if out := f.run(binary, "run", "Do it."); !strings.Contains(out, "Done.") {
				t.Errorf("%s", out)
			}
			// One is read by a tool; the other stands in a request beside the conversation.
			for _, want := range []string{"the word is walrus", "title generator"} {
				if !slices.ContainsFunc(m.requests, func(r []byte) bool { return strings.Contains(string(r), want) }) {
					t.Errorf("the model does not read %q", want)
				}
			}
			if data, err := os.ReadFile(filepath.Join(f.project, "new.txt")); err != nil || string(data) != "hello" {
				t.Errorf("%q, %v", data, err)
			}
		})
	}
}
