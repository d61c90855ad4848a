package tool_test

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/tool"
)

func TestWireNamesNeverMeet(t *testing.T) {
	long := strings.Repeat("x", 80)
	names := []string{
		"files.read_file", "a.b", "a.b__c", "a__b.c", "a_.b", "a._b", "a.b.c", "a.b_c", "a.b-c", long + ".a", long + ".b", "a." + long + "1",
		"a." + long + "2",
	}
	// a name made to look like a cut one
	names = append(names, "a."+strings.TrimPrefix(tool.WireName("a."+long+"1"), "a__"))
	legal := regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
	seen := map[string]string{}
	for _, name := range names {
		wire := tool.WireName(name)
		if !legal.MatchString(wire) {
			t.Errorf("%s has the wire name %q, which APIs refuse", name, wire)
		}
		if other, ok := seen[wire]; ok {
			t.Errorf("%s and %s share the wire name %s", name, other, wire)
		}
		seen[wire] = name
	}
	if got := tool.WireName("files.read_file"); got != "files__read_file" {
		t.Errorf("the wire name is %s", got)
	}
	tools := make([]tool.Tool, len(names))
	for i, name := range names {
		tools[i] = idle(name, regie.ClassOnce)
	}
	r := registry(t, tools...)
	for wire, name := range seen {
		if got, ok := r.ByWireName(wire); !ok || got != name {
			t.Errorf("%s leads to %q, not to %s", wire, got, name)
		}
		if c := r.Check(wire, "{}"); c.Name != name || c.Error != nil {
			t.Errorf("a call of %s is taken for %s: %v", wire, c.Name, c.Error)
		}
		if c := r.Check(name, "{}"); c.Name != name || c.Error != nil {
			t.Errorf("a call of %s is taken for %s: %v", name, c.Name, c.Error)
		}
	}
}

// TestClientTools_BareNames: a client's tool has its own name on the wire, and no name means two
// tools.
func TestClientTools_BareNames(t *testing.T) {
	own := registry(t, idle("files.read_file", regie.ClassOnce), idle("a.b", regie.ClassOnce))
	brought := []regie.ClientTool{{Name: "Read"}, {Name: "mcp__x__Read"}, {Name: "client__Read"}}
	r, err := own.WithClient(brought)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range brought {
		canonical := "client." + b.Name
		if got := r.WireName(canonical); got != b.Name {
			t.Errorf("%s is %s on the wire", canonical, got)
		}
		if got, ok := r.ByWireName(b.Name); !ok || got != canonical {
			t.Errorf("%s leads to %s", b.Name, got)
		}
		if c := r.Check(b.Name, "{}"); c.Name != canonical || c.Error != nil {
			t.Errorf("a call of %s is taken for %s: %v", b.Name, c.Name, c.Error)
		}
	}
	if c := r.Check("client__mcp__x__Read", "{}"); c.Name != "client.mcp__x__Read" || c.Error != nil {
		t.Errorf("a name of an older thread is taken for %s: %v", c.Name, c.Error)
	}
	if c := r.Check("Raed", "{}"); c.Error == nil || !strings.Contains(c.Error.Hint, "Read") || strings.Contains(c.Error.Hint, "client.") {
		t.Errorf("%+v", c.Error)
	}
	// A thread may have calls of tools that the request does not bring.
	for canonical, want := range map[string]string{
		"files.read_file": "files__read_file", "client.Write": "Write", "client.files__read_file": "client__files__read_file", "client.a__b": "client__a__b",
		"client." + strings.Repeat("x", 65): tool.WireName("client." + strings.Repeat("x", 65)),
	} {
		if got := r.WireName(canonical); got != want {
			t.Errorf("%s is %s on the wire, not %s", canonical, got, want)
		}
	}
	if _, err := own.WithClient([]regie.ClientTool{{Name: "files__read_file"}}); regie.CodeOf(err) != regie.CodeBadRequest {
		t.Errorf("a tool with the name of another: %v", err)
	}
}

