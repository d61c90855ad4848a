package gemini_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/provider/gemini"
	"github.com/regie-run/regie/internal/provider/providertest/strict"
)

func text(s string) provider.Part { return provider.Part{Type: regie.PartText, Text: s} }

func call(id string) provider.Part {
	return provider.Part{Type: regie.PartCall, Call: &provider.Call{ID: id, Name: "files__" + id, Arguments: `{"path":"a"}`}}
}

func signed(part provider.Part, signature string) provider.Part {
	part.Provider, part.Opaque = "gemini", json.RawMessage(`{"thoughtSignature":"`+signature+`"}`)
	return part
}

func user(s string) provider.Turn {
	return provider.Turn{Role: provider.RoleUser, Parts: []provider.Part{text(s)}}
}

func assistant(parts ...provider.Part) provider.Turn {
	return provider.Turn{Role: provider.RoleAssistant, Parts: parts}
}

func results(ids ...string) provider.Turn {
	turn := provider.Turn{Role: provider.RoleTool}
	for _, id := range ids {
		turn.Results = append(turn.Results, provider.Result{CallID: id, Content: "ok", IsError: id == "b"})
	}
	return turn
}

var head = provider.Head{
	Model: "gemini-3-pro", Level1: "You are.", MaxOutput: 4096,
	Tools: []provider.Tool{{Name: "7zip__run", Parameters: json.RawMessage(`{"$schema":"x","type":"object","additionalProperties":false,"properties":{"additionalProperties":{"type":"object","additionalProperties":{}},"l":{"items":{"anyOf":[{"$schema":"x"}]}}}}`)}},
}

func body(t *testing.T, head provider.Head, turns ...provider.Turn) string {
	t.Helper()
	r, err := gemini.NewRequest(head, gemini.Options{})
	if err != nil {
		t.Fatal(err)
	}
	grown, _ := gemini.NewRequest(head, gemini.Options{})
	for i := range turns {
		grown.Append(turns[i])
		_ = grown.Body()
	}
	r.Append(turns...)
	got := string(r.Body())
	if diff := cmp.Diff(got, string(grown.Body())); diff != "" {
		t.Errorf("grown turn by turn it is another one:\n%s", diff)
	}
	if err := strict.Gemini(head.Model, []byte(got)); err != nil {
		t.Errorf("%v\n%s", err, got)
	}
	return got
}

// TestRendering is the thread as it goes over the wire: one content for parallel results and
// nothing else in it, signatures on their parts.
func TestRendering(t *testing.T) {
	got := body(t, head, user("Look."), user("Now."), assistant(provider.Part{Type: regie.PartThinking, Text: "hm", Provider: "gemini"}, signed(text("I look."), "s1"), signed(call("a"), "s2"), call("b")),
		results("a", "b"), user("Hurry."), assistant(signed(text(""), "s3")), user("Well?"))
	want := `{"systemInstruction":{"parts":[{"text":"You are."}]},` +
		`"tools":[{"functionDeclarations":[{"name":"_7zip__run","description":"7zip__run","parametersJsonSchema":{"properties":{"additionalProperties":{"type":"object"},"l":{"items":{"anyOf":[{}]}}},"type":"object"}}]}],` +
		`"contents":[` +
		`{"role":"user","parts":[{"text":"Look."},{"text":"Now."}]},` +
		`{"role":"model","parts":[{"text":"I look.","thoughtSignature":"s1"},{"functionCall":{"id":"a","name":"files__a","args":{"path":"a"}},"thoughtSignature":"s2"},{"functionCall":{"id":"b","name":"files__b","args":{"path":"a"}}}]},` +
		`{"role":"user","parts":[{"functionResponse":{"id":"a","name":"files__a","response":{"output":"ok"}}},{"functionResponse":{"id":"b","name":"files__b","response":{"error":"ok"}}}]},` +
		`{"role":"user","parts":[{"text":"Hurry."}]},{"role":"model","parts":[{"text":"","thoughtSignature":"s3"}]},{"role":"user","parts":[{"text":"Well?"}]}],"generationConfig":{"maxOutputTokens":4096}}`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	older := head
	older.Model, older.Tools = "gemini-2.5-flash", nil
	for name, c := range map[string]struct {
		head     provider.Head
		turns    []provider.Turn
		has, not string
	}{
		"a call of another model":         {head, []provider.Turn{user("a"), assistant(call("a"), call("b")), results("a", "b")}, `"thoughtSignature":"skip_thought_signature_validator"},{"functionCall":{"id":"b","name":"files__b","args":{"path":"a"}}}`, ""},
		"a model that does not check":     {older, []provider.Turn{user("a"), assistant(call("a")), results("a")}, "functionResponse", "thoughtSignature"},
		"a signature of somebody else":    {older, []provider.Turn{user("a"), assistant(provider.Part{Type: regie.PartText, Text: "b", Provider: "anthropic", Opaque: json.RawMessage(`{"thoughtSignature":"x"}`)}), user("c")}, `"b"`, "thoughtSignature"},
		"nothing":                         {head, []provider.Turn{user(""), assistant(), user("c")}, `{"text":"(nothing)"}`, ""},
		"the model first":                 {head, []provider.Turn{assistant(text("a")), user("b")}, `[{"role":"user","parts":[{"text":"(go on)"}]}`, ""},
		"the model twice":                 {head, []provider.Turn{user("a"), assistant(text("b")), assistant(call("a")), results("a")}, "(go on)", ""},
		"arguments that are none":         {head, []provider.Turn{user("a"), assistant(provider.Part{Type: regie.PartCall, Call: &provider.Call{ID: "a", Name: "f", Arguments: "no"}}), results("a")}, `"args":{}`, ""},
		"the same id in another exchange": {head, []provider.Turn{user("a"), assistant(call("a")), results("a"), assistant(call("a")), results("a")}, "functionResponse", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := body(t, c.head, c.turns...)
			if !strings.Contains(got, c.has) || c.not != "" && strings.Contains(got, c.not) {
				t.Errorf("want %s and not %s in\n%s", c.has, c.not, got)
			}
		})
	}
	withheld, err := gemini.NewRequest(head, gemini.Options{Thinking: `"includeThoughts":true`})
	if err != nil {
		t.Fatal(err)
	}
	withheld.EndWith(provider.Tail{Withheld: true})
	if !strings.Contains(string(withheld.Body()), `"mode":"NONE"`) {
		t.Error("the tools are not forbidden", err)
	}
	for _, bad := range []provider.Head{{MaxOutput: 1}, {Model: "m"}} {
		if _, err := gemini.NewRequest(bad, gemini.Options{}); err == nil {
			t.Errorf("%+v: taken", bad)
		}
	}
}

