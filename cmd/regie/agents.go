package main

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/control"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/plain"
)

// agentsCommand lists the agents that answer here, with the models that they answer with.
func (c *command) agentsCommand() *cobra.Command {
	var listJSON, showJSON bool
	list := func(cmd *cobra.Command, _ []string) error {
		agents, err := c.agents(cmd.Context())
		if err != nil {
			return err
		}
		if listJSON {
			return writeJSON(c.stdout, agents)
		}
		p := &printer{w: c.stdout}
		for i := range agents {
			p.line("%-16s %s", plain.Line(agents[i].Name), c.answersWith(&agents[i]))
		}
		return p.err
	}
	cmd := &cobra.Command{
		Use: "agents", Args: usage(cobra.NoArgs), Short: c.text.T("The agents, and the models that they answer with"),
		RunE: list,
	}
	below := &cobra.Command{
		Use: "list", Args: usage(cobra.NoArgs),
		Short: c.text.T("The agents, and the models that they answer with"), RunE: list,
	}
	for _, one := range []*cobra.Command{cmd, below} {
		one.Flags().BoolVar(&listJSON, "json", false, c.text.T("print JSON"))
		c.modelFlags(one)
	}
	show := &cobra.Command{
		Use: "show NAME", Args: usage(cobra.ExactArgs(1)), Short: c.text.T("One agent"),
		RunE: func(cmd *cobra.Command, args []string) error {
			agents, err := c.agents(cmd.Context())
			if err != nil {
				return err
			}
			at := slices.IndexFunc(agents, func(a dispatch.AgentView) bool { return a.Name == args[0] })
			if at < 0 {
				return regie.Errorf(regie.CodeNotFound, "there is no agent %q here: regie agents lists them", args[0])
			}
			if showJSON {
				return writeJSON(c.stdout, agents[at])
			}
			p := &printer{w: c.stdout}
			p.line("%s", c.pair(plain.Line(agents[at].Name), c.answersWith(&agents[at])))
			return p.err
		},
	}
	show.Flags().BoolVar(&showJSON, "json", false, c.text.T("print JSON"))
	c.modelFlags(show)
	cmd.AddCommand(below, show)
	return cmd
}

// agents asks what answers; before anything is stored the settings say it.
func (c *command) agents(ctx context.Context) ([]dispatch.AgentView, error) {
	if c.config.Server == "" {
		c.settle(ctx)
	}
	return look(ctx, c, control.Agents(c.config), func(conn *app.Conn) ([]dispatch.AgentView, error) {
		if asked := c.flags; !conn.IsEngine() && asked.Provider+asked.BaseURL+asked.Model+asked.Replay+
			asked.Record+asked.RecordRaw != "" {
			return nil, regie.Errorf(codeUsage,
				"another Regie is the engine here and says what its agents answer with: leave the flags of a model out")
		}
		return conn.Agents(ctx)
	})
}

// answersWith says which model an agent asks.
func (c *command) answersWith(a *dispatch.AgentView) string {
	if a.Provider == "" {
		return c.text.T("no model is chosen")
	}
	return plain.Line(c.text.T("%s, model %s", a.Provider, orDash(a.Model)))
}
