package provider

import (
	"encoding/json"
	"testing"

	"github.com/regie-run/regie"
)

func say(role Role, text string) Turn {
	return Turn{Role: role, Parts: []Part{{Type: regie.PartText, Text: text}}}
}

func asks(id, arguments string) Turn {
	return Turn{Role: RoleAssistant, Parts: []Part{{Type: regie.PartCall, Call: &Call{ID: id, Name: "files__read_file", Arguments: arguments}}}}
}

// picture is a person's turn with an image of some data.
func picture(kind, data string) Turn {
	turn := say(RoleUser, "Go")
	turn.Parts = append(turn.Parts, Part{Type: regie.PartMedia, Media: &Media{
		Type: "image/" + kind, Blob: regie.HashOf([]byte(data)), Data: []byte(data),
	}})
	return turn
}

func brings(id, content string) Turn {
	return Turn{Role: RoleTool, Results: []Result{{CallID: id, Content: content}}}
}

// TestKey: all that an answer may depend on makes another key, and what means nothing does not.
func TestKey(t *testing.T) {
	half, zero := 0.5, 0.0
	id := func(n byte) regie.ID { return regie.ID{n} }
	type question struct {
		head  Head
		terms KeyTerms
		turns []Turn
		tail  Tail
	}
	basic := func() question {
		return question{
			head: Head{
				Model: "m", Level1: "one", Level2: "two", MaxOutput: 9, Temperature: &zero, ParallelCalls: true,
				Tools: []Tool{{Name: "f", Description: "d", Parameters: json.RawMessage(`{"type": "object", "a": 1.0}`)}},
			},
			terms: KeyTerms{Asker: Asker{Workspace: id(1), User: id(2), Session: id(3)}, Provider: "p", Settings: regie.HashOf([]byte("s")), Dialect: regie.DialectNative},
			turns: []Turn{say(RoleUser, "Go"), asks("x", `{"path":"a", "n":1}`), brings("x", "text")},
		}
	}
	sum := func(q question) regie.Hash {
		k := NewKey(q.head, q.terms)
		k.Append(q.turns...)
		return k.Sum(q.tail)
	}
	took := func(ms, text string) []Turn { // an outcome in either dialect (see package prompt)
		return []Turn{
			brings("x", `{"name":"f__r","success":true,"duration_ms":`+ms+"}\n"+text),
			say(RoleUser, "[DATA_ADDED]\n"+`{"command":1,"name":"f.r","success":true,"duration_ms":`+ms+`,"status":"SUCCESS","result":"`+text+`"}`),
		}
	}
	timed, later, other := basic(), basic(), basic()
	timed.turns, later.turns, other.turns = took("3", "a"), took("12", "a"), took("3", "b")
	if sum(timed) != sum(later) || sum(timed) == sum(other) {
		t.Error("how long a call took makes another key, or its result makes none")
	}
	want := sum(basic())
	if want.IsZero() {
		t.Fatal("no key")
	}
	for name, change := range map[string]func(*question){
		"nothing":                  func(*question) {},
		"another session":          func(q *question) { q.terms.Session = id(9) },
		"white space around":       func(q *question) { q.turns[0] = say(RoleUser, " Go\n") },
		"the ids of calls":         func(q *question) { q.turns[1], q.turns[2] = asks("y", `{"path":"a", "n":1}`), brings("y", "text") },
		"the order of arguments":   func(q *question) { q.turns[1] = asks("x", `{"n":1,"path":"a"}`) },
		"the spelling of a schema": func(q *question) { q.head.Tools[0].Parameters = json.RawMessage(`{"a":1,"type":"object"}`) },
		"what was kept of tools":   func(q *question) { q.head.Encoded = &Encoded{} },
	} {
		q := basic()
		if change(&q); sum(q) != want {
			t.Errorf("%s makes another key", name)
		}
	}
	seen := map[regie.Hash]string{want: "the question itself"}
	for name, change := range map[string]func(*question){
		"another workspace":    func(q *question) { q.terms.Workspace = id(9) },
		"another user":         func(q *question) { q.terms.User = id(9) },
		"user and workspace":   func(q *question) { q.terms.Workspace, q.terms.User = q.terms.User, q.terms.Workspace },
		"another provider":     func(q *question) { q.terms.Provider = "q" },
		"other settings":       func(q *question) { q.terms.Settings = regie.HashOf([]byte("t")) },
		"another dialect":      func(q *question) { q.terms.Dialect = regie.DialectJSON },
		"another model":        func(q *question) { q.head.Model = "n" },
		"level 1":              func(q *question) { q.head.Level1 = "One" },
		"level 2":              func(q *question) { q.head.Level2 = "" },
		"another temperature":  func(q *question) { q.head.Temperature = &half },
		"no temperature":       func(q *question) { q.head.Temperature = nil },
		"the bound of a reply": func(q *question) { q.head.MaxOutput = 10 },
		"parallel calls":       func(q *question) { q.head.ParallelCalls = false },
		"a tool's words":       func(q *question) { q.head.Tools[0].Description = "e" },
		"no tools":             func(q *question) { q.head.Tools = nil },
		"letters":              func(q *question) { q.turns[0] = say(RoleUser, "go") },
		"the role":             func(q *question) { q.turns[0] = say(RoleAssistant, "Go") },
		"a result":             func(q *question) { q.turns[2] = brings("x", "text ") },
		"a failed result":      func(q *question) { q.turns[2].Results = []Result{{CallID: "x", Content: "text", IsError: true}} },
		"another call's":       func(q *question) { q.turns[2] = brings("z", "text") },
		"a turn more":          func(q *question) { q.turns = append(q.turns, say(RoleUser, "")) },
		"no turn":              func(q *question) { q.turns = nil },
		"one turn of two":      func(q *question) { q.turns = []Turn{say(RoleUser, `Go"},{"text":"`)} },
		"an image":             func(q *question) { q.turns[0] = picture("png", "a") },
		"another image":        func(q *question) { q.turns[0] = picture("png", "b") },
		"an image's type":      func(q *question) { q.turns[0] = picture("gif", "a") },
		"the tail":             func(q *question) { q.tail.Withheld = true },
		"guidance":             func(q *question) { q.tail.Guidance = "answer" },
	} {
		q := basic()
		change(&q)
		if other, is := seen[sum(q)]; is {
			t.Errorf("%s has the key of %s", name, other)
		}
		seen[sum(q)] = name
	}
	q := basic()
	q.terms.Fold = true
	folded := sum(q)
	if q.turns[0] = say(RoleUser, "gO"); sum(q) != folded {
		t.Error("letters count where they are folded")
	}
	if q.turns[2] = brings("x", "Text"); sum(q) == folded {
		t.Error("the letters of a result are folded")
	}
}

// TestKeyGrows: the sum of a key does not end it, and is that of the same turns given at once.
func TestKeyGrows(t *testing.T) {
	head, terms := Head{Model: "m"}, KeyTerms{Provider: "p"}
	step, once := NewKey(head, terms), NewKey(head, terms)
	turns := []Turn{say(RoleUser, "a"), asks("x", "{}"), brings("x", "r"), say(RoleAssistant, "b")}
	for i := range turns {
		before := step.Sum(Tail{})
		if step.Sum(Tail{}) != before {
			t.Fatal("a sum changes the key")
		}
		if step.Append(turns[i]); step.Sum(Tail{}) == before {
			t.Fatal("a turn does not change the key")
		}
	}
	if once.Append(turns...); once.Sum(Tail{}) != step.Sum(Tail{}) {
		t.Error("turns that come together have another key")
	}
}
