package dialect

import (
	"fmt"
	"slices"

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

// readModule reads a communication module (spec 4.5). One that is unknown or invalid is a format
// error (decision 53).
func (p *parsing) readModule(m *member) {
	at := m.name
	switch tool := p.dialect.byRole[regie.RoleQuestion]; {
	case m.value.Kind() == 'n':
		return
	case tool == nil:
		p.errs.add(at, "no question here", "one", "nobody can be asked: decide yourself, and say what you assumed")
		return
	case m.value.Kind() != '{':
		p.errs.add(at, `an object {"type": …, "data": {…}}`, describe(m.value), "")
		return
	}
	members, problem := read(m.value)
	if problem != nil {
		p.errs.add(at, problem.Expected, problem.Found, problem.Hint)
		return
	}
	var kind string
	var data []member
	known, hasData := len(p.errs.List)+p.errs.More, false
	for i := range members {
		switch field := &members[i]; {
		case field.name == "type":
			kind, _ = stringOf(field.value)
		case field.name == "data" && field.value.Kind() == '{':
			hasData = true
			data, _ = read(field.value) // it was read once already
		case field.name == "data":
			hasData = true
			p.errs.add(at+".data", "an object", describe(field.value), "")
		default:
			p.errs.add(at+"."+clip(field.name, 60), "type and data alone", "a field that does not exist",
				meant(field.name, []string{"type", "data"}))
		}
	}
	if !hasData {
		p.errs.add(at+".data", "an object", "nothing", "")
	}
	var asked question
	switch regie.ModuleKind(kind) {
	case regie.ModuleChoice:
		asked = p.choice(at+".data", data)
	case regie.ModuleValidation:
		asked = p.validation(at+".data", data)
	default:
		p.errs.add(at+".type", `"MultipleChoice" or "Validation"`, quoted(kind),
			meant(kind, []string{string(regie.ModuleChoice), string(regie.ModuleValidation)}))
	}
	if len(p.errs.List)+p.errs.More == known {
		p.asked(at, asked)
	}
}

// asked makes the call that a module is, and has the tool look at it.
func (p *parsing) asked(at string, asked question) {
	arguments, err := jsonv2.Marshal(asked)
	if err == nil && p.dialect.options.Module != nil {
		_, err = p.dialect.options.Module(arguments)
	}
	if err != nil {
		p.errs.add(at, "a valid question", clip(err.Error(), 300), "")
		return
	}
	tool := p.dialect.byRole[regie.RoleQuestion]
	p.module = []Call{{Tool: tool.Name, Kind: tool.Kind, Role: regie.RoleQuestion, Arguments: string(arguments)}}
}

func (p *parsing) choice(at string, data []member) question {
	var out question
	for i := range data {
		m := &data[i]
		switch m.name {
		case "question":
			out.Question = p.filled(at+".question", m.value)
		case "options":
			out.Options = p.options(at+".options", m.value)
		case "allow_multiple":
			out.AllowMultiple = p.boolean(at+".allow_multiple", m.value)
		case "allow_free_text":
			out.AllowFreeText = p.boolean(at+".allow_free_text", m.value)
		default:
			p.errs.add(at+"."+clip(m.name, 60), "question, options, allow_multiple, allow_free_text",
				"a field that does not exist",
				meant(m.name, []string{"question", "options", "allow_multiple", "allow_free_text"}))
		}
	}
	if !has(data, "question") {
		p.errs.add(at+".question", "a text", "nothing", "")
	}
	if !has(data, "options") {
		p.errs.add(at+".options", "a list of texts", "nothing", "a question without options is a Validation")
	}
	return out
}

func (p *parsing) validation(at string, data []member) question {
	var out question
	for i := range data {
		if m := &data[i]; m.name == "message" {
			out.Question = p.filled(at+".message", m.value)
		} else {
			p.errs.add(at+"."+clip(m.name, 60), "message alone", "a field that does not exist",
				meant(m.name, []string{"message"}))
		}
	}
	if !has(data, "message") {
		p.errs.add(at+".message", "a text", "nothing", "")
	}
	return out
}

func (p *parsing) filled(at string, value jsontext.Value) string {
	return p.text(&member{name: at, value: value}, true)
}

func (p *parsing) options(at string, value jsontext.Value) []string {
	if value.Kind() != '[' {
		p.errs.add(at, "a list of texts", describe(value), "")
		return nil
	}
	var values []jsontext.Value
	if err := jsonv2.Unmarshal(value, &values); err != nil || len(values) < minOptions || len(values) > maxOptions {
		p.errs.add(at, fmt.Sprintf("%d to %d options", minOptions, maxOptions), fmt.Sprintf("%d", len(values)),
			"a question that is answered with yes or no is a Validation")
		return nil
	}
	out := make([]string, len(values))
	for i, value := range values {
		out[i] = p.filled(fmt.Sprintf("%s[%d]", at, i), value)
	}
	return out
}

func has(members []member, name string) bool {
	return slices.ContainsFunc(members, func(m member) bool { return m.name == name })
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
