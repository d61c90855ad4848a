package i18n

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

var update = flag.Bool("update", false, "bring en.json and fr.json to the sentences of the code")

// TestCatalogue compares the sentences of the code with the catalogue.
func TestCatalogue(t *testing.T) {
	var english, french map[string]string // by id
	if err := errors.Join(json.Unmarshal(englishJSON, &english), json.Unmarshal(frenchJSON, &french)); err != nil {
		t.Fatalf("the catalogue cannot be read: %v", err)
	}
	c := collect(t)
	if len(c.sentences) < 50 {
		t.Fatalf("only %d sentences were found in the code: the search is broken", len(c.sentences))
	}
	if *update {
		for _, line := range updateCatalogue(english, french, c.sentences) {
			t.Log(line)
		}
		writeCatalogue(t, "en.json", english)
		writeCatalogue(t, "fr.json", french)
	}
	ids, sentences := map[string]string{}, map[string]string{}
	for id, sentence := range english {
		if other, twice := ids[sentence]; twice {
			t.Errorf("en.json: %s and %s are the same sentence %q", id, other, sentence)
		}
		ids[sentence], sentences[sentence] = id, french[id]
	}
	for id := range french {
		if _, there := english[id]; !there {
			t.Errorf("fr.json: en.json has no %s", id)
		}
	}
	for _, problem := range compare(c, sentences) {
		t.Error(problem)
	}
}

// updateCatalogue brings the catalogue to the sentences of the code, and returns what it changed. A
// sentence that is new in a place where another one has gone is that one, reworded.
func updateCatalogue(english, french map[string]string, sentences []sentence) (changes []string) {
	ids, gone := map[string]string{}, map[string]string{}
	for id, sentence := range english {
		ids[sentence], gone[id] = id, sentence
	}
	for _, s := range sentences {
		delete(gone, ids[s.text])
	}
	for _, s := range sentences {
		if _, there := ids[s.text]; there || !needsFrench(s) {
			continue
		}
		id, like := newID(s, english), 0.5
		for _, other := range slices.Sorted(maps.Keys(gone)) {
			if alike := similarity(gone[other], s.text); alike > like && sameVerbs(gone[other], s.text) == nil {
				id, like = other, alike
			}
		}
		if before, reworded := gone[id]; reworded {
			changes = append(changes, fmt.Sprintf("reworded, check its French: %s: %q is now %q", id, before, s.text))
			delete(gone, id)
		} else {
			changes = append(changes, fmt.Sprintf("new: %s: %q", id, s.text))
			french[id] = ""
		}
		ids[s.text], english[id] = id, s.text
	}
	for id, sentence := range gone {
		changes = append(changes, fmt.Sprintf("removed: %s: %q", id, sentence))
		delete(english, id)
		delete(french, id)
	}
	return changes
}

// newID returns a free id for a sentence: its package, and its first words.
func newID(s sentence, taken map[string]string) string {
	area := path.Base(path.Dir(s.at))
	if area == "." {
		area = "regie"
	} else if strings.HasPrefix(s.at, "cmd/") {
		area = "cli"
	}
	words := strings.FieldsFunc(strings.ToLower(verb.ReplaceAllString(s.text, " ")), func(r rune) bool {
		return r < '0' || r > '9' && r < 'a' || r > 'z'
	})
	id := area + "." + strings.Join(words[:min(len(words), 5)], "-")
	for n := 2; ; n++ {
		if _, there := taken[id]; !there {
			return id
		}
		id = strings.TrimRight(id, "0123456789-") + "-" + strconv.Itoa(n)
	}
}

// similarity returns the share of words that two sentences have in common, from 0 to 1.
func similarity(a, b string) float64 {
	words, both := map[string]bool{}, 0
	for word := range strings.FieldsSeq(a) {
		words[word] = true
	}
	in := strings.Fields(b)
	for _, word := range in {
		if words[word] {
			both++
		}
	}
	return float64(both) / float64(max(len(words), len(in), 1))
}

