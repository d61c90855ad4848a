package main

import (
	"context"
	"os"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/config"
)

// settle chooses a model by itself where there is exactly one that could be meant, and says so
// (spec 10.1). Nothing but this machine is asked.
func (c *command) settle(ctx context.Context) {
	found, chose := app.Settle(ctx, &c.config, os.Getenv)
	if found.Ollama != "" {
		c.found = &found
	}
	if chose {
		c.tell(c.text.T("using %s with the model %s (%s); regie setup or --provider and --model choose another",
			c.config.Provider, c.config.Model, c.origin(c.config.Origin["provider"])))
	}
}

// origin says where a setting is from.
func (c *command) origin(from string) string {
	switch from {
	case "default":
		return c.text.T("default")
	case config.ProviderOllama:
		return c.text.T("found on this machine")
	default:
		return from
	}
}

// requireModel returns CodeNoModel where no model can answer, here or in the engine that runs. The
// sentence is short where the screen says the rest.
func (c *command) requireModel(ctx context.Context) error {
	if c.config.Server != "" { // it knows its own
		return nil
	}
	c.settle(ctx)
	err := c.config.RequireModel()
	// whose clients need no key: it answers with what it has
	if err != nil && c.config.Provider == "" && app.Runs(ctx, c.config) {
		return nil
	}
	if err == nil {
		err = app.Sized(ctx, &c.config)
	}
	if err == nil && !c.warned && app.Untempered(c.config) {
		c.warned = true
		c.tell(c.text.T(
			"agents.main.temperature (%s) is not sent: %s takes none as it is asked; its answers are kept and given again only with cache: on",
			c.config.Origin["file"], c.config.Model))
	}
	return err
}

// orSetup is requireModel for a person who is there: without any model they choose one first.
func (c *command) orSetup(ctx context.Context) error {
	err := c.requireModel(ctx)
	if regie.CodeOf(err) != regie.CodeNoModel || c.config.Provider != "" || !attended(c.stdin, c.stderr) {
		return err
	}
	if err := c.setup(ctx, setupFlags{}); err != nil {
		return err
	}
	if c.config, err = config.Load(os.Getenv, c.flags); err != nil {
		return err
	}
	return c.requireModel(ctx)
}

// choices is the screen for those who have no model: where it was looked for, and three ways to go
// on.
func (c *command) choices() {
	f := c.found
	if f == nil {
		return
	}
	out := func(format string) { c.tell(format) }
	out("")
	c.looked(f)
	out("")
	if n := len(f.Keys); n > 1 || n == 1 && f.Running {
		names := f.Keys
		if f.Running && len(f.Models) > 0 {
			names = append(names, config.ProviderOllama)
		}
		out(c.text.T(
			"Several could be meant: %s. Name one with --provider or REGIE_PROVIDER, or choose it for good with regie setup.", strings.Join(names, ", ")))
		return
	}
	out(c.text.T("Three ways to go on:"))
	out("  1. " + c.text.Typed("regie setup"))
	out("     " + c.text.T("paste a key, or name a model server; it is tried out and stored for you alone"))
	out("  2. ollama serve, ollama pull qwen3")
	out("     " +
		c.text.T("a model on this machine, which is then found by itself; for another server set REGIE_BASE_URL and REGIE_MODEL"))
	out("  3. " + c.text.Typed(`regie run --provider demo "…"`))
	out("     " + c.text.T("no model and no key: a few rules that drive the real tools"))
}

// looked says where a model was looked for.
func (c *command) looked(f *app.Found) {
	line := func(what, state string) { c.tell("  " + c.pair(what, state)) }
	c.tell(c.text.T("Looked for a model:"))
	for _, variable := range config.KeyVariables() {
		state := c.text.T("not set")
		if os.Getenv(variable) != "" {
			state = c.text.T("set")
		}
		for _, p := range c.config.Providers {
			if owner := p.ForeignKey(); owner != "" && p.Origin["api_key"] == variable {
				state = c.text.T("holds a key of %s, which is not sent to %s: regie setup stores it", owner, p.BaseURL)
			}
		}
		line(variable, state)
	}
	for _, name := range f.Keys {
		if p, _ := c.config.Named(name); p.Origin["api_key"] == "" || os.Getenv(p.Origin["api_key"]) == "" {
			line(name, p.BaseURL)
		}
	}
	where := c.text.T("Ollama at %s", f.Ollama)
	switch {
	case f.Elsewhere:
		line(where, c.text.T("on another machine, not asked; --provider ollama uses it"))
	case f.Slow:
		line(where, c.text.T("something listens there, and does not answer"))
	case !f.Running:
		line(where, c.text.T("not running"))
	case len(f.Models) == 0:
		line(where, c.text.T("running, without any model: ollama pull qwen3"))
	default:
		names := make([]string, 0, len(f.Models))
		for i := range f.Models {
			names = append(names, f.Models[i].Name)
		}
		line(where, strings.Join(names, ", "))
	}
	if file := c.config.Origin["file"]; file != "" {
		line(file, c.text.T("names no model"))
	}
}
