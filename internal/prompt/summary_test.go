package prompt_test

import (
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/prompt"
	"github.com/regie-run/regie/internal/provider"
)

func TestSummaryText(t *testing.T) {
	said := func(s string) provider.Part { return provider.Part{Type: regie.PartText, Text: s} }
	called := provider.Part{Type: regie.PartCall, Call: &provider.Call{ID: "a", Name: "files__list_files", Arguments: "{}"}}
	for name, c := range map[string]struct {
		view  string
		parts []provider.Part
		want  string
	}{
		"a text":               {"native", []provider.Part{said(" It was read. ")}, "It was read."},
		"a text and a call":    {"native", []provider.Part{said("It was read. I go on."), called}, ""},
		"a call":               {"native", []provider.Part{called}, ""},
		"nothing":              {"native", []provider.Part{said(" \n")}, ""},
		"an object":            {"json", []provider.Part{said(`{"pre_text":"It was read."}`)}, "It was read."},
		"a plain text":         {"json", []provider.Part{said("It was read.")}, "It was read."},
		"an object with calls": {"json", []provider.Part{said(`{"pre_text":"I go on.","data_commands":[{"type":"files.list_files","params":{}}]}`)}, ""},
		"an object of nothing": {"json", []provider.Part{said(`{"summary":"It was read."}`)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			text, why := views()[c.view].SummaryText(&provider.Reply{Parts: c.parts})
			if text != c.want || (why == "") != (c.want != "") {
				t.Errorf("%q, %q", text, why)
			}
		})
	}
}

func TestLeastSummary(t *testing.T) {
	for said, want := range map[int]int{0: 10, 360: 100, 600: 160, 7960: 160, 19_960: 400, 39_960: 800, 300_000: 800} { // 40 are the keys around them
		message := &regie.Message{Sender: regie.SenderUser, Text: strings.Repeat("x", said)}
		if got := views()["native"].LeastSummary([]prompt.Piece{{Entry: prompt.Entry{Message: message}}}); got < want-10 || got > want {
			t.Errorf("of %d: %d, want %d", said, got, want)
		}
	}
}
