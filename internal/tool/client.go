package tool

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"github.com/regie-run/regie"
)

// clientTool is a tool that a client brings (decision 35). It is declared like any, and nothing
// here runs it.
type clientTool struct{ definition regie.ToolDefinition }

// Definition implements Tool.
func (t clientTool) Definition() regie.ToolDefinition { return t.definition }

// Run implements Tool.
func (t clientTool) Run(context.Context, *Invocation) (Result, error) {
	return Result{}, NotDone{Err: regie.Errorf(regie.CodeInternal, "the tool %s runs at the client", t.definition.Name)}
}

// WithClient returns a registry that has the tools of a client beside its own, in the toolkit
// regie.ToolkitClient. For Regie they are queries: what they change is nothing that it knows of,
// takes back or answers for. It returns CodeBadRequest for a name that is none, that stands twice,
// or that a model would take for another tool's, and for a schema that cannot be used.
func (r *Registry) WithClient(tools []regie.ClientTool) (*Registry, error) {
	if len(tools) == 0 {
		return r, nil
	}
	made := make([]Tool, len(tools))
	for i, t := range tools {
		if other := r.find(t.Name); other != nil {
			return nil, regie.Errorf(regie.CodeBadRequest, "the agent has a tool %s itself: give yours another name",
				t.Name)
		}
		parameters := t.Parameters
		if len(bytes.TrimSpace(parameters)) == 0 || bytes.Equal(bytes.TrimSpace(parameters), []byte("null")) {
			parameters = json.RawMessage(`{"type":"object","properties":{}}`)
		}
		if at := notSchema(parameters, ""); at != "" {
			return nil, regie.Errorf(regie.CodeBadRequest,
				"the parameters of your tool %s are no JSON Schema of an object (at %s): give one as {\"type\":\"object\",\"properties\":{…}}", t.Name, at)
		}
		made[i] = clientTool{regie.ToolDefinition{
			Name: regie.ToolkitClient + "." + t.Name, Description: t.Description, Parameters: parameters,
			Kind: regie.KindQuery, Class: regie.ClassRead,
			Risk: regie.RiskInternal, Role: regie.RoleClient,
		}}
	}
	for _, e := range r.sorted {
		if toolkitOf(e.definition.Name) == regie.ToolkitClient {
			return nil, regie.Errorf(regie.CodeBadRequest,
				"a server of this agent has the name %q, which is that of clients' tools: rename it",
				regie.ToolkitClient)
		}
	}
	return r.With(regie.ToolkitClient, made, nil)
}

// The keywords of JSON Schema with a schema, a list of them, and one for each name.
var (
	schemaIn = []string{
		"items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames",
		"unevaluatedItems", "unevaluatedProperties",
	}
	schemasIn = []string{"anyOf", "oneOf", "allOf", "prefixItems"}
	schemasOf = []string{"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"}
	types     = []string{"object", "array", "string", "number", "integer", "boolean", "null"}
)

// notSchema is where a client's parameters are no schema, as a JSON pointer; empty: nowhere. What
// else a schema says is looked at where it is resolved.
func notSchema(data json.RawMessage, at string) string {
	here := cmp.Or(at, "/")
	data = bytes.TrimSpace(data)
	var schema map[string]json.RawMessage
	if json.Unmarshal(data, &schema) != nil || schema == nil {
		if at != "" && (string(data) == "true" || string(data) == "false") {
			return ""
		}
		return here
	}
	if kind, is := schema["type"]; is && !isType(kind, at == "") {
		return at + "/type"
	}
	for _, name := range schemaIn {
		if inner, is := schema[name]; is {
			// a list, of older drafts
			if wrong := notSchema(inner, at+"/"+name); wrong != "" &&
				(name != "items" || bytes.TrimSpace(inner)[0] != '[') {
				return wrong
			}
		}
	}
	for _, name := range schemasIn {
		var list []json.RawMessage
		if inner, is := schema[name]; is && json.Unmarshal(inner, &list) != nil {
			return at + "/" + name
		}
		for i, inner := range list {
			if wrong := notSchema(inner, at+"/"+name+"/"+strconv.Itoa(i)); wrong != "" {
				return wrong
			}
		}
	}
	for _, name := range schemasOf {
		var of map[string]json.RawMessage
		if inner, is := schema[name]; is && json.Unmarshal(inner, &of) != nil {
			return at + "/" + name
		}
		for _, key := range slices.Sorted(maps.Keys(of)) {
			if wrong := notSchema(of[key], at+"/"+name+"/"+key); wrong != "" {
				return wrong
			}
		}
	}
	return ""
}

// isType reports whether a type is one, or several; that of all parameters is object.
func isType(kind json.RawMessage, whole bool) bool {
	var one string
	if json.Unmarshal(kind, &one) == nil {
		return slices.Contains(types, one) && (!whole || one == "object")
	}
	var several []string
	if json.Unmarshal(kind, &several) != nil || len(several) == 0 || whole && !slices.Contains(several, "object") {
		return false
	}
	return !slices.ContainsFunc(several, func(name string) bool { return !slices.Contains(types, name) })
}

// ClientSignature is the signature of a call of a client's tool that is not in the registry: of one
// in a history that it brings.
func ClientSignature(name, arguments string) regie.Hash {
	canonical, _ := canonicalise(arguments)
	return signature(name, canonical)
}
