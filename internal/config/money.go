package config

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/price"
)

// Dollars is an amount in a configuration file, in millionths of a US dollar. It is read exactly as
// it is written.
type Dollars int64

// UnmarshalYAML implements yaml.Unmarshaler.
func (d *Dollars) UnmarshalYAML(node *yaml.Node) error {
	amount, err := price.Parse(node.Value)
	if err != nil || node.Kind != yaml.ScalarNode {
		return regie.Errorf(regie.CodeBadRequest,
			"%q is not an amount in US dollars: write it like 10 or 0.075, with at most six decimals", node.Value)
	}
	*d = Dollars(amount)
	return nil
}

// Cap is an amount that bounds something: more than nothing.
type Cap int64

// UnmarshalYAML implements yaml.Unmarshaler.
func (c *Cap) UnmarshalYAML(node *yaml.Node) error {
	var d Dollars
	if err := d.UnmarshalYAML(node); err != nil {
		return err
	}
	if d == 0 {
		return regie.Errorf(regie.CodeBadRequest,
			"a budget of 0 would allow nothing: leave it out for no limit")
	}
	*c = Cap(d)
	return nil
}

// MarshalYAML implements yaml.Marshaler: the form that UnmarshalYAML reads.
func (c Cap) MarshalYAML() (any, error) {
	text := fmt.Sprintf("%d.%06d", c/1_000_000, c%1_000_000)
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!float", Value: text}, nil
}

// Rates are what a model costs, in US dollars for a million tokens, where the built-in list does
// not have it or has another price. Input and output are said, the others are as input where they
// are left out. Longer prompts cost as short ones.
type Rates struct {
	Input       *Dollars `yaml:"input"`
	CachedInput *Dollars `yaml:"cached_input,omitempty"`
	CacheWrite  *Dollars `yaml:"cache_write,omitempty"`
	Output      *Dollars `yaml:"output"`
}

// AnyModel matches the models of a provider that have no entry.
const AnyModel = "*"

func (r Rates) toPrice() price.Price {
	or := func(d *Dollars) int64 {
		if d == nil {
			d = r.Input
		}
		return int64(*d)
	}
	return price.Price{Rates: price.Rates{
		Input: or(r.Input), CachedInput: or(r.CachedInput),
		CacheWrite: or(r.CacheWrite), Output: or(r.Output),
	}}
}

// AgentBudget is what an agent's runs may cost and how large its prompts may get; it lowers what is
// said for all of them.
type AgentBudget struct {
	ContextTokens   int `yaml:"context_tokens,omitempty"`
	USDPerRound     Cap `yaml:"usd_per_round,omitempty"`
	USDPerSession   Cap `yaml:"usd_per_session,omitempty"`
	USDPerWorkspace Cap `yaml:"usd_per_workspace_day,omitempty"`
	USDPerDay       Cap `yaml:"usd_per_day,omitempty"`
}

// Caps returns the budget of an agent: the lower of its own caps and those for all agents (spec
// 3.2, 13).
func (f *File) Caps(name string) regie.Caps {
	agent := f.Agents[name]
	return f.CapsOf(&agent)
}

// CapsOf returns Caps for an agent that may be none of the file.
func (f *File) CapsOf(agent *Agent) regie.Caps {
	app := regie.Caps{
		Round: int64(f.Budget.USDPerRound), Session: int64(f.Budget.USDPerSession),
		Workspace: int64(f.Budget.USDPerWorkspace), Day: int64(f.Budget.USDPerDay),
	}
	own := agent.Budget
	return app.Lower(regie.Caps{
		Round: int64(own.USDPerRound), Session: int64(own.USDPerSession),
		Workspace: int64(own.USDPerWorkspace), Day: int64(own.USDPerDay),
	})
}

// Price returns the price of a model of a provider: from the file, else from the vendor's price
// list. stated is true for a price of the file and for a server on this machine. A server run by a
// third party has prices of its own, so they are unknown unless the file names its vendor.
func (c *Config) Price(provider, model string) (p price.Price, stated, known bool) {
	settings, ok := c.Named(provider)
	if !ok {
		return price.Price{}, false, false
	}
	return c.PriceOf(settings, model)
}

// PriceOf is Price for a provider with its settings.
func (c *Config) PriceOf(settings Provider, model string) (p price.Price, stated, known bool) {
	lower := make(map[string]string, len(settings.Prices))
	for name := range settings.Prices {
		lower[strings.ToLower(name)] = name
	}
	if name, ok := price.Match(settings.Vendor, model, func(name string) bool { return lower[name] != "" }); ok {
		return settings.Prices[lower[name]].toPrice(), true, true
	}
	if rates, ok := settings.Prices[AnyModel]; ok {
		return rates.toPrice(), true, true
	}
	p, known = price.Find(settings.Wire(), model)
	return p, false, known
}
