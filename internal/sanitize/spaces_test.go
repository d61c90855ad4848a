package sanitize

import "testing"

func TestSpaces(t *testing.T) {
	for in, want := range map[string]string{
		"":                                     "",
		"two words\tand\n":                     "two words\tand\n",
		"rm\u00a0-rf x":                        "rm<U+00A0>-rf x",
		"a\u2003b\u2009c\u202fd":               "a<U+2003>b<U+2009>c<U+202F>d",
		"Quoi\u00a0? «\u00a0Non\u202f!\u00a0»": "Quoi\u00a0? «\u00a0Non\u202f!\u00a0»",
		"10\u202f000 pour 5\u00a0%":            "10\u202f000 pour 5\u00a0%",
		"日本\u3000語":                            "日本\u3000語",
		"\u00a0":                               "<U+00A0>",
		"\u2003! :\u2003":                      "<U+2003>! :<U+2003>",
		"\xff\u00a0\xff":                       "\uFFFD<U+00A0>\uFFFD",
	} {
		if got := Spaces(in); got != want || Spaces(got) != got {
			t.Errorf("Spaces(%q) is %q, want %q", in, got, want)
		}
	}
	if got := Visible("a\u2800b") + Line("\u2800"); got != "a<U+2800>b<U+2800>" || Count("\u2800") != 1 {
		t.Errorf("what Braille leaves empty is %q", got)
	}
}
