package tui

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/plain"
)

const (
	// listWithin is how long it may take until all providers have said which models they have: a little longer than each has for it.
	listWithin = 6 * time.Second
	// listHolds is how long what they said is taken for true.
	listHolds = 5 * time.Minute
)

// served is what the providers have, as they said last.
type served struct {
	list []dispatch.ProviderModels
	at   time.Time
}

// models says which model answers, or chooses another one.
func (m *model) models(name string) tea.Cmd {
	has, listed := m.served, error(nil)
	if name == "" && time.Since(has.at) > listHolds {
		m.hint = m.Text.T("asking which models there are…")
	}
	return m.do(func(ctx context.Context) func() tea.Cmd {
		providers, err := m.Control.Providers(ctx)
		agents, agentErr := m.Control.Agents(ctx)
		if err == nil {
			err = agentErr
		}
		if err == nil && name == "" && time.Since(has.at) > listHolds {
			asking, cancel := context.WithTimeout(ctx, listWithin)
			list, failed := m.Control.Models(asking)
			cancel()
			if listed = failed; failed == nil {
				has = served{list, time.Now()}
			}
		}
		return func() tea.Cmd {
			m.hint = ""
			if err != nil {
				m.told(err)
				return nil
			}
			m.told(listed) // what was used can be chosen all the same
			m.providers, m.served = nil, has
			for _, p := range providers {
				m.providers = append(m.providers, p.Name)
			}
			if name != "" {
				m.choose(name)
				return nil
			}
			m.engine = agents
			if provider, model := m.answers(); model != "" {
				m.note(m.Text.T("%s answers; /model NAME chooses another one", named(provider, model)))
			} else {
				m.note(m.Text.T("no model is chosen"))
			}
			p := &picking{title: m.Text.T("which model:"), then: chosen((*model).choose)}
			for _, k := range m.answering(agents) {
				p.list = append(p.list, option{k, k})
			}
			if _, model := m.answers(); len(p.list) == 0 || len(p.list) == 1 && model != "" {
				return nil
			}
			return m.pick(p)
		}
	})
}

// answers is the model that answers the next message, as far as that is known: what the newest run was asked with, what this chat asks for, or, where it has no
// model of its own, what the engine has.
func (m *model) answers() (provider, model string) {
	switch {
	case m.meter.model != "":
		return m.meter.provider, m.meter.model
	case m.Request.Model != "":
		return m.Request.Provider, m.Request.Model
	}
	for i := range m.engine {
		if a := &m.engine[i]; a.Name == m.Request.Agent {
			return a.Provider, a.Model
		}
	}
	return "", ""
}

// engineHas asks what answers where the chat has no model of its own. A server that does not say is told of with the first message, not here.
func (m *model) engineHas() tea.Cmd {
	if m.Request.Model != "" {
		return nil
	}
	return m.do(func(ctx context.Context) func() tea.Cmd {
		agents, err := m.Control.Agents(ctx)
		return func() tea.Cmd {
			if err == nil {
				m.engine = agents
			}
			return nil
		}
	})
}

// named is a model with its provider, where that is known.
func named(provider, model string) string {
	if provider == "" {
		return plain.Line(model)
	}
	return plain.Line(provider + " / " + model)
}

// answering are the models that can be chosen, as provider/name: that of this chat and those of the agents first, then what the providers have. One that
// does not answer is told.
func (m *model) answering(agents []dispatch.AgentView) []string {
	var out []string
	add := func(provider, name string) {
		k := name
		if provider != "" {
			k = provider + "/" + name
		}
		if name != "" && !slices.Contains(out, k) {
			out = append(out, k)
		}
	}
	add(m.answers())
	for i := range agents {
		add(agents[i].Provider, agents[i].Model)
	}
	for i := range m.served.list {
		p := &m.served.list[i]
		if !p.Reachable {
			m.note("  ! " + plain.Line(p.Name+": "+cmp.Or(p.Error, m.Text.T("no key: regie setup stores one, or api_key_env in regie.yaml names its variable"))))
			for _, size := range slices.Sorted(maps.Keys(p.Sizes)) {
				m.note("    " + plain.Line(size+" → "+p.Sizes[size]))
			}
		}
		for k := range p.Models {
			if v := &p.Models[k]; v.Tools || !v.Embeds {
				add(p.Name, v.Name)
			}
		}
	}
	return out
}

// choose has a model answer from the next message on.
func (m *model) choose(name string) {
	if provider, model, found := strings.Cut(name, "/"); found && m.isProvider(provider) {
		m.Request.Provider, name = provider, model
		if m.Settings != nil && !m.Request.Settings.IsZero() {
			m.Request.Settings = m.Settings(provider)
		}
	}
	m.Request.Model, m.meter.model = name, ""
	m.note(m.Text.T("%s answers from the next message on", named(m.Request.Provider, name)))
}

func (m *model) isProvider(name string) bool { return slices.Contains(m.providers, name) }

// chosen is what follows a choice that takes no time.
func chosen(choose func(m *model, value string)) func(m *model, value string) tea.Cmd {
	return func(m *model, value string) tea.Cmd {
		choose(m, value)
		return nil
	}
}
