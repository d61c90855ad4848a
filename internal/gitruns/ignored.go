package gitruns

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// maxAge is for how long what was read of the user's ignore file is taken for what is there: it is
// asked for with each path.
const maxAge = 2 * time.Second

var ignored struct {
	sync.Mutex
	from  string // the environment that said where to read
	read  time.Time
	rules []byte
}

// Ignored is what the user has git ignore everywhere: the rules of the file that core.excludesFile
// names in their own settings or in the system's, else of git/ignore beside these; nothing where
// there is none. The settings of a repository, which anybody may have written, do not count: they
// could name any file of the machine. Nor does what is included under a condition.
func Ignored() []byte {
	f := &finder{read: map[string]bool{}, sure: true}
	f.home, _ = os.UserHomeDir() // without one nothing begins with a tilde
	files := f.settings()
	from := strings.Join(append(files, userDirectory(f.home)), "\x00")
	ignored.Lock()
	defer ignored.Unlock()
	if ignored.from != from || time.Since(ignored.read) > maxAge {
		ignored.from, ignored.read, ignored.rules = from, time.Now(), contents(f.ignoreFile(files))
	}
	return ignored.rules
}

// ignoreFile is the absolute path of that file, or empty.
func (f *finder) ignoreFile(settings []string) string {
	name := ""
	if dir := userDirectory(f.home); dir != "" {
		name = filepath.Join(dir, "ignore")
	}
	for _, path := range settings {
		f.walk(path, 0, func(_, key, value string) {
			if key == "core.excludesfile" {
				name = f.expanded(value, ".")
			}
		})
	}
	if !filepath.IsAbs(name) { // nothing, or one that git looks for where it is called
		return ""
	}
	return name
}

// Identity is who the user is for git, as configuration: what a commit needs. It names no program.
func Identity() string {
	f := &finder{read: map[string]bool{}, sure: true}
	f.home, _ = os.UserHomeDir() // without one nothing begins with a tilde
	values := map[string]string{}
	for _, path := range f.settings() {
		f.walk(path, 0, func(_, key, value string) { values[key] = value })
	}
	var out strings.Builder
	for _, key := range []string{"user.name", "user.email", "init.defaultbranch"} {
		if value := values[key]; value != "" && !strings.ContainsAny(value, "\n\x00") {
			section, name, _ := strings.Cut(key, ".")
			escaped := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(value)
			out.WriteString("[" + section + "]\n\t" + name + " = \"" + escaped + "\"\n")
		}
	}
	return out.String()
}
