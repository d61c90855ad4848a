package prompt

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/regie-run/regie"
)

func TestAnswerCheck(t *testing.T) {
	done := []regie.Call{{State: regie.CallSucceeded}, {State: regie.CallSucceeded}}
	half := []regie.Call{{State: regie.CallSucceeded}, {State: regie.CallFailed}}
	const long = "The three invoices of May are paid; the fourth one is open."
	for name, c := range map[string]struct {
		answer Answer
		want   Fault
	}{
		"plain words":              {Answer{Text: "It is done.", Calls: done}, FaultNone},
		"an object":                {Answer{Text: ` {"path": "a", "size": 3}` + "\n", Calls: done}, FaultRaw},
		"a list of objects":        {Answer{Text: `[{"a": 1}, {"a": 2}]`}, FaultRaw},
		"a fenced object":          {Answer{Text: "Here:\n\n```json\n{\"a\": 1}\n```\n\nThat is it."}, FaultRaw},
		"a paragraph":              {Answer{Text: "Here:\r\n\r\n{\"a\": {\"b\": [1]}}\r\n\r\nThat is it."}, FaultRaw},
		"quoted as code":           {Answer{Text: "The file now says `{\"a\": 1}`, as you wanted."}, FaultNone},
		"a fence of another one":   {Answer{Text: "So:\n```js\nsend({\"a\": 1})\n```\n"}, FaultNone},
		"a set":                    {Answer{Text: "The set {1, 2} and the empty {} and {name} remain {"}, FaultNone},
		"in a sentence, asked for": {Answer{Text: `Here: {"a": 1}`, Request: "in JSON please"}, FaultNone},
		"asked for":                {Answer{Text: `{"a": 1}`, Request: "Give it as JSON."}, FaultNone},
		"code of another language": {Answer{Text: "```go\nx := map[string]int{\"a\": 1}\n```"}, FaultNone},
		"a list of numbers":        {Answer{Text: `[1, 2]`}, FaultNone},
		"braces that are no JSON":  {Answer{Text: `{"a": 1`}, FaultNone},
		"an empty answer":          {Answer{}, FaultNone},
		"sorry on success":         {Answer{Text: "I'm sorry, I had to look twice. It is done.", Calls: done}, FaultSorry},
		"apologies on success":     {Answer{Text: "My apologies for the delay.", Calls: done}, FaultSorry},
		"désolé on success":        {Answer{Text: "Je suis désolé, c'est fait.", Calls: done}, FaultSorry},
		"veuillez m'excuser":       {Answer{Text: "Excusez-moi, c'est fait.", Calls: done}, FaultSorry},
		"sorry for a failure":      {Answer{Text: "I'm sorry, one of them failed.", Calls: half}, FaultNone},
		"sorry without a call":     {Answer{Text: "I'm sorry to hear that."}, FaultNone},
		"the word in a file":       {Answer{Text: "The letter begins with the word sorry.", Calls: done}, FaultNone},
		"the word far behind":      {Answer{Text: long + long + long + long + " I'm sorry.", Calls: done}, FaultNone},
		"a sorry state":            {Answer{Text: "The file is in a sorry state.", Calls: done}, FaultNone},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.answer.Check(); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	for _, f := range []Fault{FaultRaw, FaultSorry} {
		if f.Correction(false) == f.Correction(true) || len(f.Correction(true)) < 60 || f.Notice().IsZero() {
			t.Errorf("%s: %s", f, f.Correction(true))
		}
	}
}

// TestAnswerTo takes from a thread what an answer is judged by.
func TestAnswerTo(t *testing.T) {
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
	one, two := regie.Call{Tool: "a"}, regie.Call{Tool: "b"}
	gone := ai("taken back")
	gone.Message.Superseded = true
	got := AnswerTo([]Entry{
		user("first"), ai("I look.", one), system(regie.SystemDataAdded, one), ai("bad"), system(regie.SystemFormatError), ai("good"), gone,
		user("second"), ai("I look.", two), system(regie.SystemActionsExecuted, two),
	}, "the answer")
	want := Answer{Text: "the answer", Request: "second", Calls: []regie.Call{two}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
