package dialect

import (
	"bytes"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/regie-run/regie"
)

// commands reads one of the two lists. A name that means no tool is left to the pipeline, whose
// answer names the nearest ones (spec 4.2); params are only looked at for being an object, because
// their schema is checked there too, for both dialects alike.
func (p *parsing) commands(m *member, kind regie.CallKind) []Call {
	switch m.value.Kind() {
	case '[':
	case 'n':
		return nil
	default:
		p.errs.add(m.name, "a list of commands", describe(m.value), "")
		return nil
	}
	var out []Call
	decoder := jsontext.NewDecoder(bytes.NewReader(m.value))
	_, err := decoder.ReadToken()
	for n := 0; err == nil && decoder.PeekKind() != ']'; n++ {
		if n == maxCommands {
			p.errs.add(m.name, fmt.Sprintf("at most %d commands", maxCommands), "more", "")
			return nil
		}
		var value jsontext.Value
		if value, err = decoder.ReadValue(); err == nil {
			if call, ok := p.command(fmt.Sprintf("%s[%d]", m.name, n), value, kind); ok {
				out = append(out, call)
			}
		}
	}
	if err != nil { // it was read once already
		p.errs.add(m.name, "strict JSON", "something else", "")
	}
	return out
}

func (p *parsing) command(at string, value jsontext.Value, kind regie.CallKind) (Call, bool) {
	if value.Kind() != '{' {
		p.errs.add(at, `an object {"type": …, "params": {…}}`, describe(value), "")
		return Call{}, false
	}
	members, problem := read(value)
	if problem != nil {
		p.errs.add(at, problem.Expected, problem.Found, problem.Hint)
		return Call{}, false
	}
	call := Call{Kind: kind, Arguments: "{}"}
	known := len(p.errs.List) + p.errs.More
	typed := false
	for i := range members {
		m := &members[i]
		switch m.name {
		case "type":
			typed = true
			name, ok := stringOf(m.value)
			if !ok || name == "" || len(name) > maxType {
				p.errs.add(at+".type", "the name of a command", describe(m.value), "")
				continue
			}
			call.Tool = p.named(at+".type", name, kind)
		case "params":
			switch m.value.Kind() {
			case '{':
				call.Arguments = string(m.value)
			case 'n':
			default:
				p.errs.add(at+".params", "an object", describe(m.value), "")
			}
		default:
			p.errs.add(at+"."+clip(m.name, 60), "type and params alone", "a field that does not exist",
				meant(m.name, []string{"type", "params"}))
		}
	}
	if !typed {
		p.errs.add(at+".type", "the name of a command", "nothing", "")
	}
	return call, len(p.errs.List)+p.errs.More == known
}

// named returns what a type means, and refuses it in the wrong list: what only reads may run
// unasked beside others, so where a command stands must say what it does (decision 27).
func (p *parsing) named(at, name string, kind regie.CallKind) string {
	tool := p.dialect.find(name)
	if tool == nil {
		return name
	}
	switch field := fieldOf(tool.Role); {
	case field != "":
		p.errs.add(at, "a command", fmt.Sprintf("%s, which is no command", quoted(name)), "use the field "+field)
	case tool.Kind == kind:
	case tool.Kind == regie.KindAction:
		p.errs.add(at, "a query", fmt.Sprintf("the action %s", quoted(name)), "put it into action_commands")
	default:
		p.errs.add(at, "an action", fmt.Sprintf("the query %s", quoted(name)), "put it into data_commands")
	}
	return tool.Name
}

// fieldOf is the field that a role is in this dialect (decision 27).
func fieldOf(role regie.ToolRole) string {
	switch role {
	case regie.RoleQuestion:
		return "communication_module"
	case regie.RoleComplete:
		return "completed"
	case regie.RolePlan:
		return "plan"
	default:
		return ""
	}
}
