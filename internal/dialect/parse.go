package dialect

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"unicode/utf8"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/regie-run/regie"
)

// wireReply is a reply as a model writes it (spec 2.2). A field that is null says nothing.
type wireReply struct {
	PreText             string         `json:"pre_text"`
	ValidationRequest   bool           `json:"validation_request"`
	DataCommands        []wireCommand  `json:"data_commands"`
	ActionCommands      []wireCommand  `json:"action_commands"`
	PostText            string         `json:"post_text"`
	KeepControl         bool           `json:"keep_control"`
	CommunicationModule jsontext.Value `json:"communication_module"`
	Completed           bool           `json:"completed"`
	Plan                jsontext.Value `json:"plan"`
}

type wireCommand struct {
	Type   string         `json:"type"`
	Params jsontext.Value `json:"params"`
}

// Parse reads what a model wrote (spec 3.3). It returns a reply or what is wrong, never both.
func (j *JSON) Parse(raw string) (*Reply, *FormatErrors) {
	reply, _, errs := j.parse(raw)
	return reply, errs
}

// parse also says whether anything else stood around the object.
func (j *JSON) parse(raw string) (reply *Reply, around bool, errs *FormatErrors) {
	at, problem := extract(raw)
	switch {
	case problem != nil:
		return nil, at.around, &FormatErrors{List: []FormatError{*problem}}
	case at.depth > maxDepth:
		problem = &FormatError{
			Expected: fmt.Sprintf("objects and lists at most %d deep", maxDepth), Found: fmt.Sprintf("%d", at.depth),
		}
	case strings.Count(string(at.object), "{") > maxObjects:
		problem = &FormatError{Expected: fmt.Sprintf("at most %d objects", maxObjects), Found: "more"}
	}
	p := parsing{dialect: j}
	if problem == nil {
		problem = unmarshal(at.object, &p.in)
	}
	if problem != nil {
		return nil, at.around, &FormatErrors{List: []FormatError{*problem}}
	}
	p.readReply()
	if len(p.errs.List) > 0 {
		return nil, at.around, &p.errs
	}
	return &p.out, at.around, nil
}

// unmarshal reads strict JSON into a value that has all possible fields. It refuses a duplicate key
// at any depth, because either value would be a guess.
func unmarshal(object []byte, into any) *FormatError {
	err := jsonv2.Unmarshal(object, into, jsonv2.RejectUnknownMembers(true))
	if err == nil {
		return nil
	}
	if wrong, ok := errors.AsType[*jsonv2.SemanticError](err); ok {
		out := &FormatError{
			Path: path(wrong.JSONPointer), Expected: expected(wrong.GoType), Found: describe(wrong.JSONKind),
		}
		if errors.Is(err, jsonv2.ErrUnknownName) {
			out.Expected, out.Found = "one of the fields of the schema", "a field that does not exist"
		}
		return out
	}
	out := &FormatError{Expected: "strict JSON", Found: clip(err.Error(), 200)}
	if bad, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		out.Path = path(bad.JSONPointer)
		if errors.Is(err, jsontext.ErrDuplicateName) {
			out.Expected, out.Found = "each key once", "it stands twice in its object"
		}
	}
	return out
}

var listIndex = regexp.MustCompile(`\.([0-9]+)`)

// path turns a JSON pointer into the way paths are written here: /action_commands/0/params is
// action_commands[0].params.
func path(pointer jsontext.Pointer) string {
	steps := strings.Join(strings.Split(strings.TrimPrefix(string(pointer), "/"), "/"), ".")
	return clip(listIndex.ReplaceAllString(steps, "[$1]"), 300)
}

// expected says which JSON belongs to a type.
func expected(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a text"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "a list"
	default:
		return "an object"
	}
}

// describe says what a value is, for a model that wrote another than it should have.
func describe(kind jsontext.Kind) string {
	switch kind {
	case 'n':
		return "null"
	case 't', 'f':
		return "true or false"
	case '"':
		return "a text"
	case '0':
		return "a number"
	case '[':
		return "a list"
	case '{':
		return "an object"
	default:
		return "something else"
	}
}

// parsing is a reply while it is read.
type parsing struct {
	dialect *JSON
	in      wireReply
	out     Reply
	errs    FormatErrors
}

// readReply reads every field, then holds what is there to the patterns of spec 2.2.
func (p *parsing) readReply() {
	p.out.PreText, p.out.PostText = storable(p.in.PreText), storable(p.in.PostText)
	p.out.ValidationRequest, p.out.KeepControl = p.in.ValidationRequest, p.in.KeepControl
	if blank(p.out.PreText) {
		p.errs.add("pre_text", "a text that is not empty: what the person reads", "nothing", "")
	}
	if blank(p.out.PostText) {
		p.out.PostText = ""
	}
	p.readPlan()
	p.readCommands("data_commands", p.in.DataCommands, regie.KindQuery)
	p.readCommands("action_commands", p.in.ActionCommands, regie.KindAction)
	p.readModule()
	if p.in.Completed {
		p.readCompleted()
	}
	p.checkPatterns()
}

