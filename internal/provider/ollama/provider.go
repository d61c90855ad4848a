package ollama

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/provider/wire"
)

// Name is the provider's name in thinking parts: they are replayed only here.
const Name = "ollama"

// DefaultAddress is where Ollama listens on its own machine.
const DefaultAddress = "http://127.0.0.1:11434"

// DefaultContext is the default context to request, in tokens, for models that have as much.
// Ollama's own default is 4,096 on most machines, too little for an agent.
const DefaultContext = 32_768

// Config is a configured server.
type Config struct {
	Name    string // the name in the configuration
	BaseURL string // such as http://127.0.0.1:11434; empty for it
	APIKey  string // empty for servers without keys, which is nearly all
	// Images says whether the models take images; nil leaves it to what is known of them.
	Images *bool
	// Context is the size of the context in tokens (num_ctx); zero means DefaultContext, or what
	// the model has if that is less.
	Context int
	// KeepAlive is how long the model stays in memory after a request, as Ollama writes it: 10m, 0,
	// -1; empty leaves it to the server.
	KeepAlive string
	// Idle bounds how long a stream may be silent; zero means 10 minutes, because a model is first
	// loaded into memory.
	Idle time.Duration
}

// Provider is an Ollama server.
type Provider struct {
	cfg    Config
	server *wire.Server
	free   bool // a self-hosted server, at no cost

	mu    sync.Mutex
	known map[string]provider.Capabilities // by model: what the server said
}

// New returns a provider. It returns CodeBadRequest for an invalid address.
func New(cfg Config) (*Provider, error) {
	if cfg.BaseURL == "" {
		cfg.BaseURL = DefaultAddress
	}
	if cfg.Idle == 0 {
		cfg.Idle = provider.MaxSilence
	}
	server, err := wire.New(wire.Config{
		Address: trimmed(cfg.BaseURL), Example: DefaultAddress, API: "Ollama",
		Header: wire.KeyHeader("Authorization", cfg.APIKey), Idle: cfg.Idle, Judge: judge,
		NotRunning: regie.Say("Ollama is not running; start it with: ollama serve"),
	})
	if err != nil {
		return nil, err
	}
	host := server.Host()
	free := host != "ollama.com" && !strings.HasSuffix(host, ".ollama.com")
	return &Provider{cfg: cfg, server: server, free: free, known: map[string]provider.Capabilities{}}, nil
}

// trimmed takes away the path of the compatible API, which people copy with the address.
func trimmed(address string) string {
	address = strings.TrimRight(address, "/")
	for _, path := range []string{"/v1", "/api"} {
		address = strings.TrimSuffix(address, path)
	}
	return address
}

// judge adds the remedy to errors that have one.
func judge(e *provider.Error, _, said string) {
	switch {
	case strings.Contains(said, "does not support embeddings"):
		e.Code, e.Retryable = regie.CodeProviderRejected, false
	case strings.Contains(said, "does not support tools"):
		e.Code, e.Retryable = regie.CodeProviderRejected, false
		e.Advise("ask it in JSON: --dialect json, or agents.main.dialect in regie.yaml")
	case e.Status == http.StatusNotFound && strings.Contains(said, "not found"):
		e.Advise("ollama pull gets it; regie models lists those that are there")
	case (e.Status == 0 || e.Status == http.StatusInternalServerError) &&
		strings.Contains(said, "error parsing tool call"): // the model's fault, not the request's
		e.Code, e.Retryable = regie.CodeBadReply, true
	}
}

// Name implements provider.Provider.
func (p *Provider) Name() string { return p.cfg.Name }

// lookTime bounds the request for a model's capabilities before a conversation begins.
const lookTime = 2 * time.Second

// Capabilities implements provider.Provider. It asks the server for the model; if the server does
// not answer, it assumes what most models can do.
func (p *Provider) Capabilities(model string) provider.Capabilities {
	ctx, cancel := context.WithTimeout(context.Background(), lookTime)
	defer cancel()
	c, err := p.show(ctx, model)
	if err != nil {
		c = provider.Capabilities{NativeTools: true, Free: p.free}
	}
	c.ContextTokens = p.window(c.ContextTokens)
	return c.WithImages(p.cfg.Images)
}

