package prompt_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/prompt"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/tool"
)

// exchange is a reply with its calls and the message that brings their results, at a place in a
// thread of one round.
func exchange(place int, calls []regie.Call) (messages []regie.Message, owned []regie.Call) {
	reply := regie.Message{ID: regie.ID{1, byte(place)}, Seq: int64(place + 1), RoundID: regie.ID{9}, Sender: regie.SenderAI, AI: &regie.AIReply{}}
	results := regie.Message{ID: regie.ID{2, byte(place)}, Seq: int64(place + 2), RoundID: regie.ID{9}, Sender: regie.SenderSystem, System: &regie.SystemContent{Type: regie.SystemDataAdded}}
	for i := range calls {
		c := &calls[i]
		c.ID, c.MessageID, c.Ordinal, c.Kind = regie.ID{3, byte(place), byte(i >> 8), byte(i)}, reply.ID, i, regie.KindQuery
		c.ProviderCallID, c.Origin = fmt.Sprintf("c%d_%d", place, i), regie.OriginModel
		reply.AI.Parts = append(reply.AI.Parts, regie.Part{Type: regie.PartCall, CallID: c.ID})
		results.System.CallIDs = append(results.System.CallIDs, c.ID)
	}
	return []regie.Message{reply, results}, calls
}

func read(result string) regie.Call {
	return regie.Call{Tool: "files.read_file", Arguments: `{"path":"a"}`, State: regie.CallSucceeded, Result: result}
}

// conversation is a person's request and the exchanges behind it.
func conversation(exchanges ...[]regie.Call) []prompt.Entry {
	messages := []regie.Message{{ID: regie.ID{8}, Seq: 1, RoundID: regie.ID{9}, Sender: regie.SenderUser, Text: "Read."}}
	owned := map[regie.ID][]regie.Call{}
	for _, calls := range exchanges {
		more, mine := exchange(len(messages), calls)
		messages = append(messages, more...)
		owned[more[0].ID] = mine
	}
	return prompt.Entries(messages, owned)
}

func textOf(turns []provider.Turn) string {
	var b strings.Builder
	for _, turn := range turns {
		for _, p := range turn.Parts {
			b.WriteString(p.Text)
		}
		for _, r := range turn.Results {
			b.WriteString(r.Content + "\n")
		}
	}
	return b.String()
}

// TestOverLimit shows a reply with far too many calls: legal for every vendor, bounded, and it says
// what is left out. What ran is always shown.
func TestOverLimit(t *testing.T) {
	for name, c := range map[string]struct {
		ran, over int
		arguments string
		shown     int // of those over the limit
	}{
		"none":                  {5, 0, `{"path":"a"}`, 0},
		"some":                  {10, 100, `{"path":"a"}`, 100},
		"thousands":             {10, 5000, `{"path":"a"}`, 118},
		"thousands behind many": {300, 5000, `{"path":"a"}`, 1},
		"large ones":            {2, 20, `{"path":"` + strings.Repeat("a", 10_000) + `"}`, 3},
		"huge ones":             {2, 20, `{"path":"` + strings.Repeat("a", 100_000) + `"}`, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var calls []regie.Call
			for range c.ran {
				calls = append(calls, read("it ran"))
			}
			for range c.over {
				call := read("")
				call.Arguments, call.State, call.NotRun = c.arguments, regie.CallNotRun, regie.NotRunOverLimit
				call.Error = &regie.CallError{Code: "OVER_LIMIT", Message: "not executed", Retryable: true}
				calls = append(calls, call)
			}
			entries := conversation(calls)
			for view, v := range views() {
				turns := shownTurns(v, prompt.Window{}, entries)
				if err := check(v, turns); err != nil {
					t.Fatalf("%s: %v", view, err)
				}
				text := textOf(turns)
				if ran, over := strings.Count(text, "it ran"), strings.Count(text, "OVER_LIMIT"); ran != c.ran || over != c.shown {
					t.Errorf("%s shows %d that ran and %d over the limit", view, ran, over)
				}
				if told := strings.Contains(text, fmt.Sprintf("%d more calls of this reply were not executed either", c.over-c.shown)); told != (c.over > c.shown) {
					t.Errorf("%s says what is left out: %v", view, told)
				}
			}
			if calls[c.ran:] != nil && c.over > 0 && calls[c.ran].Error.Message != "not executed" {
				t.Error("showing a batch changed what is stored")
			}
		})
	}
}

// TestDroppedAndHidden: a batch of which results were dropped is hidden by a summary: the batch
// behind it is shown whole.
func TestDroppedAndHidden(t *testing.T) {
	entries := conversation([]regie.Call{read(strings.Repeat("old ", 200)), read(strings.Repeat("old ", 200))}, []regie.Call{read(strings.Repeat("new ", 200))})
	var w prompt.Window
	for _, c := range []regie.Compaction{{Dropped: 1, DroppedCalls: 2}, {Hidden: 3}} {
		w = w.With(&regie.Message{System: &regie.SystemContent{Type: regie.SystemContextSummary, Summary: "In short.", Compaction: &c}}, entries, 0)
	}
	for name, v := range views() {
		if text := textOf(shownTurns(v, w, entries)); !strings.Contains(text, "new new") || strings.Contains(text, "old old") {
			t.Errorf("%s: %s", name, text)
		}
	}
}

// TestDroppedError leaves of a long error what it is about.
func TestDroppedError(t *testing.T) {
	failed := read("")
	failed.State, failed.Error = regie.CallFailed, &regie.CallError{Code: "FILE_NOT_FOUND", Message: "there is no such file: " + strings.Repeat("nearby ", 100), Hint: "look again"}
	entries := conversation([]regie.Call{failed}, []regie.Call{read("fine")})
	v := prompt.View{Names: tool.WireName}
	pieces := v.Pieces(prompt.Window{}, entries, 0, prompt.Size(shownTurns(v, prompt.Window{}, entries))/4)
	c := &regie.Compaction{}
	if freed := prompt.Drop(pieces, 1, c); freed < 100 {
		t.Errorf("%d tokens are freed", freed)
	}
	w := prompt.Window{}.With(&regie.Message{System: &regie.SystemContent{Type: regie.SystemContextSummary, Compaction: c}}, entries, 0)
	text := textOf(shownTurns(v, w, entries))
	if len(text) > 400 || !strings.Contains(text, "FILE_NOT_FOUND") || !strings.Contains(text, "there is no such file") || entries[1].Calls[0].Error.Hint == "" {
		t.Error(text)
	}
}

// TestWorth: where the newest batch is most of the thread, a summary has to take away a real share
// of the room, or there would be one at each step.
func TestWorth(t *testing.T) {
	v := prompt.View{Names: tool.WireName}
	// bytes of text before the batch: 15 % and 37 % of the room
	for before, want := range map[int]int{4800: 0, 12_000: 3} {
		text := regie.Call{Tool: "x.y", Arguments: `{"a":"` + strings.Repeat("a", before) + `"}`, State: regie.CallSucceeded, Result: "ok"}
		entries := conversation([]regie.Call{text}, []regie.Call{read(strings.Repeat("b", 24_000))})
		pieces := v.Pieces(prompt.Window{}, entries, 0, prompt.Size(shownTurns(v, prompt.Window{}, entries))/4)
		if cut := prompt.Cut(pieces, prompt.Room{Budget: 8000}, 0); cut != want {
			t.Errorf("%d bytes before it: cut at %d, want %d", before, cut, want)
		}
	}
}
