package demo

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
)

var allTools = []provider.Tool{
	{Name: toolList},
	{Name: toolRead},
	{Name: toolWrite},
	{Name: toolEdit},
	{Name: toolDelete},
	{Name: toolSearch},
	{Name: toolShell},
	{Name: toolAsk},
	{Name: toolComplete},
}

// harness plays the engine and its tools on files in memory.
type harness struct {
	t       *testing.T
	files   map[string]string
	refuse  func(call provider.Call, args arguments) *provider.Result // nil: the call is run
	chosen  int                                                       // the option that the person takes
	turns   []provider.Turn
	replies []*provider.Reply
	ids     map[string]bool
	tools   []provider.Tool
}

func newHarness(t *testing.T, files map[string]string) *harness {
	t.Helper()
	return &harness{t: t, files: files, ids: map[string]bool{}, tools: allTools}
}

func household() map[string]string {
	return map[string]string{
		"notes/garden.md": "# Garden plan\n\nTomatoes go to the south wall.\nBeans go north. Tomatoes need water.\n",
		"notes/école.md":  "# École\n\nLa réunion est le 12 septembre. Voilà.\n",
		"todo.txt":        "milk\nbread\n",
	}
}

// ask puts a request and runs the loop to its answer. Each reply comes from a conversation of its
// own, as after a restart.
func (h *harness) ask(message string) string {
	h.t.Helper()
	h.turns = append(h.turns, user(message))
	for range 20 {
		reply := h.send(h.tools)
		h.replies = append(h.replies, reply)
		h.turns = append(h.turns, provider.Turn{Role: provider.RoleAssistant, Parts: reply.Parts})
		var results []provider.Result
		for _, part := range reply.Parts {
			if part.Type == regie.PartCall {
				results = append(results, h.run(*part.Call))
			}
		}
		if len(results) == 0 {
			return reply.Parts[0].Text
		}
		h.turns = append(h.turns, provider.Turn{Role: provider.RoleTool, Results: results})
	}
	h.t.Fatal("no answer within 20 replies")
	return ""
}

func (h *harness) send(tools []provider.Tool) *provider.Reply {
	h.t.Helper()
	c := open(h.t, provider.Head{Model: Model, Tools: tools}, h.turns...)
	var streamed strings.Builder
	reply, err := c.Send(h.t.Context(), func(d provider.Delta) { streamed.WriteString(d.Text) })
	if err != nil {
		h.t.Fatal(err)
	}
	if text := reply.Parts[0].Text; text != streamed.String() {
		h.t.Errorf("streamed %q, replied %q", streamed.String(), text)
	}
	return reply
}

// run does what the toolkits do with a call.
func (h *harness) run(call provider.Call) provider.Result {
	if h.ids[call.ID] {
		h.t.Errorf("the call id %s repeats", call.ID)
	}
	h.ids[call.ID] = true
	var args arguments
	if err := json.Unmarshal([]byte(call.Arguments), &args); err != nil {
		h.t.Fatal(err)
	}
	if h.refuse != nil {
		if result := h.refuse(call, args); result != nil {
			result.CallID = call.ID
			return *result
		}
	}
	content, err := h.do(call.Name, args)
	if err != nil {
		result := failure(regie.CallFailed, regie.CodeOf(err), err.Error())
		result.CallID = call.ID
		return result
	}
	return provider.Result{CallID: call.ID, Content: content}
}

func (h *harness) do(tool string, args arguments) (string, error) {
	old, exists := h.files[args.Path]
	var out []string
	switch tool {
	case toolList:
		for name, text := range h.files {
			if path.Dir(name) == args.Path {
				out = append(out, fmt.Sprintf("%s\t%d bytes", name, len(text)))
			}
		}
		sort.Strings(out)
		if len(out) == 0 {
			return "", regie.Errorf(regie.CodeFileNotFound, "%s does not exist", args.Path)
		}
		return strings.Join(out, "\n") + "\n", nil
	case toolSearch:
		for name, text := range h.files {
			for i, line := range strings.Split(text, "\n") {
				if strings.Contains(line, args.Query) && (args.Path == "." || path.Dir(name) == args.Path) {
					out = append(out, fmt.Sprintf("%s:%d: %s", name, i+1, line))
				}
			}
		}
		sort.Strings(out)
		return strings.Join(append(out, fmt.Sprintf("[%d matches]", len(out))), "\n"), nil
	case toolAsk:
		return "Chosen: " + args.Options[h.chosen], nil
	case toolShell:
		return "ran " + args.Command, nil
	case toolWrite:
		if exists && args.Mode == "create" {
			return "", regie.Errorf(regie.CodeFileExists, "%s exists already", args.Path)
		}
		if args.Mode != "append" {
			old = ""
		}
		h.files[args.Path] = old + args.Content
		return "written", nil
	}
	if !exists {
		return "", regie.Errorf(regie.CodeFileNotFound, "%s does not exist", args.Path)
	}
	switch tool {
	case toolRead:
		for i, line := range strings.Split(strings.TrimSuffix(old, "\n"), "\n") {
			out = append(out, fmt.Sprintf("%6d\t%s", i+1, line))
		}
		return strings.Join(out, "\n") + "\n", nil
	case toolEdit:
		h.files[args.Path] = strings.ReplaceAll(old, args.Edits[0].Old, args.Edits[0].New)
		return "edited", nil
	case toolDelete:
		delete(h.files, args.Path)
		return "deleted", nil
	}
	return "", regie.Errorf(regie.CodeUnknownTool, "no tool %s", tool)
}

