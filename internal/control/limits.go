package control

import (
	"cmp"
	"context"
	"strconv"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/engine"
	"github.com/regie-run/regie/internal/prompt"
	"github.com/regie-run/regie/internal/store"
)

// Limits are those that are stored of a round (spec 3.2, decision 52).
type Limits struct{ *core }

// A stored limit overrides the defaults; files and flags override it (spec 13). A person writes a
// file, keeps it under version control and reads it when something looks wrong, so no stored value
// may silently win over it. Setting a limit that a file fixes is refused with the place, as for
// providers of files (decision 52). The store keeps limits across restarts and for every process.

// limitNames are the limits that can be stored, below limits.chat and limits.automation.
var limitNames = []string{
	"max_data_query_iterations", "max_action_retries", "max_format_error_retries", "max_autonomous_roundtrips",
}

// limitFields returns the fields of limitNames.
func limitFields(l *regie.Limits) []*int {
	return []*int{&l.Queries, &l.Retries, &l.FormatErrors, &l.Total}
}

// section is where the limits of a type of session stand.
func section(kind regie.SessionType) string {
	if kind == regie.SessionAutomation {
		return "limits.automation."
	}
	return "limits.chat."
}

// storedLimits returns the limits that were stored for a type of session.
func (c *core) storedLimits(ctx context.Context, kind regie.SessionType) (out regie.Limits, err error) {
	settled, err := c.Store.Settings(ctx)
	if err != nil || len(settled) == 0 {
		return out, err
	}
	for i, field := range limitFields(&out) {
		if n, err := strconv.Atoi(settled[section(kind)+limitNames[i]]); err == nil && n > 0 && n <= config.MaxLimit {
			*field = n
		}
	}
	return out, nil
}

// Get returns the limits of a round by the type of its session as the next round gets them, each
// with where it comes from.
func (l *Limits) Get(ctx context.Context) (dispatch.LimitSettings, error) {
	if _, err := l.authorize(ctx, "show_limits"); err != nil {
		return dispatch.LimitSettings{}, err
	}
	return l.current(ctx)
}

func (l *Limits) current(ctx context.Context) (out dispatch.LimitSettings, err error) {
	if out.Chat, err = l.limitValues(ctx, regie.SessionChat); err == nil {
		out.Automation, err = l.limitValues(ctx, regie.SessionAutomation)
	}
	return out, err
}

// limitValues returns the limits of a type of session for the default agent and model.
func (l *Limits) limitValues(ctx context.Context, kind regie.SessionType) (out dispatch.LimitValues, err error) {
	stored, err := l.storedLimits(ctx, kind)
	if err != nil {
		return out, err
	}
	agent := l.Settings.File.Agents[MainAgent]
	spoken, err := l.dialect(&dispatch.RunRequest{Provider: l.Settings.Provider, Model: l.Settings.Model}, agent)
	if err != nil { // no model is configured yet
		spoken = regie.DialectNative
	}
	now, otherwise := l.limitsOf(kind, spoken, agent, stored), engine.DefaultLimits(kind, spoken)
	for i, v := range []*dispatch.LimitValue{&out.Queries, &out.Retries, &out.FormatErrors, &out.Total} {
		*v = dispatch.LimitValue{
			Value: *limitFields(&now)[i], Stored: *limitFields(&stored)[i],
			Default: *limitFields(&otherwise)[i], Origin: "default",
		}
		if v.Stored > 0 {
			v.Origin = "api"
		}
		if place := l.fixedBy(kind, i); place != "" {
			v.Origin, v.Fixed = place, true
		}
	}
	return out, nil
}

// fixedBy returns the place that fixes a limit regardless of the stored value; empty where none
// does.
func (l *Limits) fixedBy(kind regie.SessionType, i int) string {
	configured, file, agent := l.Settings.File.Limits.Of(kind), l.Settings.Origin["file"],
		l.Settings.File.Agents[MainAgent].Limits
	switch {
	case *limitFields(&agent)[i] > 0:
		return "agents." + MainAgent + ".limits." + limitNames[i] + " in " + file
	case *limitFields(&configured)[i] > 0:
		return section(kind) + limitNames[i] + " in " + file
	default:
		return ""
	}
}

