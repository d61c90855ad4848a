package main

import (
	"cmp"
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/control"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/plain"
)

// newAgentsCommand lists the agents that answer here, with their models.
func newAgentsCommand(env *environment) *cobra.Command {
	var asJSON bool
	newList := func(use string) *cobra.Command {
		cmd := &cobra.Command{
			Use: use, Args: arguments(0, 0), Short: env.T("The agents, and the models that they answer with"),
			RunE: func(cmd *cobra.Command, _ []string) error {
				agents, err := listAgents(cmd.Context(), env)
				if err != nil || asJSON {
					return orJSON(env, agents, err)
				}
				p := env.printer()
				for i := range agents {
					p.line("%-16s %s", plain.Line(agents[i].Name), describeAgentModel(env, &agents[i]))
				}
				return p.err
			},
		}
		addJSONFlag(env, cmd, &asJSON)
		addModelFlags(env, cmd)
		return cmd
	}
	show := &cobra.Command{
		Use: "show NAME", Args: arguments(1, 1), Short: env.T("One agent"),
		RunE: func(cmd *cobra.Command, args []string) error {
			agents, err := listAgents(cmd.Context(), env)
			if err != nil {
				return err
			}
			at := slices.IndexFunc(agents, func(a dispatch.AgentView) bool { return a.Name == args[0] })
			if at < 0 {
				return regie.Errorf(regie.CodeNotFound, "there is no agent %q here: regie agents lists them", args[0])
			}
			if asJSON {
				return writeJSON(env.stdout, agents[at])
			}
			return env.printf("%s: %s", plain.Line(agents[at].Name), describeAgentModel(env, &agents[at]))
		},
	}
	addJSONFlag(env, show, &asJSON)
	addModelFlags(env, show)
	cmd := newList("agents")
	cmd.AddCommand(newList("list"), show)
	return cmd
}

// listAgents asks which agents answer; before the first run the settings say it.
func listAgents(ctx context.Context, env *environment) ([]dispatch.AgentView, error) {
	env.detectModel(ctx)
	return readStoreOr(ctx, env, control.Agents(env.config), func(conn *app.Conn) ([]dispatch.AgentView, error) {
		if f := env.flags; !conn.IsEngine() && f.Provider+f.BaseURL+f.Model+f.Replay+f.Record+f.RecordRaw != "" {
			return nil, regie.Errorf(codeUsage,
				"another Regie is the engine here and says what its agents answer with: leave the flags of a model out")
		}
		return conn.Agents(ctx)
	})
}

func describeAgentModel(env *environment, a *dispatch.AgentView) string {
	if a.Provider == "" {
		return env.T("no model is chosen")
	}
	return plain.Line(env.T("%s, model %s", a.Provider, cmp.Or(a.Model, "-")))
}
