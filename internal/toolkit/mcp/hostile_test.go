package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/tool"
)

func TestConnectFails(t *testing.T) {
	for _, row := range []struct {
		server string
		code   regie.Code
		says   []string
	}{
		{"dies", regie.CodeServerDown, []string{"no such ledger", "exit status 3", hidden}},
		{"hangs", regie.CodeServerDown, []string{"did not initialize within 300ms", "thinking"}},
		{"endless", regie.CodeServerDown, []string{"more than 100 pages"}},
		{"babbles", regie.CodeServerDown, []string{"something else than messages"}},
	} {
		t.Run(row.server, func(t *testing.T) {
			noLeak(t)
			c := command(t, row.server)
			c.Env[envToken] = "tk-canary-1234"
			if row.server == "hangs" {
				c.StartTimeout = 300 * time.Millisecond
			}
			_, err := connect(t.Context(), c, func(s *Server) { s.grace = 200 * time.Millisecond })
			if regie.CodeOf(err) != row.code {
				t.Fatalf("got %v", err)
			}
			for _, word := range row.says {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("it does not say %q: %v", word, err)
				}
			}
			if strings.Contains(err.Error(), "canary") || len(err.Error()) > 3000 {
				t.Errorf("it says too much: %v", err)
			}
		})
	}
	noLeak(t)
	if _, err := connect(t.Context(), Config{Name: "box", Command: []string{"/no/such/program"}}); regie.CodeOf(err) != regie.CodeServerDown {
		t.Errorf("a program that is not there: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := connect(ctx, command(t, "sdk")); err == nil {
		t.Errorf("an ended context connects")
	}
}

func TestBanner(t *testing.T) {
	s := start(t, command(t, "banner"))
	if out := call(t, named(t, s, "box.echo"), `{"a":1}`); out.Result != `{"a":1}` {
		t.Errorf("stray lines before the messages: %+v", out)
	}
}

func TestServerEndsDuringCall(t *testing.T) {
	s := start(t, command(t, "sdk"))
	out := call(t, named(t, s, "box.exits"), "{}")
	if out.State != regie.CallUnknown {
		t.Fatalf("%+v", out)
	}
	for _, word := range []string{"was lost after the call was sent", "exit status 7", "out of ideas"} {
		if !strings.Contains(out.Error.Message, word) {
			t.Errorf("it does not say %q: %s", word, out.Error.Message)
		}
	}
	if out := call(t, named(t, s, "box.echo"), "{}"); out.State != regie.CallSucceeded {
		t.Errorf("the call after it: %+v", out.Error)
	}
}

func TestRestartsAreBounded(t *testing.T) {
	at := time.Now()
	s := start(t, command(t, "sdk"), func(s *Server) { s.now = func() time.Time { return at } })
	exits, echo := named(t, s, "box.exits"), named(t, s, "box.echo")
	crash := func() regie.CallState { return call(t, exits, "{}").State }
	down := func() bool {
		out := call(t, echo, "{}")
		return out.State == regie.CallFailed && out.Error.Code == regie.CodeServerDown
	}
	for range 2 {
		if crash() != regie.CallUnknown {
			t.Fatalf("the first restart is not at once")
		}
	}
	restarts := 1
	for restarts < 100 {
		if !down() {
			t.Fatalf("restart %d came without a pause", restarts+1)
		}
		before := at
		for step := time.Second; step <= 8*time.Second && down(); step *= 2 {
			at = before.Add(step)
		}
		if down() {
			break
		}
		if crash() != regie.CallUnknown {
			t.Fatal("it did not run")
		}
		restarts++
	}
	if restarts != len(pauses)-1 {
		t.Errorf("%d restarts before it was left alone", restarts)
	}
	if at = at.Add(11 * time.Minute); down() {
		t.Errorf("it is left alone for ever")
	}
	crash()
	if !down() {
		t.Errorf("the count of restarts began anew by itself")
	}
	if at = at.Add(11 * time.Minute); down() {
		t.Errorf("it is left alone for ever, the second time")
	}
	at = at.Add(2 * steady) // shorter than the pause that it is in
	crash()
	if down() {
		t.Errorf("a server that lasted is not restarted at once")
	}
}

// TestTriesAreBounded tries a server that was never there as rarely as one that keeps ending, and
// one behind a URL, which is not started by trying, once a minute at the least.
func TestTriesAreBounded(t *testing.T) {
	for name, row := range map[string]struct {
		c    Config
		last time.Duration
	}{
		"command": {Config{Name: "box", Command: []string{"/no/such/program"}}, pauses[len(pauses)-1]},
		"url":     {Config{Name: "box", URL: "http://127.0.0.1:1/mcp", AllowPrivate: true}, patience},
	} {
		t.Run(name, func(t *testing.T) {
			noLeak(t)
			s, err := New(row.c)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			at := time.Now()
			s.now = func() time.Time { return at }
			tried := func() bool {
				err := s.Ensure(t.Context())
				if regie.CodeOf(err) != regie.CodeServerDown {
					t.Fatalf("got %v", err)
				}
				return !strings.Contains(err.Error(), "tried again")
			}
			for _, pause := range append(slices.Clone(pauses[:len(pauses)-1]), row.last, row.last) {
				if at = at.Add(pause - 1); pause > 0 && tried() {
					t.Errorf("it was tried within %s", pause)
				}
				if at = at.Add(1); !tried() {
					t.Errorf("it was not tried after %s", pause)
				}
			}
		})
	}
}

