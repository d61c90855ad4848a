package gemini

import (
	"encoding/json"
)

// refused are the keywords that the API takes in no schema (spec 12.6).
var refused = []string{"$schema", "additionalProperties"}

// Where schemas stand inside a schema: one, a list of them, or an object of them by name.
var (
	oneSchema    = []string{"items", "not", "if", "then", "else", "contains", "propertyNames"}
	schemaList   = []string{"anyOf", "oneOf", "allOf", "prefixItems"}
	schemaByName = []string{"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"}
)

// plainSchema takes the keywords out that the API refuses, wherever a schema stands; a property
// that is named like one stays. The tool itself still checks what they said. Keys come out sorted,
// so the same schema has the same bytes.
func plainSchema(schema json.RawMessage) json.RawMessage {
	var members map[string]json.RawMessage
	if json.Unmarshal(schema, &members) != nil || members == nil {
		return schema // true or false, or no schema at all, which no registry has
	}
	for _, key := range refused {
		delete(members, key)
	}
	for _, key := range oneSchema {
		if inner, ok := members[key]; ok {
			members[key] = plainSchema(inner)
		}
	}
	for _, key := range schemaList {
		var list []json.RawMessage
		if json.Unmarshal(members[key], &list) != nil {
			continue
		}
		for i := range list {
			list[i] = plainSchema(list[i])
		}
		members[key] = encode(list)
	}
	for _, key := range schemaByName {
		var named map[string]json.RawMessage
		if json.Unmarshal(members[key], &named) != nil {
			continue
		}
		for name := range named {
			named[name] = plainSchema(named[name])
		}
		members[key] = encode(named)
	}
	return encode(members)
}

func encode(v any) json.RawMessage {
	data, err := json.Marshal(v)
	if err != nil { // what was decoded encodes
		return json.RawMessage(`{}`)
	}
	return data
}
