package mcp

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/tool"
)

func TestStdio(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "sk-must-stay-here")
	t.Setenv("REGIE_API_KEY", "rk-must-stay-here")
	c := command(t, "sdk")
	c.Env[envToken] = "tk-given-to-the-server"
	s := start(t, c)
	if _, err := tool.NewRegistry(s.Tools()...); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		tool, arguments string
		state           regie.CallState
		code            regie.Code
		says            string
	}{
		{"echo", `{"a":[1,"é"]}`, regie.CallSucceeded, "", `{"a":[1,"é"]}`},
		{"echo", ``, regie.CallSucceeded, "", `{}`},
		{"fails", `{}`, regie.CallUnknown, regie.CodeOutcomeUnknown, "three of four mails were sent"},
		{"invalid", `{}`, regie.CallFailed, regie.CodeBadArguments, "no such account"},
		{"broken", `{}`, regie.CallUnknown, regie.CodeOutcomeUnknown, "the disk is full"},
		{"structured", `{}`, regie.CallSucceeded, "", `{"list":[1,2],"n":1}`},
		{"nothing", `{}`, regie.CallSucceeded, "", "[the tool returned nothing]"},
		{"parts", `{}`, regie.CallSucceeded, "", "one\ntwo\n[image image/png, 1000 bytes, not shown]\n[audio audio/wav, 2000 bytes, not shown]\n" +
			"[resource \"a b\" at file:///a, text/plain, not shown]\n[resource at file:///c, of no given type or name, not shown]"},
	} {
		out := call(t, named(t, s, "box."+row.tool), row.arguments)
		if out.State != row.state {
			t.Errorf("%s: %s %+v", row.tool, out.State, out.Error)
			continue
		}
		if out.Error == nil && out.Result != row.says || out.Error != nil && (out.Error.Code != row.code || !strings.Contains(out.Error.Message, row.says)) {
			t.Errorf("%s: %q %+v", row.tool, out.Result, out.Error)
		}
	}
	env := call(t, named(t, s, "box.env"), "{}").Result
	if strings.Contains(env, "must-stay-here") || !strings.Contains(env, "PATH=") || !strings.Contains(env, envServer+"=sdk") {
		t.Errorf("the server's environment is %q", env)
	}
	if strings.Contains(env, "tk-given") || !strings.Contains(env, envToken+"="+hidden) {
		t.Errorf("the server's own secret comes back in a result: %q", env)
	}
	inv := invocation("{}")
	for range 2 {
		if out := tool.Run(t.Context(), named(t, s, "box.meta"), inv); out.Result != inv.CallID.String() {
			t.Errorf("the server saw the key %q for the call %s", out.Result, inv.CallID)
		}
	}
	much := call(t, named(t, s, "box.much"), "{}")
	if whole := much.Whole; len(whole) > maxContent || len(whole) < maxContent-1 || !strings.HasSuffix(whole, "é") {
		t.Errorf("a large result has %d bytes", len(whole))
	}
}

// A server that asks for what is not offered gets an answer, so that it can go on.
func TestDeclines(t *testing.T) {
	s := start(t, command(t, "sdk"))
	out := call(t, named(t, s, "box.asks"), "{}")
	sampled, rest, _ := strings.Cut(out.Result, "|")
	elicited, roots, _ := strings.Cut(rest, "|")
	if !strings.Contains(sampled, "not support") || !strings.Contains(elicited, "not support") || roots != "0" {
		t.Errorf("it got %q, %+v", out.Result, out.Error)
	}
}

// The rug pull: what was approved is what runs, or nothing does.
func TestChangedDefinition(t *testing.T) {
	s := start(t, command(t, "sdk"))
	old := named(t, s, "box.echo")
	gone := named(t, s, "box.nothing")
	_, oldHash, _ := registryOf(t, old).Lookup("box.echo")
	if out := call(t, named(t, s, "box.mutates"), "{}"); out.State != regie.CallSucceeded {
		t.Fatalf("%+v", out)
	}
	told(t, s)
	for _, tl := range []tool.Tool{old, gone} {
		out := call(t, tl, `{"secret":1}`)
		if out.State != regie.CallFailed || out.Error.Code != regie.CodeToolChanged {
			t.Errorf("%s of before: %+v %+v", tl.Definition().Name, out, out.Error)
		}
	}
	relist(t, s)
	fresh := named(t, s, "box.echo")
	if _, hash, _ := registryOf(t, fresh).Lookup("box.echo"); hash == oldHash {
		t.Errorf("the changed definition has the hash of before")
	}
	if out := call(t, fresh, "{}"); out.Result != "robbed" {
		t.Errorf("the new tool: %+v", out)
	}
	if out := call(t, named(t, s, "box.meta"), "{}"); out.State != regie.CallSucceeded {
		t.Errorf("a tool that did not change: %+v", out.Error)
	}
}

