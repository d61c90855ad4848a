package app

import (
	"cmp"
	"context"
	"encoding/json"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/engine"
	"github.com/regie-run/regie/internal/prompt"
	"github.com/regie-run/regie/internal/text"
)

// terms are what a round runs under, from its start to its end.
type terms struct {
	dialect regie.Dialect
	limits  regie.Limits
	policy  []byte
	level1  regie.Hash
	level2  regie.Hash // zero where the workspace says nothing
}

// startOf settles the type of a request's session, which never changes, and why its round starts.
// kind is the type of the session that is there, or empty. It returns CodeConflict for a session of
// another type.
func startOf(in *dispatch.RunRequest, kind regie.SessionType) (regie.Reason, error) {
	switch {
	case kind != "" && in.Type != "" && kind != in.Type:
		return "", regie.Errorf(regie.CodeConflict, "the session is of type %s, and stays it: start a new one",
			string(kind))
	case kind != "":
		in.Type = kind
		return regie.ReasonUserMessage, nil
	case in.Type == regie.SessionAutomation:
		return regie.ReasonAutomationStart, nil
	default:
		in.Type = regie.SessionChat
		return regie.ReasonUserMessage, nil
	}
}

// terms settles what the request leaves open, from the configuration and from what the model can
// do.
func (l *local) terms(ctx context.Context, in *dispatch.RunRequest) (out terms, err error) {
	own, err := l.projects.settings(in.Root)
	if err != nil {
		return out, err
	}
	agent := l.projects.agent(in.Root, in.Agent)
	if in.Policy.Relaunch == "" {
		in.Policy.Relaunch = approval.Relaunch(agent.Relaunch)
	}
	settings, _ := l.config.Named(in.Provider)
	in.Policy.ReasoningEffort = cmp.Or(in.Policy.ReasoningEffort, agent.ReasoningEffort)
	in.Policy.ServiceTier = cmp.Or(in.Policy.ServiceTier, settings.ServiceTier)
	in.Policy.OneCall = in.Policy.OneCall || agent.ParallelToolCalls != nil && !*agent.ParallelToolCalls
	// nobody is there to be asked, or to be told that the network is away (decisions 37 and 42)
	if in.Type == regie.SessionAutomation {
		in.Policy.Questions, in.Policy.WaitNetwork = false, true
	}
	in.Policy.French, in.Policy.AnswerCheck = text.IsFrench(cmp.Or(agent.Language, l.config.Language)),
		agent.AnswerCheck
	in.Policy.Temperature = agent.Temperature
	in.Policy.Cache, in.Policy.CacheIfTold = agent.Caches()
	in.Policy.Cache = in.Policy.Cache && !in.NoCache
	in.Policy.CacheIfTold = in.Policy.CacheIfTold && in.Policy.Cache
	if err := l.affordable(in); err != nil {
		return out, err
	}
	if out.dialect, err = l.dialect(in, agent); err != nil {
		return out, err
	}
	stored, err := l.stored(ctx, in.Type)
	if err != nil {
		return out, err
	}
	out.limits = l.limitsOf(in.Type, out.dialect, agent, stored).Lower(own.Limits(in.Type)).Lower(in.Limits)
	if out.level1, err = l.documented(ctx, in, agent, out.limits, out.dialect); err != nil {
		return out, err
	}
	var said string
	if said, in.Policy.Document = l.projects.level2(in.Root, out.limits, in.Policy.French); said != "" {
		// each time: it goes with the sessions that had it
		if out.level2, err = l.store.PutBlob(ctx, []byte(said)); err != nil {
			return out, err
		}
	}
	if in.Policy.Fallback, err = l.fallbacks(ctx, in, agent, out.limits); err != nil {
		return out, err
	}
	out.policy, err = json.Marshal(in.Policy)
	return out, err
}

// documented stores the first level of a round's prompts in a dialect.
func (l *local) documented(ctx context.Context, in *dispatch.RunRequest, agent config.Agent, limits regie.Limits,
	spoken regie.Dialect,
) (regie.Hash, error) {
	return l.level(ctx, prompt.Level1(prompt.Documentation{
		Instructions: agent.Instructions, Degree: agent.PromptDegree, French: in.Policy.French, Limits: limits,
		Type: in.Type, Toolkits: []string{"files", "shell"}, Index: true,
		Servers: l.projects.serverNames(in.Root), Questions: in.Policy.Questions, Dialect: spoken,
	}))
}

