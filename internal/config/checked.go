package config

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
)

// Checked is a file of settings that was looked at. Err is what is wrong with it, nil where nothing
// is.
type Checked struct {
	Path string
	Err  error
}

// Check looks at each file of settings by itself, in the order in which they count. One that is not
// there is none.
func Check(env func(string) string, flags Flags) (out []Checked) {
	file, setup := Paths(env, flags.Config)
	if setup == "" && file != "" && (flags.Config != "" || env("REGIE_CONFIG") != "") {
		return []Checked{CheckFile(file)}
	}
	for _, path := range []string{setup, cmp.Or(flags.System, SystemFile), file} {
		if _, err := os.Stat(path); path != "" && !errors.Is(err, fs.ErrNotExist) {
			out = append(out, CheckFile(path))
		}
	}
	return out
}

// CheckFile looks at one file of settings.
func CheckFile(path string) Checked {
	_, _, err := readLayer(LayerNamed, path)
	return Checked{path, err}
}
