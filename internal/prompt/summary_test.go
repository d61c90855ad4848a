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

// TestLeastSummary: the shortest summary that is taken grows with what it is to stand for.
func TestLeastSummary(t *testing.T) {
	// 40 are the keys around them
	for said, want := range map[int]int{0: 10, 360: 100, 600: 160, 7960: 160, 19_960: 400, 39_960: 800, 300_000: 800} {
		hidden := []prompt.Piece{{Entry: prompt.Entry{Message: &regie.Message{Sender: regie.SenderUser, Text: strings.Repeat("x", said)}}}}
		least := 0
		for views()["native"].SummaryFault(strings.Repeat("y", least), hidden) != "" {
			least++
		}
		if least < want-10 || least > want {
			t.Errorf("of %d: %d, want %d", said, least, want)
		}
	}
}

// TestFrenchDigest: the list that stands for a summary is French where the agent is spoken to in
// French, also behind one in English.
func TestFrenchDigest(t *testing.T) {
	piece := func(place int, m *regie.Message) prompt.Piece {
		return prompt.Piece{Place: place, Entry: prompt.Entry{Message: m}}
	}
	english := prompt.View{}.Digest([]prompt.Piece{piece(0, &regie.Message{Sender: regie.SenderUser, Text: "Read a.md."})}, prompt.Window{}, &regie.Compaction{}, prompt.Room{Budget: 5000}, "first")
	why := views()["native"].SummaryFault("short", []prompt.Piece{piece(0, &regie.Message{Sender: regie.SenderUser, Text: strings.Repeat("x", 4000)})})
	earlier := piece(-1, &regie.Message{System: &regie.SystemContent{Type: regie.SystemContextSummary, Summary: english}})
	got := prompt.View{French: true}.Digest([]prompt.Piece{
		earlier, piece(1, &regie.Message{Sender: regie.SenderUser, Text: "Et b.md."}), piece(2, &regie.Message{Sender: regie.SenderAI, AI: &regie.AIReply{Parts: []regie.Part{{Type: regie.PartText, Text: "C'est lu."}}}}),
	}, prompt.Window{}, &regie.Compaction{}, prompt.Room{Budget: 5000}, why)
	const want = "Aucun résumé n'a pu être fait (le résumé du modèle est trop court pour ce qu'il doit remplacer). Voici la liste de ce qui a été demandé et fait.\n" +
		"Avant cela :\nNo summary could be made (first). This is a list of what was asked and done.\n- asked: Read a.md.\n- demandé : Et b.md.\n- dit : C'est lu."
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
