package app

import (
	"cmp"
	"context"
	"net"
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
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/provider/anthropic"
	"github.com/regie-run/regie/internal/provider/responses"
	"github.com/regie-run/regie/internal/provider/wire"
	"github.com/regie-run/regie/internal/store"
)

const (
	// The caps of a workspace's own file hold from so much later on than it was written, for calls
	// that are passed on.
	capsTime = time.Second
	// maxPriced is how many prices are known at once.
	maxPriced = 1024
	// leastAnswer is the least bound of an answer that a cap may set, longestAnswer the bound where
	// a cap holds and the request sets none, in tokens (decision 29).
	leastAnswer   = 1000
	longestAnswer = 8192
	// leftOpen is how long a call that another process has open on a shared database is left to it.
	leftOpen = time.Hour
)

// passer is compat.Proxy on the providers of the settings.
type passer struct {
	*Engine
	*passLog

	mu     sync.Mutex
	ups    map[string]compat.Upstream
	caps   map[string]capsAt // by root
	places map[regie.ID]regie.Workspace
	prices map[string]priced // by provider and model
}

// capsAt are the caps of a workspace as they were at a moment.
type capsAt struct {
	caps regie.Caps
	at   time.Time
}

// priced is a price that was looked up.
type priced struct {
	price price.Price
	known bool
}

// Proxy passes requests of clients on to the providers of this engine's settings; it ends with the
// engine.
func (e *Engine) Proxy() compat.Proxy { return e.proxy }

// Proxy is that of the engine of this process; nil where another process is the engine.
func (c *Conn) Proxy() compat.Proxy {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.engine == nil || c.engine.proxy == nil {
		return nil
	}
	return c.engine.proxy
}

// leftSince is from when on a call that is open may be another process's.
func leftSince(c config.Config) time.Time {
	if c.Database != "" {
		return time.Now().Add(-leftOpen)
	}
	return time.Now()
}

// cost is what a call has cost, of which its provider said what it used.
func (p *passer) cost(call *store.Proxied) (int64, bool) {
	if call.Money.Known {
		return call.Money.Cost, true
	}
	known, stated := p.priceOf(call)
	if !stated || call.Usage == (regie.Usage{}) && !known.Free() {
		return 0, false
	}
	return known.Cost(call.Usage)
}

// priceOf is what the model of a call costs; ok is false where nobody knows. It is looked up once:
// settings do not change while an engine runs.
func (p *passer) priceOf(call *store.Proxied) (price.Price, bool) {
	name := call.Provider + "\x00" + call.Model
	p.mu.Lock()
	known, ok := p.prices[name]
	p.mu.Unlock()
	if ok {
		return known.price, known.known
	}
	known.price, known.known = p.findPrice(call)
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.prices) >= maxPriced {
		clear(p.prices)
	}
	p.prices[name] = known
	return known.price, known.known
}

