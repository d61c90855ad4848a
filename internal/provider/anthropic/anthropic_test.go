package anthropic_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/provider/anthropic"
	"github.com/regie-run/regie/internal/provider/providertest/strict"
)

func text(s string) provider.Part { return provider.Part{Type: regie.PartText, Text: s} }

func call(id string) provider.Part {
	return provider.Part{Type: regie.PartCall, Call: &provider.Call{ID: id, Name: "files__read_file", Arguments: `{"path": "a"}`}}
}

func thinking(text, opaque string) provider.Part {
	return provider.Part{Type: regie.PartThinking, Text: text, Provider: "anthropic", Opaque: json.RawMessage(opaque)}
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
	Model: "claude", Level1: "You are.", Level2: "They are.", MaxOutput: 4096, ParallelCalls: true,
	Tools: []provider.Tool{{Name: "files__read_file", Description: "Read.", Parameters: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}}}`)}},
}

func body(t *testing.T, head provider.Head, options anthropic.Options, turns ...provider.Turn) string {
	t.Helper()
	r, err := anthropic.NewRequest(head, options)
	if err != nil {
		t.Fatal(err)
	}
	r.Append(turns...)
	first := string(r.Body())
	if second := string(r.Body()); first != second {
		t.Errorf("the same turns give other bytes:\n%s\n%s", first, second)
	}
	if err := strict.Anthropic([]byte(first)); err != nil {
		t.Errorf("%v\n%s", err, first)
	}
	return first
}

// TestRendering is the thread as it goes over the wire: merged sides, results first, thinking first
// and unchanged, marks.
func TestRendering(t *testing.T) {
	got := body(t, head, anthropic.Options{Thinks: true, Thinking: "adaptive"},
		user("Look."), user("Now."), assistant(thinking("hm", `{"signature":"c2ln"}`), thinking("", `{"data":"eA=="}`), text("I look."), call("a"), call("functions.b:1")),
		results("a", "functions.b:1"), user("Hurry."), assistant(call("b")), results("b"))
	const mark = `,"cache_control":{"type":"ephemeral"}`
	want := `{"model":"claude","stream":true,"max_tokens":4096,"thinking":{"type":"adaptive"},` +
		`"tools":[{"name":"files__read_file","description":"Read.","input_schema":{"type":"object","properties":{"path":{"type":"string"}}}}],` +
		`"system":[{"type":"text","text":"You are."` + mark + `},{"type":"text","text":"They are."` + mark + `}],"messages":[` +
		`{"role":"user","content":[{"type":"text","text":"Look."},{"type":"text","text":"Now."}]},` +
		`{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"c2ln"},{"type":"redacted_thinking","data":"eA=="},{"type":"text","text":"I look."},` +
		`{"type":"tool_use","id":"a","name":"files__read_file","input":{"path": "a"}},{"type":"tool_use","id":"` + anthropic.WireID("functions.b:1") + `","name":"files__read_file","input":{"path": "a"}}]},` +
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"ok"},{"type":"tool_result","tool_use_id":"` + anthropic.WireID("functions.b:1") + `","content":"ok"},{"type":"text","text":"Hurry."}]},` +
		`{"role":"assistant","content":[{"type":"tool_use","id":"b","name":"files__read_file","input":{"path": "a"}}]},` +
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"b","content":"ok","is_error":true` + mark + `}]}]}`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestTurnsBecomeLegal has the turns that a store can hold and the API would refuse as they are.
func TestTurnsBecomeLegal(t *testing.T) {
	foreign := provider.Part{Type: regie.PartThinking, Text: "hm", Provider: "openai", Opaque: json.RawMessage(`{"signature":"x"}`)}
	own := thinking("hm", `{"signature":"c2ln"}`)
	think := anthropic.Options{Thinks: true, Thinking: "adaptive"}
	for name, c := range map[string]struct {
		options  anthropic.Options
		turns    []provider.Turn
		has, not string
	}{
		"foreign thinking goes":               {think, []provider.Turn{user("a"), assistant(foreign, text("b")), user("c")}, `"content":[{"type":"text","text":"b"}`, `"x"`},
		"thinking that is off is left out":    {anthropic.Options{}, []provider.Turn{user("a"), assistant(own, text("b")), user("c")}, "", "thinking"},
		"thinking behind text":                {think, []provider.Turn{user("a"), assistant(text("b"), own), user("c")}, "", "signature"},
		"thinking alone":                      {think, []provider.Turn{user("a"), assistant(own), user("c")}, `{"type":"text","text":"(nothing)"}`, ""},
		"thinking that lost its signature":    {think, []provider.Turn{user("a"), assistant(thinking("hm", `{}`), text("b")), user("c")}, "", `"hm"`},
		"nothing":                             {think, []provider.Turn{user(" "), assistant(), user("")}, "(nothing)", ""},
		"blank text beside a call":            {think, []provider.Turn{user("a"), assistant(own, text(" \n"), call("a")), results("a")}, `"c2ln"},{"type":"tool_use"`, ""},
		"the model speaks first":              {think, []provider.Turn{assistant(text("a")), user("b")}, `[{"role":"user","content":[{"type":"text","text":"(go on)"}]}`, ""},
		"the model speaks twice":              {think, []provider.Turn{user("a"), assistant(text("b")), assistant(own, call("a")), results("a")}, "(go on)", ""},
		"arguments that are none":             {think, []provider.Turn{user("a"), assistant(own, provider.Part{Type: regie.PartCall, Call: &provider.Call{ID: "a", Name: "f", Arguments: `{"a":1,"a":2}`}}), results("a")}, `"input":{}`, ""},
		"a half character":                    {think, []provider.Turn{user("a\xff")}, "a\uFFFD", ""},
		"an id as long as the API's patience": {think, []provider.Turn{user("a"), assistant(own, call(strings.Repeat("x", 200))), results(strings.Repeat("x", 200))}, anthropic.WireID(strings.Repeat("x", 200)), "xxxx"},
	} {
		t.Run(name, func(t *testing.T) {
			got := body(t, head, c.options, c.turns...)
			if !strings.Contains(got, c.has) || c.not != "" && strings.Contains(got, c.not) {
				t.Errorf("want %s and not %s in\n%s", c.has, c.not, got)
			}
		})
	}
}

// TestTail is how a request ends: behind the last mark, in the last message where that is the
// user's side's, and gone the next time.
func TestTail(t *testing.T) {
	const mark = `,"cache_control":{"type":"ephemeral"}`
	serial := head
	serial.ParallelCalls = false
	for name, c := range map[string]struct {
		head  provider.Head
		turns []provider.Turn
		tail  provider.Tail
		ends  string
	}{
		"withheld":             {head, []provider.Turn{user("a"), assistant(call("a")), results("a")}, provider.Tail{Withheld: true}, `"content":"ok"` + mark + `}]}],"tool_choice":{"type":"none"}}`},
		"behind results":       {head, []provider.Turn{user("a"), assistant(call("a")), results("a")}, provider.Tail{Guidance: "now"}, `"content":"ok"` + mark + `},{"type":"text","text":"now"}]}]}`},
		"behind the model":     {head, []provider.Turn{user("a"), assistant(text("b"))}, provider.Tail{Guidance: "now"}, `"text":"b"` + mark + `}]},{"role":"user","content":[{"type":"text","text":"now"}]}]}`},
		"alone":                {head, nil, provider.Tail{Guidance: "now"}, `"messages":[{"role":"user","content":[{"type":"text","text":"now"}]}]}`},
		"one call at a time":   {serial, []provider.Turn{user("a")}, provider.Tail{}, `"tool_choice":{"type":"auto","disable_parallel_tool_use":true}}`},
		"and none at all":      {serial, []provider.Turn{user("a")}, provider.Tail{Withheld: true}, mark + `}]}],"tool_choice":{"type":"none"}}`},
		"nothing to withhold":  {provider.Head{Model: "m", MaxOutput: 9}, []provider.Turn{user("a")}, provider.Tail{Withheld: true}, mark + `}]}]}`},
		"blank guidance is no": {head, []provider.Turn{user("a")}, provider.Tail{Guidance: " "}, `"text":"a"` + mark + `}]}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := anthropic.NewRequest(c.head, anthropic.Options{})
			if err != nil {
				t.Fatal(err)
			}
			r.Append(c.turns...)
			before := string(r.Body())
			r.EndWith(c.tail)
			got := r.Body()
			if !strings.HasSuffix(string(got), c.ends) {
				t.Errorf("want the end %s of\n%s", c.ends, got)
			}
			if err := strict.Anthropic(got); err != nil {
				t.Errorf("%v\n%s", err, got)
			}
			if r.EndWith(provider.Tail{}); string(r.Body()) != before {
				t.Errorf("%s\nis not\n%s", r.Body(), before)
			}
		})
	}
}

