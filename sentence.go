package regie

import "fmt"

// Sentence is something said to a person, kept as the catalogue's key and its arguments, so that it can be stored and each surface
// shows it in its own language (spec 10.1). Say makes it.
type Sentence struct {
	// Format is the English sentence, with %s or %q for each argument.
	Format string `json:"format"`
	// Args are names and amounts as they are to be shown.
	Args []string `json:"args,omitempty"`
}

// Say returns a sentence. Its format is a literal that has a French translation; the catalogue's test collects it like those of
// Errorf, in every package, because all of these sentences are for people.
func Say(format string, args ...string) Sentence { return Sentence{Format: format, Args: args} }

// Values returns the arguments as what fmt wants.
func (s Sentence) Values() []any {
	out := make([]any, len(s.Args))
	for i, arg := range s.Args {
		out[i] = arg
	}
	return out
}

// String returns the sentence in English.
func (s Sentence) String() string {
	if s.Format == "" {
		return ""
	}
	return fmt.Sprintf(s.Format, s.Values()...)
}
