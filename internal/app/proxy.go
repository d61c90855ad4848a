package app

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/compat"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/control"
	"github.com/regie-run/regie/internal/engine"
	"github.com/regie-run/regie/internal/price"
	"github.com/regie-run/regie/internal/provider/anthropic"
	"github.com/regie-run/regie/internal/provider/responses"
	"github.com/regie-run/regie/internal/store"
)

const (
	// leastAnswer is the least bound of an answer that a cap may set, longestAnswer the bound where
	// a cap holds and the request sets none, in tokens (decision 29).
	leastAnswer   = 1000
	longestAnswer = 8192
	// leftOpen is how long a call that another process has open on a shared database is left to it.
	leftOpen = time.Hour
	// Calls are logged together: those of logEvery, or logBatch of them. maxUnlogged is how many
	// may wait for that.
	logEvery    = 100 * time.Millisecond
	logBatch    = 512
	maxUnlogged = 2048
)

// passer implements compat.Proxy on the providers of the settings. One goroutine logs the usage of
// calls in batches; a call under a cap is stored before it is made.
type passer struct {
	*Engine
	queue      chan store.Proxied
	stop, done chan struct{}
	once       sync.Once

	mu  sync.Mutex
	ups map[string]compat.Upstream
}

func newPasser(e *Engine) *passer {
	p := &passer{
		Engine: e, queue: make(chan store.Proxied, maxUnlogged), stop: make(chan struct{}), done: make(chan struct{}),
		ups: map[string]compat.Upstream{},
	}
	go p.writeLog()
	return p
}

// flushRest logs what is left.
func (p *passer) flushRest() {
	p.once.Do(func() { close(p.stop) })
	<-p.done
}

// writeLog logs calls until stop closes, and what is left then.
func (p *passer) writeLog() {
	defer close(p.done)
	for {
		select {
		case first := <-p.queue:
			timer := time.NewTimer(logEvery)
			select { // others come meanwhile
			case <-timer.C:
			case <-p.stop:
			}
			timer.Stop()
			p.flushCalls(first)
		case <-p.stop:
			for len(p.queue) > 0 {
				p.flushCalls(<-p.queue)
			}
			return
		}
	}
}

// flushCalls logs a call and those that wait behind it.
func (p *passer) flushCalls(first store.Proxied) {
	batch := []store.Proxied{first}
	for len(p.queue) > 0 && len(batch) < logBatch {
		batch = append(batch, <-p.queue)
	}
	if err := p.store.LogProxied(context.Background(), batch); err != nil {
		p.log.Error("model calls that were passed on could not be logged", "calls", len(batch), "code",
			string(regie.CodeOf(err)), "error", err)
	}
}

// Done implements compat.Proxy. Where the log cannot keep up, the caller waits for it.
func (p *passer) Done(call store.Proxied) {
	if cost, known := p.costOf(&call); known {
		call.Money.Cost, call.Money.Known = cost, true
		call.Money.Overrun = max(0, cost-call.Money.Reserved)
	}
	if call.UserID.IsZero() {
		owner, _ := p.ensureUser(context.Background()) // it is known, since somebody was let in
		call.UserID = owner.ID
	}
	select {
	case p.queue <- call:
	case <-p.stop:
	}
}

// Proxy passes requests of clients on to the providers of this engine's settings; it ends with the
// engine.
func (e *Engine) Proxy() compat.Proxy { return e.proxy }

// costOf returns the cost of a call with a reported usage.
func (p *passer) costOf(call *store.Proxied) (int64, bool) {
	if call.Money.Known {
		return call.Money.Cost, true
	}
	known, stated := p.priceOf(call)
	if !stated || call.Usage == (regie.Usage{}) && !known.Free() {
		return 0, false
	}
	return known.Cost(call.Usage)
}

// priceOf returns the price of a call's model; ok is false where it is unknown.
func (p *passer) priceOf(call *store.Proxied) (price.Price, bool) {
	known, stated, ok := p.config.Price(call.Provider, call.Model)
	if !stated {
		if model, err := p.providers.own.models(call.Provider); err == nil && model.Capabilities(call.Model).Free {
			return price.Price{}, true
		}
	}
	return known, ok
}

