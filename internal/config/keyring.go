package config

import (
	"maps"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/keyring"
)

// keyringMark begins a reference to a key in the keyring.
const keyringMark = "keyring:"

// KeyringAnswers reports whether the operating system has a keyring that keys can be kept in. It
// takes 700 ms at most.
func KeyringAnswers() bool { return keyring.Answers() }

// KeepInKeyring stores the key of a provider in the keyring and returns the provider with a
// reference to it, ready for SaveSetup. It returns CodeTimeout or CodeNoPermission where the
// keyring refuses, and CodeBadRequest for a provider name that cannot name a key.
func KeepInKeyring(p Provider) (Provider, error) {
	if !keyring.Named(p.Name) {
		return p, regie.Errorf(regie.CodeBadRequest, "%q is not a name for a key in a keyring: use small letters, digits, - and _",
			p.Name)
	}
	if err := keyring.Set(p.Name, p.APIKey); err != nil {
		return p, err
	}
	return InKeyring(p, p.Name), nil
}

// InKeyring returns a provider that refers to an existing key in the keyring, ready for SaveSetup.
func InKeyring(p Provider, name string) Provider {
	p.APIKey, p.Origin = keyringMark+name, maps.Clone(p.Origin)
	if p.Origin == nil {
		p.Origin = map[string]string{}
	}
	p.Origin["api_key"] = p.APIKey
	return p
}

// KeptInKeyring names the key in the keyring that a provider has, "" where its key is elsewhere.
func (p *Provider) KeptInKeyring() string {
	name, is := strings.CutPrefix(p.Origin["api_key"], keyringMark)
	if !is {
		return ""
	}
	return name
}

// Away says why the keyring does not give the key of a provider, nil where it does or is not asked.
func (p *Provider) Away() error { return p.away }

// inKeyring reports whether a file refers to a key in the keyring.
func inKeyring(key string) bool { return strings.HasPrefix(key, keyringMark) }

// readKeyring reads a key from the keyring. A failure is no error of the settings: Keyless reports
// it where the key is needed.
func (p *Provider) readKeyring(path string) error {
	if !inKeyring(p.APIKey) {
		return nil
	}
	name := strings.TrimPrefix(p.APIKey, keyringMark)
	if !keyring.Named(name) {
		return regie.Errorf(regie.CodeBadRequest,
			"the provider %s (in %s) names the key %q of the keyring: a name has small letters, digits, - and _",
			p.Name, path, name)
	}
	p.Origin["api_key"] = p.APIKey
	p.APIKey, p.away = keyring.Get(name)
	return nil
}
