package mcp

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/tool"
)

func TestTrustHints(t *testing.T) {
	no, yes := false, true
	readOnly := &sdk.ToolAnnotations{ReadOnlyHint: true}
	keyed := &sdk.ToolAnnotations{IdempotentHint: true}
	mild := &sdk.ToolAnnotations{DestructiveHint: &no, OpenWorldHint: &no}
	for _, row := range []struct {
		name    string
		trust   bool
		hints   *sdk.ToolAnnotations
		setting Setting
		want    string
	}{
		{"nothing said", false, nil, Setting{}, "action once external"},
		{"not trusted: reads", false, readOnly, Setting{}, "action once external"},
		{"not trusted: keyed", false, keyed, Setting{}, "action once external"},
		{"not trusted: mild", false, mild, Setting{}, "action once external"},
		{"trusted: nothing said", true, nil, Setting{}, "action once external"},
		{"trusted: no hint", true, &sdk.ToolAnnotations{}, Setting{}, "action once external"},
		{"trusted: reads", true, readOnly, Setting{}, "query read internal"},
		{"trusted: reads and keyed", true, &sdk.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true}, Setting{}, "query read internal"},
		{"trusted: keyed", true, keyed, Setting{}, "action keyed external"},
		{"trusted: mild", true, mild, Setting{}, "action once internal"},
		{"trusted: mild and keyed", true, &sdk.ToolAnnotations{IdempotentHint: true, DestructiveHint: &no, OpenWorldHint: &no}, Setting{}, "action keyed internal"},
		{"trusted: destroys", true, &sdk.ToolAnnotations{DestructiveHint: &yes, OpenWorldHint: &no}, Setting{}, "action once external"},
		{"trusted: reaches out", true, &sdk.ToolAnnotations{DestructiveHint: &no}, Setting{}, "action once external"},
		{"the operator: reads", false, nil, Setting{Kind: regie.KindQuery}, "query read internal"},
		{"the operator: class read", false, nil, Setting{Class: regie.ClassRead}, "query read internal"},
		{"the operator: keyed", false, nil, Setting{Class: regie.ClassKeyed}, "action keyed external"},
		{"the operator against the hint", true, readOnly, Setting{Kind: regie.KindAction}, "action once external"},
		{"the operator's class against the hint", true, keyed, Setting{Class: regie.ClassOnce}, "action once external"},
		{"the operator keeps the hint", true, keyed, Setting{Kind: regie.KindAction}, "action keyed external"},
	} {
		c := Config{Name: "box", TrustHints: row.trust, Tools: map[string]Setting{"do": row.setting}}
		offered, left := makeOffers(c, []*sdk.Tool{{Name: "do", InputSchema: map[string]any{"type": "object"}, Annotations: row.hints}})
		if len(left) > 0 {
			t.Fatalf("%s: %q", row.name, left)
		}
		d := offered[0].definition
		if got := fmt.Sprintf("%s %s %s", d.Kind, d.Class, d.Risk); got != row.want || d.ParallelSafe != (d.Kind == regie.KindQuery) {
			t.Errorf("%s: %s, parallel %v", row.name, got, d.ParallelSafe)
		}
	}
}

