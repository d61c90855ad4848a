package sanitize

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestForms(t *testing.T) {
	for _, row := range []struct{ in, strip, visible, line string }{
		{"", "", "", ""},
		{"a line\n\twith é, 日本 and 👍🏽", "a line\n\twith é, 日本 and 👍🏽", "a line\n\twith é, 日本 and 👍🏽", "a line␊␉with é, 日本 and 👍🏽"},
		{"\x1b[2Jx\x07", "x", "␛[2Jx␇", "␛[2Jx␇"},
		{"safe\rrm -rf", "saferm -rf", "safe␍rm -rf", "safe␍rm -rf"},
		{"a\x7f\x00b", "ab", "a␡␀b", "a␡␀b"},
		{"a\u0085\u009bb", "a", "a<U+0085><U+009B>b", "a<U+0085><U+009B>b"},
		{"user\u202etxt.exe\u2066", "usertxt.exe", "user<U+202E>txt.exe<U+2066>", "user<U+202E>txt.exe<U+2066>"},
		{"\ufeffa\u200bb\u2028c", "\ufeffa\u200bb\u2028c", "<U+FEFF>a<U+200B>b<U+2028>c", "<U+FEFF>a<U+200B>b<U+2028>c"},
		{"tag\U000e0041\u3164", "tag\U000e0041\u3164", "tag<U+E0041><U+3164>", "tag<U+E0041><U+3164>"},
		{"👩\u200d🔬 می\u200cخواهم \u0600", "👩\u200d🔬 می\u200cخواهم \u0600", "👩\u200d🔬 می\u200cخواهم \u0600", "👩\u200d🔬 می\u200cخواهم \u0600"},
		{"no\u200dte x\u200cy é\u200d", "no\u200dte x\u200cy é\u200d", "no<U+200D>te x<U+200C>y é<U+200D>", "no<U+200D>te x<U+200C>y é<U+200D>"},
		{"क्\u200dष ❤\ufe0f\u200d🔥 👍🏽\u200d 1\ufe0f\u20e3 ‼\ufe0f", "क्\u200dष ❤\ufe0f\u200d🔥 👍🏽\u200d 1\ufe0f\u20e3 ‼\ufe0f", "क्\u200dष ❤\ufe0f\u200d🔥 👍🏽\u200d 1\ufe0f\u20e3 ‼\ufe0f", "क्\u200dष ❤\ufe0f\u200d🔥 👍🏽\u200d 1\ufe0f\u20e3 ‼\ufe0f"},
		{"a1\ufe0f.txt x\ufe0f\u200dy 🔥\u200d\u200d \U0001d159", "a1\ufe0f.txt x\ufe0f\u200dy 🔥\u200d\u200d \U0001d159", "a1<U+FE0F>.txt x<U+FE0F><U+200D>y 🔥\u200d<U+200D> <U+1D159>", "a1<U+FE0F>.txt x<U+FE0F><U+200D>y 🔥\u200d<U+200D> <U+1D159>"},
		{"a\xffb", "a\uFFFDb", "a\uFFFDb", "a\uFFFDb"},
		{"\x1b\xff", "\uFFFD", "␛\uFFFD", "␛\uFFFD"},
	} {
		if got := Strip(row.in); got != row.strip {
			t.Errorf("Strip(%q) is %q, want %q", row.in, got, row.strip)
		}
		if got := Visible(row.in); got != row.visible {
			t.Errorf("Visible(%q) is %q, want %q", row.in, got, row.visible)
		}
		if got := Line(row.in); got != row.line {
			t.Errorf("Line(%q) is %q, want %q", row.in, got, row.line)
		}
	}
	if got := Count("a\x1bb\u202e\n\t\u200d"); got != 3 {
		t.Errorf("%d characters are hidden", got)
	}
}

// Whatever comes in, what comes out is text in which nothing acts, and doing it again changes
// nothing.
func FuzzForms(f *testing.F) {
	for _, s := range []string{"a", "\x1b[31m", "\u202e", "\xff\x9b", "\xe2\x80", "\U000e0041", "\r\n\t", "\u2028", "<U+202E>", "\x1b]0;t\x07", "\x1b]0;t\n", "\x1bPq\x1b\\", "\u009b1m", "x\ufe0f\u200dy", "❤\ufe0f\u200d\u200d1\ufe0f\u20e3", "\x1b(B", "\xc2\x1b[m\x9b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for name, form := range map[string]func(string) string{"Strip": Strip, "Visible": Visible, "Line": Line} {
			out := form(s)
			bad := acts
			if name != "Strip" {
				bad = Hidden
			}
			switch {
			case !utf8.ValidString(out), strings.ContainsFunc(out, bad):
				t.Errorf("%s(%q) is %q", name, s, out)
			case form(out) != out:
				t.Errorf("%s of %q is not the same twice", name, s)
			case name == "Strip" && !strings.ContainsFunc(s, acts) && out != strings.ToValidUTF8(s, "\uFFFD") && utf8.ValidString(s):
				t.Errorf("Strip changes %q, where nothing acts, to %q", s, out)
			case len(out) > 4*len(s):
				t.Errorf("%s makes %d bytes of %d", name, len(out), len(s))
			case name == "Line" && strings.ContainsAny(out, "\n\t"):
				t.Errorf("Line(%q) has several lines: %q", s, out)
			case name != "Line" && strings.Count(out, "\n") != strings.Count(s, "\n"):
				t.Errorf("%s changes the lines of %q: %q", name, s, out)
			case strings.ContainsFunc(out, func(r rune) bool { return unicode.Is(unicode.Cc, r) && r != '\n' && r != '\t' }):
				t.Errorf("%s leaves a control character in %q", name, out)
			}
		}
	})
}
