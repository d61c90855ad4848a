package chat

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/i18n"
)

// TestOutputSaid: what is said of a call beside its output is in the person's language, and does
// not end a line of the output.
func TestOutputSaid(t *testing.T) {
	call := regie.NewID()
	said := regie.Say("files changed: %s", "A new.txt")
	var o Output
	var got []string
	for _, d := range []dispatch.Delta{{CallID: call, Output: "half of"}, {CallID: call, Said: &said}, {CallID: call, Output: " a line\n"}} {
		got = append(got, o.Lines(i18n.New("fr"), &d)...)
	}
	if want := []string{"  │ fichiers modifiés : A new.txt", "  │ half of a line"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestOutputSequences: a line that is shown before it has ended is not cut within what a terminal
// is told.
func TestOutputSequences(t *testing.T) {
	call, long := regie.NewID(), strings.Repeat("x", maxOutputLine)
	var o Output
	var got []string
	for _, piece := range []string{long + "\x1b[3", "1mred\x1b[0m\n", "\x1b]0;t", "itle\x07end"} {
		got = append(got, o.Lines(i18n.New("en"), &dispatch.Delta{CallID: call, Output: piece})...)
	}
	got = append(got, o.Rest(&regie.Event{Type: regie.EventToolResult, Body: fmt.Appendf(nil, `{"call_id":%q}`, call)})...)
	if want := []string{"  │ " + long, "  │ red", "  │ end"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestEndsWrittenOver: what a command wrote over, as progress bars do, is shown whole, each on a
// line of its own.
func TestEndsWrittenOver(t *testing.T) {
	for put, want := range map[string][]string{
		"one\r\n\r\ntwo\r\n":              {"  │ one", "  │ ", "  │ two"},
		"safe\rrm -rf\n\nend\n":           {"  │ safe", "  │ rm -rf", "  │ ", "  │ end"},
		"1\r2\r3\r4\r5":                   {"  │ 1", "  │ 2", "  … 1 more lines", "  │ 4", "  │ 5"},
		"\x1b[1mbold\x1b[0m\r\x1b[2Kdone": {"  │ bold", "  │ done"},
		"\n":                              nil,
	} {
		if got := firstAndLast(i18n.New("en"), put, 2, 2); !slices.Equal(got, want) {
			t.Errorf("%q is %q, want %q", put, got, want)
		}
	}
}