// Models implements compat.Proxy.
func (p *passer) Models(_ context.Context, api string) []string {
	var out []string
	for _, name := range p.config.ProviderNames() {
		if _, err := p.Upstream(name, api); err != nil {
			continue
		}
		settings, _ := p.config.Named(name)
		for _, model := range settings.Models {
			out = append(out, name+"/"+model)
		}
		if name == p.config.Provider && p.config.Model != "" {
			out = append(out, name+"/"+p.config.Model)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Has implements compat.Proxy.
func (p *passer) Has(name string) bool {
	_, ok := p.config.Named(name)
	return ok
}

// Upstream implements compat.Proxy.
func (p *passer) Upstream(name, api string) (compat.Upstream, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if up, ok := p.ups[name+"\x00"+api]; ok {
		return up, nil
	}
	settings, _ := p.config.Named(name)
	up, err := upstreamOf(name, &settings, api)
	if err != nil {
		return up, err
	}
	up.Hide = func(said []byte) []byte {
		if len(settings.APIKey) < 8 {
			return said
		}
		return []byte(strings.ReplaceAll(string(said), settings.APIKey, "[the API key]"))
	}
	p.ups[name+"\x00"+api] = up
	return up, nil
}

// upstreamOf returns where a provider of these settings takes requests of an API.
func upstreamOf(name string, settings *config.Provider, api string) (compat.Upstream, error) {
	messages, takes := api == compat.APIMessages || api == compat.APICount, false
	switch {
	case settings.Type == config.ProviderAnthropic:
		takes = messages
	case settings.Type == config.ProviderOpenAI, settings.Type == config.ProviderOllama,
		settings.Type == "" && settings.BaseURL != "": // what has no type is an address
		takes = !messages && (api != compat.APIResponses || settings.Speaks() == config.APIResponses)
	}
	if !takes {
		return compat.Upstream{}, regie.Errorf(regie.CodeBadRequest,
			"the server of %s does not support /v1/%s: use the address of its own API, or an agent",
			name, api)
	}
	if err := settings.Keyless(); err != nil {
		return compat.Upstream{}, err
	}
	up := compat.Upstream{Header: http.Header{"Content-Type": {"application/json"}}, MaxTokens: "max_tokens"}
	base := strings.TrimRight(cmp.Or(settings.BaseURL, responses.DefaultAddress), "/")
	switch {
	case messages:
		base = strings.TrimRight(cmp.Or(settings.BaseURL, anthropic.DefaultAddress), "/")
		base = strings.TrimSuffix(base, "/v1") + "/v1"
		up.Header.Set("Anthropic-Version", anthropic.Version)
		up.Passes = []string{"Anthropic-Version", "Anthropic-Beta"} // they say how a request is meant
	case settings.Type == config.ProviderOllama:
		base = strings.TrimRight(settings.BaseURL, "/") + "/v1"
	case api == compat.APIResponses:
		up.MaxTokens = "max_output_tokens"
	case settings.Speaks() == config.APIResponses: // OpenAI's own: its models that reason take only this one
		up.MaxTokens = "max_completion_tokens"
	}
	switch {
	case settings.APIKey == "":
	case messages:
		up.Header.Set("X-Api-Key", settings.APIKey)
	default:
		up.Header.Set("Authorization", "Bearer "+settings.APIKey)
	}
	up.URL, up.Transport = base+"/"+api, passingTransport(base)
	return up, nil
}

// passingTransport keeps connections to one server open.
func passingTransport(base string) *http.Transport {
	transport := http.DefaultTransport.(*http.Transport).Clone() //nolint:errcheck,forcetypeassert // net/http says so
	transport.MaxIdleConns, transport.MaxIdleConnsPerHost, transport.DisableCompression = 256, 256, true
	transport.ResponseHeaderTimeout = 10 * time.Minute
	if isLocal(base) {
		transport.Proxy = nil
	}
	return transport
}

// Reserve implements compat.Proxy.
func (p *passer) Reserve(ctx context.Context, call *store.Proxied, root string, size, answers, most int) (int, error) {
	owner, err := p.ensureUser(ctx)
	if err != nil {
		return 0, err
	}
	call.UserID = owner.ID
	own, err := p.projects.Settings(root)
	caps := p.config.File.Caps(control.MainAgent).Lower(own.Caps(control.MainAgent))
	if err != nil || caps.IsZero() {
		return 0, err
	}
	known, ok := p.priceOf(call)
	if ok && known.Free() {
		return 0, nil
	}
	if !ok {
		return 0, engine.PriceUnknown(call.Provider, call.Model)
	}
	longest := cmp.Or(most, longestAnswer)
	tokens := (int64(size)/3 + 1) * 6 / 5
	wants := store.Reservation{Caps: caps}
	var priced, least bool
	wants.Prompt, wants.Reply, priced = known.Most(tokens, int64(longest*answers))
	_, wants.Least, least = known.Most(tokens, int64(min(longest, leastAnswer)*answers))
	if !priced || !least {
		return 0, engine.PriceUnknown(call.Provider, call.Model)
	}
	granted, err := p.store.ReserveProxied(ctx, *call, wants)
	if err != nil {
		return 0, err
	}
	if over := granted.Refused; over != nil {
		return 0, regie.Errorf(regie.CodeOverBudget,
			"%s allows $%s, of which $%s is spent or reserved: this call could cost up to $%s", over.Scope.Key(),
			regie.Dollars(over.Cap), regie.Dollars(over.Used), regie.Dollars(wants.Prompt+wants.Least))
	}
	call.Money.Reserved = granted.Reserved
	afford := int(known.Reply(granted.Reserved-wants.Prompt, tokens, int64(longest*answers))) / answers
	return min(longest, max(1, afford)), nil
}
