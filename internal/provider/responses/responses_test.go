package responses_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/provider/providertest/strict"
	"github.com/regie-run/regie/internal/provider/responses"
	"github.com/regie-run/regie/internal/provider/wire/wiretest"
)

func text(s string) provider.Part { return provider.Part{Type: regie.PartText, Text: s} }

func call(id string) provider.Part {
	return provider.Part{Type: regie.PartCall, Call: &provider.Call{ID: id, Name: "files__read_file", Arguments: `{"path": "a"}`}}
}

// thought is a reasoning item of the model gpt-5.5.
func thought(id, summary string) provider.Part {
	opaque := `{"id":"` + id + `","encrypted_content":"gAAA` + id + `","model":"gpt-5.5"}`
	if summary != "" {
		opaque = strings.Replace(opaque, `,"model"`, `,"summary":["`+summary+`"],"model"`, 1)
	}
	return provider.Part{Type: regie.PartThinking, Text: summary, Provider: "responses", Opaque: json.RawMessage(opaque)}
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

var (
	reasons = responses.Options{Reasons: true}
	head    = provider.Head{
		Model: "gpt-5.5", Level1: "You are.", Level2: "They are.", MaxOutput: 4096, ParallelCalls: true,
		Tools: []provider.Tool{{Name: "files__read_file", Description: "Read.", Parameters: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}}}`)}},
	}
)

func body(t *testing.T, head provider.Head, options responses.Options, turns ...provider.Turn) string {
	t.Helper()
	r, err := responses.NewRequest(head, options)
	if err != nil {
		t.Fatal(err)
	}
	r.Append(turns...)
	first := string(r.Body())
	if second := string(r.Body()); first != second {
		t.Errorf("the same turns give other bytes:\n%s\n%s", first, second)
	}
	if err := strict.Responses([]byte(first)); err != nil {
		t.Errorf("%v\n%s", err, first)
	}
	return first
}

// TestGolden is threads as they go over the wire.
func TestGolden(t *testing.T) {
	warm := 0.3
	plain := head
	plain.Model, plain.Temperature, plain.ParallelCalls = "gpt-4.1", &warm, false
	phased := text("I look.")
	phased.Provider, phased.Opaque = "responses", json.RawMessage(`{"phase":"commentary"}`)
	for name, c := range map[string]struct {
		head    provider.Head
		options responses.Options
		turns   []provider.Turn
		tail    provider.Tail
	}{
		"request_pairs": {head, reasons, []provider.Turn{
			user("Look \"here\"\u2028."), user("Now."), assistant(thought("rs_1", "hm"), phased, call("a"), thought("rs_2", ""), call("b")), results("a", "b"),
			assistant(thought("rs_3", ""), text("Done.")), user("And?"),
		}, provider.Tail{}},
		"request_plain": {plain, responses.Options{}, []provider.Turn{user("Look."), assistant(thought("rs_1", "hm"), call("a")), results("a")}, provider.Tail{Withheld: true, Guidance: "Answer now."}},
		"request_bare":  {provider.Head{Model: "o4-mini", MaxOutput: 4}, reasons, []provider.Turn{user("Hi.")}, provider.Tail{Withheld: true}},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := responses.NewRequest(c.head, c.options)
			if err != nil {
				t.Fatal(err)
			}
			r.Append(c.turns...)
			r.EndWith(c.tail)
			got := r.Body()
			if err := strict.Responses(got); err != nil {
				t.Error(err)
			}
			wiretest.Golden(t, name, got)
		})
	}
}

// TestTurnsBecomeLegal has the turns that a store can hold and the API would refuse as they are.
func TestTurnsBecomeLegal(t *testing.T) {
	foreign := provider.Part{Type: regie.PartThinking, Text: "hm", Provider: "anthropic", Opaque: json.RawMessage(`{"id":"rs_x","encrypted_content":"x","model":"gpt-5.5"}`)}
	own := thought("rs_1", "hm")
	other, broken, phase := own, own, text("b")
	other.Opaque = json.RawMessage(strings.Replace(string(own.Opaque), "gpt-5.5", "gpt-5.4", 1))
	broken.Opaque = json.RawMessage(`{"id":"rs_1","encrypted_content":"","model":"gpt-5.5"}`)
	phase.Provider, phase.Opaque = "responses", json.RawMessage(`{"phase":"shouting"}`)
	long := strings.Repeat("x", 65)
	for name, c := range map[string]struct {
		options  responses.Options
		turns    []provider.Turn
		has, not string
	}{
		"own reasoning":                {reasons, []provider.Turn{user("a"), assistant(own, call("a")), results("a")}, `"id":"rs_1","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"gAAArs_1"},{"type":"function_call"`, ""},
		"another vendor's":             {reasons, []provider.Turn{user("a"), assistant(foreign, call("a")), results("a")}, "function_call", `"reasoning"`},
		"another model's":              {reasons, []provider.Turn{user("a"), assistant(other, call("a")), results("a")}, "function_call", "rs_1"},
		"for a model that has none":    {responses.Options{}, []provider.Turn{user("a"), assistant(own, call("a")), results("a")}, "function_call", "rs_1"},
		"nothing encrypted":            {reasons, []provider.Turn{user("a"), assistant(broken, call("a")), results("a")}, "function_call", "rs_1"},
		"reasoning that led nowhere":   {reasons, []provider.Turn{user("a"), assistant(text("b"), own), user("c")}, `"b"`, "rs_1"},
		"reasoning alone":              {reasons, []provider.Turn{user("a"), assistant(own), user("c")}, `"a"},{"type":"message","role":"user","content":"c"`, "rs_1"},
		"reasoning, then blanks":       {reasons, []provider.Turn{user("a"), assistant(own, text(" \n"), call("a")), results("a")}, `"gAAArs_1"},{"type":"function_call"`, " \\n"},
		"the same reasoning again":     {reasons, []provider.Turn{user("a"), assistant(own, text("b")), user("c"), assistant(own, text("d")), user("e")}, `"d"`, `"d"},{"type":"reasoning"`},
		"and twice in one reply":       {reasons, []provider.Turn{user("a"), assistant(own, own, text("b")), user("c")}, `"gAAArs_1"},{"type":"message"`, `"gAAArs_1"},{"type":"reasoning"`},
		"an empty result":              {reasons, []provider.Turn{user("a"), assistant(call("a")), {Role: provider.RoleTool, Results: []provider.Result{{CallID: "a"}}}}, `"output":""`, ""},
		"a phase that is none":         {reasons, []provider.Turn{user("a"), assistant(phase), user("c")}, `"content":"b"}`, "shouting"},
		"the model speaks first":       {reasons, []provider.Turn{assistant(text("a")), user("b")}, `"role":"assistant"`, ""},
		"the model speaks twice":       {reasons, []provider.Turn{user("a"), assistant(text("b")), assistant(own, call("a")), results("a")}, "rs_1", ""},
		"text behind calls":            {reasons, []provider.Turn{user("a"), assistant(own, call("a"), text("b")), results("a")}, `"content":"b"},{"type":"function_call_output"`, ""},
		"arguments that are none":      {reasons, []provider.Turn{user("a"), assistant(provider.Part{Type: regie.PartCall, Call: &provider.Call{ID: "a", Name: "f", Arguments: `{"a":1,"a":2}`}}), results("a")}, `"arguments":"{}"`, ""},
		"a half character":             {reasons, []provider.Turn{user("a\xff")}, "a\uFFFD", ""},
		"an id as long as it may be":   {reasons, []provider.Turn{user("a"), assistant(call(long[:64])), results(long[:64])}, `"` + long[:64] + `"`, ""},
		"an id that is longer":         {reasons, []provider.Turn{user("a"), assistant(call(long)), results(long)}, `"call_id":"call_`, "xxxx"},
		"nothing is said and declared": {reasons, []provider.Turn{user("a"), assistant(), user("c")}, `"c"`, `"assistant"`},
	} {
		t.Run(name, func(t *testing.T) {
			got := body(t, head, c.options, c.turns...)
			if !strings.Contains(got, c.has) || c.not != "" && strings.Contains(got, c.not) {
				t.Errorf("want %s and not %s in\n%s", c.has, c.not, got)
			}
		})
	}
}

