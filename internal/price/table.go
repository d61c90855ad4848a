package price

import (
	"bytes"
	_ "embed" // the prices
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"
)

// file is the one data file of prices. Who changes a price there also writes when it was read;
// what could not be found in a vendor's public documentation is left out, and is unknown.
//
//go:embed prices.json
var file []byte

// Entry is the price of one model, as its vendor lists it.
type Entry struct {
	Vendor, Model string
	Price         Price
	// Taken is the day on which it was read, Source where.
	Taken, Source string
}

// Known are the prices of the data file, in its order. TestFile holds the file to its form; of one
// that cannot be read nothing is known.
var Known = sync.OnceValue(func() []Entry {
	entries, _ := read(file)
	return entries
})

// Find returns the price of a vendor's model; ok is false where it is unknown. vendor is the name
// in the configuration: anthropic, openai, gemini, groq, deepseek, mistral.
func Find(vendor, model string) (p Price, ok bool) {
	index := byVendor()[vendor]
	name, ok := Match(vendor, model, func(name string) bool { _, ok := index[name]; return ok })
	return index[name], ok
}

var byVendor = sync.OnceValue(func() map[string]map[string]Price {
	out := map[string]map[string]Price{}
	for _, e := range Known() {
		if out[e.Vendor] == nil {
			out[e.Vendor] = map[string]Price{}
		}
		out[e.Vendor][e.Model] = e.Price
	}
	return out
})

// Match finds the name under which a model has a price: its own; else without the vendor's prefix
// (models/, or the vendor's name and a slash); else without a version suffix: a day (-20251001,
// -2025-10-01, @20251001), a number of three digits (-001), or -latest. Case does not matter.
// Nothing else is guessed: a model with a name that only begins like another one has another price.
func Match(vendor, model string, has func(name string) bool) (name string, ok bool) {
	name = strings.ToLower(strings.TrimSpace(model))
	for _, try := range []string{name, strings.TrimPrefix(name, "models/"), strings.TrimPrefix(name, vendor+"/")} {
		if has(try) {
			return try, true
		}
		if base := withoutVersion(try); base != try && has(base) {
			return base, true
		}
	}
	return "", false
}

// withoutVersion returns a name without the version at its end.
func withoutVersion(name string) string {
	if base, ok := strings.CutSuffix(name, "-latest"); ok {
		return base
	}
	for _, form := range []string{"-2006-01-02", "-20060102", "@20060102"} {
		if at := len(name) - len(form); at > 0 {
			if _, err := time.Parse(form, name[at:]); err == nil {
				return name[:at]
			}
		}
	}
	if at := len(name) - 4; at > 0 && name[at] == '-' && strings.Trim(name[at+1:], "0123456789") == "" {
		return name[:at]
	}
	return name
}

// written are rates as the file has them: decimal texts, which become whole numbers without a
// detour over floating point.
type written struct {
	Input       string `json:"input"`
	CachedInput string `json:"cached_input"`
	CacheWrite  string `json:"cache_write"`
	Output      string `json:"output"`
}

func (w written) rates() (Rates, error) {
	return Of(w.Input, w.CachedInput, w.CacheWrite, w.Output)
}

// Of makes rates from dollars per million tokens. Without rates of their own, cached input and
// cache writes cost as input; input and output are required.
func Of(input, cachedInput, cacheWrite, output string) (Rates, error) {
	if cachedInput == "" {
		cachedInput = input
	}
	if cacheWrite == "" {
		cacheWrite = input
	}
	var out Rates
	for _, rate := range []struct {
		into *int64
		text string
	}{{&out.Input, input}, {&out.CachedInput, cachedInput}, {&out.CacheWrite, cacheWrite}, {&out.Output, output}} {
		var err error
		if *rate.into, err = Parse(rate.text); err != nil {
			return Rates{}, err
		}
	}
	return out, nil
}

// read reads the data file strictly.
func read(data []byte) ([]Entry, error) {
	var content struct {
		Unit    string `json:"unit"`
		Note    string `json:"note"`
		Vendors []struct {
			Vendor string `json:"vendor"`
			Source string `json:"source"`
			Models []struct {
				written
				Model  string   `json:"model"`
				Taken  string   `json:"taken"`
				UpTo   int64    `json:"up_to"`
				Beyond *written `json:"beyond"`
			} `json:"models"`
		} `json:"vendors"`
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&content); err != nil {
		return nil, err
	}
	var out []Entry
	for _, vendor := range content.Vendors {
		for _, m := range vendor.Models {
			e := Entry{Vendor: vendor.Vendor, Model: m.Model, Taken: m.Taken, Source: vendor.Source}
			var err error
			if e.Price.Rates, err = m.rates(); err != nil {
				return nil, fmt.Errorf("the price of %s: %w", m.Model, err)
			}
			e.Price.UpTo = m.UpTo
			if m.Beyond != nil {
				beyond, err := m.Beyond.rates()
				if err != nil {
					return nil, fmt.Errorf("the price of %s: %w", m.Model, err)
				}
				e.Price.Beyond = &beyond
			}
			out = append(out, e)
		}
	}
	return out, nil
}
