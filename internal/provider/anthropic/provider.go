package anthropic

import (
	"context"
	"strings"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/provider/wire"
)

// DefaultAddress is the vendor's own server.
const DefaultAddress = "https://api.anthropic.com"

// Version is the version of the API that this codec speaks.
const Version = "2023-06-01"

// Config is a configured server.
type Config struct {
	Name    string // the name in the configuration
	BaseURL string // such as https://api.anthropic.com, with or without /v1; empty for it
	APIKey  string // empty for servers without keys
	// Images says whether the models take images; nil leaves it to what is known of them.
	Images *bool
	// Idle bounds how long a stream may be silent; zero means 2 minutes (spec 3.6).
	Idle time.Duration
}

// Provider is a server of the Messages API.
type Provider struct {
	cfg    Config
	server *wire.Server
}

// New returns a provider. It returns CodeBadRequest for an invalid address.
func New(cfg Config) (*Provider, error) {
	if cfg.BaseURL == "" {
		cfg.BaseURL = DefaultAddress
	}
	header := wire.KeyHeader("X-Api-Key", cfg.APIKey)
	header.Set("Anthropic-Version", Version)
	server, err := wire.New(wire.Config{
		Address: strings.TrimSuffix(strings.TrimRight(cfg.BaseURL, "/"), "/v1"), Example: DefaultAddress,
		API: "Messages", Header: header,
		Idle: cfg.Idle, Judge: judge, NotRunning: regie.Say("start the model server there, or set its address"),
	})
	if err != nil {
		return nil, err
	}
	return &Provider{cfg: cfg, server: server}, nil
}

// judge knows the API's kinds of error, which come as a status or, once the stream has begun, as an
// event (spec 12.6, trap 7).
func judge(e *provider.Error, kind, said string) {
	switch {
	case kind == "billing_error", strings.Contains(strings.ToLower(said), "credit balance is too low"):
		e.Code, e.Retryable = regie.CodeProviderQuota, false
	case e.Status != 0: // the status says the rest
	case kind == "authentication_error", kind == "permission_error":
		e.Code, e.Retryable = regie.CodeProviderAuth, false
	case kind == "invalid_request_error", kind == "not_found_error", kind == "request_too_large":
		e.Code, e.Retryable = regie.CodeProviderRejected, false
	}
}

// Name implements provider.Provider.
func (p *Provider) Name() string { return p.cfg.Name }

// Capabilities implements provider.Provider.
func (p *Provider) Capabilities(model string) provider.Capabilities {
	major, _, known := generation(model)
	can := provider.Capabilities{
		NativeTools: true, Thinking: thinks(model),
		Images: p.server.IsAt("anthropic.com") && (!known || major >= 3),
	}
	switch { // see optionsOf: thinking goes with no other temperature than 1
	case untempered(model):
		can.Temperature = provider.TemperedNever
	case can.Thinking:
		can.Temperature = provider.TemperedIfNone
	case adapts(model):
		can.Temperature = provider.TemperedPlain
	}
	return can.WithImages(p.cfg.Images)
}

// untempered says that a model refuses a temperature: from 4.7 on they do.
func untempered(model string) bool {
	major, minor, known := generation(model)
	return known && (major > 4 || major == 4 && minor >= 7)
}

// Models implements provider.Lister.
func (p *Provider) Models(ctx context.Context) ([]provider.Model, error) {
	return p.server.Models(ctx, "/v1/models?limit=1000", p.Capabilities)
}

// thinks reports whether a model thinks by default and wants its thinking back: all from generation
// 5 on. A name without a number counts as new: a model without thinking is not harmed by a replayed
// signature.
func thinks(model string) bool {
	major, _, known := generation(model)
	return !known || major >= 5
}

// adapts reports whether a model can decide how much it thinks: all from 4.6 on.
func adapts(model string) bool {
	major, minor, known := generation(model)
	return !known || major >= 5 || major == 4 && minor >= 6
}

func generation(model string) (major, minor int, known bool) { return wire.Generation(model, "") }

// Open implements provider.Provider.
func (p *Provider) Open(head provider.Head) (provider.Conversation, error) {
	request, err := NewRequest(head, optionsOf(head))
	if err != nil {
		return nil, err
	}
	request.server = p.server
	return request, nil
}

// optionsOf returns the thinking options of a model (platform.claude.com, effort and adaptive
// thinking). Generation 5 and later thinks by default, and 4.6 to 4.9 think on request (adaptive);
// both take an effort. Requests to older models leave thinking out.
func optionsOf(head provider.Head) Options {
	options := Options{Thinks: thinks(head.Model), Untempered: untempered(head.Model)}
	major, minor, known := generation(head.Model)
	switch effort := head.ReasoningEffort; {
	case effort == "", !adapts(head.Model), effort == "none" && !options.Thinks: // they do not unless they are asked
	case effort == "none":
		options.Thinks, options.Thinking = false, "disabled"
	default:
		if !options.Thinks {
			options.Thinks, options.Thinking = true, "adaptive"
		}
		options.Effort = effortOf(effort, head.Model, major, minor, known)
	}
	return options
}

// effortOf returns the nearest effort that a model has: no model has minimal, xhigh came with 4.7,
// and of 4.6 only Opus has max.
func effortOf(effort, model string, major, minor int, known bool) string {
	first := known && major == 4 && minor == 6
	switch {
	case effort == "minimal":
		return "low"
	case first && effort == "xhigh", first && effort == "max" && !strings.Contains(model, "opus"):
		return "high"
	default:
		return effort
	}
}

// Send implements provider.Conversation.
func (r *Request) Send(ctx context.Context, sink func(provider.Delta)) (_ *provider.Reply, err error) {
	defer r.server.Hide(&err)
	collected := newCollector(r.server, sink)
	at := wire.Endpoint{Server: r.server, Path: "/v1/messages"}
	err = collected.ReadEvents(ctx, at, r.whole(), func(data []byte) (bool, error) {
		err := collected.add(data)
		return collected.stopped, err
	})
	switch {
	case err != nil:
		return nil, err
	case collected.Finish == "refusal": // what came before is no answer, and to ask again changes nothing
		return nil, collected.Failed(&provider.Error{
			Code:    regie.CodeProviderRejected,
			Message: "the model declined to answer" + collected.refusal,
		})
	}
	return collected.Reply()
}
