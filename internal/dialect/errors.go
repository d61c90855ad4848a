package dialect

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/regie-run/regie"
)

// InvalidFormat begins the text of a reply that could not be read.
const InvalidFormat = regie.InvalidFormat

// maxErrors bounds the errors in one correction: a model does not mend more at once.
const maxErrors = 10

// FormatError is one thing that is wrong with a reply (spec 3.3).
type FormatError struct {
	// Path is where, like action_commands[0].params; "" is the reply itself.
	Path string
	// Expected and Found are what should stand there and what does.
	Expected, Found string
	// Hint says what to do where the first two do not: the right list, the field that was meant.
	Hint string
}

// Error implements error.
func (e FormatError) Error() string {
	said := fmt.Sprintf("expected %s, found %s", e.Expected, e.Found)
	if e.Path != "" {
		said = e.Path + ": " + said
	}
	if e.Hint != "" {
		said += "; " + e.Hint
	}
	return said
}

// FormatErrors are what is wrong with one reply: at most ten.
type FormatErrors struct{ List []FormatError }

// Error implements error.
func (e *FormatErrors) Error() string {
	lines := make([]string, len(e.List))
	for i := range e.List {
		lines[i] = e.List[i].Error()
	}
	return strings.Join(lines, "\n")
}

// Correction is the correction for the model, in its language but for the list: the summary of a
// FORMAT_ERROR message (spec 2.2). It has some kilobytes at most, for any reply.
func (e *FormatErrors) Correction(french bool) string {
	said := strings.ReplaceAll(e.Error(), "\n", "\n- ")
	if french {
		return "Ta dernière réponse n'a pas été prise et rien n'en a été exécuté, parce qu'elle n'a pas la forme qui t'a été donnée :\n- " + said +
			"\nEnvoie de nouveau la réponse entière : un seul objet JSON, sans rien avant ni après."
	}
	return "Your last reply was not used and nothing of it was run, because it does not have the form that you were given:\n- " + said +
		"\nSend the whole reply again, as exactly one JSON object with nothing before or after it."
}

func (e *FormatErrors) add(path, expected, found, hint string) {
	if len(e.List) < maxErrors {
		e.List = append(e.List, FormatError{Path: path, Expected: expected, Found: found, Hint: hint})
	}
}

func sizeOf(n int) string { return fmt.Sprintf("%d bytes", n) }

// quoted shows a few words of what a model wrote, on one line.
func quoted(s string) string { return fmt.Sprintf("%q", clip(s, 60)) }

// clip returns at most n bytes of s as whole characters, with a mark where something is missing.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}