// Set stores all limits of a request, or none. The next round of every session uses them in every
// process. It returns CodeConflict for a limit that a file or the command line fixes,
// CodeBadRequest for an invalid number.
func (l *Limits) Set(ctx context.Context, in dispatch.LimitChanges) (dispatch.LimitSettings, error) {
	caller, err := l.authorizeAll(ctx, "change_limits")
	if err != nil {
		return dispatch.LimitSettings{}, err
	}
	var values []store.Setting
	for _, kind := range []regie.SessionType{regie.SessionChat, regie.SessionAutomation} {
		change := &in.Chat
		if kind == regie.SessionAutomation {
			change = &in.Automation
		}
		for i, n := range []*int{change.Queries, change.Retries, change.FormatErrors, change.Total} {
			if n == nil {
				continue
			}
			name, text := section(kind)+limitNames[i], ""
			if *n < 0 || *n > config.MaxLimit {
				return dispatch.LimitSettings{}, regie.Errorf(regie.CodeBadRequest,
					"%s cannot be %d: a limit is a whole number from 1 up, and 0 removes a stored limit", name, *n)
			}
			if place := l.fixedBy(kind, i); place != "" && *n > 0 {
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
	if err := l.Store.Settle(ctx, values, storable(caller.By(in.By))); err != nil {
		return dispatch.LimitSettings{}, err
	}
	return l.current(ctx)
}

// checkDialect returns CodeBadRequest if a model cannot continue a run in its dialect, which is
// fixed since its first request. A model that is not configured here fails when it is called.
func (c *core) checkDialect(dialect regie.Dialect, provider, name string, pin regie.Hash) error {
	model, err := c.Models(provider, pin)
	if err != nil {
		return nil //nolint:nilerr // the call will fail
	}
	can := model.Capabilities(name)
	if dialect == regie.DialectJSON && can.NativeOnly || dialect == regie.DialectNative && !can.NativeTools {
		return regie.Errorf(regie.CodeBadRequest,
			"the run was started in the dialect %s, which %s does not support: choose another model, or start a new run",
			dialect, name)
	}
	return nil
}

// dialect returns the dialect that the request or the agent forces, else the one that the model
// supports (spec 3.3). It returns CodeBadRequest for JSON where the prompt cannot explain it. A
// model that is not configured here fails when it is called.
func (c *core) dialect(in *dispatch.RunRequest, agent config.Agent) (regie.Dialect, error) {
	forced := in.Dialect
	if forced == "" && agent.Dialect != config.DialectAuto {
		forced = regie.Dialect(agent.Dialect)
	}
	model, err := c.Models(in.Provider, in.Settings)
	if err != nil {
		return cmp.Or(forced, regie.DialectNative), nil //nolint:nilerr // the call will fail
	}
	switch can := model.Capabilities(in.Model); {
	case forced == regie.DialectJSON && can.NativeOnly:
		return "", regie.Errorf(regie.CodeBadRequest,
			"the provider %s does not support replies in JSON: leave the dialect out", in.Provider)
	case forced != "":
		return forced, nil
	case can.NativeTools:
		return regie.DialectNative, nil
	default:
		return regie.DialectJSON, nil
	}
}

// limitsOf returns the limits of a session's type and a dialect (spec 3.2): the agent's over those
// of the file over what is stored over the defaults.
func (c *core) limitsOf(kind regie.SessionType, spoken regie.Dialect, agent config.Agent,
	stored regie.Limits,
) regie.Limits {
	configured, budget := c.Settings.File.Limits.Of(kind), c.Settings.File.Budget
	app := regie.Limits{ContextTokens: cmp.Or(agent.Budget.ContextTokens, budget.ContextTokens,
		prompt.DefaultBudget(kind)), ContextMessages: budget.MaxContextMessages}
	return agent.Limits.Over(configured.Over(stored.Over(app.Over(engine.DefaultLimits(kind, spoken)))))
}

// agentLimits returns the limits of an agent: one of a workspace's file can only lower them.
func (c *core) agentLimits(kind regie.SessionType, spoken regie.Dialect, agent *foundAgent,
	stored regie.Limits,
) regie.Limits {
	if !agent.lowers {
		return c.limitsOf(kind, spoken, agent.Agent, stored)
	}
	return c.limitsOf(kind, spoken, config.Agent{}, stored).Lower(agent.Limits).
		Lower(regie.Limits{ContextTokens: agent.Budget.ContextTokens})
}