func failure(state regie.CallState, code regie.Code, message string) provider.Result {
	data, err := json.Marshal(map[string]any{"status": state, "error": regie.CallError{Code: code, Message: message}})
	if err != nil {
		panic(err)
	}
	return provider.Result{Content: string(data), IsError: true}
}

// shape is the tools of each reply: "list_files", "read read", "", …
func (h *harness) shape() []string {
	var out []string
	for _, reply := range h.replies {
		var calls []string
		for _, part := range reply.Parts {
			if part.Type == regie.PartCall {
				_, name, _ := strings.Cut(part.Call.Name, "__")
				calls = append(calls, strings.TrimSuffix(name, "_file"))
			}
		}
		out = append(out, strings.Join(calls, " "))
	}
	return out
}

func times(word string, n int) string { return strings.TrimSpace(strings.Repeat(word+" ", n)) }

// TestRequests runs one request of each kind, and looks at the answer and at the calls.
func TestRequests(t *testing.T) {
	for _, c := range []struct{ before, say, calls, answer string }{
		{"", "list files in notes", "list_files", "In notes:\n\nnotes/garden.md\t"},
		{"", "liste les fichiers", "list_files", "Dans l'espace de travail :\n\ntodo.txt"},
		{"", "read todo.txt", "read", "This is todo.txt:\n\n     1\tmilk\n     2\tbread"},
		{"", "lis nowhere.md", "read", "nowhere.md : échec (FILE_NOT_FOUND) : nowhere.md does not exist"},
		{"", "search for Beans in notes", "search_text", "What I find for “Beans” in notes:\n\nnotes/garden.md:4: Beans"},
		{"", "cherche Beans dans notes et écris le résultat dans b.md", "search_text,write", "Ce que je trouve pour « Beans » dans notes :\n\nnotes/garden.md:4: Beans go north. Tomatoes need water.\n[1 matches]\n\nC'est fait : b.md est écrit."},
		{"", "search for Nothing and write it to b.md", "search_text", "[0 matches]"},
		{"", "write 'x' to b.md", "write", "Done: b.md is written."},
		{"", "ajoute « pain » à todo.txt", "write", "C'est fait : todo.txt est écrit."},
		{"", "replace milk by tea in todo.txt", "edit", "Done: todo.txt is changed."},
		{"", "supprime todo.txt", "delete", "C'est fait : todo.txt est supprimé ; `regie undo` le rétablit."},
		{"read todo.txt", "delete it", "delete", "Done: todo.txt is deleted"},
		{"lis todo.txt", "supprime-le", "delete", "C'est fait : todo.txt est supprimé"},
		{"", "delete it", "", "Which file do you mean?"},
		{"", "how many lines does notes/garden.md have?", "read", "Lines in notes/garden.md: 4."},
		{"", "run `ls -l`", "shell_exec", "This is what `ls -l` gives:\n\nran ls -l"},
		{"", "summarise notes/garden.md", "read", "I read 1 text. The first headings and sentences are below; a model would do better.\n\n- Garden plan: Tomatoes go to the south wall. (notes/garden.md)"},
		{"", "hello", "", "For anything else, `regie setup` configures a model."},
		{"", "aide", "", "Pour toute autre chose, `regie setup` configure un modèle."},
		{"", "sing me a song", "", "This is only the demo, not a model: it understands a few requests (say “help”), and `regie setup` configures a model."},
		{"", "chante-moi une chanson", "", "Ceci n'est que la démonstration, pas un modèle : elle comprend quelques demandes (dites « aide »), et `regie setup` configure un modèle."},
	} {
		h := newHarness(t, household())
		if c.before != "" {
			h.ask(c.before)
			h.replies = nil
		}
		answer := h.ask(c.say)
		if got := strings.TrimSuffix(strings.Join(h.shape(), ","), ","); got != c.calls {
			t.Errorf("%q: calls %q, want %q", c.say, got, c.calls)
		}
		if !strings.Contains(answer, c.answer) {
			t.Errorf("%q: %q, want %q in it", c.say, answer, c.answer)
		}
	}
}

