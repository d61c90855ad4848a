package gemini

import (
	"encoding/json"
	"maps"
	"slices"
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

// refusedIn returns a keyword that the API refuses and that stands in a schema, or "".
func refusedIn(schema json.RawMessage) string {
	var decoded any // once: each level anew would be read as often as it is deep
	if json.Unmarshal(schema, &decoded) != nil {
		return ""
	}
	return refusedBelow(decoded)
}

func refusedBelow(schema any) string {
	members, ok := schema.(map[string]any)
	if !ok {
		return ""
	}
	for _, key := range refused {
		if _, ok := members[key]; ok {
			return key
		}
	}
	var inner []any
	for _, key := range oneSchema {
		inner = append(inner, members[key])
	}
	for _, key := range schemaList {
		list, _ := members[key].([]any)
		inner = append(inner, list...)
	}
	for _, key := range schemaByName {
		named, _ := members[key].(map[string]any)
		inner = slices.AppendSeq(inner, maps.Values(named))
	}
	for _, s := range inner {
		if found := refusedBelow(s); found != "" {
			return found
		}
	}
	return ""
}
