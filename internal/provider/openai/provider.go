package openai

import (
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
)

// Name is the provider's name in thinking parts: they are replayed only to a server of this kind.
const Name = "openai"

// Config is a configured server.
type Config struct {
	Name    string // the name in the configuration
	BaseURL string // as the vendor's documentation gives it, such as https://api.openai.com/v1
	APIKey  string // empty for servers without keys
	// Idle bounds how long a stream may be silent; zero means 2 minutes (spec 3.6).
	Idle time.Duration
	// Quirks are the vendor's deviations; nil picks them by the host name.
	Quirks *Quirks
}

// Quirks are where vendors deviate from OpenAI's own server.
type Quirks struct {
	// MaxCompletionTokens sends max_completion_tokens in place of max_tokens.
	MaxCompletionTokens bool
	// ReasoningBack sends thinking back as reasoning_content inside a tool loop (DeepSeek).
	ReasoningBack bool
	// NoDone accepts a stream that ends in good order after its finish reason without [DONE].
	NoDone bool
	// NoParallel leaves parallel_tool_calls out.
	NoParallel bool
}

func quirksOf(host string) *Quirks {
	switch {
	case strings.HasSuffix(host, "openai.com"):
		return &Quirks{MaxCompletionTokens: true}
	case strings.HasSuffix(host, "deepseek.com"):
		return &Quirks{ReasoningBack: true, NoParallel: true}
	default:
		return &Quirks{}
	}
}

// Provider is an OpenAI-compatible server.
type Provider struct {
	cfg    Config
	url    string
	local  bool
	client *http.Client
}

// New returns a provider. It returns CodeBadRequest for an address that is none.
func New(cfg Config) (*Provider, error) {
	u, err := url.Parse(strings.TrimRight(cfg.BaseURL, "/"))
	switch {
	case err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https"):
		return nil, regie.Errorf(regie.CodeBadRequest, "%q is not the address of a server: write it like http://127.0.0.1:8000/v1", cfg.BaseURL)
	case u.User != nil:
		return nil, regie.Errorf(regie.CodeBadRequest, "the address of a server must not hold a password: give the key by its own variable")
	case u.RawQuery != "" || u.Fragment != "":
		return nil, regie.Errorf(regie.CodeBadRequest, "the address %q must end with a path such as /v1", cfg.BaseURL)
	}
	if cfg.Idle == 0 {
		cfg.Idle = 2 * time.Minute
	}
	if cfg.Quirks == nil {
		cfg.Quirks = quirksOf(u.Hostname())
	}
	transport := &http.Transport{
		DialContext:           (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout:   15 * time.Second,
		ForceAttemptHTTP2:     true,
		MaxIdleConns:          256,
		MaxIdleConnsPerHost:   256,
		IdleConnTimeout:       90 * time.Second,
		WriteBufferSize:       64 << 10, // a thread is hundreds of kilobytes
		ReadBufferSize:        16 << 10,
		DisableCompression:    true, // a stream is read as it comes
		ResponseHeaderTimeout: cfg.Idle,
	}
	local := isLoopback(u.Hostname())
	if !local {
		transport.Proxy = http.ProxyFromEnvironment
	}
	return &Provider{
		cfg: cfg, url: u.String() + "/chat/completions", local: local,
		client: &http.Client{
			Transport: transport,
			// A redirected key is a key given away; a model API has no business redirecting.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Name implements provider.Provider.
func (p *Provider) Name() string { return p.cfg.Name }

// Capabilities implements provider.Provider. A server on this machine costs nothing (decision 29).
func (p *Provider) Capabilities(string) provider.Capabilities {
	return provider.Capabilities{NativeTools: true, Local: p.local}
}

// Open implements provider.Provider.
func (p *Provider) Open(head provider.Head) (provider.Conversation, error) {
	if head.Model == "" {
		return nil, regie.Errorf(regie.CodeNoModel, "no model is named for the server %s", p.cfg.BaseURL)
	}
	if head.MaxOutput <= 0 {
		return nil, regie.Errorf(regie.CodeBadRequest, "a request must bound its output")
	}
	c := &conversation{provider: p}
	c.begin(head)
	return c, nil
}

// offline reports whether the request was certainly not sent (decision 42).
func offline(err error) bool {
	var dns *net.DNSError
	var op *net.OpError
	return errors.As(err, &dns) || errors.As(err, &op) && op.Op == "dial" || strings.Contains(err.Error(), "TLS handshake") ||
		strings.Contains(err.Error(), "tls: ") || strings.Contains(err.Error(), "x509: ")
}
