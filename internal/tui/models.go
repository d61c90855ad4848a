package tui

import (
	"context"
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
			m.note(m.Text.T("%s answers; /model NAME chooses another one", plain.Line(m.Request.Provider+" / "+m.Request.Model)))
			p := &picking{title: m.Text.T("which model:"), then: chosen((*model).choose)}
			for _, k := range m.answering(agents) {
				p.list = append(p.list, option{k, k})
			}
			if len(p.list) < 2 {
				return nil
			}
			return m.pick(p)
		}
	})
}

// answering are the models that can be chosen, as provider/name: that of this chat and those of the agents first, then what the providers have. One that
// does not answer is told.
func (m *model) answering(agents []dispatch.AgentView) []string {
	out := []string{m.Request.Provider + "/" + m.Request.Model}
	add := func(provider, name string) {
		if k := provider + "/" + name; name != "" && !slices.Contains(out, k) {
			out = append(out, k)
		}
	}
	for i := range agents {
		add(agents[i].Provider, agents[i].Model)
	}
	for i := range m.served.list {
		p := &m.served.list[i]
		if !p.Reachable && p.Error != "" {
			m.note("  ! " + plain.Line(p.Name+": "+p.Error))
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
	m.Request.Model = name
	m.note(m.Text.T("%s answers from the next message on", plain.Line(m.Request.Provider+" / "+m.Request.Model)))
}

func (m *model) isProvider(name string) bool { return slices.Contains(m.providers, name) }

// chosen is what follows a choice that takes no time.
func chosen(choose func(m *model, value string)) func(m *model, value string) tea.Cmd {
	return func(m *model, value string) tea.Cmd {
		choose(m, value)
		return nil
	}
}