// fallbacks pins the providers that may go on with a round, each with the settings, the dialect and
// the documentation that it is asked with (spec 3.6). The limits are the round's own, whoever goes
// on with it.
func (l *local) fallbacks(ctx context.Context, in *dispatch.RunRequest, agent config.Agent,
	limits regie.Limits,
) ([]approval.Fallback, error) {
	if !l.config.FallsBack(in.Agent, in.Provider) {
		return nil, nil
	}
	configured, err := l.config.Fallbacks(in.Agent)
	if err != nil {
		return nil, err
	}
	var out []approval.Fallback
	for _, f := range configured {
		asked := *in
		asked.Provider, asked.Model = f.Provider, f.Model
		if err := l.affordable(&asked); err != nil { // it would never be asked, and nobody would know
			return nil, err
		}
		spoken, err := l.dialect(&asked, agent)
		if err != nil { // it cannot be told to reply so: it is asked as it can be
			spoken = regie.DialectNative
		}
		pinned := approval.Fallback{Provider: f.Provider, Model: f.Model, Dialect: spoken}
		if f.Provider != config.ProviderDemo { // the demo is the same everywhere
			pinned.Settings = l.config.FingerprintOf(f.Provider)
		}
		if pinned.Level1, err = l.documented(ctx, in, agent, limits, spoken); err != nil {
			return nil, err
		}
		out = append(out, pinned)
	}
	return out, nil
}

// affordable refuses a request to a model of which nobody knows what it costs, where a budget
// holds: before anything is stored (decision 29).
func (l *local) affordable(in *dispatch.RunRequest) error {
	own, err := l.projects.settings(in.Root)
	if err != nil {
		return err
	}
	if l.config.File.Caps(in.Agent).Lower(own.Caps()).IsZero() {
		return nil
	}
	model, err := l.models(in.Provider)
	if err != nil {
		return nil //nolint:nilerr // a model that is not configured here is found out when it is asked
	}
	_, stated, known := l.config.Price(in.Provider, in.Model)
	if known || !stated && model.Capabilities(in.Model).Free {
		return nil
	}
	return engine.PriceUnknown(in.Provider, in.Model)
}

// dialect is the one that the request or the agent forces, else the one that the model can (spec
// 3.3). It returns CodeBadRequest for JSON where nobody could tell the model of it. A model that is
// not configured here is found out when it is asked.
func (l *local) dialect(in *dispatch.RunRequest, agent config.Agent) (regie.Dialect, error) {
	forced := in.Dialect
	if forced == "" && agent.Dialect != config.DialectAuto {
		forced = regie.Dialect(agent.Dialect)
	}
	model, err := l.models(in.Provider)
	if err != nil {
		if forced == "" {
			forced = regie.DialectNative
		}
		return forced, nil
	}
	switch can := model.Capabilities(in.Model); {
	case forced == regie.DialectJSON && can.NativeOnly:
		return "", regie.Errorf(regie.CodeBadRequest,
			"the provider %s cannot be told to reply in JSON: leave the dialect out", in.Provider)
	case forced != "":
		return forced, nil
	case can.NativeTools:
		return regie.DialectNative, nil
	default:
		return regie.DialectJSON, nil
	}
}

// limitsOf are the limits of a session's type and a dialect (spec 3.2): the agent's over those of
// the file over what is stored over the defaults.
func (l *local) limitsOf(kind regie.SessionType, spoken regie.Dialect, agent config.Agent,
	stored regie.Limits,
) regie.Limits {
	configured := l.config.File.Limits.Chat
	if kind == regie.SessionAutomation {
		configured = l.config.File.Limits.Automation
	}
	budget := l.config.File.Budget
	app := regie.Limits{ContextTokens: cmp.Or(agent.Budget.ContextTokens, budget.ContextTokens,
		prompt.DefaultBudget(kind)), ContextMessages: budget.MaxContextMessages}
	return l.limits.Over(agent.Limits.Over(configured.Over(stored.Over(app.Over(engine.DefaultLimits(kind, spoken))))))
}
