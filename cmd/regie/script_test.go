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
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"regie": main})
}

// TestScripts runs the program as people and programs do. A script's environment has no settings but a data directory of its own.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:           "testdata/script",
		UpdateScripts: *update,
		Setup: func(env *testscript.Env) error {
			server := httptest.NewServer(stubborn())
			env.Defer(server.Close)
			env.Setenv("HOME", env.WorkDir+"/home")
			env.Setenv("REGIE_DATA_DIR", env.WorkDir+"/data")
			env.Setenv("REGIE_LANG", "en")
			env.Setenv("SERVER", server.URL+"/v1")
			return os.Mkdir(env.WorkDir+"/home", 0o700)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits},
	})
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
		_, _ = io.Copy(io.Discard, r.Body) // until then the server does not notice that the client has gone
		if first {
			<-r.Context().Done()
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Here \\u001b[31mI am.\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	}
}

var (
	anID     = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	aNumber  = regexp.MustCompile(`\d+(\.\d+)?`)
	writings = regexp.MustCompile(`(?m)(^  ✓ files\.write_file.*\n)+`)
)

// TestReadmeTranscript runs the demo and compares what it prints with the README: ids, numbers and the moment of the kill may differ.
func TestReadmeTranscript(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(readme), "```text\n")
	want, _, _ := strings.Cut(rest, "```")
	binary := filepath.Join(t.TempDir(), "regie")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	demo := exec.CommandContext(t.Context(), binary, "demo")
	demo.Env = append(os.Environ(), "REGIE_LANG=en")
	out, err := demo.Output()
	if err != nil {
		t.Fatal(err)
	}
	mask := func(s string) string {
		return writings.ReplaceAllString(aNumber.ReplaceAllString(anID.ReplaceAllString(s, "ID"), "N"), "  ✓ files.write_file …\n")
	}
	if diff := cmp.Diff(mask(want), mask(string(out))); diff != "" {
		t.Errorf("the README's transcript is not what make demo prints (-README +demo):\n%s", diff)
	}
}
