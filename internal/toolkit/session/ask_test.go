package session_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/toolkit/session"
)

func numbered(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprint("option ", i+1)
	}
	return out
}

func TestParseModule(t *testing.T) {
	for _, row := range []struct {
		name, arguments string
		want            regie.Module
	}{
		{"yes or no", `{"question":"Delete it?"}`, regie.Module{Kind: regie.ModuleValidation, Text: "Delete it?"}},
		{"options are null", `{"question":"Delete it?","options":null,"allow_free_text":false}`, regie.Module{Kind: regie.ModuleValidation, Text: "Delete it?"}},
		{"a choice", `{"question":"Which?","options":["red","blue"]}`, regie.Module{Kind: regie.ModuleChoice, Text: "Which?", Options: []string{"red", "blue"}}},
		{
			"all of it", `{"question":" Which\nof these?\t","options":[" red ","dark blue"],"allow_multiple":true,"allow_free_text":true}`,
			regie.Module{Kind: regie.ModuleChoice, Text: "Which\nof these?", Options: []string{"red", "dark blue"}, AllowMultiple: true, AllowFreeText: true},
		},
		{"twenty", encode(t, map[string]any{"question": "Which?", "options": numbered(20)}), regie.Module{Kind: regie.ModuleChoice, Text: "Which?", Options: numbered(20)}},
		{"other writings", `{"question":"किस?","options":["می\u200cخواهم","👩\u200d🔬"]}`, regie.Module{Kind: regie.ModuleChoice, Text: "किस?", Options: []string{"می\u200cخواهم", "👩\u200d🔬"}}},
		{"as long as it may be", encode(t, map[string]any{"question": strings.Repeat("é", 2000)}), regie.Module{Kind: regie.ModuleValidation, Text: strings.Repeat("é", 2000)}},
	} {
		t.Run(row.name, func(t *testing.T) {
			m, err := session.ParseModule(json.RawMessage(row.arguments))
			if err != nil || !cmp.Equal(m, row.want) {
				t.Errorf("%v\n%s", err, cmp.Diff(row.want, m))
			}
		})
	}
}

func TestParseModuleRefuses(t *testing.T) {
	long := func(n int) string { return strings.Repeat("é", n) }
	for _, row := range []struct {
		name      string
		arguments any
		param     string
		says      []string
	}{
		{"nothing", ``, "", []string{"do not fit"}},
		{"no JSON", `{"question":`, "", []string{"do not fit"}},
		{"no object", `["Which?"]`, "", []string{"do not fit"}},
		{"another member", `{"question":"Which?","choices":["a","b"]}`, "", []string{"choices"}},
		{"a member twice", `{"question":"Which?","question":"What?"}`, "", []string{"question"}},
		{"bytes that are no text", "{\"question\":\"\xff\"}", "", []string{"do not fit"}},
		{"options that are objects", `{"question":"Which?","options":[{"label":"a"},{"label":"b"}]}`, "", []string{"options"}},
		{"no question", `{"options":["a","b"]}`, "question", []string{"empty"}},
		{"a blank question", `{"question":" \n\t"}`, "question", []string{"empty"}},
		{"a long question", map[string]any{"question": long(2001)}, "question", []string{"2001", "2000"}},
		{"a question that moves the cursor", `{"question":"Delete?\u001b[2K"}`, "question", []string{"U+001B"}},
		{"a question that turns the writing around", `{"question":"Delete \u202etxt.exe?"}`, "question", []string{"U+202E"}},
		{"a question with a carriage return", `{"question":"Delete a?\rKeep"}`, "question", []string{"U+000D"}},
		{"no options", `{"question":"Which?","options":[]}`, "options", []string{"0 options", "2 to 20"}},
		{"one option", `{"question":"Which?","options":["a"]}`, "options", []string{"1 options"}},
		{"too many", map[string]any{"question": "Which?", "options": numbered(21)}, "options", []string{"21 options"}},
		{"an empty option", `{"question":"Which?","options":["a"," "]}`, "options", []string{"empty"}},
		{"a long option", map[string]any{"question": "Which?", "options": []string{"a", long(201)}}, "options", []string{"201", "200"}},
		{"an option of two lines", `{"question":"Which?","options":["a","b\nc"]}`, "options", []string{"one line"}},
		{"an option with a NUL", `{"question":"Which?","options":["a","b\u0000"]}`, "options", []string{"U+0000"}},
		{"two that are the same", `{"question":"Which?","options":["a","b","a"]}`, "options", []string{`"a"`, "twice"}},
		{"two that look the same", `{"question":"Which?","options":["Dark blue","dark  BLUE "]}`, "options", []string{"twice"}},
		{"two that differ in what has no width", `{"question":"Which?","options":["a","a\u200b"]}`, "options", []string{"U+200B"}},
		{"two that differ in a joiner", `{"question":"Which?","options":["ab","a\u200db"]}`, "options", []string{"twice"}},
		{"an option with letters that nobody sees", `{"question":"Which?","options":["a","b\udb40\udc61"]}`, "options", []string{"U+E0061"}},
		{"an option with a filler", `{"question":"Which?","options":["a","b\u3164"]}`, "options", []string{"U+3164"}},
		{"an option that is only a joiner", `{"question":"Which?","options":["a","\u200d"]}`, "options", []string{"empty"}},
		{"several of nothing", `{"question":"Which?","allow_multiple":true}`, "allow_multiple", []string{"give options"}},
		{"free text instead of yes or no", `{"question":"Which?","allow_free_text":true}`, "allow_free_text", []string{"yes or no", "two likely answers"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			m, err := session.ParseModule(json.RawMessage(encode(t, row.arguments)))
			if err == nil {
				t.Fatalf("accepted: %+v", m)
			}
			refused(t, err, row.param, row.says...)
			if len(err.Error()) > 1000 || !utf8.ValidString(err.Error()) {
				t.Errorf("the sentence has %d bytes", len(err.Error()))
			}
		})
	}
}

