package responses

import (
	"context"
	"net/http"
	"regexp"
	"slices"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/provider/wire"
)

// DefaultAddress is the vendor's own server.
const DefaultAddress = "https://api.openai.com/v1"

// Config is a configured server.
type Config struct {
	Name    string // the name in the configuration
	BaseURL string // such as https://api.openai.com/v1; empty for it
	APIKey  string // empty for servers without keys
	// Images says whether the models take images; nil leaves it to what is known of them.
	Images *bool
	// Idle bounds how long a stream may be silent; zero means 2 minutes (spec 3.6).
	Idle time.Duration
	// ContextTokens is the window of its models, in tokens; zero if not configured.
	ContextTokens int
}

// Provider is a server of the Responses API.
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
		Address: cfg.BaseURL, Example: DefaultAddress, API: "Responses",
		Header: wire.KeyHeader("Authorization", cfg.APIKey), Idle: cfg.Idle, Judge: judge,
		NotRunning: regie.Say("start the model server there, or set REGIE_BASE_URL to where it runs"),
	})
	if err != nil {
		return nil, err
	}
	return &Provider{cfg: cfg, server: server}, nil
}

// judge knows the API's kinds of error, which come as a status or, once the stream has begun, as an
// event (spec 12.6, trap 7).
func judge(e *provider.Error, kind, _ string) {
	switch {
	case slices.Contains([]string{
		"insufficient_quota", "billing_hard_limit_reached", "billing_not_active",
		"usage_limit_reached",
	}, kind):
		e.Code, e.Retryable, e.RetryAfter = regie.CodeProviderQuota, false, 0
	case e.Status == http.StatusNotFound && kind != "model_not_found":
		e.Advise("a server without the Responses API wants api: chat")
	case e.Status != 0, e.Code == regie.CodeContextTooLarge: // which says the rest
	case slices.Contains([]string{"invalid_api_key", "authentication_error", "permission_error"}, kind):
		e.Code, e.Retryable = regie.CodeProviderAuth, false
	case slices.Contains([]string{
		"invalid_request_error", "invalid_prompt", "bio_policy", "cyber_policy",
		"data_residency_mismatch", "model_not_found",
	}, kind):
		e.Code, e.Retryable = regie.CodeProviderRejected, false
	}
}

// Name implements provider.Provider.
func (p *Provider) Name() string { return p.cfg.Name }

// Capabilities implements provider.Provider.
func (p *Provider) Capabilities(model string) provider.Capabilities {
	can := provider.Capabilities{
		NativeTools: true, Thinking: wire.Reasons(model), ContextTokens: p.cfg.ContextTokens,
		Images: p.server.IsAt("openai.com") && !textOnly.MatchString(model),
	}
	if can.Thinking {
		can.Temperature = provider.TemperedNever
	}
	return can.WithImages(p.cfg.Images)
}

// textOnly matches the models without images.
var textOnly = regexp.MustCompile(`^(gpt-3|gpt-4(-\d{4}.*)?$|o1-mini|o1-preview|o3-mini)`)

// Models implements provider.Lister.
func (p *Provider) Models(ctx context.Context) ([]provider.Model, error) {
	return p.server.Models(ctx, "/models", p.Capabilities)
}

// Open implements provider.Provider.
func (p *Provider) Open(head provider.Head) (provider.Conversation, error) {
	request, err := NewRequest(head, Options{Reasons: wire.Reasons(head.Model)})
	if err != nil {
		return nil, err
	}
	request.server = p.server
	return request, nil
}

// Send implements provider.Conversation.
func (r *Request) Send(ctx context.Context, sink func(provider.Delta)) (_ *provider.Reply, err error) {
	defer r.server.Hide(&err)
	collected := newCollector(r.server, sink, r.model)
	at := wire.Endpoint{Server: r.server, Path: "/responses"}
	err = collected.ReadEvents(ctx, at, r.Whole(), func(data []byte) (bool, error) {
		err := collected.add(data)
		return collected.stopped, err
	})
	if err != nil {
		return nil, err
	}
	return collected.Reply()
}
