package dialect

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/regie-run/regie"
)

// The bounds of a MultipleChoice's options (spec 4.5); the tool that asks has the others.
const (
	minOptions = 2
	maxOptions = 20
)

// question is the native form of a communication module: the arguments of the tool that asks.
type question struct {
	Question      string   `json:"question"`
	Options       []string `json:"options,omitempty"`
	AllowMultiple bool     `json:"allow_multiple,omitzero"`
	AllowFreeText bool     `json:"allow_free_text,omitzero"`
}

// module is the form of this dialect: {"type": …, "data": {…}}.
type module struct {
	Type regie.ModuleKind `json:"type"`
	Data any              `json:"data"`
}

// wireModule is a communication module as a model writes it.
type wireModule struct {
	Type regie.ModuleKind `json:"type"`
	Data jsontext.Value   `json:"data"`
}

// readModule reads a communication module (spec 4.5). One that is unknown or invalid is a format
// error (decision 53).
func (p *parsing) readModule() {
	const at = "communication_module"
	tool := p.dialect.byRole[regie.RoleQuestion]
	if !said(p.in.CommunicationModule) {
		return
	}
	if tool == nil {
		p.errs.add(at, "no question here", "one", "nobody can be asked: decide yourself, and say what you assumed")
		return
	}
	var in wireModule
	var asked question
	var yesNo struct {
		Message string `json:"message"`
	}
	problem := unmarshal(p.in.CommunicationModule, &in)
	switch {
	case problem != nil:
	case in.Type == regie.ModuleChoice && len(in.Data) > 0:
		problem = unmarshal(in.Data, &asked)
		if n := len(asked.Options); problem == nil && (n < minOptions || n > maxOptions) {
			problem = &FormatError{
				Path: "options", Expected: fmt.Sprintf("%d to %d options", minOptions, maxOptions),
				Found: strconv.Itoa(n),
				Hint:  "a question that is answered with yes or no is a Validation",
			}
		}
	case in.Type == regie.ModuleValidation && len(in.Data) > 0:
		problem = unmarshal(in.Data, &yesNo)
		asked.Question = yesNo.Message
	default:
		problem = &FormatError{
			Expected: `"MultipleChoice" or "Validation" as type, with data`, Found: "the type " + quoted(string(in.Type)),
		}
	}
	if problem != nil {
		p.errs.add(strings.TrimSuffix(at+"."+problem.Path, "."), problem.Expected, problem.Found, problem.Hint)
		return
	}
	p.addQuestion(at, tool, asked)
}

// addQuestion makes the call that a module is, and has the tool look at it.
func (p *parsing) addQuestion(at string, tool *regie.ToolDefinition, asked question) {
	asked.Question = storable(asked.Question)
	for i := range asked.Options {
		asked.Options[i] = storable(asked.Options[i])
	}
	arguments, err := jsonv2.Marshal(asked)
	if err == nil && p.dialect.options.Module != nil {
		_, err = p.dialect.options.Module(arguments)
	}
	switch {
	case err != nil:
		p.errs.add(at, "a valid question", clip(err.Error(), 300), "")
	case blank(asked.Question) || slices.ContainsFunc(asked.Options, blank):
		p.errs.add(at, "a valid question", "an empty text", "")
	default:
		p.addCall(tool, string(arguments))
	}
}

// moduleOf writes the arguments of the tool that asks as a module, if they are one.
func moduleOf(arguments string) (module, bool) {
	var asked question
	if jsonv2.Unmarshal([]byte(arguments), &asked, jsonv2.RejectUnknownMembers(true)) != nil || blank(asked.Question) {
		return module{}, false
	}
	if asked.Options == nil {
		if asked.AllowMultiple || asked.AllowFreeText {
			return module{}, false
		}
		return module{Type: regie.ModuleValidation, Data: struct {
			Message string `json:"message"`
		}{asked.Question}}, true
	}
	if len(asked.Options) < minOptions || len(asked.Options) > maxOptions || slices.ContainsFunc(asked.Options, blank) {
		return module{}, false
	}
	return module{Type: regie.ModuleChoice, Data: asked}, true
}
