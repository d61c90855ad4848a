package doctor

import (
	"cmp"
	"context"
	"runtime"
	"strings"
)

// terminal says what the screen is, as far as it changes what is shown.
func (x *exam) terminal(context.Context) {
	x.fine("language", "language %s (from %s)", cmp.Or(x.Config.Language, "en"),
		cmp.Or(x.Config.Origin["language"], "-"))
	locale := cmp.Or(x.Env("LC_ALL"), x.Env("LC_CTYPE"), x.Env("LANG"), "C")
	if !strings.Contains(strings.ToLower(strings.ReplaceAll(locale, "-", "")), "utf8") && runtime.GOOS != "darwin" {
		x.warn("encoding", "the locale %s has no UTF-8: ✓ and accents may look wrong",
			locale).run("export LC_ALL=C.UTF-8")
	}
	if x.Attended {
		x.fine("streams", "a person can be asked here")
	} else {
		x.fine("streams", "nobody can be asked here: standard input or standard error is no terminal")
	}
}
