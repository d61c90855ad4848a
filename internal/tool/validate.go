package tool

import (
	"bytes"
	"encoding/json"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/regie-run/regie"
)

// validateFlag is what a model sets in an action's arguments to have a person look at it: the
// native form of validation_request (decision 40). It is no argument of the tool: it is taken away
// before hashing, validation and execution.
const validateFlag = "_validate"

// takeFlag removes the flag from canonical arguments. A tool with a parameter of that name keeps
// it.
func (e *entry) takeFlag(canonical []byte) (arguments []byte, asks bool) {
	if e.definition.Kind != regie.KindAction || e.source.Properties[validateFlag] != nil {
		return canonical, false
	}
	return withoutFlag(canonical)
}

func withoutFlag(arguments []byte) ([]byte, bool) {
	if !bytes.Contains(arguments, []byte(`"`+validateFlag+`"`)) {
		return arguments, false
	}
	var members map[string]jsontext.Value
	if err := jsonv2.Unmarshal(arguments, &members); err != nil {
		return arguments, false
	}
	flag, ok := members[validateFlag]
	if !ok || flag.Kind() != 't' && flag.Kind() != 'f' {
		return arguments, false // anything else does not fit, and validation says so
	}
	delete(members, validateFlag)
	rest, err := jsonv2.Marshal(members, jsonv2.Deterministic(true))
	if err != nil {
		return arguments, false
	}
	canonical := jsontext.Value(rest)
	if err := canonical.Canonicalize(); err != nil {
		return arguments, false
	}
	return canonical, flag.Kind() == 't'
}

// flagSchema is what a model reads about the flag.
const flagSchema = `{"type":"boolean","description":"true to have the person check this call before it runs"}`

// wireSchema returns the schema on the wire: the tool's, for actions with the flag added.
func (e *entry) wireSchema() json.RawMessage {
	if e.definition.Kind != regie.KindAction || e.source.Properties[validateFlag] != nil {
		return e.definition.Parameters
	}
	var schema map[string]json.RawMessage
	properties := map[string]json.RawMessage{}
	if json.Unmarshal(e.definition.Parameters, &schema) != nil {
		return e.definition.Parameters
	}
	if raw, ok := schema["properties"]; ok && json.Unmarshal(raw, &properties) != nil {
		return e.definition.Parameters
	}
	properties[validateFlag] = json.RawMessage(flagSchema)
	with, err := json.Marshal(properties)
	if err != nil {
		return e.definition.Parameters
	}
	schema["properties"] = with
	out, err := json.Marshal(schema)
	if err != nil {
		return e.definition.Parameters
	}
	return out
}

// Declared is a tool's declaration for a model.
type Declared struct {
	Name        string // over the wire (decision 27)
	Description string
	Parameters  json.RawMessage
	Role        regie.ToolRole
}

// Declared returns the declarations of the tools, by canonical name: always the same bytes in the
// same order.
func (r *Registry) Declared() []Declared {
	out := make([]Declared, len(r.sorted))
	for i, e := range r.sorted {
		out[i] = Declared{
			Name: e.wire, Description: e.definition.Description,
			Parameters: e.declared, Role: e.definition.Role,
		}
	}
	return out
}

// Executable returns the arguments of a call as its tool gets them: what the model wrote, without
// the flag.
func (r *Registry) Executable(name, arguments string) json.RawMessage {
	raw := []byte(arguments)
	if len(bytes.TrimSpace(raw)) == 0 {
		return json.RawMessage("{}")
	}
	if e := r.byName[name]; e != nil {
		if bytes.Contains(raw, []byte(`\u`)) { // the flag may be spelt with escapes
			if canonical, problem := canonicalJSON(arguments); problem == nil {
				raw = canonical
			}
		}
		raw, _ = e.takeFlag(raw)
	}
	return raw
}
