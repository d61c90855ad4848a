package acp_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/provider/providertest"
)

type object = map[string]any

// built is the program, built once.
var built = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "regie-acp-")
	if err != nil {
		return "", err
	}
	out, err := exec.Command("go", "build", "-o", filepath.Join(dir, "regie"), "../../cmd/regie").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return filepath.Join(dir, "regie"), nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if program, err := built(); err == nil {
		_ = os.RemoveAll(filepath.Dir(program))
	}
	os.Exit(code)
}

// place is a workspace with a scripted model.
type place struct {
	t      *testing.T
	root   string
	env    []string
	module string
}

func newPlace(t *testing.T, scenes ...providertest.Scene) *place {
	t.Helper()
	module, err := filepath.Abs(filepath.Join("testdata", "npm", "editor.mjs"))
	if err == nil {
		_, err = os.Stat(filepath.Join(filepath.Dir(module), "node_modules", "@agentclientprotocol", "sdk", "package.json"))
	}
	if err == nil {
		_, err = exec.LookPath("node")
	}
	if err != nil {
		if os.Getenv("REGIE_CI") == "1" {
			t.Fatalf("the ACP SDK of npm is not there (make npm installs it): %v", err)
		}
		t.Skip("the ACP SDK of npm is not there: make npm installs it")
	}
	model := providertest.NewServer(t, &providertest.Formats()[0], scenes...)
	p := &place{t: t, module: module, root: filepath.Join(t.TempDir(), "place")}
	if err := os.MkdirAll(filepath.Join(p.root, ".regie"), 0o700); err != nil {
		t.Fatal(err)
	}
	p.env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "REGIE_LANG=en", "REGIE_DATA_DIR=" + filepath.Join(t.TempDir(), "data"),
		"REGIE_BASE_URL=" + model.URL + "/v1", "REGIE_MODEL=scripted", "OLLAMA_HOST=127.0.0.1:1",
	}
	return p
}

// editor is a running one.
type editor struct {
	t     *testing.T
	in    io.WriteCloser
	lines chan object
	ids   int
	pid   int
	said  strings.Builder // by the agent
	all   []object        // updates
}

func (p *place) open() *editor {
	p.t.Helper()
	program, err := built()
	if err != nil {
		p.t.Fatal(err)
	}
	cmd := exec.CommandContext(p.t.Context(), "node", p.module, program, "acp")
	cmd.Env, cmd.Dir, cmd.Stderr = p.env, filepath.Dir(p.module), os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	e := &editor{t: p.t, in: in, lines: make(chan object, 1000)}
	go func() {
		defer close(e.lines)
		scanner := bufio.NewScanner(out)
		scanner.Buffer(nil, 16<<20)
		for scanner.Scan() {
			var line object
			if json.Unmarshal(scanner.Bytes(), &line) == nil {
				e.lines <- line
			}
		}
	}()
	p.t.Cleanup(func() {
		_ = in.Close()
		for range e.lines { // to its end
		}
		_ = cmd.Wait()
	})
	pid, _ := e.until("pid")["pid"].(float64)
	e.pid = int(pid)
	if got := e.call("initialize", object{"protocolVersion": 1, "clientCapabilities": object{}}); got["protocolVersion"] != 1.0 {
		p.t.Fatalf("initialised with %v", got)
	}
	return e
}

// send sends a request and returns its id.
func (e *editor) send(method string, params any) float64 {
	e.t.Helper()
	e.ids++
	e.write(object{"id": e.ids, "method": method, "params": params})
	return float64(e.ids)
}

func (e *editor) write(value any) {
	e.t.Helper()
	data, err := json.Marshal(value)
	if err == nil {
		_, err = e.in.Write(append(data, '\n'))
	}
	if err != nil {
		e.t.Fatal(err)
	}
}

// until reads what comes up to a line that has a member, and keeps the updates.
func (e *editor) until(member string) object {
	e.t.Helper()
	timeout := time.After(30 * time.Second)
	for {
		select {
		case line, ok := <-e.lines:
			if !ok {
				e.t.Fatalf("the editor ended before %s came", member)
			}
			if update, ok := line["update"].(object); ok {
				e.all = append(e.all, update)
				if update["sessionUpdate"] == "agent_message_chunk" {
					content, _ := update["content"].(object)
					said, _ := content["text"].(string)
					e.said.WriteString(said)
				}
			}
			if _, ok := line[member]; ok {
				return line
			}
		case <-timeout:
			e.t.Fatalf("%s did not come; what came: %v", member, e.all)
		}
	}
}

// answer waits for the answer to a request.
func (e *editor) answer(id float64) object {
	e.t.Helper()
	for {
		if line := e.until("id"); line["id"] == id {
			return line
		}
	}
}

// result waits for the answer to a request and returns what it brought, nil for an error.
func (e *editor) result(id float64) object {
	e.t.Helper()
	out, _ := e.answer(id)["result"].(object)
	return out
}

// permission waits for what is put to the person.
func (e *editor) permission() object {
	e.t.Helper()
	out, _ := e.until("permission")["permission"].(object)
	return out
}

// call sends a request and returns its result.
func (e *editor) call(method string, params any) object {
	e.t.Helper()
	line := e.answer(e.send(method, params))
	if line["error"] != nil {
		e.t.Fatalf("%s: %v", method, line["error"])
	}
	result, _ := line["result"].(object)
	return result
}

func (e *editor) session(p *place) string {
	e.t.Helper()
	id, _ := e.call("session/new", object{"cwd": p.root, "mcpServers": []any{}})["sessionId"].(string)
	return id
}

// prompt sends a text.
func (e *editor) prompt(session, text string) float64 {
	e.t.Helper()
	return e.send("session/prompt", object{"sessionId": session, "prompt": []any{object{"type": "text", "text": text}}})
}

// of are the updates of a kind.
func (e *editor) of(kind string) (out []object) {
	for _, update := range e.all {
		if update["sessionUpdate"] == kind {
			out = append(out, update)
		}
	}
	return out
}

func (e *editor) kill() {
	e.t.Helper()
	if err := syscall.Kill(e.pid, syscall.SIGKILL); err != nil {
		e.t.Fatal(err)
	}
	e.until("exit")
}

func writes() providertest.Scene {
	arguments, _ := json.Marshal(map[string]string{"path": "new.txt", "content": "one\x1b[2J\ntwo\n"})
	return providertest.Scene{Text: []string{"I write."}, Calls: []provider.Call{{ID: "w", Name: "files__write_file", Arguments: string(arguments)}}}
}

func text(value any) string {
	data, _ := json.Marshal(value)
	return string(data)
}
