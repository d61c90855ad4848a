package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/regie-run/regie/internal/tool"
)

// TestDotenvSecrets: keys and passwords are secrets, settings that texts use all the time are none.
func TestDotenvSecrets(t *testing.T) {
	const text = `# comment with KEY=not-a-variable-1
export API_KEY=canary-export-1
DB_PASSWORD="canary #quoted 2" # a comment
STRIPE='canary4Aa567890123456' # random by itself
PLAIN_TOKEN=canary-5 # a comment
SECRET_WORD=canarycanary
DATABASE_URL=postgres://app:canary-pw6@db/app
PEM_KEY="-----BEGIN KEY-----
canaryLine7AAA
canaryLine8BBB
-----END KEY-----"
ESCAPED_KEY="-----BEGIN\ncanaryLine9CCC\n-----END"
LOCAL_URL=postgres://postgres:postgres@localhost/app
GH=ghp_canary10
EMPTY_KEY=
SHORT_KEY=abc1234
DEBUG=true
NODE_ENV=production
AUTH_HOST=auth.example.com:8080
AUTH_URL=http://localhost:3000/auth
SESSION_COOKIE=my_session
AUTH_MODE=Authorization2
PRIVATE_KEY_PATH=/home/me/key.pem
TOKEN_TTL=8640000000
API_KEY_HEADER=X-Api-Key-1
OTHER_KEY=localhost
YET_A_KEY=your-key-here-1
ENCODED_KEY=${API_KEY}_1
VERSION=2026.11.27-abcdef
UNCLOSED_KEY="canary-open-11
LAST_KEY=canary-last-12
`
	m := tool.NewMask(dotenvSecrets(".env", text))
	for _, secret := range []string{
		"canary-export-1", "canary #quoted 2", "canary4Aa567890123456", "canary-5", "canarycanary", "postgres://app:canary-pw6@db/app",
		"canary-pw6", "canaryLine7AAA", "canaryLine8BBB", "canaryLine9CCC", "ghp_canary10", "canary-open-11", "canary-last-12",
	} {
		if got := m.Text("x " + secret + " y"); strings.Contains(got, "canary") || !strings.HasPrefix(got, "x [secret: .env ") {
			t.Errorf("%q became %q", secret, got)
		}
	}
	for _, plain := range []string{
		"postgres", "abc1234", "true", "production", "auth.example.com:8080", "http://localhost:3000/auth", "my_session", "Authorization2",
		"/home/me/key.pem", "8640000000", "X-Api-Key-1", "localhost", "your-key-here-1", "2026.11.27-abcdef", "not-a-variable-1", "-----BEGIN KEY-----",
	} {
		if got := m.Text(plain); got != plain {
			t.Errorf("%q became %q", plain, got)
		}
	}
}

// TestDotenvMasks: a changed file counts from the next use on; the base stays masked, and large or
// endless files cost nothing.
func TestDotenvMasks(t *testing.T) {
	root := t.TempDir()
	base := tool.NewMask([]tool.Secret{{Name: "base", Value: "base-canary"}})
	var d dotenvMasks
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if d.maskOf(base, root) != base {
		t.Error("without a file it is another mask")
	}
	write(".env", "KEY=first-canary")
	write(".env.local", strings.Repeat("# much\n", maxDotenv/7)+"BEYOND_KEY=beyond-canary\n")
	first := d.maskOf(base, root)
	if got := first.Text("base-canary first-canary beyond-canary"); got != "[secret: base] [secret: .env KEY] beyond-canary" {
		t.Error(got)
	}
	if d.maskOf(base, root) != first {
		t.Error("an unchanged file is read again")
	}
	write(".env", "KEY=other-canary")
	if err := os.Chtimes(filepath.Join(root, ".env"), time.Time{}, time.Now().Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	if got := d.maskOf(base, root).Text("other-canary first-canary"); got != "[secret: .env KEY] first-canary" {
		t.Error(got)
	}
}
