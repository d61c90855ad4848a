package mcpserver

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/sanitize"
)

// ofFiles is the name prefix of the tools that query a workspace.
const ofFiles = "files."

// addQueries offers the workspace's queries under their model-facing names (decision 27). Schema,
// description and execution are the registry's own.
func (s *server) addQueries(ctx context.Context, to *mcp.Server) error {
	definitions, err := s.Control.Tools(ctx)
	if err != nil {
		return err
	}
	for i := range definitions {
		d := &definitions[i]
		if d.Kind != regie.KindQuery || !strings.HasPrefix(d.Name, ofFiles) {
			continue
		}
		schema := map[string]any{}
		if err := json.Unmarshal(d.Parameters, &schema); err != nil {
			return regie.Errorf(regie.CodeInternal, "the schema of %s cannot be read: %v", d.Name, err)
		}
		s.nameable(schema)
		name := d.Name
		to.AddTool(&mcp.Tool{
			Name: strings.Replace(name, ".", "__", 1), Description: d.Description,
			InputSchema: schema, Annotations: reads(),
		}, func(ctx context.Context, request *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			content, err := s.callQuery(ctx, name, request.Params.Arguments)
			out := &mcp.CallToolResult{IsError: err != nil}
			if err != nil {
				content = s.callerError(err).Error()
			}
			out.Content = []mcp.Content{&mcp.TextContent{Text: sanitize.Strip(content)}}
			return out, nil
		})
	}
	return nil
}

// reads returns the hints of a tool that changes nothing and contacts no other system.
func reads() *mcp.ToolAnnotations {
	no := false
	return &mcp.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, DestructiveHint: &no, OpenWorldHint: &no}
}

const paramWorkspace = "workspace"

// nameable adds the workspace to a schema where the caller has to name it.
func (s *server) nameable(schema map[string]any) {
	if s.Request.Root != "" {
		return
	}
	properties, ok := schema["properties"].(map[string]any)
	if !ok {
		properties = map[string]any{}
		schema["properties"] = properties
	}
	properties[paramWorkspace] = map[string]any{"type": "string", "description": aboutWorkspace}
}

const aboutWorkspace = "the workspace, by its id, name or directory as list_workspaces has them; may be left out where there is only one"

// callQuery calls a query of the workspace that the arguments name.
func (s *server) callQuery(ctx context.Context, name string, arguments json.RawMessage) (string, error) {
	named := ""
	if s.Request.Root == "" && len(arguments) > 0 {
		members := map[string]json.RawMessage{}
		if err := json.Unmarshal(arguments, &members); err != nil {
			return "", regie.Errorf(regie.CodeBadArguments, "the arguments must be a JSON object")
		}
		if raw, ok := members[paramWorkspace]; ok {
			if err := json.Unmarshal(raw, &named); err != nil {
				return "", regie.Errorf(regie.CodeBadArguments, "the parameter %q must be a text", paramWorkspace)
			}
			delete(members, paramWorkspace)
			arguments, _ = json.Marshal(members) // of what was just read
		}
	}
	place, err := s.callWorkspace(ctx, named)
	if err != nil {
		return "", err
	}
	out, err := s.Control.Query(ctx, dispatch.QueryRequest{WorkspaceID: place.ID, Tool: name, Arguments: arguments})
	return out.Content, err
}