// TestRefused changes a legal request in one place each, and wants that seen.
func TestRefused(t *testing.T) {
	const legal = `{"systemInstruction":{"parts":[{"text":"s"}]},"tools":[{"functionDeclarations":[{"name":"f","description":"d","parametersJsonSchema":{"type":"object","properties":{"p":{}}}}]}],` +
		`"toolConfig":{"functionCallingConfig":{"mode":"AUTO"}},"generationConfig":{"maxOutputTokens":10,"temperature":1},"contents":[` +
		`{"role":"user","parts":[{"text":"q"}]},` +
		`{"role":"model","parts":[{"text":"w"},{"functionCall":{"id":"a","name":"f","args":{}},"thoughtSignature":"x"},{"functionCall":{"id":"b","name":"f","args":{}}}]},` +
		`{"role":"user","parts":[{"functionResponse":{"id":"a","name":"f","response":{}}},{"functionResponse":{"id":"b","name":"f","response":{}}}]}]}`
	if err := strict.Gemini("gemini-3-pro", []byte(legal)); err != nil {
		t.Fatal(err)
	}
	const (
		first   = `{"role":"user","parts":[{"text":"q"}]}`
		answer  = `{"role":"model","parts":[{"text":"w"}]}`
		resA    = `{"functionResponse":{"id":"a","name":"f","response":{}}}`
		resB    = `{"functionResponse":{"id":"b","name":"f","response":{}}}`
		callB   = `,{"functionCall":{"id":"b","name":"f","args":{}}}`
		resTurn = `{"role":"user","parts":[` + resA + `,` + resB + `]}`
	)
	_, rest, _ := strings.Cut(legal, `"contents":`)
	from := `"contents":` + rest
	for name, c := range map[string]struct{ old, new, want string }{
		"not UTF-8":                     {`"q"`, "\"\xff\"", "not UTF-8"},
		"a key twice":                   {`"maxOutputTokens":10`, `"maxOutputTokens":10,"maxOutputTokens":10`, "strict JSON"},
		"an unknown field":              {`"maxOutputTokens":10`, `"maxOutputTokens":10,"model":"m"`, "strict JSON"},
		"no bound":                      {`"maxOutputTokens":10`, `"maxOutputTokens":0`, "not bounded"},
		"too hot":                       {`"temperature":1`, `"temperature":3`, "temperature"},
		"no contents":                   {from, `"contents":[]}`, "no contents"},
		"an empty level":                {`"text":"s"`, `"text":""`, "systemInstruction"},
		"no level":                      {`[{"text":"s"}]`, `[]`, "systemInstruction"},
		"a function's name":             {`"name":"f","description"`, `"name":"7f","description"`, "malformed name"},
		"no description":                {`"description":"d"`, `"description":""`, "no description"},
		"no functions":                  {`[{"name":"f","description":"d","parametersJsonSchema":{"type":"object","properties":{"p":{}}}}]`, `[]`, "no functionDeclarations"},
		"a schema that is no object":    {`{"type":"object","properties":{"p":{}}}`, `{"type":"string"}`, "not of type object"},
		"a keyword":                     {`{"p":{}}`, `{"p":{"items":{"additionalProperties":false}}}`, "additionalProperties"},
		"a mode":                        {`"AUTO"`, `"SOMETIMES"`, "the mode"},
		"a mode without tools":          {`"tools":[{"functionDeclarations":[{"name":"f","description":"d","parametersJsonSchema":{"type":"object","properties":{"p":{}}}}]}],`, ``, "toolConfig without tools"},
		"the model first":               {first + `,`, ``, "a model turn comes after"},
		"the model twice":               {first + `,`, first + `,` + answer + `,`, "a model turn comes after"},
		"the person twice":              {first, first + `,` + first, "two turns of the user"},
		"the model last":                {resTurn, resTurn + `,` + answer, "ending with a model turn"},
		"no parts":                      {`[{"text":"q"}]`, `[]`, "at least one parts field"},
		"an empty text":                 {`"text":"q"`, `"text":""`, "required oneof field"},
		"an empty part":                 {`{"text":"q"}`, `{}`, "0 kinds of data"},
		"two kinds in a part":           {`{"text":"w"}`, `{"text":"w","functionCall":{"name":"f","args":{}}}`, "2 kinds of data"},
		"a role":                        {first, `{"role":"system","parts":[{"text":"q"}]}`, `the role "system"`},
		"a call of the person":          {`{"text":"q"}`, `{"functionCall":{"name":"f","args":{}}}`, `the role "user" with 1 calls`},
		"a response of the model":       {`{"text":"w"}`, resA, `the role "model" with 2 calls and 1 responses`},
		"args as text":                  {`"id":"a","name":"f","args":{}`, `"id":"a","name":"f","args":"{}"`, "malformed"},
		"a call's name":                 {`"id":"a","name":"f","args"`, `"id":"a","name":"","args"`, "malformed"},
		"an id twice":                   {`"id":"b","name":"f","args"`, `"id":"a","name":"f","args"`, "repeats"},
		"a response that is no object":  {`"response":{}`, `"response":"x"`, "no object"},
		"a response missing":            {`,` + resB, ``, "1, is not equal to"},
		"a response too many":           {callB, ``, "2, is not equal to"},
		"no responses":                  {`,` + resTurn, ``, "have no response"},
		"text in place of responses":    {resTurn, first, "have no response directly after them"},
		"text beside responses":         {resB, resB + `,{"text":"z"}`, "beside other parts"},
		"responses in another order":    {resA + `,` + resB, resB + `,` + resA, `expected "f" "a"`},
		"a response of another name":    {resA, `{"functionResponse":{"id":"a","name":"g","response":{}}}`, `expected "f" "a"`},
		"responses of nothing":          {resTurn, resTurn + `,` + answer + `,` + resTurn, "immediately after a function call turn"},
		"a signature of the person":     {`{"text":"q"}`, `{"text":"q","thoughtSignature":"x"}`, "not the model's"},
		"no signature in the open loop": {`,"thoughtSignature":"x"`, ``, "missing a thought_signature"},
	} {
		t.Run(name, func(t *testing.T) {
			if strings.Count(legal, c.old) < 1 {
				t.Fatalf("%s does not stand in the request", c.old)
			}
			err := strict.Gemini("gemini-3-pro", []byte(strings.Replace(legal, c.old, c.new, 1)))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
	unsigned := strings.Replace(legal, `,"thoughtSignature":"x"`, ``, 1)
	if err := strict.Gemini("gemini-2.5-pro", []byte(unsigned)); err != nil {
		t.Errorf("an older model checks no signatures: %v", err)
	}
	closed := strings.Replace(unsigned, resTurn, resTurn+`,`+first, 1)
	if err := strict.Gemini("gemini-3-pro", []byte(closed)); err != nil {
		t.Errorf("a loop that the person has closed needs no signatures: %v", err)
	}
}
