package provider

import (
	"testing"

	"github.com/regie-run/regie"
)

// TestSentence tells of failures: advice stands behind the sentence.
func TestSentence(t *testing.T) {
	said := regie.SayOf("%s: %s", regie.Say("the model's server answered %s: check the API key", "401"), regie.Verbatim("No such key."))
	advised := *(&Error{}).Tell(said)
	advised.Advise("a hint")
	for name, c := range map[string]struct {
		of         Error
		want       string
		translated bool
	}{
		"plain":      {of: *(&Error{}).Tell(said), want: "the model's server answered 401: check the API key: No such key.", translated: true},
		"advised":    {of: advised, want: said.String() + ": a hint", translated: true},
		"never told": {of: Error{Message: "its own words"}, want: "its own words"},
	} {
		got := c.of.Sentence()
		if got.String() != c.want || (got.Format != "%s") != c.translated {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if said.String() != "the model's server answered 401: check the API key: No such key." {
		t.Errorf("the sentence itself is another one now: %s", said)
	}
}
