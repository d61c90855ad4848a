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

// model looks at the model that answers, and at the embedder.
func (x *exam) model(ctx context.Context) {
	if x.ConfigError != nil {
		x.warn("chosen", "not looked at: the configuration has to be right first").
			fix("correct the configuration first")
		return
	}
	c := &x.Config
	switch {
	case c.Provider == config.ProviderDemo || c.Provider == config.ProviderReplay:
		x.warn("chosen", "%s answers (from %s): that is no model", c.Provider, c.Origin["provider"]).run("regie setup")
	case c.Provider == "":
		x.fail("chosen",
			"no model is chosen, and none was found: no key in %s, no Ollama with a model that can call tools; configured: %s",
			strings.Join(config.KeyVariables(), ", "), cmp.Or(strings.Join(c.ProviderNames(), ", "), "-")).
			code(regie.CodeNoModel).run("regie setup")
	case c.Model == "":
		x.fail("chosen", "%s is chosen (from %s), but no model of it", c.Provider, c.Origin["provider"]).
			code(regie.CodeNoModel).fix("name a model with --model or REGIE_MODEL, or choose one: regie setup")
	default:
		x.fine("chosen", "%s with the model %s (from %s)", c.Provider, c.Model, c.Origin["provider"])
	}
	if x.Server != nil {
		if server := x.Server(ctx); server != nil {
			x.answers(server)
		}
	}
}

// answers looks at the chosen server.
func (x *exam) answers(s *Server) {
	if !s.Asked {
		x.fail("key", "%s at %s wants a key, and there is none", s.Name, s.BaseURL).code(regie.CodeProviderAuth).
			run("regie setup")
		return
	}
	if s.Code != "" {
		x.silent(s)
		return
	}
	x.fine("answers", "%s answers after %s; models: %s", s.BaseURL, short(s.Took), strconv.Itoa(len(s.Models)))
	switch model := x.Config.Model; {
	case model == "" || len(s.Models) == 0:
	case !slices.Contains(s.Models, model) && !slices.Contains(s.Models, model+":latest"):
		f := x.fail("known", "the server has no model %s", model).code(regie.CodeNoModel)
		if s.Type == config.ProviderOllama {
			f.run("ollama pull " + Quote(model))
		}
		f.fix("choose one that it has (%s): regie setup, or --model", strings.Join(s.Models, ", "))
	case !slices.Contains(s.ToolModels, model) && !slices.Contains(s.ToolModels, model+":latest"):
		x.warn("tools", "%s calls no tools by itself: it is asked to write JSON, which small models do less well",
			model).
			fix("choose a model that can call tools: regie models")
	default:
		x.fine("tools", "%s can call tools", model)
	}
}

// silent says why the chosen server is of no use, and what to do.
func (x *exam) silent(s *Server) {
	if s.Code == regie.CodeProviderRejected || s.Code == regie.CodeProviderBusy {
		x.warn("answers", "%s answers, but gives no list of models, so nothing more can be said for no money: %s",
			s.BaseURL, s.Error).quotes(s.Said).fix("try it: regie run hello")
		return
	}
	f := x.fail("answers", "%s does not answer: %s", s.BaseURL, s.Error).quotes(s.Said).code(s.Code)
	switch {
	case s.Code == regie.CodeProviderAuth:
		f.run("regie setup")
	case s.Code == regie.CodeProviderQuota:
		f.fix("buy credit there, or choose another server: regie setup")
	case s.Type == config.ProviderOllama && s.Local:
		f.run("ollama serve")
	case s.Local:
		f.fix("start the server, or name another address: regie setup")
	default:
		f.fix("see that the machine is on the network and the address is right, then: regie models")
	}
}

// short is a duration for people.
func short(d time.Duration) string {
	if d < time.Second {
		return d.Round(100 * time.Microsecond).String()
	}
	return d.Round(100 * time.Millisecond).String()
}
