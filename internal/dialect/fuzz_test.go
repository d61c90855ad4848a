package dialect_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
)

// FuzzParse reads anything as a reply: it never panics, what it takes is canonical and can be
// written and read again, and what it refuses it says why, shortly.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", "no", `{"pre_text":"a"}`, "```json\n{\"pre_text\":\"a\",}\n```", "\uFEFF{\"pre_text\":\"a\nb\"}", `<think>{</think>{"pre_text":"a"}`,
		`x {"pre_text":"a"} {"pre_text":"b"}`, `{"pre_text":"a","plan":{"steps":[]},"completed":true}`, `{"pre_text":"a","pre_text":"b"}`,
		`{"pre_text":"a","data_commands":[{"type":"TOOL_DATA"},{"type":"files.read_file","params":{"path":"a","n":1e400}}]}`,
		`{"pre_text":"a","action_commands":[{"type":"files.write_file","params":{"_validate":true}}],"post_text":"b","keep_control":true,"validation_request":true}`,
		`{"pre_text":"a","communication_module":{"type":"MultipleChoice","data":{"question":"?","options":["a","b"],"allow_multiple":true}}}`,
		`{"pre_text":"a","communication_module":{"type":"Validation","data":{"message":"?"}}}`, `{"pre_text":"\ud800"}`, `{"pre_text":"\u0000"}`,
		`[{"pre_text":"a"}]`, `{"a":{"pre_text":"b"}}`, strings.Repeat(`{"a":`, 80), strings.Repeat("{\"", 20), `{"pre_text":"a","plan":null,"data_commands":{}}`,
	} {
		f.Add(seed)
	}
	j := full()
	f.Fuzz(func(t *testing.T, raw string) {
		reply, errs := j.Parse(raw)
		if (reply == nil) == (errs == nil) {
			t.Fatalf("both or neither: %+v, %v", reply, errs)
		}
		turn := j.Read([]provider.Part{{Type: regie.PartText, Text: raw}})
		if (turn.Errors == nil) != (errs == nil) || len(turn.Parts) == 0 {
			t.Fatalf("the canonical turn says something else: %+v", turn)
		}
		if errs != nil {
			for _, french := range []bool{false, true} {
				said := errs.Correction(french)
				if len(errs.List) == 0 || len(errs.List) > 10 || len(said) > 20_000 || !utf8.ValidString(said) {
					t.Fatalf("a correction that cannot be sent: %.2000q", said)
				}
			}
			return
		}
		if strings.TrimSpace(reply.PreText) == "" || !utf8.ValidString(reply.PreText) || strings.ContainsRune(reply.PreText, 0) {
			t.Fatalf("a text that cannot be stored: %q", reply.PreText)
		}
		queries, actions := 0, 0
		for i := range reply.Calls {
			c := &reply.Calls[i]
			var arguments map[string]json.RawMessage
			if c.Tool == "" || json.Unmarshal([]byte(c.Arguments), &arguments) != nil || arguments == nil || !j.Sayable(c) {
				t.Fatalf("a call that cannot be stored: %+v", c)
			}
			if c.Role == "" && c.Kind == regie.KindQuery {
				queries++
			}
			if c.Role == "" && c.Kind == regie.KindAction {
				actions++
			}
		}
		if queries > 0 && actions > 0 {
			t.Fatalf("queries and actions in one reply: %+v", reply)
		}
		written := j.Encode(reply)
		again, errs := j.Parse(written)
		if errs != nil {
			t.Fatalf("%s was written and cannot be read: %v", written, errs)
		}
		if diff := cmp.Diff(reply, again); diff != "" {
			t.Fatalf("%s: -written +read:\n%s", written, diff)
		}
	})
}
