package workspace_test

import (
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/workspace"
)

func TestClean(t *testing.T) {
	for _, row := range []struct {
		name string
		want string
		code regie.Code
	}{
		{"a.md", "a.md", ""},
		{".", ".", ""},
		{"./a", "a", ""},
		{"a/", "a", ""},
		{"a//b/./c/.", "a/b/c", ""},
		{"a/../b", "b", ""},
		{"a/..", ".", ""},
		{"...", "...", ""},
		{"..a/b..", "..a/b..", ""},
		{"a b/é.md", "a b/é.md", ""},
		{"~a", "~a", ""},
		{"a/~", "a/~", ""},
		{"-rf", "-rf", ""},
		{strings.Repeat("a/", 255) + "a", strings.Repeat("a/", 255) + "a", ""},
		{strings.Repeat("a", 255), strings.Repeat("a", 255), ""},
		{"", "", regie.CodePathInvalid},
		{"a\x00b", "", regie.CodePathInvalid},
		{"a.md\x00.png", "", regie.CodePathInvalid},
		{"a\xff", "", regie.CodePathInvalid},
		{"\xc0\xae\xc0\xae/x", "", regie.CodePathInvalid}, // an overlong ..
		{`a\b`, "", regie.CodePathInvalid},
		{`..\..\x`, "", regie.CodePathInvalid},
		{`C:\x`, "", regie.CodePathInvalid},
		{"a\nb", "", regie.CodePathInvalid},
		{"a\x1b[2Jb", "", regie.CodePathInvalid},
		{"a\u202egpj.exe", "", regie.CodePathInvalid},
		{strings.Repeat("a", 256), "", regie.CodePathInvalid},
		{strings.Repeat("a/", 3000), "", regie.CodePathInvalid},
		{strings.Repeat("a/", 256) + "a", "", regie.CodePathInvalid},
		{strings.Repeat("x/../", 1200), "", regie.CodePathInvalid},
		{"..", "", regie.CodePathOutside},
		{"../a", "", regie.CodePathOutside},
		{"a/../../b", "", regie.CodePathOutside},
		{"./../a", "", regie.CodePathOutside},
		{"/etc/passwd", "", regie.CodePathOutside},
		{"//etc/passwd", "", regie.CodePathOutside},
		{"/", "", regie.CodePathOutside},
		{"~", "", regie.CodePathOutside},
		{"~/.bashrc", "", regie.CodePathOutside},
		{"./~/x", "", regie.CodePathOutside},
	} {
		got, err := workspace.Clean(row.name)
		if got != row.want || regie.CodeOf(err) != row.code {
			t.Errorf("%.40q: got %q, %v; want %q, %s", row.name, got, err, row.want, row.code)
		}
	}
}

func TestCleanAbsolute(t *testing.T) {
	p := newPlace(t)
	for name, want := range map[string]string{
		p.dir: ".", p.dir + "/": ".", p.dir + "/a/b": "a/b", p.dir + "/a/../b": "b", p.dir + "/~/x": "~/x", p.outside + "/../workspace/a": "a", "a": "a",
	} {
		if got, err := p.root.Clean(name); got != want || err != nil {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}
	for name, want := range map[string]regie.Code{
		p.outside: regie.CodePathOutside, p.dir + "/..": regie.CodePathOutside, p.dir + "/../outside": regie.CodePathOutside,
		p.dir + "more/a": regie.CodePathOutside,
		"/":              regie.CodePathOutside, p.dir + "/a\x00": regie.CodePathInvalid, p.dir + "/" + strings.Repeat("a", 256): regie.CodePathInvalid,
	} {
		_, err := p.root.Clean(name)
		wantCode(t, name, err, want)
	}
}

func FuzzCleanPath(f *testing.F) {
	for _, seed := range []string{
		"a", "../a", "/a/b", "a/../../b", "~/x", "a\\b", "a\x00", "./.", "a//b/", "\xff", ".git/./x",
		strings.Repeat("ab/", 300),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		got, err := workspace.Clean(name)
		if err != nil {
			if code := regie.CodeOf(err); code != regie.CodePathInvalid && code != regie.CodePathOutside || got != "" {
				t.Fatalf("%q: %q, %v", name, got, err)
			}
			return
		}
		if !fs.ValidPath(got) || !filepath.IsLocal(filepath.FromSlash(got)) || len(got) > 4096 || strings.ContainsAny(got, "\x00\\") {
			t.Fatalf("%q becomes %q", name, got)
		}
		if again, err := workspace.Clean(got); again != got || err != nil {
			t.Fatalf("%q becomes %q, then %q, %v", name, got, again, err)
		}
		if joined, err := workspace.Clean("/root/" + name); err == nil {
			t.Fatalf("the absolute /root/%q is taken for %q", name, joined)
		}
	})
}

func TestProtected(t *testing.T) {
	for want, names := range map[workspace.Protection][]string{
		workspace.Internal: {
			".git", ".git/config", ".GIT/hooks/pre-commit", ".Git", "sub/.git/x", ".git./config", ".git /config", ".git::$INDEX_ALLOCATION/x", "git~1/config",
			".g\u200cit/config", ".regie/config.yaml", ".REGIE", ".g\u0131t/config",
		},
		workspace.Secret: {
			".env", ".ENV", ".env.local", ".envrc", "sub/.env.production", "server.pem", "server.PEM", "tls/server.key", "id_rsa", "id_rsa.old",
			"ID_ED25519", ".ssh",
			".ssh/config", "home/.SSH/known_hosts", ".\u017fsh/config", ".aws/credentials", ".netrc", ".npmrc", "a.p12", ".env ", ".env.", ".env:stream",
			".git/.env", ".e\u00adnv", "prod.env", "deploy/Backup.ENV", "kubeconfig", "dev.kubeconfig", "terraform.tfstate", "terraform.tfstate.backup",
			"secrets.yaml", "config/secrets.yml", "secret.json", "service-account-prod.json", "client_secret_12.json", ".my.cnf", ".dockercfg", "vpn.ovpn", ".cargo/credentials.toml",
			".docker/config.json", "home/.Docker/Config.json", ".config/gh/hosts.yml", ".m2/settings.xml", ".dev.vars", ".dev.vars.production", "prod.env.local", "a/b.env.production", "server.key.bak",
			"tls.pem.old", "application_default_credentials.json", "AuthKey_1.p8", "pass.kdbx", "terraform.tfstate.1700000.backup", "prod.tfvars", ".htpasswd", "htpasswd", ".authinfo.gpg",
			"app-firebase-adminsdk-x1.json", ".terraformrc", "rclone.conf", "credentials.yml", ".pgpass", "id_ed25519",
		},
		workspace.Unprotected: {
			".", "a.md", ".github/workflows/ci.yml", ".gitignore", ".gitattributes", "git/x", "environment.md", "env", ".env.example", "example.env", "id_rsa.pub", "secrets.md", "src/secrets.go", "service-account.md", "tfstate.md",
			"keys/monkey.md",
			"prod.env.example", "src/config.env.ts", "vite-env.d.ts", ".env.d.ts", ".dev.vars.example", "config.json", "docker/config.json", ".docker/nginx.conf", "hosts.yml", "settings.xml", "a.key.md", "b.p8.md",
			"tfstate.go", "environments.yml", "env.local.md", ".env.dist", "authinfo.go",
			".regiex", "a.pem.md", "key", "ssh/config",
		},
	} {
		for _, name := range names {
			if got := workspace.Protected(name); got != want {
				t.Errorf("%q: got %d, want %d", name, got, want)
			}
		}
	}
}
