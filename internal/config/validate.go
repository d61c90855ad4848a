package config

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Checked is a file of settings that was looked at.
type Checked struct {
	Kind LayerKind
	Path string
	// Err is what is wrong with it, nil where nothing is; Line is where, 0 where nobody knows.
	Err  error
	Line int
}

// Check looks at each file of settings by itself, in the order in which they count. One that is not
// there is none.
func Check(env func(string) string, flags Flags) (out []Checked) {
	file, setup := Paths(env, flags.Config)
	if setup == "" && file != "" && (flags.Config != "" || env("REGIE_CONFIG") != "") {
		return []Checked{CheckFile(LayerNamed, file)}
	}
	for _, at := range []Layer{
		{Kind: LayerSetup, Path: setup},
		{Kind: LayerSystem, Path: cmp.Or(flags.System, SystemFile)},
		{Kind: LayerUser, Path: file},
	} {
		if _, err := os.Stat(at.Path); at.Path == "" || errors.Is(err, fs.ErrNotExist) {
			continue
		}
		out = append(out, CheckFile(at.Kind, at.Path))
	}
	return out
}

// CheckFile looks at one file of settings.
func CheckFile(kind LayerKind, path string) Checked {
	out := Checked{Kind: kind, Path: path}
	data, err := readBytes(path)
	if err == nil {
		_, err = parseFile(path, data)
	}
	if out.Err = err; err != nil {
		out.Line = lineOf(data, err)
	}
	return out
}

// LineOf is where in a file the key stands that an error is about, 0 where nobody knows.
func LineOf(path string, err error) int {
	data, unread := readBytes(path)
	if unread != nil {
		return 0
	}
	return lineOf(data, err)
}

var namesLine = regexp.MustCompile(`\bline (\d+)`)

func lineOf(data []byte, err error) int {
	said := err.Error()
	if found := namesLine.FindStringSubmatch(said); found != nil {
		n, _ := strconv.Atoi(found[1]) // of digits
		return n
	}
	root, bad := mapping(data)
	if bad != nil {
		return 0
	}
	line, longest := 0, 0
	walk(root, "", func(key string, name, _ *yaml.Node) {
		if len(key) > longest && names(said, key) {
			line, longest = name.Line, len(key)
		}
	})
	return line
}

// names reports whether an error names a key, and not only one that begins or ends like it.
func names(said, key string) bool {
	part := func(b byte) bool {
		return b == '.' || b == '_' || b == '-' || b == '[' || '0' <= b && b <= '9' || 'a' <= b &&
			b <= 'z' || 'A' <= b && b <= 'Z'
	}
	for at := 0; ; {
		i := strings.Index(said[at:], key)
		if i < 0 {
			return false
		}
		from, to := at+i, at+i+len(key)
		if (from == 0 || !part(said[from-1]) && said[from-1] != '/') && (to == len(said) || !part(said[to])) {
			return true
		}
		at = from + 1
	}
}