// TestFourthMark: after an exchange of many calls the request before is marked too, within what the
// API looks back (decision 50).
func TestFourthMark(t *testing.T) {
	turns := []provider.Turn{user("go")}
	for _, n := range []int{3, 10, 1} {
		parts, ids := []provider.Part{}, []string{}
		for range n {
			id := fmt.Sprintf("c%d", len(turns)*100+len(ids))
			parts, ids = append(parts, call(id)), append(ids, id)
		}
		before := strings.LastIndex(body(t, head, anthropic.Options{}, turns...), `,"cache_control"`)
		turns = append(turns, assistant(parts...), results(ids...))
		got := body(t, head, anthropic.Options{}, turns...)
		want := 3
		if n == 10 {
			want = 4
			if !strings.HasPrefix(got[before:], `,"cache_control"`) {
				t.Error("the fourth mark is not where the request before ended")
			}
		}
		if marks := strings.Count(got, "cache_control"); marks != want {
			t.Errorf("after %d calls there are %d marks, want %d", n, marks, want)
		}
	}
}

// TestGrowing: a request that grew turn by turn has the bytes of one that was made at once.
func TestGrowing(t *testing.T) {
	turns := []provider.Turn{user("a"), assistant(thinking("hm", `{"signature":"c2ln"}`), call("a")), results("a"), user("b"), assistant(text("c")), user("d"), user("e")}
	grown, err := anthropic.NewRequest(head, anthropic.Options{Thinks: true, Thinking: "adaptive"})
	if err != nil {
		t.Fatal(err)
	}
	for i, turn := range turns {
		grown.Append(turn)
		once, _ := anthropic.NewRequest(head, anthropic.Options{Thinks: true, Thinking: "adaptive"})
		once.Append(turns[:i+1]...)
		if diff := cmp.Diff(string(once.Body()), string(grown.Body())); diff != "" {
			t.Fatalf("after %d turns:\n%s", i+1, diff)
		}
	}
}

