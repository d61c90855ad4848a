package app

import (
	"context"
	"strconv"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/engine"
	"github.com/regie-run/regie/internal/store"
)

// A limit that the interface stores stands above the defaults and below files and flags (spec 13):
// a file is what a person wrote down, keeps under version control and reads when something is odd,
// so nothing that was said elsewhere may hold against it in silence. What a file fixes is refused
// here, with its place, as providers of files are (decision 52). The store has it, so that it holds
// after a restart and for every process.

// settable is a limit that can be stored.
type settable struct {
	name   string // below limits.chat and limits.automation
	of     func(*regie.Limits) *int
	value  func(*dispatch.LimitValues) *dispatch.LimitValue
	change func(*dispatch.LimitChange) *int
}

var settables = []settable{
	{
		"max_data_query_iterations", func(l *regie.Limits) *int { return &l.Queries },
		func(v *dispatch.LimitValues) *dispatch.LimitValue { return &v.Queries },
		func(c *dispatch.LimitChange) *int { return c.Queries },
	},
	{
		"max_action_retries", func(l *regie.Limits) *int { return &l.Retries },
		func(v *dispatch.LimitValues) *dispatch.LimitValue { return &v.Retries },
		func(c *dispatch.LimitChange) *int { return c.Retries },
	},
	{
		"max_format_error_retries", func(l *regie.Limits) *int { return &l.FormatErrors },
		func(v *dispatch.LimitValues) *dispatch.LimitValue { return &v.FormatErrors },
		func(c *dispatch.LimitChange) *int { return c.FormatErrors },
	},
	{
		"max_autonomous_roundtrips", func(l *regie.Limits) *int { return &l.Total },
		func(v *dispatch.LimitValues) *dispatch.LimitValue { return &v.Total },
		func(c *dispatch.LimitChange) *int { return c.Total },
	},
}

// section is where the limits of a type of session stand.
func section(kind regie.SessionType) string {
	if kind == regie.SessionAutomation {
		return "limits.automation."
	}
	return "limits.chat."
}

// stored are the limits that were stored for a type of session.
func (l *local) stored(ctx context.Context, kind regie.SessionType) (out regie.Limits, err error) {
	settled, err := l.store.Settings(ctx)
	if err != nil || len(settled) == 0 {
		return out, err
	}
	for _, s := range settables {
		if n, err := strconv.Atoi(settled[section(kind)+s.name]); err == nil && n > 0 && n <= config.MaxLimit {
			*s.of(&out) = n
		}
	}
	return out, nil
}

// Limits implements dispatch.Settings.
func (l *local) Limits(ctx context.Context) (out dispatch.LimitSettings, err error) {
	if out.Chat, err = l.limitValues(ctx, regie.SessionChat); err == nil {
		out.Automation, err = l.limitValues(ctx, regie.SessionAutomation)
	}
	return out, err
}

// limitValues are the limits of a type of session with the agent and the model that answer where
// nothing else is said.
func (l *local) limitValues(ctx context.Context, kind regie.SessionType) (out dispatch.LimitValues, err error) {
	stored, err := l.stored(ctx, kind)
	if err != nil {
		return out, err
	}
	agent := l.config.File.Agents[mainAgent]
	spoken, err := l.dialect(&dispatch.RunRequest{Provider: l.config.Provider, Model: l.config.Model}, agent)
	if err != nil { // no model is configured yet
		spoken = regie.DialectNative
	}
	now, otherwise := l.limitsOf(kind, spoken, agent, stored), engine.DefaultLimits(kind, spoken)
	for _, s := range settables {
		v := s.value(&out)
		*v = dispatch.LimitValue{
			Value: *s.of(&now), Stored: *s.of(&stored),
			Default: *s.of(&otherwise), Origin: "default",
		}
		if v.Stored > 0 {
			v.Origin = "api"
		}
		if place := l.fixes(kind, s); place != "" {
			v.Origin, v.Fixed = place, true
		}
	}
	return out, nil
}

// fixes is the place that settles a limit whatever is stored; empty where none does.
func (l *local) fixes(kind regie.SessionType, s settable) string {
	configured, file, agent := l.config.File.Limits.Chat, l.config.Origin["file"],
		l.config.File.Agents[mainAgent].Limits
	if kind == regie.SessionAutomation {
		configured = l.config.File.Limits.Automation
	}
	switch {
	case *s.of(&l.limits) > 0:
		return "the program that started this engine"
	case *s.of(&agent) > 0:
		return "agents." + mainAgent + ".limits." + s.name + " in " + file
	case *s.of(&configured) > 0:
		return section(kind) + s.name + " in " + file
	default:
		return ""
	}
}

// SetLimits implements dispatch.Settings.
func (l *local) SetLimits(ctx context.Context, in dispatch.LimitChanges) (dispatch.LimitSettings, error) {
	if err := l.mayStore(); err != nil {
		return dispatch.LimitSettings{}, err
	}
	var values []store.Setting
	for _, kind := range []regie.SessionType{regie.SessionChat, regie.SessionAutomation} {
		change := &in.Chat
		if kind == regie.SessionAutomation {
			change = &in.Automation
		}
		for _, s := range settables {
			n := s.change(change)
			if n == nil {
				continue
			}
			name, text := section(kind)+s.name, ""
			if *n < 0 || *n > config.MaxLimit {
				return dispatch.LimitSettings{}, regie.Errorf(regie.CodeBadRequest,
					"%s cannot be %d: a limit is a whole number from 1 up, and 0 takes back what was stored", name, *n)
			}
			if place := l.fixes(kind, s); place != "" && *n > 0 {
				return dispatch.LimitSettings{}, regie.Errorf(regie.CodeConflict,
					"%s is fixed by %s: change it there", name, place)
			}
			if *n > 0 {
				text = strconv.Itoa(*n)
			}
			values = append(values, store.Setting{Name: name, Value: text})
		}
	}
	if len(values) == 0 {
		return dispatch.LimitSettings{}, regie.Errorf(regie.CodeBadRequest, "the request names no limit")
	}
	if err := l.store.Settle(ctx, values, storable(in.By)); err != nil {
		return dispatch.LimitSettings{}, err
	}
	return l.Limits(ctx)
}