// TestSchemas has declarations that the API refuses as they are.
func TestSchemas(t *testing.T) {
	for schema, want := range map[string]string{
		``:        `"parameters":{"type":"object","properties":{}}`,
		`null`:    `"parameters":{"type":"object","properties":{}}`,
		`{"x":1}`: `"parameters":{"type":"object","x":1}`,
		`{"type":"object","anyOf":[],"not":{},"enum":[]}`:   `"parameters":{"type":"object"}`,
		`{"type":"object","properties":{"a":{"anyOf":[]}}}`: `"parameters":{"type":"object","properties":{"a":{"anyOf":[]}}}`,
	} {
		with := head
		with.Tools = []provider.Tool{{Name: "f", Parameters: json.RawMessage(schema)}}
		if got := body(t, with, reasons, user("a")); !strings.Contains(got, want+`,"strict":false`) {
			t.Errorf("%s: want %s in\n%s", schema, want, got)
		}
	}
}

// TestPrefix: what was sent once is how everything later begins, whatever the tail was, so that a
// cache of the prefix is found.
func TestPrefix(t *testing.T) {
	r, err := responses.NewRequest(head, reasons)
	if err != nil {
		t.Fatal(err)
	}
	before := []byte(`{"model":"gpt-5.5"`)
	tails := []provider.Tail{{}, {Guidance: "In short."}, {Withheld: true}, {}}
	for i, turns := range [][]provider.Turn{
		{user("Look.")}, {assistant(thought("rs_1", "hm"), call("a")), results("a")}, {assistant(thought("rs_2", ""), text("Done.")), user("And?")}, {assistant(text("No.")), user("Go on.")},
	} {
		r.Append(turns...)
		r.EndWith(provider.Tail{})
		plain := r.Body()
		thread := plain[:bytes.LastIndex(plain, []byte(`],"prompt_cache_key"`))]
		r.EndWith(tails[i])
		if got := r.Body(); !bytes.HasPrefix(got, before) || !bytes.HasPrefix(got, thread) {
			t.Errorf("request %d does not begin as the one before:\n%s\n%s", i, before, got)
		}
		before = thread
	}
}