// The modules that people answer in these tests.
var (
	validation = regie.Module{Kind: regie.ModuleValidation, Text: "Delete it?"}
	reasoned   = regie.Module{Kind: regie.ModuleValidation, Text: "Carry it out?", AllowFreeText: true}
	planned    = regie.Module{Kind: regie.ModuleValidation, Text: "Carry it out?", AllowFreeText: true, Options: []string{"ask", "edit"}}
	one        = regie.Module{Kind: regie.ModuleChoice, Text: "Which?", Options: []string{"Red", "Dark blue", "red and blue"}}
	several    = regie.Module{Kind: regie.ModuleChoice, Text: "Which?", Options: one.Options, AllowMultiple: true}
	free       = regie.Module{Kind: regie.ModuleChoice, Text: "Which?", Options: one.Options, AllowFreeText: true}
	anything   = regie.Module{Kind: regie.ModuleChoice, Text: "Which?", Options: one.Options, AllowFreeText: true, AllowMultiple: true}
)

func TestCheckReply(t *testing.T) {
	for _, row := range []struct {
		name   string
		module regie.Module
		reply  regie.QuestionReply
		want   regie.QuestionReply
		read   string
	}{
		{"yes", validation, regie.QuestionReply{Yes: new(true)}, regie.QuestionReply{Yes: new(true)}, "Yes."},
		{"no", validation, regie.QuestionReply{Yes: new(false), Text: " "}, regie.QuestionReply{Yes: new(false)}, "No."},
		{"a reason", reasoned, regie.QuestionReply{Text: "too long"}, regie.QuestionReply{Yes: new(false), Text: "too long"}, "No. Reason: too long"},
		{"no in a word", reasoned, regie.QuestionReply{Text: "Non."}, regie.QuestionReply{Yes: new(false)}, "No."},
		{
			"a way of yes", planned,
			regie.QuestionReply{Choices: []string{"EDIT"}},
			regie.QuestionReply{Yes: new(true), Choices: []string{"edit"}},
			"Yes. The plan is approved and plan mode is over: carry it out now. Chosen: edit",
		},
		{
			"yes in a word", planned,
			regie.QuestionReply{Text: "OK!"},
			regie.QuestionReply{Yes: new(true), Choices: []string{"ask"}},
			"Yes. The plan is approved and plan mode is over: carry it out now. Chosen: ask",
		},
		{"no to a plan", planned, regie.QuestionReply{Yes: new(false)}, regie.QuestionReply{Yes: new(false)}, "No.\nThe session stays in plan mode: change the plan, and ask again."},
		{"one", one, regie.QuestionReply{Choices: []string{"Red"}}, regie.QuestionReply{Choices: []string{"Red"}}, "Chosen: Red"},
		{"one twice", one, regie.QuestionReply{Choices: []string{"Red", "red"}}, regie.QuestionReply{Choices: []string{"Red"}}, "Chosen: Red"},
		{"in another case", one, regie.QuestionReply{Choices: []string{" dark  BLUE"}}, regie.QuestionReply{Choices: []string{"Dark blue"}}, "Chosen: Dark blue"},
		{"typed", one, regie.QuestionReply{Text: "dark blue\r\n"}, regie.QuestionReply{Choices: []string{"Dark blue"}}, "Chosen: Dark blue"},
		{
			"several, in the module's order", several,
			regie.QuestionReply{Choices: []string{"red and blue", "Red"}},
			regie.QuestionReply{Choices: []string{"Red", "red and blue"}},
			"Chosen:\n- Red\n- red and blue",
		},
		{"one of several", several, regie.QuestionReply{Choices: []string{"Red"}}, regie.QuestionReply{Choices: []string{"Red"}}, "Chosen:\n- Red"},
		{"other words", free, regie.QuestionReply{Text: "Green.\r\n\tOr gold. "}, regie.QuestionReply{Text: "Green.\n\tOr gold."}, "Written: Green.\n\tOr gold."},
		{"a word that is an option", free, regie.QuestionReply{Text: "red"}, regie.QuestionReply{Choices: []string{"Red"}}, "Chosen: Red"},
		{
			"an option with a word", free,
			regie.QuestionReply{Choices: []string{"Red"}, Text: "but light"},
			regie.QuestionReply{Choices: []string{"Red"}, Text: "but light"},
			"Chosen: Red\nWritten: but light",
		},
		{
			"an option with the word of another", free,
			regie.QuestionReply{Choices: []string{"Red"}, Text: "Dark blue"},
			regie.QuestionReply{Choices: []string{"Red"}, Text: "Dark blue"},
			"Chosen: Red\nWritten: Dark blue",
		},
		{
			"several with a word", anything,
			regie.QuestionReply{Choices: []string{"Dark blue", "Red"}, Text: "x"},
			regie.QuestionReply{Choices: []string{"Red", "Dark blue"}, Text: "x"},
			"Chosen:\n- Red\n- Dark blue\nWritten: x",
		},
		{"a long word", free, regie.QuestionReply{Text: strings.Repeat("é", 10_000)}, regie.QuestionReply{Text: strings.Repeat("é", 10_000)}, "Written: " + strings.Repeat("é", 10_000)},
	} {
		t.Run(row.name, func(t *testing.T) {
			row.reply.By, row.reply.At = "ada", time.Unix(1, 0)
			row.want.By, row.want.At = "ada", time.Unix(1, 0)
			got, err := session.CheckReply(row.module, row.reply)
			if err != nil || !cmp.Equal(got, row.want) {
				t.Fatalf("%v\n%s", err, cmp.Diff(row.want, got))
			}
			if read := session.ReplyText(row.module, got); read != row.read {
				t.Errorf("the model reads %q, want %q", read, row.read)
			}
			again, err := session.CheckReply(row.module, got)
			if err != nil || !cmp.Equal(again, got) {
				t.Errorf("a checked reply is not stable: %v\n%s", err, cmp.Diff(got, again))
			}
		})
	}
}

