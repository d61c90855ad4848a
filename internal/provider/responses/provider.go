package responses

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"slices"
	"strings"
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
	// Idle bounds how long a stream may be silent; zero means 2 minutes (spec 3.6).
	Idle time.Duration
	// ContextTokens is the window of its models, in tokens; zero where nobody has said it.
	ContextTokens int
}

// Provider is a server of the Responses API.
type Provider struct {
	cfg    Config
	server *wire.Server
}

// New returns a provider. It returns CodeBadRequest for an address that is none.
func New(cfg Config) (*Provider, error) {
	if cfg.BaseURL == "" {
		cfg.BaseURL = DefaultAddress
	}
	header := http.Header{}
	if cfg.APIKey != "" {
		header.Set("Authorization", "Bearer "+cfg.APIKey)
	}
	server, err := wire.New(wire.Config{
		Address: cfg.BaseURL, Example: DefaultAddress, API: "Responses", Header: header, Idle: cfg.Idle, Judge: judge,
		NotRunning: regie.Say("start the model server there, or set REGIE_BASE_URL to where it runs"),
	})
	if err != nil {
		return nil, err
	}
	return &Provider{cfg: cfg, server: server}, nil
}

// tryAgain is how the API says in words when to ask again, where it says it in no header.
var tryAgain = regexp.MustCompile(`(?i)try again in ((?:\d+(?:\.\d+)? ?(?:ms|s|m|h))+)\b`)

// judge knows the API's kinds of error, which come as a status or, once the stream has begun, as an
// event (spec 12.6, trap 7).
func judge(e *provider.Error, kind, said string) {
	if found := tryAgain.FindStringSubmatch(said); found != nil && e.RetryAfter == 0 {
		if wish, err := time.ParseDuration(strings.ToLower(strings.ReplaceAll(found[1], " ", ""))); err == nil {
			e.RetryAfter = wire.Wish(wish)
		}
	}
	switch {
	case slices.Contains([]string{
		"insufficient_quota", "billing_hard_limit_reached", "billing_not_active",
		"usage_limit_reached",
	}, kind):
		e.Code, e.Retryable, e.RetryAfter = regie.CodeProviderQuota, false, 0
	case kind == "invalid_encrypted_content":
		e.Message += ": go on with another model, which is not given what this one reasoned"
	case strings.Contains(said, "Encrypted content is not supported"):
		e.Message += ": the model does not reason; set api: chat for this provider"
	case e.Status == http.StatusNotFound && kind != "model_not_found":
		e.Message += "; a server without the Responses API wants api: chat"
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
	can := provider.Capabilities{NativeTools: true, Thinking: wire.Reasons(model), ContextTokens: p.cfg.ContextTokens}
	if can.Thinking {
		can.Temperature = provider.TemperedNever
	}
	return can
}

// Models implements provider.Lister.
func (p *Provider) Models(ctx context.Context) ([]provider.Model, error) {
	var answer struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if err := p.server.Get(ctx, "/models", &answer); err != nil {
		return nil, err
	}
	models := make([]provider.Model, 0, len(answer.Data))
	for _, m := range answer.Data {
		models = append(models, provider.Model{Name: wire.Safe(m.ID), Capabilities: p.Capabilities(m.ID)})
	}
	return models, nil
}

// Open implements provider.Provider.
func (p *Provider) Open(head provider.Head) (provider.Conversation, error) {
	request, err := NewRequest(head, Options{Reasons: wire.Reasons(head.Model)})
	if err != nil {
		return nil, err
	}
	return &conversation{provider: p, request: request}, nil
}

type conversation struct {
	provider *Provider
	request  *Request
}

// Append implements provider.Conversation.
func (c *conversation) Append(turns ...provider.Turn) { c.request.Append(turns...) }

// EndWith implements provider.Conversation.
func (c *conversation) EndWith(tail provider.Tail) { c.request.EndWith(tail) }

// Request implements provider.Conversation.
func (c *conversation) Request() (regie.Hash, int) { return c.request.sum() }

// Body implements provider.Shower.
func (c *conversation) Body() []byte { return c.request.Body() }

// Send implements provider.Conversation.
func (c *conversation) Send(ctx context.Context, sink func(provider.Delta)) (_ *provider.Reply, err error) {
	defer c.provider.server.Hide(&err)
	collected := newCollector(c.provider.server, sink, c.request.model)
	at := wire.Endpoint{Server: c.provider.server, Path: "/responses"}
	err = collected.ReadEvents(ctx, at, c.request.send, func(data []byte) (bool, error) {
		err := collected.add(data)
		return collected.stopped, err
	})
	if err != nil {
		return nil, err
	}
	return collected.whole()
}

// whole returns the reply of a stream that has ended in good order.
func (c *collector) whole() (*provider.Reply, error) {
	reply, err := c.Reply()
	if failed, ok := errors.AsType[*provider.Error](err); ok && failed.Code == regie.CodeEmptyReply && c.Cut {
		failed.Message = "the model thought until its reply reached the limit of its length, and answered nothing"
		if c.HeldBack {
			failed.Message = "the model's server held its whole reply back (content_filter)"
		}
	}
	return reply, err
}