// TestCacheKey: one for all requests of a session, whatever changes behind the prefix that they
// share, and another for another session.
func TestCacheKey(t *testing.T) {
	key := func(change func(*provider.Head), turns ...provider.Turn) string {
		with := head
		change(&with)
		var said struct {
			Key string `json:"prompt_cache_key"`
		}
		if err := json.Unmarshal([]byte(body(t, with, reasons, turns...)), &said); err != nil || said.Key == "" {
			t.Fatal(err)
		}
		return said.Key
	}
	same := func(*provider.Head) {}
	first := key(same, user("a"))
	for name, got := range map[string]string{
		"later":              key(same, user("a"), assistant(text("b")), user("c")),
		"less output":        key(func(h *provider.Head) { h.MaxOutput = 1000 }, user("a")),
		"another level 2":    key(func(h *provider.Head) { h.Level2 = "New." }, user("a")),
		"one call at a time": key(func(h *provider.Head) { h.ParallelCalls = false }, user("a")),
	} {
		if got != first {
			t.Errorf("%s: another key", name)
		}
	}
	for name, got := range map[string]string{
		"another session": key(same, user("b")), "another model": key(func(h *provider.Head) { h.Model = "gpt-5.4" }, user("a")),
		"another agent": key(func(h *provider.Head) { h.Level1 = "You may be." }, user("a")),
	} {
		if got == first {
			t.Errorf("%s: the same key", name)
		}
	}
}

