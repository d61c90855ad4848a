package config

import (
	"encoding/json"
	"reflect"
	"slices"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
)

// Schema is the JSON Schema of regie.yaml: every key that the strict decoder knows, and no other
// (spec 13).
func Schema() *jsonschema.Schema {
	s := schemaOf(reflect.TypeFor[File](), "", keyRules())
	s.Schema, s.Title = "https://json-schema.org/draft/2020-12/schema", "regie.yaml"
	return s
}

// durations are those that time.ParseDuration reads, none below zero.
const durations = `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`

// schemaOf returns the schema of a type of the file, at a key.
func schemaOf(of reflect.Type, at string, rules map[string]keyRule) *jsonschema.Schema {
	s, r := &jsonschema.Schema{}, rules[at]
	switch kind := of.Kind(); {
	case of == reflect.TypeFor[time.Duration]():
		s.Type, s.Pattern = "string", durations
	case of == reflect.TypeFor[Span]():
		s.Type, s.Pattern = "string", "^"+never+"$|"+durations
	case of == reflect.TypeFor[Dollars](), of == reflect.TypeFor[Cap](), kind == reflect.Float64:
		s.Type, s.Minimum = "number", new(float64)
	case of == reflect.TypeFor[Slots]():
		return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{
			{Type: "string", Enum: []any{SlotsExclusive}}, objectSchema(of, at, rules),
		}}
	case kind == reflect.Pointer:
		return schemaOf(of.Elem(), at, rules)
	case kind == reflect.Struct:
		return objectSchema(of, at, rules)
	case kind == reflect.Map && r.words != nil: // keys of its own
		s.Type, s.AdditionalProperties, s.Properties = "object", emptySchema(), map[string]*jsonschema.Schema{}
		for _, key := range r.words {
			s.Properties[key] = schemaOf(of.Elem(), joinKey(at, key), rules)
		}
		return s
	case kind == reflect.Map:
		s.Type, s.AdditionalProperties = "object", schemaOf(of.Elem(), at+".*", rules)
	case kind == reflect.Slice:
		s.Type, s.Items = "array", schemaOf(of.Elem(), at+"[]", rules)
	case kind == reflect.Bool:
		s.Type = "boolean"
	case kind == reflect.String:
		s.Type = "string"
	default:
		s.Type, s.Minimum = "integer", new(float64)
	}
	for _, word := range r.words {
		s.Enum = append(s.Enum, word)
	}
	if s.Minimum != nil {
		least, most := parseBound(r.least), parseBound(r.most)
		if s.Minimum = &least; r.zero {
			s.Minimum, s.AnyOf = nil, []*jsonschema.Schema{{Enum: []any{0}}, {Minimum: &least}}
		}
		if most > 0 {
			s.Maximum = &most
		}
	}
	if r.fallback != nil {
		s.Default, _ = json.Marshal(r.fallback) // of words and numbers
	}
	return s
}

// objectSchema returns the schema of a struct: no other keys than its own.
func objectSchema(of reflect.Type, at string, rules map[string]keyRule) *jsonschema.Schema {
	s := &jsonschema.Schema{
		Type: "object", Properties: map[string]*jsonschema.Schema{}, AdditionalProperties: emptySchema(),
	}
	for _, f := range fieldsOf(of) {
		below := joinKey(at, f.name)
		s.Properties[f.name] = schemaOf(f.of, below, rules)
		s.PropertyOrder = append(s.PropertyOrder, f.name)
		if rules[below].required {
			s.Required = append(s.Required, f.name)
		}
	}
	slices.Sort(s.Required)
	return s
}

func emptySchema() *jsonschema.Schema { return &jsonschema.Schema{Not: &jsonschema.Schema{}} }
