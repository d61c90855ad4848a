package tool_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/tool"
)

func TestCheckRefuses(t *testing.T) {
	r := registry(t, reader(t), idle("mail.send", regie.ClassOnce))
	const read = "files__read_file"
	for _, row := range []struct {
		name, tool, arguments string
		code                  regie.Code
		notRun                regie.NotRunCode
		param, says, hint     string
	}{
		{"unknown tool", "files__read_fil", `{}`, regie.CodeUnknownTool, regie.NotRunOutOfScope, "", "no tool", "files__read_file"},
		{"no name", "", `{}`, regie.CodeUnknownTool, regie.NotRunOutOfScope, "", "no tool", ""},
		{"evil name", "a\x00b\xff\u202e", `{}`, regie.CodeUnknownTool, regie.NotRunOutOfScope, "", "no tool", ""},
		{"cut", read, `{"path":"a`, regie.CodeBadArguments, regie.NotRunInvalid, "", "strict JSON", ""},
		{"prose", read, `Sure! {"path":"a"}`, regie.CodeBadArguments, regie.NotRunInvalid, "", "strict JSON", ""},
		{"fence", read, "```json\n{}\n```", regie.CodeBadArguments, regie.NotRunInvalid, "", "strict JSON", ""},
		{"two values", read, `{"path":"a"}{"path":"b"}`, regie.CodeBadArguments, regie.NotRunInvalid, "", "strict JSON", ""},
		{"byte order mark", read, "\ufeff{}", regie.CodeBadArguments, regie.NotRunInvalid, "", "strict JSON", ""},
		{"duplicate key", read, `{"path":"a","path":"b"}`, regie.CodeBadArguments, regie.NotRunInvalid, "", "duplicate", ""},
		{"duplicate by escape", read, `{"path":"a","p\u0061th":"b"}`, regie.CodeBadArguments, regie.NotRunInvalid, "", "duplicate", ""},
		{"duplicate within", read, `{"path":"a","tags":[{"x":1,"x":2}]}`, regie.CodeBadArguments, regie.NotRunInvalid, "", "duplicate", ""},
		{"bad UTF-8", read, "{\"path\":\"a\xff\"}", regie.CodeBadArguments, regie.NotRunInvalid, "", "UTF-8", ""},
		{"half a surrogate pair", read, `{"path":"\ud800"}`, regie.CodeBadArguments, regie.NotRunInvalid, "", "surrogate", ""},
		{"raw NUL", read, "{\"path\":\"a\x00\"}", regie.CodeBadArguments, regie.NotRunInvalid, "", "strict JSON", ""},
		{"list", read, `["a"]`, regie.CodeBadArguments, regie.NotRunInvalid, "", "object", ""},
		{"null", read, `null`, regie.CodeBadArguments, regie.NotRunInvalid, "", "object", ""},
		{"encoded twice", read, `"{\"path\":\"a\"}"`, regie.CodeBadArguments, regie.NotRunInvalid, "", "object", ""},
		{"too deep", read, `{"path":` + strings.Repeat("[", 64) + strings.Repeat("]", 64) + `}`, regie.CodeBadArguments, regie.NotRunInvalid, "", "nested deeper", ""},
		{"too large", read, `{"path":"` + strings.Repeat("a", 1<<20) + `"}`, regie.CodeBadArguments, regie.NotRunInvalid, "", "1048587 bytes", ""},
		{"nothing", read, ``, regie.CodeBadArguments, regie.NotRunInvalid, "path", "missing", ""},
		{"missing", read, `{"deep":true}`, regie.CodeBadArguments, regie.NotRunInvalid, "path", "of type string", ""},
		{"wrong type", read, `{"path":"a","start_line":"x"}`, regie.CodeBadArguments, regie.NotRunInvalid, "start_line", "of type integer", ""},
		{"wrong type within", read, `{"path":"a","tags":["a",2]}`, regie.CodeBadArguments, regie.NotRunInvalid, "tags", "string", ""},
		{"null for a text", read, `{"path":null}`, regie.CodeBadArguments, regie.NotRunInvalid, "path", "of type string", ""},
		{"unknown key", read, `{"path":"a","start":1}`, regie.CodeBadArguments, regie.NotRunInvalid, "start", "deep, path, start_line, tags", "start_line"},
		{"case of a key", read, `{"Path":"a"}`, regie.CodeBadArguments, regie.NotRunInvalid, "Path", `no parameter "Path"`, "path"},
		{"integer too large", read, `{"path":"a","start_line":9007199254740993}`, regie.CodeBadArguments, regie.NotRunInvalid, "", "held exactly", ""},
		{"number too large", read, `{"path":"a","start_line":1e999}`, regie.CodeBadArguments, regie.NotRunInvalid, "", "held exactly", ""},
		{"fraction", read, `{"path":"a","start_line":1.5}`, regie.CodeBadArguments, regie.NotRunInvalid, "start_line", "of type integer", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := r.Check(row.tool, row.arguments)
			if c.Error == nil || c.Error.Code != row.code || c.NotRun != row.notRun || c.Error.Param != row.param {
				t.Fatalf("got %s %+v", c.NotRun, c.Error)
			}
			if !strings.Contains(c.Error.Message, row.says) || !strings.Contains(c.Error.Hint, row.hint) || len(c.Error.Message) > 2000 {
				t.Errorf("it says %q, %q", c.Error.Message, c.Error.Hint)
			}
			if c.Signature.IsZero() || !storable(c.Name) || !storable(c.Error.Message) || c.Error.Retryable {
				t.Errorf("got %+v", c)
			}
		})
	}
}

