package chat

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/sanitize"
)

// listWithin is how long it may take until all providers have said which models they have: a little
// longer than each has for it.
const listWithin = 6 * time.Second

// modelName returns a model with its provider, where that is known.
func modelName(provider, model string) string {
	if provider == "" {
		return sanitize.Line(model)
	}
	return sanitize.Line(provider + " / " + model)
}

// EngineModel is what answers for an agent where a chat asks for no model.
func EngineModel(agents []dispatch.AgentView, agent string) (provider, model string) {
	for i := range agents {
		if a := &agents[i]; a.Name == agent {
			return a.Provider, a.Model
		}
	}
	return "", ""
}

// LeavesModel reports whether a chat leaves its model to the agent: it names none, or one that no
// person chose.
func LeavesModel(request *dispatch.RunRequest) bool {
	return request.Model == "" || request.ModelDefault && request.Agent != "main"
}

// answering is what is known of the models of an engine, and of the one that answers next.
type answering struct {
	agents          []dispatch.AgentView
	provider, model string
	list            []dispatch.ProviderModels
	err             error // why there is no list: what was used can be chosen all the same
}

// chooseModel says which model answers and which there are, or chooses another one.
func chooseModel(c *Conversation, name string) {
	if name != "" {
		loadBeside(c, func(ctx context.Context) ([]dispatch.ProviderView, error) {
			return c.Control.Catalog.Providers(ctx)
		},
			func(providers []dispatch.ProviderView) { c.setModel(providers, name) })
		return
	}
	request := c.Request
	c.Asking = c.Text.T("listing the models…")
	loadBeside(c, func(ctx context.Context) (has answering, err error) {
		if has.agents, err = c.Control.Agents.List(ctx, dispatch.AgentFilter{Root: request.Root}); err != nil {
			return has, err
		}
		if has.provider, has.model = request.Provider, request.Model; LeavesModel(&request) {
			has.provider, has.model = EngineModel(has.agents, request.Agent)
		}
		asking, cancel := context.WithTimeout(ctx, listWithin)
		defer cancel()
		has.list, has.err = c.Control.Catalog.Models(asking)
		return has, nil
	}, c.offerModels)
}

// offerModels shows which model answers, which providers do not, and has the person choose.
func (c *Conversation) offerModels(has answering) {
	c.Renderer.ShowError(has.err)
	if has.model == "" {
		c.Note(c.Text.T("no model is chosen"))
	} else {
		c.Note(c.Text.T("%s answers; /model NAME chooses another one", modelName(has.provider, has.model)))
	}
	choice := &Choice{Title: c.Text.T("which model:"), Then: func(name string) { chooseModel(c, name) }}
	add := func(provider, name string) {
		value := strings.TrimPrefix(provider+"/"+name, "/")
		if name != "" && !slices.Contains(choice.Options, Option{value, value}) {
			choice.Options = append(choice.Options, Option{value, value})
		}
	}
	add(has.provider, has.model)
	for i := range has.agents {
		add(has.agents[i].Provider, has.agents[i].Model)
	}
	for i := range has.list {
		p := &has.list[i]
		if !p.Reachable {
			c.Note("  ! " + sanitize.Line(p.Name+": "+cmp.Or(c.Text.Sentence(p.Said), p.Error,
				c.Text.T("no key: regie setup stores one, or api_key_env in regie.yaml names its variable"))))
		}
		for k := range p.Models {
			if v := &p.Models[k]; v.Tools || !v.Embeds {
				add(p.Name, v.Name)
			}
		}
	}
	if len(choice.Options) > 0 {
		c.Renderer.Choose(choice)
	}
}

// setModel has a model answer from the next message on.
func (c *Conversation) setModel(providers []dispatch.ProviderView, name string) {
	provider, model, found := strings.Cut(name, "/")
	if found && slices.ContainsFunc(providers, func(p dispatch.ProviderView) bool { return p.Name == provider }) {
		c.Request.Provider, name = provider, model
		if c.Settings != nil && !c.Request.Settings.IsZero() {
			c.Request.Settings = c.Settings(provider)
		}
	}
	c.Request.Model, c.Request.ModelDefault = name, false
	c.Note(c.Text.T("%s answers from the next message on", modelName(c.Request.Provider, name)))
}
