package dialect_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dialect"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/toolkit/session"
)

var update = flag.Bool("update", false, "write the golden files anew")

// definitions are one of each sort that a dialect can meet.
func definitions() []regie.ToolDefinition {
	object := json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`)
	return []regie.ToolDefinition{
		{Name: "files.read_file", Description: "Read a text.", Kind: regie.KindQuery, Class: regie.ClassRead, Parameters: object},
		{Name: "files.write_file", Description: "Write a text.\nThe whole of it.", Kind: regie.KindAction, Class: regie.ClassVerifiable, Parameters: object},
		{Name: "records.get", Aliases: []string{"TOOL_DATA"}, Description: "Read records.", Kind: regie.KindQuery, Class: regie.ClassRead},
		{Name: "session.ask_user", Description: "Ask.", Kind: regie.KindQuery, Class: regie.ClassRead, Role: regie.RoleQuestion, Parameters: object},
		{Name: "session.complete", Description: "End.", Kind: regie.KindQuery, Class: regie.ClassRead, Role: regie.RoleComplete, Parameters: object},
		{Name: "session.update_plan", Description: "Plan.", Kind: regie.KindQuery, Class: regie.ClassRead, Role: regie.RolePlan, Parameters: json.RawMessage(`{"type":"object","properties":{"steps":{"type":"array"}}}`)},
	}
}

func full() *dialect.JSON {
	return dialect.New(definitions(), dialect.Options{Questions: true, CallsInReply: 10, Module: session.ParseModule})
}

func call(tool string, kind regie.CallKind, role regie.ToolRole, arguments string) dialect.Call {
	return dialect.Call{Tool: tool, Kind: kind, Role: role, Arguments: arguments}
}

// TestLenient holds the list of what is read although it is not quite the form, and nothing else.
func TestLenient(t *testing.T) {
	hello := &dialect.Reply{PreText: "hello"}
	query := &dialect.Reply{PreText: "I look.", Calls: []dialect.Call{call("files.read_file", regie.KindQuery, "", `{"path":"a"}`)}}
	for name, c := range map[string]struct {
		raw  string
		want *dialect.Reply
	}{
		"plain":                          {`{"pre_text":"hello"}`, hello},
		"fence":                          {"```json\n{\"pre_text\":\"hello\"}\n```", hello},
		"text around":                    {"Sure! Here it is:\n{\"pre_text\":\"hello\"}\nAnything else?", hello},
		"byte order mark":                {"\uFEFF {\"pre_text\":\"hello\"}", hello},
		"thinking before":                {"<think>maybe {\"pre_text\":\"no\"}?</think>\n{\"pre_text\":\"hello\"}", hello},
		"thinking that was begun for it": {"Perhaps {\"pre_text\":\"no\",\"action_commands\":[]} but no, {\"x\n</think>\n{\"pre_text\":\"hello\"}", hello},
		"thinking twice":                 {"<think>a</think>b {\"pre_text\":\"no\"}</think>{\"pre_text\":\"hello\"}", hello},
		"its end inside a text":          {`{"pre_text":"the mark </think> ends it"}`, &dialect.Reply{PreText: "the mark </think> ends it"}},
		"brackets in the text":           {"The set {a, b} and {} and {\"x\": 1}: {\"pre_text\":\"hello\"}", hello},
		"a bracket that never closes":    {"{\"like this: {\"pre_text\":\"hello\"}", hello},
		"in a list":                      {`[{"pre_text":"hello"}]`, hello},
		"the same twice":                 {`{"pre_text":"hello"} {"pre_text":"hello"}`, hello},
		"commas at the end":              {"{\"pre_text\":\"hello\" , \n}", hello},
		"commas at the end of a list":    {`{"pre_text":"I look.","data_commands":[{"type":"files.read_file","params":{"path":"a",},},],}`, query},
		"raw line feed":                  {"{\"pre_text\":\"a\nb\tc\x01\"}", &dialect.Reply{PreText: "a\nb\tc\x01"}},
		"a comma in a string":            {`{"pre_text":"a,] ,}"}`, &dialect.Reply{PreText: "a,] ,}"}},
		"brackets in a string":           {`{"pre_text":"}{\"]"}`, &dialect.Reply{PreText: `}{"]`}},
		"NUL":                            {`{"pre_text":"a\u0000b"}`, &dialect.Reply{PreText: "a\uFFFDb"}},
		"bytes that are no text":         {"{\"pre_text\":\"a\xffb\"}", &dialect.Reply{PreText: "a\uFFFDb"}},
		"fields that say nothing":        {`{"pre_text":"hello","validation_request":false,"data_commands":null,"action_commands":[],"post_text":"","keep_control":null,"communication_module":null,"completed":false,"plan":null}`, hello},
		"no params":                      {`{"pre_text":"I look.","data_commands":[{"type":"TOOL_DATA"}]}`, &dialect.Reply{PreText: "I look.", Calls: []dialect.Call{call("records.get", regie.KindQuery, "", `{}`)}}},
		"a wire name":                    {`{"pre_text":"I look.","data_commands":[{"type":"files__read_file","params":{"path":"a"}}]}`, query},
		"an unknown name":                {`{"pre_text":"I look.","data_commands":[{"type":"files.red_file","params":{}}]}`, &dialect.Reply{PreText: "I look.", Calls: []dialect.Call{call("files.red_file", regie.KindQuery, "", `{}`)}}},
		"params as they were written":    {`{"pre_text":"I look.","data_commands":[{"type":"files.read_file","params":{ "path" : "a\/b", "n": 1.50 }}]}`, &dialect.Reply{PreText: "I look.", Calls: []dialect.Call{call("files.read_file", regie.KindQuery, "", `{ "path" : "a\/b", "n": 1.50 }`)}}},
		"fields in any order":            {`{"data_commands":[{"params":{"path":"a"},"type":"files.read_file"}],"pre_text":"I look."}`, query},
		"an object beside one of ours":   {`{"note":{"pre_text":"inner"}} {"pre_text":"hello"}`, hello},
	} {
		t.Run(name, func(t *testing.T) {
			got, errs := full().Parse(c.raw)
			if errs != nil {
				t.Fatal(errs)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestPatterns is spec 2.2 with decisions 7, 13 and 27 as a table: everything legal, in canonical
// form.
func TestPatterns(t *testing.T) {
	plan := call("session.update_plan", regie.KindQuery, regie.RolePlan, `{"steps":[]}`)
	read := call("files.read_file", regie.KindQuery, "", `{"path":"a"}`)
	write := call("files.write_file", regie.KindAction, "", `{"path":"b"}`)
	for raw, want := range map[string]*dialect.Reply{
		`{"pre_text":"x"}`:                     {PreText: "x"},
		`{"pre_text":"x","plan":{"steps":[]}}`: {PreText: "x", Calls: []dialect.Call{plan}},
		`{"pre_text":"x","plan":{"steps":[]},"data_commands":[{"type":"files.read_file","params":{"path":"a"}},{"type":"files.read_file","params":{"path":"a"}}]}`: {PreText: "x", Calls: []dialect.Call{plan, read, read}},
		`{"pre_text":"x","action_commands":[{"type":"files.write_file","params":{"path":"b"}}],"validation_request":true,"post_text":"y","keep_control":true}`:     {PreText: "x", Calls: []dialect.Call{write}, ValidationRequest: true, PostText: "y", KeepControl: true},
		`{"pre_text":"x","communication_module":{"type":"Validation","data":{"message":"Go on?"}}}`:                                                                {PreText: "x", Calls: []dialect.Call{call("session.ask_user", regie.KindQuery, regie.RoleQuestion, `{"question":"Go on?"}`)}},
		`{"pre_text":"x","communication_module":{"data":{"options":["a","b"],"question":"Which?","allow_free_text":true,"allow_multiple":false},"type":"MultipleChoice"}}`: {PreText: "x", Calls: []dialect.Call{
			call("session.ask_user", regie.KindQuery, regie.RoleQuestion, `{"question":"Which?","options":["a","b"],"allow_free_text":true}`),
		}},
		`{"pre_text":"All done.","completed":true}`: {PreText: "All done.", Calls: []dialect.Call{call("session.complete", regie.KindQuery, regie.RoleComplete, `{"summary":"All done."}`)}},
	} {
		got, errs := full().Parse(raw)
		if errs != nil {
			t.Errorf("%s: %v", raw, errs)
			continue
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", raw, diff)
		}
		again, errs := full().Parse(full().Encode(got))
		if errs != nil {
			t.Errorf("%s, written anew as %s: %v", raw, full().Encode(got), errs)
		} else if diff := cmp.Diff(got, again); diff != "" {
			t.Errorf("%s, written anew as %s: -want +got:\n%s", raw, full().Encode(got), diff)
		}
	}
	for raw, answer := range map[string]bool{`{"pre_text":"x"}`: true, `{"pre_text":"x","plan":{}}`: true, `{"pre_text":"x","completed":true}`: false, `{"pre_text":"x","data_commands":[{"type":"a"}]}`: false} {
		if got, errs := full().Parse(raw); errs != nil || got.Answer() != answer {
			t.Errorf("%s: an answer is %v, want %v (%v)", raw, !answer, answer, errs)
		}
	}
}

// TestRefused has one of everything that is a format error, and what the model is told of it.
func TestRefused(t *testing.T) {
	many := strings.Repeat(`{"type":""},`, 12)
	deep := strings.Repeat(`{"a":`, 70) + "1" + strings.Repeat("}", 70)
	for name, c := range map[string]struct{ raw, want string }{
		"nothing":                    {" \n", "expected one JSON object, found nothing"},
		"thinking without an end":    {"<think>Perhaps {\"pre_text\":\"no\"} but no", "expected one JSON object, found thinking that does not end"},
		"text":                       {"I am done.", `expected one JSON object, found text without any; what you say to the person is the string pre_text: {"pre_text":"…"}`},
		"cut off":                    {`{"pre_text":"I lo`, "expected one whole JSON object, found one that is cut off"},
		"two different ones":         {`{"pre_text":"a"} {"pre_text":"b"}`, "expected one JSON object, found two or more"},
		"an object of something":     {`{"answer":"a"}`, "answer: expected one of the fields of the schema, found a field that does not exist"},
		"a list":                     {`["pre_text"]`, "found text without any"},
		"single quotes":              {`{'pre_text':'a'}`, "found text without any"},
		"a bad escape":               {`{"pre_text":"a\x"}`, "pre_text: expected strict JSON"},
		"a line feed after a slash":  {"{\"pre_text\":\"a\\\nb\"}", "expected strict JSON"},
		"a lone half of a character": {`{"pre_text":"a\ud800"}`, "expected strict JSON"},
		"a key twice":                {`{"pre_text":"a","pre_text":"b"}`, "pre_text: expected each key once, found it stands twice"},
		"a key of params twice":      {`{"pre_text":"a","data_commands":[{"type":"files.read_file","params":{"path":"a","path":"b"}}]}`, "data_commands[0].params.path: expected each key once"},
		"too deep":                   {`{"pre_text":"a","plan":` + deep + `}`, "expected objects and lists at most 68 deep, found 71"},
		"too long":                   {`{"pre_text":"` + strings.Repeat("x", 33<<20) + `"}`, "expected a reply of at most 32 MiB"},
		"another case":               {`{"preText":"a"}`, "preText: expected one of the fields of the schema, found a field that does not exist"},
		"pre_text is missing":        {`{"data_commands":[{"type":"files.read_file"}]}`, "pre_text: expected a text that is not empty"},
		"pre_text is null":           {`{"pre_text":null}`, "pre_text: expected a text that is not empty"},
		"pre_text is blank":          {`{"pre_text":" \n"}`, "pre_text: expected a text that is not empty"},
		"pre_text is a number":       {`{"pre_text":12}`, "pre_text: expected a text, found a number"},
		"a word for true":            {`{"pre_text":"a","completed":"yes"}`, "completed: expected true or false, found a text"},
		"post_text is a list":        {`{"pre_text":"a","post_text":[]}`, "post_text: expected a text, found a list"},
		"commands are an object":     {`{"pre_text":"a","data_commands":{}}`, "data_commands: expected a list, found an object"},
		"a command is a text":        {`{"pre_text":"a","data_commands":["files.read_file"]}`, "data_commands[0]: expected an object, found a text"},
		"no type":                    {`{"pre_text":"a","data_commands":[{"params":{}}]}`, "data_commands[0].type: expected the name of a command"},
		"an empty type":              {`{"pre_text":"a","data_commands":[{"type":""}]}`, "data_commands[0].type: expected the name of a command"},
		"params are a list":          {`{"pre_text":"a","data_commands":[{"type":"files.read_file","params":[]}]}`, "data_commands[0].params: expected an object, found a list"},
		"params are a text":          {`{"pre_text":"a","data_commands":[{"type":"files.read_file","params":"{}"}]}`, "data_commands[0].params: expected an object, found a text"},
		"arguments":                  {`{"pre_text":"a","data_commands":[{"type":"files.read_file","Params":{}}]}`, "data_commands[0].Params: expected one of the fields"},
		"an action among queries":    {`{"pre_text":"a","data_commands":[{"type":"files.write_file"}]}`, `data_commands[0].type: expected a query, found the action "files.write_file"; put it into action_commands`},
		"a query among actions":      {`{"pre_text":"a","action_commands":[{"type":"files.write_file"},{"type":"TOOL_DATA"}]}`, `action_commands[1].type: expected an action, found the query "TOOL_DATA"; put it into data_commands`},
		"ask_user as a command":      {`{"pre_text":"a","data_commands":[{"type":"session.ask_user"}]}`, "use the field communication_module"},
		"complete as a command":      {`{"pre_text":"a","action_commands":[{"type":"session.complete"}]}`, "use the field completed"},
		"update_plan as a command":   {`{"pre_text":"a","data_commands":[{"type":"session__update_plan"}]}`, "use the field plan"},
		"queries and actions":        {`{"pre_text":"a","data_commands":[{"type":"TOOL_DATA"}],"action_commands":[{"type":"files.write_file"}]}`, "action_commands: expected either data_commands or action_commands, found both; ask first, and act when the results are here"},
		"completed with commands":    {`{"pre_text":"a","data_commands":[{"type":"TOOL_DATA"}],"completed":true}`, "completed: expected completed in a reply without commands"},
		"completed with a question":  {`{"pre_text":"a","communication_module":{"type":"Validation","data":{"message":"?"}},"completed":true}`, "completed: expected completed in a reply without a question"},
		"a question with commands":   {`{"pre_text":"a","data_commands":[{"type":"TOOL_DATA"}],"communication_module":{"type":"Validation","data":{"message":"?"}}}`, "communication_module: expected a question in a reply without commands"},
		"a check of queries":         {`{"pre_text":"a","data_commands":[{"type":"TOOL_DATA"}],"validation_request":true}`, "validation_request: expected it only beside action_commands"},
		"control of an answer":       {`{"pre_text":"a","keep_control":true,"post_text":"b"}`, "post_text: expected it only beside action_commands, found it without them\nkeep_control: expected it only beside action_commands"},
		"an unknown module":          {`{"pre_text":"a","communication_module":{"type":"Slider","data":{}}}`, `expected "MultipleChoice" or "Validation" as type, with data, found the type "Slider"`},
		"a module without data":      {`{"pre_text":"a","communication_module":{"type":"Validation","message":"?"}}`, "communication_module.message: expected one of the fields"},
		"one option":                 {`{"pre_text":"a","communication_module":{"type":"MultipleChoice","data":{"question":"?","options":["a"]}}}`, "communication_module.options: expected 2 to 20 options, found 1"},
		"an option that is a number": {`{"pre_text":"a","communication_module":{"type":"MultipleChoice","data":{"question":"?","options":["a",2]}}}`, "communication_module.options[1]: expected a text, found a number"},
		"two options alike":          {`{"pre_text":"a","communication_module":{"type":"MultipleChoice","data":{"question":"?","options":["a","A"]}}}`, `communication_module: expected a valid question, found the option "A" stands twice`},
		"no question":                {`{"pre_text":"a","communication_module":{"type":"MultipleChoice","data":{"options":["a","b"]}}}`, "communication_module: expected a valid question"},
		"an empty message":           {`{"pre_text":"a","communication_module":{"type":"Validation","data":{"message":""}}}`, "communication_module: expected a valid question"},
		"a plan that is a list":      {`{"pre_text":"a","plan":[]}`, `plan: expected an object {"steps": […]}, found a list`},
		"many errors":                {`{"pre_text":"a","data_commands":[` + many + `{"type":"TOOL_DATA"}]}`, "data_commands[9].type: expected the name of a command"},
	} {
		t.Run(name, func(t *testing.T) {
			got, errs := full().Parse(c.raw)
			if errs == nil {
				t.Fatalf("it was read as %+v", got)
			}
			if len(errs.List) > 10 || !strings.Contains(errs.Error(), c.want) {
				t.Errorf("got  %s\nwant %s", errs, c.want)
			}
			if correction := errs.Correction(false); len(correction) > 10_000 || !strings.Contains(correction, "- "+errs.List[0].Error()) {
				t.Errorf("the correction has %d bytes: %.500s", len(correction), correction)
			}
			if french := errs.Correction(true); !strings.HasPrefix(french, "Ta ") || !strings.Contains(french, "- "+errs.List[0].Error()) {
				t.Errorf("the French correction: %.500s", french)
			}
		})
	}
}

// TestFieldsOfTools: without the tool there is no field; where nobody can be asked the question is
// read all the same, for the engine to refuse with its note (spec 4.5).
func TestFieldsOfTools(t *testing.T) {
	bare := dialect.New(definitions()[:3], dialect.Options{})
	for _, raw := range []string{`{"pre_text":"a","completed":true}`, `{"pre_text":"a","plan":{}}`, `{"pre_text":"a","communication_module":{"type":"Validation","data":{"message":"?"}}}`} {
		if _, errs := bare.Parse(raw); errs == nil {
			t.Errorf("%s was taken", raw)
		}
	}
	if text := bare.Instructions(); strings.Contains(text, "completed") || strings.Contains(text, "communication_module") || strings.Contains(text, `"plan"`) {
		t.Errorf("fields without a tool are offered:\n%s", text)
	}
	alone := dialect.New(definitions(), dialect.Options{})
	if strings.Contains(alone.Instructions(), "communication_module") {
		t.Error("a question is offered where nobody can be asked")
	}
	reply, errs := alone.Parse(`{"pre_text":"a","communication_module":{"type":"Validation","data":{"message":"?"}}}`)
	if errs != nil || len(reply.Calls) != 1 || reply.Calls[0].Role != regie.RoleQuestion {
		t.Errorf("the engine does not get to see the question: %v, %v", reply, errs)
	}
}

// TestFind_ClientTool: a model may name a client's tool as its client does.
func TestFind_ClientTool(t *testing.T) {
	j := dialect.New([]regie.ToolDefinition{
		{Name: "a.b", Aliases: []string{"Read"}, Kind: regie.KindQuery},
		{Name: "client.Read", Role: regie.RoleClient, Kind: regie.KindQuery},
		{Name: "c.d", Aliases: []string{"Read"}, Kind: regie.KindQuery},
	}, dialect.Options{})
	for _, name := range []string{"Read", "client__Read", "client.Read"} {
		if d, ok := j.Find(name); !ok || d.Name != "client.Read" {
			t.Errorf("%s leads to %q", name, d.Name)
		}
	}
}

// TestRead is the canonical turn (decision 7) of each sort of reply.
func TestRead(t *testing.T) {
	thinking := provider.Part{Type: regie.PartThinking, Text: "hm", Provider: "openai"}
	text := func(s string) provider.Part { return provider.Part{Type: regie.PartText, Text: s} }
	turn := full().Read([]provider.Part{thinking, text(`Look: {"pre_text":"I look.",`), text(`"data_commands":[{"type":"TOOL_DATA"}]}`)})
	want := []provider.Part{thinking, text("I look."), {Type: regie.PartCall, Call: &provider.Call{Name: "records.get", Arguments: "{}"}}}
	if diff := cmp.Diff(want, turn.Parts); diff != "" || turn.Errors != nil || !strings.HasPrefix(turn.Verbatim, "Look: ") {
		t.Errorf("%q, %v\n%s", turn.Verbatim, turn.Errors, diff)
	}
	if turn = full().Read([]provider.Part{text(`{"pre_text":"x"}`)}); turn.Verbatim != "" {
		t.Errorf("nothing stood around the object, and yet %q is kept", turn.Verbatim)
	}
	turn = full().Read([]provider.Part{thinking, text("I cannot."), {Type: regie.PartCall, Call: &provider.Call{Name: "files__write_file", Arguments: "{}"}}})
	if turn.Errors == nil || turn.Reply != nil || len(turn.Parts) != 2 || turn.Parts[1].Text != "ai_response_invalid_format\nI cannot." {
		t.Errorf("an unreadable reply: %+v", turn)
	}
	if raw, ok := dialect.Unreadable(turn.Parts[1].Text); !ok || raw != "I cannot." {
		t.Errorf("what the model wrote is %q", raw)
	}
	if turn = full().Read([]provider.Part{text(`{"pre_text":"x"}`), {Type: regie.PartCall, Call: &provider.Call{Name: "files__write_file"}}}); turn.Errors == nil {
		t.Error("a call by the API's own way was dropped without a word")
	}
}

// TestHostileCost bounds the time that hostile replies of 4 MiB take; a cost that grows with the
// square would take hours.
func TestHostileCost(t *testing.T) {
	const size = 4 << 20
	for name, raw := range map[string]string{
		"open brackets":          strings.Repeat(`{"`, size/2),
		"open objects":           strings.Repeat(`{"a":`, size/5),
		"spaces after a bracket": strings.Repeat("{"+strings.Repeat(" ", 1000), size/1001),
		"commas":                 `{"pre_text":` + strings.Repeat(", ", size/2) + "}",
		"empty objects":          strings.Repeat("{}", size/2),
		"objects of ours":        strings.Repeat(`{"pre_text":1}`, size/14),
		"nearly of ours":         strings.Repeat(`{"x":"pre_text"}{"x":{"pre_text":1}}`, size/37),
		"backslashes":            `{"pre_text":"` + strings.Repeat(`\`, size+1) + `"}`,
		"keys":                   `{"pre_text":"x"` + strings.Repeat(`,"":1`, size/5) + "}",
		"commands":               `{"pre_text":"x","data_commands":[` + strings.Repeat(`{},`, size/3) + "]}",
		"lists":                  strings.Repeat("[", size),
	} {
		started := time.Now()
		if _, errs := full().Parse(raw); errs == nil {
			t.Errorf("%s: taken for a reply", name)
		}
		if took := time.Since(started); took > 20*time.Second {
			t.Errorf("%s: %s", name, took)
		}
	}
}

// TestInstructions compares what a model reads with a golden file.
func TestInstructions(t *testing.T) {
	if a, b := full().Instructions(), full().Instructions(); a != b {
		t.Error("the same tools give different bytes")
	}
	if !json.Valid(full().Schema()) {
		t.Errorf("the schema is no JSON: %s", full().Schema())
	}
	automation := dialect.New(definitions(), dialect.Options{Automation: true}).Instructions()
	french := dialect.New(definitions(), dialect.Options{Questions: true, CallsInReply: 10, French: true, Module: session.ParseModule})
	if !json.Valid(french.Schema()) {
		t.Errorf("the French schema is no JSON: %s", french.Schema())
	}
	for name, got := range map[string]string{"chat.golden": full().Instructions(), "automation.golden": automation, "french.golden": french.Instructions()} {
		file := filepath.Join("testdata", name)
		if *update {
			if err := os.MkdirAll("testdata", 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
