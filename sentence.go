package regie

import (
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Sentence is something said to a person, kept as the catalogue's key and its arguments, so that it
// can be stored and each surface shows it in its own language (spec 10.1). Say makes it.
type Sentence struct {
	// Format is the English sentence, with %s or %q for each argument.
	Format string `json:"format"`
	// Args are names and amounts as they are to be shown.
	Args []string `json:"args,omitempty"`
	// About are the sentences in one of SayOf; they stand behind the arguments.
	About []Sentence `json:"about,omitempty"`
}

// Say returns a sentence. Its format is a literal that has a French translation; the catalogue's
// test collects it like those of Errorf, in every package, because all of these sentences are for
// people.
func Say(format string, args ...string) Sentence { return Sentence{Format: format, Args: args} }

// Verbatim is a sentence in the words of others, which no catalogue has.
func Verbatim(text string) Sentence {
	if text == "" {
		return Sentence{}
	}
	return Sentence{Format: "%s", Args: []string{text}}
}

// SayOf returns a sentence with others in it: its format is as that of Say, with %s for each of
// them.
func SayOf(format string, about ...Sentence) Sentence { return Sentence{Format: format, About: about} }

// IsZero reports whether the sentence is empty.
func (s Sentence) IsZero() bool { return s.Format == "" }

// Values returns the arguments as what fmt wants; say writes the sentences among them.
func (s Sentence) Values(say func(Sentence) string) []any {
	out := make([]any, 0, len(s.Args)+len(s.About))
	for _, arg := range s.Args {
		out = append(out, arg)
	}
	for _, about := range s.About {
		out = append(out, say(about))
	}
	return out
}

// Value implements driver.Valuer: JSON, and "" for nothing.
func (s Sentence) Value() (driver.Value, error) {
	if s.IsZero() {
		return "", nil
	}
	data, err := json.Marshal(s)
	return string(data), err
}

// Scan implements sql.Scanner. A text that is no sentence is taken for what it says.
func (s *Sentence) Scan(value any) error {
	var text string
	switch value := value.(type) {
	case nil:
	case string:
		text = value
	case []byte:
		text = string(value)
	default:
		return fmt.Errorf("a sentence cannot be read from a %T", value)
	}
	if !strings.HasPrefix(text, "{") || s.UnmarshalJSON([]byte(text)) != nil || s.IsZero() {
		*s = Verbatim(text)
	}
	return nil
}

// UnmarshalJSON reads what was stored, also the plain text that stood in a sentence's place before
// it was one.
func (s *Sentence) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '"' {
		var text string
		err := json.Unmarshal(data, &text)
		*s = Verbatim(text)
		return err
	}
	type plain Sentence
	return json.Unmarshal(data, (*plain)(s))
}

// String returns the sentence in English.
func (s Sentence) String() string {
	if s.Format == "" {
		return ""
	}
	return fmt.Sprintf(s.Format, s.Values(Sentence.String)...)
}

// ErrorOf is a sentence as an error of a code, for what tells errors in the language of who reads
// them; the sentences in it are errors too.
func ErrorOf(code Code, said Sentence) error {
	out := &Error{Code: code, Format: said.Format}
	for _, arg := range said.Args {
		out.Args = append(out.Args, arg)
	}
	for _, about := range said.About {
		out.Args = append(out.Args, ErrorOf(code, about))
	}
	return out
}

// SentenceOf keeps an error as a sentence for later readers. Where an argument is more than a name,
// it keeps the English words.
func SentenceOf(err error) Sentence {
	coded, ok := errors.AsType[*Error](err)
	if told, is := errors.AsType[interface {
		error
		Sentence() Sentence
	}](err); is && (!ok || !errors.As(coded.Err, &told)) {
		// it has its sentence itself, as the failure of a model's server does
		return told.Sentence()
	}
	if !ok {
		return Verbatim(err.Error())
	}
	args := make([]string, 0, len(coded.Args))
	for _, arg := range coded.Args {
		name, is := arg.(string)
		if !is {
			return Verbatim(err.Error())
		}
		args = append(args, name)
	}
	return Sentence{Format: coded.Format, Args: args}
}
