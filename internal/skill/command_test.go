package skill_test

import (
	"strings"
	"testing"

	"github.com/regie-run/regie/internal/skill"
)

func TestParseCommand(t *testing.T) {
	for name, c := range map[string]struct{ file, text, about, body string }{
		"with a description": {"review.md", "---\ndescription: Review  a file\nargument-hint: FILE\n---\nReview $1.\n", "Review a file", "Review $1."},
		"a message alone":    {"fix_it.md", "\uFEFFFix it.\n", "", "Fix it."},
		"unread front":       {"a.md", "---\ndescription: &a [*a]\n---\nSay a.", "", "Say a."},
		"no end of front":    {"b.md", "---\nSay b.", "", "---\nSay b."},
		"hidden letters":     {"c.md", "---\ndescription: \"a\\u200bb\"\n---\nSay c.", "", "Say c."},
		"another file":       {"notes.txt", "text", "", ""},
		"no name":            {"-x.md", "text", "", ""},
		"spaces":             {"a b.md", "text", "", ""},
		"nothing":            {"empty.md", "---\ndescription: d\n---\n \n", "", ""},
		"binary":             {"bin.md", "a\x00b", "", ""},
		"not UTF-8":          {"latin.md", "caf\xe9", "", ""},
		"too large":          {"large.md", strings.Repeat("a", skill.MaxFile+1), "", ""},
	} {
		got, ok := skill.ParseCommand(c.file, []byte(c.text))
		if ok != (c.body != "") || ok && (got.Description != c.about || got.Body != c.body || got.Name+".md" != c.file) {
			t.Errorf("%s: %+v, %v", name, got, ok)
		}
	}
}

func TestCommand_Expand(t *testing.T) {
	for _, c := range [][3]string{
		{"Review.", "", "Review."},
		{"Review.", "a.go now", "Review.\n\na.go now"},
		{"Review $1 for $2, $3.", `a.go "all of it"`, "Review a.go for all of it, ."},
		{"Do: $ARGUMENTS!", `x "y z"`, `Do: x "y z"!`},
		{"$1 costs $10 or $ARGUMENTSX", "it", "it costs $10 or $ARGUMENTSX"},
		{"Say $1.", "$ARGUMENTS $2", "Say $ARGUMENTS."}, // what is put in is not expanded again
		{"Nothing for $1.", "", "Nothing for ."},
	} {
		if got := (&skill.Command{Body: c[0]}).Expand(c[1]); got != c[2] {
			t.Errorf("%q with %q: %q, want %q", c[0], c[1], got, c[2])
		}
	}
}
