package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"

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

// WithClient returns a registry with a client's tools added, in the toolkit regie.ToolkitClient.
// Regie treats them as queries: it neither knows their effects nor undoes or answers for them. It
// returns CodeBadRequest for an invalid or duplicate name, for one that a model would confuse with
// another tool's, and for an unusable schema.
func (r *Registry) WithClient(tools []regie.ClientTool) (*Registry, error) {
	if len(tools) == 0 {
		return r, nil
	}
	made := make([]Tool, len(tools))
	for i, t := range tools {
		if other := r.findEntry(t.Name); other != nil && r.byAlias[t.Name] != other {
			return nil, regie.Errorf(regie.CodeBadRequest, "the agent has a tool %s itself: give yours another name",
				t.Name)
		}
		parameters := t.Parameters
		if len(bytes.TrimSpace(parameters)) == 0 || bytes.Equal(bytes.TrimSpace(parameters), []byte("null")) {
			parameters = json.RawMessage(`{"type":"object","properties":{}}`)
		}
		if !describesObject(parameters) {
			return nil, regie.Errorf(regie.CodeBadRequest,
				"the parameters of your tool %s are no JSON Schema of an object: give one as {\"type\":\"object\",\"properties\":{…}}", t.Name)
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

// describesObject reports whether a client's parameters are a schema of an object.
func describesObject(parameters json.RawMessage) bool {
	var schema jsonschema.Schema
	if bytes.TrimSpace(parameters)[0] != '{' || json.Unmarshal(parameters, &schema) != nil {
		return false
	}
	untyped := schema.Type == "" && schema.Types == nil
	return untyped || schema.Type == "object" || slices.Contains(schema.Types, "object")
}

// ClientSignature is the signature of a call of a client's tool that is not in the registry: of one
// in a history that it brings.
func ClientSignature(name, arguments string) regie.Hash {
	canonical, _ := canonicalJSON(arguments)
	return signCall(name, canonical)
}
