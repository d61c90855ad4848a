package chat_test

import (
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/chat"
)

// there looks into a workspace of some files and directories.
func there(name string) (regie.EnrichmentBlock, bool) {
	targets := map[string]regie.PointerTarget{
		"a.md": regie.TargetFile, "src": regie.TargetDirectory, "src/b.go": regie.TargetFile, "a b.txt": regie.TargetFile, "c++": regie.TargetFile,
		"odd.": regie.TargetFile, "é.txt": regie.TargetFile, ".": regie.TargetDirectory, "example.org": regie.TargetFile, "(x).md": regie.TargetFile,
	}
	if strings.HasPrefix(name, "/") || strings.HasPrefix(name, "..") {
		return regie.EnrichmentBlock{}, false
	}
	clean := path.Clean(name)
	target, ok := targets[clean]
	return regie.EnrichmentBlock{Target: target, Path: clean}, ok
}

// TestMentions cuts what people type: a mention begins a word and names what is there; everything
// else stays as it was typed.
func TestMentions(t *testing.T) {
	for typed, want := range map[string]string{
		"@a.md":                              "<a.md>",
		"see @a.md.":                         "see |<a.md>|.",
		"see @a.md, @src and @src/b.go!":     "see |<a.md>|, |<src/>| and |<src/b.go>|!",
		"(@a.md) [@src/]":                    "(|<a.md>|) [|<src/>|]",
		"\"@a.md\" «@é.txt»":                 "\"|<a.md>|\" «|<é.txt>|»",
		`read @"a b.txt" now`:                `read |<a b.txt>| now`,
		`read @"a.md"`:                       "read |<a.md>",
		"a line\n@c++\nanother":              "a line\n|<c++>|\nanother",
		"what is in @odd.":                   "what is in |<odd.>",
		"@(x).md":                            "<(x).md>",
		"@src/../a.md":                       "<a.md>",
		"everything in @. please":            "everything in |<./>| please",
		"@a.md and @./a.md and @src/../a.md": "<a.md>| and @./a.md and @src/../a.md",
		`not \@a.md, but @src`:               `not \@a.md, but |<src/>`,

		"me@example.org":        "",
		"@someone, look":        "",
		"@nothing.md":           "",
		`@"a b.txt`:             "",
		"@\"a\nb.txt\"":         "",
		"x@a.md":                "",
		`\@someone is a name`:   "",
		"@ a.md":                "",
		"@":                     "",
		"@../a.md and @/a.md":   "",
		"wait @.. and @...":     "",
		"nothing is named here": "",
		"":                      "",
	} {
		var got []string
		for _, s := range chat.Mentions(typed, there) {
			if s.Enrichment != nil {
				got = append(got, "<"+strings.Trim(strings.TrimPrefix(s.Enrichment.Label(), "@"), `"`)+">")
			} else {
				got = append(got, s.Text)
			}
		}
		if diff := cmp.Diff(want, strings.Join(got, "|")); diff != "" {
			t.Errorf("%q (-want +got):\n%s", typed, diff)
		}
	}
	if chat.Mentions("@a.md", nil) != nil {
		t.Error("something is named where nothing can be")
	}
}

// FuzzMentions: whatever is typed, nothing of it is lost, and what comes of it can be sent.
func FuzzMentions(f *testing.F) {
	for _, seed := range []string{"@a.md @src/b.go", `\@a.md @"a b.txt"`, "@@a.md@", `@"`, "é@é.txt @é.txt"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, typed string) {
		segments := chat.Mentions(typed, there)
		if len(segments) == 0 {
			return
		}
		blocks := 0
		for _, s := range segments {
			if s.Enrichment != nil {
				blocks++
			}
		}
		if err := regie.ValidateSegments(segments); err != nil && blocks <= regie.MaxEnrichments {
			t.Fatal(err)
		}
		for _, s := range segments {
			if s.Text != "" && !strings.Contains(typed, s.Text) {
				t.Fatalf("%q was not typed: %q", s.Text, typed)
			}
		}
	})
}
