package demo

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
)

// without is all tools but some.
func without(names ...string) []provider.Tool {
	return slices.DeleteFunc(slices.Clone(allTools), func(t provider.Tool) bool { return slices.Contains(names, t.Name) })
}

// first refuses the first call of a tool.
func first(tool string, result provider.Result) func(provider.Call, arguments) *provider.Result {
	left := 1
	return func(call provider.Call, _ arguments) *provider.Result {
		if call.Name != tool || left == 0 {
			return nil
		}
		left--
		return &result
	}
}

// TestReactions: what becomes of a request where something comes in between.
func TestReactions(t *testing.T) {
	denied := func(reason string) provider.Result {
		message := "the person denied this call"
		if reason != "" {
			message += ": " + reason
		}
		return failure("", regie.CallNotRun, regie.CodeUserRejected, message)
	}
	stale := failure("", regie.CallFailed, regie.CodeStalePreview, "todo.txt has changed")
	for _, c := range []struct {
		name, say string
		tools     []provider.Tool
		refuse    func(provider.Call, arguments) *provider.Result
		chosen    func([]string) string
		calls     string
		answer    string
	}{
		{name: "no", say: "delete todo.txt", refuse: first(toolDelete, denied("")), calls: "delete todo.txt", answer: "todo.txt: you said no, so I left it."},
		{name: "no, because", say: "supprime todo.txt", refuse: first(toolDelete, denied("c'est à Anna")), calls: "delete todo.txt", answer: "vous avez dit non : « c'est à Anna »"},
		{
			name: "no, elsewhere", say: "write 'x' to a.md", refuse: first(toolWrite, denied("put it into notes/b.md")),
			calls: "write a.md <create> <x> | write notes/b.md <create> <x>", answer: "Done",
		},
		{
			name: "no, in other words", say: "add to todo.txt: eggs", refuse: first(toolWrite, denied("say 'ten eggs'")),
			calls: "write todo.txt <append> <eggs> | write todo.txt <append> <ten eggs>", answer: "Done",
		},
		{
			name: "stale write", say: "overwrite todo.txt with 'x'", refuse: first(toolWrite, stale),
			calls: "write todo.txt <overwrite> <x> | write todo.txt <overwrite> <x>", answer: "Done",
		},
		{
			name: "stale edit is read again", say: "replace milk by tea in todo.txt", refuse: first(toolEdit, stale),
			calls: `read todo.txt | edit todo.txt <[{"new_string":"tea","old_string":"milk"}]> | read todo.txt | edit todo.txt <[{"new_string":"tea","old_string":"milk"}]>`, answer: "Done",
		},
		{
			name: "ever stale", say: "overwrite todo.txt with 'x'", refuse: func(call provider.Call, _ arguments) *provider.Result {
				r := stale
				if call.Name != toolWrite {
					return nil
				}
				return &r
			}, calls: strings.TrimSuffix(strings.Repeat("write todo.txt <overwrite> <x> | ", maxTries), " | "), answer: "kept changing",
		},
		{
			name: "in the way", say: "write 'x' to todo.txt", chosen: func(o []string) string { return o[1] },
			calls: "write todo.txt <create> <x> | ask <replace what is there/add it at the end/leave it as it is> | write todo.txt <append> <x>", answer: "Done",
		},
		{
			name: "in the way, leave it", say: "écris « x » dans todo.txt", chosen: func(o []string) string { return o[2] },
			calls: "write todo.txt <create> <x> | ask <remplacer ce qui y est/l'ajouter à la fin/le laisser tel quel>", answer: "Ce n'est pas fait.",
		},
		{
			name: "in the way, nobody there", say: "write 'x' to todo.txt", tools: without(toolAsk),
			calls: "write todo.txt <create> <x>", answer: `Say "append" to add to it`,
		},
		{
			name: "nobody answers", say: "read budget", calls: "list . | ask <notes/budget-2025.md/notes/budget-2026.md/none of them>", answer: "Then I leave it",
		},
		{
			name: "none of them", say: "read budget", chosen: func(o []string) string { return o[len(o)-1] },
			calls: "list . | ask <notes/budget-2025.md/notes/budget-2026.md/none of them>", answer: "Then I leave it",
		},
		{name: "which one, nobody there", say: "read budget", tools: without(toolAsk), calls: "list .", answer: "Which file do you mean by \"budget\"?\n- notes/budget-2025.md\n- notes/budget-2026.md"},
		{
			name: "one line of several", say: "replace Tomatoes by Peppers in notes/garden.md", chosen: func(o []string) string { return o[2] },
			calls:  `read notes/garden.md | ask <all 2/line 3: Tomatoes go to the south wall./line 4: Beans go north. Tomatoes need water.> | edit notes/garden.md <[{"new_string":"Beans go north. Peppers need water.","old_string":"Beans go north. Tomatoes need water."}]>`,
			answer: "Done",
		},
		{
			name: "no tool that edits", say: "replace milk by tea in todo.txt", tools: without(toolEdit),
			calls: "read todo.txt | write todo.txt <overwrite> <tea\nbread>", answer: "Done",
		},
		{
			name: "an edit that cannot replace all", say: "replace all Tomatoes by Figs in notes/garden.md", tools: append(without(toolEdit), provider.Tool{Name: toolEdit}),
			calls: "read notes/garden.md | write notes/garden.md <overwrite> <# Garden plan\n\nFigs go to the south wall.\nBeans go north. Figs need water.>", answer: "Done",
		},
		{name: "nothing that changes", say: "replace milk by tea in todo.txt", tools: without(toolEdit, toolWrite), calls: "read todo.txt", answer: "I have no tool for that: files.edit_file"},
		{name: "nothing that deletes", say: "delete todo.txt", tools: without(toolDelete), answer: "I have no tool for that: files.delete_file"},
		{name: "nothing that searches", say: "cherche milk", tools: without(toolSearch), answer: "Je n'ai pas d'outil pour cela : files.search_text"},
		{
			name: "what follows a failure is left", say: "read nowhere.md, then delete todo.txt and append 'x' to old/a.tmp",
			calls: "read nowhere.md | list .", answer: "So I left out the rest: delete todo.txt, then write to old/a.tmp.",
		},
		{
			name: "what follows a refusal is left", say: "supprime todo.txt puis écris « x » dans b.md", refuse: first(toolDelete, denied("")),
			calls: "delete todo.txt", answer: "J'ai donc laissé le reste : écrire dans b.md.",
		},
		{
			name: "unknown outcome", say: "delete todo.txt, then delete old/a.tmp", refuse: first(toolDelete, failure("", regie.CallUnknown, regie.CodeOutcomeUnknown, "the program died")),
			calls: "delete todo.txt", answer: "the outcome is not known, look before you try again",
		},
		{
			name: "changed by the person", say: "add to todo.txt: eggs", refuse: first(toolWrite, provider.Result{Content: changedBefore + `{"path":"list.txt","content":"ham","mode":"append"}` + "]\ncreated list.txt"}),
			calls: "write todo.txt <append> <eggs>", answer: "Done: created list.txt. You had changed it before it ran.",
		},
		{
			name: "left out to make room", say: "read todo.txt", refuse: first(toolRead, provider.Result{Content: `[this result of 999 bytes is left out to make room; read it again with x, call_id "y"]`}),
			calls: "read todo.txt", answer: "was left out of this conversation to make room",
		},
		{
			name: "other results than ours", say: "replace milk by tea in todo.txt", refuse: first(toolRead, provider.Result{Content: "todo.txt is not text that can be shown: 3 bytes, image/png"}),
			calls: "read todo.txt", answer: "does not stand in todo.txt",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, household())
			w.refuse, w.chosen = c.refuse, c.chosen
			if c.tools != nil {
				w.tools = c.tools
			}
			answer := w.ask(c.say)
			if got := w.made(0); got != c.calls {
				t.Errorf("\n got %s\nwant %s", got, c.calls)
			}
			if !strings.Contains(answer, c.answer) {
				t.Errorf("%s\nwant %s in it", answer, c.answer)
			}
		})
	}
}

