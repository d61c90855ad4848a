package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/plain"
)

// modelsTime bounds how long the servers are waited for.
const modelsTime = 5 * time.Second

func (c *command) modelsCommand() *cobra.Command {
	var asJSON, types bool
	cmd := &cobra.Command{
		Use: "models", Args: usage(cobra.NoArgs),
		Short: c.text.T("What models are configured, where that comes from, and which answer"),
		Long:  c.text.T("List the configured providers of models: where each setting comes from, whether the server answers, and which models it has, with what they can do. Ollama on this machine is found by itself. Keys are never shown."),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if types {
				return c.types(asJSON)
			}
			return c.models(cmd.Context(), asJSON)
		},
	}
	cmd.Flags().BoolVar(&types, "types", false,
		c.text.T("list the types of providers that there are, with their settings; with --json as JSON Schema"))
	cmd.Flags().BoolVar(&asJSON, "json", false, c.text.T("print JSON"))
	c.modelFlags(cmd)
	return cmd
}

func (c *command) models(ctx context.Context, asJSON bool) error {
	list, err := c.listModels(ctx)
	if err != nil {
		return err
	}
	if asJSON {
		encoder := json.NewEncoder(c.stdout)
		encoder.SetIndent("", "  ")
		return encoder.Encode(map[string]any{
			"provider": c.config.Provider, "model": c.config.Model,
			"origin": c.config.Origin, "providers": list,
		})
	}
	switch {
	case c.config.Server != "": // the marks say what is chosen there
	case c.config.Provider == "":
		fmt.Fprintln(c.stdout, c.text.T("no model is chosen"))
		c.choices()
	default:
		fmt.Fprintln(c.stdout, plain.Strip(c.text.T("chosen: %s (%s), model %s (%s)", c.config.Provider,
			c.origin(c.config.Origin["provider"]),
			orDash(c.config.Model), orDash(c.origin(c.config.Origin["model"])))))
	}
	if asked := c.asked(); len(asked) > 0 {
		fmt.Fprintln(c.stdout, plain.Strip(c.text.T("asked with %s (%s)", strings.Join(asked, ", "),
			c.origin(c.config.Origin["file"]))))
	}
	for i := range list {
		c.showProvider(&list[i])
	}
	return nil
}

// listModels asks the providers, those of the server where one answers for this machine.
func (c *command) listModels(ctx context.Context) ([]app.ProviderInfo, error) {
	if c.config.Server == "" {
		c.settle(ctx)
		return app.ListModels(ctx, c.config, modelsTime), nil
	}
	conn, err := c.attach(ctx, app.Options{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	list, err := conn.Models(ctx)
	return app.ServedModels(list), errors.Join(err, conn.Close())
}

// asked is how the agent's model is asked, where the file says it, in the file's words.
func (c *command) asked() (out []string) {
	agent := c.config.File.Agents["main"]
	if agent.ReasoningEffort != "" {
		out = append(out, "reasoning_effort: "+agent.ReasoningEffort)
	}
	if agent.ParallelToolCalls != nil {
		out = append(out, fmt.Sprintf("parallel_tool_calls: %t", *agent.ParallelToolCalls))
	}
	return out
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func (c *command) showProvider(p *app.ProviderInfo) {
	line := func(s string) { fmt.Fprintln(c.stdout, plain.Strip(s)) }
	mark := " "
	if p.Chosen {
		mark = "*"
	}
	line("")
	kind := p.Type
	if p.API == config.APIResponses {
		kind += ", " + p.API
	}
	if p.Vendor != "" && p.Vendor != p.Type {
		kind += ", " + p.Vendor
	}
	line(fmt.Sprintf("%s %s (%s) %s", mark, p.Name, kind, p.BaseURL))
	var from []string
	for _, field := range slices.Sorted(maps.Keys(p.Origin)) {
		if origin := p.Origin[field]; origin != "" {
			from = append(from, field+": "+c.origin(origin))
		}
	}
	if len(from) > 0 {
		line("    " + strings.Join(from, ", "))
	}
	if p.Tier != "" {
		line("    service_tier: " + p.Tier)
	}
	switch {
	case p.Reachable:
		line("    ✓ " + c.text.T("answers; models: %d", len(p.Models)))
	case p.Failure != nil:
		line("    ✗ " + string(p.Code) + ": " + c.text.Error(p.Failure))
	case !p.Said.IsZero():
		line("    ✗ " + string(p.Code) + ": " + c.text.Sentence(p.Said))
	case p.Error != "":
		line("    ✗ " + string(p.Code) + ": " + p.Error)
	default:
		line("    ✗ " + c.text.T("no key: regie setup stores one, or api_key_env in regie.yaml names its variable"))
	}
	for _, size := range slices.Sorted(maps.Keys(p.Sizes)) {
		line("    " + size + " → " + p.Sizes[size])
	}
	const most = 40
	for i := range p.Models[:min(len(p.Models), most)] {
		line("    " + c.modelLine(&p.Models[i]))
	}
	if more := len(p.Models) - most; more > 0 {
		line("    " + c.text.T("and %d more (--json has all)", more))
	}
}

func (c *command) modelLine(m *app.ModelInfo) string {
	mark := "  "
	if m.Chosen {
		mark = "* "
	}
	var can []string
	if m.ContextTokens > 0 {
		can = append(can, c.text.T("context %d", m.ContextTokens))
	}
	if m.MaxOutput > 0 {
		can = append(can, c.text.T("output %d", m.MaxOutput))
	}
	switch {
	case m.Tools:
		can = append(can, c.text.T("tools"))
	case m.Embeds:
		can = append(can, c.text.T("embeds texts"))
	default:
		can = append(can, c.text.T("no tools"))
	}
	if m.Thinking {
		can = append(can, c.text.T("thinking"))
	}
	can = append(can, c.priceLine(m.Price))
	return fmt.Sprintf("%s%-36s %s", mark, m.Name, strings.Join(can, ", "))
}

// priceLine says what a model costs; what nobody knows is never 0 (spec 6.3).
func (c *command) priceLine(p app.Price) string {
	switch {
	case !p.Known:
		return c.text.T("price unknown")
	case p.Input == 0 && p.Output == 0 && p.UpTo == 0:
		return c.text.T("costs nothing")
	case p.UpTo > 0:
		return c.text.T("$%s in and $%s out for a million tokens, up to a prompt of %d tokens", regie.Dollars(p.Input),
			regie.Dollars(p.Output), p.UpTo)
	default:
		return c.text.T("$%s in and $%s out for a million tokens", regie.Dollars(p.Input), regie.Dollars(p.Output))
	}
}