// TestOutcomes: a refusal, a failure and an unknown outcome are told as they are.
func TestOutcomes(t *testing.T) {
	for _, c := range []struct {
		say, answer string
		result      provider.Result
	}{
		{
			"delete todo.txt", "todo.txt: you said no, so I left it.",
			failure(regie.CallNotRun, regie.CodeUserRejected, "the person denied this call"),
		},
		{
			"supprime todo.txt", "todo.txt : vous avez dit non : « c'est à Anna ». Je n'y ai pas touché.",
			failure(regie.CallNotRun, regie.CodeUserRejected, "the person denied this call: c'est à Anna"),
		},
		{"write 'x' to b.md", "b.md: failed (DENIED): not allowed", failure(regie.CallNotRun, "DENIED", "not allowed")},
		{
			"delete todo.txt", "todo.txt: the outcome is not known, look before you try again (OUTCOME_UNKNOWN): it died",
			failure(regie.CallUnknown, regie.CodeOutcomeUnknown, "it died"),
		},
		{
			"write 'x' to b.md", "Done: c.md is written.",
			provider.Result{Content: `{"name":"files__write_file","success":true,"executed_params":{"path":"c.md","content":"y","mode":"create"}}` + "\ncreated c.md"},
		},
		{
			"read todo.txt", "I have lost the thread of this request",
			provider.Result{Content: `[this result of 999 bytes is left out to make room; read it again with x, call_id "y"]`},
		},
		{
			"how many lines does todo.txt have?", "Lines in todo.txt: 12000.",
			provider.Result{Content: "     1\tone\n[lines 1 to 1 of 12000; go on with start_line 2]\n"},
		},
		{"how many lines does todo.txt have?", "todo.txt is empty", provider.Result{Content: "todo.txt is empty"}},
	} {
		h := newHarness(t, household())
		h.refuse = func(provider.Call, arguments) *provider.Result { r := c.result; return &r }
		if answer := h.ask(c.say); !strings.Contains(answer, c.answer) {
			t.Errorf("%q: %q, want %q in it", c.say, answer, c.answer)
		}
	}
}

// TestFileExists: where a file is in the way the person decides.
func TestFileExists(t *testing.T) {
	for chosen, want := range []string{"x\n", "milk\nbread\nx\n", "milk\nbread\n"} {
		h := newHarness(t, household())
		h.chosen = chosen
		answer := h.ask("write 'x' to todo.txt")
		if h.files["todo.txt"] != want || (chosen == 2) == strings.Contains(answer, "Done") {
			t.Errorf("option %d: %q holds %q", chosen, answer, h.files["todo.txt"])
		}
	}
	h := newHarness(t, household())
	h.tools = slices.DeleteFunc(slices.Clone(allTools), func(tool provider.Tool) bool { return tool.Name == toolAsk })
	if answer := h.ask("write 'x' to todo.txt"); !strings.Contains(answer, "failed (FILE_EXISTS)") {
		t.Errorf("where nobody can be asked: %q", answer)
	}
}

// TestIntroduction: a thread says once in a reply with calls and once in an answer who speaks.
func TestIntroduction(t *testing.T) {
	h := newHarness(t, household())
	for _, message := range []string{"read todo.txt", "list files", "supprime todo.txt"} {
		h.ask(message)
	}
	for i, reply := range h.replies {
		if got := strings.HasPrefix(reply.Parts[0].Text, "(This is the demo: a few rules, not a model.) "); got != (i < 2) {
			t.Errorf("reply %d: %q", i, reply.Parts[0].Text)
		}
	}
}

// TestOtherModel: the calls of another model in the same request are not taken for the demo's.
func TestOtherModel(t *testing.T) {
	h := newHarness(t, household())
	call := provider.Call{ID: "7", Name: toolDelete, Arguments: `{"path":"x"}`}
	h.turns = []provider.Turn{
		user("read todo.txt"),
		{Role: provider.RoleAssistant, Parts: []provider.Part{{Type: regie.PartCall, Call: &call}}},
		{Role: provider.RoleTool, Results: []provider.Result{{CallID: "7", Content: "deleted"}}},
	}
	if reply := h.send(allTools); len(reply.Parts) != 2 || reply.Parts[1].Call.Name != toolRead {
		t.Errorf("%+v", reply.Parts)
	}
}

// TestWithdrawnTools: without the tool for a step the rules say so; a notice asks for nothing.
func TestWithdrawnTools(t *testing.T) {
	h := newHarness(t, household())
	h.turns = []provider.Turn{user("list files"), user("[LIMIT_REACHED] 3 replies")}
	if reply := h.send(nil); len(reply.Parts) != 1 || !strings.Contains(reply.Parts[0].Text, "files.list_files is not in my scope") {
		t.Errorf("%+v", reply.Parts)
	}
}

// TestComplete: where nobody reads along, the answer becomes the summary of the run.
func TestComplete(t *testing.T) {
	h := newHarness(t, household())
	answer := h.ask("read todo.txt")
	h.turns = append(h.turns, user("[COMPLETE_REFUSED] Nobody reads along"))
	reply := h.send(allTools)
	if call := reply.Parts[0].Call; call == nil || call.Name != toolComplete || !strings.Contains(call.Arguments, answer[:20]) {
		t.Errorf("%+v", reply.Parts)
	}
}