func TestOperations(t *testing.T) {
	for _, name := range []string{"read_file", "a", "a.b", "list-all", strings.Repeat("a", 120)} {
		if operationName(name) != name {
			t.Errorf("%s becomes %s", name, operationName(name))
		}
	}
	odd := []string{"read file", "read_file ", "read/file", "read:file", "é", "日本", "a\x00b", "a\u200bb", strings.Repeat("a", 121), strings.Repeat("a", 256), "a_0123456789abcdef"}
	odd = append(odd, operationName("read file")) // a name made to look like the mapped one
	legal := regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,140}$`)
	seen := map[string]string{"read_file": "read_file"}
	for _, name := range odd {
		got := operationName(name)
		if other, there := seen[got]; there || !legal.MatchString(got) {
			t.Errorf("%q becomes %q, as does %q", name, got, other)
		}
		seen[got] = name
		if got != operationName(name) {
			t.Errorf("%q has two names", name)
		}
	}
}

func TestOffers(t *testing.T) {
	schema := map[string]any{"type": "object"}
	named := func(name string) *sdk.Tool { return &sdk.Tool{Name: name, InputSchema: schema} }
	listed := []*sdk.Tool{
		named("good"), named("read file"), named("twice"), named("twice"), named(""), named(strings.Repeat("n", 257)), named("denied"),
		{Name: "list", InputSchema: map[string]any{"type": "array"}},
		{Name: "none"},
		{Name: "text", InputSchema: "object"},
		{Name: "remote", InputSchema: map[string]any{"type": "object", "$ref": "http://evil.example/"}},
		{Name: "shown", Description: "Reads.\x1b[31m\u202e\u200b\U000E0041\x00 " + strings.Repeat("é", 5000), Title: "Title", InputSchema: schema},
		{Name: "titled", Title: "Reads\x07 it", InputSchema: schema},
	}
	offered, left := makeOffers(Config{Name: "box", Deny: []string{"denied"}, Timeout: 7 * time.Second}, listed)
	names, tools := []string{}, []tool.Tool{}
	for _, o := range offered {
		names = append(names, o.definition.Name)
		tools = append(tools, &remote{offer: o})
		if o.definition.Timeout != 7*time.Second || o.pin.IsZero() {
			t.Errorf("%+v", o)
		}
	}
	if want := []string{"box.good", "box." + operationName("read file"), "box.shown", "box.titled"}; !slices.Equal(names, want) {
		t.Errorf("offered are %q", names)
	}
	if got := strings.Join(left, "\n"); len(left) != 7 || !strings.Contains(got, "twice: it is listed 2 times") || strings.Contains(got, "denied") {
		t.Errorf("left out are %q", left)
	}
	r := registryOf(t, tools...)
	for _, d := range r.Definitions() {
		if strings.ContainsAny(d.Description, "\x00\x07\x1b\u202e\u200b\U000E0041") || len(d.Description) > maxDescription {
			t.Errorf("%s is described as %q", d.Name, d.Description)
		}
	}
	if d := offered[3].definition; d.Description != "Reads it" {
		t.Errorf("a title alone becomes %q", d.Description)
	}
	many := make([]*sdk.Tool, maxTools+2)
	for i := range many {
		many[i] = named(fmt.Sprintf("t%04d", i))
	}
	if offered, left := makeOffers(Config{Name: "box"}, many); len(offered) != maxTools || len(left) != 2 || !strings.HasPrefix(left[0], "t0500: ") {
		t.Errorf("%d offered, left out %q", len(offered), left)
	}
}

// The pin covers all that is seen of a tool and nothing else.
func TestPin(t *testing.T) {
	pin := func(change func(*sdk.Tool)) regie.Hash {
		tl := &sdk.Tool{Name: "do", Description: "Does.", InputSchema: map[string]any{"type": "object", "properties": map[string]any{"a": map[string]any{"type": "string"}}}}
		change(tl)
		o, err := offerOf(Config{Name: "box", TrustHints: true}, tl)
		if err != nil {
			t.Fatal(err)
		}
		return o.pin
	}
	same := pin(func(*sdk.Tool) {})
	for name, change := range map[string]func(*sdk.Tool){
		"description": func(tl *sdk.Tool) { tl.Description = "Does it." },
		"a parameter": func(tl *sdk.Tool) {
			tl.InputSchema = map[string]any{"type": "object", "properties": map[string]any{"b": map[string]any{"type": "string"}}}
		},
		"a trusted hint": func(tl *sdk.Tool) { tl.Annotations = &sdk.ToolAnnotations{IdempotentHint: true} },
		"the name":       func(tl *sdk.Tool) { tl.Name = "do it" },
	} {
		if pin(change) == same {
			t.Errorf("%s changes and the pin does not", name)
		}
	}
	for name, change := range map[string]func(*sdk.Tool){
		"output schema": func(tl *sdk.Tool) { tl.OutputSchema = map[string]any{"type": "object"} },
		"icons":         func(tl *sdk.Tool) { tl.Icons = []sdk.Icon{{Source: "x"}} },
	} {
		if pin(change) != same {
			t.Errorf("%s is not shown, and changes the pin", name)
		}
	}
}

func TestSchemas(t *testing.T) {
	deep := func(n int) string {
		return `{"type":"object","properties":{"a":` + strings.Repeat(`{"items":`, n) + `{}` + strings.Repeat(`}`, n) + `}}`
	}
	// Each definition names the next one thirty times: 30^10 rules on one page.
	doubling := map[string]any{}
	for i := range 10 {
		next := map[string]any{"$ref": fmt.Sprintf("#/$defs/d%d", i+1)}
		doubling[fmt.Sprintf("d%d", i)] = map[string]any{"allOf": slices.Repeat([]any{next}, 30)}
	}
	doubling["d10"] = map[string]any{}
	doubled, err := json.Marshal(map[string]any{"type": "object", "$ref": "#/$defs/d0", "$defs": doubling})
	if err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct{ schema, want, problem string }{
		"plain":             {`{"type":"object","properties":{"a":{"type":"string"}}}`, `{"properties":{"a":{"type":"string"}},"type":"object"}`, ""},
		"shared definition": {`{"type":"object","$defs":{"x":{"type":"string"}},"properties":{"a":{"$ref":"#/$defs/x"},"b":{"$ref":"#/$defs/x"}}}`, `same`, ""},
		"odd keys":          {`{"type":"object","$defs":{"x/y~z %":{"type":"string"}},"properties":{"a":{"$ref":"#/$defs/x~1y~0z%20%25"}}}`, `same`, ""},
		"by index":          {`{"type":"object","allOf":[{"type":"object"}],"properties":{"a":{"$ref":"#/allOf/0"}}}`, `same`, ""},
		"itself":            {`{"type":"object","$ref":"#"}`, `{"type":"object"}`, ""},
		"itself in allOf":   {`{"type":"object","allOf":[{"$ref":"#"}]}`, `{"allOf":[{}],"type":"object"}`, ""},
		"a tree":            {`{"type":"object","properties":{"kids":{"type":"array","items":{"$ref":"#"}}}}`, `{"properties":{"kids":{"items":{},"type":"array"}},"type":"object"}`, ""},
		"two in a circle":   {`{"type":"object","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}`, `{"$defs":{"a":{"$ref":"#/$defs/b"},"b":{}},"type":"object"}`, ""},
		"circle from within": {
			`{"type":"object","$ref":"#/x/y/allOf/0","x":{"y":{"allOf":[{"$ref":"#/x/y"}]}}}`, `{"$ref":"#/x/y/allOf/0","type":"object","x":{"y":{"allOf":[{}]}}}`, "",
		},
		"circle by containment": {
			`{"type":"object","a":{"$ref":"#/b/c/d"},"b":{"c":{"d":{"$ref":"#/b/c"}}}}`, `{"a":{"$ref":"#/b/c/d"},"b":{"c":{"d":{}}},"type":"object"}`, "",
		},
		"other regexps":      {`{"type":"object","properties":{"a":{"pattern":"^(?=x)"},"b":{"pattern":"^x"}}}`, `{"properties":{"a":{},"b":{"pattern":"^x"}},"type":"object"}`, ""},
		"other key patterns": {`{"type":"object","patternProperties":{"(?=x)":{}},"additionalProperties":false}`, `{"type":"object"}`, ""},
		"hidden text":        {`{"type":"object","properties":{"a":{"description":"x\u202e\u0007y"}}}`, `{"properties":{"a":{"description":"xy"}},"type":"object"}`, ""},
		"own id":             {`{"$id":"https://example.org/s","type":"object"}`, `{"type":"object"}`, ""},
		"not an object":      {`{"type":"string"}`, "", "not one of an object"},
		"no type":            {`{"properties":{}}`, "", "not one of an object"},
		"list of types":      {`{"type":["object","null"]}`, "", "not one of an object"},
		"true":               {`true`, "", "not one of an object"},
		"nothing there":      {`{"type":"object","$ref":"#/$defs/none"}`, "", "not there"},
		"beyond a list":      {`{"type":"object","allOf":[],"$ref":"#/allOf/1"}`, "", "not there"},
		"an anchor":          {`{"type":"object","$ref":"#top"}`, "", "only #/"},
		"elsewhere":          {`{"type":"object","$ref":"file:///etc/passwd"}`, "", "only #/"},
		"dynamic":            {`{"type":"object","properties":{"a":{"$dynamicRef":"#x"}}}`, "", "$dynamicRef"},
		"ids within":         {`{"type":"object","properties":{"a":{"$id":"x"}}}`, "", "$id"},
		"a property $ref":    {`{"type":"object","properties":{"$ref":{"type":"string"},"$id":{"type":"string"}}}`, `same`, ""},
		"deep":               {deep(55), `same`, ""},
		"too deep":           {deep(70), "", "deeper"},
		"too large":          {`{"type":"object","description":"` + strings.Repeat("x", maxSchema) + `"}`, "", "at most 65536"},
		"doubling":           {string(doubled), "", "too often"},
	} {
		var raw any
		if err := json.Unmarshal([]byte(row.schema), &raw); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		before, err := json.Marshal(raw)
		if err != nil {
			t.Fatal(err)
		}
		got, err := cleanSchema(raw)
		want := row.want
		if want == "same" {
			want = string(before)
		}
		if row.problem == "" && (err != nil || string(got) != want) || row.problem != "" && (err == nil || !strings.Contains(err.Error(), row.problem)) {
			t.Errorf("%s: %s %v", name, got, err)
		}
		if after, err := json.Marshal(raw); err != nil || string(after) != string(before) {
			t.Errorf("%s: what the server said was changed in place", name)
		}
		if err == nil {
			useSchema(t, name, got)
		}
	}
}

