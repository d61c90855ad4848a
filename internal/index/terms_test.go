package index

import (
	"context"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// spelled are the terms of a text, each as often as it counts.
func spelled(text string) []string {
	return append([]string{}, strings.Fields(newSplitter().spellTerms(text))...)
}

func TestTerms(t *testing.T) {
	for text, want := range map[string]string{
		"parseHTTPRequest":                 "pars http request parsehttprequest",
		"snake_case_name":                  "snake case name snakecasename",
		"SHA256 utf8 x86_64":               "sha 256 sha256 utf utf8 86 64 x8664",
		"running runs ran":                 "run run ran",
		"0x1F 42 1_000":                    "0x1f 42 1000",
		"__init__":                         "init",
		"a.b, c-d!":                        "a b c d",
		"café naïve":                       "cafe naiv",
		"Les fichiers créés par l’outil":   "le fichier cree par l outil fichi",
		"les fichiers et les annulations":  "les les fichier et annul le le fichi",
		"日本語の検索":                           "日本 本語 語の の検 検索",
		strings.Repeat("a", maxWord+1):     "",
		"test test test test testing":      "test test test",
		"Übergröße":                        "ubergross",
		"HTMLÉlément":                      "html element htmlelement",
		"\x00\xff\"' OR * NEAR(a,b) col:x": "or near a b col x",
	} {
		got := spelled(text)
		if text == "Les fichiers créés par l’outil" { // French, so with its stems
			for _, term := range []string{"fichi", "cre"} {
				if !slices.Contains(got, term) {
					t.Errorf("%q: no %s in %q", text, term, got)
				}
			}
			continue
		}
		if diff := cmp.Diff(strings.Fields(want), got); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
}

// TestWords finds what people mean with words that are not those of the text.
func TestWords(t *testing.T) {
	root, _, file := place(t, map[string]string{
		"http.go":       "package a\n\n// parseHTTPRequest reads what a client asks.\nfunc parseHTTPRequest() {}\n",
		"cache.py":      "class ResponseCache:\n    def clear_all(self):\n        pass\n",
		"annulation.md": "# Annulation\n\nPour annuler les modifications des fichiers, il faut une commande qui les rétablit.\n",
		"storage.txt":   "Sauvegarde de la base de données dans le répertoire, créée chaque nuit.\n",
		"japanese.md":   "# 検索\n\n日本語の全文検索について。\n",
		"a_test.go":     "package a\n\nfunc TestParseRequest(t *testing.T) { parseRequest() }\n",
		"docs/deep/x.c": "int frobnicate(int a)\n{\n\treturn a;\n}\n",
	})
	x := open(t, root, file)
	refresh(t, x)
	for text, want := range map[string]string{
		"parsing of HTTP requests":                        "http.go",
		"parseHTTPRequest":                                "http.go",
		"ParseHttpRequest":                                "http.go",
		"clearing the response caches":                    "cache.py",
		"annuler une modification":                        "annulation.md",
		"comment rétablir un fichier modifié":             "annulation.md",
		"sauvegardes des donnees":                         "storage.txt",
		"全文検索":                                            "japanese.md",
		"frobnicating":                                    "docs/deep/x.c",
		"how are requests parsed":                         "http.go",
		"the test of parse request":                       "a_test.go",
		`"parseHTTPRequest" OR NEAR(path: -x* ^y {a} +b)`: "http.go",
	} {
		if found := paths(t, x, text); len(found) == 0 || found[0] != want {
			t.Errorf("%q finds %q, want %s first", text, found, want)
		}
	}
	for text, n := range map[string]int{"": 0, "?!": 0, "\x00": 0, "what": 1, "zebra": 0} {
		if found := paths(t, x, text); (len(found) > 0) != (n > 0) {
			t.Errorf("%q finds %q", text, found)
		}
	}
	for under, want := range map[string]int{"docs": 1, "docs/deep": 1, "docs/deep/x.c": 1, ".": 1, "": 1, "doc": 0, "other": 0, "docs/": 1} {
		a, err := x.Search(context.Background(), Query{Text: "frobnicate", Under: under})
		if err != nil || len(a.Hits) != want || a.Mode != Lexical {
			t.Errorf("under %q: %+v, %v", under, a, err)
		}
	}
	if _, err := x.Search(context.Background(), Query{Text: "a", Under: "../x"}); err == nil {
		t.Error("what lies outside is searched")
	}
	a, err := x.Search(context.Background(), Query{Text: "frobnicate"})
	if err != nil || len(a.Hits) != 1 || a.Hits[0].Start != 1 || a.Hits[0].End != 4 || a.Hits[0].Symbol != "frobnicate" || !strings.Contains(a.Hits[0].Text, "return a;") {
		t.Errorf("hit %+v, %v", a, err)
	}
}

// FuzzSearch asks anything: no text is an error, and what is found holds a term of it.
func FuzzSearch(f *testing.F) {
	root, _, file := place(f, map[string]string{"a.go": "package a\n\nfunc Parse() {}\n", "b.md": "# Un titre\n\nédition 検索 sha256\n"})
	x := open(f, root, file)
	refresh(f, x)
	for _, seed := range []string{"parse", `"`, `a"b`, "NEAR(a b)", "path:x", "-a +b *", "a AND (", "éÉ", "検索", "\x00\xff", "{a b}:c", "^a", "sha256*", "_", "٣", "ﬁ", "İ"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		a, err := x.Search(context.Background(), Query{Text: text})
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		terms := termsOfQuestion(text)
		if len(a.Hits) > 0 && len(terms) == 0 {
			t.Fatalf("%q finds something by no term", text)
		}
		for _, term := range terms {
			if term == "" || strings.ContainsAny(term, "\" \x00") || !utf8.ValidString(term) {
				t.Fatalf("%q: the term %q", text, term)
			}
		}
	})
}
