package app_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/config"
)

// The MCP server of these tests is this test binary, started again with the address of its test in
// the environment.
const envBank = "APP_TEST_BANK"

func TestMain(m *testing.M) {
	if code, ours := app.Helper(os.Args); ours {
		syscall.Exit(code) // the race detector would sleep a second in os.Exit
	}
	if address := os.Getenv(envBank); address != "" {
		branch(address)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// bank is an MCP server over standard input and output whose processes do nothing without a word of
// the test: each dials the test first, and is told there when to serve, what, and what comes of a
// call.
type bank struct {
	t       *testing.T
	address string
	starts  chan *office
	plan    chan string // what the next processes are told at once
}

// office is a process of the server.
type office struct {
	t     *testing.T
	conn  net.Conn
	pid   int
	lines chan string // what it tells; closed when it is gone
}

func newBank(t *testing.T) *bank {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	fatal(t, err)
	b := &bank{t: t, address: listener.Addr().String(), starts: make(chan *office, 100), plan: make(chan string, 100)}
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	group.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			context.AfterFunc(ctx, func() { conn.Close() })
			group.Go(func() { b.serve(conn) })
		}
	})
	t.Cleanup(func() {
		listener.Close()
		cancel()
		group.Wait()
	})
	return b
}

func (b *bank) serve(conn net.Conn) {
	o := &office{t: b.t, conn: conn, lines: make(chan string, 100)}
	defer close(o.lines)
	in := bufio.NewScanner(conn)
	if in.Scan() {
		if _, err := fmt.Sscan(in.Text(), &o.pid); err == nil {
			select {
			case line := <-b.plan:
				fmt.Fprintln(conn, line)
			default:
			}
			b.starts <- o
		}
	}
	for in.Scan() {
		o.lines <- in.Text()
	}
}

// settings are the server's in regie.yaml.
func (b *bank) settings(class string, wait time.Duration) config.MCPServer {
	b.t.Helper()
	self, err := os.Executable()
	fatal(b.t, err)
	return config.MCPServer{
		Command: self, Env: map[string]string{envBank: b.address}, Wait: wait, Tools: map[string]config.MCPTool{"pay": {Kind: "action", Class: class}},
	}
}

// started waits for the next process.
func (b *bank) started() *office {
	b.t.Helper()
	select {
	case o := <-b.starts:
		return o
	case <-time.After(20 * time.Second):
		b.t.Fatal("the server is not started")
		return nil
	}
}

// open waits for the next process and has it serve.
func (b *bank) open() *office {
	b.t.Helper()
	o := b.started()
	o.say("offer pays")
	return o
}

// say tells the process what to do.
func (o *office) say(line string) {
	o.t.Helper()
	if _, err := fmt.Fprintln(o.conn, line); err != nil {
		o.t.Fatal(err)
	}
}

// paying waits for a call and returns the key under which it came.
func (o *office) paying() string {
	o.t.Helper()
	select {
	case line, ok := <-o.lines:
		if key, is := strings.CutPrefix(line, "pay "); ok && is {
			return key
		}
		o.t.Fatalf("the server says %q", line)
	case <-time.After(20 * time.Second):
		o.t.Fatal("the server is not called")
	}
	return ""
}

// kill ends the process at once, and waits until its socket says so.
func (o *office) kill() {
	o.t.Helper()
	p, err := os.FindProcess(o.pid)
	if err == nil {
		err = p.Kill()
	}
	fatal(o.t, err)
	for range o.lines {
	}
}

// branch is the server's process. Its words: "offer WORDS" serves the tool pay under that
// description; "more" offers another tool and tells the client; "paid" answers a call; "exit" ends
// it.
func branch(address string) {
	conn, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", address)
	if err != nil {
		fmt.Fprintln(os.Stderr, "the bank is closed")
		os.Exit(3)
	}
	fmt.Fprintln(conn, os.Getpid())
	s := sdk.NewServer(&sdk.Implementation{Name: "bank", Version: "1"}, nil)
	answers := make(chan string)
	pay := func(ctx context.Context, r *sdk.CallToolRequest, _ payArgs) (*sdk.CallToolResult, any, error) {
		fmt.Fprintln(conn, "pay", r.Params.Meta["io.github.regie-run/idempotency-key"])
		select {
		case text := <-answers:
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}}, nil, nil
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
	in := bufio.NewScanner(conn)
	for in.Scan() {
		switch word, rest, _ := strings.Cut(in.Text(), " "); word {
		case "offer":
			sdk.AddTool(s, &sdk.Tool{Name: "pay", Description: rest}, pay)
			go func() {
				_ = s.Run(context.Background(), &sdk.StdioTransport{})
				os.Exit(0)
			}()
		case "more":
			sdk.AddTool(s, &sdk.Tool{Name: "refund", Description: "pays back"}, pay)
			fmt.Fprintln(conn, "more")
		case "paid":
			answers <- word
		default:
			fmt.Fprintln(os.Stderr, "the bank is closed for today")
			os.Exit(3)
		}
	}
	select {} // the test has let go; the client ends it
}