// useSchema holds nested arguments against a cleaned schema: one that never ends takes the whole
// process with it.
func useSchema(t *testing.T, name string, schema json.RawMessage) {
	t.Helper()
	d := regie.ToolDefinition{Name: "box.do", Parameters: schema, Kind: regie.KindAction, Class: regie.ClassOnce, Risk: regie.RiskExternal}
	r, err := tool.NewRegistry(&remote{offer: offer{definition: d}})
	if err != nil {
		// their unknown keywords hold no schemas for the library
		if name != "circle from within" && name != "circle by containment" {
			t.Errorf("%s: %v", name, err)
		}
		return
	}
	for _, arguments := range []string{`{}`, `{"kids":[{"kids":[{"kids":[]}]}]}`, `{"a":{"a":{"a":"x"}}}`} {
		if c := r.Check("box.do", arguments); c.Tool == nil {
			t.Errorf("%s: %+v", name, c)
		}
	}
}

// FuzzSchema looks for schemas that pass and then cannot be checked with, or that are cleaned in
// two ways.
func FuzzSchema(f *testing.F) {
	for _, seed := range []string{
		`{"type":"object","$ref":"#"}`, `{"type":"object","allOf":[{"$ref":"#/allOf/0"}],"properties":{"a":{"$ref":"#/properties/b"},"b":{"anyOf":[{"$ref":"#"}]}}}`,
		`{"type":"object","$defs":{"~":{"not":{"$ref":"#/$defs/~0"}}},"if":{"$ref":"#/$defs/~0"}}`, `{"type":"object","items":[{}],"patternProperties":{"(":1}}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var raw any
		if json.Unmarshal([]byte(text), &raw) != nil {
			return
		}
		o, err := offerOf(Config{Name: "box"}, &sdk.Tool{Name: "do", InputSchema: raw})
		if err != nil {
			return
		}
		again, err := offerOf(Config{Name: "box"}, &sdk.Tool{Name: "do", InputSchema: raw})
		if err != nil || again.pin != o.pin {
			t.Errorf("%s is %s, then %s, %v", text, o.pin, again.pin, err)
		}
		r, err := tool.NewRegistry(&remote{offer: o})
		if err != nil {
			t.Fatal(err)
		}
		for _, arguments := range []string{`{}`, `{"a":{"a":[{"b":{}}]},"b":{"a":null}}`} {
			r.Check("box.do", arguments)
		}
	})
}

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"a\tb\nc": "a\tb\nc", "\na\n": "a", "\x1b]0;x\x07": "]0;x", "a\u2028\u200eb": "ab", "\U000E0049\U000E0067": "", "é\xff": "é\uFFFD", "abcdef": "abcde", "aééé": "aéé",
	} {
		if got := cleanText(in, 5); got != want && len(want) <= 5 {
			t.Errorf("%q becomes %q", in, got)
		}
		if got := cleanText(in, 5); len(got) > 5 {
			t.Errorf("%q becomes %q, which is too long", in, got)
		}
	}
}

// TestFlow: what servers bring and send (decision 34).
func TestFlow(t *testing.T) {
	command := Config{Command: []string{"box"}}
	for _, row := range []struct {
		c    Config
		want tool.Flow
	}{
		{command, tool.Flow{Outside: true, Egress: true}},
		{Config{Command: command.Command, TrustHints: true}, tool.Flow{}},
		{Config{URL: "https://a.example"}, tool.Flow{Outside: true, Egress: true}},
		{Config{URL: "https://a.example", TrustHints: true}, tool.Flow{Egress: true}},
	} {
		if got := tool.FlowOf(t.Context(), &remote{server: &Server{config: row.c}}, nil); got != row.want {
			t.Errorf("%+v: %+v", row.c, got)
		}
	}
}
