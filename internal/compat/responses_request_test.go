package compat

import (
	"strings"
	"testing"

	"github.com/regie-run/regie"
)

// TestParseResponses_Tools gives functions of namespaces flat names, and drops what only OpenAI
// runs.
func TestParseResponses_Tools(t *testing.T) {
	a, err := parseResponses([]byte(`{"model":"main","input":"hi","temperature":1,"tools":[{"type":"function","name":"f"},{"type":"web_search","external_web_access":true},
		{"type":"namespace","name":"n","description":"d","tools":[{"type":"function","name":"g"},{"type":"custom","name":"c","format":{}}]},{"type":"custom","name":"apply_patch"}]}`))
	if err != nil || len(a.tools) != 2 || a.tools[0].Name != "f" || a.tools[1].Name != "n__g" || a.tools[1].Namespace != "n" {
		t.Fatalf("%+v %v", a, err)
	}
	if got := strings.Join(a.ignored, ", "); got != "temperature, tools[1] (web_search), tools[2].tools[1] (custom), tools[3] (custom)" {
		t.Errorf("ignored: %s", got)
	}
	a, err = parseResponses([]byte(`{"model":"main","input":"hi","tools":[` + strings.Repeat(`{"type":"web_search"},`, 999) + `{"type":"web_search"}]}`))
	if err != nil || len(a.ignored) != maxIgnored {
		t.Errorf("%d are named: %v", len(a.ignored), err)
	}
	for tools, param := range map[string]string{
		`{"name":"f"}`:               "tools[0].type",
		`{"type":"a\nb","name":"f"}`: "tools[0].type",
		`{"type":"namespace"}`:       "tools[0].type",
		`{"type":"namespace","name":"n","tools":[{"type":"namespace","name":"m","tools":[]}]}`:                       "tools[0].tools[0].type",
		`{"type":"namespace","name":"n","tools":[{"type":"function","name":"a b"}]}`:                                 "tools[0].tools[0].name",
		`{"type":"web_search"},{"type":"function","name":"f"},{"type":"function","name":"f"}`:                        "tools[2].name",
		`{"type":"function","name":"n__f"},{"type":"namespace","name":"n","tools":[{"type":"function","name":"f"}]}`: "tools[1].tools[0].name",
	} {
		_, err := parseResponses([]byte(`{"model":"main","input":"hi","tools":[` + tools + `]}`))
		if paramOf(err) != param || regie.CodeOf(err) != regie.CodeBadRequest {
			t.Errorf("%s: %v (param %q, want %q)", tools, err, paramOf(err), param)
		}
	}
}

// TestContentParts_UnknownKeys ignores keys of content parts that only other vendors know.
func TestContentParts_UnknownKeys(t *testing.T) {
	for api, body := range map[string]string{
		APIChat:      `{"model":"main","messages":[{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"text","text":"a","role":"assistant","odd":{"a":1}}]},{"role":"user","content":"b"}]}`,
		APIResponses: `{"model":"main","input":[{"role":"user","content":[{"type":"input_text","text":"hi","odd":1}]},{"type":"function_call","call_id":"a","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"a","output":[{"type":"input_text","text":"x","odd":1}]}]}`,
		APIMessages:  `{"model":"main","system":[{"type":"text","text":"s","odd":1}],"messages":[{"role":"user","content":[{"type":"text","text":"hi","odd":null,"role":"user"}]}]}`,
	} {
		if _, err := parsers[api](body); err != nil {
			t.Errorf("%s: %v", api, err)
		}
	}
}
