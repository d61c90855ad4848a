package mcp

import (
	"bufio"
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/tool"
)

// everything returns node and the script of a server that others wrote: the protocol's own
// reference server, as npm has it. It is installed by make npm.
func everything(t *testing.T) (node, script string) {
	t.Helper()
	modules := os.Getenv("REGIE_NPM_MODULES")
	if modules == "" {
		modules = filepath.Join("testdata", "npm", "node_modules")
	}
	script, err := filepath.Abs(filepath.Join(modules, "@modelcontextprotocol", "server-everything", "dist", "index.js"))
	if err == nil {
		_, err = os.Stat(script)
	}
	if err == nil {
		node, err = exec.LookPath("node")
	}
	if err != nil {
		if os.Getenv("REGIE_CI") == "1" {
			t.Fatalf("the MCP server of npm is not there (make npm installs it): %v", err)
		}
		t.Skip("the MCP server of npm is not there: make npm installs it")
	}
	return node, script
}

func TestNpmServer(t *testing.T) {
	node, script := everything(t)
	noLeak(t)
	s := start(t, Config{Name: "every", Command: []string{node, script, "stdio"}, TrustHints: true, Env: map[string]string{"MY_TOKEN": "tk-npm-canary"}})
	useEverything(t, s)
	env := call(t, named(t, s, "every.get-env"), "{}")
	if env.State != regie.CallSucceeded || strings.Contains(env.Result, "canary") || !strings.Contains(env.Result, "PATH") {
		t.Errorf("its environment: %+v %+v", env, env.Error)
	}
}

// useEverything calls the tools of the reference server that show most.
func useEverything(t *testing.T, s *Server) {
	t.Helper()
	if left := s.Warnings(); len(left) > 0 {
		t.Errorf("left out: %q", left)
	}
	var names []string
	for _, d := range registryOf(t, s.Tools()...).Definitions() {
		names = append(names, d.Name)
	}
	for _, row := range []struct{ tool, arguments, says string }{
		{"every.echo", `{"message":"héllo"}`, "héllo"},
		{"every.get-sum", `{"a":2,"b":40}`, "42"},
		{"every.get-tiny-image", `{}`, "[image image/png, "},
		{"every.get-structured-content", `{"location":"Chicago"}`, "temperature"},
		{"every.get-resource-links", `{"count":2}`, "[resource "},
	} {
		if !slices.Contains(names, row.tool) {
			t.Errorf("there is no %s among %q", row.tool, names)
			continue
		}
		out := call(t, named(t, s, row.tool), row.arguments)
		if out.State != regie.CallSucceeded || !strings.Contains(out.Result, row.says) {
			t.Errorf("%s: %+v %+v", row.tool, out, out.Error)
		}
	}
	if out := call(t, named(t, s, "every.get-sum"), `{"a":"x"}`); out.State == regie.CallSucceeded {
		t.Errorf("bad arguments: %+v", out)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if out := tool.Run(ctx, named(t, s, "every.trigger-long-running-operation"), invocation(`{"duration":60,"steps":60}`)); out.State == regie.CallSucceeded {
		t.Errorf("a cancelled call: %+v", out)
	}
	if out := call(t, named(t, s, "every.echo"), `{"message":"still there"}`); !strings.Contains(out.Result, "still there") {
		t.Errorf("after a cancelled call: %+v %+v", out, out.Error)
	}
}

func TestNpmServerOverHTTP(t *testing.T) {
	node, script := everything(t)
	noLeak(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	listener.Close()
	cmd := exec.CommandContext(context.Background(), node, script, "streamableHttp")
	cmd.Env = append(processEnv(os.Environ(), nil), "PORT="+port)
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	read := make(chan struct{})
	ready := make(chan struct{})
	go func() {
		defer close(read)
		for scanner, told := bufio.NewScanner(log), false; scanner.Scan(); {
			if !told && strings.Contains(scanner.Text(), "listening on port") {
				told = true
				close(ready)
			}
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-read
		_ = cmd.Wait()
	})
	select {
	case <-ready:
	case <-read:
		t.Fatal("the server ended before it listened")
	case <-time.After(time.Minute):
		t.Fatal("the server does not listen")
	}
	s := start(t, Config{Name: "every", URL: "http://127.0.0.1:" + port + "/mcp", AllowPrivate: true, TrustHints: true})
	useEverything(t, s)
}