// TestAliases: a tool is found by its other names too (decision 27), and no name means two tools.
func TestAliases(t *testing.T) {
	named := func(name string, aliases ...string) tool.Tool {
		d := definition(name, regie.ClassOnce)
		d.Aliases = aliases
		return &scripted{definition: d}
	}
	r := registry(t, named("records.get", "TOOL_DATA", "GET_DATA"), idle("a.b", regie.ClassOnce))
	for _, name := range []string{"records.get", "records__get", "TOOL_DATA", "GET_DATA"} {
		if d, ok := r.Find(name); !ok || d.Name != "records.get" {
			t.Errorf("%s leads to %q", name, d.Name)
		}
		if c := r.Check(name, "{}"); c.Name != "records.get" || c.Error != nil {
			t.Errorf("a call of %s is taken for %s: %v", name, c.Name, c.Error)
		}
	}
	if _, ok := r.Find("tool_data"); ok {
		t.Error("an alias was found in another case")
	}
	more, err := r.With("bank", []tool.Tool{idle("bank.pay", regie.ClassOnce)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if d, ok := more.Find("TOOL_DATA"); !ok || d.Name != "records.get" {
		t.Error("an alias is lost where another toolkit comes")
	}
	client, err := more.WithClient([]regie.ClientTool{{Name: "GET_DATA"}})
	if err != nil {
		t.Fatal(err)
	}
	if d, ok := client.Find("GET_DATA"); !ok || d.Name != "client.GET_DATA" {
		t.Errorf("a client's own tool is taken for %q", d.Name)
	}
	without, err := more.With("records", nil, regie.Errorf(regie.CodeServerDown, "down"))
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := without.Find("TOOL_DATA"); ok {
		t.Error("an alias leads to a tool that is away")
	}
	if _, err := more.With("bank", []tool.Tool{named("bank.pay", "TOOL_DATA")}, nil); regie.CodeOf(err) != regie.CodeBadRequest {
		t.Errorf("an alias of another toolkit: %v", err)
	}
	for _, tools := range [][]tool.Tool{
		{named("a.b", "X"), named("c.d", "X")},
		{named("a.b", "c__d"), named("c.d")},
		{named("c.d"), named("a.b", "c__d")},
		{named("a.b", "c.d")},
		{named("a.b", "")},
		{named("a.b", "rm -rf")},
	} {
		if _, err := tool.NewRegistry(tools...); regie.CodeOf(err) != regie.CodeBadRequest {
			t.Errorf("%v: %v", tools, err)
		}
	}
}

func TestRegistryRefuses(t *testing.T) {
	with := func(change func(*regie.ToolDefinition)) tool.Tool {
		d := definition("a.b", regie.ClassOnce)
		change(&d)
		return &scripted{definition: d}
	}
	for name, tools := range map[string][]tool.Tool{
		"two of a name":             {idle("a.b", regie.ClassOnce), idle("a.b", regie.ClassRead)},
		"no operation":              {with(func(d *regie.ToolDefinition) { d.Name = "files" })},
		"empty operation":           {with(func(d *regie.ToolDefinition) { d.Name = "files." })},
		"empty toolkit":             {with(func(d *regie.ToolDefinition) { d.Name = ".files" })},
		"a space":                   {with(func(d *regie.ToolDefinition) { d.Name = "a.b c" })},
		"a NUL":                     {with(func(d *regie.ToolDefinition) { d.Name = "a.b\x00" })},
		"a name without end":        {with(func(d *regie.ToolDefinition) { d.Name = "a." + strings.Repeat("b", 300) })},
		"no schema":                 {with(func(d *regie.ToolDefinition) { d.Parameters = nil })},
		"a broken schema":           {with(func(d *regie.ToolDefinition) { d.Parameters = json.RawMessage(`{"type":`) })},
		"a schema without its part": {with(func(d *regie.ToolDefinition) { d.Parameters = json.RawMessage(`{"$ref":"#/$defs/none"}`) })},
		"no kind":                   {with(func(d *regie.ToolDefinition) { d.Kind = "" })},
		"no class":                  {with(func(d *regie.ToolDefinition) { d.Class = "" })},
		"no risk":                   {with(func(d *regie.ToolDefinition) { d.Risk = "" })},
		"an action that is a read":  {with(func(d *regie.ToolDefinition) { d.Class = regie.ClassRead })},
		"a query that acts":         {with(func(d *regie.ToolDefinition) { d.Kind = regie.KindQuery })},
		"verifiable without probe":  {with(func(d *regie.ToolDefinition) { d.Class = regie.ClassVerifiable })},
	} {
		if _, err := tool.NewRegistry(tools...); regie.CodeOf(err) != regie.CodeBadRequest {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestRegistryOrderAndHash(t *testing.T) {
	a, b, c := idle("files.write_file", regie.ClassVerifiable), idle("files.read_file", regie.ClassRead), idle("notes.get_note", regie.ClassRead)
	one, other := registry(t, a, b, c), registry(t, c, a, b)
	if want := []string{"files.read_file", "files.write_file", "notes.get_note"}; !slices.Equal(names(one), want) || !slices.Equal(names(other), want) {
		t.Errorf("the order is %v and %v", names(one), names(other))
	}
	_, hash, _ := one.Lookup("files.read_file")
	if _, again, _ := other.Lookup("files.read_file"); hash != again || hash.IsZero() {
		t.Errorf("the definition's hash is %s, then %s", hash, again)
	}
	d := definition("files.read_file", regie.ClassRead)
	d.Parameters = json.RawMessage("{ \"type\" : \"object\" }")
	if _, same, _ := registry(t, &scripted{definition: d}).Lookup("files.read_file"); same != hash {
		t.Errorf("spaces in the schema change the definition's hash")
	}
	d.Description = "another"
	if _, changed, _ := registry(t, &scripted{definition: d}).Lookup("files.read_file"); changed == hash {
		t.Errorf("another description has the same hash")
	}
}

func names(r *tool.Registry) []string {
	var out []string
	for _, d := range r.Definitions() {
		out = append(out, d.Name)
	}
	return out
}

// TestWith exchanges the tools of one toolkit, and says of one that is away what a call of it is
// told.
func TestWith(t *testing.T) {
	one := registry(t, idle("files.read_file", regie.ClassRead), idle("bank.pay", regie.ClassOnce), idle("bank.list", regie.ClassRead))
	away := regie.Errorf(regie.CodeServerDown, "the MCP server bank is down")
	without, err := one.With("bank", nil, away)
	if err != nil {
		t.Fatal(err)
	}
	if got := names(without); !slices.Equal(got, []string{"files.read_file"}) {
		t.Errorf("what is left: %v", got)
	}
	for _, wrote := range []string{"bank__pay", "bank.pay", "bank__anything"} {
		c := without.Check(wrote, "{}")
		if c.Tool != nil || c.NotRun != regie.NotRunOutOfScope || c.Error.Code != regie.CodeServerDown || !c.Error.Retryable ||
			!strings.Contains(c.Error.Message, "bank is down") {
			t.Errorf("%s: %+v %+v", wrote, c, c.Error)
		}
	}
	if c := without.Check("files__write", "{}"); c.Error.Code != regie.CodeUnknownTool {
		t.Errorf("a toolkit that is there: %+v", c.Error)
	}
	if without.Away("files.read_file") != nil || without.Away("banker.pay") != nil || without.Away("bank.pay") == nil {
		t.Errorf("the wrong toolkit is away")
	}
	if got := without.Missing(); !slices.Equal(got, []regie.Missing{{Toolkit: "bank", Why: "the MCP server bank is down"}}) {
		t.Errorf("missing: %v", got)
	}
	back, err := without.With("bank", []tool.Tool{idle("bank.refund", regie.ClassOnce)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := names(back); !slices.Equal(got, []string{"bank.refund", "files.read_file"}) || len(back.Missing()) != 0 || back.Away("bank.pay") != nil {
		t.Errorf("what is there again: %v", got)
	}
	if got := names(one); !slices.Equal(got, []string{"bank.list", "bank.pay", "files.read_file"}) || len(without.Missing()) != 1 {
		t.Errorf("a registry has changed: %v", got)
	}
	for _, bad := range []tool.Tool{idle("files.other", regie.ClassRead), idle("bank", regie.ClassRead)} {
		if _, err := one.With("bank", []tool.Tool{bad}, nil); regie.CodeOf(err) != regie.CodeBadRequest {
			t.Errorf("%s: %v", bad.Definition().Name, err)
		}
	}
	if _, err := one.With("bank", []tool.Tool{idle("bank.a", regie.ClassRead), idle("bank.a", regie.ClassRead)}, nil); regie.CodeOf(err) != regie.CodeBadRequest {
		t.Errorf("a name that stands twice: %v", err)
	}
}

// TestCheckPatterns: a run allows only tools that there are, or those of a server that is away.
func TestCheckPatterns(t *testing.T) {
	r, err := tool.NewRegistry(idle("files.write_file", regie.ClassOnce), idle("shell.shell_exec", regie.ClassOnce))
	if err == nil {
		r, err = r.With("bank", nil, regie.Errorf(regie.CodeServerDown, "away"))
	}
	if err != nil {
		t.Fatal(err)
	}
	for pattern, want := range map[string]string{
		"files.*": "", "*": "", "shell.shell_exec": "", "bank.pay": "", "bank.*": "",
		"files.writefile": `"files.writefile" matches no tool: did you mean files.write_file?`,
		"write_file":      `"write_file" matches no tool: did you mean files.write_file?`,
		"shel.*":          `"shel.*" matches no tool: did you mean shell.*?`,
		"nosuch.tool":     `"nosuch.tool" matches no tool: regie tools lists them`,
	} {
		err := r.CheckPatterns([]string{"files.write_file", pattern})
		if got := fmt.Sprint(err); want == "" && err != nil || want != "" && (got != want || regie.CodeOf(err) != regie.CodeBadPattern) {
			t.Errorf("%s: %v, want %q", pattern, err, want)
		}
	}
}

func TestNearest(t *testing.T) {
	r := registry(t, idle("files.read_file", regie.ClassRead), idle("files.write_file", regie.ClassOnce), idle("notes.get_note", regie.ClassRead))
	for wrote, want := range map[string]string{
		"files__read_files": "files__read_file", "read_file": "files__read_file", "files.raed_file": "files__read_file", "get_notes": "notes__get_note",
		"writefile": "files__write_file",
	} {
		if got := r.Nearest(wrote); len(got) == 0 || got[0] != want || len(got) > 3 {
			t.Errorf("nearest to %s are %v, not first %s", wrote, got, want)
		}
	}
	if got := r.Nearest(strings.Repeat("zq", 1<<20)); len(got) != 0 {
		t.Errorf("nearest to nothing like it are %v", got)
	}
}

func TestNewGivesWhatTheHandlerHas(t *testing.T) {
	run := func(context.Context, *tool.Invocation, pageArgs) (tool.Result, error) { return tool.Result{}, nil }
	prepare := func(context.Context, *tool.Invocation, pageArgs) (json.RawMessage, error) {
		return json.RawMessage(`{}`), nil
	}
	probe := func(context.Context, *tool.Invocation, pageArgs) (tool.Evidence, tool.Result, error) {
		return tool.Unsure, tool.Result{}, nil
	}
	preview := func(context.Context, *tool.Invocation, pageArgs) (regie.Preview, error) { return regie.Preview{}, nil }
	check := func(context.Context, *tool.Invocation, pageArgs, []regie.Precondition) error { return nil }
	for n := range 16 {
		has := func(side int) bool { return n&side != 0 }
		class, handler := regie.ClassOnce, tool.Handler[pageArgs]{Run: run}
		if has(1) {
			handler.Prepare = prepare
		}
		if has(2) {
			class, handler.Probe = regie.ClassVerifiable, probe
		}
		if has(4) {
			handler.Preview = preview
		}
		if has(8) {
			handler.CheckPreconditions = check
		}
		made, err := tool.New(definition("a.b", class), handler)
		if err != nil {
			t.Fatal(err)
		}
		s := tool.SidesOf(made)
		if (s.Prepare != nil) != has(1) || (s.Probe != nil) != has(2) || (s.Preview != nil) != has(4) || (s.CheckPreconditions != nil) != has(8) {
			t.Errorf("handler %04b gives other sides", n)
		}
		bad := &tool.Invocation{Arguments: json.RawMessage(`{"path":1}`)}
		if has(4) {
			if _, err := s.Preview(t.Context(), bad); regie.CodeOf(err) != regie.CodeBadArguments {
				t.Errorf("a preview of bad arguments: %v", err)
			}
		}
		if has(8) {
			if err := s.CheckPreconditions(t.Context(), bad, nil); regie.CodeOf(err) != regie.CodeBadArguments {
				t.Errorf("preconditions of bad arguments: %v", err)
			}
		}
	}
	for name, build := range map[string]func() (tool.Tool, error){
		"no code": func() (tool.Tool, error) {
			return tool.New(definition("a.b", regie.ClassOnce), tool.Handler[pageArgs]{})
		},
		"a probe of once": func() (tool.Tool, error) {
			return tool.New(definition("a.b", regie.ClassOnce), tool.Handler[pageArgs]{Run: run, Probe: probe})
		},
		"arguments that JSON has not": func() (tool.Tool, error) {
			return tool.New(regie.ToolDefinition{Name: "a.b", Kind: regie.KindAction},
				tool.Handler[func()]{Run: func(context.Context, *tool.Invocation, func()) (tool.Result, error) {
					return tool.Result{}, nil
				}})
		},
	} {
		if _, err := build(); regie.CodeOf(err) != regie.CodeBadRequest {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestNewDerivesTheSchema(t *testing.T) {
	made, err := tool.New(regie.ToolDefinition{Name: "a.b", Kind: regie.KindAction, Risk: regie.RiskInternal}, tool.Handler[pageArgs]{
		Run:    func(context.Context, *tool.Invocation, pageArgs) (tool.Result, error) { return tool.Result{}, nil },
		Schema: func(s *jsonschema.Schema) { s.Properties["path"].MaxLength = new(9) },
	})
	if err != nil {
		t.Fatal(err)
	}
	d := made.Definition()
	if d.Class != regie.ClassOnce {
		t.Errorf("an action's class is %s without a word", d.Class)
	}
	var schema struct {
		Required             []string       `json:"required"`
		AdditionalProperties any            `json:"additionalProperties"`
		Properties           map[string]any `json:"properties"`
	}
	if err := json.Unmarshal(d.Parameters, &schema); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(schema.Required, []string{"path"}) || schema.AdditionalProperties == nil || fmt.Sprint(schema.Properties["path"]) != "map[description:which file maxLength:9 type:string]" {
		t.Errorf("the schema is %s", d.Parameters)
	}
}

// A model may write an integer so that it does not look like one; the schema takes it, so the code
// must.
func TestTypedArguments(t *testing.T) {
	r := registry(t, reader(t))
	for arguments, want := range map[string]string{
		`{"path":"a","start_line":2.0}`: `{"path":"a","start_line":2}`,
		`{"path":"a","start_line":2e1}`: `{"path":"a","start_line":20}`,
		`{"path":"\u0061"}`:             `{"path":"a"}`,
	} {
		c := r.Check("files__read_file", arguments)
		if c.Error != nil {
			t.Errorf("%s: %+v", arguments, c.Error)
			continue
		}
		for _, form := range []string{arguments, string(c.Arguments)} {
			if out := tool.Run(t.Context(), c.Tool, &tool.Invocation{Arguments: json.RawMessage(form)}); out.Result != want {
				t.Errorf("%s runs as %q: %+v", form, out.Result, out.Error)
			}
		}
	}
	got := tool.Run(t.Context(), reader(t), &tool.Invocation{Arguments: json.RawMessage(`{"Path":"a"}`)})
	if got.State != regie.CallFailed || got.Error.Code != regie.CodeBadArguments {
		t.Errorf("unchecked arguments that do not fit: %+v", got)
	}
}
