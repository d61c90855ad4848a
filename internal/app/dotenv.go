package app

import (
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"

	"github.com/regie-run/regie/internal/sandbox"
	"github.com/regie-run/regie/internal/tool"
)

const (
	// maxDotenv is how much of a .env file is read, in bytes, and maxDotenvKeys how many of a
	// workspace's values are looked for: each costs a search of every text.
	maxDotenv, maxDotenvKeys = 64 << 10, 100
	// maxDotenvRoots is of how many workspaces the masks are kept.
	maxDotenvRoots = 64
)

// dotenvNames are the files at the root of a workspace that programs load variables from.
var dotenvNames = []string{
	".env", ".env.local", ".env.development", ".env.production", ".env.staging", ".env.test",
	".env.development.local", ".env.production.local", ".env.test.local",
}

var (
	dotenvLine = regexp.MustCompile(`^\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_.]*)\s*=\s*(.*)$`)
	// plainSuffix and plainValue are names and values of variables next to a key: no secrets.
	plainSuffix = regexp.MustCompile(`(?i)_(NAME|ID|URL|URI|HOST|PORT|PATH|FILE|DIR|HEADER|PREFIX|TYPE|ALG|ALGORITHM|` +
		`MODE|TTL|EXPIRY|EXPIRES|EXPIRES_IN|TIMEOUT|DOMAIN|LENGTH|SIZE|ISSUER|AUDIENCE)$`)
	plainValue = regexp.MustCompile(`(?i)^(\d+|localhost(:\d+)?|development|production|staging|disabled|undefined|` +
		`changeme|change-me|password|username|postgres|anonymous|[$<].*|your[-_ ].*|x{8,}|\*+|` +
		`(\./|~/|/.*\.[a-z]{2,5}$).*|([a-z0-9-]+\.)+[a-z]+(:\d+)?)$`)
	// weakName may be of a setting as well: its value must look like no word of a program.
	weakName  = regexp.MustCompile(`(?i)(AUTH|COOKIE|SESSION)`)
	wordValue = regexp.MustCompile(`^([a-z_-]+|[A-Z_-]+|[A-Za-z]+)$`)
	// randomValue is a long word of the letters of keys.
	randomValue = regexp.MustCompile(`^[A-Za-z0-9_+=-]{20,}$`)
	lower       = regexp.MustCompile(`[a-z]`)
	upper       = regexp.MustCompile(`[A-Z]`)
	digit       = regexp.MustCompile(`[0-9]`)
)

// dotenvMasks add the keys in the .env files of workspaces to a mask. Each use looks at the files'
// sizes and times, so a changed key is masked from the next call on.
type dotenvMasks struct {
	mu    sync.Mutex
	known map[string]dotenvMask // by root
}

type dotenvMask struct {
	seen       string // the files as they were read
	base, mask *tool.Mask
}

// maskOf returns base with the keys of a workspace.
func (d *dotenvMasks) maskOf(base *tool.Mask, root string) *tool.Mask {
	var seen strings.Builder
	var files []string
	for _, name := range dotenvNames {
		name = filepath.Join(root, name)
		// a device or a pipe would not end
		if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() {
			files = append(files, name)
			stat, _ := info.Sys().(*syscall.Stat_t) // of every file of this kind
			_, _ = fmt.Fprintln(&seen, name, info.Size(), info.ModTime().UnixNano(), stat.Ino)
		}
	}
	if len(files) == 0 {
		return base
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if known := d.known[root]; known.seen == seen.String() && known.base == base {
		return known.mask
	}
	var secrets []tool.Secret
	for _, name := range files {
		secrets = append(secrets, readDotenv(name)...)
	}
	made := dotenvMask{seen.String(), base, base.With(secrets[:min(len(secrets), maxDotenvKeys)])}
	if d.known == nil || len(d.known) >= maxDotenvRoots {
		d.known = map[string]dotenvMask{}
	}
	d.known[root] = made
	return made.mask
}

// readDotenv returns the secrets of a file; what cannot be read has none.
func readDotenv(name string) []tool.Secret {
	file, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	defer file.Close()
	data, _ := io.ReadAll(io.LimitReader(file, maxDotenv))
	return dotenvSecrets(filepath.Base(name), string(data))
}

// dotenvSecrets returns the secret values of a .env file. A value of several lines, such as a
// private key, is masked line by line, because tools number lines.
func dotenvSecrets(file, text string) (out []tool.Secret) {
	lines := strings.Split(text, "\n")
	for len(lines) > 0 {
		found := dotenvLine.FindStringSubmatch(strings.TrimRight(lines[0], "\r"))
		lines = lines[1:]
		if found == nil {
			continue
		}
		name, value := found[1], found[2]
		if quote := value[:min(1, len(value))]; quote == `"` || quote == "'" {
			value = value[1:]
			quoted, _, closed := strings.Cut(value+"\n"+strings.Join(lines, "\n"), quote)
			if closed {
				value, lines = quoted, lines[strings.Count(quoted, "\n"):]
			}
		} else {
			value, _, _ = strings.Cut(value, " #")
		}
		if value = strings.TrimSpace(value); !isDotenvSecret(name, value) {
			continue
		}
		if u, err := url.Parse(value); err == nil && u.User != nil {
			password, _ := u.User.Password()
			value += "\n" + password
		}
		for line := range strings.Lines(strings.ReplaceAll(value, `\n`, "\n")) {
			if line = strings.TrimSpace(line); !strings.HasPrefix(line, "-----") && !plainValue.MatchString(line) {
				out = append(out, tool.Secret{Name: file + " " + name, Value: line})
			}
		}
	}
	return out
}

// isDotenvSecret reports whether a variable holds a key or a password, and not a setting such as
// localhost that texts use all the time.
func isDotenvSecret(name, value string) bool {
	switch {
	case sandbox.IsSecret("", value):
		return true
	case plainValue.MatchString(value), strings.Contains(value, "://"):
		return false
	case sandbox.IsSecret(name, "") && !plainSuffix.MatchString(name):
		return !wordValue.MatchString(value) || sandbox.IsSecret(weakName.ReplaceAllString(name, ""), "")
	}
	return randomValue.MatchString(value) && lower.MatchString(value) && upper.MatchString(value) &&
		digit.MatchString(value)
}
