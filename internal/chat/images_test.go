package chat

import (
	"strings"
	"testing"

	"github.com/regie-run/regie"
)

// TestMentionPastedImage holds which pasted paths become mentions: those of images that are there.
func TestMentionPastedImage(t *testing.T) {
	look := func(path string) (regie.EnrichmentBlock, bool) {
		return regie.EnrichmentBlock{Target: regie.TargetFile, Path: path}, !strings.Contains(path, "missing")
	}
	for pasted, want := range map[string]string{
		"/tmp/a.png":                `@"/tmp/a.png" `,
		" /tmp/a.JPG\n":             `@"/tmp/a.JPG" `,
		`'/tmp/my shot.png'`:        `@"/tmp/my shot.png" `,
		`"/tmp/my shot.jpeg"`:       `@"/tmp/my shot.jpeg" `,
		`/tmp/my\ shot.png`:         `@"/tmp/my shot.png" `,
		"file:///tmp/my%20shot.png": `@"/tmp/my shot.png" `,
		"/tmp/missing.png":          "",
		"/tmp/a.txt":                "",
		"a.png":                     "",
		"see /tmp/a.png":            "",
		"/tmp/a\n/b.png":            "",
		"'":                         "",
		"":                          "",
		"file://%":                  "",
	} {
		got, ok := MentionPastedImage(pasted, look)
		if ok != (want != "") || ok && got != want {
			t.Errorf("%q: got %q, %v", pasted, got, ok)
		}
	}
	if _, ok := MentionPastedImage("/tmp/a.png", nil); ok {
		t.Error("without a way to look")
	}
}
