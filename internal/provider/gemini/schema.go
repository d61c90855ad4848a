package gemini

import (
	"bytes"
	"encoding/json"
	"slices"
)

// refused are the keywords that the API takes in no schema (spec 12.6).
var refused = []string{"$schema", "additionalProperties"}

// schemasByName are the keywords with an object of schemas by name: a property may be named like a
// keyword.
var schemasByName = []string{"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"}

// plainSchema removes the keywords that the API refuses at any depth, but keeps properties of these
// names. The tool still validates its arguments. Keys come out sorted, so a schema always has the
// same bytes.
func plainSchema(schema json.RawMessage) json.RawMessage {
	var value any
	decoder := json.NewDecoder(bytes.NewReader(schema))
	decoder.UseNumber()
	if decoder.Decode(&value) != nil {
		return schema // no schema at all, which no registry has
	}
	data, err := json.Marshal(withoutRefused(value, false))
	if err != nil { // what was decoded encodes
		return json.RawMessage(`{}`)
	}
	return data
}

func withoutRefused(value any, byName bool) any {
	switch value := value.(type) {
	case []any:
		for i := range value {
			value[i] = withoutRefused(value[i], false)
		}
	case map[string]any:
		for key, inner := range value {
			if !byName && slices.Contains(refused, key) {
				delete(value, key)
			} else {
				value[key] = withoutRefused(inner, !byName && slices.Contains(schemasByName, key))
			}
		}
	}
	return value
}
