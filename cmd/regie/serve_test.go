package main

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestServe serves, asks the server from elsewhere with --server, and ends it as a service manager
// does.
func TestServe(t *testing.T) {
	t.Parallel()
	dir, home := t.TempDir(), t.TempDir()
	data := filepath.Join(home, "data")
	if err := os.WriteFile(filepath.Join(dir, "facts.txt"), []byte("the boiler is from 1987\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "REGIE_LANG=en"}
	var said bytes.Buffer
	serve := exec.CommandContext(t.Context(), "regie", "serve", "--addr", "127.0.0.1:0", "--data-dir", data, "--provider", "demo")
	serve.Dir, serve.Env, serve.Stderr = dir, env, &said
	out, err := serve.StdoutPipe()
	if err == nil {
		err = serve.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	url, ok := strings.CutPrefix(strings.TrimSpace(line), "Regie listens on ")
	if err != nil || !ok {
		t.Fatalf("it says %q (%v) and %s", line, err, said.String())
	}
	token, err := os.ReadFile(filepath.Join(data, "api.token"))
	if err != nil {
		t.Fatal(err)
	}
	ask := func(where, token string, args ...string) (string, int) {
		t.Helper()
		c := exec.CommandContext(t.Context(), "regie", append([]string{"--server", url}, args...)...)
		c.Dir, c.Env = where, append([]string{"REGIE_TOKEN=" + token, "REGIE_DATA_DIR=" + filepath.Join(home, "elsewhere")}, env...)
		text, _ := c.CombinedOutput() // the code says it
		return string(text), c.ProcessState.ExitCode()
	}
	secret := strings.TrimSpace(string(token))
	if text, code := ask(dir, secret, "run", "what is in facts.txt"); code != exitDone || !strings.Contains(text, "the boiler is from 1987") {
		t.Errorf("from its directory: %d, %s", code, text)
	}
	if text, code := ask(home, secret, "--workspace", dir, "run", "what is in facts.txt"); code != exitDone || !strings.Contains(text, "the boiler is from 1987") {
		t.Errorf("from elsewhere: %d, %s", code, text)
	}
	if text, code := ask(dir, secret, "sessions", "list"); code != exitDone || strings.Count(text, "facts.txt") != 2 {
		t.Errorf("the sessions: %d, %s", code, text)
	}
	other := exec.CommandContext(t.Context(), "regie", "--data-dir", data, "run", "hello")
	other.Dir, other.Env = dir, append([]string{"REGIE_PROVIDER=openai", "REGIE_MODEL=m", "REGIE_BASE_URL=http://127.0.0.1:1/v1", "REGIE_API_KEY=k"}, env...)
	if text, err := other.CombinedOutput(); err == nil || !strings.Contains(string(text), "nothing answers at http://127.0.0.1:1/v1") {
		t.Errorf("with a provider of its own: %s", text)
	}
	for name, end := range map[string]syscall.Signal{"TERM": syscall.SIGTERM, "INT": syscall.SIGINT} {
		waits := exec.CommandContext(t.Context(), "regie", "serve", "--addr", "127.0.0.1:0", "--data-dir", data, "--provider", "demo")
		waits.Dir, waits.Env = dir, env
		said, err := waits.StderrPipe()
		if err == nil {
			err = waits.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(said).ReadString('\n'); err != nil || !strings.Contains(line, "waiting until it ends") {
			t.Errorf("%s: it says %q, %v", name, line, err)
		}
		if err := waits.Process.Signal(end); err != nil {
			t.Fatal(err)
		}
		if _ = waits.Wait(); waits.ProcessState.ExitCode() != exitInterrupted { // the code says it
			t.Errorf("%s of a server that waits ends it with %v", name, waits.ProcessState)
		}
	}
	text, _ := ask(home, secret, "--workspace", dir, "run", `write "x" to h.txt`, "--on-approval", "deny")
	_, hint, _ := strings.Cut(strings.TrimSpace(text), "see: regie ")
	hint, _, _ = strings.Cut(hint, "\n")
	if words := strings.Fields(hint); !strings.HasPrefix(hint, "runs show ") {
		t.Errorf("what to type is %q of %s", hint, text)
	} else if shown, code := ask(home, secret, append(words, "--workspace", dir)...); code != exitDone || !strings.Contains(shown, "h.txt") {
		t.Errorf("what it says to type: %d, %s", code, shown)
	}
	everyCommand(t, func(args ...string) (string, int) { return ask(home, secret, append(args, "--workspace", dir)...) })
	if text, code := ask(dir, "wrong", "sessions", "list"); code != exitError || !strings.Contains(text, "REGIE_TOKEN") {
		t.Errorf("with a wrong token: %d, %s", code, text)
	}
	if left, err := os.ReadDir(filepath.Join(home, "elsewhere")); err == nil {
		t.Errorf("who asks a server keeps %v", left)
	}
	if err := serve.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := serve.Wait(); err != nil || !strings.Contains(said.String(), "stopping") {
		t.Errorf("the end: %v, %s", err, said.String())
	}
	if text, code := ask(dir, secret, "sessions", "list"); code != exitError || !strings.Contains(text, "is regie serve running there?") {
		t.Errorf("when it has ended: %d, %s", code, text)
	}
}

// TestKeyOfTheEngine: a command that has no model asks an engine that runs, which has one; without
// that engine it says what is missing.
func TestKeyOfTheEngine(t *testing.T) {
	dir, home := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "facts.txt"), []byte("the boiler is from 1987\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "REGIE_LANG=en", "REGIE_DATA_DIR=" + filepath.Join(home, "data"), "OLLAMA_HOST=http://127.0.0.1:1"}
	ask := func(stdin string, args ...string) (string, int) {
		t.Helper()
		c := exec.CommandContext(t.Context(), "regie", args...)
		c.Dir, c.Env, c.Stdin = dir, env, strings.NewReader(stdin)
		text, _ := c.CombinedOutput() // the code says it
		return string(text), c.ProcessState.ExitCode()
	}
	serve := exec.CommandContext(t.Context(), "regie", "serve", "--addr", "127.0.0.1:0", "--provider", "demo")
	serve.Dir, serve.Env = dir, env
	out, err := serve.StdoutPipe()
	if err == nil {
		err = serve.Start()
	}
	if err == nil {
		_, err = bufio.NewReader(out).ReadString('\n')
	}
	if err != nil {
		t.Fatal(err)
	}
	if text, code := ask("", "run", "what is in facts.txt"); code != exitDone || !strings.Contains(text, "the boiler is from 1987") {
		t.Errorf("a run: %d, %s", code, text)
	}
	if text, code := ask("what is in facts.txt\n", "chat"); code != exitDone || !strings.Contains(text, "the boiler is from 1987") {
		t.Errorf("a chat: %d, %s", code, text)
	}
	if err := serve.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := serve.Wait(); err != nil {
		t.Error(err)
	}
	if text, code := ask("", "run", "what is in facts.txt"); code != exitNoModel {
		t.Errorf("when it has ended: %d, %s", code, text)
	}
}

// everyCommand asks a server by each command, from another directory and with another data
// directory: what works does so with the exit codes that it has on its own machine, and what cannot
// says so.
func everyCommand(t *testing.T, ask func(args ...string) (string, int)) {
	t.Helper()
	for _, c := range []struct {
		command string
		code    int
		says    string
	}{
		{`run|write "x" to a.txt|--on-approval|park`, exitParked, "waiting for an approval"},
		{"approvals", exitDone, "write 1 line to a.txt"},
		{"approve|last", exitDone, "allowed: 1"},
		{`run|write "x" to b.txt|--on-approval|park`, exitParked, "waiting for an approval"},
		{"deny|last|--reason|not now", exitDone, "denied: 1"},
		{"deny|last", exitError, "nothing waits"},
		{"answer|last|yes", exitError, "nothing waits"},
		{`run|write "x" to c.txt|--on-approval|deny`, exitDenied, "DENIED"},
		{`run|write "x" to c.txt|--on-approval|fail`, exitDenied, "DENIED"},
		{"run|what is in facts.txt|--max-replies|1", exitLimit, "limit"},
		{"run|what is in facts.txt|--json", exitDone, `"end_reason":"ANSWERED"`},
		{"run|hello|--timeout|1ns", exitTimeout, "time is up"},
		{"run|--resume|nothing", exitUsage, "regie"},
		{"sessions|show|last", exitDone, "agent"},
		{"sessions|fork|last", exitDone, "forked"},
		{"sessions|export|last", exitDone, "regie-session-1"},
		{"sessions|export|last|--format|markdown", exitDone, "# what is in facts.txt"},
		{"sessions|rm|last|--yes", exitDone, ""},
		{"runs|list", exitDone, "ANSWERED"},
		{"runs|show|last", exitDone, "run "},
		{"prompt|show|last", exitDone, ""},
		{"rules|list", exitDone, ""},
		{"verify", exitDone, "altered: 0"},
		{"undo|--yes", exitDone, "files put back: 1"},
		{"models", exitDone, "demo"},
		{"models|--json", exitDone, `"chosen": true`},
		{"agents", exitDone, "demo, model demo"},
		{"tools", exitDone, "files.read_file"},
		{"tools|show|shell.shell_exec", exitDone, "action, once"},
		{"tools|show|nothing", exitError, "tools lists them"},
		{"search|boiler", exitDone, "facts.txt:1"},
		{"search|--exact|boiler", exitDone, "facts.txt:1"},
		{"search|--regex|b.iler|--json", exitDone, `"path": "facts.txt"`},
		{"search|--exact|BOILER", exitError, "nothing found"},
		{"search|boiler|nowhere", exitError, "nowhere"},
		{"index", exitUsage, "leave --server"},
		{"trust", exitUsage, "leave --server"},
		{"skills", exitUsage, "leave --server"},
		{"serve", exitUsage, "leave --server out"},
		{"setup", exitUsage, "leave --server out"},
		{"doctor", exitUsage, "leave --server out"},
		{"demo", exitUsage, "leave --server out"},
		{"mcp", exitDone, ""},
		{"acp", exitDone, ""},
		{"chat", exitDone, ""},
	} {
		if text, code := ask(strings.Split(c.command, "|")...); code != c.code || !strings.Contains(text, c.says) {
			t.Errorf("regie --server %s: %d, want %d with %q: %s", strings.ReplaceAll(c.command, "|", " "), code, c.code, c.says, text)
		}
	}
}