func TestHeadsThatCannotBeSent(t *testing.T) {
	for name, c := range map[string]struct {
		head    provider.Head
		options anthropic.Options
	}{
		"no model": {provider.Head{MaxOutput: 1}, anthropic.Options{}},
		"no bound": {provider.Head{Model: "m"}, anthropic.Options{}},
	} {
		if _, err := anthropic.NewRequest(c.head, c.options); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	// What the API refuses at the top of a schema is taken away.
	strange := head
	strange.Tools = []provider.Tool{{Name: "a", Parameters: json.RawMessage(`{"anyOf":[{"required":["a"]}],"properties":{"a":{"anyOf":[{"type":"string"}]}}}`)}, {Name: "b", Parameters: json.RawMessage(`true`)}}
	strange.ParallelCalls = false
	if got := body(t, strange, anthropic.Options{}, user("a")); !strings.Contains(got, `"input_schema":{"properties":{"a":{"anyOf":[{"type":"string"}]}},"type":"object"}`) {
		t.Error(got)
	}
}

// TestRefused changes a legal request in one place each, and wants that seen.
func TestRefused(t *testing.T) {
	const legal = `{"model":"m","max_tokens":4096,"temperature":1,"thinking":{"type":"adaptive"},"system":[{"type":"text","text":"s"}],` +
		`"tools":[{"name":"f","description":"d","input_schema":{"type":"object","properties":{"p":{}}}}],"tool_choice":{"type":"auto"},"messages":[` +
		`{"role":"user","content":[{"type":"text","text":"q"}]},` +
		`{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s"},{"type":"text","text":"w"},{"type":"tool_use","id":"a","name":"f","input":{}},{"type":"tool_use","id":"b","name":"f","input":{}}]},` +
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"x"},{"type":"tool_result","tool_use_id":"b"},{"type":"text","text":"z"}]}]}`
	if err := strict.Anthropic([]byte(legal)); err != nil {
		t.Fatal(err)
	}
	const (
		first  = `{"role":"user","content":[{"type":"text","text":"q"}]},`
		answer = `{"role":"assistant","content":[{"type":"text","text":"w"}]}`
		other  = `,{"type":"text","text":"z"}`
		resA   = `{"type":"tool_result","tool_use_id":"a","content":"x"}`
		resB   = `{"type":"tool_result","tool_use_id":"b"}`
		useB   = `,{"type":"tool_use","id":"b","name":"f","input":{}}`
		think  = `{"type":"thinking","thinking":"t","signature":"s"}`
		mark   = `,"cache_control":{"type":"ephemeral"}`
	)
	_, rest, _ := strings.Cut(legal, `"messages":`)
	from := `"messages":` + rest
	for name, c := range map[string]struct{ old, new, want string }{
		"not UTF-8":                    {`"q"`, "\"\xff\"", "not UTF-8"},
		"a key twice":                  {`"max_tokens":4096`, `"max_tokens":4096,"max_tokens":4096`, "strict JSON"},
		"an unknown field":             {`"max_tokens":4096`, `"max_tokens":4096,"parallel_tool_calls":true`, "strict JSON"},
		"no model":                     {`"m"`, `""`, "no model"},
		"no bound":                     {`4096`, `0`, "not bounded"},
		"too hot":                      {`"temperature":1`, `"temperature":1.1`, "temperature"},
		"a tool that does not exist":   {`{"type":"auto"}`, `{"type":"tool","name":"g"}`, "tool_choice"},
		"an empty level":               {`"text":"s"`, `"text":" "`, "system block 0"},
		"a tool's name":                {`"name":"f","description"`, `"name":"a.b","description"`, "malformed"},
		"a schema that is no object":   {`{"type":"object","properties":{"p":{}}}`, `{"type":"string"}`, "not of type object"},
		"alternatives at the top":      {`"properties":{"p":{}}`, `"anyOf":[]`, "does not support anyOf"},
		"a property's name":            {`{"p":{}}`, `{"p q":{}}`, `the property "p q"`},
		"no messages":                  {from, `"messages":[]}`, "no messages"},
		"no tools":                     {`"tools":[{"name":"f","description":"d","input_schema":{"type":"object","properties":{"p":{}}}}],"tool_choice":{"type":"auto"},`, ``, "no tools are declared"},
		"a choice without tools":       {`"tools":[{"name":"f","description":"d","input_schema":{"type":"object","properties":{"p":{}}}}],`, ``, "tool_choice without tools"},
		"the model first":              {first, ``, "begin with user"},
		"the person twice":             {first, first + first, "alternate"},
		"the model last":               {`"text":"z"}]}`, `"text":"z"}]},` + answer, "the last message is of role assistant"},
		"a system message":             {`{"role":"user","content":[{"type":"text","text":"q"}]}`, `{"role":"system","content":[{"type":"text","text":"q"}]}`, `the role "system"`},
		"no content":                   {`[{"type":"text","text":"q"}]`, `[]`, "no content"},
		"a blank text of the person":   {`"text":"q"`, `"text":" \n"`, "non-whitespace"},
		"an empty text of the model":   {`"text":"w"`, `"text":""`, "non-whitespace"},
		"no result":                    {resA + `,` + resB + other, `{"type":"text","text":"z"}`, "2 tool_use ids were found without"},
		"one result missing":           {`,` + resB, ``, "1 tool_use ids were found without"},
		"a result twice":               {resB, resA, "has its result already"},
		"a result of nothing":          {`"tool_use_id":"b"`, `"tool_use_id":"c"`, "did not call"},
		"a result too many":            {useB, ``, "did not call"},
		"a result behind text":         {resB + other, `{"type":"text","text":"z"},` + resB, "results come first"},
		"a result of the model":        {`{"type":"text","text":"w"}`, resA, `a "tool_result" block of the assistant`},
		"a call of the person":         {`{"type":"text","text":"q"}`, `{"type":"tool_use","id":"c","name":"f","input":{}}`, `a "tool_use" block of the user`},
		"an id with other characters":  {`"id":"a"`, `"id":"functions.a:0"`, "should match"},
		"no id":                        {`"id":"a",`, ``, "should match"},
		"an id twice":                  {`"id":"b"`, `"id":"a"`, "repeats"},
		"a call's name":                {`"id":"a","name":"f"`, `"id":"a","name":"a.b"`, "well-formed name"},
		"input as text":                {`"id":"a","name":"f","input":{}`, `"id":"a","name":"f","input":"{}"`, "no object"},
		"thinking behind text":         {think + `,{"type":"text","text":"w"}`, `{"type":"text","text":"w"},` + think, "the first block must be thinking"},
		"thinking last":                {useB, `,` + think, "the last block is thinking"},
		"thinking without a signature": {`,"signature":"s"`, ``, "without its signature"},
		"redacted without data":        {think, `{"type":"redacted_thinking"}`, "without its data"},
		"thinking with a mark":         {`"signature":"s"`, `"signature":"s"` + mark, "cache_control on thinking"},
		"five marks": {
			`"messages":[`, `"messages":[{"role":"user","content":[` + strings.TrimSuffix(strings.Repeat(`{"type":"text","text":"q"`+mark+`},`, 5), ",") + `]},` + answer + `,`, "5 blocks with cache_control",
		},
		"a strange mark": {`"text":"q"`, `"text":"q","cache_control":{"type":"forever"}`, "cache_control of type"},
	} {
		t.Run(name, func(t *testing.T) {
			if strings.Count(legal, c.old) < 1 {
				t.Fatalf("%s does not stand in the request", c.old)
			}
			err := strict.Anthropic([]byte(strings.Replace(legal, c.old, c.new, 1)))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}
