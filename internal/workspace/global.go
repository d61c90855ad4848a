package workspace

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Of git's own settings only the person's count: those of a repository, which anybody may have written, could name any file of the machine.
const (
	maxGitConfig  = 1 << 20
	globalsLooked = 2 * time.Second // for which what was read is taken for what is there
)

// globals remembers the person's ignore file: it is asked for with each path.
var globals struct {
	sync.Mutex
	home, base string
	read       time.Time
	rules      []byte
}

// globalIgnore is what the person has git ignore everywhere: the file that core.excludesFile names in their own settings, else git/ignore beside these.
func globalIgnore() []byte {
	home, base := os.Getenv("HOME"), os.Getenv("XDG_CONFIG_HOME")
	globals.Lock()
	defer globals.Unlock()
	if globals.home != home || globals.base != base || time.Since(globals.read) > globalsLooked {
		globals.home, globals.base, globals.read = home, base, time.Now()
		globals.rules = readGlobal(home, base)
	}
	return globals.rules
}

func readGlobal(home, base string) []byte {
	if base == "" && home != "" {
		base = filepath.Join(home, ".config")
	}
	var name string
	for _, config := range []string{filepath.Join(base, "git", "config"), filepath.Join(home, ".gitconfig")} { // the last one wins
		if said, ok := excludesFile(ownFile(config, maxGitConfig)); ok {
			name = said
		}
	}
	if rest, ok := strings.CutPrefix(name, "~/"); ok {
		name = filepath.Join(home, rest)
	}
	if name == "" {
		name = filepath.Join(base, "git", "ignore")
	}
	return ownFile(name, maxIgnoreFile)
}

// ownFile reads a regular file by its absolute path; nothing where there is none, or where it is too large.
func ownFile(name string, most int64) []byte {
	if !filepath.IsAbs(name) {
		return nil
	}
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }() // it was only read
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() || info.Size() > most {
		return nil
	}
	data, err := io.ReadAll(io.LimitReader(f, most))
	if err != nil {
		return nil
	}
	return data
}

// excludesFile finds core.excludesFile in a file of git's settings, as far as people write it: what the file includes is not looked at.
func excludesFile(config []byte) (name string, said bool) {
	core := false
	lines := bufio.NewScanner(bytes.NewReader(config))
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if strings.HasPrefix(line, "[") {
			end := strings.IndexByte(line, ']')
			if end < 0 {
				continue
			}
			core = strings.EqualFold(strings.TrimSpace(line[1:end]), "core")
			line = strings.TrimSpace(line[end+1:])
		}
		key, value, ok := strings.Cut(line, "=")
		if !ok || !core || !strings.EqualFold(strings.TrimSpace(key), "excludesfile") {
			continue
		}
		name, said = plainValue(strings.TrimSpace(value)), true
	}
	return name, said
}

// plainValue takes quotes and a comment off a value.
func plainValue(value string) string {
	var out strings.Builder
	quoted := false
	for i := 0; i < len(value); i++ {
		switch c := value[i]; {
		case c == '"':
			quoted = !quoted
		case c == '\\' && i+1 < len(value):
			i++
			out.WriteByte(value[i])
		case (c == '#' || c == ';') && !quoted:
			return strings.TrimSpace(out.String())
		default:
			out.WriteByte(c)
		}
	}
	return strings.TrimSpace(out.String())
}
