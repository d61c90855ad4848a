package chat

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/plain"
	"github.com/regie-run/regie/internal/text"
)

// ListWithin is how long it may take until all providers have said which models they have: a little
// longer than each has for it.
const ListWithin = 6 * time.Second

// ModelName is a model with its provider, where that is known.
func ModelName(provider, model string) string {
	if provider == "" {
		return plain.Line(model)
	}
	return plain.Line(provider + " / " + model)
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

// Answers says which model answers, and how another one is chosen.
func Answers(t *text.Printer, provider, model string) string {
	if model == "" {
		return t.T("no model is chosen")
	}
	return t.T("%s answers; /model NAME chooses another one", ModelName(provider, model))
}

// Silent tells of the providers that do not answer.
func Silent(t *text.Printer, list []dispatch.ProviderModels, note func(line string)) {
	for i := range list {
		p := &list[i]
		if p.Reachable {
			continue
		}
		note("  ! " + plain.Line(p.Name+": "+cmp.Or(t.Sentence(p.Said), p.Error,
			t.T("no key: regie setup stores one, or api_key_env in regie.yaml names its variable"))))
		for _, size := range slices.Sorted(maps.Keys(p.Sizes)) {
			note("    " + plain.Line(size+" → "+p.Sizes[size]))
		}
	}
}

// Choosable are the models that can be chosen, as provider/name: the one that answers and those of
// the agents first, then what the providers have.
func Choosable(provider, model string, agents []dispatch.AgentView, list []dispatch.ProviderModels) []string {
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
	add(provider, model)
	for i := range agents {
		add(agents[i].Provider, agents[i].Model)
	}
	for i := range list {
		for k := range list[i].Models {
			if v := &list[i].Models[k]; v.Tools || !v.Embeds {
				add(list[i].Name, v.Name)
			}
		}
	}
	return out
}

// ChooseModel has a model answer from the next message on, and says so. providers are the names of
// all; settings is the fingerprint of the settings of one, and may be nil.
func ChooseModel(t *text.Printer, request *dispatch.RunRequest, providers []string,
	settings func(provider string) regie.Hash, name string,
) string {
	if provider, model, found := strings.Cut(name, "/"); found && slices.Contains(providers, provider) {
		request.Provider, name = provider, model
		if settings != nil && !request.Settings.IsZero() {
			request.Settings = settings(provider)
		}
	}
	request.Model = name
	return t.T("%s answers from the next message on", ModelName(request.Provider, name))
}

// Cached says what is in the response cache of a workspace; word is "clear" to empty it.
func Cached(ctx context.Context, control Control, t *text.Printer, root, word string) (string, error) {
	if word == "clear" {
		cleared, err := control.ClearCache(ctx, dispatch.ClearRequest{Root: root})
		return t.T("answers that went from the response cache: %s", strconv.FormatInt(cleared.Entries, 10)), err
	}
	s, err := control.CacheStats(ctx, root)
	return t.T("response cache of this workspace: %d answers, given again %d times, about %d tokens saved",
		int(s.Entries), int(s.Hits), int(s.Saved)), err
}

// Costs are what a chat, zero where nothing was said in it, and today have cost, a line each.
func Costs(ctx context.Context, control Control, t *text.Printer, root string,
	session regie.ID,
) (out []string, err error) {
	spent, err := control.Spent(ctx, root)
	if err != nil {
		return nil, err
	}
	if !session.IsZero() {
		view, err := control.Session(ctx, session)
		if err != nil {
			return nil, err
		}
		out = append(out, t.T("this chat: %s", Cost(t, view.Spent)))
	}
	if line := Today(t, spent, false); line != "" {
		return append(out, line), nil
	} else if session.IsZero() {
		out = append(out, t.T("nothing was spent today"))
	}
	return out, nil
}
