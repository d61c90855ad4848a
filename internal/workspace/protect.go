package workspace

import (
	"path"
	"strings"

	"github.com/regie-run/regie"
)

// secrets are the names that need a person's word even to be read (spec 8.2), in lower case.
var secrets = []string{
	".env", ".env.*", "*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.kdbx", "id_rsa*", "id_ecdsa*", "id_ed25519*", "id_dsa*",
	".netrc", ".pgpass", ".npmrc", ".pypirc", ".git-credentials", ".htpasswd", "credentials", "credentials.json", "*.keystore",
}

// secretDirs are directories of which everything is secret.
var secretDirs = []string{".ssh", ".gnupg", ".aws", ".private"}

// harmless are names that look secret and are made to be shared.
var harmless = []string{".env.example", ".env.sample", ".env.template", "*.pub"}

// IsSecret reports whether a resolved path looks like a secret. Letters of either case count: many file systems do not tell them
// apart.
func IsSecret(resolved string) bool {
	parts := strings.Split(strings.ToLower(resolved), "/")
	for _, part := range parts[:len(parts)-1] {
		if matches(part, secretDirs) {
			return true
		}
	}
	base := parts[len(parts)-1]
	return matches(base, secretDirs) || matches(base, secrets) && !matches(base, harmless)
}

func matches(name string, patterns []string) bool {
	for _, pattern := range patterns {
		if ok, err := path.Match(pattern, name); ok && err == nil {
			return true
		}
	}
	return false
}

// IsInternal reports whether a resolved path lies in a directory that belongs to a program (spec 8.2): it can be read, not written.
// A file system that does not tell cases apart, or that drops dots and spaces at a name's end, must not make a way around it.
func IsInternal(resolved string) bool {
	for _, part := range strings.Split(strings.ToLower(resolved), "/") {
		switch strings.TrimRight(part, ". ") {
		case ".git", ".regie", "git~1":
			return true
		}
	}
	return false
}

// checkWritable refuses what no tool may write.
func checkWritable(resolved, name string) error {
	switch {
	case resolved == ".":
		return regie.Errorf(regie.CodeNotAFile, "%s is the workspace itself", name)
	case IsInternal(resolved):
		return regie.Errorf(regie.CodePathProtected, "%s belongs to git or regie and cannot be written", name)
	case IsSecret(resolved):
		return regie.Errorf(regie.CodePathProtected, "%s looks like a secret: writing it needs a person's approval, which this run cannot ask for", name)
	}
	return nil
}
