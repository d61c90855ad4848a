package tui

import (
	"context"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/dispatch"
)

// listHolds is how long what they said is taken for true.
const listHolds = 5 * time.Minute

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
			asking, cancel := context.WithTimeout(ctx, chat.ListWithin)
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
			provider, name := m.answers()
			m.note(chat.Answers(m.Text, provider, name))
			chat.Silent(m.Text, m.served.list, m.note)
			p := &picking{title: m.Text.T("which model:"), then: chosen((*model).choose)}
			for _, k := range chat.Choosable(provider, name, agents, m.served.list) {
				p.list = append(p.list, option{k, k})
			}
			if len(p.list) == 0 || len(p.list) == 1 && name != "" {
				return nil
			}
			return m.pick(p)
		}
	})
}

// answers is the model that answers the next message, as far as that is known: what the newest run
// was asked with, what this chat asks for, or, where it has no model of its own, what the engine
// has.
func (m *model) answers() (provider, model string) {
	switch {
	case m.meter.model != "":
		return m.meter.provider, m.meter.model
	case m.Request.Model != "":
		return m.Request.Provider, m.Request.Model
	}
	return chat.EngineModel(m.engine, m.Request.Agent)
}

// engineHas asks what answers where the chat has no model of its own. A server that does not say is
// told of with the first message, not here.
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

// choose has a model answer from the next message on.
func (m *model) choose(name string) {
	m.note(chat.ChooseModel(m.Text, &m.Request, m.providers, m.Settings, name))
	m.meter.model = ""
}

// chosen is what follows a choice that takes no time.
func chosen(choose func(m *model, value string)) func(m *model, value string) tea.Cmd {
	return func(m *model, value string) tea.Cmd {
		choose(m, value)
		return nil
	}
}
