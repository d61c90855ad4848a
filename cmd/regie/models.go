package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/dispatch"
)

// modelsTime bounds the wait for the servers.
const modelsTime = 5 * time.Second

// newModelsCommand lists the configured providers and their models.
func newModelsCommand(env *environment) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "models", Args: checkArgCount(0, 0),
		Short: env.T("List the configured models, their sources and whether they answer"),
		Long:  env.T("List the configured model providers: the source of each setting, whether the server answers, and its models with their abilities. Ollama on this machine is found automatically. Keys are never shown."),
		RunE: func(cmd *cobra.Command, _ []string) error {
			list, err := listModels(cmd.Context(), env)
			return printLines(env, asJSON, map[string]any{
				"provider": env.config.Provider, "model": env.config.Model,
				"origin": env.config.Origin, "providers": list,
			}, err, func(p *printer) {
				printChosenModel(env, p)
				for i := range list {
					printProvider(env, p, &list[i])
				}
			})
		},
	}
	addJSONFlag(env, cmd, &asJSON)
	addModelFlags(env, cmd)
	return cmd
}

// listModels asks the providers, with --server those of the server.
func listModels(ctx context.Context, env *environment) ([]app.ProviderInfo, error) {
	if env.detectModel(ctx); env.config.Server == "" {
		return app.ListModels(ctx, env.config, modelsTime), nil
	}
	return readStore(ctx, env, func(conn *app.Conn) ([]app.ProviderInfo, error) {
		list, err := conn.Catalog.Models(ctx)
		return app.ServedModels(list), err
	})
}

// printChosenModel prints the chosen model.
func printChosenModel(env *environment, p *printer) {
	switch c := &env.config; {
	case c.Server != "": // the marks show the server's choice
	case c.Provider == "":
		p.printText("", "no model is chosen")
		env.showModelChoices()
	default:
		p.printText("", "chosen: %s (%s), model %s (%s)", c.Provider, env.describeOrigin(c.Origin["provider"]),
			cmp.Or(c.Model, "-"), cmp.Or(env.describeOrigin(c.Origin["model"]), "-"))
	}
}

func printProvider(env *environment, p *printer, info *app.ProviderInfo) {
	mark, kind := " ", info.Type
	if info.Chosen {
		mark = "*"
	}
	if info.API == config.APIResponses {
		kind += ", " + info.API
	}
	p.printLine("\n%s %s (%s) %s", mark, info.Name, kind, info.BaseURL)
	var from []string
	for _, field := range slices.Sorted(maps.Keys(info.Origin)) {
		if origin := info.Origin[field]; origin != "" {
			from = append(from, field+": "+env.describeOrigin(origin))
		}
	}
	if len(from) > 0 {
		p.printLine("    %s", strings.Join(from, ", "))
	}
	switch {
	case info.Reachable:
		p.printText("    ✓ ", "answers; models: %d", len(info.Models))
	case info.Failure != nil:
		p.printLine("    ✗ %s: %s", info.Code, env.text.Error(info.Failure))
	case info.Error != "":
		p.printLine("    ✗ %s: %s", info.Code, cmp.Or(env.text.Sentence(info.Said), info.Error))
	default:
		p.printText("    ✗ ", "no key: regie setup stores one, or api_key_env in regie.yaml names its variable")
	}
	for _, size := range slices.Sorted(maps.Keys(info.Sizes)) {
		p.printLine("    %s → %s", size, info.Sizes[size])
	}
	for i := range info.Models {
		p.printLine("    %s", modelLine(env, &info.Models[i]))
	}
}

// modelLine describes a model in a line.
func modelLine(env *environment, m *dispatch.ModelView) string {
	mark := "  "
	if m.Chosen {
		mark = "* "
	}
	var can []string
	if m.ContextTokens > 0 {
		can = append(can, env.T("context %d", m.ContextTokens))
	}
	if m.MaxOutput > 0 {
		can = append(can, env.T("output %d", m.MaxOutput))
	}
	switch {
	case m.Tools:
		can = append(can, env.T("tools"))
	case m.Embeds:
		can = append(can, env.T("embeds texts"))
	default:
		can = append(can, env.T("no tools"))
	}
	if m.Thinking {
		can = append(can, env.T("thinking"))
	}
	can = append(can, priceLine(env, m.Price))
	return fmt.Sprintf("%s%-36s %s", mark, m.Name, strings.Join(can, ", "))
}

// priceLine describes a price; an unknown one is never 0 (spec 6.3).
func priceLine(env *environment, p *dispatch.ModelPrice) string {
	if p == nil {
		return env.T("price unknown")
	}
	in, out := regie.Dollars(p.Input), regie.Dollars(p.Output)
	switch {
	case p.Input == 0 && p.Output == 0 && p.UpTo == 0:
		return env.T("costs nothing")
	default:
		return env.T("$%s in and $%s out for a million tokens", in, out)
	}
}