// checkPatterns refuses what does not go together (spec 2.2, decisions 7 and 13). A field that says
// nothing is no field.
func (p *parsing) checkPatterns() {
	acts, asks := len(p.in.ActionCommands) > 0, said(p.in.CommunicationModule)
	commands := acts || len(p.in.DataCommands) > 0
	for _, rule := range []struct {
		broken                      bool
		field, expected, found, how string
	}{
		{
			acts && len(p.in.DataCommands) > 0, "action_commands", "either data_commands or action_commands", "both",
			"ask first, and act when the results are here",
		},
		{
			asks && commands, "communication_module", "a question in a reply without commands", "one beside commands",
			"ask first, or run the commands first",
		},
		{
			p.in.Completed && commands, "completed", "completed in a reply without commands", "it beside commands",
			"say it when their results are here",
		},
		{
			p.in.Completed && asks, "completed", "completed in a reply without a question",
			"it beside communication_module", "wait for the answer first",
		},
		{
			!acts && p.in.ValidationRequest, "validation_request", "it only beside action_commands",
			"it without them", "",
		},
		{!acts && p.out.PostText != "", "post_text", "it only beside action_commands", "it without them", ""},
		{!acts && p.in.KeepControl, "keep_control", "it only beside action_commands", "it without them", ""},
	} {
		if rule.broken {
			p.errs.add(rule.field, rule.expected, rule.found, rule.how)
		}
	}
}

// readPlan takes the plan as the tool's arguments.
func (p *parsing) readPlan() {
	plan, tool := p.in.Plan, p.dialect.byRole[regie.RolePlan]
	switch {
	case !said(plan):
	case tool == nil:
		p.errs.add("plan", "no plan here", "it", "")
	case plan.Kind() != '{':
		p.errs.add("plan", `an object {"steps": […]}`, describe(plan.Kind()), "")
	default:
		p.addCall(tool, string(plan))
	}
}

// readCommands reads one of the two lists. The pipeline answers an unknown tool name with the
// nearest ones (spec 4.2) and checks the schema of params for both dialects; here params only have
// to be an object.
func (p *parsing) readCommands(list string, commands []wireCommand, kind regie.CallKind) {
	for i, command := range commands {
		at, name := fmt.Sprintf("%s[%d]", list, i), storable(command.Type)
		call := Call{Tool: name, Kind: kind, Arguments: "{}"}
		switch {
		case name == "" || len(name) > maxType:
			p.errs.add(at+".type", "the name of a command", quoted(name), "")
		case p.dialect.find(name) != nil:
			call.Tool = p.checkList(at+".type", name, kind)
		}
		if said(command.Params) {
			call.Arguments = string(command.Params)
			if command.Params.Kind() != '{' {
				p.errs.add(at+".params", "an object", describe(command.Params.Kind()), "")
			}
		}
		p.out.Calls = append(p.out.Calls, call)
	}
}

// checkList returns the tool of a command, and refuses it in the wrong list: queries may run in
// parallel without an approval, so the list must match the tool (decision 27).
func (p *parsing) checkList(at, name string, kind regie.CallKind) string {
	tool := p.dialect.find(name)
	switch field := fieldOf(tool.Role); {
	case field != "":
		p.errs.add(at, "a command", quoted(name)+", which is no command", "use the field "+field)
	case tool.Kind == kind:
	case tool.Kind == regie.KindAction:
		p.errs.add(at, "a query", "the action "+quoted(name), "put it into action_commands")
	default:
		p.errs.add(at, "an action", "the query "+quoted(name), "put it into data_commands")
	}
	return tool.Name
}

// fieldOf returns the field that a role is in this dialect (decision 27).
func fieldOf(role regie.ToolRole) string {
	return map[regie.ToolRole]string{
		regie.RoleQuestion: "communication_module", regie.RoleComplete: "completed", regie.RolePlan: "plan",
	}[role]
}

// readCompleted makes the call that completed is: its summary is what the person reads anyway.
func (p *parsing) readCompleted() {
	tool, text := p.dialect.byRole[regie.RoleComplete], p.out.PreText
	if tool == nil {
		p.errs.add("completed", "no completed here", "it", "your answer ends the work")
		return
	}
	if utf8.RuneCountInString(text) > maxSummary {
		text = string([]rune(text)[:maxSummary-1]) + "…"
	}
	p.addCall(tool, string(append(appendString([]byte(`{"summary":`), text), '}')))
}

// addCall adds a field that is a call in the native dialect.
func (p *parsing) addCall(tool *regie.ToolDefinition, arguments string) {
	p.out.Calls = append(p.out.Calls, Call{Tool: tool.Name, Kind: tool.Kind, Role: tool.Role, Arguments: arguments})
}

// said reports whether a field is there and not null.
func said(value jsontext.Value) bool { return len(value) > 0 && value.Kind() != 'n' }

// storable is a text that every store takes: without NUL.
func storable(s string) string { return strings.ReplaceAll(s, "\x00", "\uFFFD") }
