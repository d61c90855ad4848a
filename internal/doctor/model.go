package doctor

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/config"
)

// model looks at the model that answers, and at the other servers that the files name.
func (x *exam) model(ctx context.Context) {
	if x.ConfigError != nil {
		x.warn("chosen", "not looked at: the configuration has to be right first").
			fix("correct the configuration first")
		return
	}
	c := &x.Config
	switch {
	case c.Provider == config.ProviderDemo:
		x.warn("chosen", "the demo answers (from %s): a few rules, not a model",
			c.Origin["provider"]).run("regie setup")
	case c.Provider == config.ProviderReplay:
		x.warn("chosen", "a recording answers (from %s), not a model", c.Origin["provider"]).run("regie setup")
	case c.Provider == "":
		x.unchosen()
	case c.Model == "":
		f := x.fail("chosen", "%s is chosen (from %s), but no model of it", c.Provider, c.Origin["provider"])
		f.Code = regie.CodeNoModel
		f.fix("name a model with --model or REGIE_MODEL, or choose one: regie setup")
	case c.Origin["provider"] == config.ProviderOllama:
		x.fine("chosen", "%s with the model %s (found on this machine)", c.Provider, c.Model)
	default:
		x.fine("chosen", "%s with the model %s (from %s)", c.Provider, c.Model, c.Origin["provider"])
	}
	if x.Servers != nil {
		for _, server := range x.Servers(ctx) {
			if server.Chosen {
				x.answers(&server)
			} else {
				x.other(&server)
			}
		}
	}
	if x.Embedder != nil {
		if e := x.Embedder(ctx); e != nil {
			x.embeds(e)
		}
	}
}

func (x *exam) unchosen() {
	names := x.Config.ProviderNames()
	var f *Finding
	if len(names) > 0 {
		f = x.fail("chosen", "no model is chosen; what is configured: %s", strings.Join(names, ", "))
	} else {
		f = x.fail("chosen",
			"no model is chosen, and none was found: no key in %s, no Ollama with a model that can call tools",
			strings.Join(config.KeyVariables(), ", "))
	}
	f.Code = regie.CodeNoModel
	f.run("regie setup")
}

// answers looks at the chosen server.
func (x *exam) answers(s *Server) {
	switch {
	case !s.Asked:
		f := x.fail("key", "%s at %s wants a key, and there is none", s.Name, s.BaseURL)
		f.Code = regie.CodeProviderAuth
		x.keyFix(f)
		return
	case s.HasKey:
		x.fine("key", "its key is from %s", x.keyOrigin())
	}
	if s.Code != "" {
		x.silent(s)
		return
	}
	x.fine("answers", "%s answers after %s; models: %s", s.BaseURL, short(s.Took), count(len(s.Models)))
	switch model := x.Config.Model; {
	case model == "" || len(s.Models) == 0:
	case !slices.Contains(s.Models, model) && !slices.Contains(s.Models, model+":latest"):
		f := x.fail("known", "the server has no model %s", model)
		f.Code = regie.CodeNoModel
		if s.Type == config.ProviderOllama {
			f.run("ollama pull " + quote(model))
		}
		f.fix("choose one that it has (%s): regie setup, or --model", some(s.Models))
	case !slices.Contains(s.ToolModels, model) && !slices.Contains(s.ToolModels, model+":latest"):
		x.warn("tools", "%s calls no tools by itself: it is asked to write JSON, which small models do less well",
			model).
			fix("choose a model that can call tools: regie models")
	default:
		x.fine("tools", "%s can call tools", model)
	}
}

func (x *exam) keyOrigin() string {
	p, _ := x.Config.Named(x.Config.Provider)
	if from := p.Origin["api_key"]; from != "" {
		return from
	}
	return x.Config.Origin["api_key"]
}

// keyFix says where a key belongs.
func (x *exam) keyFix(f *Finding) {
	p, _ := x.Config.Named(x.Config.Provider)
	switch from := x.keyOrigin(); {
	case p.KeptInKeyring() != "": // what regie setup puts there
	case from != "" && !strings.Contains(from, "/"):
		f.fix("put the right key into %s", from)
	case p.APIKeyEnv != "":
		f.fix("put the key into %s", p.APIKeyEnv)
	}
	f.run("regie setup")
}

// silent says why the chosen server is of no use, and what to do.
func (x *exam) silent(s *Server) {
	if s.Code == regie.CodeProviderRejected {
		x.warn("answers", "%s answers, but has no list of models, so nothing more can be said for no money",
			s.BaseURL).fix("try it: regie run hello")
		return
	}
	if s.Code == regie.CodeProviderBusy {
		x.warn("answers", "%s is busy: %s", s.BaseURL, s.Error).quotes(s.Said).
			fix("wait a little; a run that meets this waits by itself")
		return
	}
	f := x.fail("answers", "%s does not answer: %s", s.BaseURL, s.Error).quotes(s.Said)
	f.Code = s.Code
	switch {
	case s.Code == regie.CodeProviderAuth:
		x.keyFix(f)
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

// other says of a server that nobody has chosen whether it could be.
func (x *exam) other(s *Server) {
	switch {
	case !s.Asked:
		x.fine("other", "%s is configured too, without a key", s.Name).about(s.Name)
	case s.Code == "":
		x.fine("other", "%s answers too; models: %s", s.Name, count(len(s.Models))).about(s.Name)
	default:
		x.warn("other", "%s, which is not chosen, does not answer: %s", s.Name,
			s.Error).quotes(s.Said).about(s.Name).fix("nothing, unless you want to choose it")
	}
}

// some names the first of a list.
func some(names []string) string {
	const most = 5
	if len(names) > most {
		return strings.Join(names[:most], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}

// short is a duration for people.
func short(d time.Duration) string {
	if d < time.Second {
		return d.Round(100 * time.Microsecond).String()
	}
	return d.Round(100 * time.Millisecond).String()
}

// isTimeout reports whether an error is that time ran out.
func isTimeout(err error) bool { return errors.Is(err, context.DeadlineExceeded) }
