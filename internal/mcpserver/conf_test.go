package mcpserver_test

import (
	"testing"
	"os/exec"
	"fmt"
)

func TestConfRaw(t *testing.T) {
	b := newBed(t)
	url := b.serve()
	cmd := exec.CommandContext(t.Context(), "node", "--import", "./globsync.mjs", "node_modules/@modelcontextprotocol/conformance/dist/index.js", "server", "--url", url, "--suite", "all", "--output-dir", t.TempDir())
	cmd.Dir = "testdata/npm"
	out, err := cmd.CombinedOutput()
	fmt.Println(string(out), err)
}