func writeCatalogue(t *testing.T, name string, sentences map[string]string) {
	t.Helper()
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(sentences); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestUpdateCatalogue rewords a sentence, adds one and removes one.
func TestUpdateCatalogue(t *testing.T) {
	english := map[string]string{"cli.run-has-ended": "run %s has ended", "cli.gone": "nothing like it"}
	french := map[string]string{"cli.run-has-ended": "l'exécution %s est finie", "cli.gone": "rien"}
	sentences := []sentence{
		{text: "run %s has ended already", at: "cmd/regie/run.go:1"},
		{text: "the queue is empty now", at: "internal/chat/queue.go:1"},
		{text: "the queue is empty now, too", at: "internal/chat/queue.go:2"},
		{text: "%d", at: "internal/chat/queue.go:3"},
	}
	changes := updateCatalogue(english, french, sentences)
	wantEnglish := map[string]string{
		"cli.run-has-ended":             "run %s has ended already",
		"chat.the-queue-is-empty-now":   "the queue is empty now",
		"chat.the-queue-is-empty-now-2": "the queue is empty now, too",
	}
	wantFrench := map[string]string{
		"cli.run-has-ended": "l'exécution %s est finie", "chat.the-queue-is-empty-now": "", "chat.the-queue-is-empty-now-2": "",
	}
	if !maps.Equal(english, wantEnglish) || !maps.Equal(french, wantFrench) || len(changes) != 4 {
		t.Errorf("%v\n%v\n%q", english, french, changes)
	}
	if again := updateCatalogue(english, french, sentences); len(again) > 0 {
		t.Errorf("a second time: %q", again)
	}
}

// compare lists what is wrong with the catalogue, and with the sentences of the code themselves.
func compare(c *collector, french map[string]string) []string {
	problems := slices.Clone(c.problems)
	missing, known := map[string][]string{}, map[string]bool{}
	for _, s := range c.sentences {
		known[s.text] = true
		verbs, err := verbsOf(s.text)
		switch {
		case err != nil:
			problems = append(problems, fmt.Sprintf("%s: %q: %v", s.at, s.text, err))
		case s.args >= 0 && s.args != len(verbs):
			problems = append(problems, fmt.Sprintf("%s: %q wants %d arguments and gets %d", s.at, s.text, len(verbs), s.args))
		case s.said && slices.ContainsFunc(slices.Collect(maps.Values(verbs)), func(verb string) bool { return verb != "s" && verb != "q" }):
			problems = append(problems, fmt.Sprintf("%s: %q: the arguments of Say are text: use %%s or %%q", s.at, s.text))
		case needsFrench(s) && french[s.text] == "":
			missing[s.text] = append(missing[s.text], s.at)
		}
	}
	for _, text := range slices.Sorted(maps.Keys(missing)) {
		problems = append(problems, fmt.Sprintf("no French for %q (%s); make translate adds it to internal/i18n", text, strings.Join(missing[text], ", ")))
	}
	for _, english := range slices.Sorted(maps.Keys(french)) {
		translation := french[english]
		switch {
		case !known[english]:
			problems = append(problems, fmt.Sprintf("en.json: no code says %q any more", english))
		case translation != "":
			if err := sameVerbs(english, translation); err != nil {
				problems = append(problems, fmt.Sprintf("fr.json: %q: %v", english, err))
			}
		}
	}
	sort.Strings(problems)
	return problems
}

// needsFrench reports whether people read a sentence, and whether there are words in it.
func needsFrench(s sentence) bool {
	if s.english {
		return false
	}
	rest := s.text
	for {
		before, after, found := strings.Cut(rest, "%")
		if strings.ContainsFunc(before, unicode.IsLetter) {
			return true
		}
		if !found {
			return false
		}
		rest = strings.TrimLeft(after, flags)
		rest = rest[min(1, len(rest)):]
	}
}

// flags are what may stand between % and the verb, besides an index.
const flags = "+-# 0123456789."

// sameVerbs compares the verbs of a sentence with those of its translation, which may take the
// arguments in another order (%[2]s).
func sameVerbs(english, translation string) error {
	want, err := verbsOf(english)
	if err != nil {
		return err
	}
	got, err := verbsOf(translation)
	switch {
	case err != nil:
		return err
	case !maps.Equal(want, got):
		return fmt.Errorf("its translation %q has other verbs", translation)
	case strings.Contains(translation, "${"):
		return fmt.Errorf("its translation %q holds ${, which the catalogue reads as a variable", translation)
	}
	return nil
}

// verbsOf returns the verb of each argument, from 1. An argument that is used twice must have one
// verb; %w and * are not for people.
func verbsOf(format string) (map[int]string, error) {
	verbs, next := map[int]string{}, 1
	for rest := format; ; {
		_, after, found := strings.Cut(rest, "%")
		if !found {
			break
		}
		after = strings.TrimLeft(after, flags)
		if index, ok := strings.CutPrefix(after, "["); ok {
			number, behind, closed := strings.Cut(index, "]")
			at, err := strconv.Atoi(number)
			if !closed || err != nil || at < 1 {
				return nil, fmt.Errorf("the index %%[%s does not parse", number)
			}
			next, after = at, strings.TrimLeft(behind, flags)
		}
		if after == "" {
			return nil, fmt.Errorf("ends in the middle of a verb")
		}
		verb := after[:1]
		rest = after[1:]
		switch {
		case verb == "%":
			continue
		case !slices.Contains(strings.Split("vsdqxXtfgceUT", ""), verb):
			return nil, fmt.Errorf("has the verb %%%s", verb)
		case verbs[next] != "" && verbs[next] != verb:
			return nil, fmt.Errorf("prints argument %d with %%%s and %%%s", next, verbs[next], verb)
		}
		verbs[next] = verb
		next++
	}
	for i := range len(verbs) {
		if verbs[i+1] == "" {
			return nil, fmt.Errorf("does not print argument %d", i+1)
		}
	}
	return verbs, nil
}

// TestCatalogueCanFail shows the comparison what it must catch.
func TestCatalogueCanFail(t *testing.T) {
	const head = "package x\n\nimport r \"" + module + "\"\n\n"
	for _, bad := range []struct {
		name, file, code string
		french           map[string]string
		want             string
	}{
		{"missing", "cmd/x.go", `var _ = p.T("hello %s", name)`, nil, `no French for "hello %s" (cmd/x.go:5)`},
		{"empty", "cmd/x.go", `var _ = p.T("hello")`, map[string]string{"hello": ""}, `no French for "hello"`},
		{"an error", "cmd/x.go", `var _ = r.Errorf(r.CodeInternal, "hel" + "lo %d", 1)`, nil, `no French for "hello %d"`},
		{"no literal", "cmd/x.go", `var _ = p.T(hello)`, nil, "cmd/x.go:5: the sentence is not a string literal"},
		{"passed on", "cmd/x.go", "func broken(f string, a ...any) error { return r.Errorf(c, f, a...) }\n\nvar _ = broken(\"oh %s\", x)", nil, `no French for "oh %s" (cmd/x.go:7)`},
		{"other verb", "cmd/x.go", `var _ = p.T("hello %s", name)`, map[string]string{"hello %s": "bonjour %d"}, "has other verbs"},
		{"lost verb", "cmd/x.go", `var _ = p.T("hello %s", name)`, map[string]string{"hello %s": "bonjour"}, "has other verbs"},
		{"stale", "cmd/x.go", ``, map[string]string{"hello": "bonjour"}, `no code says "hello" any more`},
		{"too few arguments", "cmd/x.go", `var _ = p.T("hello %s")`, nil, "wants 1 arguments and gets 0"},
		{"said", "internal/tool/x.go", `var _ = r.Say("hello %s", name)`, nil, `no French for "hello %s" (internal/tool/x.go:5)`},
		{"said in the root", "x.go", `var _ = Say("hello")`, nil, `no French for "hello"`},
		{"said by another", "internal/toolkit/files/x.go", "func warn(f string) { r.Say(f) }\n\nfunc _() { warn(\"hello\") }", nil, `no French for "hello"`},
		{"said, no literal", "internal/tool/x.go", `var _ = r.Say(hello)`, nil, "internal/tool/x.go:5: the sentence is not a string literal"},
		{"said with a number", "internal/tool/x.go", `var _ = r.Say("%d lines", n)`, map[string]string{"%d lines": "%d lignes"}, "the arguments of Say are text"},
		{"not said", "internal/tool/x.go", `var _ = r.Sentence{Format: "hello"}`, nil, "make the sentence with Say"},
		{"%w", "cmd/x.go", `var _ = r.Errorf(c, "hello %w", err)`, nil, "has the verb %w"},
	} {
		t.Run(bad.name, func(t *testing.T) {
			head := head
			if !strings.Contains(bad.file, "/") {
				head = "package regie\n\n"
			}
			problems := strings.Join(check(t, bad.file, head+bad.code, bad.french), "\n")
			if !strings.Contains(problems, bad.want) {
				t.Errorf("not caught: want %q in %q", bad.want, problems)
			}
		})
	}
	for name, code := range map[string]string{
		"cmd/x.go":                    `var _ = p.T("%s at %d", name, n)`,
		"cmd/z.go":                    `func Errorf(s string) error { return r.Errorf(c, s) }`,
		"cmd/y.go":                    `var _ = p.T("%s: %d%%", name, n); var _ = s.Errorf(c, "x"); var _ = p.T("%d/%s", all...)`,
		"internal/toolkit/files/x.go": `var _ = r.Errorf(c, "the pattern does not parse")`,
	} {
		french := map[string]string{}
		if name == "cmd/x.go" {
			french["%s at %d"] = "à %[2]d : %[1]s"
		}
		if problems := check(t, name, head+code, french); len(problems) > 0 {
			t.Errorf("allowed, but reported: %q", problems)
		}
	}
}

func check(t *testing.T, name, code string, french map[string]string) []string {
	t.Helper()
	c := newCollector()
	if err := c.add(name, code); err != nil {
		t.Fatal(err)
	}
	c.gather()
	return compare(c, french)
}
