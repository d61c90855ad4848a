package config

import (
	"net/url"
	"slices"
	"strings"

	"github.com/regie-run/regie"
)

// keyPrefixes map the beginning of a key to its vendor. Vendors without an entry in vendors are
// listed too, so that their keys go to no other server. "sk-" alone is ambiguous: OpenAI, DeepSeek
// and many servers use it.
var keyPrefixes = []struct{ prefix, vendor string }{
	{"sk-ant-", "anthropic"},
	{"sk-or-", "openrouter"},
	{"sk-proj-", "openai"},
	{"sk-svcacct-", "openai"},
	{"sk-admin-", "openai"},
	{"AIza", "gemini"},
	{"AQ.", "gemini"},
	{"gsk_", "groq"},
	{"pplx-", "perplexity"},
	{"xai-", "xai"},
	{"nvapi-", "nvidia"},
	{"csk-", "cerebras"},
	{"hf_", "huggingface"},
}

// VendorOfKey returns the vendor that a key is for, empty where the key does not say it.
func VendorOfKey(key string) string {
	for _, known := range keyPrefixes {
		if strings.HasPrefix(key, known.prefix) {
			return known.vendor
		}
	}
	return ""
}

// KeyVendors are the names of the vendors that sell keys, sorted.
func KeyVendors() []string {
	return slices.DeleteFunc(Vendors(""), func(name string) bool { return vendors[name].key == "" })
}

// CheckKey refuses what cannot be a key before it is sent. Every vendor's keys are longer than 8
// bytes. A reference to the keyring is no key: it would show another provider's key to a server.
func CheckKey(key string) error {
	if len(key) < 8 || inKeyring(key) || strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return regie.Errorf(regie.CodeProviderAuth, "that is not a key: a key is one long word; nothing was sent")
	}
	return nil
}

// vendorAt returns the vendor among names that owns the domain of an address, empty for none.
func vendorAt(address string, names []string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	for _, name := range names {
		if own := vendors[name].hostDomain(); own != "" && (host == own || strings.HasSuffix(host, "."+own)) {
			return name
		}
	}
	return ""
}

// ForeignKey returns the vendor that the provider's key is for, where the provider's address is
// another vendor's.
func (p *Provider) ForeignKey() string {
	owner, at := VendorOfKey(p.APIKey), vendorAt(p.BaseURL, Vendors(""))
	if owner == at || at == "" {
		return ""
	}
	return owner
}

// checkKey returns CodeProviderAuth where the key is another vendor's: it is not sent.
func (p *Provider) checkKey() error {
	owner := p.ForeignKey()
	if owner == "" {
		return nil
	}
	from := p.Origin["api_key"]
	if from == "" || p.written {
		from = p.Name
	}
	return regie.Errorf(regie.CodeProviderAuth,
		"the key of %s belongs to %s and was not sent to %s: store it with regie setup, or give %s its own key",
		from, owner, p.BaseURL, p.Name)
}
