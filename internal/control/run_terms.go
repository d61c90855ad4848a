package control

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/engine"
	"github.com/regie-run/regie/internal/i18n"
	"github.com/regie-run/regie/internal/prompt"
)

// terms are what a round runs under, from its start to its end.
type terms struct {
	version int // of the agent
	dialect regie.Dialect
	limits  regie.Limits
	policy  []byte
	level1  regie.Hash
	level2  regie.Hash // zero where the workspace says nothing
}

// settleTerms settles what the request leaves open, from the configuration and from what the model
// can do.
func (r *Rounds) settleTerms(ctx context.Context, in *dispatch.RunRequest, agent *foundAgent) (
	out terms, err error,
) {
	own, err := r.Projects.Settings(in.Root)
	if err != nil {
		return out, err
	}
	out.version = agent.version
	if in.Policy.Relaunch == "" {
		in.Policy.Relaunch = approval.Relaunch(agent.Relaunch)
	}
	settings, _ := r.settingsOf(in).Named(in.Provider)
	in.Policy.ReasoningEffort = cmp.Or(in.Policy.ReasoningEffort, agent.ReasoningEffort)
	in.Policy.ServiceTier = cmp.Or(in.Policy.ServiceTier, settings.ServiceTier)
	in.Policy.OneCall = in.Policy.OneCall || agent.ParallelToolCalls != nil && !*agent.ParallelToolCalls
	// an unattended run has no person to answer or to hear about a lost network (decisions 37 and
	// 42)
	if in.Type == regie.SessionAutomation {
		in.Policy.Questions, in.Policy.WaitNetwork = false, true
	}
	in.Policy.French = i18n.IsFrench(cmp.Or(agent.Language, r.Settings.Language))
	in.Policy.OnDeny = approval.OnDeny(agent.OnDeny)
	in.Policy.Restitution = cmp.Or(approval.Restitution(agent.Restitution), in.Policy.Restitution)
	if in.Policy.Restitution == "" && in.Type == regie.SessionChat {
		in.Policy.Restitution = approval.RestitutionGuided
	}
	in.Policy.Temperature, in.Policy.TopP, in.Policy.MaxOutput = agent.Temperature, agent.TopP, agent.MaxOutputTokens
	in.Policy.Scopes, in.Policy.NoSummaries = agent.Scopes(), agent.Summaries != nil && !*agent.Summaries
	in.Policy.Cache, in.Policy.CacheIfTold = agent.Caches()
	in.Policy.Cache = in.Policy.Cache && !in.NoCache
	in.Policy.CacheIfTold = in.Policy.CacheIfTold && in.Policy.Cache
	in.Policy.Caps = in.Caps
	caps := own.Caps(in.Agent).Lower(in.Caps)
	if err := r.checkAffordable(in, r.Settings.File.CapsOf(&agent.Agent).Lower(caps)); err != nil {
		return out, err
	}
	if out.dialect, err = r.dialect(in, agent.Agent); err != nil {
		return out, err
	}
	stored, err := r.storedLimits(ctx, in.Type)
	if err != nil {
		return out, err
	}
	out.limits = r.agentLimits(in.Type, out.dialect, agent, stored).
		Lower(own.Limits(in.Type, in.Agent)).Lower(in.Limits)
	if out.level1, err = r.storeDocumentation(ctx, in, agent.Agent, out.limits, out.dialect); err != nil {
		return out, err
	}
	var said string
	// without its directory, the tools of a run report the error
	if said, in.Policy.Document, _ = r.Projects.Level2(in.Root, out.limits, in.Policy.French); said != "" {
		// each time: it goes with the sessions that had it
		if out.level2, err = r.Store.PutBlob(ctx, []byte(said)); err != nil {
			return out, err
		}
	}
	if in.Policy.Fallback, err = r.fallbacks(ctx, in, &agent.Agent, out.limits, caps); err != nil {
		return out, err
	}
	out.policy, err = json.Marshal(in.Policy)
	return out, err
}

