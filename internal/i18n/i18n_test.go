package i18n

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/regie-run/regie"
)

// known is a sentence of the catalogue that the tests of the printer use.
const known = "%q is not an id: ids have 36 characters, such as %s"

func TestNew(t *testing.T) {
	for lang, want := range map[string]string{
		"": "en", "C": "en", "POSIX": "en", "en": "en", "en_GB.UTF-8": "en", "de_DE": "en", "fro": "en", "frr_DE": "en", "x-fr": "en",
		"fr": "fr", "FR": "fr", "fr_FR.UTF-8": "fr", "fr-CA": "fr", "fr.utf8": "fr", "fr@euro": "fr", "fr_BE@euro": "fr",
	} {
		if got := New(lang).Language(); got != want {
			t.Errorf("New(%q) speaks %s, want %s", lang, got, want)
		}
	}
}

func TestT(t *testing.T) {
	english, french := New("en"), New("fr")
	if got, want := english.T(known, "x", "y"), fmt.Sprintf(known, "x", "y"); got != want {
		t.Errorf("English: %s, want %s", got, want)
	}
	if got := french.T(known, "x", "y"); got == english.T(known, "x", "y") {
		t.Errorf("not translated: %s", got)
	}
	if got := french.T("no such sentence: %s, %v, 100 %%", "x", true); got != "no such sentence: x, true, 100 %" {
		t.Errorf("without a translation: %s", got)
	}
	if got := french.T("%d", 12345) + english.T(" %d", 12345); got != "12\u00a0345 12,345" {
		t.Errorf("amounts: %q", got)
	}
	for format, c := range map[string]struct {
		args []any
		want string
	}{
		"cost $%s":                       {[]any{"0.0042"}, "coût 0,0042 $"},
		"the budget of $%s for one run":  {[]any{"1.00"}, "le budget de 1,00 $ pour une exécution"},
		"%d%% of %5.2f for %s: $%s, $%s": {[]any{3, 1.5, "v1.2", "-0.07", "v1.2"}, "3% of  1,50 for v1.2: $-0,07, $v1.2"},
	} {
		if got := french.T(format, c.args...); got != c.want {
			t.Errorf("dollars: %q, want %q", got, c.want)
		}
	}
}

// saying is an error that has its sentence for people.
type saying struct{}

func (saying) Error() string { return "in English" }

func (saying) Sentence() regie.Sentence { return regie.Say(known, "x", "y") }

func TestError(t *testing.T) {
	french := New("fr_FR.UTF-8")
	inner := regie.Errorf(regie.CodeBadID, known, "x", "y")
	sentence := french.T(known, "x", "y")
	for _, c := range []struct {
		name string
		err  error
		want string
	}{
		{"nil", nil, ""},
		{"foreign", os.ErrNotExist, "file does not exist"},
		{"coded", inner, sentence},
		{"wrapped for the log", fmt.Errorf("open: %w", inner), sentence},
		{"in a sentence", regie.Errorf(regie.CodeCorrupt, "unknown sentence: %v", inner), "unknown sentence: " + sentence},
		{"wrapped in a sentence", regie.Errorf(regie.CodeCorrupt, "unknown sentence: %v", fmt.Errorf("open: %w", inner)), "unknown sentence: " + sentence},
		{"joined", errors.Join(inner, os.ErrNotExist), sentence + "\nfile does not exist"},
		{"with a sentence", saying{}, sentence},
		{"with a sentence, wrapped for the log", fmt.Errorf("ask: %w", saying{}), sentence},
		{"with a sentence, in a sentence", regie.Errorf(regie.CodeCorrupt, "unknown sentence: %v", saying{}), "unknown sentence: " + sentence},
		{"joined with nothing", errors.Join(nil, inner), sentence},
	} {
		if got := french.Error(c.err); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// Every sentence that is stored for people can be said in both languages, with all that it is
// about.
func TestSentences(t *testing.T) {
	english, french := New("en"), New("fr")
	seen := 0
	for _, s := range collect(t).sentences {
		if !s.said {
			continue
		}
		seen++
		made := regie.Sentence{Format: s.text}
		verbs, err := verbsOf(s.text)
		if err != nil {
			t.Fatal(err)
		}
		for i := range len(verbs) {
			made.Args = append(made.Args, fmt.Sprintf("<argument %d>", i))
		}
		if got := english.Sentence(made); got != made.String() {
			t.Errorf("%s: English is %q, by itself %q", s.at, got, made.String())
		}
		got := french.Sentence(made)
		if got == made.String() || strings.Contains(got, "%!") || strings.Contains(got, "MISSING") {
			t.Errorf("%s: %q is %q in French", s.at, s.text, got)
		}
		for _, arg := range made.Args {
			if strings.Count(got, arg) != 1 {
				t.Errorf("%s: %q does not say %s", s.at, got, arg)
			}
		}
	}
	if seen < 25 {
		t.Errorf("only %d sentences were found", seen)
	}
	for want, s := range map[string]regie.Sentence{
		"écrire 12 lignes dans docs/x.md (nouveau fichier)": regie.Say("write %s lines to %s (new file)", "12", "docs/x.md"),
		"remplacer a : +3 −1 lignes":                        regie.Say("replace %s: +%s −%s lines", "a", "3", "1"),
		"":                                                  {},
	} {
		if got := french.Sentence(s); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
