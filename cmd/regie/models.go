package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
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
	var asJSON, types bool
	cmd := &cobra.Command{
		Use: "models", Args: arguments(0, 0),
		Short: env.T("What models are configured, where that comes from, and which answer"),
		Long:  env.T("List the configured providers of models: where each setting comes from, whether the server answers, and which models it has, with what they can do. Ollama on this machine is found by itself. Keys are never shown."),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if types {
				return printProviderTypes(env, asJSON)
			}
			list, err := listModels(cmd.Context(), env)
			if err != nil || asJSON {
				return orJSON(env, map[string]any{
					"provider": env.config.Provider, "model": env.config.Model,
					"origin": env.config.Origin, "providers": list,
				}, err)
			}
			p := env.printer()
			printChosenModel(env, p)
			for i := range list {
				printProvider(env, p, &list[i])
			}
			return p.err
		},
	}
	cmd.Flags().BoolVar(&types, "types", false,
		env.T("list the types of providers that there are, with their settings; with --json as JSON Schema"))
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
		list, err := conn.Models(ctx)
		return app.ServedModels(list), err
	})
}

// printChosenModel prints the chosen model, and how the file says to ask it.
func printChosenModel(env *environment, p *printer) {
	switch c := &env.config; {
	case c.Server != "": // the marks show the server's choice
	case c.Provider == "":
		p.textf("", "no model is chosen")
		env.showModelChoices()
	default:
		p.textf("", "chosen: %s (%s), model %s (%s)", c.Provider, env.origin(c.Origin["provider"]),
			cmp.Or(c.Model, "-"), cmp.Or(env.origin(c.Origin["model"]), "-"))
	}
	var asked []string
	agent := env.config.File.Agents["main"]
	if agent.ReasoningEffort != "" {
		asked = append(asked, "reasoning_effort: "+agent.ReasoningEffort)
	}
	if agent.ParallelToolCalls != nil {
		asked = append(asked, fmt.Sprintf("parallel_tool_calls: %t", *agent.ParallelToolCalls))
	}
	if len(asked) > 0 {
		p.textf("", "asked with %s (%s)", strings.Join(asked, ", "), env.origin(env.config.Origin["file"]))
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
	if info.Vendor != "" && info.Vendor != info.Type {
		kind += ", " + info.Vendor
	}
	p.line("\n%s %s (%s) %s", mark, info.Name, kind, info.BaseURL)
	var from []string
	for _, field := range slices.Sorted(maps.Keys(info.Origin)) {
		if origin := info.Origin[field]; origin != "" {
			from = append(from, field+": "+env.origin(origin))
		}
	}
	if len(from) > 0 {
		p.line("    %s", strings.Join(from, ", "))
	}
	if info.Tier != "" {
		p.line("    service_tier: %s", info.Tier)
	}
	switch {
	case info.Reachable:
		p.textf("    ✓ ", "answers; models: %d", len(info.Models))
	case info.Failure != nil:
		p.line("    ✗ %s: %s", info.Code, env.text.Error(info.Failure))
	case !info.Said.IsZero():
		p.line("    ✗ %s: %s", info.Code, env.text.Sentence(info.Said))
	case info.Error != "":
		p.line("    ✗ %s: %s", info.Code, info.Error)
	default:
		p.textf("    ✗ ", "no key: regie setup stores one, or api_key_env in regie.yaml names its variable")
	}
	for _, size := range slices.Sorted(maps.Keys(info.Sizes)) {
		p.line("    %s → %s", size, info.Sizes[size])
	}
	const most = 40
	for i := range info.Models[:min(len(info.Models), most)] {
		p.line("    %s", modelLine(env, &info.Models[i]))
	}
	if more := len(info.Models) - most; more > 0 {
		p.textf("    ", "and %d more (--json has all)", more)
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
	case p.UpTo > 0:
		return env.T("$%s in and $%s out for a million tokens, up to a prompt of %d tokens", in, out, p.UpTo)
	default:
		return env.T("$%s in and $%s out for a million tokens", in, out)
	}
}

// providerType is a type of providers as programs read it.
type providerType struct {
	Type        string `json:"type"`
	DisplayName string `json:"display_name"`
	About       string `json:"about"`
	Key         string `json:"key"` // always, elsewhere, optional, never
	// Schema is that of an entry below providers; null where there is none.
	Schema *jsonschema.Schema `json:"config_schema"`
}

// printProviderTypes prints the provider types and their settings (spec 6.3).
func printProviderTypes(env *environment, asJSON bool) error {
	p, out := env.printer(), []providerType{}
	for i, t := range config.Types() {
		one := providerType{
			Type: t.Name, DisplayName: env.text.Sentence(t.Title), About: env.text.Sentence(t.About),
			Key: string(t.Key),
		}
		if t.HasEntry() {
			one.Schema = t.ConfigSchema(env.text.Sentence)
		}
		if out = append(out, one); asJSON {
			continue
		}
		if i > 0 {
			p.line("")
		}
		p.line("%s: %s\n  %s\n  %s", one.Type, one.DisplayName, one.About, keyLine(env, t.Key))
		for j := range t.Settings {
			p.line("%s", settingLine(env, &t.Settings[j]))
		}
	}
	if asJSON {
		return writeJSON(env.stdout, map[string]any{"types": out})
	}
	return p.err
}

func keyLine(env *environment, need config.KeyNeed) string {
	return cmp.Or(map[config.KeyNeed]string{
		config.KeyAlways:    env.T("wants a key"),
		config.KeyElsewhere: env.T("wants a key, except on this machine"),
		config.KeyOptional:  env.T("wants no key, unless something before it does"),
	}[need], env.T("needs no key"))
}

func settingLine(env *environment, s *config.Setting) string {
	out := fmt.Sprintf("    %-13s %s", s.Name, env.text.Sentence(s.About))
	var more []string
	if len(s.Words) > 1 {
		more = append(more, strings.Join(s.Words, " | "))
	}
	if s.Least > 0 {
		more = append(more, env.T("at least %s", strconv.FormatFloat(s.Least, 'f', -1, 64)))
	}
	if s.Default != "" {
		more = append(more, env.T("default %s", s.Default))
	}
	if s.Secret {
		more = append(more, env.T("never shown"))
	}
	if len(more) == 0 {
		return out
	}
	return out + " (" + strings.Join(more, "; ") + ")"
}