// startOf settles the type of a request's session, which never changes, and why its round starts.
// kind is the type of the session that is there, or empty. It returns CodeConflict for a session of
// another type.
func startOf(in *dispatch.RunRequest, kind regie.SessionType) (regie.Reason, error) {
	switch {
	case kind != "" && in.Type != "" && kind != in.Type:
		return "", regie.Errorf(regie.CodeConflict, "the session has type %s, which cannot change: start a new one",
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

// storeDocumentation stores the first level of a round's prompts in a dialect.
func (r *Rounds) storeDocumentation(ctx context.Context, in *dispatch.RunRequest, agent config.Agent,
	limits regie.Limits, spoken regie.Dialect,
) (regie.Hash, error) {
	return r.storeLevel(ctx, prompt.Level1(prompt.Documentation{
		Instructions: agent.Instructions, Degree: agent.PromptDegree, French: in.Policy.French, Limits: limits,
		Type: in.Type, Toolkits: toolkitsOf(agent.Scopes()), Index: true,
		Servers: r.Projects.ServerNames(in.Root), Questions: in.Policy.Questions, Dialect: spoken,
	}))
}

// toolkitsOf returns the toolkits that an agent's documentation explains, which are in its scopes.
func toolkitsOf(scopes []regie.ToolScope) (out []string) {
	for toolkit, main := range map[string]string{"files": "files.read_file", "shell": "shell.shell_exec"} {
		if regie.InScopes(scopes, main) {
			out = append(out, toolkit)
		}
	}
	slices.Sort(out)
	return out
}

// fallbacks pins the providers that may take over a round, each with its settings, dialect and
// documentation (spec 3.6). The limits stay those of the round.
func (r *Rounds) fallbacks(ctx context.Context, in *dispatch.RunRequest, agent *config.Agent,
	limits regie.Limits, caps regie.Caps,
) ([]approval.Fallback, error) {
	// they are for the provider that the agent names, not for one from a command line: its user may
	// not want prompts to go elsewhere
	if agent.Provider == "" || agent.Provider != in.Provider || r.settingsOf(in) != &r.Settings {
		return nil, nil
	}
	configured, err := r.Settings.Fallbacks(in.Agent, agent)
	if err != nil {
		return nil, err
	}
	var out []approval.Fallback
	for _, f := range configured {
		asked := *in
		asked.Provider, asked.Model, asked.Settings = f.Provider, f.Model, regie.Hash{}
		// it would never be asked, without a word
		if err := r.checkAffordable(&asked, r.Settings.File.CapsOf(agent).Lower(caps)); err != nil {
			return nil, err
		}
		spoken, err := r.dialect(&asked, *agent)
		if err != nil { // it cannot be told to reply so: it is asked as it can be
			spoken = regie.DialectNative
		}
		pinned := approval.Fallback{
			Provider: f.Provider, Model: f.Model, Dialect: spoken, Settings: r.pinOf(f.Provider),
		}
		if pinned.Level1, err = r.storeDocumentation(ctx, in, *agent, limits, spoken); err != nil {
			return nil, err
		}
		out = append(out, pinned)
	}
	return out, nil
}

// checkAffordable refuses a model without a known price where a budget applies, before anything is
// stored (decision 29). caps are those of the agent and the workspace.
func (r *Rounds) checkAffordable(in *dispatch.RunRequest, caps regie.Caps) error {
	if caps.IsZero() {
		return nil
	}
	model, err := r.Models(in.Provider, in.Settings)
	if err != nil {
		return nil //nolint:nilerr // a model that is not configured here is found out when it is asked
	}
	_, stated, known := r.settingsOf(in).Price(in.Provider, in.Model)
	if known || !stated && model.Capabilities(in.Model).Free {
		return nil
	}
	return engine.PriceUnknown(in.Provider, in.Model)
}

// maxLevels is how many prompt levels are known to be stored: each change of a configuration or a
// document makes one.
const maxLevels = 64

// storeLevel stores a prompt level and returns its name (decision 14).
func (r *Rounds) storeLevel(ctx context.Context, level string) (regie.Hash, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if hash, ok := r.levels[level]; ok {
		return hash, nil
	}
	hash, err := r.Store.PutBlob(ctx, []byte(level))
	if err == nil {
		if len(r.levels) >= maxLevels {
			clear(r.levels)
		}
		r.levels[level] = hash
	}
	return hash, err
}