func TestCheckAccepts(t *testing.T) {
	r := registry(t, reader(t), idle("mail.send", regie.ClassOnce))
	for _, row := range []struct{ tool, arguments, canonical string }{
		{"files__read_file", ` { "start_line" : 1.0, "path" : "\u00e9/a" } `, `{"path":"é/a","start_line":1}`},
		{"files__read_file", `{"path":"a\u0000b"}`, `{"path":"a\u0000b"}`},
		{"files__read_file", `{"path":"a","start_line":9007199254740992}`, `{"path":"a","start_line":9007199254740992}`},
		{"files__read_file", `{"path":"` + strings.Repeat("é", 1<<18) + `"}`, `{"path":"` + strings.Repeat("é", 1<<18) + `"}`},
		{"mail__send", ``, `{}`},
		{"mail__send", " \n", `{}`},
		// an open schema takes it
		{"mail__send", `{"anything":[1,{"b":2,"a":-0.0}]}`, `{"anything":[1,{"a":0,"b":2}]}`},
		{"mail__send", `{"a":` + strings.Repeat("[", 63) + strings.Repeat("]", 63) + `}`, `{"a":` + strings.Repeat("[", 63) + strings.Repeat("]", 63) + `}`},
		{"mail__send", `{"a":"[[[\"{{{\\"}`, `{"a":"[[[\"{{{\\"}`},
	} {
		c := r.Check(row.tool, row.arguments)
		if c.Error != nil || c.NotRun != "" || c.Tool == nil {
			t.Errorf("%.60s: %+v", row.arguments, c.Error)
			continue
		}
		if string(c.Arguments) != row.canonical {
			t.Errorf("%.60s becomes %.60s", row.arguments, c.Arguments)
		}
		if again := r.Check(row.tool, row.canonical); again.Signature != c.Signature {
			t.Errorf("%.60s: the canonical form has another signature", row.arguments)
		}
	}
}

func TestSignatureTellsCallsApart(t *testing.T) {
	r := registry(t, reader(t), idle("mail.send", regie.ClassOnce), idle("mail.sen", regie.ClassOnce))
	calls := [][2]string{
		{"mail__send", `{}`},
		{"mail__sen", `{}`},
		{"mail__send", `{"a":1}`},
		{"mail__send", `{"a":"1"}`},
		{"mail__send", `{"a":2}`},
		{"mail__send", `{"a":`},
		{"mail__send", `{"a":1,"a":1}`},
		{"mail__send", `{"a":9007199254740993}`},
		{"mail__send", `{"a":9007199254740992}`},
		{"nobody", `{}`},
	}
	seen := map[regie.Hash]string{}
	for _, call := range calls {
		c := r.Check(call[0], call[1])
		if other, ok := seen[c.Signature]; ok {
			t.Errorf("%v has the signature of %s", call, other)
		}
		seen[c.Signature] = fmt.Sprint(call)
	}
	if r.Check("mail__send", `{"a":1,"b":2}`).Signature != r.Check("mail.send", "{\"b\":2.0,\n\"a\":1}").Signature {
		t.Error("the same call in other words has another signature")
	}
	if want := regie.HashOf([]byte("mail.send\x00{}")); r.Check("mail__send", "").Signature != want {
		t.Error("the signature is not the hash of name, NUL and canonical arguments")
	}
}

func storable(s string) bool { return utf8.ValidString(s) && !strings.Contains(s, "\x00") }

func FuzzCheck(f *testing.F) {
	for _, seed := range []string{``, `{}`, `{"path":"a"}`, `{"path":"a","start_line":1e3}`, `{"path":"\ud83d\ude00"}`, `[[[`, `{"a":"\\`, `-`, `{"path":1E400}`, "\xff"} {
		f.Add("files__read_file", seed)
		f.Add("files.raed_file", seed)
	}
	f.Fuzz(func(t *testing.T, name, arguments string) {
		r := registry(t, reader(t))
		c := r.Check(name, arguments)
		if c.Signature.IsZero() || !storable(c.Name) || (c.Error == nil) != (c.NotRun == "") || (c.Error == nil && c.Tool == nil) {
			t.Fatalf("%q %q: %+v", name, arguments, c)
		}
		if c.Error != nil {
			if !storable(c.Error.Message + c.Error.Hint + c.Error.Param) {
				t.Fatalf("%q %q: %+v", name, arguments, c.Error)
			}
			return
		}
		// What is accepted is canonical, stays so, and can be run.
		again := r.Check(name, string(c.Arguments))
		if again.Error != nil || string(again.Arguments) != string(c.Arguments) || again.Signature != c.Signature {
			t.Fatalf("%q: %s, then %s %+v", arguments, c.Arguments, again.Arguments, again.Error)
		}
		for _, form := range []string{arguments, string(c.Arguments)} {
			if out := tool.Run(t.Context(), c.Tool, &tool.Invocation{Arguments: json.RawMessage(strings.TrimSpace(form))}); out.State != regie.CallSucceeded {
				t.Fatalf("%q was accepted and does not run: %+v", form, out.Error)
			}
		}
	})
}

func BenchmarkCheck(b *testing.B) {
	r := registry(b, reader(b))
	for name, arguments := range map[string]string{
		"refused": `{"path":"internal/engine/round.go","start_line":120,"end_line":180}`,
		"small":   `{"path":"internal/engine/round.go","start_line":120}`,
		"content": `{"path":"` + strings.Repeat("some text with a line end\\n", 400) + `"}`,
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(arguments)))
			for b.Loop() {
				r.Check("files__read_file", arguments)
			}
		})
	}
}
