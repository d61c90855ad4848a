package strict_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/provider/openai"
	"github.com/regie-run/regie/internal/provider/providertest/strict"
)

// TestRefusedRequests changes a legal request in one place each, and wants that seen.
func TestRefusedRequests(t *testing.T) {
	const legal = `{"model":"m","max_tokens":10,"tools":[{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object"}}}],"messages":[` +
		`{"role":"system","content":"s"},{"role":"user","content":"q"},` +
		`{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"b","type":"function","function":{"name":"f","arguments":"{}"}}]},` +
		`{"role":"tool","tool_call_id":"a","content":""},{"role":"tool","tool_call_id":"b","content":"x"},{"role":"user","content":"q"}]}`
	if err := strict.Chat([]byte(legal)); err != nil {
		t.Fatal(err)
	}
	const (
		resA  = `{"role":"tool","tool_call_id":"a","content":""},`
		resB  = `{"role":"tool","tool_call_id":"b","content":"x"},`
		user  = `{"role":"user","content":"q"}`
		tool  = `{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object"}}}`
		callB = `{"id":"b","type":"function","function":{"name":"f","arguments":"{}"}}`
	)
	many := func(n int, item string) string {
		out := make([]string, n)
		for i := range out {
			out[i] = strings.ReplaceAll(item, "#", fmt.Sprint(i))
		}
		return strings.Join(out, ",")
	}
	_, rest, _ := strings.Cut(legal, `"messages":`)
	from := `"messages":` + rest
	for name, c := range map[string]struct{ old, new, want string }{
		"not UTF-8":                  {`"q"`, "\"\xff\"", "not UTF-8"},
		"a key twice":                {`"max_tokens":10`, `"max_tokens":10,"max_tokens":10`, "strict JSON"},
		"an unknown member":          {`"max_tokens":10`, `"max_tokens":10,"thinking":true`, "strict JSON"},
		"an unknown one of a call":   {`"id":"b"`, `"index":1,"id":"b"`, "strict JSON"},
		"no model":                   {`"m"`, `""`, "no model"},
		"no bound":                   {`"max_tokens":10,`, ``, "not bounded"},
		"no messages":                {from, `"messages":[]}`, "no messages"},
		"a tool's name":              {`"name":"f","description"`, `"name":"a.b","description"`, "malformed"},
		"a tool twice":               {tool, tool + "," + tool, "declared twice"},
		"too many tools":             {tool, many(129, strings.Replace(tool, `"f"`, `"f#"`, 1)), "129 tools"},
		"a schema that is none":      {`{"type":"object"}`, `[]`, "malformed"},
		"a system message later":     {resB, resB + `{"role":"system","content":"s"},`, "in the middle"},
		"a role":                     {`"role":"user"`, `"role":"person"`, `the role "person"`},
		"an empty question":          {`"content":"q"`, `"content":""`, "an empty user message"},
		"an empty answer":            {resB, resB + `{"role":"assistant","content":""},`, "an empty assistant message"},
		"the model last":             {`,` + user + `]}`, `,{"role":"assistant","content":"x"}]}`, "the last message is of role assistant"},
		"no results":                 {resA + resB, ``, "no result directly after"},
		"a result missing":           {resB, ``, "no result directly after"},
		"a result too many":          {resB, resB + resB, `a result of "b"`},
		"results in another order":   {resA + resB, resB + resA, `a result of "b", expected one of ["a" "b"]`},
		"a result of nothing":        {`"tool_call_id":"a"`, `"tool_call_id":"c"`, `a result of "c"`},
		"a result without content":   {`"tool_call_id":"a","content":""`, `"tool_call_id":"a","content":null`, `a result of "a"`},
		"text between the results":   {resB, user + "," + resB, "no result directly after"},
		"the last result missing":    {`,{"role":"tool","tool_call_id":"b","content":"x"},` + user, ``, "have no result"},
		"no id":                      {`"id":"a"`, `"id":""`, "malformed or repeats"},
		"an id twice":                {`"id":"b"`, `"id":"a"`, "malformed or repeats"},
		"an id of another vendor":    {`"id":"a"`, `"id":"` + strings.Repeat("x", 41) + `"`, "longer than 40"},
		"a call's name":              {`"function":{"name":"f","arguments"`, `"function":{"name":"f g","arguments"`, "malformed or repeats"},
		"arguments that are no JSON": {`"arguments":"{}"`, `"arguments":"no"`, "malformed or repeats"},
		"arguments that are a list":  {`"arguments":"{}"`, `"arguments":"[]"`, "malformed or repeats"},
		"too many calls":             {callB, many(128, strings.Replace(callB, `"b"`, `"b#"`, 1)), "129 calls"},
	} {
		t.Run(name, func(t *testing.T) {
			if strings.Count(legal, c.old) < 1 {
				t.Fatalf("%s does not stand in the request", c.old)
			}
			err := strict.Chat([]byte(strings.Replace(legal, c.old, c.new, 1)))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

// TestLongIDs: an id that OpenAI would refuse becomes another one, the same at the call and at its
// result; others stay as they are.
func TestLongIDs(t *testing.T) {
	ids := []string{strings.Repeat("x", 40), strings.Repeat("x", 41), strings.Repeat("x", 42), "call_01a1fd57-6d04-72ce-bd06-a3e1e4eaf898"}
	call, answers := provider.Turn{Role: provider.RoleAssistant}, provider.Turn{Role: provider.RoleTool}
	for _, id := range ids {
		call.Parts = append(call.Parts, provider.Part{Type: regie.PartCall, Call: &provider.Call{ID: id, Name: "f", Arguments: "{}"}})
		answers.Results = append(answers.Results, provider.Result{CallID: id, Content: "ok"})
	}
	question := provider.Turn{Role: provider.RoleUser, Parts: []provider.Part{{Type: regie.PartText, Text: "go"}}}
	body := openai.Body("", provider.Head{Model: "m", MaxOutput: 1, Tools: []provider.Tool{{Name: "f", Parameters: json.RawMessage(`{}`)}}}, provider.Tail{}, question, call, answers)
	if err := strict.Chat(body); err != nil {
		t.Error(err)
	}
	if strings.Count(string(body), `"`+ids[0]+`"`) != 2 {
		t.Errorf("an id that is short enough was changed: %s", body)
	}
}