func TestCheckReplyRefuses(t *testing.T) {
	for _, row := range []struct {
		name   string
		module regie.Module
		reply  regie.QuestionReply
		says   string
	}{
		{"neither yes nor no", validation, regie.QuestionReply{}, "yes or no"},
		{"words for yes or no", validation, regie.QuestionReply{Text: "perhaps"}, "yes or no"},
		{"yes with words", validation, regie.QuestionReply{Yes: new(true), Text: "but not now"}, "yes or no"},
		{"a choice for yes or no", validation, regie.QuestionReply{Yes: new(true), Choices: []string{"Red"}}, "yes or no"},
		{"nothing", one, regie.QuestionReply{Text: " \n"}, "choose from Red, Dark blue, red and blue"},
		{"yes", one, regie.QuestionReply{Yes: new(true)}, "not answered with yes or no"},
		{"yes with a choice", one, regie.QuestionReply{Yes: new(false), Choices: []string{"Red"}}, "not answered with yes or no"},
		{"none of them", one, regie.QuestionReply{Choices: []string{"Green"}}, `"Green" is not one of the options: choose from Red`},
		{"one of them and another", several, regie.QuestionReply{Choices: []string{"Red", "Green"}}, `"Green" is not one of the options`},
		{"an empty one", several, regie.QuestionReply{Choices: []string{""}}, "not one of the options"},
		{"several where one", one, regie.QuestionReply{Choices: []string{"Red", "Dark blue"}}, "only one option can be chosen here, not 2"},
		{"several where one and a word", free, regie.QuestionReply{Choices: []string{"Red", "Dark blue"}, Text: "x"}, "only one option"},
		{"words where none are asked for", one, regie.QuestionReply{Text: "Green"}, "no answer in other words: choose from Red"},
		{"words beside a choice where none are asked for", several, regie.QuestionReply{Choices: []string{"Red"}, Text: "light"}, "no answer in other words"},
		{"too many words", free, regie.QuestionReply{Text: strings.Repeat("é", 10_001)}, "10001 characters"},
		{"a control character", free, regie.QuestionReply{Text: "a\x1bb"}, "control characters"},
		{"bytes that are no text", free, regie.QuestionReply{Text: "a\xffb"}, "not UTF-8"},
	} {
		t.Run(row.name, func(t *testing.T) {
			got, err := session.CheckReply(row.module, row.reply)
			if regie.CodeOf(err) != regie.CodeBadRequest || !strings.Contains(err.Error(), row.says) {
				t.Errorf("got %+v, %v; want %q", got, err, row.says)
			}
		})
	}
}