// window returns the context to request from a model that has this many tokens.
func (p *Provider) window(has int) int {
	window := p.cfg.Context
	if window == 0 {
		window = DefaultContext
	}
	if has > 0 {
		window = min(window, has)
	}
	return window
}

// show asks the server for a model's capabilities; ContextTokens is the model's full window.
func (p *Provider) show(ctx context.Context, model string) (provider.Capabilities, error) {
	p.mu.Lock()
	c, ok := p.known[model]
	p.mu.Unlock()
	if ok {
		return c, nil
	}
	var answer struct {
		Capabilities []string       `json:"capabilities"`
		Info         map[string]any `json:"model_info"`
	}
	if err := p.server.Ask(ctx, "/api/show", map[string]string{"model": model}, &answer); err != nil {
		return c, err
	}
	// Old servers do not list capabilities: then the first request shows whether tools work.
	c = provider.Capabilities{NativeTools: answer.Capabilities == nil, Free: p.free}
	for _, can := range answer.Capabilities {
		c.NativeTools = c.NativeTools || can == "tools"
		c.Thinking = c.Thinking || can == "thinking"
		c.Embeds = c.Embeds || can == "embedding"
		c.Images = c.Images || can == "vision"
	}
	for key, value := range answer.Info { // qwen3.context_length, llama.context_length, …
		if n, isNumber := value.(float64); isNumber && strings.HasSuffix(key, ".context_length") && n > 0 && n < 1<<40 {
			c.ContextTokens = max(c.ContextTokens, int(n))
		}
	}
	p.mu.Lock()
	p.known[model] = c
	p.mu.Unlock()
	return c, nil
}

// maxShown bounds the models of a list that are queried one by one.
const maxShown = 50

// Models implements provider.Lister: the newest first, with the capabilities that the server
// reports in time.
func (p *Provider) Models(ctx context.Context) ([]provider.Model, error) {
	asked := 0
	return p.server.Models(ctx, "/api/tags", func(name string) provider.Capabilities {
		if asked++; asked <= maxShown && ctx.Err() == nil {
			if c, err := p.show(ctx, name); err == nil {
				return c
			}
		}
		return provider.Capabilities{Free: p.free}
	})
}

// Open implements provider.Provider.
func (p *Provider) Open(head provider.Head) (provider.Conversation, error) {
	if err := wire.CheckHead(&head, p.cfg.BaseURL); err != nil {
		return nil, err
	}
	can := p.Capabilities(head.Model)
	options := Options{Context: can.ContextTokens, KeepAlive: p.cfg.KeepAlive, Think: thinkOf(head, can)}
	request := NewRequest(head, options)
	request.server = p.server
	return request, nil
}

// thinkOf returns the think member (docs.ollama.com/capabilities/thinking). A model that cannot
// think refuses it, so it gets none. gpt-oss takes a level, other models true or false.
func thinkOf(head provider.Head, can provider.Capabilities) string {
	switch effort := head.ReasoningEffort; {
	case effort == "" || !can.Thinking:
		return ""
	case strings.Contains(head.Model, "gpt-oss"):
		return `"` + regie.EffortWithin(effort, "low", "high") + `"`
	case effort == "none":
		return "false"
	default:
		return "true"
	}
}

// Send implements provider.Conversation.
func (r *Request) Send(ctx context.Context, sink func(provider.Delta)) (_ *provider.Reply, err error) {
	defer r.server.Hide(&err)
	collected := newCollector(r.server, sink)
	at := wire.Endpoint{Server: r.server, Path: "/api/chat", Lines: true}
	err = collected.ReadEvents(ctx, at, r.Whole(), func(line []byte) (bool, error) {
		err := collected.add(line)
		return collected.done, err
	})
	if err != nil {
		return nil, err
	}
	return collected.Reply()
}