func registryOf(t *testing.T, tools ...tool.Tool) *tool.Registry {
	t.Helper()
	r, err := tool.NewRegistry(tools...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// The same without a notice: the server comes back with other words, or changes them in silence.
func TestChangedAfterRestart(t *testing.T) {
	c := command(t, "shifts")
	if err := os.WriteFile(c.Env[envFile], []byte("Reads."), 0o600); err != nil {
		t.Fatal(err)
	}
	s := start(t, c)
	old := named(t, s, "box.do")
	if out := call(t, old, "{}"); out.Result != "did" {
		t.Fatalf("%+v", out.Error)
	}
	if out := call(t, old, `{"exit":true}`); out.State != regie.CallUnknown {
		t.Fatalf("a server that ends during a call: %+v %+v", out, out.Error)
	}
	if out := call(t, old, "{}"); out.Result != "did" {
		t.Fatalf("the same definition after a restart: %+v", out.Error)
	}
	if err := os.WriteFile(c.Env[envFile], []byte("Deletes."), 0o600); err != nil {
		t.Fatal(err)
	}
	// The list is a minute old at most when it is believed.
	later := time.Now().Add(2 * freshness)
	s.now = func() time.Time { return later }
	if out := call(t, old, "{}"); out.State != regie.CallFailed || out.Error.Code != regie.CodeToolChanged {
		t.Errorf("a definition that changed in silence: %+v %+v", out, out.Error)
	}
	if got := named(t, s, "box.do").Definition().Description; got != "Deletes." {
		t.Errorf("the tool now says %q", got)
	}
}

func TestCancelIsTold(t *testing.T) {
	c := command(t, "sdk")
	s := start(t, c)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan tool.Outcome, 1)
	go func() { done <- tool.Run(ctx, named(t, s, "box.waits"), invocation("{}")) }()
	noted(t, c, "started")
	cancel()
	if out := <-done; out.State != regie.CallUnknown {
		t.Errorf("a cancelled call: %+v", out)
	}
	noted(t, c, "cancelled")
	if out := call(t, named(t, s, "box.echo"), "{}"); out.State != regie.CallSucceeded {
		t.Errorf("the next call: %+v", out.Error)
	}
}

// noted waits until the server has written a line into its file.
func noted(t *testing.T, c Config, line string) {
	t.Helper()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); <-ticker.C {
		if data, _ := os.ReadFile(c.Env[envFile]); slices.Contains(strings.Split(string(data), "\n"), line) {
			return
		}
	}
	t.Fatalf("the server never noted %q", line)
}

func TestTimeout(t *testing.T) {
	c := command(t, "sdk")
	c.Timeout = 300 * time.Millisecond
	s := start(t, c)
	out := call(t, named(t, s, "box.waits"), "{}")
	if out.State != regie.CallUnknown || !strings.Contains(out.Error.Message, "longer than 300ms") {
		t.Errorf("%+v %+v", out, out.Error)
	}
	if strings.Contains(out.Error.Message, "still be at work") {
		t.Errorf("the call did not end with its context")
	}
}

func TestCloseEndsCallsAndProcesses(t *testing.T) {
	noLeak(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	c := command(t, "forks")
	c.Env[envFile] = listener.Addr().String()
	s := start(t, c)
	child, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer child.Close()
	s.Close()
	s.Close()
	// The child ignores what one can ignore, and holds the connection as long as it lives.
	if err := child.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := child.Read(make([]byte, 1)); err == nil || os.IsTimeout(err) {
		t.Errorf("the server's child has outlived it: %v", err)
	}
	if out := call(t, named(t, s, "box.echo"), "{}"); out.State != regie.CallFailed || out.Error.Code != regie.CodeServerDown {
		t.Errorf("a call of a closed server: %+v", out)
	}
}

func TestCloseDuringCall(t *testing.T) {
	c := command(t, "sdk")
	s := start(t, c)
	waits := named(t, s, "box.waits")
	done := make(chan tool.Outcome, 1)
	go func() { done <- tool.Run(t.Context(), waits, invocation("{}")) }()
	noted(t, c, "started")
	s.Close()
	if out := <-done; out.State != regie.CallUnknown || !strings.Contains(out.Error.Message, "is closed") {
		t.Errorf("%+v %+v", out, out.Error)
	}
}

func TestModernProtocol(t *testing.T) {
	c := command(t, "modern")
	s := start(t, c)
	out := call(t, named(t, s, "box.do"), "{}")
	if out.State != regie.CallUnknown || !strings.Contains(out.Error.Message, "asks for input") {
		t.Errorf("%+v %+v", out, out.Error)
	}
	relist(t, s)
	data, err := os.ReadFile(c.Env[envFile])
	if got := strings.Fields(string(data)); err != nil || !slices.Equal(got, []string{"listed", "called", "listed"}) {
		t.Errorf("a list from a cache, or a call sent again: %q", got)
	}
}

func TestKeyIsAValidName(t *testing.T) {
	prefix, name, ok := strings.Cut(KeyMeta, "/")
	if !ok || name == "" || strings.Contains(prefix, "modelcontextprotocol") || strings.Contains(prefix, "mcp") {
		t.Errorf("%s is reserved by the protocol", KeyMeta)
	}
	if data, err := json.Marshal(map[string]string{KeyMeta: "x"}); err != nil || !json.Valid(data) {
		t.Error(err)
	}
}
