package app

import (
	"testing"

	"github.com/regie-run/regie/internal/config"
)

// TestMaskOfOwn: the server's own token and what a file says of MCP servers are masked as far as
// they are secret.
func TestMaskOfOwn(t *testing.T) {
	var c config.Config
	c.File.MCPServers = map[string]config.MCPServer{"bank": {
		Env: map[string]string{"BANK_TOKEN": "bank-canary-1", "NODE_ENV": "production"}, Headers: map[string]string{"Authorization": "Bearer bank-canary-2", "Accept": "application/json"},
	}}
	m := newMask(&c, "rk-own-canary-token", nil)
	for text, want := range map[string]string{
		"t=rk-own-canary-token": "t=[secret: api.token]", "bank-canary-1": "[secret: mcp_servers.bank.BANK_TOKEN]", "x bank-canary-2": "x [secret: mcp_servers.bank.Authorization]",
		"production application/json": "production application/json",
	} {
		if got := m.Text(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}

// TestTokenBeforeItIs: the token that a server will have is masked before it is written.
func TestTokenBeforeItIs(t *testing.T) {
	dir := t.TempDir()
	first, err := loadToken(dir, "rk-that-is-masked-already")
	if err != nil || first != "rk-that-is-masked-already" {
		t.Fatalf("got %q, %v", first, err)
	}
	if again, err := loadToken(dir, "rk-another-that-comes-later"); err != nil || again != first {
		t.Errorf("got %q, %v", again, err)
	}
}
