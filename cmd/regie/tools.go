package main

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/sanitize"
)

// newToolsCommand lists what agents can call (spec 10.1).
func newToolsCommand(env *environment) *cobra.Command {
	var asJSON bool
	tools := &cobra.Command{
		Use: "tools", Args: checkArgCount(0, 0), Short: env.T("List the tools of agents"),
		Long: env.T("List the tools that agents can call, each with its kind (a query only reads, an action changes something) and its effect class, which says what happens to an interrupted call (read: it is repeated; keyed: it is repeated with the same key; verifiable: its effect is checked; once: a person is asked).\n\nApprovals are a separate matter: see regie rules."),
		RunE: func(cmd *cobra.Command, _ []string) error {
			found, err := listTools(cmd.Context(), env)
			return printLines(env, asJSON, found, err, func(p *printer) {
				for i := range found {
					t := &found[i]
					p.printLine("%-26s %-6s %-10s %s", sanitize.Line(t.Name), t.Kind, t.Class,
						oneLine(sanitize.Line(t.Description), 100))
				}
			})
		},
	}
	tools.AddCommand(&cobra.Command{
		Use: "show NAME", Args: checkArgCount(1, 1), Short: env.T("Show one tool with the JSON Schema of its arguments"),
		RunE: func(cmd *cobra.Command, args []string) error {
			found, err := listTools(cmd.Context(), env)
			if err != nil {
				return err
			}
			at := slices.IndexFunc(found, func(t regie.ToolDefinition) bool {
				return t.Name == args[0] || slices.Contains(t.Aliases, args[0])
			})
			if at < 0 {
				return regie.Errorf(regie.CodeNotFound, "there is no tool %q here: regie tools lists them", args[0])
			}
			return printLines(env, asJSON, found[at], nil, func(p *printer) { showTool(p, &found[at]) })
		},
	})
	tools.PersistentFlags().BoolVar(&asJSON, "json", false, env.T("print JSON"))
	return tools
}

// listTools asks what agents can call; before the first run these are the built-in tools. Those of
// MCP servers are listed while an engine runs that has started them.
func listTools(ctx context.Context, env *environment) ([]regie.ToolDefinition, error) {
	builtIn, err := app.HouseTools(env.config)
	if err != nil {
		return nil, err
	}
	return readStoreOr(ctx, env, builtIn,
		func(conn *app.Conn) ([]regie.ToolDefinition, error) { return conn.Catalog.Tools(ctx) })
}

// showTool prints a tool with its whole description, which is the model's and English, and its
// schema.
func showTool(p *printer, t *regie.ToolDefinition) {
	p.printLine("%s  %s, %s, %s", sanitize.Line(t.Name), t.Kind, t.Class, t.Risk)
	if len(t.Aliases) > 0 {
		p.printLine("%s", p.text.T("%s: %s", p.text.T("other names"), sanitize.Line(strings.Join(t.Aliases, ", "))))
	}
	var schema bytes.Buffer
	_ = json.Indent(&schema, t.Parameters, "", "  ") // a tool without a valid schema is registered nowhere
	p.printLine("\n%s\n\n%s", t.Description, schema.String())
}
