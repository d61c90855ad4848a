package chat

import (
	"slices"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/text"
)

// TestOutputSaid: what is said of a call beside its output is in the person's language, and does not end a line of the output.
func TestOutputSaid(t *testing.T) {
	call := regie.NewID()
	said := regie.Say("files changed: %s", "A new.txt")
	var o Output
	var got []string
	for _, d := range []dispatch.Delta{{CallID: call, Output: "half of"}, {CallID: call, Said: &said}, {CallID: call, Output: " a line\n"}} {
		got = append(got, o.Lines(text.New("fr"), &d)...)
	}
	if want := []string{"  │ fichiers modifiés : A new.txt", "  │ half of a line"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
