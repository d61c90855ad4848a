package prompt_test

import (
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/prompt"
	"github.com/regie-run/regie/internal/tool"
)

// TestDropNamed drops results of what people named, one after another: exactly the results that
// were weighed are left out, also where what several messages name stands together.
func TestDropNamed(t *testing.T) {
	long := func(id byte) regie.Call {
		return regie.Call{ID: regie.ID{0: 3, 15: id}, Tool: "files.read_file", State: regie.CallSucceeded, Result: strings.Repeat(string(rune('a'+id)), 1000)}
	}
	messages := []regie.Message{{Sender: regie.SenderUser, Text: "one"}, {Sender: regie.SenderUser, Text: "two"}, {}, {}, {Sender: regie.SenderUser, Text: "and?"}}
	owned := map[regie.ID][]regie.Call{}
	for i := range messages {
		if i == 2 || i == 3 {
			var calls []regie.Call
			messages[i], calls = named(long(byte(2*i)), long(byte(2*i+1)))
			owned[regie.ID{0: 1, 15: byte(i)}] = calls
		}
		messages[i].ID, messages[i].Seq, messages[i].RoundID = regie.ID{0: 1, 15: byte(i)}, int64(i+1), regie.ID{0: 2}
	}
	v := prompt.View{Names: tool.WireName}
	entries := prompt.Entries(messages, owned)
	pieces := v.Pieces(prompt.Window{}, entries, 0, 4000)
	for want := range 5 {
		c := regie.Compaction{}
		need := 0
		for _, p := range pieces {
			for _, free := range p.Free {
				if want > 0 && need < want*free {
					need = want*free - free/2
				}
			}
		}
		prompt.Drop(pieces, need, &c)
		compacted := prompt.Entries(compactedBy(messages, c), owned)
		turns := shownTurns(v, prompt.WindowOf(compacted), compacted)
		shown := ""
		for i := range turns {
			for _, part := range turns[i].Parts {
				shown += part.Text
			}
		}
		left := 0
		for id := byte(4); id < 8; id++ {
			gone := !strings.Contains(shown, strings.Repeat(string(rune('a'+id)), 1000))
			if gone {
				left++
			}
			if gone != (int(id)-4 < want) {
				t.Errorf("%d results dropped (%+v): that of call %d is gone: %v", want, c, id, gone)
			}
		}
		if left != want {
			t.Errorf("%d results are gone, %d were dropped", left, want)
		}
	}
}
