package prompt

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/regie-run/regie"
)

// TestCheck holds an answer to decision 63: what it is sent back for, and what it is not.
func TestCheck(t *testing.T) {
	done := []regie.Call{{State: regie.CallSucceeded, Result: `{"note": {"id": "note-456", "title": "Trip", "pages": 2}}`}, {State: regie.CallSucceeded}}
	half := []regie.Call{{State: regie.CallSucceeded}, {State: regie.CallFailed}}
	const long = "The three invoices of May are paid; the fourth one is open."
	const id = "0193d7c0-5f5e-7c3a-9a53-0a4f0e9b1c2d"
	const four = "J'ai créé la note *Trip*. Elle est prête. Vous pouvez y écrire. Voulez-vous des sections ?"
	for name, c := range map[string]struct {
		text    string
		calls   []regie.Call
		request string
		strict  bool
		want    Fault
	}{
		"plain words":                 {"It is done.", done, "", false, FaultNone},
		"a result":                    {"{\"note\":{\"title\":\"Trip\",\n\"pages\":2,\"id\":\"note-456\"}}\n", done, "", false, FaultRaw},
		"a part of a result":          {`{"id": "note-456", "pages": 2, "title": "Trip"}`, done, "", false, FaultRaw},
		"a result told otherwise":     {`{"notes": ["Trip"], "count": 1}`, done, "", false, FaultRaw},
		"an outcome":                  {`{"name":"files__read_file","success":true,"duration_ms":3}`, done, "", false, FaultRaw},
		"other JSON":                  {`{"port": 80, "host": "example.org"}`, done, "", false, FaultNone},
		"a result in a fence":         {"```json\n{\"note\":{\"title\":\"Trip\",\"pages\":2,\"id\":\"note-456\"}}\n```", done, "", false, FaultNone},
		"a result with words":         {`It says {"title": "Trip"}.`, done, "", false, FaultNone},
		"asked for":                   {`{"id": "note-456", "pages": 2, "title": "Trip"}`, done, "Give it as JSON, with the id.", false, FaultNone},
		"an id of a result":           {"The note note-456 is ready.", done, "", false, FaultID},
		"a UUID":                      {"It is " + id + ".", done, "", false, FaultID},
		"an id that they wrote":       {"The note note-789 and note-456 are two.", nil, "", false, FaultNone},
		"a file named by a UUID":      {"It is in " + id + ".pdf and a/" + id + "/b.", done, "", false, FaultNone},
		"a number of no id":           {"The invoice F-2024001 is paid.", done, "", false, FaultNone},
		"an id in a fence":            {"So:\n```\nnote-456\n```\nDone.", done, "", false, FaultNone},
		"an id that is asked for":     {"It is note-456.", done, "Quel est son identifiant ?", false, FaultNone},
		"sorry on success":            {"I'm sorry, I had to look twice. It is done.", done, "", false, FaultSorry},
		"désolé on success":           {"Je suis désolé, c'est fait.", done, "", false, FaultSorry},
		"veuillez m'excuser":          {"Excusez-moi, c'est fait.", done, "", false, FaultSorry},
		"sorry for a failure":         {"I'm sorry, one of them failed.", half, "", false, FaultNone},
		"the word in a file":          {"The letter begins with the word sorry.", done, "", false, FaultNone},
		"the word far behind":         {long + long + long + long + " I'm sorry.", done, "", false, FaultNone},
		"a sorry state":               {"The file is in a sorry state.", done, "", false, FaultNone},
		"four parts":                  {four, done, "", true, FaultNone},
		"four parts in English":       {"I listed the notes, as you asked. There are two. Here they are:\n\n- Trip\n- Budget\n\nThe second one is empty. Shall I fill it?", done, "", true, FaultNone},
		"three sentences":             {"J'ai créé la note. Elle est prête. Voulez-vous des sections ?", done, "", true, FaultForm},
		"seven sentences":             {four + " Oui ? Non ? Dites-moi.", done, "", true, FaultForm},
		"it does not say what it did": {"La note est créée. Elle est prête. Elle est vide. Voulez-vous des sections ?", done, "", true, FaultForm},
		"no next step":                {"J'ai créé la note. Elle est prête. Elle est vide. Elle a deux pages.", done, "", true, FaultForm},
		"guided is no form":           {"Done.", done, "", false, FaultNone},
	} {
		t.Run(name, func(t *testing.T) {
			a := Answer{Asked: Asked{Request: c.request, Calls: c.calls}, Text: c.text, Strict: c.strict, Wrote: func(text string) bool { return text == "note-789" }}
			if got := a.Check(); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	for _, f := range []Fault{FaultRaw, FaultID, FaultSorry, FaultForm} {
		if f.Correction(false) == f.Correction(true) || len(f.Correction(true)) < 60 || f.Notice().IsZero() {
			t.Errorf("%s: %s", f, f.Correction(true))
		}
	}
}

// TestPlainResults renders results for people: no JSON, no ids, the first lines of a long one with
// the command that shows the rest.
func TestPlainResults(t *testing.T) {
	id, err := regie.ParseID("0193d7c0-5f5e-7c3a-9a53-0a4f0e9b1c2d")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, said := range PlainResults([]regie.Call{
		{Tool: "notes.get", State: regie.CallSucceeded, Result: `{"note":{"id":"note-456","title":"Trip","sum":1000000}}`},
		{ID: id, Tool: "files.read_file", State: regie.CallSucceeded, Result: "1\n2\n3\n4\n5\n6\n"},
		{Tool: "files.write_file", State: regie.CallSucceeded},
		{ID: id, Tool: "files.list_files", State: regie.CallSucceeded, Result: `[{"a":1` + "\n[shortened: 7 of 9 bytes]"},
		{Tool: "files.delete_file", State: regie.CallFailed, Error: &regie.CallError{Message: "no such file"}},
		{Tool: "files.delete_file", State: regie.CallNotRun, Error: &regie.CallError{Message: "the person denied this call"}},
		{Tool: "bank.pay", State: regie.CallUnknown, Error: &regie.CallError{Message: "it died"}},
		{Tool: "bank.pay", State: regie.CallNotRun, NotRun: regie.NotRunDuplicateInBatch, Error: &regie.CallError{Message: "see above"}},
	}) {
		if !said.IsZero() {
			out = append(out, said.String())
		}
	}
	want := `The model's answer was not fit to be read. These are the results:
notes.get has succeeded:
    note sum: 1000000
    note title: Trip
files.read_file has succeeded:
    1
    2
    3
    4
    5
The rest: /show 0e9b1c2d
files.write_file has succeeded.
files.list_files has succeeded:
The rest: /show 0e9b1c2d
files.delete_file has failed: no such file
files.delete_file was not run: the person denied this call
The outcome of bank.pay is unknown: it died`
	if diff := cmp.Diff(want, strings.Join(out, "\n")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestAsked takes from a thread what an answer is about.
func TestAsked(t *testing.T) {
	user := func(text string) Entry {
		return Entry{Message: &regie.Message{Sender: regie.SenderUser, Text: text}}
	}
	ai := func(text string, calls ...regie.Call) Entry {
		return Entry{Message: &regie.Message{Sender: regie.SenderAI, AI: &regie.AIReply{Parts: []regie.Part{{Type: regie.PartText, Text: text}}}}, Calls: calls}
	}
	system := func(kind regie.SystemType, calls ...regie.Call) Entry {
		m := &regie.Message{Sender: regie.SenderSystem, System: &regie.SystemContent{Type: kind}}
		for range calls {
			m.System.CallIDs = append(m.System.CallIDs, regie.NewID())
		}
		return Entry{Message: m, Calls: calls}
	}
	one, two, plan := regie.Call{Tool: "a"}, regie.Call{Tool: "b"}, regie.Call{Tool: "session.update_plan"}
	gone := ai("taken back")
	gone.Message.Superseded = true
	sentBack := system(regie.SystemFormatError)
	sentBack.Message.System.Said = []regie.Sentence{regie.Say("again")}
	var got Asked
	for _, e := range []Entry{
		user("first"), ai("I look.", one), system(regie.SystemDataAdded, one), ai("bad"), sentBack, ai("good"), gone,
		user("second"), ai("I look.", two), system(regie.SystemActionsExecuted, two), system(regie.SystemFormatError), ai("bad"), sentBack,
		ai("I look again.", one, plan), system(regie.SystemDataAdded, one, plan),
	} {
		got.Observe(e)
	}
	if diff := cmp.Diff(Asked{Request: "second", Calls: []regie.Call{two, one}, Rewrites: 1}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