func FuzzParseModule(f *testing.F) {
	f.Add([]byte(`{"question":"Which?","options":["red","blue"],"allow_multiple":true,"allow_free_text":true}`))
	f.Add([]byte(`{"question":"Delete it?"}`))
	f.Add([]byte(`{"question":"a\u0000b","options":["A","a "]}`))
	f.Add([]byte(`{"question":"\ud83d","options":null}`))
	f.Fuzz(func(t *testing.T, arguments []byte) {
		m, err := session.ParseModule(arguments)
		if err != nil {
			if regie.CodeOf(err) != regie.CodeBadArguments || !utf8.ValidString(err.Error()) {
				t.Errorf("%q: %v", arguments, err)
			}
			return
		}
		if m.Text == "" || harmful(m.Text) || utf8.RuneCountInString(m.Text) > 2000 {
			t.Errorf("the question %q", m.Text)
		}
		if choice := m.Kind == regie.ModuleChoice; choice != (len(m.Options) >= 2) || len(m.Options) > 20 || !choice && (m.AllowMultiple || m.AllowFreeText) {
			t.Errorf("%+v", m)
		}
		for i, option := range m.Options {
			if option == "" || harmful(option) || strings.Contains(option, "\n") || utf8.RuneCountInString(option) > 200 {
				t.Errorf("the option %q", option)
			}
			// Each option can be chosen, and is not taken for another one.
			reply, err := session.CheckReply(m, regie.QuestionReply{Choices: []string{option}})
			if err != nil || len(reply.Choices) != 1 || reply.Choices[0] != m.Options[i] {
				t.Errorf("%q of %q: %+v %v", option, m.Options, reply, err)
			}
		}
	})
}
