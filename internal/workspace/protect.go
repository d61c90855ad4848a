package workspace

import (
	"path"
	"strings"
	"unicode"

	"github.com/regie-run/regie"
)

// Protection is the protection of a path by the rules of spec 8.2.
type Protection int

// The protections, the stricter one last.
const (
	Unprotected Protection = iota
	Internal               // belongs to git or to regie: can be read, not written
	Secret                 // may hold a key or a password: neither, without a person's word
)

// secrets lists names that need a person's approval even for reading, in the form of foldName. A *
// at an end matches any text.
var secrets = []string{
	".env*", "*.env", "api.token", "*.pem", "*.key", "*.ppk", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx",
	"id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", ".netrc", "_netrc", ".pgpass", ".npmrc", ".pypirc",
	".git-credentials", ".htpasswd", ".vault-token", "credentials", "credentials.json", "credentials.toml",
	"secret.json", "secret.yaml", "secret.yml", "secrets.json", "secrets.yaml", "secrets.yml", "secrets.toml",
	"client_secret*", "service-account*.json", "service_account*.json", "kubeconfig", "*.kubeconfig", "*.tfstate",
	"*.tfstate.backup", ".my.cnf", ".mylogin.cnf", ".dockercfg", ".s3cfg", ".boto", "*.ovpn", "*.tfvars",
	"*.tfvars.json", "secring.gpg", "shadow", "gshadow", ".bash_history", ".zsh_history", ".python_history",
	".node_repl_history", ".psql_history", ".dev.vars*", "*.env.*", "*.key.bak", "*.key.old", "*.key.orig", "*.pem.bak",
	"*.pem.old", "*.p8", "*.kdb", "application_default_credentials.json", ".terraformrc", "terraform.rc", "*.tfstate.*",
	"rclone.conf", ".rclone.conf", ".age-key*", "*.agekey", "htpasswd", ".authinfo*", ".fetchmailrc",
	"*firebase-adminsdk*", "credentials.yml", "credentials.yaml", "secrets.env*", ".mysql_history", ".sqlite_history",
	".rediscli_history", "vault.yml", "vault.yaml", ".vault_pass*",
}

// secretDirs lists directories with only secret content.
var secretDirs = []string{".ssh", ".gnupg", ".aws", ".azure", ".kube", ".private"}

// harmless are names that look secret and are made to be shared.
var harmless = []string{
	".env.example", ".env.sample", ".env.template", ".env.dist", ".env.d.ts", "*.env.example", "*.env.sample",
	"*.env.template", "*.env.dist", "*.env.ts", "*.env.js", "*.env.mjs", "*.env.d.ts", "*.env.go", "*.env.py",
	"*.env.rb", "*.env.rs", "*.env.md", ".dev.vars.example", ".dev.vars.sample", ".dev.vars.template", "example.env",
	"sample.env", "template.env", "*.pub",
}

// internal are the directories of programs; the short names are those that Windows gives them.
var internal = []string{".git", ".regie", "git~1", "regie~1"}

// Protected returns the protection of a clean path (spec 8.2). It judges names alone; methods of
// Root judge each name that a path leads through.
func Protected(clean string) Protection {
	parts := strings.Split(clean, "/")
	found := Unprotected
	for i, part := range parts {
		found = max(found, protectedName(part, i == len(parts)-1), protectedPlace(strings.Join(parts[:i+1], "/")))
	}
	return found
}

// protectedName judges one name of a path; last says that it is the last one.
func protectedName(name string, last bool) Protection {
	name = foldName(name)
	switch {
	case matchesAny(name, secretDirs), last && matchesAny(name, secrets) && !matchesAny(name, harmless):
		return Secret
	case matchesAny(name, internal):
		return Internal
	default:
		return Unprotected
	}
}

// places lists files that are secret only in a certain directory.
var places = [][2]string{{".docker", "config.json"}, {"gh", "hosts.yml"}, {".m2", "settings.xml"}}

// protectedPlace judges a path without links by where it lies.
func protectedPlace(full string) Protection {
	dir, name := path.Split(full)
	if dir == "" {
		return Unprotected
	}
	name = foldName(name)
	for _, place := range places {
		if name == place[1] && foldName(path.Base(dir)) == place[0] {
			return Secret
		}
	}
	return Unprotected
}

// foldName gives a name the form that a lenient file system compares: without case, invisible
// characters, trailing dots and spaces, and stream names. A name that only such a file system
// equates must not bypass the rules.
func foldName(name string) string {
	if strings.IndexFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '.' && r != '_' && r != '-'
	}) < 0 {
		return strings.TrimRight(name, ".") // as most names are
	}
	name, _, _ = strings.Cut(name, ":")
	name = strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Variation_Selector, r) {
			return -1
		}
		return unicode.ToLower(unicode.ToUpper(r)) // by way of the capital, because ſ is an s only there
	}, name)
	return strings.TrimRight(name, ". ")
}

func matchesAny(name string, patterns []string) bool {
	for _, pattern := range patterns { // a search asks this of each name of a tree
		prefix, suffix, open := strings.Cut(pattern, "*")
		if inner, around := strings.CutSuffix(suffix, "*"); around && strings.Contains(name, inner) {
			return true
		}
		if name == pattern || open && len(name) >= len(prefix)+len(suffix) && strings.HasPrefix(name, prefix) &&
			strings.HasSuffix(name, suffix) {
			return true
		}
	}
	return false
}

// mayRead refuses a secret for which there is no person's word.
func mayRead(found Protection, name string) error {
	if found == Secret {
		return regie.Errorf(regie.CodePathProtected,
			"%s may contain a secret: it is read only where a person has allowed this very file", name)
	}
	return nil
}

// mayList refuses a directory of secrets: a person's word is for one file.
func mayList(found Protection, name string) error {
	if found == Secret {
		return regie.Errorf(regie.CodePathProtected, "%s may contain secrets: it is neither listed nor searched", name)
	}
	return nil
}

// mayWrite refuses a path that no tool may write, even with an approval. The caller asks for the
// approval that a secret needs.
func (r *Root) mayWrite(t target, name string) error {
	switch {
	case t.internal:
		return regie.Errorf(regie.CodePathProtected, "%s belongs to git or regie and is read-only", name)
	case gitRuns(r.dir, t.path):
		return regie.Errorf(regie.CodePathProtected,
			"git runs or relies on the content of %s: it is read-only here", name)
	default:
		return nil
	}
}
