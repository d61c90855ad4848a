// Package i18n is the catalogue of what people read (spec 10.1: English and French). Each sentence
// has a short id, such as chat.later. en.json has the English sentence of each id, and fr.json the
// French one. Code contains the English sentence, so it reads like what it prints; the printer
// finds the id by the sentence. A sentence without a translation is shown in English.
//
// TestCatalogue lists every sentence of the code that the catalogue lacks. make translate gives it
// an id, and an empty French sentence to fill in; a sentence that was reworded keeps its id and its
// French. Text for models is in the packages that produce it (package prompt has its own French;
// the errors of tools are English only). The sentences of regie.Say are for people.
package i18n

import (
	_ "embed" // for en.json and fr.json
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"sync"

	"golang.org/x/text/language"
	"golang.org/x/text/message"
	"golang.org/x/text/message/catalog"

	"github.com/regie-run/regie"
)

//go:embed en.json
var englishJSON []byte

//go:embed fr.json
var frenchJSON []byte

// Printer prints in one language. It may be used by many goroutines.
type Printer struct {
	printer *message.Printer
	french  bool
}

// New returns a printer for a language in the form of the environment: "fr", "fr_FR.UTF-8",
// "en-US", "C". Languages other than French become English.
func New(lang string) *Printer {
	if !IsFrench(lang) {
		return &Printer{printer: message.NewPrinter(language.English)}
	}
	return &Printer{printer: message.NewPrinter(language.French, message.Catalog(frenchCatalog())), french: true}
}

// IsFrench reports whether a language is French. It ignores country, encoding, variant and further
// languages.
func IsFrench(lang string) bool {
	head, _, _ := strings.Cut(strings.NewReplacer("-", "_", ".", "_", "@", "_", ",", "_", ";", "_").Replace(lang), "_")
	return strings.EqualFold(head, "fr")
}

// frenchCatalog is made only for those who need it: English speakers do not pay for it at their
// start.
var frenchCatalog = sync.OnceValue(func() catalog.Catalog {
	builder := catalog.NewBuilder(catalog.Fallback(language.English))
	for english, french := range frenchSentences() {
		if french != "" { // not translated yet
			_ = builder.SetString(language.French, english, french) // fails for no string
		}
	}
	return builder
})

// frenchSentences returns the translations by their English sentence. TestCatalogue keeps the files
// well-formed.
func frenchSentences() map[string]string {
	var english, french map[string]string // by id
	_ = json.Unmarshal(englishJSON, &english)
	_ = json.Unmarshal(frenchJSON, &french)
	sentences := make(map[string]string, len(english))
	for id, sentence := range english {
		sentences[sentence] = french[id]
	}
	return sentences
}

// Language is "fr" or "en".
func (p *Printer) Language() string {
	if p.french {
		return "fr"
	}
	return "en"
}

// T formats a sentence in the printer's language, errors among the arguments too. Numbers are
// written as the language does: a process id, a port or a year, which is a name and no amount, is
// passed as a string.
func (p *Printer) T(format string, args ...any) string {
	return p.printer.Sprintf(format, p.amounts(format, p.translated(args))...)
}

// Sentence returns a sentence that was stored as key and arguments in the printer's language.
func (p *Printer) Sentence(s regie.Sentence) string { return p.T(s.Format, s.Values(p.Sentence)...) }

// Error returns an error's sentence in the printer's language, with those of the errors in it, and
// "" for nil. What wraps a regie.Error is for logs and left out. An error of others is shown as it
// is.
func (p *Printer) Error(err error) string {
	if err == nil {
		return ""
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var sentences []string
		for _, one := range joined.Unwrap() {
			sentences = append(sentences, p.Error(one))
		}
		return strings.Join(sentences, "\n")
	}
	if telling, ok := errors.AsType[telling](err); ok {
		// a sentence around it says more
		if coded, ok := errors.AsType[*regie.Error](err); !ok || !errors.As(coded.Err, &telling) {
			return p.Sentence(telling.Sentence())
		}
	}
	if coded, ok := errors.AsType[*regie.Error](err); ok {
		return p.T(coded.Format, coded.Args...)
	}
	return err.Error()
}

// telling is an error that has its sentence for people: that of a model's server.
type telling interface {
	error
	Sentence() regie.Sentence
}

// verb is one of a sentence's, with the dollar in front of it where it is an amount of them.
var verb = regexp.MustCompile(`%%|\$?%[-+# 0]*[0-9]*(?:\.[0-9]+)?[a-zA-Z]`)

// amounts formats amounts of dollars ($%s, regie.Dollars) in French, with a comma. Any other
// text after a dollar is a name.
func (p *Printer) amounts(format string, args []any) []any {
	if !p.french || !strings.Contains(format, "$%s") {
		return args
	}
	i := 0
	for _, found := range verb.FindAllString(format, -1) {
		if found == "%%" || i == len(args) {
			continue
		}
		if text, is := args[i].(string); is && found == "$%s" && strings.Trim(text, "-.0123456789") == "" {
			args[i] = strings.Replace(text, ".", ",", 1)
		}
		i++
	}
	return args
}

// translated turns arguments that are errors into their sentences.
func (p *Printer) translated(args []any) []any {
	out := make([]any, len(args))
	for i, arg := range args {
		if err, ok := arg.(error); ok {
			arg = p.Error(err)
		}
		out[i] = arg
	}
	return out
}
