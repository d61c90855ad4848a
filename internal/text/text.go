// Package text is the catalogue of what people read (spec 10.1: English and French). The English sentence is the key, so code reads
// like what it prints; a sentence without a translation is shown in English, and a test lists it.
package text

import (
	"errors"
	"strings"

	"golang.org/x/text/language"
	"golang.org/x/text/message"
	"golang.org/x/text/message/catalog"

	"github.com/regie-run/regie"
)

// Printer prints in one language.
type Printer struct {
	printer *message.Printer
	french  bool
}

// New returns a printer for a language as environments name them: "fr", "fr_FR.UTF-8", "en", "C". What is not French is English.
func New(lang string) *Printer {
	tag, french := language.English, false
	if head := strings.ToLower(lang); head == "fr" || strings.HasPrefix(head, "fr_") || strings.HasPrefix(head, "fr-") || strings.HasPrefix(head, "fr.") {
		tag, french = language.French, true
	}
	return &Printer{printer: message.NewPrinter(tag, message.Catalog(frenchCatalog())), french: french}
}

func frenchCatalog() catalog.Catalog {
	builder := catalog.NewBuilder(catalog.Fallback(language.English))
	for english, french := range french {
		// A malformed entry cannot be: the test compares the verbs of every pair.
		_ = builder.SetString(language.French, english, french)
	}
	return builder
}

// Language is "fr" or "en".
func (p *Printer) Language() string {
	if p.french {
		return "fr"
	}
	return "en"
}

// T formats a sentence in the printer's language.
func (p *Printer) T(format string, args ...any) string {
	return p.printer.Sprintf(format, p.translated(args)...)
}

// Error returns an error's sentence in the printer's language, with those of the errors in it.
func (p *Printer) Error(err error) string {
	var coded *regie.Error
	if !errors.As(err, &coded) {
		return err.Error()
	}
	return p.T(coded.Format, coded.Args...)
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