// TestValidateRequest breaks a legal request in each way that the API refuses.
func TestValidateRequest(t *testing.T) {
	legal := body(t, head, reasons, user("go"), assistant(thought("rs_1", "hm"), call("a"), thought("rs_2", ""), call("b")), results("a", "b"), assistant(text("Done.")), user("more"))
	const reasoning2 = `{"type":"reasoning","id":"rs_2","summary":[],"encrypted_content":"gAAArs_2"},`
	const callB = `{"type":"function_call","call_id":"b","name":"files__read_file","arguments":"{\"path\": \"a\"}"},`
	const outputA, outputB = `{"type":"function_call_output","call_id":"a","output":"ok"},`, `{"type":"function_call_output","call_id":"b","output":"ok"},`
	for _, c := range []struct{ old, wrong string }{
		{`"model":"gpt-5.5"`, `"model":""`},
		{`"store":false`, `"store":true`},
		{`"store":false,`, ``},
		{`"stream":true`, `"stream":false`},
		{`"stream":true`, `"stream":true,"stream":true`},
		{`"stream":true`, `"stream":true,"previous_response_id":"resp_1"`},
		{`"max_output_tokens":4096`, `"max_output_tokens":15`},
		{`"max_output_tokens":4096`, `"max_output_tokens":4096,"temperature":1`},
		{`"include":["reasoning.encrypted_content"],`, ``},
		{`reasoning.encrypted_content`, `reasoning`},
		{`"name":"files__read_file","description"`, `"name":"files.read","description"`},
		{`"strict":false`, `"strict":true`},
		{`,"strict":false`, ``},
		{`"parameters":{"type":"object"`, `"parameters":{"type":"string"`},
		{`"parameters":{"type":"object"`, `"parameters":{"type":"object","oneOf":[]`},
		{`"instructions":"You are."`, `"instructions":" "`},
		{`"role":"developer"`, `"role":"tool"`},
		{`"content":"go"`, `"content":""`},
		{`"content":"go"`, `"content":"go","phase":"commentary"`},
		{`"content":"go"`, `"content":"go","id":"msg_1"`},
		{`"content":"Done."`, `"content":"Done.","phase":"loud"`},
		{`"role":"user","content":"more"`, `"role":"assistant","content":"more"`},
		{`"role":"user","content":"more"`, `"role":"developer","content":"more"`},
		{callB, ``},
		{callB, `{"type":"message","role":"user","content":"x"},`},
		{callB, callB + callB},
		{callB, callB + `{"type":"message","role":"user","content":"x"},`},
		{outputB, ``},
		{outputA, ``},
		{outputA + outputB, outputB + outputA},
		{outputA, outputA + outputA},
		{outputB, reasoning2 + outputB},
		{outputB, `{"type":"message","role":"assistant","content":"x"},` + outputB},
		{`"id":"rs_2"`, `"id":"rs_1"`},
		{`"id":"rs_2"`, `"id":""`},
		{`"encrypted_content":"gAAArs_2"`, `"encrypted_content":""`},
		{`"summary":[],`, ``},
		{`"summary_text"`, `"text"`},
		{`"call_id":"b","name"`, `"call_id":"a","name"`},
		{`"call_id":"b","name":"files__read_file"`, `"call_id":"b","name":"f g"`},
		{`"arguments":"{\"path\": \"a\"}"},` + reasoning2, `"arguments":"[]"},` + reasoning2},
		{`"output":"ok"},` + outputB, `"output":null},` + outputB},
		{`"output":"ok"},` + outputB, `"output":"ok","content":"ok"},` + outputB},
		{`{"type":"function_call_output","call_id":"a"`, `{"type":"item_reference","call_id":"a"`},
		{`"prompt_cache_key":"`, `"prompt_cache_key":"` + strings.Repeat("x", 64)},
		{`"prompt_cache_key"`, `"tool_choice":"auto","prompt_cache_key"`},
		{`"content":"more"`, `"content":"` + strings.Repeat("x", 10<<20+1) + `"`},
	} {
		wrong := strings.Replace(legal, c.old, c.wrong, 1)
		if wrong == legal {
			t.Errorf("%s stands nowhere in\n%s", c.old, legal)
		} else if err := strict.Responses([]byte(wrong)); err == nil {
			t.Errorf("%.200s in place of %s was taken", c.wrong, c.old)
		}
	}
	for more, takes := range map[string]bool{
		`"reasoning":{"effort":"low","summary":"auto"},"service_tier":"flex"`: true, `"reasoning":{"effort":"loud"}`: false,
		`"reasoning":{"summary":"long"}`: false, `"service_tier":"first"`: false, `"temperature":1,"reasoning":{}`: false,
	} {
		if err := strict.Responses([]byte(strings.Replace(legal, `"store"`, more+`,"store"`, 1))); (err == nil) != takes {
			t.Errorf("%s: %v", more, err)
		}
	}
	for _, wrong := range []string{"", "{}", "[]", legal[:len(legal)-1], "\xff"} {
		if strict.Responses([]byte(wrong)) == nil {
			t.Errorf("%.20q was taken", wrong)
		}
	}
}
