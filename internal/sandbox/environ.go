package sandbox

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// passed are the variables that a command gets of the environment: what programs and toolchains
// need to be found and to speak the person's language. Keys and tokens are in others, and stay
// outside (spec 8.2, 11.3).
var passed = []string{
	"PATH", "USER", "LOGNAME", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "LC_MESSAGES", "LC_NUMERIC", "LC_TIME",
	"LC_COLLATE", "LC_MONETARY", "TZ", "TERM",
	"COLORTERM", "NO_COLOR", "CI", "EDITOR", "GOROOT", "GOPATH", "GOMODCACHE", "GOTOOLCHAIN", "GOOS", "GOARCH",
	"CGO_ENABLED", "RUSTUP_HOME", "JAVA_HOME", "VIRTUAL_ENV",
	"PYENV_ROOT", "NVM_DIR", "SSL_CERT_FILE", "SSL_CERT_DIR", "SOURCE_DATE_EPOCH",
}

// secretName and secretValue are what no variable that is passed without being named may look like.
var (
	secretName  = regexp.MustCompile(`(?i)(KEY|TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|AUTH|COOKIE|SESSION|DSN|PRIVATE)`)
	secretValue = regexp.MustCompile(`://[^/@\s]*:[^/@\s]+@|-----BEGIN|\b(sk-|sk_live_|ghp_|gho_|github_pat_|glpat-|xox[abprs]-|AKIA[0-9A-Z]{12}|AIza[0-9A-Za-z_-]{20}|hf_[A-Za-z]{10}|eyJ[A-Za-z0-9_-]{10,}\.)`)
	plainName   = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// IsSecret reports whether a variable, or a header, looks like one that holds a key or a password,
// by its name or its value.
func IsSecret(name, value string) bool {
	return secretName.MatchString(name) || secretValue.MatchString(value)
}

// Environment returns the variables that a command gets: an allow list without apparent secrets,
// and those named in the settings. PATH keeps only absolute directories outside the workspace, so
// that a file there never replaces a program of the system.
func Environment(environ, named []string, root string) []string {
	var out []string
	seen := map[string]bool{}
	for _, pair := range environ {
		name, value, ok := strings.Cut(pair, "=")
		// "()" is a shell's function
		if !ok || seen[name] || !plainName.MatchString(name) || strings.HasPrefix(value, "()") {
			continue
		}
		wished := slices.Contains(named, name)
		if !wished && (!slices.Contains(passed, name) || IsSecret(name, value)) {
			continue
		}
		if name == "PATH" {
			value = cleanPATH(value, root)
		}
		seen[name] = true
		out = append(out, name+"="+value)
	}
	if !seen["PATH"] {
		out = append(out, "PATH=/usr/local/bin:/usr/bin:/bin")
	}
	return out
}

// cleanPATH leaves the directories of PATH that a command cannot write.
func cleanPATH(path, root string) string {
	var kept []string
	for _, dir := range filepath.SplitList(path) {
		if filepath.IsAbs(dir) && !isWithin(filepath.Clean(dir), root) && !strings.ContainsAny(dir, "\x00\n") {
			kept = append(kept, filepath.Clean(dir))
		}
	}
	return strings.Join(kept, string(filepath.ListSeparator))
}
