package main

import (
	"context"
	"os"
	"slices"
	"strings"

	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/config"
)

// detectModel chooses the only model that could be meant, where none is configured, and says so
// (spec 10.1). It asks this machine only.
func (env *environment) detectModel(ctx context.Context) {
	if env.config.Server != "" { // it knows its own
		return
	}
	found, chose := app.Settle(ctx, &env.config, os.Getenv)
	if found.Ollama != "" {
		env.detected = &found
	}
	if chose {
		env.printWrapped(env.T("using %s with the model %s (%s); regie setup or --provider and --model choose another",
			env.config.Provider, env.config.Model, env.describeOrigin(env.config.Origin["provider"])))
	}
}

// describeOrigin says where a setting is from.
func (env *environment) describeOrigin(from string) string {
	switch from {
	case "default":
		return env.T("default")
	case config.ProviderOllama:
		return env.T("found on this machine")
	default:
		return from
	}
}

// requireModel returns CodeNoModel where no model can answer, here or in the running engine.
func (env *environment) requireModel(ctx context.Context) error {
	if env.detectModel(ctx); env.config.Server != "" {
		return nil
	}
	if err := env.config.RequireModel(); err != nil {
		if env.config.Provider == "" && app.Runs(ctx, env.config) { // the running engine has a model
			return nil
		}
		return err
	}
	return nil
}

// offerModel names the models that are there by now, where only regie setup once chose the demo; it
// reports whether any is.
func (env *environment) offerModel(ctx context.Context) bool {
	if env.config.Provider != config.ProviderDemo || env.config.Origin["provider"] != env.config.Origin["setup"] {
		return false
	}
	found := app.Detect(ctx, env.config, os.Getenv)
	names := found.Keys
	if found.Running && len(found.Models) > 0 && !slices.Contains(names, config.ProviderOllama) {
		names = append(names, config.ProviderOllama)
	}
	if len(names) > 0 {
		env.printWrapped(env.T("! the demo answers, although a model could: %s; regie setup chooses one, --provider %s uses it once",
			strings.Join(names, ", "), names[0]))
	}
	return len(names) > 0
}

// showModelChoices shows where a model was looked for, and three ways to go on.
func (env *environment) showModelChoices() {
	f := env.detected
	if f == nil {
		return
	}
	env.printWrapped("")
	showDetected(env, f)
	env.printWrapped("")
	if names := f.Keys; len(names) > 0 {
		if f.Running {
			names = append(names, config.ProviderOllama)
		}
		env.printWrapped(env.T("Several providers are configured: %s. Choose one with --provider or REGIE_PROVIDER, or for good with regie setup.",
			strings.Join(names, ", ")))
		return
	}
	env.printWrapped(env.T("Three ways to go on:"))
	env.printWrapped("  1. " + "regie setup")
	env.printWrapped("     " + env.T("paste a key, or name a model server; it is tested and stored for you alone"))
	env.printWrapped("  2. ollama serve, ollama pull qwen3")
	env.printWrapped("     " + env.T("a model on this machine is then found automatically; for another server set REGIE_BASE_URL and REGIE_MODEL"))
	env.printWrapped("  3. " + `regie run --provider demo "…"`)
	env.printWrapped("     " + env.T("no model and no key: scripted replies that use the real tools"))
}

// showDetected shows where a model was looked for.
func showDetected(env *environment, f *app.Found) {
	line := func(what, state string) { env.printWrapped("  " + env.joinPair(what, state)) }
	env.printWrapped(env.T("Looked for a model:"))
	for _, variable := range config.KeyVariables() {
		state := env.T("not set")
		if os.Getenv(variable) != "" {
			state = env.T("set")
		}
		line(variable, state)
	}
	where := env.T("Ollama at %s", f.Ollama)
	switch {
	case f.Elsewhere:
		line(where, env.T("on another machine, not asked; --provider ollama uses it"))
	case !f.Running:
		line(where, env.T("not running"))
	case len(f.Models) == 0:
		line(where, env.T("running, without any model: ollama pull qwen3"))
	default:
		names := make([]string, 0, len(f.Models))
		for i := range f.Models {
			names = append(names, f.Models[i].Name)
		}
		line(where, strings.Join(names, ", "))
	}
	if file := env.config.Origin["file"]; file != "" {
		line(file, env.T("names no model"))
	}
}
