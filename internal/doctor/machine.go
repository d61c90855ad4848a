package doctor

import (
	"context"
	"runtime"
	"strings"
)

// terminal says what the screen is, as far as it changes what is shown.
func (x *exam) terminal(context.Context) {
	if origin := x.Config.Origin["language"]; origin != "" {
		x.fine("language", "language %s (from %s)", x.Config.Language, origin)
	} else {
		x.fine("language", "English, because no variable names a language")
	}
	if locale := locale(x.Env); !utf8Locale(locale) {
		x.warn("encoding", "the locale %s has no UTF-8: ✓ and accents may look wrong",
			locale).run("export LC_ALL=C.UTF-8")
	}
	names := []string{"stdin", "stdout", "stderr"}
	var there []string
	for i, is := range x.Terminals {
		if is {
			there = append(there, names[i])
		}
	}
	if x.Terminals[0] && x.Terminals[2] {
		x.fine("streams", "a person can be asked here (%s)", strings.Join(there, ", "))
	} else {
		x.fine("streams", "nobody can be asked here: standard input or standard error is no terminal")
	}
	if x.Env("NO_COLOR") != "" {
		x.fine("colour", "NO_COLOR is set: no colours")
	}
	if x.Env("TERM") == "dumb" {
		x.fine("dumb", "TERM is dumb: plain lines")
	}
}

// locale is what decides on letters: the first of these that is set.
func locale(env func(string) string) string {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if value := env(name); value != "" {
			return value
		}
	}
	return "C"
}

func utf8Locale(name string) bool {
	name = strings.ToLower(strings.ReplaceAll(name, "-", ""))
	return strings.Contains(name, "utf8") || runtime.GOOS == "darwin"
}
