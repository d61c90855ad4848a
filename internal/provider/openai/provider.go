package openai

import (
	"cmp"
	"context"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/provider/wire"
)

// Name names this codec, and marks the thinking of a server without a known vendor.
const Name = "openai"

// Config is a configured server.
type Config struct {
	Name    string // the name in the configuration
	BaseURL string // as the vendor's documentation gives it, such as https://api.openai.com/v1
	APIKey  string // empty for servers without keys
	// Images says whether the models take images; nil leaves it to what is known of them.
	Images *bool
	// Vendor is the server's vendor, one of Vendors; another value or empty means an unknown
	// server.
	Vendor string
	// Idle bounds how long a stream may be silent; zero means 2 minutes (spec 3.6).
	Idle time.Duration
	// ContextTokens is the window of its models, in tokens; zero if not configured.
	ContextTokens int
	// Dial connects to the server; nil dials TCP. It is for servers that listen elsewhere.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Provider is an OpenAI-compatible server.
type Provider struct {
	cfg    Config
	quirks quirks
	server *wire.Server
	// the same server without the path of the API, for requests outside it; nil if the vendor needs
	// none
	root *wire.Server

	mu     sync.Mutex
	listed map[string]provider.Capabilities // by model: what the server said of it
}

// New returns a provider. It returns CodeBadRequest for an invalid address.
func New(cfg Config) (*Provider, error) {
	p := &Provider{cfg: cfg, quirks: quirksOf(cfg.Vendor), listed: map[string]provider.Capabilities{}}
	settings := wire.Config{
		Address: cfg.BaseURL, Example: cmp.Or(p.quirks.example, "http://127.0.0.1:8000/v1"), API: "Chat Completions",
		Header: wire.KeyHeader("Authorization", cfg.APIKey), Idle: cfg.Idle, Dial: cfg.Dial,
		Judge: p.judge, NotRunning: regie.Say("start the model server there, or set REGIE_BASE_URL to where it runs"),
	}
	var err error
	if p.server, err = wire.New(settings); err != nil {
		return nil, err
	}
	if p.quirks.sizes != nil {
		settings.Address = strings.TrimSuffix(strings.TrimRight(cfg.BaseURL, "/"), "/v1")
		p.root, err = wire.New(settings)
	}
	return p, err
}

// judge interprets an error beyond its HTTP status: by rules common to all vendors, then by the
// vendor's own.
func (p *Provider) judge(e *provider.Error, kind, said string) {
	judgeAll(e, kind, said)
	if p.quirks.judge != nil {
		p.quirks.judge(e, kind, said)
	}
}

// Name implements provider.Provider.
func (p *Provider) Name() string { return p.cfg.Name }

// Capabilities implements provider.Provider.
func (p *Provider) Capabilities(model string) provider.Capabilities {
	can := p.vendorCapabilities(model)
	listed := p.lookUp(model)
	can.ContextTokens, can.Images = cmp.Or(p.cfg.ContextTokens, listed.ContextTokens), listed.Images
	if p.quirks.untempered != nil && p.quirks.untempered(model) {
		can.Temperature = provider.TemperedNever
	}
	return can.WithImages(p.cfg.Images)
}

// Open implements provider.Provider.
func (p *Provider) Open(head provider.Head) (provider.Conversation, error) {
	switch err := wire.CheckHead(&head, p.cfg.BaseURL); {
	case err != nil:
		return nil, err
	case p.quirks.noTools && len(head.Tools) > 0:
		return nil, regie.Errorf(regie.CodeBadRequest,
			"the models of %s have no native tool calls: leave the dialect out, or set it to json", p.quirks.vendor)
	}
	c := &conversation{server: p.server}
	c.begin(p.quirks, head)
	return c, nil
}

// Send implements provider.Conversation.
func (c *conversation) Send(ctx context.Context, sink func(provider.Delta)) (_ *provider.Reply, err error) {
	defer c.server.Hide(&err)
	collected := newCollector(c.server, c.quirks.vendor, sink)
	at := wire.Endpoint{Server: c.server, Path: "/chat/completions", Unmarked: c.quirks.noDone}
	err = collected.ReadEvents(ctx, at, c.Whole(), func(data []byte) (bool, error) {
		if string(data) == "[DONE]" {
			return true, nil
		}
		return false, collected.add(data)
	})
	if err != nil {
		return nil, err
	}
	if collected.Finish == "" {
		return nil, collected.Failed(wire.Truncated())
	}
	collected.keepDetails(c.model)
	reply, err := collected.Reply()
	if err == nil {
		reply.Sources = collected.sources
	}
	return reply, err
}