func TestHugeMessage(t *testing.T) {
	s := start(t, command(t, "huge"))
	out := call(t, named(t, s, "box.do"), "{}")
	if out.State != regie.CallUnknown || !strings.Contains(out.Error.Message, "more than 16777216 bytes") {
		t.Errorf("%+v %+v", out, out.Error)
	}
}

// A server that does not read: what fits into the pipe is sent and unknown; what waits behind it
// was not.
func TestDeafServer(t *testing.T) {
	c := command(t, "deaf")
	c.Timeout = 500 * time.Millisecond
	s := start(t, c, func(s *Server) { s.grace = 100 * time.Millisecond })
	do := named(t, s, "box.do")
	if out := call(t, do, "{}"); out.State != regie.CallUnknown {
		t.Errorf("a call in the pipe: %+v", out)
	}
	large, err := json.Marshal(map[string]string{"a": strings.Repeat("x", 1<<20)})
	if err != nil {
		t.Fatal(err)
	}
	results := make(chan tool.Outcome, 2)
	for range 2 {
		go func() { results <- tool.Run(t.Context(), do, invocation(string(large))) }()
	}
	states := map[regie.CallState]int{}
	for range 2 {
		states[(<-results).State]++
	}
	if states[regie.CallUnknown] != 1 || states[regie.CallFailed] != 1 {
		t.Errorf("one was written in part, one not at all: %v", states)
	}
}

// A message that was not begun leaves the connection as it was; one that was written in part ends
// it.
func TestWriteEndsWithItsContext(t *testing.T) {
	noLeak(t)
	theirs, ours, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer theirs.Close()
	defer ours.Close()
	p := &process{in: ours, stop: make(chan struct{})}
	c := &stdioConn{p: p, writing: make(chan struct{}, 1)}
	id, err := jsonrpc.MakeID("1")
	if err != nil {
		t.Fatal(err)
	}
	write := func(size int) (*flight, error) {
		params, err := json.Marshal(strings.Repeat("x", size))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		ctx, flight := withFlight(ctx, true)
		return flight, c.Write(ctx, &jsonrpc.Request{ID: id, Method: "tools/call", Params: params})
	}
	var flight *flight
	for err == nil { // small ones are written whole or not at all
		flight, err = write(3000)
	}
	if !errors.Is(err, context.DeadlineExceeded) || flight.sent.Load() || c.broken {
		t.Errorf("a message that found no room: sent %v, broken %v, %v", flight.sent.Load(), c.broken, err)
	}
	if _, err := io.ReadFull(theirs, make([]byte, 16<<10)); err != nil {
		t.Fatal(err)
	}
	if flight, err := write(10); err != nil || !flight.sent.Load() {
		t.Errorf("the next one, with room: %v", err)
	}
	if flight, err := write(200 << 10); err == nil || !flight.sent.Load() || !c.broken {
		t.Errorf("a message written in part: sent %v, broken %v, %v", flight.sent.Load(), c.broken, err)
	}
	select {
	case <-p.stop:
	default:
		t.Errorf("a server that got half a message goes on")
	}
	if flight, err := write(10); err == nil || flight.sent.Load() {
		t.Errorf("a message behind half a one: %v", err)
	}
}

func TestServerAsksWithoutEnd(t *testing.T) {
	s := start(t, command(t, "asks"), func(s *Server) { s.grace = 100 * time.Millisecond })
	out := call(t, named(t, s, "box.do"), "{}")
	if out.State != regie.CallUnknown || !strings.Contains(out.Error.Message, "was lost") {
		t.Errorf("%+v %+v", out, out.Error)
	}
}

func TestEnvironment(t *testing.T) {
	own := []string{"PATH=/bin", "HOME=/h", "LANG=C", "AWS_SECRET_ACCESS_KEY=x", "SHELL=() { :; }", "REGIE_API_KEY=y", "=C:=odd"}
	got := strings.Join(processEnv(own, map[string]string{"HOME": "/other", "TOKEN": "z"}), " ")
	for _, want := range []string{"PATH=/bin", "LANG=C", "HOME=/other", "TOKEN=z"} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is missing in %q", want, got)
		}
	}
	for _, bad := range []string{"AWS", "REGIE", "HOME=/h", "()", "odd"} {
		if strings.Contains(got, bad) {
			t.Errorf("%s is in %q", bad, got)
		}
	}
}

func TestTail(t *testing.T) {
	log := &tail{}
	secret := "sk-canary-9876"
	for range 3000 {
		if _, err := log.Write([]byte("line with " + secret + "\x1b[31m\n")); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := log.Write([]byte("the end")); err != nil {
		t.Fatal(err)
	}
	quote := log.lastLines([]string{secret})
	if len(log.data) > maxTail || len(quote) > maxQuote+3 || strings.Contains(quote, "canary") || strings.ContainsRune(quote, 0x1b) || !strings.HasSuffix(quote, "the end") {
		t.Errorf("%d bytes kept, quoted as %q", len(log.data), quote)
	}
	if _, err := log.Write([]byte(strings.Repeat("y", 10*maxTail))); err != nil || len(log.data) > maxTail {
		t.Errorf("%d bytes kept, %v", len(log.data), err)
	}
	if quote := (&tail{}).lastLines(nil); quote != "" {
		t.Errorf("an empty one says %q", quote)
	}
}

// A server whose directory is given runs there.
func TestDir(t *testing.T) {
	c := command(t, "sdk")
	c.Dir = t.TempDir()
	c.Env["PWD"] = "set by us"
	s := start(t, c)
	if _, err := os.Stat(c.Dir); err != nil {
		t.Fatal(err)
	}
	if out := call(t, named(t, s, "box.env"), "{}"); !strings.Contains(out.Result, "PWD=") {
		t.Errorf("%+v", out)
	}
}
