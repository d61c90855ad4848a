package dialect

import (
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/regie-run/regie"
)

// Encode writes a reply as the model would have to write it: Parse reads the same reply from it.
// The calls must be of one pattern and each must be Sayable; the text must not be blank.
func (j *JSON) Encode(r *Reply) string {
	b := appendString([]byte(`{"pre_text":`), r.PreText)
	if r.ValidationRequest {
		b = append(b, `,"validation_request":true`...)
	}
	b = appendCommands(b, r.Calls, regie.KindQuery, `,"data_commands":[`)
	b = appendCommands(b, r.Calls, regie.KindAction, `,"action_commands":[`)
	if r.PostText != "" {
		b = appendString(append(b, `,"post_text":`...), r.PostText)
	}
	if r.KeepControl {
		b = append(b, `,"keep_control":true`...)
	}
	for _, role := range []regie.ToolRole{regie.RoleQuestion, regie.RoleComplete, regie.RolePlan} {
		for i := range r.Calls {
			if r.Calls[i].Role == role {
				b = appendField(b, &r.Calls[i])
			}
		}
	}
	return string(append(b, '}'))
}

// appendField writes a call that is a field.
func appendField(b []byte, c *Call) []byte {
	switch c.Role {
	case regie.RoleComplete:
		return append(b, `,"completed":true`...)
	case regie.RolePlan:
		return append(append(b, `,"plan":`...), c.Arguments...)
	default:
		m, ok := moduleOf(c.Arguments)
		data, err := jsonv2.Marshal(m)
		if !ok || err != nil { // Sayable has looked
			return b
		}
		return append(append(b, `,"communication_module":`...), data...)
	}
}

func appendCommands(b []byte, calls []Call, kind regie.CallKind, open string) []byte {
	first := true
	for i := range calls {
		if calls[i].Role != "" || calls[i].Kind != kind {
			continue
		}
		if first {
			b = append(b, open...)
		} else {
			b = append(b, ',')
		}
		first = false
		b = appendString(append(b, `{"type":`...), calls[i].Tool)
		b = append(append(b, `,"params":`...), calls[i].Arguments...)
		b = append(b, '}')
	}
	if first {
		return b
	}
	return append(b, ']')
}

// Sayable reports whether the dialect can express a call: a native model may have asked an invalid
// question, or used a name that no command can have.
func (j *JSON) Sayable(c *Call) bool {
	if !strict(c.Arguments) {
		return false
	}
	switch c.Role {
	case regie.RoleQuestion:
		m, ok := moduleOf(c.Arguments)
		if ok && j.options.Module != nil {
			_, err := j.options.Module([]byte(c.Arguments))
			ok = err == nil
		}
		return ok && m.Type != ""
	case "":
		return c.Tool != "" && len(c.Tool) <= maxType
	default:
		return true
	}
}

// strict reports whether arguments are an object that the reader takes: strict JSON, not too deep.
func strict(arguments string) bool {
	if _, depth := closing(arguments, 0); depth > maxDepth-3 {
		return false
	}
	value := jsontext.Value(arguments)
	return value.IsValid() && value.Kind() == '{'
}

// Params returns the params of a stored call: what the model wrote where it is a strict JSON
// object, else none, like in the native dialect. flagged takes the native form of
// validation_request out (decision 40).
func Params(arguments string, flagged bool) string {
	if strings.TrimSpace(arguments) == "" || !strict(arguments) {
		return "{}"
	}
	if !flagged || !strings.Contains(arguments, "_validate") {
		return strings.TrimSpace(arguments)
	}
	var params map[string]jsontext.Value
	if jsonv2.Unmarshal([]byte(arguments), &params) != nil {
		return "{}"
	}
	delete(params, "_validate")
	data, err := jsonv2.Marshal(params, jsonv2.Deterministic(true))
	if err != nil { // what was read is written again
		return "{}"
	}
	return string(data)
}

// appendString writes a JSON string without escaping what needs none.
func appendString(b []byte, s string) []byte {
	out, err := jsontext.AppendQuote(b, strings.ToValidUTF8(s, "\uFFFD"))
	if err != nil { // valid text always encodes
		return append(b, `""`...)
	}
	return out
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }
