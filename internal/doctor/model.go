package doctor

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/config"
)

// checkModel looks at the model that answers, and at the embedder.
func (x *exam) checkModel(ctx context.Context) {
	if x.ConfigError != nil {
		x.addWarning("chosen", "not checked: correct the configuration first").
			addFix("correct the configuration first")
		return
	}
	c := &x.Config
	switch {
	case c.Provider == config.ProviderDemo || c.Provider == config.ProviderReplay:
		x.addWarning("chosen", "%s answers (from %s): it is not a model", c.Provider,
			c.Origin["provider"]).addCommand("regie setup")
	case c.Provider == "":
		x.addFailure("chosen",
			"no model is chosen, and none was found: no key in %s, no Ollama with a model that can call tools; configured: %s",
			strings.Join(config.KeyVariables(), ", "), cmp.Or(strings.Join(c.ProviderNames(), ", "), "-")).
			setCode(regie.CodeNoModel).addCommand("regie setup")
	case c.Model == "":
		x.addFailure("chosen", "%s is chosen (from %s), but no model of it is", c.Provider, c.Origin["provider"]).
			setCode(regie.CodeNoModel).addFix("name a model with --model or REGIE_MODEL, or choose one: regie setup")
	default:
		x.addFine("chosen", "%s with the model %s (from %s)", c.Provider, c.Model, c.Origin["provider"])
	}
	if x.Server != nil {
		if server := x.Server(ctx); server != nil {
			x.checkServer(server)
		}
	}
}

// checkServer looks at the chosen server.
func (x *exam) checkServer(s *Server) {
	if !s.Asked {
		x.addFailure("key", "%s at %s needs a key, and none is set", s.Name,
			s.BaseURL).setCode(regie.CodeProviderAuth).
			addCommand("regie setup")
		return
	}
	if s.Code != "" {
		x.explainServer(s)
		return
	}
	x.addFine("answers", "%s answers after %s; models: %s", s.BaseURL, shortDuration(s.Took),
		strconv.Itoa(len(s.Models)))
	switch model := x.Config.Model; {
	case model == "" || len(s.Models) == 0:
	case !slices.Contains(s.Models, model) && !slices.Contains(s.Models, model+":latest"):
		f := x.addFailure("known", "the server has no model %s", model).setCode(regie.CodeNoModel)
		if s.Type == config.ProviderOllama {
			f.addCommand("ollama pull " + Quote(model))
		}
		f.addFix("choose one of its models (%s): regie setup, or --model", strings.Join(s.Models, ", "))
	case !slices.Contains(s.ToolModels, model) && !slices.Contains(s.ToolModels, model+":latest"):
		x.addWarning("tools", "%s has no native tool calls: it is asked to write JSON instead, which small models do less reliably",
			model).
			addFix("choose a model that can call tools: regie models")
	default:
		x.addFine("tools", "%s can call tools", model)
	}
}

// explainServer says why the chosen server is of no use, and what to do.
func (x *exam) explainServer(s *Server) {
	if s.Code == regie.CodeProviderRejected || s.Code == regie.CodeProviderBusy {
		x.addWarning("answers", "%s answers but does not list its models, so nothing more can be checked free of charge: %s",
			s.BaseURL, s.Error).quoteSentence(s.Said).addFix("test it: regie run hello")
		return
	}
	f := x.addFailure("answers", "%s does not answer: %s", s.BaseURL, s.Error).quoteSentence(s.Said).setCode(s.Code)
	switch {
	case s.Code == regie.CodeProviderAuth:
		f.addCommand("regie setup")
	case s.Code == regie.CodeProviderQuota:
		f.addFix("buy credit there, or choose another server: regie setup")
	case s.Type == config.ProviderOllama && s.Local:
		f.addCommand("ollama serve")
	case s.Local:
		f.addFix("start the server, or name another address: regie setup")
	default:
		f.addFix("check that the machine is on the network and the address is right, then: regie models")
	}
}

// shortDuration returns a duration for people.
func shortDuration(d time.Duration) string {
	if d < time.Second {
		return d.Round(100 * time.Microsecond).String()
	}
	return d.Round(100 * time.Millisecond).String()
}
