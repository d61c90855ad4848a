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

// toolsCommand lists what agents can call (spec 10.1: what an agent sees).
func (c *command) toolsCommand() *cobra.Command {
	var listJSON, showJSON bool
	list := func(cmd *cobra.Command, _ []string) error {
		found, away, err := c.tools(cmd.Context())
		if err != nil {
			return err
		}
		if listJSON {
			return writeJSON(c.stdout, found)
		}
		p := &printer{w: c.stdout}
		for i := range found {
			t := &found[i]
			p.line("%-26s %-6s %-10s %s", plain.Line(t.Name), t.Kind, t.Class, oneLine(plain.Line(t.Description), 100))
		}
		if len(away) > 0 {
			p.line("! %s",
				plain.Line(c.text.T("tools of MCP servers are listed while an engine runs that has started them: %s",
					strings.Join(away, ", "))))
		}
		return p.err
	}
	about := c.text.T("List the tools that agents can call: each with its kind (a query only reads, an action changes something) and its effect class, which says what becomes of a call that is cut (read: it is made again, keyed: too, under the same key; verifiable: what it was to do is looked at; once: a person is asked).\n\nWhat a call may do without asking is another matter: see regie rules.")
	cmd := &cobra.Command{
		Use: "tools", Args: usage(cobra.NoArgs),
		Short: c.text.T("The tools that agents can call"), Long: about, RunE: list,
	}
	below := &cobra.Command{
		Use: "list", Args: usage(cobra.NoArgs),
		Short: c.text.T("The tools that agents can call"), Long: about, RunE: list,
	}
	for _, one := range []*cobra.Command{cmd, below} {
		one.Flags().BoolVar(&listJSON, "json", false, c.text.T("print JSON"))
	}
	show := &cobra.Command{
		Use: "show NAME", Args: usage(cobra.ExactArgs(1)),
		Short: c.text.T("One tool, with the JSON Schema of its arguments"),
		RunE: func(cmd *cobra.Command, args []string) error {
			found, _, err := c.tools(cmd.Context())
			if err != nil {
				return err
			}
			at := slices.IndexFunc(found, func(t regie.ToolDefinition) bool {
				return t.Name == args[0] ||
					slices.Contains(t.Aliases, args[0])
			})
			if at < 0 {
				return regie.Errorf(regie.CodeNotFound, "there is no tool %q here: regie tools lists them", args[0])
			}
			if showJSON {
				return writeJSON(c.stdout, found[at])
			}
			return c.showTool(&found[at])
		},
	}
	show.Flags().BoolVar(&showJSON, "json", false, c.text.T("print JSON"))
	cmd.AddCommand(below, show)
	return cmd
}

// tools asks what agents can call; before anything is stored it is what is built in. away are the
// MCP servers whose tools nobody knows, because no engine runs that would have started them.
func (c *command) tools(ctx context.Context) (found []regie.ToolDefinition, away []string, err error) {
	type answer struct {
		tools []regie.ToolDefinition
		here  bool // no engine runs
	}
	house, err := app.HouseTools(c.config)
	if err != nil {
		return nil, nil, err
	}
	out, err := look(ctx, c, answer{house, true}, func(conn *app.Conn) (answer, error) {
		tools, err := conn.Tools(ctx)
		return answer{tools, conn.IsEngine()}, err
	})
	if out.here {
		away = c.config.File.MCPNames()
	}
	return out.tools, away, err
}

// showTool prints a tool with its whole description, which is the model's and English, and its
// schema.
func (c *command) showTool(t *regie.ToolDefinition) error {
	p := &printer{w: c.stdout}
	p.line("%s  %s, %s, %s", plain.Line(t.Name), t.Kind, t.Class, t.Risk)
	if len(t.Aliases) > 0 {
		p.line("%s", c.pair(c.text.T("other names"), plain.Line(strings.Join(t.Aliases, ", "))))
	}
	p.line("")
	p.line("%s", t.Description)
	var schema bytes.Buffer
	if err := json.Indent(&schema, t.Parameters, "", "  "); err != nil {
		return err
	}
	p.line("")
	p.line("%s", schema.String())
	return p.err
}
