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

// TestSummaryFault: a summary that is long and says nothing is none, in any language; one that is
// right is one, in any language.
func TestSummaryFault(t *testing.T) {
	asked := func(text string) prompt.Piece {
		return prompt.Piece{Entry: prompt.Entry{Message: &regie.Message{Sender: regie.SenderUser, Text: text}}}
	}
	work := []prompt.Piece{
		asked("Book invoice F-2041 of Dupont and put the total into notes/total.md, please."),
		{Entry: prompt.Entry{
			Message: &regie.Message{Sender: regie.SenderAI, AI: &regie.AIReply{}},
			Calls:   []regie.Call{{Tool: "files.read_file", Arguments: `{"path":"invoices/2041.txt"}`, State: regie.CallSucceeded, Result: strings.Repeat("amount 120.50 ", 60)}},
		}},
		asked("And 2042 too."),
	}
	talk := []prompt.Piece{asked("What is the difference between a mutex and a semaphore? " + strings.Repeat("Please explain it slowly. ", 30))}
	for name, c := range map[string]struct {
		text   string
		pieces []prompt.Piece
		want   string
	}{
		"says what was done":  {"The person asked to book F-2041 of Dupont; it was read (120.50) and is still to be written to notes/total.md. Then 2042 was asked for as well, which is open. Nothing failed so far.", work, ""},
		"in another language": {"La personne a demandé de comptabiliser la facture F-2041 ; elle a été lue et reste à écrire. Ensuite la 2042 a été demandée aussi, qui reste ouverte. Rien n'a échoué jusqu'ici, tout le reste est à faire.", work, ""},
		"a path alone":        {"The person wants a total to be written to a file called total.md, after the invoices have been read. One of them was read, the other one has not been looked at. Nothing has failed until now, there is work left.", work, ""},
		"empty words":         {"The conversation covered several topics. The assistant was helpful and answered the questions of the person in detail, and made good progress on all tasks. Work will go on from here in the same spirit as before.", work, "names nothing"},
		"another story":       {"The report for the board was drafted, the figures of spring were compared with those of autumn, and the slides were sent to the printer. The next step is the review by the auditors, who come on Monday morning.", work, "names nothing"},
		"its words alone":     {"An invoice of Dupont was to be booked and its total put into a file; please look at the others as well, of which nothing has been read so far. The amount is known, the rest of it is still to be done now.", work, ""},
		"a loop":              {strings.Repeat("F-2041 was read and now I go on. ", 20), work, "over and over"},
		"a loop of letters":   {strings.Repeat("ha ", 200), talk, "over and over"},
		"too short":           {"F-2041 is open.", work, "too short"},
		"talk without names":  {"The person wanted to know how two kinds of locks differ; it was explained that one has an owner and the other counts. They asked for a slow explanation, and have not said yet whether it helped them.", talk, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := views()["native"].SummaryFault(c.text, c.pieces); !strings.Contains(got, c.want) || (got == "") != (c.want == "") {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
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
		"- asked: Read a.md.\n- demandé : Et b.md.\n- dit : C'est lu."
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
