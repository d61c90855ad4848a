package main

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
)

// TestProtocolSignalled ends programs that speak a protocol by each signal: that is no error, and
// all of them say so by the same exit code.
func TestProtocolSignalled(t *testing.T) {
	t.Parallel()
	hello := map[string]string{
		"mcp": `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`,
		"acp": `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}}`,
	}
	for speaks, first := range hello {
		for name, s := range map[string]syscall.Signal{"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP} {
			t.Run(speaks+name, func(t *testing.T) {
				t.Parallel()
				if signal.Ignored(s) {
					t.Skip("this test was started with the signal ignored, as by nohup, and so is what it starts")
				}
				dir := t.TempDir()
				cmd := exec.CommandContext(t.Context(), "regie", speaks, "--provider", "demo")
				cmd.Dir, cmd.Env = t.TempDir(), []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "REGIE_LANG=en", "REGIE_DATA_DIR=" + dir + "/data"}
				var said bytes.Buffer
				cmd.Stderr = &said
				in, err := cmd.StdinPipe()
				if err != nil {
					t.Fatal(err)
				}
				out, err := cmd.StdoutPipe()
				if err != nil {
					t.Fatal(err)
				}
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				if _, err := io.WriteString(in, first+"\n"); err != nil {
					t.Fatal(err)
				}
				if answer, err := bufio.NewReader(out).ReadString('\n'); err != nil || !strings.Contains(answer, `"result"`) {
					t.Fatalf("%s (%v)\n%s", answer, err, said.String())
				}
				if err := cmd.Process.Signal(s); err != nil {
					t.Fatal(err)
				}
				err = cmd.Wait()
				if exited, is := errors.AsType[*exec.ExitError](err); !is || exited.ExitCode() != exitInterrupted {
					t.Errorf("it ended with %v", err)
				}
				if said.Len() > 0 {
					t.Errorf("it says of its ordered end: %s", said.String())
				}
			})
		}
	}
}