// TestReadsOn: a result that was shortened is read to its end, and one without end is not.
func TestReadsOn(t *testing.T) {
	shorten := func(content, id string, offset int) provider.Result {
		return provider.Result{Content: fmt.Sprintf("%s\n[shortened: %d of 99999 bytes shown; read on with %s, call_id %q, offset %d]", content, offset, toolMore, id, offset)}
	}
	w := newWorld(t, household())
	w.refuse = func(call provider.Call, args arguments) *provider.Result {
		var r provider.Result
		switch {
		case call.Name == toolSearch:
			r = shorten("notes/a.md:1: one", "id-1", 17)
		case call.Name == toolMore && args.Offset == 17 && args.CallID == "id-1":
			r = provider.Result{Content: "notes/a.md:2: two\n[bytes 17 to 34 of 50; go on with offset 34]"}
		case call.Name == toolMore && args.Offset == 34:
			r = provider.Result{Content: "notes/a.md:3: three\n[bytes 34 to 50 of 50; this is its end]"}
		default:
			return nil
		}
		return &r
	}
	answer := w.ask("search for o")
	if !strings.HasSuffix(answer, "in .:\n\nnotes/a.md:1: onenotes/a.md:2: twonotes/a.md:3: three") {
		t.Errorf("read on: %q", answer)
	}
	endless := 0
	w.refuse = func(call provider.Call, args arguments) *provider.Result {
		r := shorten("x", "id-2", 1)
		if call.Name == toolMore {
			endless++
			r = provider.Result{Content: fmt.Sprintf("x\n[bytes %d to %d of 99999; go on with offset %d]", args.Offset, args.Offset+1, args.Offset+1)}
		}
		return &r
	}
	if answer := w.ask("search for x"); endless != maxParts || !strings.Contains(answer, "[and more, which I did not read]") {
		t.Errorf("%d parts: %s", endless, answer)
	}
}

// TestLongFile: a file of which the tool shows a part is read on, for a change of its end.
func TestLongFile(t *testing.T) {
	w := newWorld(t, household())
	w.refuse = func(call provider.Call, args arguments) *provider.Result {
		if call.Name != toolRead {
			return nil
		}
		r := provider.Result{Content: "     1\tone\n[lines 1 to 1 of 2; go on with start_line 2]\n"}
		if args.StartLine == 2 {
			r.Content = "     2\tmilk\n"
		}
		return &r
	}
	w.ask("replace milk by tea in todo.txt")
	if got := w.made(0); got != `read todo.txt | read todo.txt 2-0 | edit todo.txt <[{"new_string":"tea","old_string":"milk"}]>` {
		t.Errorf("got %s", got)
	}
	if answer := w.ask("how many lines has todo.txt?"); !strings.Contains(answer, "todo.txt has 2 lines.") {
		t.Errorf("got %s", answer)
	}
}
