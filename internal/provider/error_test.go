package provider

import (
	"testing"

	"github.com/regie-run/regie"
)

// TestSentence tells of failures: what a vendor's codec writes behind the sentence stays there, and
// what it writes in its place counts.
func TestSentence(t *testing.T) {
	said := regie.SayOf("%s: %s", regie.Say("the model's server answered %s: check the API key", "401"), regie.Verbatim("No such key."))
	for name, c := range map[string]struct {
		of         Error
		want       string
		translated bool
	}{
		"plain":       {of: *(&Error{}).Tell(said), want: "the model's server answered 401: check the API key: No such key.", translated: true},
		"more":        {of: Error{Said: said, Message: said.String() + " (a hint)"}, want: said.String() + " (a hint)", translated: true},
		"other":       {of: Error{Said: said, Message: "something else"}, want: "something else"},
		"never told":  {of: Error{Message: "its own words"}, want: "its own words"},
		"no argument": {of: Error{Said: regie.Say("it ends"), Message: "it ends, badly"}, want: "it ends, badly"},
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
