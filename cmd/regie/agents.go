package main

import (
	"cmp"

	"github.com/spf13/cobra"

	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/control"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/sanitize"
)

// newAgentsCommand lists the agents that answer here, with their models; before the first run the
// settings say it.
func newAgentsCommand(env *environment) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "agents", Args: checkArgCount(0, 0), Short: env.T("List the agents and their models"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			env.detectModel(cmd.Context())
			agents, err := readStoreOr(cmd.Context(), env, control.Agents(env.config),
				func(conn *app.Conn) ([]dispatch.AgentView, error) { return conn.Catalog.Agents(cmd.Context()) })
			return printLines(env, asJSON, agents, err, func(p *printer) {
				for _, a := range agents {
					model := env.T("no model is chosen")
					if a.Provider != "" {
						model = env.T("%s, model %s", a.Provider, cmp.Or(a.Model, "-"))
					}
					p.printLine("%-16s %s", sanitize.Line(a.Name), sanitize.Line(model))
				}
			})
		},
	}
	addJSONFlag(env, cmd, &asJSON)
	addModelFlags(env, cmd)
	return cmd
}
