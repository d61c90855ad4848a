package gemini

import (
	"context"
	"encoding/json"
	"net/url"
	"strings"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/provider/wire"
)

// Name is the provider's name in parts that carry a thought signature: it is replayed only here.
const Name = "gemini"

// DefaultAddress is the vendor's own server.
const DefaultAddress = "https://generativelanguage.googleapis.com"

// Config is a configured server.
type Config struct {
	Name    string // the name in the configuration
	BaseURL string // such as https://generativelanguage.googleapis.com, with or without /v1beta; empty for it
	APIKey  string // empty for servers without keys
	// Images says whether the models take images; nil leaves it to what is known of them.
	Images *bool
	// Idle bounds how long a stream may be silent; zero means 2 minutes (spec 3.6).
	Idle time.Duration
}

// Provider is a server of the Gemini API.
type Provider struct {
	cfg    Config
	server *wire.Server
}

// New returns a provider. It returns CodeBadRequest for an invalid address.
func New(cfg Config) (*Provider, error) {
	if cfg.BaseURL == "" {
		cfg.BaseURL = DefaultAddress
	}
	server, err := wire.New(wire.Config{
		Address: strings.TrimSuffix(strings.TrimRight(cfg.BaseURL, "/"), version), Example: DefaultAddress,
		API: "Gemini", Header: wire.KeyHeader("X-Goog-Api-Key", cfg.APIKey),
		Idle: cfg.Idle, Judge: judge, Details: details,
		NotRunning: regie.Say("start the model server there, or set its address"),
	})
	if err != nil {
		return nil, err
	}
	return &Provider{cfg: cfg, server: server}, nil
}

// version is the version of the API that this codec speaks, as its addresses have it.
const version = "/v1beta"

// judge knows the API's kinds of error, which come as a status or, once the stream has begun, in it
// (spec 12.6, trap 7).
func judge(e *provider.Error, kind, said string) {
	switch {
	case strings.Contains(said, "API key not valid"), strings.Contains(said, "API key expired"),
		strings.Contains(said, "API Key not found"):
		e.Code, e.Retryable = regie.CodeProviderAuth, false // it comes as 400
		_ = e.Tell(regie.Say("check the API key: %s", said))
	case e.Status != 0: // the status says the rest
	case kind == "UNAUTHENTICATED", kind == "PERMISSION_DENIED":
		e.Code, e.Retryable = regie.CodeProviderAuth, false
	case kind == "INVALID_ARGUMENT", kind == "NOT_FOUND", kind == "FAILED_PRECONDITION":
		e.Code, e.Retryable = regie.CodeProviderRejected, false
	}
}

// details reads what only the body of an error holds: when to retry, and whether a daily quota is
// used up, which no retry outlasts (spec 12.6, trap 7).
func details(e *provider.Error, body []byte) {
	var said struct {
		Error struct {
			Details []struct {
				RetryDelay string `json:"retryDelay"` // 34s, 0.5s
				Violations []struct {
					QuotaID string `json:"quotaId"`
				} `json:"violations"`
			} `json:"details"`
		} `json:"error"`
	}
	if json.Unmarshal(body, &said) != nil {
		return
	}
	for _, detail := range said.Error.Details {
		if wish, err := time.ParseDuration(detail.RetryDelay); err == nil && wish > 0 {
			e.RetryAfter = wire.Wish(wish)
		}
		for _, violation := range detail.Violations {
			if e.Code == regie.CodeProviderBusy && strings.Contains(violation.QuotaID, "PerDay") {
				e.Code, e.Retryable = regie.CodeProviderQuota, false
			}
		}
	}
}

// Name implements provider.Provider.
func (p *Provider) Name() string { return p.cfg.Name }

// Capabilities implements provider.Provider.
func (p *Provider) Capabilities(model string) provider.Capabilities {
	_, _, known := generationOf(model) // of others, such as gemma, only some take images
	can := provider.Capabilities{
		NativeTools: true, Thinking: thinks(model),
		Images: known && p.server.IsAt("generativelanguage.googleapis.com"),
	}
	return can.WithImages(p.cfg.Images)
}

// Models implements provider.Lister: those that generate content.
func (p *Provider) Models(ctx context.Context) ([]provider.Model, error) {
	return p.server.Models(ctx, version+"/models?pageSize=1000", p.Capabilities)
}

// Open implements provider.Provider.
func (p *Provider) Open(head provider.Head) (provider.Conversation, error) {
	request, err := NewRequest(head, Options{Thinking: ThinkingOf(head.Model, head.ReasoningEffort)})
	if err != nil {
		return nil, err
	}
	request.server, request.path = p.server, pathOf(head.Model)
	request.declared = make(map[string]string, len(head.Tools))
	for i := range head.Tools {
		request.declared[WireName(head.Tools[i].Name)] = head.Tools[i].Name
	}
	return request, nil
}

// pathOf returns the path that generates a model's replies.
func pathOf(model string) string {
	kind, name := resourceOf(model)
	return version + "/" + url.PathEscape(kind) + "/" + url.PathEscape(name) + ":streamGenerateContent?alt=sse"
}

// embedPath returns where texts are embedded by a model, and how the requests name it.
func embedPath(model string) (path, resource string) {
	kind, name := resourceOf(model)
	return version + "/" + url.PathEscape(kind) + "/" + url.PathEscape(name) + ":batchEmbedContents", kind + "/" + name
}

// resourceOf returns the two parts of a model's name, which may say what kind of model it is:
// models/gemini-…, tunedModels/….
func resourceOf(model string) (kind, name string) {
	kind, name, ok := strings.Cut(model, "/")
	if !ok {
		return "models", model
	}
	return kind, name
}

// Send implements provider.Conversation. The stream is read to its end: a reason for the end may
// stand in a chunk that others follow.
func (r *Request) Send(ctx context.Context, sink func(provider.Delta)) (_ *provider.Reply, err error) {
	defer r.server.Hide(&err)
	collected := newCollector(r.server, r.declared, sink)
	at := wire.Endpoint{Server: r.server, Path: r.path, Unmarked: true}
	err = collected.ReadEvents(ctx, at, r.Whole(), func(data []byte) (bool, error) {
		return false, collected.add(data)
	})
	if err != nil {
		return nil, err
	}
	return collected.end()
}
