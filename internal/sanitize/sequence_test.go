package sanitize

import (
	"strings"
	"testing"
)

func TestSequences(t *testing.T) {
	for in, want := range map[string]string{
		"\x1b[31mred\x1b[0m \x1b[1;38;5;196mx\x1b[m":                      "red x",
		"\x1b[?25l\x1b[2J\x1b[Hhome\x1b[>4;2m\x1b[!p\x1b[ q":              "home",
		"\x1b[38:2::1:2:3mcolon":                                          "colon",
		"\x1b]0;title\x07a\x1b]2;title\x1b\\b\x1b]8;;u\u009cc":            "abc",
		"\x1bP1$r0m\x1b\\a\x1b_Gf=1;AA\x1b\\b\x1b^pm\x1b\\c\x1bXs\x1b\\d": "abcd",
		"\x1bPtmux;\x1b\x1b]52;c;AA\x07\x1b\\a":                           "tmux;a",
		"\x1bkname\x1b\\a":                                                "a",
		"\x1b(B\x1b)0\x1b#8\x1b c\x1b%Ga":                                 "a",
		"\x1bca\x1b7b\x1b8c\x1bMd\x1b=e\x1b>f":                            "abcdef",
		"\u009b31mred\u009b0m\u009d0;t\x07a\u0090q\u009cb\u0085c":         "redabc",
		// no sequences: text that is not UTF-8
		"a\x9b b \x9d c": "a\uFFFD b \uFFFD c",
		// whose bytes look like some
		"ě\u0125 “”": "ě\u0125 “”",
		// a terminal obeys it nevertheless
		"\x1b[3\x001\x7fmred": "red",
		// Those that are cut or broken.
		"a\x1b":                          "a",
		"a\x1b[":                         "a",
		"a\x1b[31":                       "a",
		"a\x1b[31\nm":                    "a\nm",
		"a\x1b[31é":                      "aé",
		"a\x1b[3\x1b[31mb":               "ab",
		"a\x1b\x1b[31mb":                 "ab",
		"a\x1b(":                         "a",
		"a\x1b\nb":                       "a\nb",
		"a\x1bé":                         "aé",
		"a\x1b]0;title and all the rest": "a0;title and all the rest",
		"a\x1b]0;t\nb\x07c":              "a0;t\nbc",
		"a\x1b]0;t \x1b[1mbold\x07c":     "a0;t boldc",
	} {
		if got := Strip(in); got != want {
			t.Errorf("Strip(%.80q) is %.80q, want %.80q", in, got, want)
		}
	}
}

// However a text comes in pieces, what is shown of it is the same.
func FuzzPieces(f *testing.F) {
	for _, s := range []string{"a\x1b[31mb", "\x1b]0;t\x1b\\x", "\x1b]0;t", "\x1bP\x1b\x1b\\q\x1b\\", "\u009b1m\u009dt\u009c", "\x1b(B"} {
		f.Add(s, uint16(1), uint16(3))
	}
	f.Fuzz(func(t *testing.T, s string, first, second uint16) {
		if s = strings.ToValidUTF8(s, ""); len(s) >= maxSequence {
			return
		}
		var runes []string
		for _, r := range s {
			runes = append(runes, string(r))
		}
		i := min(int(first), len(runes))
		k := min(i+int(second), len(runes))
		var p Stream
		got := ""
		for _, piece := range []string{strings.Join(runes[:i], ""), strings.Join(runes[i:k], ""), strings.Join(runes[k:], "")} {
			got += p.Add(piece)
		}
		got += p.Rest()
		if want := Strip(s); got != want {
			t.Errorf("%q, cut at %d and %d, is %q, want %q", s, i, k, got, want)
		}
		if p.Rest() != "" {
			t.Error("the rest comes twice")
		}
	})
}
