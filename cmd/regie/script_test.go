package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/provider/providertest"
	"github.com/regie-run/regie/internal/provider/providertest/strict"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestMain(m *testing.M) {
	if code, ours := app.Helper(os.Args); ours {
		syscall.Exit(code) // the race detector would sleep a second in os.Exit
	}
	testscript.Main(m, map[string]func(){"regie": main})
}

// TestScripts runs the program as people and programs do. A script's environment has no settings
// but a data directory of its own.
func TestScripts(t *testing.T) {
	t.Parallel()
	servers := map[string]string{} // a model server of each format, by the variable of its address
	for _, format := range providertest.Formats() {
		server := providertest.NewServer(t, &format,
			providertest.Scene{Text: []string{"I look."}, Calls: []provider.Call{{ID: "a", Name: "files__list_files", Arguments: "{}"}}}, providertest.Scene{Text: []string{"Done by ", format.Name, "."}})
		server.Models = map[string][]string{"openai": {"only-one"}, "anthropic": {"claude-opus-5-5", "claude-sonnet-5-5"}, "ollama": {"nomic-embed-text", "qwen3:8b"}, "gemini": {"gemini-3.5-flash"}, "responses": {"gpt-5.5"}}[format.Name]
		servers["SERVER_"+strings.ToUpper(format.Name)] = server.URL
	}
	sized := providertest.NewServer(t, &providertest.Formats()[0], providertest.Scene{Text: []string{"Done by a large one."}})
	sized.Models, servers["SERVER_SIZED"] = []string{"large"}, sized.URL
	for _, vendor := range providertest.Vendors() {
		scenes := []providertest.Scene{{Text: []string{"I look."}, Calls: []provider.Call{{ID: "a", Name: "files__list_files", Arguments: "{}"}}}, {Text: []string{"Done by ", vendor.Name, "."}}}
		if vendor.NoTools {
			scenes = []providertest.Scene{{Text: []string{`{"pre_text":"I look.","data_commands":[{"type":"files.list_files","params":{}}]}`}}, {Text: []string{`{"pre_text":"Done by `, vendor.Name, ` [1]."}`}}}
		}
		if name := "SERVER_" + strings.ToUpper(vendor.Name); servers[name] == "" {
			servers[name] = providertest.NewServer(t, &vendor, scenes...).URL + vendor.Path
		}
	}
	for _, format := range providertest.EmbedFormats() {
		if name := "SERVER_EMBED_" + strings.ToUpper(format.Name); servers[name] == "" {
			servers[name] = providertest.NewEmbedServer(t, &format).URL + format.Path
		}
	}
	testscript.Run(t, testscript.Params{
		Dir:           "testdata/script",
		UpdateScripts: *update,
		Setup: func(env *testscript.Env) error {
			server := httptest.NewServer(stubborn())
			env.Defer(server.Close)
			env.Setenv("HOME", env.WorkDir+"/home")
			env.Setenv("REGIE_DATA_DIR", env.WorkDir+"/data")
			env.Setenv("REGIE_LANG", "en")
			env.Setenv("OLLAMA_HOST", "127.0.0.1:1") // not what runs on the developer's machine
			env.Setenv("SERVER", server.URL+"/v1")
			for variable, address := range servers {
				env.Setenv(variable, address)
			}
			return os.MkdirAll(env.WorkDir+"/home", 0o700)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "envsubst": envsubst},
	})
}

// envsubst writes a file with the variables of the environment put in: envsubst FROM TO
func envsubst(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: envsubst FROM TO")
	}
	filled := os.Expand(ts.ReadFile(args[0]), ts.Getenv)
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(filled), 0o600))
}

// exits runs a program and expects its exit code: exits 2 regie run
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM [ARGS]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		got = failed.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if got != want {
		ts.Fatalf("%v exited %d, want %d", args[1:], got, want)
	}
}

// stubborn is a model server that never answers the first time, and answers at once from then on.
func stubborn() http.HandlerFunc {
	var mu sync.Mutex
	asked := false
	return func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		first := !asked
		asked = true
		mu.Unlock()
		body, err := io.ReadAll(r.Body) // until then the server does not notice that the client has gone
		if err == nil && r.Method == http.MethodPost {
			err = strict.Chat(body)
		}
		if err != nil { // as a strict server would: the script then fails
			http.Error(w, fmt.Sprintf(`{"error":{"message":%q}}`, err), http.StatusBadRequest)
			return
		}
		if first {
			<-r.Context().Done()
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Here \\u001b[31mI am.\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	}
}

var (
	anID      = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	aShortID  = regexp.MustCompile(`\b[0-9a-f]{8}\b`)
	aDuration = regexp.MustCompile(`\d+(,\d{3})*(\.\d+)? (µs|ms|s)\b`)
	aPlace    = regexp.MustCompile(` in /\S+`)
	aNumber   = regexp.MustCompile(`\d+(\.\d+)?`)
	aDay      = regexp.MustCompile(`once on \d+ \w+ \d{4}|\b(Mon|Tue|Wed|Thu|Fri|Sat|Sun) \d{4}-\d{2}-\d{2}\b`)
	writings  = regexp.MustCompile(`(?m)(^  ✓ files\.write_file.*\n)+`)
)

// buildRegie builds the program and returns its path.
func buildRegie(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "regie")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return binary
}

// TestDocs_Transcript runs the demo and compares what it prints with docs/getting-started.md: ids,
// numbers, times and the moment of the kill may differ. It leaves nothing behind.
func TestDocs_Transcript(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "getting-started.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```text\n")
	want, _, _ := strings.Cut(rest, "```")
	binary := buildRegie(t)
	temp := t.TempDir()
	var out []byte
	// on a machine that is very busy
	for try := 0; try == 0 || try < 5 && !strings.Contains(string(out), "the run is RUNNING"); try++ {
		demo := exec.CommandContext(t.Context(), binary, "demo")
		demo.Env = append(os.Environ(), "REGIE_LANG=en", "TMPDIR="+temp)
		if out, err = demo.Output(); err != nil {
			t.Fatal(err)
		}
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("the demo has left %v behind (%v)", left, err)
	}
	mask := func(s string) string {
		for pattern, name := range map[*regexp.Regexp]string{anID: "ID", aDuration: "TIME", aPlace: " in DIR", aDay: "DAY"} {
			s = pattern.ReplaceAllString(s, name)
		}
		s = aNumber.ReplaceAllString(aShortID.ReplaceAllString(s, "ID"), "N")
		return writings.ReplaceAllString(s, "  ✓ files.write_file …\n")
	}
	if diff := cmp.Diff(mask(want), mask(string(out))); diff != "" {
		t.Errorf("the transcript is not what make demo prints (-page +demo):\n%s", diff)
	}
}
