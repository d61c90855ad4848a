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
	"github.com/regie-run/regie/internal/plain"
)

// newToolsCommand lists what agents can call (spec 10.1).
func newToolsCommand(env *environment) *cobra.Command {
	var asJSON bool
	newList := func(use string) *cobra.Command {
		cmd := &cobra.Command{
			Use: use, Args: arguments(0, 0), Short: env.T("The tools that agents can call"),
			Long: env.T("List the tools that agents can call: each with its kind (a query only reads, an action changes something) and its effect class, which says what becomes of a call that is cut (read: it is made again, keyed: too, under the same key; verifiable: what it was to do is looked at; once: a person is asked).\n\nWhat a call may do without asking is another matter: see regie rules."),
			RunE: func(cmd *cobra.Command, _ []string) error {
				found, unknown, err := listTools(cmd.Context(), env)
				if err != nil || asJSON {
					return orJSON(env, found, err)
				}
				p := env.printer()
				for i := range found {
					t := &found[i]
					p.line("%-26s %-6s %-10s %s", plain.Line(t.Name), t.Kind, t.Class,
						oneLine(plain.Line(t.Description), 100))
				}
				if len(unknown) > 0 {
					p.textf("! ", "tools of MCP servers are listed while an engine runs that has started them: %s",
						plain.Line(strings.Join(unknown, ", ")))
				}
				return p.err
			},
		}
		addJSONFlag(env, cmd, &asJSON)
		return cmd
	}
	show := &cobra.Command{
		Use: "show NAME", Args: arguments(1, 1), Short: env.T("One tool, with the JSON Schema of its arguments"),
		RunE: func(cmd *cobra.Command, args []string) error {
			found, _, err := listTools(cmd.Context(), env)
			if err != nil {
				return err
			}
			at := slices.IndexFunc(found, func(t regie.ToolDefinition) bool {
				return t.Name == args[0] || slices.Contains(t.Aliases, args[0])
			})
			if at < 0 {
				return regie.Errorf(regie.CodeNotFound, "there is no tool %q here: regie tools lists them", args[0])
			}
			if asJSON {
				return writeJSON(env.stdout, found[at])
			}
			return showTool(env, &found[at])
		},
	}
	addJSONFlag(env, show, &asJSON)
	cmd := newList("tools")
	cmd.AddCommand(newList("list"), show)
	return cmd
}

// listTools asks what agents can call; before the first run these are the built-in tools. unknown
// are the MCP servers whose tools no running engine knows.
func listTools(ctx context.Context, env *environment) (found []regie.ToolDefinition, unknown []string, err error) {
	builtIn, err := app.HouseTools(env.config)
	if err != nil {
		return nil, nil, err
	}
	unknown = env.config.File.MCPNames()
	found, err = readStoreOr(ctx, env, builtIn, func(conn *app.Conn) ([]regie.ToolDefinition, error) {
		if !conn.IsEngine() {
			unknown = nil
		}
		return conn.Tools(ctx)
	})
	return found, unknown, err
}

// showTool prints a tool with its whole description, which is the model's and English, and its
// schema.
func showTool(env *environment, t *regie.ToolDefinition) error {
	p := env.printer()
	p.line("%s  %s, %s, %s", plain.Line(t.Name), t.Kind, t.Class, t.Risk)
	if len(t.Aliases) > 0 {
		p.line("%s", env.pair(env.T("other names"), plain.Line(strings.Join(t.Aliases, ", "))))
	}
	var schema bytes.Buffer
	if err := json.Indent(&schema, t.Parameters, "", "  "); err != nil {
		return err
	}
	p.line("\n%s\n\n%s", t.Description, schema.String())
	return p.err
}
