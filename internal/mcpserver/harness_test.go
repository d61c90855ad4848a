package mcpserver_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/mcpserver"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/provider/providertest"
)

// harness is a workspace, an engine and a scripted model server.
type harness struct {
	t      *testing.T
	root   string
	env    map[string]string
	conn   *app.Conn
	config mcpserver.Config
	close  func() // the engine; once
}

func newHarness(t *testing.T, scenes ...providertest.Scene) *harness {
	t.Helper()
	if len(scenes) == 0 {
		scenes = []providertest.Scene{{Text: []string{"Hello \x1b[31mthere."}}}
	}
	model := providertest.NewServer(t, &providertest.Formats()[0], scenes...)
	b := &harness{t: t, root: filepath.Join(t.TempDir(), "place")}
	b.env = map[string]string{"REGIE_DATA_DIR": filepath.Join(t.TempDir(), "data"), "REGIE_BASE_URL": model.URL + "/v1", "REGIE_MODEL": "scripted", "REGIE_LANG": "en"}
	for name, text := range map[string]string{"a.txt": "alpha\nbeta \x1b]0;bad\x07\n", ".env": "TOKEN=canary\n", ".gitignore": "hidden/\n", "hidden/h.txt": "alpha hidden\n", ".regie/.keep": ""} {
		name = filepath.Join(b.root, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	settings, err := config.Load(func(name string) string { return b.env[name] }, config.Flags{})
	if err != nil {
		t.Fatal(err)
	}
	if b.conn, err = app.Connect(t.Context(), app.Options{Config: settings}); err != nil {
		t.Fatal(err)
	}
	b.close = sync.OnceFunc(func() {
		if err := b.conn.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(b.close)
	b.config = mcpserver.Config{Control: b.conn.ForMCP(), Version: "test", Request: dispatch.RunRequest{
		Root: b.root, FoundBy: ".regie", Agent: "main", Provider: settings.Provider, Model: settings.Model, Settings: settings.Fingerprint(),
	}}
	return b
}

// stdio connects a client over pipes, as a program on standard input and output is connected.
func (b *harness) stdio(options *mcp.ClientOptions) *mcp.ClientSession {
	b.t.Helper()
	in, clientOut := io.Pipe()
	clientIn, out := io.Pipe()
	served := make(chan error, 1)
	go func() {
		err := mcpserver.Serve(context.Background(), b.config, in, out)
		_ = out.Close()
		served <- err
	}()
	b.t.Cleanup(func() {
		_ = clientOut.Close()
		if err := <-served; err != nil {
			b.t.Errorf("serving ended with %v", err)
		}
	})
	return b.connect(&mcp.IOTransport{Reader: clientIn, Writer: clientOut}, options)
}

// http connects a client over streamable HTTP.
func (b *harness) http(options *mcp.ClientOptions) *mcp.ClientSession {
	b.t.Helper()
	return b.connect(&mcp.StreamableClientTransport{Endpoint: b.serve()}, options)
}

// serve returns the address of a server over HTTP.
func (b *harness) serve() string {
	b.t.Helper()
	handler, err := mcpserver.Handler(b.t.Context(), b.config)
	if err != nil {
		b.t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	b.t.Cleanup(server.Close)
	return server.URL
}

func (b *harness) connect(transport mcp.Transport, options *mcp.ClientOptions) *mcp.ClientSession {
	b.t.Helper()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "tester\x1b", Version: "1"}, options).Connect(b.t.Context(), transport, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = session.Close() })
	return session
}

// old has a client speak the protocol with a handshake, in which a server may ask.
func old(t *testing.T, b *harness, options *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	in, clientOut := io.Pipe()
	clientIn, out := io.Pipe()
	served := make(chan error, 1)
	go func() { served <- mcpserver.Serve(context.Background(), b.config, in, out) }()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "tester", Version: "1"}, options).Connect(t.Context(),
		&mcp.IOTransport{Reader: clientIn, Writer: clientOut}, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = session.Close()
		_ = clientOut.Close()
		if err := <-served; err != nil {
			t.Errorf("serving ended with %v", err)
		}
	})
	return session
}

// call calls a tool and returns its text and data.
func call(t *testing.T, session *mcp.ClientSession, tool string, arguments any) (text string, data map[string]any, failed bool) {
	t.Helper()
	out, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	var b strings.Builder
	for _, content := range out.Content {
		if text, ok := content.(*mcp.TextContent); ok {
			b.WriteString(text.Text)
		}
	}
	if raw, err := json.Marshal(out.StructuredContent); err != nil || json.Unmarshal(raw, &data) != nil && out.StructuredContent != nil {
		t.Fatalf("%s: the data %v cannot be read", tool, out.StructuredContent)
	}
	return b.String(), data, out.IsError
}

// writes is a scene in which a model wants to write a file.
func writes() providertest.Scene {
	arguments, _ := json.Marshal(map[string]string{"path": "new.txt", "content": "one\n"})
	return providertest.Scene{Text: []string{"I write."}, Calls: []provider.Call{{ID: "w", Name: "files__write_file", Arguments: string(arguments)}}}
}

type object = map[string]any