func (p *passer) findPrice(call *store.Proxied) (price.Price, bool) {
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
	up, err := upstream(name, &settings, api)
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

// upstream is where a provider of these settings takes requests of an API.
func upstream(name string, settings *config.Provider, api string) (compat.Upstream, error) {
	messages := api == compat.APIMessages || api == compat.APICount
	if settings.Type == config.ProviderAnthropic {
		if !messages {
			return compat.Upstream{}, regie.Errorf(regie.CodeBadRequest,
				"the server of %s speaks Messages alone: use /v1/messages", name)
		}
		return upstreamMessages(settings, api)
	}
	// what has no type is an address
	speaks := settings.Type == config.ProviderOpenAI || settings.Type == "" && settings.BaseURL != ""
	base := strings.TrimRight(cmp.Or(settings.BaseURL, responses.DefaultAddress), "/")
	if settings.Type == config.ProviderOllama {
		speaks, base = true, strings.TrimRight(settings.BaseURL, "/")+"/v1"
	}
	switch {
	case !speaks:
		return compat.Upstream{}, regie.Errorf(regie.CodeBadRequest,
			"the server of %s has an API of its own: it can be asked by an agent, and nothing can be passed on to it",
			name)
	case messages:
		return compat.Upstream{}, regie.Errorf(regie.CodeBadRequest,
			"the server of %s does not speak Messages: use /v1/chat/completions", name)
	case api == compat.APIResponses && settings.Speaks() != config.APIResponses:
		return compat.Upstream{}, regie.Errorf(regie.CodeBadRequest,
			"the server of %s does not speak Responses: use /v1/chat/completions", name)
	}
	if err := settings.Keyless(); err != nil {
		return compat.Upstream{}, err
	}
	up := compat.Upstream{
		URL: base + "/" + api, Header: http.Header{"Content-Type": {"application/json"}},
		Transport: passingTransport(base), MaxTokens: "max_tokens",
	}
	switch {
	case api == compat.APIResponses:
		up.MaxTokens = "max_output_tokens"
	case settings.Speaks() == config.APIResponses: // OpenAI's own: its models that reason take only this one
		up.MaxTokens = "max_completion_tokens"
	}
	if settings.APIKey != "" {
		up.Header.Set("Authorization", "Bearer "+settings.APIKey)
	}
	return up, nil
}

// upstreamMessages is where one of Anthropic's kind takes them. Which version of the API a request
// means, and what of it that is new, its headers say.
func upstreamMessages(settings *config.Provider, api string) (compat.Upstream, error) {
	if err := settings.Keyless(); err != nil {
		return compat.Upstream{}, err
	}
	base := strings.TrimSuffix(strings.TrimRight(cmp.Or(settings.BaseURL, anthropic.DefaultAddress), "/"), "/v1")
	up := compat.Upstream{
		URL: base + "/v1/" + api, Header: http.Header{
			"Content-Type":      {"application/json"},
			"Anthropic-Version": {anthropic.Version},
		}, Transport: passingTransport(base),
		MaxTokens: "max_tokens", Passes: []string{"Anthropic-Version", "Anthropic-Beta"},
	}
	if settings.APIKey != "" {
		up.Header.Set("X-Api-Key", settings.APIKey)
	}
	return up, nil
}

// passingTransport keeps connections to one server open.
func passingTransport(base string) *http.Transport {
	transport := &http.Transport{
		DialContext:         (&net.Dialer{Timeout: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout: 15 * time.Second, ForceAttemptHTTP2: true,
		MaxIdleConns: 256, MaxIdleConnsPerHost: 256, IdleConnTimeout: 90 * time.Second, DisableCompression: true,
		ResponseHeaderTimeout: 10 * time.Minute,
	}
	if request, err := http.NewRequest(http.MethodGet, base, nil); err == nil && //nolint:noctx // never sent
		!wire.IsLoopback(request.URL.Hostname()) {
		transport.Proxy = http.ProxyFromEnvironment
	}
	return transport
}

// Reserve implements compat.Proxy.
func (p *passer) Reserve(ctx context.Context, call *store.Proxied, size, answers, most int) (int, error) {
	owner, place, err := p.placeOf(ctx, call.WorkspaceID)
	if err != nil {
		return 0, err
	}
	call.UserID = owner.ID
	caps, err := p.capsOf(place.Root)
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

// capsOf are the caps that hold for what is passed on in a workspace. Its own file is looked at
// once in a while: at each request the looking would be a sixth of all that is done for one.
func (p *passer) capsOf(root string) (regie.Caps, error) {
	p.mu.Lock()
	known, ok := p.caps[root]
	p.mu.Unlock()
	if ok && time.Since(known.at) < capsTime {
		return known.caps, nil
	}
	now := time.Now()
	own, err := p.projects.Settings(root)
	if err != nil {
		return regie.Caps{}, err
	}
	caps := p.config.File.Caps(control.MainAgent).Lower(own.Caps())
	p.mu.Lock()
	p.caps[root] = capsAt{caps, now}
	p.mu.Unlock()
	return caps, nil
}

// placeOf is the owner of a workspace and itself; it is read once.
func (p *passer) placeOf(ctx context.Context, id regie.ID) (regie.User, regie.Workspace, error) {
	owner, err := p.user(ctx)
	if err != nil {
		return owner, regie.Workspace{}, err
	}
	p.mu.Lock()
	place, known := p.places[id]
	p.mu.Unlock()
	if known {
		return owner, place, nil
	}
	all, err := p.store.Workspaces(ctx)
	at := slices.IndexFunc(all, func(w regie.Workspace) bool { return w.ID == id })
	if err == nil && at < 0 {
		err = regie.Errorf(regie.CodeNotFound, "there is no workspace %s here", id)
	}
	if err != nil {
		return owner, place, err
	}
	p.mu.Lock()
	p.places[id] = all[at]
	p.mu.Unlock()
	return owner, all[at], nil
}

// Caches implements compat.Proxy.
func (p *passer) Caches(temperature *float64) bool {
	agent := p.config.File.Agents[control.MainAgent]
	switch agent.Cache {
	case config.CacheOn:
		return true
	case config.CacheOff:
		return false
	default:
		return temperature != nil && *temperature == 0
	}
}

// Ask implements compat.Proxy. An answer is held in memory alone: it is of no session that it could
// be kept with.
func (p *passer) Ask(ctx context.Context, call *store.Proxied, request regie.Hash,
	send func() ([]byte, bool, error),
) ([]byte, bool, error) {
	settings := p.config.FingerprintOf(call.Provider).String()
	key := regie.HashOf([]byte(strings.Join([]string{
		"proxied", call.WorkspaceID.String(), call.Provider,
		settings, request.String(),
	}, "\x00")))
	owner, _, err := p.placeOf(ctx, call.WorkspaceID)
	if err != nil {
		return nil, false, err
	}
	call.UserID = owner.ID
	q := provider.Question{
		Asker: provider.Asker{User: owner.ID, Workspace: call.WorkspaceID}, Key: key,
		Provider: call.Provider, Model: call.Model,
	}
	whole := false // of what is asked for here
	reply, err := p.cache.Ask(ctx, q, func() (*provider.Reply, error) {
		said, ended, err := send()
		whole = ended
		if err != nil {
			return nil, err
		}
		return &provider.Reply{Parts: []provider.Part{{Type: regie.PartText, Text: string(said)}}}, nil
	}, func(reply *provider.Reply) bool { return whole && callsNothing(reply) })
	if err != nil {
		return nil, false, err
	}
	return []byte(reply.Parts[0].Text), reply.Cached.IsZero(), nil
}

// callsNothing reports whether an answer calls nothing: whoever is given one that does would do it
// once more.
func callsNothing(reply *provider.Reply) bool {
	text := strings.ReplaceAll(reply.Parts[0].Text, `": `, `":`)
	return !slices.ContainsFunc(callMarks, func(mark string) bool { return strings.Contains(text, mark) })
}

// callMarks are what answers say that call something, in the words of each API.
var callMarks = []string{`"tool_calls":[`, `"function_call"`, `"type":"tool_use"`, `"type":"server_tool_use"`}
